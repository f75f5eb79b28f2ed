"""The store keeps what it was given, all of it or nothing, and says what changed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kb.errors import InputError, NotFoundError, StoreError
from kb.knowledge.facets import FACETS, day_number, fold
from kb.store import Store
from kb.types.entries import CauseClaim, Entry, Filters, RankPlace, Section, Tags
from tests.kb.fakes import make_entry
from tests.stored import stored_rows

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def store(new_place: Callable[[], Path | str]) -> Iterator[Store]:
    """An empty store."""
    store = Store.open(new_place())
    yield store
    store.close()


# --- entries -------------------------------------------------------------------------------------


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    text=st.text(st.characters(codec="utf-8"), max_size=80),
    op=st.text(st.characters(codec="utf-8"), max_size=8),
)
def test_an_entry_comes_back_as_it_went_in(store: Store, text: str, op: str) -> None:
    """What `get` returns equals what `upsert` was given, whatever the characters.

    PostgreSQL keeps no NUL in a text.
    """
    if store.path is None:
        text = text.replace("\0", "\ufffd")
    section = Section(role="causes", title=text, text=text, language="zh")
    entry = make_entry("a", text, "b", sections=(section,), tags=Tags(ops=(op,)))
    store.upsert([entry])
    assert store.get("a") == entry
    assert list(store.iter_entries()) == [entry]


def test_what_a_team_adds_to_an_incident_comes_back(store: Store) -> None:
    """Ranks with their places, tags, who resolved it and what was merged into it are stored."""
    entry = make_entry(
        "a",
        "x",
        culprits=(RankPlace(rank=3, host="node7", gpu="GPU-1f"), RankPlace(rank=5)),
        labels=("pretrain",),
        resolved_on="2026-05-03T09:00:00Z",
        resolved_by="Ada",
        merged=("b",),
    )
    store.upsert([entry])
    assert store.get("a") == entry
    assert store.upsert([replace(entry, labels=("pretrain", "ib"))])["updated"] == 1


def test_an_incident_says_when_it_came(store: Store) -> None:
    """The first time it is stored counts, whatever changes later; other entries have none."""
    entry = make_entry("a", "x", kind="incident")
    store.upsert([entry, make_entry("b", "y")])
    added = store.get("a").added_on
    assert abs(datetime.fromisoformat(added) - datetime.now(UTC)) < timedelta(minutes=5)
    assert store.get("b").added_on == ""
    assert store.upsert([entry])["unchanged"] == 1
    assert store.upsert([replace(entry, labels=("x",), added_on="")])["updated"] == 1
    assert store.get("a").added_on == added
    long_ago = "2026-01-02T03:04:05Z"
    store.upsert([make_entry("c", "z", kind="incident", added_on=long_ago)])
    assert store.get("c").added_on == long_ago


def test_an_entry_of_an_older_home_is_read_and_counts_as_known(store: Store) -> None:
    """A body and a content digest without the fields that came later are those of the entry."""
    entry = make_entry("a", "x")
    store.upsert([entry])
    later = ("culprits", "labels", "resolved_on", "resolved_by", "merged", "added_on")
    later += ("reading_digests", "own_cause", "corrected_on", "corrected_by", "log_name")
    values = msgspec.to_builtins(replace(entry, source_key=""))
    known = {name: value for name, value in values.items() if name not in later}
    with store.database.write() as connection:
        connection.execute(
            "UPDATE entries SET body = ?, content = ?",
            (
                msgspec.json.encode(known | {"source_key": entry.source_key, "chunks": []}),
                hashlib.sha256(msgspec.json.encode(known)).digest(),
            ),
        )
    assert store.get("a") == entry
    assert store.upsert([entry]) == {"added": 0, "updated": 0, "unchanged": 1}


def test_counts_tell_new_changed_and_known(store: Store) -> None:
    """A second run over the same sources changes nothing; a changed source replaces its entry."""
    a, b = make_entry("a", "x"), make_entry("b", "y")
    assert store.upsert([a, b]) == {"added": 2, "updated": 0, "unchanged": 0}
    assert store.upsert([a, b]) == {"added": 0, "updated": 0, "unchanged": 2}
    assert store.last_seq() == 1
    changed = make_entry("b", "z")
    assert store.upsert([a, changed]) == {"added": 0, "updated": 1, "unchanged": 1}
    assert store.get("b").chunks[0].text == "z"


def test_a_changed_source_takes_its_old_entry_away(store: Store) -> None:
    """An imported page whose content hash, and so its id, changed leaves no entry behind."""
    store.upsert([make_entry("old", "x", source_key="page.html")])
    summary = store.upsert([make_entry("new", "y", source_key="page.html")])
    assert summary == {"added": 0, "updated": 1, "unchanged": 0}
    assert store.ids() == ["new"]
    assert stored_rows(store, "SELECT id FROM chunks") == [("new#0",)]


def test_known_content_under_another_source_is_not_added_twice(store: Store) -> None:
    """A copy of a file changes nothing."""
    entry = make_entry("a", "x")
    store.upsert([entry])
    assert store.upsert([replace(entry, source_key="copy")])["unchanged"] == 1
    assert store.get("a").source_key == entry.source_key


def test_a_source_whose_content_became_known_loses_its_own_entry(store: Store) -> None:
    """A page that now says what another page says is one entry with it."""
    store.upsert([make_entry("a", "x", source_key="1"), make_entry("b", "y", source_key="2")])
    assert store.upsert([make_entry("a", "x", source_key="2")])["updated"] == 1
    assert store.ids() == ["a"]


def test_a_batch_with_a_bad_entry_leaves_nothing(store: Store) -> None:
    """All entries of a call are written or none is."""
    bad = make_entry("bad", "lone \ud800 surrogate")
    with pytest.raises(InputError, match=r"'bad'.*ud800"):
        store.upsert([make_entry("good", "x"), bad])
    assert store.ids() == []
    assert store.last_seq() == 0


def test_deletion_takes_chunks_tags_and_vectors(store: Store) -> None:
    """Nothing of a deleted entry is left; unknown ids are passed over."""
    store.upsert([make_entry("a", "x", "y"), make_entry("b", "z")])
    store.vectors.put("m", [1, 2, 3], np.eye(3, dtype=np.float32))
    assert store.delete(["a", "nobody"]) == 1
    assert stored_rows(store, "SELECT id FROM chunks") == [("b#0",)]
    assert stored_rows(store, "SELECT DISTINCT entry FROM tags") == [(2,)]
    assert stored_rows(store, "SELECT chunk FROM vectors") == [(3,)]
    assert store.delete(["a"]) == 0


def test_a_missing_id_names_the_nearest(store: Store) -> None:
    """A misspelt id is answered with the right one."""
    store.upsert([make_entry("wenet-dataloader-contention", "x"), make_entry("open-clip", "y")])
    with pytest.raises(NotFoundError, match="did you mean wenet-dataloader-contention"):
        store.get("wenet-dataloder-contention")


def test_iteration_is_in_id_order_across_batches(store: Store) -> None:
    """Batches of any size give every entry once, in id order, with its own chunks."""
    entries = [make_entry(f"e{number:02}", f"text {number}") for number in range(11)]
    store.upsert(entries[::-1])
    for batch in (1, 4, 100):
        assert list(store.iter_entries(batch=batch)) == entries


def test_digests_are_by_source_key(store: Store) -> None:
    """What a re-run compares stands under the source's key."""
    store.upsert([make_entry("a", "x", source_key="k", digest="d")])
    assert store.digests() == {"k": "d"}


# --- filters and facets --------------------------------------------------------------------------

VARIED = [
    make_entry(
        f"e{number}",
        "text",
        kind=("case", "thread", "incident")[number % 3],
        language=("zh", "en", "both")[number // 2 % 3],
        status=("confirmed", "unverified")[number % 2],
        project=("Owner/A", "owner/b")[number % 2],
        date=("", "2023", "2024-02", "2024-02-10", "2024-12-31T10:00:00Z")[number % 5],
        causes=(
            CauseClaim(id=("rank-crash", "uneven-data")[number % 2], status="reported"),
            CauseClaim(id="shm-limits", status="contradicted" if number % 3 else "reported"),
        ),
        tags=Tags(
            frameworks=(("fsdp",), ("deepspeed", "fsdp"), ())[number % 3],
            backend=("nccl", "gloo", "")[number % 3],
            ops=(("ALLREDUCE",), ("_ALLGATHER_BASE", "allreduce"))[number % 2],
            stage=("train", "save")[number // 3 % 2],
            hardware=(("a100",), ("A100", "roce"), ())[number % 3],
        ),
    )
    for number in range(24)
]

FILTERS = st.builds(
    Filters,
    causes=st.sets(st.sampled_from(["rank-crash", "shm-limits", "none"])).map(tuple),
    frameworks=st.sets(st.sampled_from(["fsdp", "DeepSpeed"])).map(tuple),
    backends=st.sets(st.sampled_from(["NCCL", "gloo"])).map(tuple),
    ops=st.sets(st.sampled_from(["allreduce", "_ALLGATHER_BASE"])).map(tuple),
    stages=st.sets(st.sampled_from(["train", "save"])).map(tuple),
    languages=st.sets(st.sampled_from(["zh", "en"])).map(tuple),
    kinds=st.sets(st.sampled_from(["case", "thread"])).map(tuple),
    statuses=st.sets(st.sampled_from(["confirmed"])).map(tuple),
    projects=st.sets(st.sampled_from(["owner/a"])).map(tuple),
    hardware=st.sets(st.sampled_from(["a100", "RoCE"])).map(tuple),
    since=st.sampled_from(["", "2023-06", "2024", "2024-02-10"]),
    until=st.sampled_from(["", "2024-02", "2024-02-09", "2024"]),
    exclude_ids=st.sets(st.sampled_from(["e1", "e2", "nobody"])).map(tuple),
)


def passes(entry: Entry, filters: Filters) -> bool:
    """The filter's meaning, spelt out over one entry."""
    for facet in FACETS.values():
        wanted = {fold(facet.spelling(value)) for value in facet.requested(filters)}
        if wanted and not wanted & {fold(value) for value in facet.values(entry)}:
            return False
    if filters.since or filters.until:
        day = entry.date[:10]
        if not day or (filters.since and day_number(day) < day_number(filters.since)):
            return False
        if filters.until and day[: len(filters.until)] > filters.until:
            return False
    return entry.id not in filters.exclude_ids


@settings(max_examples=60, deadline=None)
@given(filters=FILTERS)
def test_ids_are_those_that_pass(varied_store: Store, filters: Filters) -> None:
    """SQL lets through what the definition of the filter lets through, and nothing else."""
    expected = sorted(entry.id for entry in VARIED if passes(entry, filters))
    assert varied_store.ids(filters) == expected
    assert [entry.id for entry in varied_store.iter_entries(filters)] == expected


@pytest.fixture(scope="module")
def varied_store(new_place: Callable[[], Path | str]) -> Iterator[Store]:
    """A store with entries of every kind."""
    store = Store.open(new_place())
    store.upsert(VARIED)
    yield store
    store.close()


@pytest.mark.parametrize("facet", sorted(FACETS))
def test_a_facet_count_is_what_filtering_by_it_leaves(varied_store: Store, facet: str) -> None:
    """Choosing a value leaves exactly as many entries as its count said."""
    field = {"status": "statuses", "op": "ops", "hardware": "hardware"}.get(facet, f"{facet}s")
    base = Filters(since="2023")
    counts = varied_store.facets(base)[facet]
    for value, count in counts.items():
        one: dict[str, Any] = {field: (value,)}
        assert len(varied_store.ids(replace(base, **one))) == count
    assert list(counts.values()) == sorted(counts.values(), reverse=True)


@pytest.mark.parametrize("date", ["yesterday", "24-01-01", "2024-1-1"])
def test_a_date_that_cannot_be_read_is_refused(varied_store: Store, date: str) -> None:
    """The message names the field, the value and the form wanted."""
    with pytest.raises(InputError, match=f"until='{date}' is not a date — write it as YYYY-MM-DD"):
        varied_store.ids(Filters(until=date))


# --- changes -------------------------------------------------------------------------------------


def test_a_number_is_never_used_twice(store: Store) -> None:
    """A chunk number that was deleted never means another chunk."""
    store.upsert([make_entry("a", "1", "2")])
    first = store.chunk_changes_since(0)
    store.delete(["a"])
    store.upsert([make_entry("a", "1", "2")])
    second = store.chunk_changes_since(first.last_seq)
    assert second.removed_chunks == first.chunks
    assert second.removed_entries == first.entries
    assert not set(second.chunks) & set(first.chunks)
    assert not set(second.entries) & set(first.entries)


# --- vectors -------------------------------------------------------------------------------------


def test_vectors_come_back_as_unit_rows_per_model(store: Store) -> None:
    """Each model has its own vectors; rounding moves no cosine by more than 0.001."""
    store.upsert([make_entry("a", "1", "2", "3")])
    made = np.random.default_rng(0).standard_normal((3, 64)).astype(np.float32)
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    store.vectors.put("m", [3, 1, 2], made)
    store.vectors.put("other", [1], np.ones((1, 4), dtype=np.float32))
    numbers, vectors = store.vectors.get("m", [3, 1, 2, 99], 64)
    assert numbers.tolist() == [1, 2, 3]
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(vectors @ made[0], made[[1, 2, 0]] @ made[0], atol=1e-3)
    assert store.vectors.missing("other") == [2, 3]
    assert store.vectors.missing("m") == []


def test_vectors_of_chunks_that_are_gone_are_passed_over(store: Store) -> None:
    """An entry deleted while its vectors were computed leaves none behind."""
    store.upsert([make_entry("a", "1")])
    assert store.vectors.put("m", [1, 2], np.eye(2, dtype=np.float32)) == 1
    assert store.vectors.get("m", [1, 2], 2)[0].tolist() == [1]


def test_wrong_shapes_are_refused(store: Store) -> None:
    """Rows must match the numbers, and the length what is asked for."""
    store.upsert([make_entry("a", "1")])
    with pytest.raises(InputError, match=r"2 chunks do not fit vectors of shape \(1, 4\)"):
        store.vectors.put("m", [1, 2], np.ones((1, 4), dtype=np.float32))
    store.vectors.put("m", [1], np.ones((1, 4), dtype=np.float32))
    with pytest.raises(StoreError, match="do not all have 8 numbers"):
        store.vectors.get("m", [1], 8)
