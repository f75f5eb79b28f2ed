"""What a failed run printed and a good one did not."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.logs.baseline import NewLine, compare

GOOD = """2026-01-01 10:00:00 INFO loading data from /data/v1
step 1 loss 2.50
[default0]:saved checkpoint 100
"""
FAILED = """2026-01-02 11:11:11 INFO loading data from /data/v2
step 1 loss 2.49
[default0]:saved checkpoint 100
[default1]:retrying shard 17 of bucket b
[default0]:queue is empty
[default1]:retrying shard 18 of bucket b
[default1]:queue is empty
HF_TOKEN=hf_a1B2a1B2a1B2a1B2a1B2a1B2
"""


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    """The failed run's log and the good one's."""
    (tmp_path / "failed.log").write_text(FAILED)
    (tmp_path / "good.log").write_text(GOOD)
    return tmp_path / "failed.log", tmp_path / "good.log"


def test_lines_the_good_run_lacks_are_named_once(runs: tuple[Path, Path]) -> None:
    """With place, count and ranks, in the order of the log, numbers aside and without secrets."""
    failed, good = runs
    compared = compare([failed], [good])
    assert compared.lines == (
        NewLine(text="[default1]:retrying shard 17 of bucket b", line=4, count=2, ranks=(1,)),
        NewLine(text="[default0]:queue is empty", line=5, count=2, ranks=(0, 1)),
        NewLine(text="HF_TOKEN=<redacted:token>", line=8),
    )
    assert [compared.of_one_rank(line) for line in compared.lines] == [1, None, None]


def test_a_run_compared_with_itself_has_nothing_new(runs: tuple[Path, Path]) -> None:
    """Nor one compared with several, of which one has each line."""
    failed, good = runs
    assert compare([failed], [failed]).lines == ()
    assert compare([good], [failed, good]).lines == ()


def test_other_ranks_are_a_baseline(tmp_path: Path) -> None:
    """The rank is that of the file's name."""
    for rank in range(3):
        lines = "step 1\n" + ("waiting for lock file\n" if rank == 2 else "")
        (tmp_path / f"rank_{rank}.log").write_text(lines)
    paths = [tmp_path / f"rank_{rank}.log" for rank in range(3)]
    (line,) = compare(paths[2:], paths[:2]).lines
    assert (line.text, line.line, line.ranks) == ("waiting for lock file", 2, (2,))


def test_lines_of_any_length_and_bars_drawn_again(tmp_path: Path) -> None:
    """A bar counts as it stood last, a line without end does not fill the memory."""
    (tmp_path / "good").write_bytes(b"10%|#    | 1/9\r20%|##   | 2/9\n")
    (tmp_path / "bad").write_bytes(b"90%|#### | 8/9\n" + b"x" * 3_000_000 + b"\nlast words")
    lines = compare([tmp_path / "bad"], [tmp_path / "good"]).lines
    assert [line.text[:10] for line in lines][-1] == "last words"
    assert all(len(line.text) <= 4096 for line in lines)
