"""How well statements are read: labelled sentences against what the reader hears in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kb.diagnose.statements import TopicStatement
from kb.errors import DataError
from kb.types.vocabulary import Language, Polarity

SENTENCES = "statements.jsonl"  # of data/golden
Claim = tuple[str, Polarity]
"""A topic's id and how the sentence speaks of it."""


class LabelledSentence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A sentence with its statements: one line of data/golden/statements.jsonl."""

    lang: Language
    text: str
    statements: tuple[Claim, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSentence:
    """A labelled sentence and the statements that were read in it."""

    sentence: LabelledSentence
    claims: frozenset[Claim]

    @property
    def labelled(self) -> frozenset[Claim]:
        """The statements it should have."""
        return frozenset(self.sentence.statements)

    @property
    def is_right(self) -> bool:
        """Whether all statements are right, and none is too many."""
        return self.claims == self.labelled


def load_sentences(path: Path) -> tuple[LabelledSentence, ...]:
    """Read labelled sentences, one JSON object a line.

    Raises:
        DataError: the file is missing or a line breaks the schema.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}", todo="name a file of sentences") from error
    sentences = []
    for number, line in enumerate(lines, start=1):
        try:
            sentences.append(msgspec.json.decode(line, type=LabelledSentence))
        except msgspec.DecodeError as error:
            raise DataError(
                f"{path.name}, line {number}: {error}", todo="see data/golden/README.md"
            ) from error
    return tuple(sentences)


def judge_sentences(
    read: Callable[[str], Iterable[TopicStatement]], sentences: Iterable[LabelledSentence]
) -> list[JudgedSentence]:
    """Read every sentence by itself; `read` finds the statements of a text."""
    return [
        JudgedSentence(
            sentence=sentence,
            claims=frozenset((item.topic.id, item.polarity) for item in read(sentence.text)),
        )
        for sentence in sentences
    ]


def statement_figures(judged: Sequence[JudgedSentence]) -> dict[str, dict[str, str]]:
    """Shares of sentences that are right, and precision and recall of statements, as tables."""
    languages = sorted({item.sentence.lang for item in judged})
    right = {"all": _share(judged)} | {
        language: _share([item for item in judged if item.sentence.lang == language])
        for language in languages
    }
    labelled = Counter(claim[1] for item in judged for claim in item.labelled)
    heard = Counter(claim[1] for item in judged for claim in item.claims)
    both = Counter(claim[1] for item in judged for claim in item.claims & item.labelled)
    rows = {
        str(polarity): f"precision {_of(both[polarity], heard[polarity])}, "
        f"recall {_of(both[polarity], labelled[polarity])} of {labelled[polarity]}"
        for polarity in Polarity
    }
    rows["all"] = (
        f"precision {_of(both.total(), heard.total())}, "
        f"recall {_of(both.total(), labelled.total())} of {labelled.total()}"
    )
    return {"sentences with all statements right": right, "statements": rows}


def misses(judged: Iterable[JudgedSentence]) -> dict[str, str]:
    """What is wrong with each sentence that is not right: ``-`` is missing, ``+`` too many."""
    return {
        item.sentence.text: ", ".join(
            f"{sign}{topic} {polarity}"
            for sign, claims in (
                ("-", item.labelled - item.claims),
                ("+", item.claims - item.labelled),
            )
            for topic, polarity in sorted(claims)
        )
        for item in judged
        if not item.is_right
    }


def _share(judged: Sequence[JudgedSentence]) -> str:
    right = sum(item.is_right for item in judged)
    return f"{_of(right, len(judged))} of {len(judged)}"


def _of(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "none"
