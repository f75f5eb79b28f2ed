"""How `timeout-kb ingest` shows what it does."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from app.cli.ingest import shown_progress
from kb.knowledge.labels import Words
from kb.types.knowledge import Bilingual

FAULT = """
import sys
from dataclasses import replace
from pathlib import Path
import ingest.formats
from app.cli.main import main

def fail(path, tools):
    raise RuntimeError("a bug")

ingest.formats.FORMATS["log"] = replace(ingest.formats.FORMATS["log"], read=fail)
main(["ingest", "--format", "json", sys.argv[1]])
"""


def test_a_fault_of_the_program_is_logged_beside_the_report(
    root: Path, tmp_path: Path, built_home: Callable[[], Path]
) -> None:
    """Standard output is the report alone; the log names the place, never what variables held."""
    path = tmp_path / "train.log"
    path.write_text("text of the log\n")
    done = subprocess.run(
        [sys.executable, "-c", FAULT, str(path)],
        cwd=root,
        env={**os.environ, "TIMEOUT_KB_HOME": str(built_home())},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    (refused,) = json.loads(done.stdout)["refused"]
    assert refused["values"] == {"why": "RuntimeError: a bug"}
    (logged,) = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert logged["event"] == "ingest_failed"
    assert "in fail" in logged["exception"]
    assert "tools = " not in done.stderr


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Yes."""
        return True


def test_plain_lines_where_there_is_no_terminal(labels: dict[str, Bilingual]) -> None:
    """A file or pipe gets one line at the start, one every hundred, one at the end."""
    stream = io.StringIO()
    with shown_progress(stream, Words(labels, "en")) as on_progress:
        for done in range(251):
            on_progress(done, 250, f"{done}.txt")
    first, *others = stream.getvalue().splitlines()
    assert "250" in first
    assert [[int(n) for n in re.findall("[0-9]+", line)] for line in others] == [
        [100, 250, 1], [200, 250, 1], [250, 250],
    ]  # fmt: skip
    assert [line.endswith("min left") for line in others] == [True, True, False]


def test_one_line_on_a_terminal(labels: dict[str, Bilingual]) -> None:
    """A terminal gets a line that counts in its place, and that is gone at the end."""
    stream = Terminal()
    with shown_progress(stream, Words(labels, "en")) as on_progress:
        for done, name in enumerate(("", "[bold]a.txt", "b.txt")):
            on_progress(done, 2, name)
    drawn = stream.getvalue().split("\r\x1b[2K")
    assert "2" in drawn[-2]
    assert drawn[-2].endswith("b.txt")
    assert (drawn[-1], "\n" in stream.getvalue()) == ("", False)
