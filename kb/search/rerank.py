"""A second look at the first entries: how much of the question stands anywhere in an entry.

The first look goes by the passage that is most like the question; a description often tells what
stands in several. The second one asks how many of the words that tell cases apart the whole entry
has, itself or in translation, and whether it is of the frameworks and hardware the question names.
What a word tells was counted on paraphrases of cases: `p` is how often the case that was meant has
the word, `q` how often any entry has it; its weight is p ln(p / q), the part of the relative
entropy that is its own. Words of asking ("why", "请问") are as frequent in any entry and weigh
nothing.

Source of the weights' form: Robertson, Spärck Jones 1976, https://doi.org/10.1002/asi.4630270302
Fitted by `python -m kb.train.reranker`.
"""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import msgspec

from kb.errors import DataError
from kb.index.base import Term, Tokens
from kb.knowledge.framework_names import FrameworkNames
from kb.knowledge.hardware import hardware_spellings
from kb.knowledge.stages import stages_in
from kb.store import EntryHead
from kb.text.language import HAN
from kb.text.tokenizer import read_rows

FORMAT = "timeout-kb/reranker/1"
FOLDER = "search"  # of data/
WEIGHTS, WORDS = "reranker.json", "words.tsv"
RERANKED = 50  # entries looked at again; the case that is meant is among them for .985
# Of what a matched log line closes: many cases print the same line, and words tell them apart. With
# .6 a case is first for .826 of lines people remember, with 1 for .798; whole logs lose from .4 on.
LINE_SHARE = 0.6
MAX_WORDS = 48  # of a question: of a long log those that tell most
PRIOR_COUNT = 10.0  # times a word counts as asked before it was; 1 and 3 lower the MRR by .01
RAREST = 0.004  # share of entries with a word, at least: one in 273 has its name by chance
LARGEST = 0.98  # probability: what every entry has tells nothing
TRANSLATED = 1.6  # times the weight of a translation, which is .5 at most: as good as the word
LEAST_TRANSLATED = 0.2  # weight of a translation that is asked for; weaker ones are chance
NAMED_CHARS = 4000  # of a question, in which names are sought
ENTRIES_CACHED = 2048  # entries whose names are kept, about 500 bytes each
MISSING_TRIED = 8  # most telling words of a question looked for in the nearest entry
MISSING_NAMED = 4  # of those it lacks; more say nothing more
UNKNOWN_STAGE = "unknown"  # of an entry: nothing says when it hangs
NAME_WORDS = 3  # at most, of a piece of hardware in a text
_WORD = re.compile(rf"[A-Za-z0-9]+|[{HAN}]+")
REPAIR = "run python -m kb.train.reranker, or reinstall the package"


class RerankWeights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What each thing adds to the score of an entry; the likeness and the coverage are in [0, 1].

    Attributes:
        prior: how often the case that is meant has a word of a question.
        shift: added to all, so that a score means what the first look's meant.
        likeness: of the first look's score.
        coverage: of the share of the question's words that the entry has.
        same_framework: where the entry is of a framework the question names.
        other_framework: where it is of none that a job of those uses.
        other_hardware: where it names hardware and the question other hardware.
        same_stage: where the question says when it hangs, and the entry hangs then.
        other_stage: where the entry hangs at another time.
        fitted_on: what it was fitted on.
    """

    prior: float
    shift: float
    likeness: float
    coverage: float
    same_framework: float
    other_framework: float
    other_hardware: float
    same_stage: float = 0.0
    other_stage: float = 0.0
    fitted_on: str = ""
    format: str = FORMAT


Weigh = Callable[[str], tuple[float, dict[str, float]]]
"""What a word tells, and the part of it that the word itself and its translations have."""

FEATURES = (
    "likeness",
    "coverage",
    "same_framework",
    "other_framework",
    "other_hardware",
    "same_stage",
    "other_stage",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionNames:
    """The frameworks a question names, those a job of them uses as well, hardware and stages."""

    named: frozenset[str]
    used: frozenset[str]
    hardware: frozenset[str]
    stages: frozenset[str] = frozenset()


class Reranker:
    """Scores entries again; made once, used from any thread."""

    def __init__(
        self,
        weights: RerankWeights,
        counts: Mapping[str, tuple[int, int]],
        frameworks: FrameworkNames,
    ) -> None:
        """`counts` has how often a word was asked, and how often the case meant had it."""
        self.weights = weights
        self._own = tuple(getattr(weights, name) for name in FEATURES)
        self._counts = counts
        self._frameworks = frameworks
        self._of_entry = lru_cache(ENTRIES_CACHED)(self._entry_frameworks)

    def names(self, question: str) -> QuestionNames:
        """What the beginning of a question names."""
        start = question[:NAMED_CHARS]
        named = self._frameworks.named(start)
        return QuestionNames(
            named=named,
            used=self._frameworks.with_bases(named),
            hardware=hardware_in(start),
            stages=stages_in(start),
        )

    def is_asked_with(self, word: str) -> bool:
        """Whether paraphrases have the word."""
        return word in self._counts

    def weigh(
        self, word: str, tokenizer: Tokens, share: Callable[[str], float]
    ) -> tuple[float, dict[str, float]]:
        """What a word tells, and the part of it that the word itself and its translations have.

        Args:
            word: of a question.
            tokenizer: translates it.
            share: how many of all entries have a word, in [0, 1].
        """
        others = {
            other: min(1.0, weight * TRANSLATED)
            for other, weight in tokenizer.expand([word])
            if other != word and weight >= LEAST_TRANSLATED
        }
        any_entry = max(share(word), *(share(o) * w for o, w in others.items()), 0.0)
        return self._weight(word, any_entry), {word: 1.0, **others}

    def choices(self, words: Iterable[str], weigh: Weigh) -> tuple[tuple[Term, ...], ...]:
        """Every word that tells something with its translations, the most telling first.

        Their weights add up to 1 where an entry has all of the words.

        Args:
            words: distinct words of the question.
            weigh: what `weigh` says of a word.
        """
        weighed = [(-weight, word, terms) for word in words for weight, terms in [weigh(word)]]
        weighed = sorted([item for item in weighed if item[0] < 0], key=lambda item: item[:2])
        weighed = weighed[:MAX_WORDS]
        total = -math.fsum(negative for negative, _, _ in weighed)
        return tuple(
            tuple(Term(word=word, weight=-negative / total * part) for word, part in terms.items())
            for negative, _, terms in weighed
        )

    def _weight(self, word: str, any_entry: float) -> float:
        asked, present = self._counts.get(word, (0, 0))
        q = min(max(any_entry, RAREST), LARGEST)
        p = (present + PRIOR_COUNT * max(self.weights.prior, q)) / (asked + PRIOR_COUNT)
        p = min(p, LARGEST)
        return p * math.log(p / q)

    def features(
        self, question: QuestionNames, head: EntryHead, likeness: float, coverage: float
    ) -> tuple[float, ...]:
        """What is known of an entry, in the order of `FEATURES`."""
        same = other = False
        if question.named:
            frameworks = self._of_entry((*head.tags.frameworks, head.project))
            same = not question.named.isdisjoint(frameworks)
            other = question.used.isdisjoint(frameworks)
        own = head.tags.hardware
        unlike = bool(question.hardware and own) and question.hardware.isdisjoint(own)
        when = head.tags.stage
        then = when in question.stages
        not_then = bool(question.stages) and when != UNKNOWN_STAGE and not then
        agree = (same, other, unlike, then, not_then)
        return likeness, coverage, *map(float, agree)

    def reasons(
        self, question: QuestionNames, head: EntryHead, features: Sequence[float]
    ) -> tuple[str, ...]:
        """What moved the score of an entry, as ``kind:value``.

        ``coverage`` is the share of the question's telling words that the entry has, in [0, 1];
        the other kinds are the features that hold, with what the question names.
        """
        frameworks = self._of_entry((*head.tags.frameworks, head.project))
        named = {
            "same_framework": question.named & frameworks,
            "other_framework": question.named,
            "other_hardware": question.hardware,
            "same_stage": {head.tags.stage},
            "other_stage": {head.tags.stage},
        }
        held = dict(zip(FEATURES, features, strict=True))
        moved = (f"{kind}:{name}" for kind in named if held[kind] for name in sorted(named[kind]))
        return (f"coverage:{held['coverage']:.2f}", *moved)

    def score(self, features: Sequence[float]) -> float:
        """The score of an entry with these features, in [0, 1]."""
        weighed: float = self.weights.shift + sum(map(operator.mul, self._own, features))
        return min(1.0, max(0.0, weighed))

    def _entry_frameworks(self, names: tuple[str, ...]) -> frozenset[str]:
        return frozenset(names[:-1]) | self._frameworks.used(" ".join(names))


def missing_words(
    choices: Sequence[Sequence[Term]], stands: Callable[[Sequence[Term]], bool]
) -> tuple[str, ...]:
    """The most telling words of a question that an entry has in no form.

    Args:
        choices: every telling word with its translations, the most telling first.
        stands: whether the entry has a word or one of its translations.
    """
    telling = [terms for terms in choices if len(terms[0].word) > 1][:MISSING_TRIED]
    absent = (terms[0].word for terms in telling if not stands(terms))
    return tuple(itertools.islice(absent, MISSING_NAMED))


def hardware_in(text: str) -> frozenset[str]:
    """The tags of the hardware a text names, in one to three words."""
    words = [word.lower() for word in _WORD.findall(text)]
    tags, starts = hardware_spellings(), _hardware_starts()
    joined = (
        "".join(words[start : start + size])
        for start, word in enumerate(words)
        if word in starts
        for size in range(1, NAME_WORDS + 1)
    )
    return frozenset(tags[name] for name in joined if name in tags)


@cache
def _hardware_starts() -> frozenset[str]:
    """With what a piece of hardware may begin: hardly a word of a text does."""
    spellings = hardware_spellings()
    return frozenset(name[:end] for name in spellings for end in range(1, len(name) + 1))


def load_reranker(folder: Path, frameworks: FrameworkNames) -> Reranker:
    """Read the re-ranker of ``data/search``.

    Raises:
        DataError: a file is missing, damaged or of another format.
    """
    try:
        weights = msgspec.json.decode((folder / WEIGHTS).read_bytes(), type=RerankWeights)
        counts = {
            word: (int(asked), int(present))
            for word, asked, present in read_rows(folder / WORDS, 3)
        }
    except (OSError, ValueError) as error:
        raise DataError(f"{folder.name}: {error}", todo=REPAIR) from error
    if weights.format != FORMAT:
        raise DataError(f"{folder.name}/{WEIGHTS} has format {weights.format!r}", todo=REPAIR)
    return Reranker(weights, counts, frameworks)
