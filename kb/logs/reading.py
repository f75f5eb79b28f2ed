"""What one kind of evidence beside the log says."""

from __future__ import annotations

from dataclasses import dataclass, field

from kb.errors import InputError
from kb.logs.redact import redact
from kb.logs.source import legible
from kb.types import Culprit, Fact, RankState, Unread


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Facts, culprits and rank states read off files of one kind.

    `kind` is stacks, ras, kernel or torchrun. `fault_type` is empty when the kind says nothing
    about it. Quotes of facts are literal pieces of the files.
    """

    kind: str
    culprits: tuple[Culprit, ...] = ()
    facts: tuple[Fact, ...] = ()
    ranks: tuple[RankState, ...] = ()
    fault_type: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    world_size: int | None = None


def why_unread(error: InputError, name: str, *, shown: str) -> Unread:
    """That a file was refused: `name` begins the error's words, `shown` is what people call it."""
    reason = error.what.removeprefix(name).lstrip(": ")
    values = {key: value for key, value in error.values.items() if key != "name"}
    return Unread(file=legible(shown), reason=redact(reason)[0], code=error.reason, values=values)
