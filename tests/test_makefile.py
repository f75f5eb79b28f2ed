"""`make run` starts the product where the person asked for it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("variables", "options"),
    [
        pytest.param([], [], id="settings decide"),
        pytest.param(["PORT=9000"], ["--port", "9000"], id="port"),
        pytest.param(
            ["HOST=::1", "PORT=1", "WEB_PORT=2"],
            ["--host", "::1", "--port", "1", "--web-port", "2"],
            id="all",
        ),
    ],
)
def test_run_passes_on_what_it_is_given(
    root: Path, variables: list[str], options: list[str]
) -> None:
    """Without a variable of make the settings hold: TIMEOUT_KB_PORT, TIMEOUT_KB_WEB_PORT."""
    done = subprocess.run(
        ["make", "--dry-run", "run", *variables],
        cwd=root,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1].split() == [".venv/bin/timeout-kb", "up", *options]
