"""`timeout-kb incident`: from a log to an outcome that others find, and out again."""

from __future__ import annotations

import getpass
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from app.cli import main as cli
from app.cli.common import EXIT_FAILURE, State
from kb.settings import Settings

LOG = """\
[rank{rank}]: OSError: [Errno 28] No space left on device: '/scratch/ckpt-{rank}'
[rank0]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum={rank}, OpType=ALLREDUCE, \
NumelIn=7340032, NumelOut=7340032, Timeout(ms)=600000) ran for 600068 milliseconds.
"""


def test_an_incident_from_the_command_line(
    built_home: Callable[[], Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Added, listed as open, resolved by the system's user, edited, merged and exported."""
    settings = Settings(home=built_home())

    def run(*words: str) -> str:
        assert cli.run(["incident", *words], state=State(settings_source=lambda: settings)) == 0
        return capsys.readouterr().out

    ids = []
    for rank in (1, 2):
        path = tmp_path / f"job-{rank}.log"
        path.write_text(LOG.format(rank=rank))
        ids.append(run("add", str(path)).strip())
    one, other = ids
    listed = run("list", "--lang", "en").splitlines()
    assert sorted(line.split()[0] for line in listed) == sorted(ids)
    assert all("Rank" in line and "job-" not in line for line in listed)
    run("resolve", one, "--own-cause", "a riser was loose", "--fix", "seated it")
    assert "a riser was loose" in run("list")
    run("resolve", one, "--cause", "checkpoint-io", "--fix", "cleared the disk", "--command", "df")
    assert run("list", "--open").split()[0] == other
    run("edit", one, "--title", "full disk", "--label", "disk", "--label", "node7")
    run("merge", one, other)
    assert len(run("list").splitlines()) == 1
    (entry,) = json.loads(run("export", "--format", "json"))
    assert (entry["id"], entry["merged"], entry["labels"]) == (one, [other], ["disk", "node7"])
    assert (entry["resolved_by"], entry["title"]["zh"]) == (getpass.getuser(), "full disk")
    by_old_id = run("export", other, "--lang", "zh")
    assert by_old_id.startswith("## full disk\n")
    assert "cleared the disk" in by_old_id
    assert run("export", one, "--lang", "zh") == by_old_id
    run("delete", one)
    assert run("list") == ""
    run("restore", one)
    assert run("export", other, "--lang", "zh") == by_old_id
    run("delete", one)
    run("delete", one, "--for-good")
    assert cli.run(["incident", "restore", one], state=State(settings_source=lambda: settings)) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("edit", "incident-0", "--cause", "rank-crash"), "no entry 'incident-0'"),
        (("merge", "gloo-ifname-exclusion-list", "x"), "is a reviewed case"),
    ],
    ids=["nobody", "case"],
)
def test_what_cannot_be_done_is_told(
    built_home: Callable[[], Path],
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    said: str,
) -> None:
    """With what is wrong and a failing exit code."""
    settings = Settings(home=built_home(), lang="en")
    code = cli.run(["incident", *words], state=State(settings_source=lambda: settings))
    assert code in (EXIT_FAILURE, 2)
    assert said in capsys.readouterr().err
