"""The index follows the store: after a change, a crash, a rebuild, beside running searches."""

from __future__ import annotations

import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.errors import SearchIndexError
from kb.index import live, snapshot
from kb.index.base import Term
from kb.index.live import CURRENT
from kb.index.sources import fingerprint
from kb.store import Store
from tests.kb.fakes import SplitTokenizer, WordEmbedder, make_entry
from tests.kb.index.following import ROOT, assert_follows, entries, new_index, open_index, text


class ShoutingTokenizer(SplitTokenizer):
    """Cuts as the other one does, into capitals."""

    def tokens(self, text: str) -> list[str]:
        """Tokens in order of the text."""
        return [token.upper() for token in super().tokens(text)]


def test_a_new_index_holds_the_store(store: Store) -> None:
    """Opening where there is no index builds one of everything."""
    assert_follows(open_index(store), store)


def test_an_empty_store_has_an_empty_index(tmp_path: Path) -> None:
    """Nothing stored is nothing found; the first entry then appears."""
    store = Store.open(tmp_path / "kb.sqlite3")
    index = open_index(store)
    assert_follows(index, store)
    store.upsert(entries(0, 1))  # type: ignore[arg-type]
    assert index.catch_up()
    assert_follows(index, store)


def test_opening_again_reads_and_builds_nothing(store: Store) -> None:
    """A second start embeds no text and writes no generation."""
    folder = open_index(store).snapshot().folder
    embedder = WordEmbedder()
    index = open_index(store, embedder=embedder)
    assert index.snapshot().folder == folder
    assert embedder.encoded == 0
    assert not index.catch_up()


@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_any_changes_are_followed(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """After any mix of additions, changes and deletions the index equals one built anew."""
    store = Store.open(tmp_path_factory.mktemp("any") / "kb.sqlite3")
    store.upsert(entries(0, 6))  # type: ignore[arg-type]
    index = open_index(store)
    for step in range(data.draw(st.integers(1, 3))):
        for _ in range(data.draw(st.integers(1, 2))):
            numbers = data.draw(st.lists(st.integers(0, 9), max_size=4, unique=True))
            if data.draw(st.booleans()):
                store.delete(f"e{n:03}" for n in numbers)
            else:
                store.upsert([make_entry(f"e{n:03}", text(n + step + 1), "w3") for n in numbers])
        index.catch_up()
        assert_follows(index, store)
    assert_follows(open_index(store), store)
    store.close()


def test_a_small_change_costs_a_small_change(store: Store) -> None:
    """One more entry embeds its two chunks and shares the large file with the last generation."""
    embedder = WordEmbedder()
    index = open_index(store, embedder=embedder)
    before, embedded = index.snapshot(), embedder.encoded
    inode = (before.folder / before.manifest.base).stat().st_ino
    store.upsert(entries(20, 21))  # type: ignore[arg-type]
    index.catch_up()
    after = index.snapshot()
    assert embedder.encoded - embedded == 2
    assert (after.folder / after.manifest.base).stat().st_ino == inode
    assert_follows(index, store)


def test_a_reader_keeps_what_it_began_with(store: Store) -> None:
    """A search in flight sees the state it started on, though its folder is gone."""
    index = open_index(store)
    before = index.snapshot()
    query = WordEmbedder().encode_queries(["alpha"])[0]
    dense, words = before.dense.search(query, 50), before.lexical.search([Term(word="alpha")], 50)
    store.delete(["e000", "e001"])
    index.catch_up()
    assert not before.folder.exists()
    np.testing.assert_array_equal(before.dense.search(query, 50)[1], dense[1])
    np.testing.assert_array_equal(before.lexical.search([Term(word="alpha")], 50)[1], words[1])


def test_another_process_sees_what_was_published(store: Store) -> None:
    """An index opened elsewhere adopts the newest generation at its next search."""
    mine, other = open_index(store), open_index(store)
    store.upsert(entries(20, 22))  # type: ignore[arg-type]
    other.catch_up()
    assert_follows(mine, store)


def test_many_changes_make_a_new_base(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """When changes outgrow their limit the next generation is built from the store."""
    monkeypatch.setattr(live, "CHANGES_LIMIT", 3)
    index = open_index(store)
    base = index.snapshot().manifest.base
    store.upsert(entries(20, 21))  # type: ignore[arg-type]
    index.catch_up()
    assert index.snapshot().manifest.base == base
    store.upsert(entries(21, 23))  # type: ignore[arg-type]
    index.catch_up()
    assert index.snapshot().manifest.base != base
    assert_follows(index, store)


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"embedder": WordEmbedder(name="words@2")},
        {"embedder": WordEmbedder(name="short@1", dimension=16)},
        {"tokenizer": ShoutingTokenizer()},
        {"tokens": fingerprint(SplitTokenizer(), ROOT / "data" / "lexicon")},
    ],
    ids=["model", "dimension", "tokenizer", "lexicon"],
)
def test_programs_that_build_differently_share_a_home(
    store: Store, options: dict[str, object]
) -> None:
    """Each has an index of its own; neither's additions make the other stale or fail."""
    old = open_index(store)
    new = new_index(store, **options)
    assert new.has_others()
    assert new.catch_up()
    for number, (writer, reader) in enumerate(((new, old), (old, new), (new, old))):
        store.upsert(entries(20 + number, 21 + number))  # type: ignore[arg-type]
        assert writer.catch_up()
        assert reader.behind() == 1
        follower = reader.follow()
        assert follower is not None
        follower.join()
        assert (reader.behind(), reader.failure) == (0, "")
        assert reader.snapshot().manifest.chunks == writer.snapshot().manifest.chunks
    assert_follows(old, store)
    assert not new.has_others()


def test_a_search_starts_to_follow_what_others_added(store: Store) -> None:
    """The state in use answers at once, and the index is brought up beside it."""
    index = open_index(store)
    store.upsert(entries(20, 21))  # type: ignore[arg-type]
    before = index.snapshot().manifest.chunks
    for thread in threading.enumerate():
        if thread.name == "index-follower":
            thread.join()
    assert (before, index.snapshot().manifest.chunks) == (40, 42)


def test_an_index_that_cannot_follow_says_why_and_waits(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk is not asked again at each search; once there is room it goes on."""
    index = open_index(store)
    store.upsert(entries(20, 21))  # type: ignore[arg-type]

    def refuse(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(live, "publish_folder", refuse)
        with pytest.raises(SearchIndexError, match="No space left"):
            index.catch_up()
    assert index.follow() is None
    assert "No space left" in index.failure
    assert index.catch_up()
    assert (index.behind(), index.failure) == (0, "")
    assert_follows(index, store)


def test_identities_differ_by_what_builds_the_index(store: Store) -> None:
    """Database and versions of format, jieba, vector index and tantivy, and facets."""
    index = open_index(store)
    identity = index.snapshot().manifest.identity
    names = {identity.folder_name()}
    for field in fields(identity):
        others: dict[str, Any] = {field.name: ("x",) if field.name == "facets" else 0}
        names.add(replace(identity, **others).folder_name())
    assert len(names) == 1 + len(fields(identity))


def test_a_foreign_generation_in_its_folder_is_damage(store: Store) -> None:
    """An index copied from elsewhere is not used but built anew."""
    folder = open_index(store).snapshot().folder
    page = snapshot.read_manifest(folder)
    foreign = replace(page, identity=replace(page.identity, store="another"))
    snapshot.write_manifest(folder, foreign)
    said: list[str] = []
    assert_follows(open_index(store, notify=said.append), store)
    assert "another program" in said[0]


def test_a_damaged_generation_published_meanwhile_is_made_anew(store: Store) -> None:
    """A search keeps to the last good state; the next change does not build on what is gone."""
    index, other = open_index(store), open_index(store)
    good = index.snapshot()
    store.upsert(entries(20, 21))  # type: ignore[arg-type]
    other.catch_up()
    (other.snapshot().folder / snapshot.MANIFEST).write_bytes(b"")
    assert index.published() is good
    store.upsert(entries(21, 22))  # type: ignore[arg-type]
    assert index.catch_up()
    assert_follows(index, store)


def _age(path: Path, seconds: float) -> None:
    then = path.stat().st_mtime - seconds
    os.utime(path, (then, then))


def test_what_no_program_uses_goes_after_a_time(store: Store) -> None:
    """An index of another identity, and one where older releases built, a month after their use."""
    root = store.path.parent / "index"
    older = new_index(store, embedder=WordEmbedder(name="words@0"))
    older.catch_up()
    former = older.snapshot().folder.parent
    (root / "gen-4").mkdir()
    (root / CURRENT).write_text("gen-4\n")
    index = open_index(store)
    ours = index.snapshot().folder.parent

    def names_after_a_change(number: int) -> set[str]:
        store.upsert(entries(number, number + 1))  # type: ignore[arg-type]
        index.catch_up()
        return {path.name for path in root.iterdir()}

    everything = {former.name, ours.name, CURRENT, "gen-4", live.IN_USE}
    assert names_after_a_change(20) == everything
    for mark in (root / live.IN_USE, former / live.IN_USE, ours / live.IN_USE):
        _age(mark, live.UNUSED_S + 60)
    assert names_after_a_change(21) == {former.name, ours.name}  # `older` is still open
    del older
    assert names_after_a_change(22) == {ours.name}
    assert_follows(index, store)


def files_of(store: Store) -> list[str]:
    """Every file of the current generation."""
    return sorted([*open_index(store).snapshot().manifest.files, snapshot.MANIFEST])


@pytest.mark.parametrize("how", ["cut", "flip", "remove"])
def test_any_damaged_file_is_made_anew(store: Store, how: str) -> None:
    """Whatever file is damaged, the index is built anew from the store, and one line says so."""
    for position in range(len(files_of(store))):
        name = files_of(store)[position]  # a rebuild gives some files other names
        folder = open_index(store).snapshot().folder
        path = folder / name
        content = bytearray(path.read_bytes())
        path.unlink()
        if how == "cut":
            path.write_bytes(content[: len(content) // 2])
        elif how == "flip":
            content[len(content) // 2] ^= 0xFF
            path.write_bytes(content)
        said: list[str] = []
        index = open_index(store, notify=said.append)
        assert_follows(index, store)
        assert index.snapshot().folder != folder
        (line,) = said
        assert "building the search index anew" in line
        assert re.search(r"damaged|missing|cannot be read", line)


@pytest.mark.parametrize("content", [b"", b"nonsense", b"../../etc", b"gen-999\n", b"\xff\xfe"])
def test_a_damaged_current_is_repaired(store: Store, content: bytes) -> None:
    """The file that names the generation may hold anything: the index is built anew."""
    (open_index(store).snapshot().folder.parent / CURRENT).write_bytes(content)
    said: list[str] = []
    assert_follows(open_index(store, notify=said.append), store)
    assert len(said) == 1


def test_folders_in_place_of_files_are_repaired(store: Store) -> None:
    """A folder where a file was is damage like another."""
    for name in (CURRENT, f"gen-1/{snapshot.MANIFEST}", "gen-2/lexical/meta.json"):
        path = open_index(store).snapshot().folder.parent / name
        path.unlink()
        (path / "inside").mkdir(parents=True)
        assert_follows(open_index(store), store)


def test_a_flipped_letter_of_the_identity_is_damage(store: Store) -> None:
    """A manifest that is valid and not as it was written is no index of another kind."""
    folder = open_index(store).snapshot().folder
    path = folder / snapshot.MANIFEST
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"tantivy": "', b'"tantivy": "9'))
    assert path.read_bytes() != content
    assert_follows(open_index(store), store)


def test_two_programs_repair_once(store: Store) -> None:
    """Who waited for another's repair uses that one."""
    first = open_index(store).snapshot().folder
    (first / snapshot.MANIFEST).write_bytes(b"")
    said: list[str] = []
    one, other = new_index(store, notify=said.append), new_index(store, notify=said.append)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda index: index.catch_up(), (one, other)))
    assert len(said) == 1
    assert_follows(other, store)


def test_what_a_crash_left_is_removed(store: Store) -> None:
    """Unfinished folders and generations nobody reads are gone after the next build."""
    index = open_index(store)
    folder = index.snapshot().folder.parent
    (folder / "gen-7.building").mkdir()
    (folder / "gen-6").mkdir()
    store.upsert(entries(20, 21))  # type: ignore[arg-type]
    index.catch_up()
    names = sorted(path.name for path in folder.iterdir())
    assert names == [CURRENT, live.IN_USE, "LOCK", index.snapshot().folder.name]
