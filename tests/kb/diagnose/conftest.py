"""What tests of the answer share: the real service over the shipped data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kb.bootstrap import open_service
from kb.service import Service
from kb.settings import Settings


@pytest.fixture(scope="package")
def service(built_home: Callable[[], Path]) -> Iterator[Service]:
    """The service over the shipped knowledge."""
    opened = open_service(Settings(home=built_home()))
    yield opened
    opened.close()
