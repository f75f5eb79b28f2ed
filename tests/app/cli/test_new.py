"""`timeout-kb new case`: a file to fill in, which `check-data` accepts once that is done."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from app.cli.common import State
from app.cli.main import run
from kb.settings import Settings

LOG = (
    "[rank3]:[E ProcessGroupNCCL.cpp:607] [Rank 3] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=14217, OpType=ALLREDUCE, NumelIn=1024, NumelOut=1024, Timeout(ms)=600000) ran "
    "for 600021 milliseconds before timing out.\n"
    "torch 2.4.0, deepspeed 0.15.1, token: hf_abcdefghijklmnopqrstuvwxyzABCDEFGH\n"
    "[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
)


@pytest.fixture(scope="module")
def verb(built_home: Callable[[], Path]) -> Callable[..., int]:
    """Runs a verb on one state folder."""
    state = State(settings_source=lambda: Settings(home=home))
    home = built_home()
    return lambda *words: run(list(words), state=state)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_what_is_known_is_filled_in_and_the_rest_is_told(
    verb: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    language: str,
) -> None:
    """A stranger's walk: a skeleton, what is missing, the words, and nothing wrong."""
    log = tmp_path / "job.log"
    log.write_text(LOG, encoding="utf-8")
    new = ("new", "case", str(log), "--url", "https://github.com/owner/toy/issues/7")
    assert verb(*new, "--lang", language, "--out", str(tmp_path)) == 0
    path = Path(capsys.readouterr().out.strip())
    text = path.read_text(encoding="utf-8")
    assert path.stem.startswith("toy-")
    assert 'project: "owner/toy"' in text
    assert '"torch": "2.4.0"' in text
    assert "hf_abc" not in text

    assert verb("check-data", str(path)) == 1
    missing = capsys.readouterr().out.splitlines()
    assert len(missing) == text.count("TODO") - 1  # the comment that speaks of it
    assert all(line.startswith(f"{path.name} line ") for line in missing)

    path.write_text(re.sub(r"(?m)TODO( .*)?$", "Somebody's words.", text), encoding="utf-8")
    assert verb("check-data", str(path)) == 0
    one_language, right = capsys.readouterr().out.splitlines()
    assert one_language.startswith(path.name)
    assert right

    assert verb(*new, "--lang", language, "--out", str(tmp_path)) == 2  # never overwritten
    assert str(path) in capsys.readouterr().err


def test_without_a_failure_everything_is_to_do(
    verb: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No source, no address: the template alone."""
    assert verb("new", "case", "--id", "My Case!", "--out", str(tmp_path)) == 0
    assert Path(capsys.readouterr().out.strip()).name == "my-case.md"
    assert verb("new", "case", "--url", "example.org/7", "--out", str(tmp_path)) == 2
    assert "begin it with https://" in capsys.readouterr().err
