"""A crash, a full disk or a crowd of readers and builders leaves a whole index."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from kb.errors import KBError
from kb.index.base import Term
from kb.index.live import CURRENT, IN_USE
from kb.store import Store
from kb.types.entries import Filters
from tests.kb.fakes import WordEmbedder, make_entry
from tests.kb.index.following import ROOT, WORDS, assert_follows, entries, open_index, text

PUBLISH = """
import sys
from pathlib import Path
sys.path.insert(0, {root!r})
import kb.files.atomic as atomic
from kb.index.live import SearchIndex
from kb.store import Store
from tests.kb.fakes import SplitTokenizer, WordEmbedder, make_entry

def report(step):
    print(step, flush=True)

class LoudEmbedder(WordEmbedder):
    def encode_passages(self, texts):
        report("embed")
        return super().encode_passages(texts)

sync = atomic.sync
def slow_sync(path):
    report("sync")
    sync(path)
atomic.sync = slow_sync

store = Store.open(Path({path!r}))
index = SearchIndex(Path({path!r}).parent / "index", store=store, embedder=LoudEmbedder(),
    tokenizer=SplitTokenizer())
index.catch_up()
for batch in range(1000):
    store.upsert([make_entry(f"b{{batch}}-{{n}}", f"alpha w{{n}}", "beta") for n in range(3)])
    report("stored")
    if batch % 3 == 2:
        index.rebuild()
    else:
        index.catch_up()
    report("published")
"""


@pytest.mark.parametrize("lines", [3, 8, 14, 21, 29, 36, 44, 53, 61, 75])
def test_a_killed_builder_leaves_a_whole_index(tmp_path: Path, lines: int) -> None:
    """After kill -9 at any step the index opens, and search and store agree."""
    path = tmp_path / "kb.sqlite3"
    script = PUBLISH.format(root=str(ROOT), path=str(path))
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as child:
        assert child.stdout is not None
        for _ in range(lines):
            child.stdout.readline()
        child.send_signal(signal.SIGKILL)
    store = Store.open(path)
    assert len(store.ids()) % 3 == 0
    assert_follows(open_index(store), store)


def test_searches_go_on_while_everything_changes(store: Store) -> None:
    """During changes and rebuilds no search fails, and every score is that of brute force."""
    anchors = Filters(kinds=("case",))
    store.upsert([make_entry(f"anchor{n}", text(n), kind="case") for n in range(15)])
    index = open_index(store)
    embedder = WordEmbedder()
    queries = embedder.encode_queries(WORDS)
    # every text is its own, so a number of today is told by its text tomorrow
    cosine = embedder.encode_passages([text(n) for n in range(15)]) @ queries.T
    wrong: list[str] = []
    searched = [0] * 3
    done = threading.Event()

    def search(worker: int) -> None:
        while not done.is_set():
            word = searched[worker] % len(WORDS)
            try:
                snapshot = index.snapshot()
                mask = snapshot.catalogue.passing(anchors)
                assert mask is not None
                allowed = snapshot.catalogue.chunks_of(mask)
                numbers, scores = snapshot.dense.search(queries[word], 5, allowed)
                best = np.sort(cosine[:, word])[::-1][: len(numbers)]
                if len(numbers) != 5 or not np.allclose(scores, best, atol=2e-3):
                    wrong.append(f"{scores} is not {best}")
                words, _ = snapshot.lexical.search([Term(word=WORDS[word])], 99, filters=anchors)
                if len(words) != sum(WORDS[word] in text(n).split() for n in range(15)):
                    wrong.append(f"{WORDS[word]} in {len(words)} chunks")
            except (KBError, ValueError, RuntimeError) as error:
                wrong.append(repr(error))
            searched[worker] += 1

    threads = [threading.Thread(target=search, args=(worker,)) for worker in range(3)]
    for thread in threads:
        thread.start()
    for step in range(10):
        store.upsert([make_entry(f"new{step}", text(step + 30)), *entries(0, step)])  # type: ignore[list-item]
        store.delete([f"e{step:03}"])
        index.rebuild() if step % 4 == 3 else index.catch_up()
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert min(searched) > 0
    assert_follows(index, store)


FULL = """
import resource, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from kb.errors import SearchIndexError
from kb.index.live import SearchIndex
from kb.store import Store
from tests.kb.fakes import SplitTokenizer, WordEmbedder, make_entry
store = Store.open(Path({path!r}))
index = SearchIndex(Path({path!r}).parent / "index", store=store, embedder=WordEmbedder(),
    tokenizer=SplitTokenizer())
index.catch_up()
texts = (" ".join(f"w{{n * 7 + k}}" for k in range(50)) for n in range(1500))
store.upsert([make_entry(f"e{{n}}", text) for n, text in enumerate(texts)])
store.vectors.put("words@1", store.chunk_changes_since(1).chunks,
    WordEmbedder().encode_passages(["x"] * 1500))
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, resource.RLIM_INFINITY))
for call in (index.catch_up, index.rebuild):
    try:
        call()
    except SearchIndexError as error:
        print(error)
print(index.snapshot().manifest.chunks)
"""


@pytest.mark.parametrize("limit", [1_000, 20_000, 60_000])
def test_a_full_disk_keeps_the_former_index(tmp_path: Path, limit: int) -> None:
    """When files cannot grow, each build is refused with a reason and the old index serves."""
    path = tmp_path / "kb.sqlite3"
    store = Store.open(path)
    store.upsert([make_entry("kept", "x")])
    script = FULL.format(root=str(ROOT), path=str(path), limit=limit)
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    *refusals, chunks = run.stdout.splitlines()
    assert chunks == "1"
    assert len(refusals) == 2
    assert all("the former index stays in use" in line for line in refusals)
    (folder,) = (tmp_path / "index").iterdir()
    assert sorted(p.name for p in folder.iterdir()) == [CURRENT, IN_USE, "LOCK", "gen-1"]


def test_two_builders_do_not_disturb_each_other(store: Store) -> None:
    """Catch-ups of several threads end in one index that holds everything."""
    indexes = [open_index(store) for _ in range(3)]
    failed: list[str] = []

    def work(number: int) -> None:
        try:
            for step in range(4):
                store.upsert([make_entry(f"t{number}-{step}", text(number + step))])
                indexes[number].catch_up()
        except KBError as error:
            failed.append(repr(error))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert_follows(indexes[0], store)


def test_opening_no_index_loads_no_engine() -> None:
    """Importing what the command line imports leaves FAISS and tantivy alone."""
    code = (
        "import sys, kb.index, kb.search.searcher, kb.store\n"
        "print(sorted({'faiss', 'tantivy', 'torch', 'jieba'} & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert run.stdout == "[]\n"
