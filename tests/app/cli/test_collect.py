"""`timeout-kb collect`, and what `timeout-kb diagnose` says of attempts and a good run's log."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from app.cli import main as cli
from app.cli.common import State
from kb.evidence.capture import read_capture
from kb.settings import Settings
from tests.app.face_inputs import CAPTURE
from tests.app.fakes import FakeService

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(
    real: FakeService,
    settings: Settings,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    """Runs one command line in an empty folder: exit code and all it said."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(real, "close", lambda: None)
    for name in ("SLURM_JOB_ID", "JOB_NAME", "JOB_ID"):
        monkeypatch.delenv(name, raising=False)

    def go(*words: str) -> tuple[int, str]:
        state = State(
            open_service=lambda *_args, **_options: real,  # type: ignore[arg-type,return-value]
            settings_source=lambda: settings,
        )
        code = cli.run(["--no-color", *words], state=state)
        captured = capfd.readouterr()
        return code, captured.out + captured.err

    return go


@pytest.fixture
def remote(tmp_path: Path) -> str:
    """A command line that reaches hosts n1 and n2 and answers with a capture."""
    (tmp_path / "capture").write_bytes(CAPTURE)
    path = tmp_path / "remote"
    path.write_text(f'#!/bin/sh\n[ "$1" = n9 ] && exit 255\ncat "{tmp_path}/capture"\n')
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["collect", "--hosts", "n1"], "go together", id="hosts without via"),
        pytest.param(["collect", "--via", "ssh"], "go together", id="via without hosts"),
        pytest.param(
            ["collect", "--hosts", "-oProxyCommand=x", "--via", "ssh"],
            "cannot be used",
            id="option",
        ),
        pytest.param(["collect", "--hosts", "a;b", "--via", "ssh"], "cannot be used", id="shell"),
        pytest.param(["collect", "--job", "$(id)"], "cannot be used", id="job"),
        pytest.param(
            ["collect", "--hosts", "a", "--via", "ssh", "--pid", "1"],
            "use --job",
            id="pid of where",
        ),
        pytest.param(["collect", "--pid", "99999999"], "no such process", id="no process"),
        pytest.param(["collect", "--job", "no-job-of-this-name"], "no such process", id="no job"),
        pytest.param(["diagnose", "--retry-verdict"], "needs --job", id="verdict of what"),
        pytest.param(
            ["diagnose", "x.log", "--baseline", "y", "--format", "json"], "text and", id="form"
        ),
    ],
)
def test_a_wrong_command_line_says_what_is_missing(run: Run, words: list[str], said: str) -> None:
    """Exit code 2, and nothing is run or written."""
    code, text = run(*words)
    assert code == 2
    assert said in text
    assert list(Path().iterdir()) == []


def test_a_process_is_collected_and_diagnosed(run: Run) -> None:
    """The archive lies here, its path and what is missing are told; nothing names a cause."""
    code, text = run("collect", "--pid", str(os.getpid()), "--lang", "en", "--job", "7")
    assert code == 0
    (archive,) = Path().iterdir()
    assert archive.name.startswith("timeout-kb-7-")
    assert f"  Archive: {archive}\n" in text
    assert len(text.splitlines()) <= 15
    assert "Cause:" not in text
    names = [file.name.partition("/")[2] for file in read_capture(archive.read_bytes())[0].files]
    assert "processes.txt" in names


def test_hosts_are_collected_into_one_archive(run: Run, remote: str) -> None:
    """Who stands where on all of them, the host that failed, and the diagnosis of it all."""
    words = ("collect", "--hosts", "n1,n9", "--via", remote, "-o", "all.tar.zst", "--lang", "en")
    code, text = run(*words)
    assert code == 0
    assert text.startswith("Captured 4 processes on 2 hosts in ")
    assert "rank 1 in" in text
    assert "<- differs from the others" in text
    assert "Not captured: host n9: exit code 255" in text
    manifest, _ = read_capture(Path("all.tar.zst").read_bytes())
    assert [host.name for host in manifest.hosts] == ["n1", "n9"]
    assert {file.name.partition("/")[0] for file in manifest.files} == {"n1"}
    assert (
        run("diagnose", "all.tar.zst")[0]
        == run("diagnose", str(Path(remote).parent / "capture"))[0]
    )


def test_a_third_attempt_without_a_gain_has_its_own_exit_code(run: Run, tmp_path: Path) -> None:
    """4 tells a requeue script to stop; without a log the attempts known so far are asked."""
    (tmp_path / "job.log").write_text("step 7 loss 1.0\nRuntimeError: shard 3 is broken\n")
    words = ("diagnose", str(tmp_path / "job.log"), "--job", "7", "--retry-verdict", "--lang", "en")
    assert [run(*words)[0] for _ in range(3)] == [0, 0, 4]
    code, text = run("diagnose", "--job", "7", "--retry-verdict", "--lang", "en")
    assert code == 4
    assert text == (
        "Attempt 3 of job 7, up to step 7 (before: 7)\n"
        "3 times in a row, same root (RuntimeError: shard # is broken), no step gained: "
        "a retry will not help\n"
    )
    assert run("diagnose", "--job", "8", "--retry-verdict")[0] == 0


def test_what_only_this_run_printed_is_shown(run: Run, tmp_path: Path) -> None:
    """Below the answer, with its line; a run like the good one has none."""
    (tmp_path / "good.log").write_text("step 1 loss 2.0\n")
    (tmp_path / "bad.log").write_text("step 1 loss 2.1\nqueue of loader 3 is empty\n")
    words = ("--baseline", str(tmp_path / "good.log"), "--lang", "en")
    text = run("diagnose", str(tmp_path / "bad.log"), *words)[1]
    assert "numbers aside; 1 kind)\n  line 2: queue of loader 3 is empty\n" in text
    text = run("diagnose", str(tmp_path / "good.log"), *words)[1]
    assert "This run printed no line that the baseline lacks" in text
