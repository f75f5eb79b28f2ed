"""Settings by scope, and keys that are taken once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from kb.store import Store
from kb.store.preferences import Preferences

DAY_S = 86_400.0


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store.open(tmp_path / "kb.sqlite3")


def test_what_was_set_is_there_after_opening_again(store: Store) -> None:
    """The last value of a scope is on the disk; other scopes have nothing."""
    store.preferences.put("slack:T1:C1", b"first", now_s=1.0)
    store.preferences.put("slack:T1:C1", b"second", now_s=2.0)
    store.close()
    again = Store.open(store.path).preferences
    assert again.get("slack:T1:C1") == b"second"
    assert again.get("slack:T2:C1") is None


def test_a_key_is_taken_once_also_after_opening_again(store: Store) -> None:
    """The first caller gets it, a later process does not."""
    assert store.preferences.claim("event:1", now_s=100.0, keep_s=DAY_S)
    assert not store.preferences.claim("event:1", now_s=101.0, keep_s=DAY_S)
    store.close()
    again = Store.open(store.path).preferences
    assert not again.claim("event:1", now_s=102.0, keep_s=DAY_S)
    assert again.claim("event:2", now_s=102.0, keep_s=DAY_S)


def test_one_known_key_refuses_all(store: Store) -> None:
    """One message under two event ids is one message."""
    assert store.preferences.claim("event:1", "message:9", now_s=100.0, keep_s=DAY_S)
    assert not store.preferences.claim("event:2", "message:9", now_s=101.0, keep_s=DAY_S)


def test_keys_are_forgotten_in_time(store: Store) -> None:
    """A key counts for `keep_s` seconds, not longer."""
    assert store.preferences.claim("event:1", now_s=100.0, keep_s=DAY_S)
    assert not store.preferences.claim("event:1", now_s=100.0 + DAY_S, keep_s=DAY_S)
    assert store.preferences.claim("event:1", now_s=101.0 + DAY_S, keep_s=DAY_S)


def test_of_many_callers_one_gets_the_key(store: Store) -> None:
    """Threads and another process's connection race for the same keys: each has one winner."""
    other = Store.open(store.path)
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
