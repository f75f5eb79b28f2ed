"""A real Gloo job that hangs: the rank that differs is named (the whole set is `make hangs`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.capture.archive import archive_of, groups_of
from app.capture.stacks import pyspy_program
from kb.evidence.collect import add_evidence, read_evidence
from kb.types.incident import Incident
from tests.lab.hanging import KINDS, Hang, captured, hanging, names_the_odd_rank


@pytest.mark.lab
@pytest.mark.skipif(pyspy_program() is None, reason="needs py-spy: timeout-kb[capture]")
def test_the_rank_that_differs_is_named(tmp_path: Path) -> None:
    """Three ranks wait in all_reduce, one in a barrier of another group."""
    hang = Hang(world=4, odd=2, kind="other_collective", torchrun=False)
    with hanging(hang) as pids:
        capture = captured(pids)
    assert names_the_odd_rank(groups_of([capture]), hang)
    assert capture.host.took_s < 20
    (tmp_path / "c.tar.zst").write_bytes(archive_of([capture], ""))
    stacks = [data for file, data in capture.files if "/stacks/" in file.name]
    for number, data in enumerate(stacks):
        (tmp_path / f"stack_{number}").write_bytes(data)
    evidence = read_evidence(sorted(tmp_path.glob("stack_*")))
    assert [item.rank for item in add_evidence(Incident(), evidence).culprit_ranks] == [2]


def test_every_kind_has_its_job() -> None:
    """The names are functions of the job."""
    source = Path(__file__).with_name("hanging_job.py").read_text(encoding="utf-8")
    assert all(f"def {kind}(" in source for kind in KINDS)
