"""Figures of statements: exact sentences, precision and recall, and what was read wrongly."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kb.diagnose.statements import TopicStatement
from kb.errors import DataError
from kb.evaluation.statements import (
    LabelledSentence,
    judge_sentences,
    load_sentences,
    misses,
    statement_figures,
)
from kb.service import Service
from kb.types.vocabulary import Polarity

RIGHT = LabelledSentence(lang="en", text="no Xid", statements=(("gpu_hardware", Polarity.DENIED),))
WRONG = LabelledSentence(
    lang="zh", text="防火墙已经关了", statements=(("network", Polarity.IN_ORDER),)
)
EMPTY = LabelledSentence(lang="en", text="hello", statements=())


Read = Callable[[str], tuple[TopicStatement, ...]]


@pytest.fixture(scope="module")
def reader(shipped: Service) -> Read:
    """What reads a person's words, with the shipped topics."""
    return shipped.engine.statements


def test_a_sentence_is_right_when_all_its_statements_are(reader: Read) -> None:
    """One too many or one missing is as wrong as all."""
    judged = judge_sentences(reader, (RIGHT, WRONG, EMPTY))
    assert [item.is_right for item in judged] == [True, False, True]
    assert misses(judged) == {"防火墙已经关了": "-network in_order, +firewall in_order"}


def test_the_figures_are_shares_of_sentences_and_of_statements(reader: Read) -> None:
    """By language and by polarity; a share of nothing is none."""
    figures = statement_figures(judge_sentences(reader, (RIGHT, WRONG, EMPTY)))
    assert figures["sentences with all statements right"] == {
        "all": "0.667 of 3",
        "en": "1.000 of 2",
        "zh": "0.000 of 1",
    }
    rows = figures["statements"]
    assert rows["denied"] == "precision 1.000, recall 1.000 of 1"
    assert rows["in_order"] == "precision 0.000, recall 0.000 of 1"
    assert rows["helped"] == "precision none, recall none of 0"
    assert rows["all"] == "precision 0.500, recall 0.500 of 2"


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    """File and line are in the message; a missing file is none."""
    path = tmp_path / "some.jsonl"
    path.write_text('{"lang": "en", "text": "a", "statements": []}\n{"lang": "fr"}\n')
    with pytest.raises(DataError, match=r"some\.jsonl, line 2"):
        load_sentences(path)
    with pytest.raises(DataError):
        load_sentences(tmp_path / "none.jsonl")
