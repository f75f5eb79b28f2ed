"""Which of the words two texts share are told: names of the field, no words of every text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kb.service import Service
from kb.settings import Settings
from kb.text.salient_terms import SalientTerms
from kb.text.tokenizer import default_tokenizer


@pytest.fixture(scope="module")
def terms(data_dir: Path) -> SalientTerms:
    """The shipped lists."""
    return SalientTerms(data_dir / "lexicon")


@pytest.mark.parametrize(
    "text",
    [
        "either use completed cause because while already didn't would",
        "always enabled, specified, reduced; it happened again",
        "可以 已经 然后 或者 之间 没有 因为 时候 突然 一起",
        "timeout hang stuck rank 3 GPU NCCL 超时 卡住 训练",
        "200 12 30 0.5",
        "e.g. i.e. v0",
    ],
    ids=["function words", "stems", "Chinese function words", "of every hang", "numbers", "short"],
)
def test_words_of_any_text_are_not_told(terms: SalientTerms, text: str) -> None:
    """Function words, words every hang has, bare numbers and abbreviations say nothing."""
    assert [terms.word(token) for token in default_tokenizer().tokens(text)].count("") == len(
        default_tokenizer().tokens(text)
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("memlock was too low", {"memlock"}),
        ("three checkpoints", {"checkpoint"}),
        ("NCCL_IB_GID_INDEX on mlx5_0", {"nccl_ib_gid_index", "mlx5_0", "gid", "mlx5", "mlx"}),
        ("8x A100 with qwen2.5", {"a100", "qwen2"}),
        ("socket.cpp:12", {"socket.cpp", "socket"}),
        ("共享内存不足", {"共享内存"}),
    ],
    ids=["identifier", "plural", "setting", "hardware", "file", "Chinese"],
)
def test_names_of_the_field_are_told(terms: SalientTerms, text: str, told: set[str]) -> None:
    """Terms, settings, files, models and cards are told, in whole words rather than stems."""
    assert {terms.word(token) for token in default_tokenizer().tokens(text)} - {""} == told


def test_a_search_tells_names_only(built_home: Callable[[], Path]) -> None:
    """The service's reasons hold what the lists tell, or the name of the entry's project."""
    from kb.bootstrap import open_service

    service: Service = open_service(Settings(home=built_home()))
    try:
        found = service.search(
            "either rank completed the checkpoint because of memlock; a wenet job uses it already"
        )
        told = {
            reason.partition(":")[2]
            for hit in found.hits
            for reason in hit.why
            if reason.startswith(("term:", "translation:"))
        }
    finally:
        service.close()
    assert {"checkpoint", "wenet"} <= told
    assert not told & {"either", "completed", "complete", "because", "use", "already", "job"}
