"""What tests of the answer share: the real service over the shipped data."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kb.bootstrap import open_service
from kb.service import Service
from kb.settings import Settings


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The service over the shipped knowledge."""
    opened = open_service(Settings(home=tmp_path_factory.mktemp("home")))
    yield opened
    opened.close()
