"""An index on Qdrant follows the store, survives interruptions, and refuses what is not its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("qdrant_client", reason="qdrant-client is not installed (extra qdrant)")
pytest.importorskip("qdrant_edge", reason="qdrant-edge-py is not installed (extra dev)")

from kb.errors import SearchIndexError, SettingsError, UnreachableIndexError
from kb.index import qdrant_index
from kb.index.base import Term
from kb.index.chunk_index import Proposal
from kb.index.qdrant_connection import QdrantAddress, QdrantConnection, read_address
from kb.index.qdrant_index import QdrantIndex
from kb.index.qdrant_writer import STATE
from kb.index.sources import ChunkSources
from kb.search.searcher import Searcher
from kb.store import Store
from kb.types.entries import NO_FILTERS
from tests.kb.fakes import SplitTokenizer, WordEmbedder, make_entry
from tests.kb.index.following import WORDS, entries, open_index, text
from tests.qdrant import EdgeClient, QdrantServer

KEY = "dragonfruit-9173"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """No request is given up because the machine is busy."""
    monkeypatch.setattr("kb.index.qdrant_connection.LIMIT_S", 600)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[EdgeClient]:
    """A Qdrant without collections."""
    (tmp_path / "qdrant").mkdir()
    client = EdgeClient(tmp_path / "qdrant")
    yield client
    client.close()


def open_on(client: Any, store: Store, embedder: WordEmbedder | None = None) -> QdrantIndex:
    """An index on the client that nobody has asked yet."""
    sources = ChunkSources(
        store=store,
        embedder=embedder or WordEmbedder(),
        tokenizer=SplitTokenizer(),
        fingerprint="words",
    )
    return QdrantIndex(QdrantConnection(read_address("qdrant://nowhere"), client), sources)


def assert_same(index: QdrantIndex, store: Store) -> None:
    """All verbs answer as FAISS and tantivy do over the same store."""
    theirs, ours = index.snapshot(), open_index(store).snapshot()
    assert (theirs.seq, theirs.chunks, theirs.entries) == (
        store.last_seq(),
        ours.chunks,
        ours.entries,
    )
    every, all_ = theirs.select(NO_FILTERS), ours.select(NO_FILTERS)
    assert every.facets == all_.facets == store.facets()
    words = [*WORDS, "w3", "w21", "nobody"]
    assert theirs.entries_with(words) == ours.entries_with(words)
    assert theirs.idf(words) == pytest.approx(ours.idf(words))
    choices = [[Term(word="alpha", weight=0.4), Term(word="w3", weight=0.3)], [Term(word="w21")]]
    ordinals = ours.catalogue.ordinals.tolist()
    covered = ours.cover_words(choices, ordinals)
    assert theirs.cover_words(choices, ordinals) == pytest.approx(covered)
    for word in ("alpha", "w3", "w21"):
        terms, vector = [Term(word=word)], WordEmbedder().encode_queries([word])[0]
        first = ours.propose_words(terms, 500, all_)
        second = theirs.propose_words(terms, 500, every)
        assert scores_of(second) == pytest.approx(scores_of(first), abs=0.05)  # lengths are rounded
        assert sorted(second.entries) == sorted(first.entries)
        near = ours.propose_dense(vector, 500, all_), theirs.propose_dense(vector, 500, every)
        assert scores_of(near[1]) == pytest.approx(scores_of(near[0]), abs=0.01)


def scores_of(proposal: Proposal) -> dict[int, float]:
    """Scores by chunk."""
    return dict(zip(proposal.numbers.tolist(), proposal.scores.tolist(), strict=True))


def test_it_follows_the_store(client: EdgeClient, store: Store) -> None:
    """Built, changed, opened by another program and rebuilt it answers as the embedded one."""
    index = open_on(client, store)
    assert index.catch_up()
    assert not index.catch_up()
    assert_same(index, store)
    store.upsert([make_entry("e001", text(40)), *entries(20, 22)])  # type: ignore[list-item]
    store.delete(["e003"])
    before = index.stamp()
    assert index.catch_up()
    assert index.stamp() != before
    store_index = open_index(store)
    store_index.rebuild()  # counts of deleted chunks are merged away
    assert_same(index, store)
    other = open_on(client, store)
    assert not other.catch_up()
    other.rebuild()
    assert_same(other, store)
    assert index.published().chunks == other.published().chunks


def test_a_change_that_was_interrupted_is_applied_again(
    client: EdgeClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of the last change is written last, so what was cut off is done at the next."""
    index = open_on(client, store)
    index.catch_up()
    store.upsert([make_entry("e090", "quasar")])
    upsert = client.upsert

    def die(name: str, points: list[Any], *, wait: bool) -> None:
        if any(point.id == STATE for point in points):
            raise KeyboardInterrupt
        upsert(name, points, wait=wait)

    monkeypatch.setattr(client, "upsert", die)
    with pytest.raises(KeyboardInterrupt):
        index.catch_up()
    monkeypatch.undo()
    assert open_on(client, store).published().seq < store.last_seq()
    other = open_on(client, store)
    assert other.catch_up()
    assert_same(other, store)


def test_a_build_that_fails_leaves_the_former_index(
    client: EdgeClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing points to half a collection, and it is deleted: at once, or with the next build."""
    index = open_on(client, store)
    index.catch_up()
    before = sorted(client._shards)
    assert len(before) == 2
    killed = "timeout_kb-0badcafe"  # of a build that had no time to
    client.create_collection(killed, vectors_config={})
    monkeypatch.setattr(qdrant_index.PointWriter, "finish", _fail)
    with pytest.raises(OSError, match="no more"):
        index.rebuild()
    assert sorted(client._shards) == sorted([*before, killed])
    assert_same(open_on(client, store), store)
    monkeypatch.undo()
    index.rebuild()
    assert len(client._shards) == 2
    assert killed not in client._shards


def _fail(*_: object) -> None:
    raise OSError("no more")


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (WordEmbedder("others@2"), "model words@1, here others@2"),
        (WordEmbedder("short@1", dimension=16), "dimension 32, here 16"),
    ],
    ids=["model", "dimension"],
)
def test_what_another_program_built_is_refused(
    client: EdgeClient, store: Store, other: WordEmbedder, said: str
) -> None:
    """The message names the difference and both ways out; a rebuild is one of them."""
    open_on(client, store).catch_up()
    index = open_on(client, store, other)
    for ask in (index.snapshot, index.catch_up):
        with pytest.raises(SearchIndexError, match=said) as refused:
            ask()
        assert "TIMEOUT_KB_INDEX" in refused.value.todo
        assert "ingest --rebuild" in refused.value.todo
    index.rebuild()
    assert index.snapshot().chunks == 40
    with pytest.raises(SearchIndexError, match=r"was built by another program"):
        open_on(client, store).snapshot()


def test_another_format_is_refused(
    client: EdgeClient, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also by a server that had it open before."""
    index = open_on(client, store)
    index.catch_up()
    monkeypatch.setattr(qdrant_index, "FORMAT", 2)
    newer = open_on(client, store)
    newer.rebuild()
    monkeypatch.undo()
    index._looked_at = 0.0
    with pytest.raises(SearchIndexError, match="format 2, here 1"):
        index.snapshot()


def test_what_belongs_to_others_is_not_overwritten(
    client: EdgeClient, store: Store, tmp_path: Path
) -> None:
    """Neither a collection of another knowledge base nor one of nobody knows whom."""
    open_on(client, store).catch_up()
    other = Store.open(tmp_path / "other.sqlite3")
    index = open_on(client, other)
    for write in (index.catch_up, index.rebuild):
        with pytest.raises(SearchIndexError, match="TIMEOUT_KB_INDEX"):
            write()
    client._configs[client._aliases["timeout_kb"]].metadata = None
    for write in (open_on(client, store).catch_up, open_on(client, store).rebuild):
        with pytest.raises(SearchIndexError, match="no index of this knowledge base"):
            write()
    other.close()


# --- the address and the server ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "meant"),
    [
        ("qdrant://box", QdrantAddress(host="box")),
        (
            "qdrants://box:7/team-a",
            QdrantAddress(host="box", port=7, tls=True, collection="team-a"),
        ),
        (f"qdrant://{KEY}@box", QdrantAddress(host="box", key=KEY)),
        ("qdrant://:a%2Fb@[::1]:1/x", QdrantAddress(host="::1", port=1, collection="x", key="a/b")),
    ],
)
def test_addresses(address: str, meant: QdrantAddress) -> None:
    """Host, port, TLS, collection and key stand in one line."""
    assert read_address(address) == meant
    assert read_address(address, "other").key == (meant.key or "other")
    assert KEY not in repr(meant) + meant.name


@pytest.mark.parametrize(
    "address", ["qdrant://", "http://box", f"qdrant://{KEY}@box:x/y", f"qdrant://{KEY}@box/a/b"]
)
def test_what_is_no_address_is_not_repeated(address: str) -> None:
    """The message says how to write one, and keeps the key to itself."""
    with pytest.raises(SettingsError, match="TIMEOUT_KB_INDEX is not the address") as refused:
        read_address(address)
    assert KEY not in str(refused.value)


@pytest.fixture
def server(client: EdgeClient) -> QdrantServer:
    """A server that wants a key; it runs where a test lets it."""
    return QdrantServer(client, key=KEY)


def over_http(server: QdrantServer, store: Store, key: str = KEY) -> QdrantIndex:
    """The index as the product opens it: the real client, asking a port."""
    index = open_on(None, store)
    index._connection = QdrantConnection(QdrantAddress(host="127.0.0.1", port=server.port, key=key))
    return index


def test_the_real_client_says_the_same_over_http(server: QdrantServer, store: Store) -> None:
    """Build, change and questions over the wire answer as the embedded index does."""
    with server.running():
        index = over_http(server, store)
        index.catch_up()
        store.upsert([make_entry("e001", text(40))])
        index.catch_up()
        open_index(store).rebuild()
        assert_same(index, store)
        index.close()
    assert {one.split("/")[-1] for one in server.requests} >= {"query", "facet", "scroll"}


def test_a_wrong_key_is_refused_and_not_shown(server: QdrantServer, store: Store) -> None:
    """The server repeats the key; the message does not, and names the setting."""
    with server.running():
        index = over_http(server, store, "wrong-" + KEY)
        with pytest.raises(SearchIndexError, match="refuses the key") as refused:
            index.catch_up()
        index.close()
    assert "TIMEOUT_KB_INDEX_KEY" in refused.value.todo
    assert KEY not in str(refused.value) + index.failure


def test_a_server_that_is_gone_comes_back_by_itself(
    server: QdrantServer, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Searches fail with a reason while it is away, and the first one after finds what is new."""
    monkeypatch.setattr("kb.index.qdrant_connection.RETRY_S", 0.0)
    with server.running():
        index = over_http(server, store)
        index.catch_up()
        searcher = Searcher(store, index, WordEmbedder(), SplitTokenizer())
        assert searcher.search("alpha w3").hits
        version = searcher.version()
    for _ in range(2):
        with pytest.raises(UnreachableIndexError, match="cannot be reached") as gone:
            searcher.search("alpha w3")
        assert KEY not in str(gone.value)
    store.upsert([make_entry("e090", "quasar")])
    with pytest.raises(UnreachableIndexError):
        index.catch_up()
    assert "cannot be reached" in index.failure
    with server.running():
        server.refuse = 503
        with pytest.raises(UnreachableIndexError, match="503"):
            searcher.search("alpha w3")
        server.refuse = 0
        assert index.catch_up()
        assert index.failure == ""
        assert searcher.search("quasar").hits[0].entry_id == "e090"
        assert searcher.version() != version  # answers given meanwhile are not kept
        index.close()


def test_while_it_is_gone_nobody_waits_for_it(server: QdrantServer, store: Store) -> None:
    """After a failure the server is left alone for a moment: the next search fails at once."""
    with server.running():
        index = over_http(server, store)
        index.catch_up()
        server.refuse = 500
        with pytest.raises(UnreachableIndexError):
            index._look()
        asked = len(server.requests)
        with pytest.raises(UnreachableIndexError, match="500"):
            index._look()
        assert len(server.requests) == asked
        index.close()


def test_a_collection_that_somebody_deleted_is_built_anew(
    client: EdgeClient, server: QdrantServer, store: Store
) -> None:
    """What the index holds can be made from the store at any time."""
    with server.running():
        index = over_http(server, store)
        index.catch_up()
        client._aliases.clear()
        index._looked_at = 0.0
        with pytest.raises(SearchIndexError, match="no search index") as missing:
            index.published()
        assert "ingest --rebuild" in missing.value.todo
        assert index.catch_up()
        assert_same(index, store)
        index.close()
