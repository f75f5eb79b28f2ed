"""The fitted models of statements: what they hear beside the rules, and what they leave alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kb.diagnose.linear_model import LinearModel, load_model
from kb.diagnose.statement_model import (
    POLARITIES,
    TOPICS,
    Naming,
    StatementModel,
    polarity_features,
    topic_features,
)
from kb.diagnose.statements import MAX_SENTENCES, StatementReader
from kb.diagnose.text_scorer import TextScorer
from kb.embed import embedded_model
from kb.errors import DataError
from kb.knowledge.load import Knowledge
from kb.text.polarity import PolarityReader
from kb.text.tokenizer import default_tokenizer
from kb.types.vocabulary import Polarity

Read = Callable[[str], list[tuple[str, str]]]


@pytest.fixture(scope="module")
def model(data_dir: Path) -> StatementModel:
    """The shipped models."""
    return StatementModel.load(data_dir, embedded_model(data_dir), default_tokenizer().normalise)


@pytest.fixture(scope="module")
def reader(model: StatementModel, knowledge: Knowledge) -> StatementReader:
    """What reads statements with them."""
    return StatementReader(knowledge.topics, model)


@pytest.fixture(scope="module")
def read(reader: StatementReader, knowledge: Knowledge) -> Read:
    """Topic and polarity of every statement of a text."""
    polarity = PolarityReader(knowledge.polarity)
    return lambda text: [
        (item.topic.id, str(item.polarity)) for item in reader.read(polarity.read(text))
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The firewall is off and all ports are open", ("firewall", "in_order")),
        (
            "tried increasing the timeout to 2 hours, same result",
            ("timeout_value", "tried_in_vain"),
        ),
        ("防火墙已经关了", ("firewall", "in_order")),
    ],
)
def test_what_a_sentence_states(read: Read, text: str, expected: tuple[str, str]) -> None:
    """Known sentences are read as before."""
    assert expected in read(text)


@pytest.mark.parametrize(
    "text",
    ["", "  \n ", "ok", "Thanks a lot!", "好的", "We launch with torchrun --nnodes 2.", "\x00"],
)
def test_what_states_nothing(read: Read, text: str) -> None:
    """Talk, blanks and a description of the set-up."""
    assert read(text) == []


def hearing(word: str, topic: str, polarity: str, data: Path) -> StatementModel:
    """Models that hear one statement in one word, and nothing else."""
    embedder, normalise = embedded_model(data), default_tokenizer().normalise
    scorers = []
    for heard, other in ((topic, "shm"), (polarity, "denied")):
        rows = np.zeros((1 + embedder.dimension, 2), dtype=np.float32)
        rows[0] = (9.0, -9.0)
        model = LinearModel(
            causes=(heard, other), tokens=(word,), idf=np.ones(1, dtype=np.float32), rows=rows
        )
        scorers.append(TextScorer(model, embedder, normalise, TOPICS))
    return StatementModel(*scorers, normalise)


def test_a_statement_without_known_words_has_no_place(data_dir: Path, knowledge: Knowledge) -> None:
    """It overlaps no cue: it stands before its sentence, and quotes it."""
    reader = StatementReader(knowledge.topics, hearing("spotless", "network", "in_order", data_dir))
    text = "It hangs.\nthe other team swears its side is spotless"
    (statement,) = reader.read(PolarityReader(knowledge.polarity).read(text))
    assert statement.start == statement.end == statement.left
    assert (statement.topic.id, statement.polarity) == ("network", Polarity.IN_ORDER)
    assert (statement.quote, statement.line) == (text.split("\n")[1], 2)


def test_a_name_of_which_the_rules_hear_nothing_says_nothing(
    data_dir: Path, knowledge: Knowledge
) -> None:
    """A description of the set-up names topics; the model alone makes no statement of a name."""
    reader = StatementReader(knowledge.topics, hearing("ours", "network", "trouble", data_dir))
    polarity = PolarityReader(knowledge.polarity)
    assert [item.topic.id for item in reader.read(polarity.read("that fabric is ours"))] == []
    assert [item.topic.id for item in reader.read(polarity.read("that thing is ours"))] == [
        "network"
    ]


def test_features_tell_what_the_rules_found() -> None:
    """The topic named, what the rules make of it, and the words of its clause."""
    namings = {"disk": Naming(start=4, end=8, standing="name", polarity="trouble")}
    text = "the disk is full, the network is fine"
    assert {"N:disk", "R:disk:True"} <= set(topic_features(text, namings))
    features = set(polarity_features(text, "disk", namings))
    assert {"T:disk", "R:trouble", "c:full", "m:disk", "full"} <= features
    assert "c:fine" not in features
    assert "R:absent" in set(polarity_features(text, "network", namings))


def test_a_long_text_is_read_in_bounded_time(reader: StatementReader, knowledge: Knowledge) -> None:
    """As many sentences as count, however many there are."""
    text = "the network is fine. " * 700
    start = time.perf_counter()
    found = reader.read(PolarityReader(knowledge.polarity).read(text))
    assert len(found) <= MAX_SENTENCES
    assert time.perf_counter() - start < 5


def test_a_model_of_other_polarities_is_refused(data_dir: Path) -> None:
    """The message says what to do."""
    embedder, normalise = embedded_model(data_dir), default_tokenizer().normalise
    topics, polarities = (load_model(data_dir / folder) for folder in (TOPICS, POLARITIES))
    other = replace(polarities, causes=("odd", *polarities.causes[1:]))
    scorers = [TextScorer(one, embedder, normalise, TOPICS) for one in (topics, other)]
    with pytest.raises(DataError, match="odd"):
        StatementModel(*scorers, normalise)
    assert set(polarities.causes) == {str(one) for one in Polarity}
