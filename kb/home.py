"""The state folder, whoever of the program comes first."""

from __future__ import annotations

from pathlib import Path


def make_home(home: Path) -> None:
    """Make the state folder, its owner's alone: others' logs lie in it.

    A folder made beforehand keeps its rights: a group may share one.

    Raises:
        OSError: it cannot be made.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
