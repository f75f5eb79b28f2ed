"""Checkers of other projects, used where they are installed: the extras `dev` and `deploy`."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest


def checker(name: str) -> str:
    """The program `name` of this environment or of the search path; the test is skipped without."""
    places = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    program = shutil.which(name, path=places)
    if program is None:
        pytest.skip(f"{name} is not installed")
    return program
