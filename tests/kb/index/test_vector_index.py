"""The registry of vector indexes: another kind is a file and a line, and everything works on it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from kb.errors import InputError
from kb.index.vector_index import VECTOR_INDEXES, vector_index
from kb.store import Store
from tests.kb.fakes import make_entry
from tests.kb.index.brute_force import BruteForceIndex
from tests.kb.index.following import assert_follows, entries, open_index, text


@pytest.fixture
def brute_force(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of another vector index, registered."""
    monkeypatch.setitem(VECTOR_INDEXES, "brute", "tests.kb.index.brute_force:BruteForceIndex")
    return "brute"


def test_another_vector_index_follows_the_store(store: Store, brute_force: str) -> None:
    """Built, changed, opened again and rebuilt it holds what the store holds."""
    index = open_index(store, vectors=brute_force)
    assert isinstance(index.snapshot().dense, BruteForceIndex)
    assert_follows(index, store)
    store.upsert([make_entry("e001", text(40)), *entries(20, 22)])  # type: ignore[list-item]
    store.delete(["e003"])
    assert index.catch_up()
    assert index.snapshot().dense.changes > 0
    assert_follows(index, store)
    assert_follows(open_index(store, vectors=brute_force), store)
    index.rebuild()
    assert index.snapshot().dense.changes == 0
    assert_follows(index, store)


def test_two_vector_indexes_share_a_home(store: Store, brute_force: str) -> None:
    """What one kind wrote the other does not read: each builds its own and keeps it."""
    first = open_index(store)
    assert_follows(open_index(store, vectors=brute_force), store)
    assert not open_index(store).catch_up()
    assert open_index(store).snapshot().folder == first.snapshot().folder


def test_an_unknown_name_is_refused() -> None:
    """The error lists the names there are."""
    with pytest.raises(InputError, match="no vector index 'annoy'") as refused:
        vector_index("annoy")
    assert refused.value.todo == "use faiss"


def test_only_its_own_file_knows_faiss(root: Path) -> None:
    """No other file of the product imports FAISS or asks for its class."""
    names = {
        path.relative_to(root).as_posix()
        for path in sorted((root / "kb").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if (isinstance(node, ast.Import) and any(one.name == "faiss" for one in node.names))
        or (isinstance(node, ast.ImportFrom) and node.module == "kb.index.faiss_index")
        or (isinstance(node, ast.Name) and node.id == "FaissIndex")
    }
    assert names == {"kb/index/faiss_index.py"}
