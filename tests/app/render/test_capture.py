"""A capture in a few lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from app.render.capture import MAX_LINES, gap_sentence, render_capture, shows_cause, standing_lines
from kb.evidence.capture import CapturedHost, CaptureGap
from kb.evidence.stacks import StackGroup
from kb.knowledge.labels import Words
from kb.types.answer import Diagnosis
from kb.types.knowledge import Bilingual


def group(
    *ranks: int, call: str = "all_reduce", spot: str = "train.py:40", odd: bool = False
) -> StackGroup:
    """Ranks that stand alike."""
    return StackGroup(
        ranks=ranks, pids=(), call=call, spot=spot, place="collective", waits=True, odd=odd
    )


def test_ranks_are_said_where_they_stand(labels: Mapping[str, Bilingual]) -> None:
    """In both languages, the odd one marked."""
    groups = (group(0, 1, 3), group(2, call="barrier", spot="train.py:43", odd=True))
    assert standing_lines(groups, Words(labels, "en")) == [
        "ranks 0-1, 3 in all_reduce (train.py:40)",
        "rank 2 in barrier (train.py:43)  <- differs from the others",
    ]
    assert standing_lines(groups, Words(labels, "zh")) == [
        "rank 0-1, 3 停在 all_reduce (train.py:40)",
        "rank 2 停在 barrier (train.py:43)  <- 与其他 rank 不同",
    ]


def test_it_stays_short(labels: Mapping[str, Bilingual], diagnosis: Diagnosis) -> None:
    """However many places and gaps there are: the odd ones stay, and the archive's path."""
    groups = [group(n, spot=f"train.py:{n}") for n in range(40)]
    groups.append(group(99, call="save", odd=True))
    gaps = tuple(CaptureGap("capture.host_failed", {"host": f"n{n}", "why": "x"}) for n in range(9))
    hosts = [CapturedHost(name="n", gaps=gaps)]
    text = render_capture("head", hosts, groups, diagnosis, Path("a.tar.zst"), Words(labels, "en"))
    lines = text.splitlines()
    assert len(lines) <= MAX_LINES
    assert "  rank 99 in save (train.py:40)  <- differs from the others" in lines
    assert "  35 more places: see the archive" in lines
    assert "  Archive: a.tar.zst" in lines
    assert lines[-1] == "  All of it: timeout-kb diagnose a.tar.zst"


@pytest.mark.parametrize("kind", ["reader", "case", "text", "prior"])
def test_likeness_alone_names_no_cause(diagnosis: Diagnosis, kind: str) -> None:
    """A cause rests on what was seen in output and processes, or it is not named."""
    assert shows_cause(diagnosis)
    lead = diagnosis.causes[0]
    like = tuple(replace(item, kind=kind) for item in lead.evidence)  # type: ignore[arg-type]
    assert not shows_cause(replace(diagnosis, causes=(replace(lead, evidence=like),)))
    assert not shows_cause(replace(diagnosis, status="unknown"))


def test_hostile_names_stay_on_their_line(labels: Mapping[str, Bilingual]) -> None:
    """Functions, files and reasons come from outside: no escapes, no breaks."""
    words = Words(labels, "en")
    (line,) = standing_lines((group(1, call="a\x1b[31m\nb", spot=""),), words)
    assert line == "rank 1 in a b"
    gap = CaptureGap("capture.step_failed", {"what": "ras", "why": "a\n\x1b[2Jb"})
    assert gap_sentence(gap, words) == "ras: a b"
    assert gap_sentence(CaptureGap("capture.of_another_version"), words)
