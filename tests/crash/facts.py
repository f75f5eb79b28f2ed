"""What was acknowledged, and what is true of a state folder afterwards."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from app.api.auth import keys_path, read_keys
from app.inputs.contributions import read_feedback
from kb.bootstrap import INDEX, index_state, open_service
from kb.chat.chat import Chat
from kb.diagnose.learned import load_learned
from kb.errors import NotFoundError
from kb.saved import load_diagnosis
from kb.service import Service
from kb.settings import Settings
from kb.store.backup import BACKUPS, backups
from kb.store.database import DATABASE


class Fact(NamedTuple):
    """Something that holds: an entry is there, a conversation has so many turns."""

    kind: str
    key: str
    value: str


class Line(NamedTuple):
    """What a worker says: a step (open, begin, done, failed, refused), its name and its facts."""

    step: str
    name: str
    facts: tuple[Fact, ...]


class Found(NamedTuple):
    """What the check of a round found: wrong things, values of facts, seconds to open."""

    wrong: list[str]
    values: dict[str, str]
    opened_s: float


def check(home: Path, data: Path, facts: Iterable[Fact]) -> Found:
    """Open the state folder once and compare everything in it."""
    settings = Settings(home=home, data=data)
    started = time.perf_counter()
    service = open_service(settings)
    opened_s = time.perf_counter() - started
    try:
        wrong = [*_database(home), *_entries(service), *_index(settings, service), *_litter(home)]
        look = Look(settings, service)
        values = {f"{fact.kind} {fact.key}": look.value(fact) for fact in facts}
    finally:
        service.close()
    return Found(wrong, values, opened_s)


def _database(home: Path) -> list[str]:
    with contextlib.closing(sqlite3.connect(home / DATABASE)) as connection:
        rows = connection.execute("PRAGMA integrity_check").fetchall()
        rows += connection.execute("PRAGMA foreign_key_check").fetchall()
        sizes = connection.execute(
            "SELECT (SELECT count(*) FROM kept_sizes) - (SELECT count(*) FROM diagnoses)"
            " - (SELECT count(*) FROM conversations)"
        ).fetchone()[0]
    wrong = [f"database: {row}" for row in rows if row != ("ok",)]
    return wrong + ([f"kept_sizes has {sizes} rows too many"] if sizes else [])


def _entries(service: Service) -> list[str]:
    """Every entry is whole: with chunks, each of them its own."""
    return [
        f"half an entry: {entry.id}"
        for entry in service.store.iter_entries()
        if not entry.chunks or any(chunk.entry_id != entry.id for chunk in entry.chunks)
    ]


def _index(settings: Settings, service: Service) -> list[str]:
    """After one catch-up, which opening is, index and store agree."""
    state = index_state(settings, service.store)
    entries = service.store.count()
    if state is None or state.behind or state.outdated or state.entries != entries:
        return [f"index {state} does not follow a store of {entries} entries"]
    expected = len(("CURRENT", "IN_USE", "LOCK", "a generation"))
    wrong: list[str] = []
    for folder in (settings.home / INDEX).iterdir():  # one for each kind of program
        names = sorted(path.name for path in folder.iterdir())
        half = [name for name in names if name.endswith(".building")]  # the next builder removes it
        if len(names) - len(half) != expected or len(half) > 1:
            wrong.append(f"index folder {folder.name} holds {names}")
    return wrong


def _litter(home: Path) -> list[str]:
    """Half a backup is gone or goes with the next one; nothing else half lies about."""
    half = [path.name for path in (home / BACKUPS).glob("*.building")]
    return [f"half backups: {half}"] if len(half) > 1 else []


class Look:
    """Looks facts up; what is read whole is read once."""

    def __init__(self, settings: Settings, service: Service) -> None:
        """Look in `settings.home` through `service`."""
        self._settings = settings
        self._service = service
        self._chat = Chat(service)
        self._feedback = {item.id: item.feedback.verdict for item in read_feedback(service)}
        self._keys = {item.name for item in read_keys(keys_path(settings))}
        folder = settings.home / BACKUPS
        self._backups = {item.folder.name for item in backups(folder)}
        self._newest = max(self._backups, default="")
        self._imported = Counter(
            entry.url.split("/")[-3]
            for entry in service.store.iter_entries()
            if entry.url.startswith("https://github.com/acme/")
        )
        load_learned(settings.home, settings.data)  # raises where the file in use is damaged

    def value(self, fact: Fact) -> str:
        """What holds now in place of a fact."""
        return getattr(self, f"_{fact.kind}_of")(fact.key, fact.value)  # type: ignore[no-any-return]

    def _entry_of(self, key: str, word: str) -> str:
        try:
            entry = self._service.entry(key)
        except NotFoundError:
            return ""
        if not word:
            return "there"
        hits = self._service.search(f"{word} hangs", limit=3).hits
        found = entry.id in [hit.entry_id for hit in hits]
        return word if found and word in str(entry) else f"{word}, not found by search"

    def _file_of(self, key: str, _: str) -> str:
        return str(self._imported[key])

    def _outcome_of(self, key: str, _: str) -> str:
        try:
            causes = self._service.entry(key).causes
        except NotFoundError:
            return ""
        return causes[0].id if causes else ""

    def _feedback_of(self, key: str, _: str) -> str:
        return self._feedback.get(key, "")

    def _chat_of(self, key: str, value: str) -> str:
        try:
            turns = len(self._chat.conversation(key).turns)
        except NotFoundError:
            return ""
        return str(turns) if key else value

    def _kept_of(self, key: str, _: str) -> str:
        try:
            load_diagnosis(self._service, key.rpartition("/")[2])
        except NotFoundError:
            return ""
        return "there"

    def _backup_of(self, key: str, _: str) -> str:
        older = key < min(self._backups, default="")
        return "whole" if key in self._backups or (older and self._newest > key) else ""

    def _learned_of(self, key: str, _: str) -> str:
        return "whole" if (self._settings.home / "learned" / key).is_file() else ""

    def _key_of(self, key: str, _: str) -> str:
        return "there" if key in self._keys else ""


def merged(
    facts: Mapping[tuple[str, str], str], lines: Iterable[Line]
) -> tuple[dict[tuple[str, str], str], set[tuple[str, str]]]:
    """The facts after a worker's lines, and those that what it did not finish may have changed."""
    known, open_facts = dict(facts), set[tuple[str, str]]()
    unsure: set[tuple[str, str]] = set()
    for line in lines:
        touched = {(fact[0], fact[1]) for fact in line.facts}
        if line.step == "begin":
            open_facts = touched
        elif line.step == "done":
            known |= {(kind, key): value for kind, key, value in line.facts}
            open_facts = set()
        elif line.step == "failed":
            unsure |= open_facts
    return known, unsure | open_facts
