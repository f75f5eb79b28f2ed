"""Attempts of one job: when a retry will not help, and what is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.errors import StoreError
from kb.incidents.attempts import (
    Attempt,
    RetryVerdict,
    add_attempt,
    job_of,
    read_attempts,
    retry_verdict,
    start_of,
)


def attempts(*ends: tuple[str, int | None]) -> tuple[Attempt, ...]:
    """Attempts by their roots and last steps."""
    return tuple(Attempt(ended_at="2026-01-02", root=root, last_step=step) for root, step in ends)


@pytest.mark.parametrize(
    ("ends", "same", "gained", "hopeless"),
    [
        pytest.param((), 0, None, False, id="none"),
        pytest.param((("a", 100),), 1, None, False, id="first"),
        pytest.param((("a", 100), ("a", 100)), 2, 0, False, id="twice"),
        pytest.param((("a", 100), ("a", 100), ("a", 100)), 3, 0, True, id="third"),
        pytest.param((("a", 100), ("a", 90), ("a", 100)), 3, 0, True, id="fell back"),
        pytest.param((("a", 100), ("a", 100), ("a", 101)), 3, 1, False, id="one step gained"),
        pytest.param((("a", 100), ("a", 120), ("a", 110)), 3, 0, False, id="gained before"),
        pytest.param((("a", 9), ("b", 9), ("a", 9), ("a", 9)), 2, 0, False, id="another between"),
        pytest.param((("b", 50), ("a", 90), ("a", 90), ("a", 90)), 3, 0, True, id="after another"),
        pytest.param((("a", None), ("a", None), ("a", None)), 3, None, True, id="no step seen"),
        pytest.param((("", 1), ("", 1), ("", 1)), 0, 0, False, id="root unknown"),
        pytest.param((("a", 5), ("a", 5), ("a", 5), ("", None)), 0, None, False, id="ended well"),
    ],
)
def test_a_third_end_of_one_kind_without_a_gain_is_hopeless(
    ends: tuple[tuple[str, int | None], ...], same: int, gained: int | None, hopeless: bool
) -> None:
    """Only a root that is known counts, and only progress beyond all that came before."""
    assert retry_verdict(attempts(*ends)) == RetryVerdict(
        attempts=len(ends), same_root=same, gained=gained, hopeless=hopeless
    )


def test_attempts_are_kept_by_job_and_start(tmp_path: Path) -> None:
    """A second report of the same start replaces the first; jobs do not mix."""
    one, again = (Attempt(ended_at="1", start=0, root=root) for root in "ab")
    later = Attempt(ended_at="2", start=1, root="c")
    add_attempt(tmp_path, "7", one)
    add_attempt(tmp_path, "8", later)
    assert add_attempt(tmp_path, "7", again) == (again,)
    assert add_attempt(tmp_path, "7", later) == (again, later)
    assert read_attempts(tmp_path, "7") == (again, later)
    assert read_attempts(tmp_path, "../9") == ()
    assert read_attempts(tmp_path, "8") == (later,)


def test_attempts_without_a_start_are_counted(tmp_path: Path) -> None:
    """Who names the job by hand starts it anew each time."""
    attempt = Attempt(ended_at="1", root="a")
    for count in (1, 2, 3):
        assert len(add_attempt(tmp_path, "a/../b", attempt)) == count
    assert [path.parent.name for path in tmp_path.rglob("*.json")] == ["attempts"]


@pytest.mark.parametrize("content", ["{", '{"schema": "x/9", "job": "7", "attempts": []}'])
def test_a_file_of_another_version_is_refused(tmp_path: Path, content: str) -> None:
    """The message names the file."""
    add_attempt(tmp_path, "7", Attempt(ended_at="1"))
    (tmp_path / "attempts" / "7.json").write_text(content)
    with pytest.raises(StoreError, match=r"7\.json"):
        read_attempts(tmp_path, "7")


def test_the_environment_names_job_and_start() -> None:
    """Slurm's id first; torchrun's placeholder is no name."""
    assert job_of({"TORCHELASTIC_RUN_ID": "none", "JOB_NAME": "llama"}) == "llama"
    assert job_of({"SLURM_JOB_ID": "7", "JOB_NAME": "llama"}) == "7"
    assert job_of({}) == ""
    assert start_of({"SLURM_RESTART_COUNT": "2"}) == 2
    assert start_of({}) is None
