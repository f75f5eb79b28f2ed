"""The arrays answer as the database does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.index.catalogue import Catalogue
from kb.store import Store
from kb.types.entries import NO_FILTERS, CauseClaim, Filters, Tags
from tests.kb.fakes import make_entry

OPS = ("ALLREDUCE", "allreduce", "BROADCAST")


def varied(count: int) -> list[object]:
    """Entries that differ in everything filters ask."""
    return [
        make_entry(
            f"e{n}",
            *["text"] * (n % 3),
            kind=("case", "thread")[n % 2],
            language=("zh", "en", "both")[n % 3],
            date=("", "2023", "2024-02-10")[n % 3],
            project=("a/A", "b/b", "")[n % 3],
            causes=(CauseClaim(id=f"c{n % 4}", status="reported"),),
            tags=Tags(ops=OPS[: n % 4], backend=("nccl", "gloo")[n // 2 % 2]),
        )
        for n in range(count)
    ]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store of such entries."""
    store = Store.open(tmp_path_factory.mktemp("catalogue") / "kb.sqlite3")
    store.upsert(varied(25))  # type: ignore[arg-type]
    return store


def whole(store: Store) -> Catalogue:
    """The catalogue of everything."""
    return Catalogue.of(store.catalogue_rows(store.chunk_changes_since(-1).entries))


FILTERS = st.builds(
    Filters,
    causes=st.sets(st.sampled_from(["c0", "c3", "none"])).map(tuple),
    kinds=st.sets(st.sampled_from(["case", "Thread"])).map(tuple),
    ops=st.sets(st.sampled_from(["Allreduce", "broadcast"])).map(tuple),
    languages=st.sets(st.sampled_from(["zh", "en"])).map(tuple),
    backends=st.sets(st.sampled_from(["NCCL"])).map(tuple),
    projects=st.sets(st.sampled_from(["A/a", "b/b"])).map(tuple),
    since=st.sampled_from(["", "2023", "2023-05"]),
    until=st.sampled_from(["", "2024-02", "2023"]),
    exclude_ids=st.sets(st.sampled_from(["e1", "e2"])).map(tuple),
)


@settings(max_examples=60, deadline=None)
@given(filters=FILTERS)
def test_filters_and_facets_are_the_databases(store: Store, filters: Filters) -> None:
    """The same entries pass, with the same counts, as SQL says."""
    catalogue = whole(store)
    mask = catalogue.passing(filters)
    ids = catalogue.ids if mask is None else catalogue.ids[mask]
    assert sorted(ids.tolist()) == store.ids(filters)
    assert catalogue.select(filters).facets == store.facets(filters)
    if mask is not None:
        chunks = [c.id for e in store.iter_entries(filters) for c in e.chunks]
        found = store.chunks(catalogue.chunks_of(mask).tolist())
        assert sorted(row.chunk_id for row in found) == sorted(chunks)


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_changes_equal_a_new_catalogue(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Applying what changed gives the arrays that building anew gives."""
    store = Store.open(tmp_path_factory.mktemp("changes") / "kb.sqlite3")
    pool = varied(12)
    store.upsert(pool[:6])  # type: ignore[arg-type]
    catalogue = whole(store)
    seq = store.last_seq()
    store.delete(f"e{n}" for n in data.draw(st.sets(st.integers(0, 5))))
    store.upsert([pool[n] for n in sorted(data.draw(st.sets(st.integers(0, 11))))])  # type: ignore[misc]
    changes = store.chunk_changes_since(seq)
    changed = catalogue.with_changes(
        np.array(changes.removed_entries, dtype=np.int64),
        Catalogue.of(store.catalogue_rows(changes.entries)),
    )
    assert_same(changed, whole(store))
    store.close()


def test_a_saved_catalogue_is_the_same(store: Store, tmp_path: Path) -> None:
    """Nothing is lost on disk."""
    catalogue = whole(store)
    catalogue.save(tmp_path)
    assert_same(Catalogue.load(tmp_path), catalogue)


def test_owners_of_unknown_chunks_are_none(store: Store) -> None:
    """A chunk number that is not there belongs to nobody."""
    catalogue = whole(store)
    known = int(catalogue.numbers[0])
    owners = catalogue.owners_of(np.array([known, 10**9, -1], dtype=np.int64))
    assert owners.tolist() == [int(catalogue.owners[0]), -1, -1]
    empty = Catalogue.of(store.catalogue_rows([]))
    assert empty.owners_of(np.array([1], dtype=np.int64)).tolist() == [-1]
    assert empty.select(NO_FILTERS).facets == {}


def assert_same(one: Catalogue, other: Catalogue) -> None:
    """Every array and every tag is equal."""
    assert one.tags == other.tags
    for name in ("ordinals", "ids", "days", "numbers", "owners", "tag_of", "tagged"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@given(filters=FILTERS)
@settings(max_examples=60, deadline=None)
def test_a_selection_is_what_passes(store: Store, filters: Filters) -> None:
    """Its chunks and counts are those of the entries that pass; asked again, it is the same one."""
    catalogue = whole(store)
    chosen = catalogue.select(filters)
    mask = catalogue.passing(filters)
    everything = mask is None or bool(mask.all())
    assert (chosen.chunks is None) == everything
    if mask is not None:
        chunks = catalogue.numbers if chosen.chunks is None else chosen.chunks
        assert chunks.tolist() == catalogue.chunks_of(mask).tolist()
    assert chosen.filters == (Filters() if everything else filters)
    assert catalogue.select(filters) is chosen
