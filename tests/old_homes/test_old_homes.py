"""A state folder of any earlier version opens with all that is in it; a newer one's is refused."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.api.auth import keys_path, read_keys
from app.inputs.contributions import read_feedback, restore
from kb.bootstrap import open_service
from kb.chat.chat import Chat
from kb.diagnose.learned import decoded
from kb.errors import DataError, KBError, NotFoundError, StoreError
from kb.incidents.attempts import read_attempts
from kb.saved import load_diagnosis
from kb.service import Service
from kb.settings import Settings, shipped_data
from kb.store.database import DATABASE
from tests.fuzz.targets import small_data
from tests.old_homes.make import HOMES, STATEMENTS, from_text

DAY_S = 86_400.0
# Made before there were quotas, and before deleted entries could be brought back.
LATER = (
    "DROP TRIGGER diagnoses_gone",
    "DROP TRIGGER conversations_gone",
    "DROP TABLE kept_sizes",
    "DROP TABLE deleted_entries",
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped knowledge with a few of its cases."""
    data = tmp_path_factory.mktemp("old-homes") / "data"
    small_data(data, shipped_data())
    return data


def old_home(name: str, target: Path) -> Path:
    """The state folder as it was, but for what has expired since."""
    ignored = shutil.ignore_patterns(STATEMENTS, "expected.json")
    shutil.copytree(HOMES / name, target, ignore=ignored)
    from_text(HOMES / name / STATEMENTS, target / DATABASE)
    change(target, "UPDATE conversations SET expires = ?", time.time() + DAY_S)
    change(target, "UPDATE deleted_entries SET at = ?", time.time())
    return target


def change(home: Path, statement: str, *values: object) -> None:
    """Change a database by other hands than the product's."""
    with contextlib.closing(sqlite3.connect(home / DATABASE)) as connection:
        connection.execute(statement, values)
        connection.commit()


def expected_of(name: str) -> dict[str, Any]:
    """What the folder of that name holds."""
    loaded: dict[str, Any] = json.loads((HOMES / name / "expected.json").read_text())
    return loaded


@pytest.mark.parametrize("before_quotas", [False, True], ids=["as written", "before quotas"])
@pytest.mark.parametrize("name", sorted(path.name for path in HOMES.iterdir()))
def test_an_old_home_opens_with_all_that_is_in_it(
    name: str, before_quotas: bool, data: Path, tmp_path: Path
) -> None:
    """Entries, what was merged and deleted, answers, conversations, feedback, settings, keys."""
    home, holds = old_home(name, tmp_path / "home"), expected_of(name)
    for statement in LATER if before_quotas else ():
        change(home, statement)
    service = open_service(Settings(home=home, data=data, kept_days=0))
    try:
        check_entries(service, holds)
        check_answers(service, holds)
        if before_quotas:
            with pytest.raises(NotFoundError):
                restore(service, holds["deleted"])
        else:
            restore(service, holds["deleted"])
            assert service.search("bilgepump hangs").hits[0].entry_id == holds["deleted"]
    finally:
        service.close()
    check_files(home, holds)


def check_entries(service: Service, holds: dict[str, Any]) -> None:
    """Entries are there with their outcome, are found, and ids of merged ones lead on."""
    incident = service.entry(holds["incident"])
    assert incident.causes[0].id == "rank-crash"
    assert "a smaller batch" in str(incident.fixes)
    merged, target = holds["merged"]
    assert service.entry(merged).id == target
    hits = service.search("marlinspike hangs").hits
    assert hits[0].entry_id == holds["incident"]
    hits = service.search("quillfish on the switch").hits
    assert hits[0].entry_id == holds["writeup"]


def check_answers(service: Service, holds: dict[str, Any]) -> None:
    """What people were told and what they said."""
    kept, cause = holds["kept"]
    assert load_diagnosis(service, kept).en.causes[0].id == cause
    assert [item.id for item in read_feedback(service)] == [holds["feedback"]]
    chat = Chat(service)
    turns = len(chat.conversation(holds["conversation"]).turns)
    chat.say("What else?", conversation=holds["conversation"])
    assert len(chat.conversation(holds["conversation"]).turns) == turns + 1
    assert service.store.preferences.get("T1:C1") == b'{"lang":"zh"}'
    assert {size.kind: size.count for size in service.store.records.kept_sizes()} == {
        "diagnoses": 1,
        "conversations": 1,
    }


def check_files(home: Path, holds: dict[str, Any]) -> None:
    """Keys, attempts and learned weights beside the database."""
    (key,) = read_keys(keys_path(Settings(home=home)))
    assert key.digest == hashlib.sha256(holds["key"].encode()).hexdigest()
    assert (key.name, key.role) == ("ann", "write")
    assert [attempt.exit_code for attempt in read_attempts(home, "job-7")] == [1]
    (learned,) = (home / "learned").iterdir()
    assert decoded(learned.read_bytes(), name="").outcomes == 3


def newer_database(home: Path) -> None:
    """As a program with another shape of tables leaves it."""
    change(home, "PRAGMA user_version = 99")


def newer_file(name: str, field: str, value: object) -> Callable[[Path], None]:
    """As a program leaves it whose files of this kind are of another format."""

    def make(home: Path) -> None:
        path = home / name
        path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))

    return make


def newer_answer(home: Path) -> None:
    """As a program leaves it that keeps answers in another form."""
    change(home, "UPDATE diagnoses SET body = replace(body, '\"format\":2', '\"format\":99')")


@pytest.mark.parametrize(
    ("make", "read", "error", "sentence"),
    [
        pytest.param(
            newer_database,
            open_service,
            StoreError,
            "has schema version 99, this program has 1 — run the timeout-kb that made it",
            id="database",
        ),
        pytest.param(
            newer_file("keys.json", "format", 99),
            lambda settings: read_keys(keys_path(settings)),
            StoreError,
            "has format 99, this program reads 1",
            id="keys",
        ),
        pytest.param(
            newer_file("attempts/job-7.json", "schema", "timeout-kb/attempts/99"),
            lambda settings: read_attempts(settings.home, "job-7"),
            StoreError,
            "is timeout-kb/attempts/99, not timeout-kb/attempts/1",
            id="attempts",
        ),
        pytest.param(
            newer_file("learned/0001.json", "format", 99),
            lambda settings: decoded((settings.home / "learned/0001.json").read_bytes(), name="f"),
            DataError,
            "f has format 99, this program reads 1",
            id="learned weights",
        ),
    ],
)
def test_what_a_newer_program_wrote_is_refused(
    make: Callable[[Path], None],
    read: Callable[[Settings], object],
    error: type[KBError],
    sentence: str,
    data: Path,
    tmp_path: Path,
) -> None:
    """In a sentence that names both formats; nothing of it is changed."""
    home = old_home("store-1", tmp_path / "home")
    make(home)
    before = {path: path.read_bytes() for path in home.rglob("*.json")}
    rows = (home / DATABASE).read_bytes()
    with pytest.raises(error) as caught:
        read(Settings(home=home, data=data))
    assert sentence in str(caught.value)
    assert {path: path.read_bytes() for path in before} == before
    assert (home / DATABASE).read_bytes() == rows


def test_a_kept_answer_of_a_newer_program_is_refused(data: Path, tmp_path: Path) -> None:
    """All else in the folder is as usual."""
    home = old_home("store-1", tmp_path / "home")
    newer_answer(home)
    service = open_service(Settings(home=home, data=data, kept_days=0))
    try:
        with pytest.raises(NotFoundError, match="is of format 99, this program reads 2") as caught:
            load_diagnosis(service, expected_of("store-1")["kept"][0])
        assert caught.value.reason == "diagnosis_format"
    finally:
        service.close()
