"""The README says what is true: its commands exist, its settings are the settings."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from app.cli.main import cli
from kb.settings import PREFIX, Settings, load_settings

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    line.removeprefix("$ ")
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("$ ")
]
LOG = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    "[rank1]:[E ProcessGroupNCCL.cpp:563] [Rank 1] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=100, OpType=ALLREDUCE, NumelIn=1000, NumelOut=1000, Timeout(ms)=600000) "
    "ran for 600068 milliseconds before timing out.\n"
)
VERB_ROWS = re.findall(r"^\| `([a-z-]+)[^`]*` \| (.+) \|$", README, re.MULTILINE)


def subcommand(name: str) -> click.Command:
    """The command of that name."""
    command = cli.get_command(click.Context(cli), name)
    assert command is not None, name
    return command


def test_the_table_of_verbs_is_the_list_of_verbs() -> None:
    """Every verb stands in the README and every verb in the README exists and has help."""
    verbs = cli.list_commands(click.Context(cli))
    assert sorted(name for name, _ in VERB_ROWS) == sorted(verbs)
    assert [name for name in verbs if not subcommand(name).get_short_help_str()] == []


OWN = [c.rpartition("| ")[2] for c in COMMANDS if c.rpartition("| ")[2].startswith("timeout-kb ")]


@pytest.mark.parametrize("line", OWN, ids=lambda line: line[:40])
def test_commands_of_the_readme_parse(line: str) -> None:
    """Each timeout-kb line uses a verb and options that exist."""
    words = shlex.split(line.partition(" -- ")[0])  # what follows is another program's
    items = subcommand(words[1]).params
    known = {option for item in items for option in (*item.opts, *item.secondary_opts)}
    assert {word for word in words[2:] if word.startswith("--")} <= known


def test_make_targets_exist(root: Path) -> None:
    """The make lines of the README name targets of the Makefile."""
    targets = set(re.findall(r"^([a-z]+):", (root / "Makefile").read_text(), re.MULTILINE))
    named = {words[1] for c in COMMANDS if (words := c.split())[0] == "make"}
    assert named == {"run", "test"}
    assert named <= targets


def test_the_settings_table_is_the_settings() -> None:
    """Each setting stands in the table with its default, and nothing else does."""
    rows = dict(re.findall(r"^\| `(TIMEOUT_KB_\w+)` \| (.+?) \|", README, re.MULTILINE))
    fields = Settings.__dataclass_fields__
    assert set(rows) == {PREFIX + name.upper() for name in fields}
    for name, field in fields.items():
        if isinstance(field.default, str | int) and field.default != "":
            assert rows[PREFIX + name.upper()] == f"`{field.default}`"


def test_the_python_example_runs(tmp_path: Path) -> None:
    """The Python block of the README, as written, names a cause."""
    block = re.search(r"```python\n(.*?)```", README, re.DOTALL)
    assert block is not None
    (tmp_path / "train.log").write_text(LOG)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", block[1]],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={"TIMEOUT_KB_HOME": str(tmp_path / "home"), "PATH": ""},
    )
    cause, probability = done.stdout.split()
    assert cause == "rank-crash"
    assert 0.2 < float(probability) <= 1


def test_settings_load_from_the_environment_by_their_names() -> None:
    """A variable of the table changes the field of that name."""
    assert load_settings({"TIMEOUT_KB_PORT": "9000"}).port == 9000
