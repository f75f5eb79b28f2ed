"""What one kind of evidence beside the log says."""

from __future__ import annotations

from dataclasses import dataclass, field

from kb.types import Culprit, Fact, RankState


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
