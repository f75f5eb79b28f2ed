"""What all tests share: the material folder, a state folder, the shipped data."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from httpx._config import DEFAULT_TIMEOUT_CONFIG
from hypothesis import settings as hypothesis_settings

from kb.bootstrap import open_service
from kb.settings import Settings, shipped_data
from kb.store import Store
from tests.postgres import PostgresServer, postgres_server

# A busy machine is slow; nothing here is a timed test. httpx gives a request five seconds.
for wait in ("connect", "read", "write", "pool"):
    setattr(DEFAULT_TIMEOUT_CONFIG, wait, 60.0)
hypothesis_settings.register_profile("untimed", deadline=None)
hypothesis_settings.load_profile("untimed")

ROOT = Path(__file__).resolve().parent.parent
LONGEST_FIRST = (
    "kb/evaluation/test_floors.py",
    "app/cli/test_learn.py",
    "kb/evaluation/test_search_quality.py",
    "browser/test_reach.py",
    "app/cli/test_up.py",
    "ingest/test_crash.py",
    "fuzz/test_expressions.py",
    "app/test_doctor.py",
    "browser/test_second_reading.py",
    "browser/test_lookup.py",
    "app/cli/test_serve.py",
    "test_wheel.py",
    "browser/test_diagnose.py",
    "quality/invariance/test_invariance.py",
    "app/cli/test_check_data.py",
    "app/test_shared_store.py",
    "kb/chat/test_store.py",
    "app/test_second_reader.py",
    "app/cli/test_serve_workers.py",
    "kb/knowledge/test_check.py",
)


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


@pytest.fixture(scope="session")
def built_home(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Callable[[], Path]:
    """Makes state folders whose knowledge base is built: one worker builds it, all copy it."""
    own = tmp_path_factory.getbasetemp()
    origin = (own if worker_id == "master" else own.parent) / "built"

    def make() -> Path:
        with (origin.parent / "built.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not origin.exists():
                aside = tmp_path_factory.mktemp("building") / "home"
                service = open_service(Settings(home=aside))
                service.read_text("NCCL timeout")  # compiles the patterns; the result is kept
                service.close()
                aside.rename(origin)
        return Path(shutil.copytree(origin, tmp_path_factory.mktemp("home") / "home"))

    return make


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server; the test is skipped where none is installed."""
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session", params=["sqlite", "postgres"])
def new_place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], Path | str]:
    """Gives places for stores, a new one with each call: the test runs on both databases."""
    if request.param == "sqlite":
        return lambda: tmp_path_factory.mktemp("store") / "kb.sqlite3"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.address


@pytest.fixture(scope="session", autouse=True)
def _stores_on_postgres(request: pytest.FixtureRequest) -> Iterator[None]:
    """With TEST_STORE=postgres every store of a path lies on a server, in a schema of its own."""
    if os.environ.get("TEST_STORE") != "postgres":
        yield
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    on_file = Store.open
    addresses: dict[str, str] = {}

    def on_server(place: Path | str) -> Store:
        if isinstance(place, str):
            return on_file(place)
        if str(place) not in addresses or not place.exists():
            addresses[str(place)] = server.address()
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()  # who deletes it begins anew
        store = on_file(addresses[str(place)])
        store.path = place  # tests put folders beside it
        return store

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Store, "open", on_server)
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take minutes go first: begun last, one alone would keep the others waiting.

    Tests that open the whole service are marked, so that `make mutation` can leave them out.
    """
    place = {ROOT / "tests" / name: number for number, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: place.get(item.path, len(place)))
    for item in items:
        if {"service", "real"} & set(getattr(item, "fixturenames", ())):
            item.add_marker("service")
