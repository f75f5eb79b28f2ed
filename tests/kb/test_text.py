"""Language, normal form and tokens."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.errors import DataError
from kb.text import (
    HAN,
    Tokenizer,
    detect_language,
    has_han,
    identifier_parts,
    reference_cutter,
    rust_cutter,
    stem,
)

ROOT = Path(__file__).resolve().parents[2]
LEXICON = ROOT / "data" / "lexicon"
PARALLEL = ROOT.parent / "shared" / "parallel" / "parallel.jsonl.gz"
LOG_LINE = (
    "[rank1]:[E 2025-01-02 03:04:05.678 ProcessGroupNCCL.cpp:629] [Rank 1] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=7, OpType=_ALLGATHER_BASE, Timeout(ms)=600000)"
)
MIXED = st.text(
    st.sampled_from("超时逾時卡死網路集合通信的了rankNCCL_IB.gid:/-0123456789 　\nＡｚé%＝"),
    max_size=60,
)


@lru_cache
def shipped() -> Tokenizer:
    """The tokenizer with the shipped lexicon, one for all examples."""
    return Tokenizer(LEXICON)


@pytest.fixture
def text() -> Tokenizer:
    """The tokenizer with the shipped lexicon."""
    return shipped()


@pytest.mark.parametrize(
    ("written", "language"),
    [
        pytest.param("八张卡训练到一半卡住", "zh", id="zh"),
        pytest.param("training hangs on eight cards", "en", id="en"),
        pytest.param(f"{LOG_LINE}\n{LOG_LINE}", "en", id="log"),
        pytest.param(f"训练卡住了，日志如下：\n{LOG_LINE}\n" * 2, "zh", id="zh-with-log"),
        pytest.param(f"{LOG_LINE}\n" * 40 + "第二轮就这样了，怎么办", "zh", id="zh-under-long-log"),
        pytest.param("NPU 上跑 HCCL AllReduce 报 timeout", "zh", id="zh-with-names"),
        pytest.param("訓練到一半逾時", "zh", id="traditional"),
        pytest.param(
            "The dataset lies in /data/训练 and every worker reads it from there, then it hangs "
            "at the first step of the second epoch without any message",
            "en",
            id="en-with-path",
        ),
        pytest.param("[INFO] 超时", "zh", id="only-a-log-line-in-zh"),
        pytest.param("", "en", id="empty"),
        pytest.param("12345 !!", "en", id="no-words"),
    ],
)
def test_language_is_the_persons_not_the_programs(written: str, language: str) -> None:
    """Program output is English everywhere; what decides is the words around it."""
    assert detect_language(written) == language


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        pytest.param("ＮＣＣＬ　超时（３０分钟）", "NCCL 超时(30分钟)", id="full-width"),
        pytest.param("訓練時逾時", "训练时超时", id="traditional-and-regional"),
        pytest.param("執行緒卡在伺服器的網路介面", "线程卡在服务器的网络接口", id="taiwan-words"),
        pytest.param("集合通訊", "集合通信", id="word-of-the-field"),
        pytest.param("ﬁle ①", "file 1", id="compatibility-forms"),
    ],
)
def test_normal_form(text: Tokenizer, written: str, normal: str) -> None:
    """Full width becomes half width, traditional becomes simplified, regions agree on words."""
    assert text.normalise(written) == normal


@given(MIXED | st.text(max_size=60))
def test_normalising_twice_changes_nothing_more(written: str) -> None:
    """normalise(normalise(x)) = normalise(x), and nothing full-width or traditional is left."""
    text = shipped()
    once = text.normalise(written)
    assert text.normalise(once) == once


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param("_ALLGATHER_BASE", ["_allgather_base", "allgather", "base"], id="op"),
        pytest.param(
            "NCCL_IB_GID_INDEX", ["nccl_ib_gid_index", "nccl", "ib", "gid", "index"], id="variable"
        ),
        pytest.param(
            "ProcessGroupNCCL.cpp",
            ["processgroupnccl.cpp", "processgroupnccl", "process", "group", "nccl", "cpp"],
            id="file",
        ),
        pytest.param(
            "torch.distributed.DistStoreError",
            [
                "torch.distributed.diststoreerror",
                *("torch", "distributed", "diststoreerror", "dist", "store", "error"),
            ],
            id="python-path",
        ),
        pytest.param("ncclSystemError", ["ncclsystemerror", "nccl", "system", "error"], id="camel"),
        pytest.param(
            "c10::DistError",
            ["c10::disterror", "c10", "c", "10", "disterror", "dist", "error"],
            id="c++",
        ),
        pytest.param("word", ["word"], id="plain"),
    ],
)
def test_identifier_is_itself_and_its_parts(written: str, expected: list[str]) -> None:
    """Whole first, then the parts, each once and in lower case."""
    assert identifier_parts(written) == expected


@pytest.mark.parametrize(
    "name", ["ALLREDUCE", "all_reduce", "all-reduce", "AllReduce", "HcclAllReduce", "ncclAllReduce"]
)
def test_spellings_of_an_operation_meet(text: Tokenizer, name: str) -> None:
    """Every spelling of all-reduce yields the token ``allreduce``."""
    assert "allreduce" in text.tokens(name)


@pytest.mark.parametrize(
    "noise",
    [
        "0x7f3a2b1c",
        "10.0.12.7",
        "10.0.12.7:29500",
        "2025-01-02 03:04:05,678",
        "2025-01-02T03:04Z",
        "03:04:05.678",
        "140234567890",
        "1712345678.25",
        "https://example.org/some/page?a=b",
        "123e4567-e89b-12d3-a456-426614174000",
    ],
)
def test_noise_leaves_no_token(text: Tokenizer, noise: str) -> None:
    """Addresses, times, links, ids and long numbers differ in every log and are dropped."""
    assert text.tokens(f"rank {noise} lost") == ["rank", "lost"]


@pytest.mark.parametrize("code", ["507011", "29500", "1800", "EI0002", "2.3.1"])
def test_codes_ports_and_versions_are_kept(text: Tokenizer, code: str) -> None:
    """Error codes of six digits, ports and versions name causes."""
    assert code.lower() in text.tokens(f"rank {code} lost")


def test_words_of_the_field_stay_whole(text: Tokenizer) -> None:
    """The segmenter alone would cut these terms in two."""
    words = ["集合通信", "建链超时", "看门狗超时"]
    assert [text.tokens(word) for word in words] == [[word] for word in words]


def test_every_added_word_stays_whole(text: Tokenizer) -> None:
    """The frequencies of ``words.tsv`` are large enough to keep each of its words in one piece."""
    assert [word for word in text.words if text.cut(word) != [word]] == []


def test_number_with_a_unit_and_long_numbers(text: Tokenizer) -> None:
    """A size of seven digits goes, its unit stays; a part of an identifier is no number."""
    assert text.tokens("NumelIn=1800000ms 600000 v1234567890") == [
        *("numelin", "numel", "ms", "600000", "v1234567890", "v", "1234567890"),
    ]


def test_stop_words_are_left_out(text: Tokenizer) -> None:
    """Function words of both languages say nothing."""
    assert text.tokens("这个 rank 的 the loss of 我们") == ["rank", "loss"]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("ranks", "rank"), ("timeouts", "timeout"), ("retries", "retry"), ("processes", "process"),
        ("gpus", "gpu"), ("status", "status"), ("loss", "loss"), ("hanging", "hang"),
        ("failed", "fail"), ("stopped", "stop"), ("ring", "ring"), ("timed", "timed"),
        ("nfs", "nfs"), ("all_gathers", "all_gathers"), ("通信", "通信"),
    ],
)  # fmt: skip
def test_stem(word: str, expected: str) -> None:
    """Endings go where a word is left; identifiers and Chinese stay."""
    assert stem(word) == expected


@given(MIXED)
def test_tokens_are_lower_case_and_not_blank(written: str) -> None:
    """Every token is searchable: in lower case, without space, and of the normal form."""
    for token in shipped().tokens(written):
        assert token == token.lower()
        assert re.search(r"\s", token) is None
        assert re.search(rf"[a-z0-9{HAN}]", token)


@given(MIXED)
def test_tokens_do_not_depend_on_width_or_case_of_plain_words(written: str) -> None:
    """The normal form has the same tokens as what was written."""
    text = shipped()
    assert text.tokens(text.normalise(written)) == text.tokens(written)


def test_expansion_crosses_languages(text: Tokenizer) -> None:
    """A Chinese term brings its English words and the other way round, with less weight."""
    to_english = dict(text.expand(["超时"]))
    assert to_english["超时"] == 1
    assert 0 < to_english["timeout"] < 1
    to_chinese = dict(text.expand(["timeout"]))
    assert 0 < to_chinese["超时"] < 1


@given(st.lists(st.sampled_from(["超时", "timeout", "卡死", "hang", "rank", "nosuchword"])))
def test_expansion_keeps_the_words_first_and_once(words: list[str]) -> None:
    """The distinct words come first in their order with weight 1; no term comes twice."""
    expanded = shipped().expand(words)
    own = list(dict.fromkeys(words))
    assert expanded[: len(own)] == [(word, 1.0) for word in own]
    terms = [term for term, _ in expanded]
    assert len(set(terms)) == len(terms)
    rest = [(-weight, term) for term, weight in expanded[len(own) :]]
    assert rest == sorted(rest)
    assert all(0 < -weight < 1 for weight, _ in rest)


@pytest.mark.parametrize(
    ("written", "expected"), [("看", True), ("a 时 b", True), ("カナ", False), ("abc", False)]
)
def test_has_han(written: str, expected: bool) -> None:
    """Chinese characters count, kana do not."""
    assert has_han(written) is expected


def test_missing_lexicon_names_the_file(tmp_path: Path) -> None:
    """A folder without the files is refused with the file's name."""
    with pytest.raises(DataError, match=r"traditional\.tsv"):
        Tokenizer(tmp_path)


def test_broken_line_is_named(tmp_path: Path) -> None:
    """A line with a missing column is refused with its number."""
    shutil.copytree(LEXICON, tmp_path / "lexicon")
    with (tmp_path / "lexicon" / "regional.tsv").open("a", encoding="utf-8") as file:
        file.write("word without a partner\n")
    with pytest.raises(DataError, match=r"regional\.tsv:\d+ has 1 columns, not 2"):
        Tokenizer(tmp_path / "lexicon")


def test_both_segmenters_cut_the_shipped_texts_alike(text: Tokenizer) -> None:
    """The segmenter and its Rust port agree on every Han run of the cases and the glossary."""
    paths = [*sorted((ROOT / "data" / "cases").glob("*.md")), LEXICON / "glossary.tsv"]
    _assert_same_cuts(text, "\n".join(path.read_text("utf-8") for path in paths))


@pytest.mark.shared
@pytest.mark.slow
def test_both_segmenters_cut_the_corpus_alike(text: Tokenizer) -> None:
    """The segmenter and its Rust port agree on every Han run of 48,000 paragraphs."""
    if not PARALLEL.is_file():
        pytest.skip(f"{PARALLEL} is not here: the corpus is not part of the project")
    with gzip.open(PARALLEL, "rt", encoding="utf-8") as file:
        _assert_same_cuts(text, "\n".join(json.loads(line)["zh"] for line in file))


def _assert_same_cuts(text: Tokenizer, written: str) -> None:
    fast, reference = rust_cutter(text.words), reference_cutter(text.words)
    runs = sorted(set(re.findall(f"[{HAN}]+", text.normalise(written))))
    assert len(runs) > 100
    differing = [run for run in runs if fast(run) != reference(run)]
    assert differing == []
