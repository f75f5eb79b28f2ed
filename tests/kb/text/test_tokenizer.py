"""Normal form and tokens."""

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
from kb.text.language import HAN, has_han
from kb.text.tokenizer import JIEBA, Cut, Tokenizer, identifier_parts, rust_cutter, stem
from tests.kb.text.tiny_lexicon import tiny_lexicon

ROOT = Path(__file__).resolve().parents[3]
LEXICON = ROOT / "data" / "lexicon"
PARALLEL = ROOT.parent / "shared" / "parallel" / "parallel.jsonl.gz"
MIXED = st.text(
    st.sampled_from("超时逾時卡死網路集合通信的了rankNCCL_IB.gid:/-0123456789 　\nＡｚé%＝"),
    max_size=60,
)


def reference_cutter(words: dict[str, int]) -> Cut:
    """The segmenter itself: jieba, ready in 0.7 s. `rust_cutter` must cut like it."""
    import logging

    import jieba

    assert jieba.__version__ == JIEBA
    jieba.setLogLevel(logging.WARNING)
    segmenter = jieba.Tokenizer()
    for word, frequency in words.items():
        segmenter.add_word(word, frequency)
    cut: Cut = segmenter.lcut
    return cut


@lru_cache
def shipped() -> Tokenizer:
    """The tokenizer with the shipped lexicon, one for all examples."""
    return Tokenizer(LEXICON)


@pytest.fixture
def text() -> Tokenizer:
    """The tokenizer with the shipped lexicon."""
    return shipped()


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


@pytest.mark.parametrize(
    ("written", "expected"), [("看", True), ("a 时 b", True), ("カナ", False), ("abc", False)]
)
def test_has_han(written: str, expected: bool) -> None:
    """Chinese characters count, kana do not."""
    assert has_han(written) is expected


def test_parts_of_identifiers_that_make_a_compound(tmp_path: Path) -> None:
    """Two or three parts in a row make a known compound; the whole and one part do not."""
    lexicon = tiny_lexicon(tmp_path, compounds="water melon\nall to all\na b c d", stopwords="of")
    text = Tokenizer(lexicon)
    assert list(text.compounds) == ["watermelon", "alltoall", "abcd"]
    assert text.compounds["alltoall"] == "all to all"
    assert text.tokens("big_water_melon") == [
        *("big_water_melon", "big", "water", "melon", "watermelon"),
    ]
    assert text.tokens("all_to_all") == ["all_to_all", "all", "to"]
    assert text.tokens("x_all_To_All_of") == ["x_all_to_all_of", "x", "all", "to"]
    assert "abcd" not in text.tokens("x_a_b_c_d")


@pytest.mark.parametrize(
    ("identifier", "parts"),
    [
        ("rank", ["rank"]),
        ("a.b", ["a.b", "a", "b"]),
        ("DistStoreError", ["diststoreerror", "dist", "store", "error"]),
        ("c10d::Work", ["c10d::work", "c10d", "c", "10", "d", "work"]),
        ("_x__y", ["_x__y", "x", "y"]),
        ("NCCLComm", ["ncclcomm", "nccl", "comm"]),
        ("___", []),
        (".".join("abcdefghijkl"), [".".join("abcdefghijkl"), *"abcdefghijkl"]),
        (".".join("abcdefghijklm"), list("abcdefghijklm")),
    ],
)
def test_identifier_parts(identifier: str, parts: list[str]) -> None:
    """The whole first, then each part once; a path of more than twelve parts only by part."""
    assert identifier_parts(identifier) == parts


@pytest.mark.parametrize(
    ("number", "stays"),
    [("999999", True), ("1000000", False), ("999999.1234567", True), ("1000000.1", False)],
)
def test_long_numbers(text: Tokenizer, number: str, stays: bool) -> None:
    """Six digits before the point are a code, seven are a size, an id or a clock."""
    assert (number in text.tokens(f"rank {number} lost")) is stays


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("gas", "gas"), ("cats", "cat"), ("CATS", "CATS"), ("has1", "has1"), ("ties", "ty"),
        ("boxes", "box"), ("sizes", "siz"), ("uses", "us"), ("corpus", "corpu"),
        ("class", "class"), ("bonus", "bonus"), ("basis", "basis"), ("bus", "bus"),
        ("wing", "wing"), ("going", "going"), ("doing", "doing"), ("walking", "walk"),
        ("running", "run"), ("stopping", "stop"), ("setting", "set"), ("calling", "call"),
        ("missed", "miss"), ("passed", "pass"), ("buzzed", "buzz"), ("agreed", "agre"),
        ("shrugged", "shrug"), ("strngthing", "strngthing"), ("éclairs", "éclairs"),
    ],
)  # fmt: skip
def test_stems_at_the_border(word: str, expected: str) -> None:
    """Short words, doubled letters, words without a vowel: where an ending goes and where not."""
    assert stem(word) == expected


@pytest.mark.parametrize(
    ("written", "normal"),
    [("網路", "網路"), ("網路 server", "網路 server"), ("ＡＢＣ", "ABC"), ("é", "é"), ("", "")],
)
def test_normal_form_without_lists(tmp_path: Path, written: str, normal: str) -> None:
    """With empty lists only the width of characters changes."""
    assert Tokenizer(tiny_lexicon(tmp_path)).normalise(written) == normal


def test_the_longest_regional_word_goes_first(tmp_path: Path) -> None:
    """Characters are simplified before words are replaced."""
    lexicon = tiny_lexicon(
        tmp_path, traditional="網\t网", regional="网路\t网络\n网路卡\t网卡\n网\tN"
    )
    assert Tokenizer(lexicon).normalise("網路卡 網路 網") == "网卡 网络 N"


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
