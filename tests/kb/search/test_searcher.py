"""Search: what is like the question comes first, with a score that means one thing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.errors import InputError, NotFoundError
from kb.index.live import SearchIndex
from kb.knowledge.paraphrases import ASKED_ROLE
from kb.search.searcher import Searcher
from kb.search.similarity import SIMILAR_ENOUGH
from kb.store import Store
from kb.types.entries import CauseClaim, Chunk, Entry, Filters, Tags
from tests.kb.fakes import SplitTokenizer, WordEmbedder, make_entry

WATCHDOG = (
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=_ALLGATHER_BASE, "
    "NumelIn=8, NumelOut=32, Timeout(ms)=1800000) ran before timing out"
)
ENTRIES = [
    make_entry("save", "saving the checkpoint hangs on rank zero", "call save on every rank"),
    make_entry(
        "loader",
        "the data loader stalls and gloo times out",
        tags=Tags(backend="gloo"),
        causes=(CauseClaim(id="data-loading-stall", status="confirmed"),),
    ),
    make_entry("gather", "one rank stalled in generation", signature=(WATCHDOG,)),
    make_entry("network", "wrong interface NCCL_SOCKET_IFNAME eth0", kind="case"),
    make_entry("shm", "bus error because dev shm is too small", date="2020-01-01"),
    *[make_entry(f"other{n:02}", f"unrelated matter number{n} of topic{n % 3}") for n in range(40)],
]


def make_searcher(
    folder: Path, entries: list[Entry], translations: dict[str, str] | None = None
) -> tuple[Store, SearchIndex, Searcher]:
    """A search over the entries."""
    store = Store.open(folder / "kb.sqlite3")
    store.upsert(entries)
    embedder, tokenizer = WordEmbedder(), SplitTokenizer(translations)
    index = SearchIndex(folder / "index", store=store, embedder=embedder, tokenizer=tokenizer)
    index.catch_up()
    return store, index, Searcher(store, index, embedder, tokenizer)


@pytest.fixture(scope="module")
def searcher(tmp_path_factory: pytest.TempPathFactory) -> Searcher:
    """A search over `ENTRIES`."""
    return make_searcher(tmp_path_factory.mktemp("search"), ENTRIES)[2]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("checkpoint saving hangs", "save"),
        ("gloo loader", "loader"),
        ("NCCL_SOCKET_IFNAME", "network"),
        ("bus error shm", "shm"),
        (f"it hangs\n[rank3]: {WATCHDOG}", "gather"),
    ],
    ids=["words", "two words", "identifier", "short", "log"],
)
def test_the_entry_that_says_it_comes_first(searcher: Searcher, query: str, expected: str) -> None:
    """The one entry about the question is the first and similar enough."""
    result = searcher.search(query)
    assert result.hits[0].entry_id == expected
    assert result.similar_enough
    assert result.hits[0].score >= SIMILAR_ENOUGH


def test_nothing_similar_is_an_answer(searcher: Searcher) -> None:
    """A question of another field has no hit above the threshold."""
    result = searcher.search("baking sourdough bread overnight")
    assert not result.similar_enough
    assert all(hit.score < SIMILAR_ENOUGH for hit in result.hits)


def test_a_question_without_a_word_finds_nothing(searcher: Searcher) -> None:
    """Punctuation alone is no error and no match."""
    result = searcher.search("?! …")
    assert [hit for hit in result.hits if hit.score > 0] == []
    assert not result.similar_enough


@settings(max_examples=40, deadline=None)
@given(
    words=st.lists(
        st.sampled_from(
            [
                "rank",
                "save",
                "loader",
                "gloo",
                "topic1",
                "number7",
                "unrelated",
                "shm",
                "eth0",
                "zzz",
                "the",
                "is",
            ]
        ),
        min_size=1,
        max_size=6,
    ),
    limit=st.integers(1, 60),
)
def test_hits_are_ordered_by_their_score(searcher: Searcher, words: list[str], limit: int) -> None:
    """Scores lie in [0, 1] and fall; equals stand in id order; no entry stands twice."""
    hits = searcher.search(" ".join(words), limit=limit).hits
    keys = [(-hit.score, hit.entry_id) for hit in hits]
    assert keys == sorted(keys)
    assert all(0 <= hit.score <= 1 for hit in hits)
    assert len({hit.entry_id for hit in hits}) == len(hits) == min(limit, len(ENTRIES))


def test_a_score_does_not_depend_on_the_others_found(searcher: Searcher) -> None:
    """The same entry has the same score whatever the limit and whatever filter let others pass."""
    query = "gloo loader stalls rank unrelated topic1"
    all_scores = {hit.entry_id: hit.score for hit in searcher.search(query, limit=50).hits}
    for filters in (Filters(backends=("gloo",)), Filters(exclude_ids=("loader", "save"))):
        for limit in (1, 5, 50):
            for hit in searcher.search(query, limit=limit, filters=filters).hits:
                assert hit.score == pytest.approx(all_scores[hit.entry_id], abs=1e-5)


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(kinds=("case",)), ["network"]),
        (Filters(backends=("gloo",)), ["loader"]),
        (Filters(causes=("data-loading-stall",)), ["loader"]),
        (Filters(until="2021"), ["shm"]),
        (Filters(projects=("nobody/none",)), []),
    ],
    ids=["kind", "backend", "cause", "date", "nothing passes"],
)
def test_filters_act_before_ranking(
    searcher: Searcher, filters: Filters, expected: list[str]
) -> None:
    """What passes is found though everything else is nearer; nothing else is."""
    hits = searcher.search("unrelated matter of topic1 number7", filters=filters).hits
    assert [hit.entry_id for hit in hits] == expected


def test_facets_say_what_a_filter_would_leave(searcher: Searcher) -> None:
    """Each count equals the number of hits with that filter on top."""
    result = searcher.search("rank", filters=Filters(kinds=("thread",)), limit=100)
    assert sum(result.facets["backend"].values()) == len(result.hits) == len(ENTRIES) - 1
    for backend, count in result.facets["backend"].items():
        both = Filters(kinds=("thread",), backends=(backend,))
        assert len(searcher.search("rank", filters=both, limit=100).hits) == count


def test_a_translation_finds_the_other_language(tmp_path: Path) -> None:
    """A Chinese question finds an English text by its words, and the reason says so."""
    searcher = make_searcher(tmp_path, ENTRIES, {"检查点": "checkpoint"})[2]
    hit = searcher.search("检查点").hits[0]
    assert hit.entry_id == "save"
    assert hit.why == ("translation:checkpoint", "language:cross")


def test_the_reasons_name_what_is_shared(searcher: Searcher) -> None:
    """Operation, log line and words are named, the same language is stated."""
    entry = searcher.search(f"rank stalled: {WATCHDOG}", language="en").hits[0]
    assert entry.entry_id == "gather"
    kinds = [reason.split(":", 1)[0] for reason in entry.why]
    assert kinds == sorted(kinds, key=["line", "op", "signature", "term", "language"].index)
    assert {"term:stalled", "term:rank", "language:same"} <= set(entry.why)


def test_the_snippet_begins_where_the_words_are(tmp_path: Path) -> None:
    """A person sees the line that matched, not the beginning."""
    long = "\n".join(["a title"] + [f"filler {n}" for n in range(50)] + ["gloo stalls here"])
    hit = make_searcher(tmp_path, [make_entry("a", long)])[2].search("gloo stalls").hits[0]
    assert hit.snippet == "gloo stalls here"


def test_a_deleted_entry_is_not_shown(tmp_path: Path) -> None:
    """Between a deletion and the index's catch-up nobody meets the entry."""
    store, index, searcher = make_searcher(tmp_path, ENTRIES)
    store.delete(["save"])
    assert "save" not in [hit.entry_id for hit in searcher.search("checkpoint").hits]
    store.upsert([make_entry("new", "checkpoint checkpoint")])
    index.catch_up()
    assert searcher.search("checkpoint").hits[0].entry_id == "new"


def test_an_entry_deleted_after_it_was_found_leaves_its_place(tmp_path: Path) -> None:
    """What is kept of found entries goes with a change of the store: the next best is shown."""
    store, _, searcher = make_searcher(tmp_path, ENTRIES)
    query = "saving the checkpoint hangs on rank zero, gloo data loader"
    assert [hit.entry_id for hit in searcher.search(query, limit=2).hits] == ["save", "loader"]
    store.delete(["save"])
    assert [hit.entry_id for hit in searcher.search(query, limit=1).hits] == ["loader"]


def test_a_contradicted_cause_is_not_the_entrys(tmp_path: Path) -> None:
    """The cause shown is the first that stands."""
    causes = (
        CauseClaim(id="shm-limits", status="contradicted"),
        CauseClaim(id="rank-crash", status="reported"),
    )
    searcher = make_searcher(tmp_path, [make_entry("a", "text", causes=causes)])[2]
    assert searcher.search("text").hits[0].cause == "rank-crash"


def test_the_best_chunk_stands_for_its_entry(tmp_path: Path) -> None:
    """An entry of both languages is found by either, through the chunk that fits."""
    entry = make_entry("a", "the loader stalls")
    chinese = Chunk(id="a#1", entry_id="a", role="symptoms", language="zh", text="加载 卡住")
    entry = replace(entry, language="both", chunks=(*entry.chunks, chinese))
    searcher = make_searcher(tmp_path, [entry])[2]
    assert searcher.search("loader stalls").hits[0].chunk_id == "a#0"
    assert searcher.search("加载 卡住").hits[0].chunk_id == "a#1"


def test_how_a_fix_is_verified_is_shown_last(tmp_path: Path) -> None:
    """The state after the mend is no sign of the trouble: another passage found is shown."""
    entry = make_entry("a", "the loader stalls here", "the loader stalls no more")
    verify = replace(entry.chunks[1], role="verify")
    searcher = make_searcher(tmp_path, [replace(entry, chunks=(entry.chunks[0], verify))])[2]
    asked = searcher.search("the loader stalls no more").hits[0]
    assert asked.snippet == "the loader stalls here"
    alone = make_searcher(tmp_path / "alone", [replace(entry, chunks=(verify,))])[2]
    assert alone.search("the loader stalls no more").hits[0].snippet == "the loader stalls no more"


@pytest.mark.parametrize(
    ("query", "snippet"),
    [("reading is slow", "the loader stalls"), ("reading is slow compete", "workers compete")],
)
def test_a_paraphrase_finds_and_is_not_shown(tmp_path: Path, query: str, snippet: str) -> None:
    """What people could say leads to the entry; shown is the next passage found, or the first."""
    entry = make_entry("a", "the loader stalls", "workers compete")
    asked = Chunk(id="a#2", entry_id="a", role=ASKED_ROLE, language="en", text="reading is slow")
    searcher = make_searcher(tmp_path, [replace(entry, chunks=(*entry.chunks, asked))])[2]
    hit = searcher.search(query).hits[0]
    assert (hit.entry_id, hit.role) == ("a", entry.chunks[0].role)
    assert hit.snippet == snippet


def test_an_entry_deleted_meanwhile_is_no_hit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its paraphrase was found, and its own words are gone: that ends no search."""
    asked = Chunk(id="a#0", entry_id="a", role=ASKED_ROLE, language="en", text="reading is slow")
    entries = [replace(make_entry("a"), chunks=(asked,)), make_entry("b", "reading fails")]
    store, _, searcher = make_searcher(tmp_path, entries)

    def gone(entry_id: str) -> Entry:
        raise NotFoundError(f"there is no entry {entry_id!r}", todo="search for it instead")

    monkeypatch.setattr(store, "get", gone)
    assert [hit.entry_id for hit in searcher.search("reading is slow").hits] == ["b"]


@pytest.mark.parametrize("query", ["", "  \n"])
def test_an_empty_question_is_refused(searcher: Searcher, query: str) -> None:
    """The message says what to do."""
    with pytest.raises(InputError, match="the question is empty — type a description"):
        searcher.search(query)


@pytest.mark.parametrize("limit", [0, -1, 1001])
def test_a_limit_out_of_range_is_refused(searcher: Searcher, limit: int) -> None:
    """The message names the value and the range."""
    with pytest.raises(InputError, match=f"limit={limit} is out of range — use 1 to 1000"):
        searcher.search("rank", limit=limit)


def test_a_line_asked_in_part_says_less_than_a_whole_one(tmp_path: Path) -> None:
    """Names of an entry's line that the question lacks weaken it: it is another line."""
    shared = "proxy_progress slot_count overflow_guard"
    whole = make_entry("whole", "nothing alike here", signature=(shared,))
    part = make_entry(
        "part", "nothing alike there", signature=(f"{shared} ring_buffer lost_frame",)
    )
    others = [
        make_entry(f"other{n:02}", f"topic{n % 3}", signature=(f"plain{n}",)) for n in range(60)
    ]
    _, _, searcher = make_searcher(tmp_path, [whole, part, *others])
    scores = {hit.entry_id: hit.score for hit in searcher.search(shared, limit=5).hits}
    assert scores["whole"] > scores["part"] > 0
