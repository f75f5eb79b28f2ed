"""What all tests share: the material folder, a state folder, the shipped data."""

from __future__ import annotations

from pathlib import Path

import pytest
from httpx._config import DEFAULT_TIMEOUT_CONFIG
from hypothesis import settings as hypothesis_settings

from kb.settings import Settings, shipped_data

# A busy machine is slow; nothing here is a timed test. httpx gives a request five seconds.
for wait in ("connect", "read", "write", "pool"):
    setattr(DEFAULT_TIMEOUT_CONFIG, wait, 60.0)
hypothesis_settings.register_profile("untimed", deadline=None)
hypothesis_settings.load_profile("untimed")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout's root."""
    return ROOT


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The shared material beside the checkout; the test is skipped where it is missing."""
    folder = ROOT.parent / "shared"
    if not (folder / "threads" / "threads.jsonl").is_file():
        pytest.skip("needs the shared material beside the checkout")
    return folder


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The shipped knowledge."""
    return shipped_data()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings with a state folder of the test's own."""
    return Settings(home=tmp_path / "home")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that open the whole service, so that `make mutation` can leave them out."""
    for item in items:
        if {"service", "real"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("service")
