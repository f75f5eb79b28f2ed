"""What one kind of evidence beside the log says, and the sentences that say why a rank is named."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from kb.errors import DataError, InputError
from kb.evidence.flight_recorder.dump_file import RecordedOperation
from kb.files.paths import legible
from kb.knowledge.load import read_yaml
from kb.settings import shipped_data
from kb.text.redact import redact, redact_name
from kb.types.incident import Culprit, Fact, RankState, Unread
from kb.types.knowledge import Bilingual


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceReading:
    """What files of one kind say. Quotes of facts are literal pieces of the files.

    Attributes:
        kind: flight_recorder, stacks, ras, kernel or torchrun.
        culprits: ranks at fault with the reason, ascending.
        facts: derived statements; `detail` says with which numbers.
        ranks: what each rank was doing.
        fault_type: empty where the kind says nothing about it.
        versions: of libraries, and ``flight_recorder``, the newest format seen.
        present, absent: ranks with a usable dump, and ranks the dumps' groups name without one.
        collective: the operation of the dumps the fault shows in, of the lowest rank that has it.
    """

    kind: str
    culprits: tuple[Culprit, ...] = ()
    facts: tuple[Fact, ...] = ()
    ranks: tuple[RankState, ...] = ()
    fault_type: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    present: tuple[int, ...] = ()
    absent: tuple[int, ...] = ()
    collective: RecordedOperation | None = None


def why_unread(error: InputError, name: str, *, shown: str) -> Unread:
    """That a file was refused: `name` begins the error's words, `shown` is what people call it."""
    reason = error.what.removeprefix(name).lstrip(": ")
    values = {key: value for key, value in error.values.items() if key != "name"}
    return Unread(
        file=redact_name(legible(shown)), reason=redact(reason)[0], code=error.reason, values=values
    )


def expression(_kind: type, text: str) -> re.Pattern[str]:
    """A regular expression of a data file, compiled as the file is read."""
    try:
        return re.compile(text)
    except re.error as error:
        raise ValueError(error) from error


@cache
def _templates() -> dict[str, Bilingual]:
    return read_yaml(shipped_data() / "dump_reasons.yaml", dict[str, Bilingual])


def reason(rule: str, values: Mapping[str, object]) -> Bilingual:
    """The sentence of `rule` filled with `values`, in both languages.

    Raises:
        DataError: the rule has no sentence or the sentence asks for a value that is not there.
    """
    template = _templates().get(rule)
    if template is None:
        raise DataError(f"dump_reasons.yaml: {rule!r} is missing", todo="add it, or reinstall")
    try:
        return Bilingual(zh=template.zh.format_map(values), en=template.en.format_map(values))
    except KeyError as error:
        raise DataError(f"dump_reasons.yaml: {rule!r} asks for {error}, which is unknown") from None
