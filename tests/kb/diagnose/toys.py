"""Small values for tests of numbers: signals, cases, hits and weights of three causes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kb.diagnose.evidence_model import WEIGHTS_FORMAT, Weights
from kb.diagnose.signals import Signal
from kb.types.entries import CauseClaim, Entry, Hit, Section, Tags
from kb.types.knowledge import Bilingual
from kb.types.vocabulary import ClaimStatus, EvidenceKind

CAUSES = ("alpha", "beta", "gamma")


def both(text: str) -> Bilingual:
    """The same words in both languages, each marked."""
    return Bilingual(zh=f"{text}。", en=f"{text}.")


def weights(**changes: object) -> Weights:
    """Weights under which nothing is learned and nothing unknown."""
    values: dict[str, object] = {
        "format": WEIGHTS_FORMAT,
        "prior": dict.fromkeys(CAUSES, 0.0),
        "scale": {"log": 1.0, "text": 1.0, "rank": 1.0},
        "learned": {},
        "case_weight": 0.0,
        "temperature": 1.0,
        "unknown_bias": -50.0,
        "unknown_slope": 0.0,
    }
    return Weights(**(values | changes))  # type: ignore[arg-type]


def signal(
    name: str = "s", /, nats: Mapping[str, float] | None = None, kind: EvidenceKind = "log"
) -> Signal:
    """A signal with these expert weights."""
    return Signal(
        name=name,
        kind=kind,
        quote=f"quote of {name}",
        line=1,
        weights=nats or {},
        reason_id=name,
        source=f"source of {name}",
        means=both(f"meaning of {name}"),
    )


def case(
    name: str,
    *causes: str,
    project: str = "",
    status: ClaimStatus = "confirmed",
    tags: Tags = Tags(),  # noqa: B008 - a frozen value
    signature: Sequence[str] = (),
    symptoms: str = "",
) -> Entry:
    """A case of these causes, the first of them its own."""
    return Entry(
        id=name,
        kind="case",
        language="both",
        title=both(f"title of {name}"),
        project=project,
        url=f"https://example.org/{name}",
        date="2024-06-18",
        status=status,
        causes=tuple(CauseClaim(id=cause, status="confirmed") for cause in causes),
        fixes=(),
        tags=tags,
        signature=tuple(signature),
        sections=(Section(role="symptoms", title="", text=symptoms, language="en"),),
        chunks=(),
        source_key=f"data/cases/{name}.md",
        digest=name,
    )


def hit(entry: Entry, score: float, why: Sequence[str] = ()) -> Hit:
    """A hit of a search on a case."""
    return Hit(
        entry_id=entry.id,
        kind="case",
        title=entry.title,
        project=entry.project,
        url=entry.url,
        status=entry.status,
        cause=entry.causes[0].id if entry.causes else "",
        score=score,
        chunk_id=f"{entry.id}#0",
        snippet="",
        why=tuple(why),
    )


def by_id(entries: Sequence[Entry]) -> dict[str, Entry]:
    """Entries by id."""
    return {entry.id: entry for entry in entries}
