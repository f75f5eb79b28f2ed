"""Diagnoses, feedback and conversations, settings by scope, and keys that are taken once."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from kb.errors import NotFoundError
from kb.store import FeedbackRow, Store, quota
from kb.store.quota import OWNER
from kb.store.records import Preferences
from tests.stored import stored_rows

DAY_S = 86_400.0


@pytest.fixture
def place(new_place: Callable[[], Path | str]) -> Path | str:
    """Where the test's store is."""
    return new_place()


@pytest.fixture
def store(place: Path | str) -> Iterator[Store]:
    """An empty store."""
    store = Store.open(place)
    yield store
    store.close()


def test_diagnoses_are_kept_by_id(store: Store) -> None:
    """One with the same id is replaced, older ones are forgotten, an unknown id is an error."""
    for diagnosis_id, created in (("b", 1.0), ("a", 1.0), ("c", 2.0)):
        store.records.put_diagnosis(diagnosis_id, diagnosis_id.encode(), created_s=created)
    store.records.put_diagnosis("a", b"new", created_s=3.0, forget_before_s=2.0)
    diagnosis = store.records.get_diagnosis("a")
    assert (diagnosis.body, diagnosis.created_s) == (b"new", 3.0)
    assert stored_rows(store, "SELECT id FROM diagnoses ORDER BY id") == [("a",), ("c",)]
    with pytest.raises(NotFoundError, match="no diagnosis 'b'"):
        store.records.get_diagnosis("b")
    assert store.records.delete_diagnosis("c")
    assert not store.records.delete_diagnosis("c")


def kept(store: Store) -> list[str]:
    """The ids of what is kept, diagnoses first."""
    diagnoses = stored_rows(store, "SELECT id FROM diagnoses ORDER BY id")
    conversations = stored_rows(store, "SELECT id FROM conversations ORDER BY id")
    return [identifier for (identifier,) in [*diagnoses, *conversations]]


@pytest.fixture
def quotas(monkeypatch: pytest.MonkeyPatch) -> None:
    """100 bytes a key, 250 in all."""
    monkeypatch.setattr(quota, "OWNER_BYTES", 100)
    monkeypatch.setattr(quota, "ALL_BYTES", 250)


@pytest.mark.usefixtures("quotas")
def test_a_key_keeps_no_more_than_its_share(store: Store) -> None:
    """Beyond it the oldest of that key go, of either kind; those of others stay."""
    records = store.records
    records.put_diagnosis("no-key", b"x" * 90, created_s=0.5)
    used = OWNER.set("ann")
    try:
        records.put_diagnosis("ann-1", b"x" * 40, created_s=1.0)
        records.put_conversation("ann-2", b"x" * 40, now_s=2.0)
        records.put_diagnosis("ann-3", b"x" * 40, created_s=3.0)
        assert kept(store) == ["ann-3", "no-key", "ann-2"]
        records.put_conversation("ann-2", b"x" * 70, now_s=4.0)
        assert kept(store) == ["no-key", "ann-2"]
        records.put_diagnosis("ann-4", b"x" * 500, created_s=5.0)
        assert kept(store) == ["ann-4"]  # what is new stays, however large
    finally:
        OWNER.reset(used)


@pytest.mark.usefixtures("quotas")
def test_all_together_keep_no_more_than_the_whole(store: Store) -> None:
    """Beyond it the oldest of all go; what was deleted otherwise counts no longer."""
    for number in range(6):
        store.records.put_diagnosis(f"d{number}", b"x" * 50, created_s=float(number))
    assert kept(store) == ["d1", "d2", "d3", "d4", "d5"]
    assert [(size.kind, size.count, size.bytes) for size in store.records.kept_sizes()] == [
        ("diagnoses", 5, 250)
    ]
    store.records.delete_diagnosis("d5")
    store.records.put_conversation("c", b"x" * 50, now_s=9.0, expires_s=10.0)
    assert kept(store) == ["d1", "d2", "d3", "d4", "c"]
    store.records.delete_expired(now_s=11.0)
    store.records.put_diagnosis("d6", b"x" * 50, created_s=12.0, forget_before_s=3.5)
    assert [(size.kind, size.bytes) for size in store.records.kept_sizes()] == [("diagnoses", 100)]


def test_what_was_kept_before_there_were_quotas_counts(tmp_path: Path) -> None:
    """A file of an earlier program is taken over, with the sizes of what it holds."""
    store = Store.open(tmp_path / "kb.sqlite3")
    store.records.put_diagnosis("a", b"x" * 30, created_s=1.0)
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("DROP TABLE kept_sizes")
    store.close()
    sizes = Store.open(tmp_path / "kb.sqlite3").records.kept_sizes()
    assert [(size.kind, size.count, size.bytes) for size in sizes] == [("diagnoses", 1, 30)]


def test_feedback_comes_back_newest_first(store: Store) -> None:
    """Every field, word for word; ties by id."""
    rows = [
        FeedbackRow(
            id=f"f{number}",
            diagnosis_id=f"d{number % 2}",
            entry_id="e",
            verdict="wrong",
            cause="rank-crash",
            comment="第 3 个 rank",
            created_s=float(number),
            source="api",
            answered="store-unreachable",
        )
        for number in range(4)
    ]
    for feedback in rows:
        store.records.put_feedback(feedback)
    assert store.records.list_feedback() == rows[::-1]


def test_feedback_is_taken_back_by_its_id(store: Store) -> None:
    """One is read and deleted by its id; the others stay."""
    row = FeedbackRow(
        id="f1",
        diagnosis_id="d",
        entry_id="",
        verdict="right",
        cause="",
        comment="",
        created_s=1.0,
        source="api",
    )
    for feedback in (row, replace(row, id="f2")):
        store.records.put_feedback(feedback)
    assert store.records.get_feedback("f1") == row
    assert (store.records.delete_feedback("f1"), store.records.delete_feedback("f1")) == (
        True,
        False,
    )
    assert store.records.get_feedback("f1") is None
    assert [feedback.id for feedback in store.records.list_feedback()] == ["f2"]


def test_conversations_expire(store: Store) -> None:
    """An expired conversation is gone for readers before it is deleted."""
    store.records.put_conversation("a", b"1", now_s=10, expires_s=20)
    store.records.put_conversation("a", b"2", now_s=15, expires_s=30)
    store.records.put_conversation("b", b"3", now_s=16)
    conversation = store.records.get_conversation("a", now_s=29)
    assert (conversation.created_s, conversation.updated_s, conversation.body) == (10, 15, b"2")
    assert store.records.get_conversation("b", now_s=29).expires_s is None
    with pytest.raises(NotFoundError):
        store.records.get_conversation("a", now_s=30)
    assert store.records.delete_expired(now_s=30) == 1
    assert store.records.delete_conversation("b")
    assert not store.records.delete_conversation("b")


def test_what_was_set_is_there_after_opening_again(store: Store, place: Path | str) -> None:
    """The last value of a scope is on the disk; other scopes have nothing."""
    store.preferences.put("slack:T1:C1", b"first", now_s=1.0)
    store.preferences.put("slack:T1:C1", b"second", now_s=2.0)
    store.close()
    again = Store.open(place)
    assert again.preferences.get("slack:T1:C1") == b"second"
    assert again.preferences.get("slack:T2:C1") is None
    again.close()


def test_a_key_is_taken_once_also_after_opening_again(store: Store, place: Path | str) -> None:
    """The first caller gets it, a later process does not."""
    assert store.preferences.claim("event:1", now_s=100.0, keep_s=DAY_S)
    assert not store.preferences.claim("event:1", now_s=101.0, keep_s=DAY_S)
    store.close()
    again = Store.open(place)
    assert not again.preferences.claim("event:1", now_s=102.0, keep_s=DAY_S)
    assert again.preferences.claim("event:2", now_s=102.0, keep_s=DAY_S)
    again.close()


def test_one_known_key_refuses_all(store: Store) -> None:
    """One message under two event ids is one message."""
    assert store.preferences.claim("event:1", "message:9", now_s=100.0, keep_s=DAY_S)
    assert not store.preferences.claim("event:2", "message:9", now_s=101.0, keep_s=DAY_S)


def test_keys_are_forgotten_in_time(store: Store) -> None:
    """A key counts for `keep_s` seconds, not longer."""
    assert store.preferences.claim("event:1", now_s=100.0, keep_s=DAY_S)
    assert not store.preferences.claim("event:1", now_s=100.0 + DAY_S, keep_s=DAY_S)
    assert store.preferences.claim("event:1", now_s=101.0 + DAY_S, keep_s=DAY_S)


def test_of_many_callers_one_gets_the_key(store: Store, place: Path | str) -> None:
    """Threads and another process's connection race for the same keys: each has one winner."""
    other = Store.open(place)
    winners: list[int] = []

    def race(preferences: Preferences) -> None:
        winners.extend(
            number
            for number in range(20)
            if preferences.claim(f"event:{number}", now_s=100.0, keep_s=DAY_S)
        )

    threads = [threading.Thread(target=race, args=(one.preferences,)) for one in (store, other) * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    other.close()
    assert sorted(winners) == list(range(20))
