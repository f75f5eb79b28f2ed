"""Paraphrases: what people could say about a case, in words of their own (``data/paraphrases``)."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Literal

import msgspec

from kb.errors import DataError
from kb.types.vocabulary import Language

FOLDER = "paraphrases"  # of data/


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
