"""The state folder is its owner's alone, whoever of the program makes it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.api.auth import add_key, keys_path
from app.cli.common import State
from kb.knowledge.load import load_knowledge
from kb.settings import Settings, shipped_data
from kb.store import Store


def _keys(settings: Settings) -> None:
    add_key(keys_path(settings), "one", "read")


def _store(settings: Settings) -> None:
    Store.open(settings.home / "kb.sqlite3").close()


def _failure(settings: Settings) -> None:
    told = State(settings_source=lambda: settings).unexpected_error_line(ValueError("odd"))
    assert str(settings.home / "logs") in told


def _watch(settings: Settings) -> None:
    load_knowledge(shipped_data(), cache=settings.home / "cache")


@pytest.fixture
def generous() -> Iterator[None]:
    """Others may read what this process makes, unless it says otherwise."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("generous")
@pytest.mark.parametrize("first", [_keys, _store, _failure, _watch])
def test_whoever_comes_first(first: Callable[[Settings], None], tmp_path: Path) -> None:
    """A key, the database, a failure, kept knowledge: the folder above them is closed to others."""
    settings = Settings(home=tmp_path / "new" / "home")
    first(settings)
    assert stat.S_IMODE(settings.home.stat().st_mode) == 0o700


@pytest.mark.usefixtures("generous")
@pytest.mark.parametrize("first", [_keys, _store, _failure, _watch])
def test_a_shared_folder_keeps_its_rights(
    first: Callable[[Settings], None], tmp_path: Path
) -> None:
    """What a group made for itself beforehand stays as it is."""
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    first(Settings(home=home))
    assert stat.S_IMODE(home.stat().st_mode) == 0o755
