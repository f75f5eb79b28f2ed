"""Incidents written by hand."""

from __future__ import annotations

from dataclasses import replace

from kb.types.entries import CauseClaim, Entry, RankPlace, Tags
from kb.types.knowledge import Bilingual, Fix

OOM = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3"
TIMEOUT = "[rank1]:[E ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective timeout"


def incident(number: int, **fields: object) -> Entry:
    """An open incident without a known cause, on no known host."""
    entry = Entry(
        id=f"incident-{number:02}",
        kind="incident",
        language="en",
        title=Bilingual(zh=f"事故 {number}", en=f"incident {number}"),
        project="",
        url="",
        date="2026-11-02",
        status="unverified",
        causes=(),
        fixes=(),
        tags=Tags(),
        signature=(),
        sections=(),
        chunks=(),
        source_key=f"upload:{number}",
        digest=str(number),
        resolved=False,
    )
    return replace(entry, **fields)  # type: ignore[arg-type]


def cause(name: str) -> tuple[CauseClaim, ...]:
    """A cause that a diagnosis suggests."""
    return (CauseClaim(id=name, status="unverified"),)


def fixed(title: str, *, added: str = "", on: str = "") -> dict[str, object]:
    """The fields of an incident that was resolved."""
    text = Bilingual(zh=title, en=title)
    fix = Fix(id="x", title=text, steps=(), commands=("reboot",), status="confirmed")
    return {"resolved": True, "fixes": (fix,), "added_on": added, "resolved_on": on}


def at(rank: int | None, host: str = "", gpu: str = "") -> tuple[RankPlace, ...]:
    """One culprit."""
    return (RankPlace(rank=rank, host=host, gpu=gpu),)
