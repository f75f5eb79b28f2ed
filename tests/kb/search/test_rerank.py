"""The second look: what counts as telling, what an entry has of it, and what that adds up to."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

import pytest

from kb.errors import DataError
from kb.index.base import Term
from kb.index.live import SearchIndex
from kb.knowledge.framework_names import FrameworkNames
from kb.search.rerank import (
    LARGEST,
    PRIOR_COUNT,
    WEIGHTS,
    WORDS,
    Reranker,
    RerankWeights,
    hardware_in,
    load_reranker,
    missing_words,
)
from kb.search.searcher import Searcher
from kb.store import EntryHead, Store
from kb.types.entries import Tags
from kb.types.knowledge import Bilingual, FrameworkName
from kb.types.vocabulary import Stage
from tests.kb.fakes import SplitTokenizer, WordEmbedder, make_entry

PRIOR = 0.5
PLAIN = RerankWeights(
    prior=PRIOR,
    shift=0.1,
    likeness=0.4,
    coverage=0.5,
    same_framework=0.05,
    other_framework=-0.04,
    other_hardware=-0.03,
)
NAMES = FrameworkNames(
    [
        FrameworkName(id="deepspeed"),
        FrameworkName(id="accelerate"),
        FrameworkName(id="trl", built_on=("accelerate",)),
    ]
)


def head(
    frameworks: tuple[str, ...] = (), hardware: tuple[str, ...] = (), stage: Stage = "unknown"
) -> EntryHead:
    """An entry of these frameworks, this hardware and this stage."""
    return EntryHead(
        id="e",
        kind="case",
        title=Bilingual(zh="", en=""),
        project="",
        url="",
        status="confirmed",
        date="",
        causes=(),
        tags=Tags(frameworks=frameworks, hardware=hardware, stage=stage),
        signature=(),
    )


@pytest.mark.parametrize(
    ("question", "entry", "expected"),
    [
        ("it hangs", head(("deepspeed",), ("h100",)), (0, 0, 0)),
        ("DeepSpeed hangs", head(("deepspeed",)), (1, 0, 0)),
        ("DeepSpeed hangs", head(("accelerate",)), (0, 1, 0)),
        ("TRL hangs", head(("accelerate",)), (0, 0, 0)),
        ("hangs on 昇腾910B", head(hardware=("ascend",)), (0, 0, 0)),
        ("hangs on 910B", head(hardware=("h100",)), (0, 0, 1)),
        ("hangs on 910B", head(), (0, 0, 0)),
    ],
)
def test_names_of_a_question_fit_or_not(
    question: str, entry: EntryHead, expected: tuple[int, ...]
) -> None:
    """A framework named fits, one a job uses beside it is no other; hardware only tells apart."""
    reranker = Reranker(PLAIN, {}, NAMES)
    found = reranker.features(reranker.names(question), entry, 0.25, 0.75)
    assert found == (0.25, 0.75, *expected, 0, 0)


@pytest.mark.parametrize(
    ("question", "stage", "expected"),
    [
        ("hangs while saving", "save", (1, 0)),
        ("hangs while saving", "eval", (0, 1)),
        ("保存断点时卡住", "save", (1, 0)),
        ("hangs while saving", "unknown", (0, 0)),
        ("it hangs", "save", (0, 0)),
    ],
)
def test_when_it_hangs_fits_or_not(question: str, stage: Stage, expected: tuple[int, int]) -> None:
    """Who says when it hangs leans towards entries of that stage; an unknown one is no other."""
    reranker = Reranker(PLAIN, {}, NAMES)
    found = reranker.features(reranker.names(question), head(stage=stage), 0.25, 0.75)
    assert found[-2:] == expected


def test_reasons_name_the_coverage_and_each_feature_that_holds() -> None:
    """Coverage with two digits, then the features that are not 0 with what the question names."""
    reranker = Reranker(PLAIN, {}, NAMES)
    names = reranker.names("DeepSpeed on 910B hangs while saving")
    entry = head(("deepspeed",), ("h100",), "save")
    found = reranker.reasons(names, entry, reranker.features(names, entry, 0.25, 0.754))
    assert found == (
        "coverage:0.75",
        "same_framework:deepspeed",
        "other_hardware:ascend",
        "same_stage:save",
    )
    other = head(("accelerate",), stage="eval")
    found = reranker.reasons(names, other, reranker.features(names, other, 0.25, 0))
    assert found == ("coverage:0.00", "other_framework:deepspeed", "other_stage:eval")


def test_missing_words_are_the_most_telling_that_do_not_stand() -> None:
    """In the order of the choices, in none of their forms, four at most, no single characters."""
    words = ["gather", "x", "loader", "shard", "quokka", "wombat", "numbat", "dingo"]
    choices = [(Term(word=word), Term(word=f"{word}-zh")) for word in words]
    found = missing_words(choices, lambda terms: terms[1].word == "loader-zh")
    assert found == ("gather", "shard", "quokka", "wombat")


def test_the_score_is_a_weighted_sum_in_bounds() -> None:
    """Shift plus weight times value, cut to [0, 1]."""
    reranker = Reranker(PLAIN, {}, NAMES)
    assert reranker.score((0.5, 0.4, 1, 0, 1)) == pytest.approx(0.1 + 0.2 + 0.2 + 0.05 - 0.03)
    assert reranker.score((1, 1, 1, 0, 0)) == 1
    assert Reranker(replace_shift(-0.9), {}, NAMES).score((0.5, 0.4, 0, 0, 0)) == 0


def replace_shift(shift: float) -> RerankWeights:
    """`PLAIN` with another shift."""
    return RerankWeights(
        **{name: getattr(PLAIN, name) for name in PLAIN.__struct_fields__} | {"shift": shift}
    )


def test_words_weigh_what_the_right_case_has_more_often() -> None:
    """A weight is p ln(p / q), p smoothed by the prior; words as frequent anywhere have none."""
    counts = {"gather": (30, 27), "why": (40, 4)}
    share = {"gather": 0.1, "why": 0.4, "rare": 0.02}
    reranker = Reranker(PLAIN, counts, NAMES)
    weigh = partial(reranker.weigh, tokenizer=SplitTokenizer({}), share=share.__getitem__)
    found = reranker.choices(["why", "rare", "gather"], weigh)
    gather = (27 + PRIOR_COUNT * PRIOR) / (30 + PRIOR_COUNT)
    weights = {
        "gather": gather * math.log(gather / 0.1),
        "rare": PRIOR * math.log(PRIOR / 0.02),
    }
    assert {terms[0].word: terms[0].weight for terms in found} == pytest.approx(
        {word: weight / sum(weights.values()) for word, weight in weights.items()}
    )


def test_what_every_entry_has_tells_nothing() -> None:
    """A word in all entries has no weight, however often the right case has it."""
    reranker = Reranker(PLAIN, {"hang": (50, 50)}, NAMES)
    weigh = partial(reranker.weigh, tokenizer=SplitTokenizer({}), share=lambda _: 1.0)
    assert reranker.choices(["hang"], weigh) == ()
    assert LARGEST < 1


def test_coverage_counts_all_of_an_entry_and_each_word_once(tmp_path: Path) -> None:
    """Words in two passages of one entry outrank one passage that repeats a word of them."""
    entries = [
        make_entry("both", "the loader of images stalls", "ranks wait in a gather"),
        make_entry("one", "gather gather gather", "unrelated"),
        *[make_entry(f"other{n}", f"matter {n}") for n in range(8)],
    ]
    store = Store.open(tmp_path / "kb.sqlite3")
    store.upsert(entries)
    embedder, tokenizer = WordEmbedder(), SplitTokenizer({"聚合": "gather"})
    index = SearchIndex(tmp_path / "index", store=store, embedder=embedder, tokenizer=tokenizer)
    index.catch_up()
    searcher = Searcher(store, index, embedder, tokenizer, reranker=Reranker(PLAIN, {}, NAMES))
    covered = {entry: features[1] for entry, features in searcher.features("loader gather")}
    assert covered["both"] == pytest.approx(1)
    loader, gather = (p * math.log(p / q) for p, q in ((PRIOR, 0.1), (PRIOR, 0.2)))
    assert covered["one"] == pytest.approx(gather / (loader + gather))
    assert searcher.search("loader gather").hits[0].entry_id == "both"
    store.close()


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("两台昇腾 910B 上", {"ascend"}),
        ("on A100-SXM4-80GB", {"a100"}),
        ("RTX A6000 cards", {"a6000"}),
        ("rank 910 of 1024", set()),
    ],
)
def test_hardware_is_found_in_a_text(text: str, tags: set[str]) -> None:
    """Names of one to three words, whatever joins them."""
    assert hardware_in(text) == tags


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    """Missing files, another format and bad counts have an error that names the way out."""
    with pytest.raises(DataError, match=r"kb\.train\.reranker"):
        load_reranker(tmp_path, NAMES)
    (tmp_path / WORDS).write_text("gather\tmany\t1\n", "utf-8")
    (tmp_path / WEIGHTS).write_text("{}", "utf-8")
    with pytest.raises(DataError, match="prior"):
        load_reranker(tmp_path, NAMES)
