"""The shipped reports (``data/reports``): what people write before anybody knows the cause."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from kb.errors import DataError
from kb.types.vocabulary import Language

FOLDER = "reports"  # of data/
NEUTRAL = "neutral.txt"  # sentences that stand in reports of any cause


class Report(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A report in our own words.

    Attributes:
        source: `retold` from the first post of a real thread (`url`), written for a `mechanism`,
            or another `voice` for that of the report `of`.
        cause, also: the cause, and those as defensible.
        p: probabilities an expert gave on reading the post alone; sums to at most 1.
        text, log: what the person writes, and the lines pasted below it.
    """

    id: str
    source: Literal["retold", "mechanism", "voice"]
    lang: Language
    cause: str
    also: tuple[str, ...]
    text: str
    log: str
    mechanism: str = ""
    of: str = ""
    url: str = ""
    p: Mapping[str, float] = {}

    @property
    def paste(self) -> str:
        """Words and log as they are pasted."""
        return "\n\n".join(part for part in (self.text, self.log) if part)


def load_neutral(folder: Path) -> tuple[str, ...]:
    """Sentences that tell nothing of a cause, one a line; none where there is no such file."""
    path = folder / NEUTRAL
    return tuple(path.read_text("utf-8").splitlines()) if path.is_file() else ()


def load_reports(folder: Path) -> tuple[Report, ...]:
    """All reports of `folder`, by file and line.

    Raises:
        DataError: a line breaks the schema, or two have one id.
    """
    reports: dict[str, Report] = {}
    for path in sorted(folder.glob("*.jsonl")):
        for number, line in enumerate(path.read_bytes().splitlines(), start=1):
            try:
                report = msgspec.json.decode(line, type=Report)
            except msgspec.DecodeError as error:
                raise DataError(
                    f"{path.name}, line {number}: {error}", todo="see data/README.md"
                ) from error
            if report.id in reports:
                raise DataError(
                    f"{path.name}, line {number}: id {report.id} stands twice", todo="rename it"
                )
            reports[report.id] = report
    return tuple(reports.values())
