"""What `watch` says first of a job that hangs, and how it takes that back: one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.render.escape import plain
from kb.diagnose.wording import rank_span

if TYPE_CHECKING:
    from app.capture.ras import StuckRanks
    from app.capture.steps import OverdueSteps
    from kb.knowledge.labels import Words


def silence_line(after_s: float, words: Words) -> str:
    """It printed nothing for so long."""
    return words("capture.silent", seconds=f"{after_s:g}")


def stuck_line(stuck: StuckRanks, words: Words) -> str:
    """RAS showed ranks without progress."""
    ranks, seconds = rank_span(stuck.ranks), f"{stuck.seconds:.0f}"
    return words("capture.ras_stuck", ranks=ranks, seconds=seconds)


def overdue_line(overdue: OverdueSteps, words: Words) -> str:
    """Ranks print no further steps: those that are behind, or all of them."""
    values = {
        "step": plain(overdue.step),
        "seconds": f"{overdue.seconds:.0f}",
        "rhythm": f"{overdue.rhythm_s:.2g}",
    }
    if not overdue.ranks:
        return words("capture.steps_stopped", **values)
    ranks, usual = rank_span(overdue.ranks), plain(overdue.usual)
    return words("capture.steps_behind", ranks=ranks, usual=usual, **values)


def moved_line(stuck: StuckRanks, words: Words) -> str:
    """What RAS showed holds no longer."""
    ranks, seconds = rank_span(stuck.ranks), f"{stuck.seconds:.0f}"
    return words("capture.ras_moved", ranks=ranks, seconds=seconds)


def steps_moved_line(seconds: float, words: Words) -> str:
    """The steps went on."""
    return words("capture.steps_moved", seconds=f"{seconds:.0f}")


def went_on_line(silent_s: float, words: Words) -> str:
    """It printed again."""
    return words("capture.went_on", seconds=f"{silent_s:.0f}")


def ended_well_line(words: Words) -> str:
    """The job ended as if nothing had been."""
    return words("capture.ended_well")
