"""Timing: pastes of one length, every stage of each."""

from __future__ import annotations

from kb.evaluation.stages import PASTE_LINES, STAGES, TOTAL, pastes, time_stages
from kb.service import Service
from tests.kb.train.examples import TIMEOUT_LOG, thread


def test_pastes_have_the_length_asked_for() -> None:
    """Words stand first, the log last; a long post is cut."""
    long = "\n".join(f"line {n}" for n in range(300))
    short, cut = pastes(
        [thread("a", text="it hangs\n" + TIMEOUT_LOG, log=TIMEOUT_LOG), thread("b", text=long)]
    )
    assert short.count("\n") == cut.count("\n") == PASTE_LINES - 1
    assert (short.splitlines()[0], short.splitlines()[-1]) == ("it hangs", TIMEOUT_LOG)


def test_every_stage_of_every_paste_is_timed(small: Service) -> None:
    """Two pastes give two times a stage, none negative; reading costs something."""
    stages = time_stages(small, ["it hangs\n" + TIMEOUT_LOG, TIMEOUT_LOG])
    assert set(stages.taken_ms) == {*STAGES, TOTAL}
    assert {len(taken) for taken in stages.taken_ms.values()} == {2}
    assert min(min(taken) for taken in stages.taken_ms.values()) >= 0.0
    assert 0.0 < stages.percentile_ms("read", 50) <= stages.percentile_ms("read", 99)
