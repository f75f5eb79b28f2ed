"""The real service over the shipped data, opened once for this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kb.bootstrap import open_service
from kb.service import Service
from kb.settings import Settings

SMALL = 12  # cases


@pytest.fixture(scope="package")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A knowledge base of the shipped data alone."""
    service = open_service(Settings(home=tmp_path_factory.mktemp("home")))
    yield service
    service.close()


@pytest.fixture(scope="package")
def small(tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> Iterator[Service]:
    """The shipped data with `SMALL` of the cases: what is true of a few is seen faster."""
    data = tmp_path_factory.mktemp("data")
    for part in data_dir.iterdir():
        if part.name != "cases":
            (data / part.name).symlink_to(part)
    (data / "cases").mkdir()
    for case in sorted((data_dir / "cases").glob("*.md"))[:SMALL]:
        (data / "cases" / case.name).symlink_to(case)
    service = open_service(Settings(home=tmp_path_factory.mktemp("home"), data=data))
    yield service
    service.close()
