"""The learned reader: shares of sentences add up, and a damaged model is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kb.diagnose.linear_model import IDF, MANIFEST, ROWS, LinearModel, load_model, save_model
from kb.diagnose.reader import (
    FEW_CHARS,
    FEW_WORDS,
    FLOOR,
    MEANING,
    QUOTED,
    Reader,
    SentenceShare,
    describe,
    reader_signals,
)
from kb.diagnose.signals import Signal
from kb.errors import DataError
from kb.service import Service
from kb.text.tokenizer import default_tokenizer


class Lengths:
    """An embedding of two numbers: texts with an e, and the others."""

    name = "lengths"
    dimension = 2

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One of two unit vectors a text."""
        rows = [[1.0, 0.0] if "e" in text else [0.0, 1.0] for text in texts]
        return np.array(rows, dtype=np.float32).reshape(-1, 2)

    encode_queries = encode_passages


MODEL = LinearModel(
    causes=("disk", "network"),
    tokens=("disk", "switch"),
    idf=np.array([3.0, 4.0], dtype=np.float32),
    rows=np.array([[4.0, 0.0], [0.0, 4.0], [0.5, 0.0], [0.0, 0.0]], dtype=np.float32),
)


def reader(model: LinearModel = MODEL) -> Reader:
    """A reader of two words."""
    return Reader(model, Lengths(), default_tokenizer())  # type: ignore[arg-type]


def test_a_sentence_has_its_share() -> None:
    """Words weigh by their idf over the length of all, meaning by the sentence's part of it.

    Few words weigh less than many.
    """
    first, second = reader().read("My disk.\nA switch dies.")
    sizes = np.sqrt(len("My disk")), np.sqrt(len("A switch dies"))
    length = np.hypot(*sizes)
    chars = len("My disk") + len("A switch dies")
    norm = np.hypot(5.0, FEW_WORDS)
    disk, switch = 3 / norm * 4.0, 4 / norm * 4.0
    meaning = MEANING * 0.5 * sizes[1] / length * np.sqrt(chars / (chars + FEW_CHARS))
    assert (first.text, first.line, second.line) == ("My disk", 1, 2)
    assert first.weights["disk"] == pytest.approx(disk / 2 - FLOOR, abs=1e-5)
    assert first.weights["network"] == pytest.approx(-(disk / 2 - FLOOR), abs=1e-5)
    assert second.weights["disk"] == pytest.approx((meaning - switch) / 2 + FLOOR, abs=1e-5)


def test_what_any_sentence_says_by_chance_is_nothing() -> None:
    """A share no larger than the floor is none; a larger one loses as much."""
    weak = replace(MODEL, rows=MODEL.rows / 10)
    assert reader(weak).read("My disk.") == ()
    (whole,) = reader().read("My disk.")
    assert max(whole.weights.values()) == pytest.approx(
        3 / np.hypot(3.0, FEW_WORDS) * 4.0 / 2 - FLOOR
    )


def test_a_word_counts_where_it_stands_first() -> None:
    """Saying it again adds nothing."""
    described = describe("disk. disk switch", Lengths(), default_tokenizer())  # type: ignore[arg-type]
    assert described.tokens == (("disk",), ("switch",))


@pytest.mark.parametrize("words", ["", " \n ", "Nothing it knows.", "。！"])
def test_nothing_known_says_nothing(words: str) -> None:
    """Without a known word there is no share, whatever the embedding says."""
    assert reader().read(words) == ()
    assert reader(LinearModel.empty(("disk", "network"), 2)).read("My disk.") == ()


def test_signals_add_up_to_the_whole() -> None:
    """The sentences that say most are quoted with their line, the others are one signal."""
    sentences = ["The disk is slow", "Eek", "The switch dies", "We see it here", "Help me", "E e"]
    shares = [
        SentenceShare(text=sentence, line=line, weights={"disk": weight, "network": -weight})
        for line, (sentence, weight) in enumerate(
            zip(sentences, (2.0, 0.1, -3.0, 0.4, 0.2, 1.0), strict=True), start=1
        )
    ]
    signals = reader_signals(shares, [("a.log", 10 * line) for line in range(1, 7)])
    assert len(shares) > QUOTED
    assert len(signals) == QUOTED + 1
    assert signals[0].quote == "The switch dies"
    assert (signals[0].line, signals[0].file) == (30, "a.log")
    assert signals[-1].name == "reader:rest"
    for cause in ("disk", "network"):
        whole = sum(share.weights[cause] for share in shares)
        assert sum(signal.weights[cause] for signal in signals) == pytest.approx(whole)
    assert reader_signals(()) == []


def test_a_model_is_written_and_read(tmp_path: Path) -> None:
    """In half precision."""
    save_model(tmp_path, MODEL)
    again = load_model(tmp_path)
    assert (again.causes, again.tokens) == (MODEL.causes, MODEL.tokens)
    assert np.array_equal(again.rows, MODEL.rows)
    assert np.array_equal(again.idf, MODEL.idf)


@pytest.mark.parametrize("name", [MANIFEST, ROWS, IDF])
def test_a_damaged_model_is_refused(tmp_path: Path, name: str) -> None:
    """Missing, cut or foreign files are named with what to do."""
    save_model(tmp_path, MODEL)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"test_"):
        load_model(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(DataError, match=name):
        load_model(tmp_path)


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    """Rows of another vocabulary, and a model of another embedding."""
    save_model(tmp_path, MODEL)
    np.save(tmp_path / IDF, np.zeros(5, dtype=np.float16))
    with pytest.raises(DataError, match="do not belong together"):
        load_model(tmp_path)
    with pytest.raises(DataError, match="another embedding"):
        reader(LinearModel.empty(("disk", "network"), 7))


PASTE = (
    "Two nodes.\nThe symbol error counters of one port grow, and a cable was replaced.\n"
    "[rank1]:[E ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=64, NumelOut=64, "
    "Timeout(ms)=600000) ran for 600012 milliseconds before timing out."
)


def test_its_sentences_are_evidence(shipped: Service) -> None:
    """With their quotes and lines."""
    causes = shipped.diagnose_text(PASTE).causes
    quoted = [e for c in causes for e in c.evidence if e.kind == "reader" and e.quote]
    assert quoted
    assert all(item.quote in PASTE.split("\n")[item.line - 1] for item in quoted)


def of_reader(signals: Sequence[Signal]) -> dict[str, Mapping[str, float]]:
    """What the reader says, by sentence."""
    return {item.quote: item.weights for item in signals if item.kind == "reader"}


def test_what_is_added_in_a_conversation_is_no_description(shipped: Service) -> None:
    """A remark answers something; the reader has learned from reports."""
    reading = shipped.read_text(PASTE)
    remark = "The dataset has uneven shards and the last batch of rank 3 is empty.\n"
    added = replace(reading, words=remark + reading.words, word_places=(), remark_chars=len(remark))
    assert of_reader(shipped.engine.signals(added)) == of_reader(shipped.engine.signals(reading))
    whole = replace(added, remark_chars=0)
    assert of_reader(shipped.engine.signals(whole)) != of_reader(shipped.engine.signals(reading))


def test_a_few_words_are_no_description(shipped: Service) -> None:
    """Whoever says so little has described nothing."""
    assert of_reader(shipped.engine.signals(shipped.read_text("Hangs while saving."))) == {}


def test_what_is_only_ruled_out_is_not_read(shipped: Service) -> None:
    """“The network is fine” has the words of a network fault."""
    paste = f"{PASTE}\nAll switches and cables were checked, the network is fine."
    read = of_reader(shipped.engine.signals(shipped.read_text(paste)))
    assert not any("switches" in quote for quote in read)
    assert read.keys() == of_reader(shipped.engine.signals(shipped.read_text(PASTE))).keys()
