"""Paraphrases: what people could say about a case, in words of their own (``data/paraphrases``).

They are searched with the case, so that it is found in everyday words, and never shown: what is
shown of a case is what its sources say.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import msgspec

from kb.errors import DataError
from kb.types.entries import Chunk, Entry
from kb.types.vocabulary import Language

FOLDER = "paraphrases"  # of data/
ASKED_ROLE = "asked"  # of chunks that hold paraphrases
TOGETHER = 6  # paraphrases in a chunk: of most cases all of a language


class Paraphrase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A case in other words.

    Attributes:
        case: id of the case it is about.
        kind: a description without terms of the trade (`lay`), a `question`, `keywords`, a `line`
            of a log, or what helped (`fix`).
    """

    case: str
    lang: Language
    kind: Literal["lay", "question", "keywords", "line", "fix"]
    text: str


def load_paraphrases(folder: Path, cases: Collection[str] | None = None) -> tuple[Paraphrase, ...]:
    """All paraphrases of `folder`, by file and line; none where there is no such folder.

    Args:
        folder: holds files of one JSON object a line.
        cases: ids a line may name; None for any.

    Raises:
        DataError: a line breaks the schema, is empty, names no case, or stands twice.
    """
    first: dict[tuple[str, str], str] = {}
    paraphrases: list[Paraphrase] = []
    for path in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            place = f"{FOLDER}/{path.name}, line {number}"
            try:
                item = msgspec.json.decode(line, type=Paraphrase)
            except msgspec.DecodeError as error:
                raise DataError(f"{place}: {error}", todo="see data/README.md") from error
            if not item.text.strip():
                raise DataError(f"{place}: the text is empty", todo="write it or delete the line")
            if cases is not None and item.case not in cases:
                raise DataError(f"{place}: no case {item.case!r}", todo="see data/cases")
            earlier = first.setdefault((item.case, item.text), place)
            if earlier != place:
                raise DataError(f"{place}: the same stands in {earlier}", todo="delete one")
            paraphrases.append(item)
    return tuple(paraphrases)


def with_paraphrases(
    cases: Iterable[Entry], paraphrases: Iterable[Paraphrase]
) -> tuple[Entry, ...]:
    """The cases with what people could say about them as further chunks, a language apart.

    Lines of logs are left out: the signature holds them, and other incidents print them, too. Those
    of cases that are not among `cases` are passed over. The digest tells that they have changed.
    """
    texts: defaultdict[tuple[str, Language], list[str]] = defaultdict(list)
    for item in paraphrases:
        if item.kind != "line":
            texts[item.case, item.lang].append(item.text)
    return tuple(_with_texts(case, texts) for case in cases)


def _with_texts(case: Entry, texts: dict[tuple[str, Language], list[str]]) -> Entry:
    languages: tuple[Language, ...] = ("zh", "en")
    asked = [
        (language, "\n".join(told[at : at + TOGETHER]))
        for language in languages
        if (told := texts.get((case.id, language)))
        for at in range(0, len(told), TOGETHER)
    ]
    if not asked:
        return case
    chunks = [
        Chunk(
            id=f"{case.id}#{number}",
            entry_id=case.id,
            role=ASKED_ROLE,
            language=language,
            text=text,
        )
        for number, (language, text) in enumerate(asked, start=len(case.chunks))
    ]
    content = "\0".join((case.digest, *(text for _, text in asked)))
    digest = hashlib.sha256(content.encode()).hexdigest()
    return replace(case, chunks=(*case.chunks, *chunks), digest=digest)
