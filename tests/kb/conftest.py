"""A reader and services over the shipped data, shared by the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kb.bootstrap import open_service
from kb.knowledge.load import Knowledge, load_knowledge
from kb.logs import LogReader
from kb.logs.event_log import EventVocabulary
from kb.service import Service
from kb.settings import Settings, shipped_data
from kb.types.knowledge import Pattern
from tests.shipped_part import shipped_cases, shipped_part

SMALL = 12  # cases


@pytest.fixture(scope="session")
def knowledge() -> Knowledge:
    """The shipped knowledge."""
    return load_knowledge(shipped_data())


@pytest.fixture(scope="session")
def vocabulary(knowledge: Knowledge) -> EventVocabulary:
    """The shipped patterns and kinds of events."""
    return EventVocabulary.of(knowledge)


@pytest.fixture(scope="session")
def patterns(knowledge: Knowledge) -> tuple[Pattern, ...]:
    """The shipped patterns."""
    return knowledge.patterns


@pytest.fixture(scope="session")
def reader(vocabulary: EventVocabulary, tmp_path_factory: pytest.TempPathFactory) -> LogReader:
    """A reader with a cache of its own."""
    cache: Path = tmp_path_factory.mktemp("scan")
    return LogReader(vocabulary, cache=cache)


@pytest.fixture(scope="session")
def shipped(built_home: Callable[[], Path]) -> Iterator[Service]:
    """A knowledge base of the shipped data alone."""
    service = open_service(Settings(home=built_home()))
    yield service
    service.close()


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> Iterator[Service]:
    """The shipped data with `SMALL` of the cases: what is true of a few is seen faster."""
    cases = shipped_cases(data_dir)[:SMALL]
    data = shipped_part(tmp_path_factory.mktemp("data"), data_dir, cases)
    service = open_service(Settings(home=tmp_path_factory.mktemp("home"), data=data))
    yield service
    service.close()
