"""Statements: topics are named in both languages, and each sentence says how it means them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pytest
import re2

from kb.diagnose.statements import MAX_QUOTE, StatementReader, TopicStatement, distinct
from kb.errors import DataError
from kb.evaluation.statements import SENTENCES, judge_sentences, load_sentences, misses
from kb.knowledge.load import Knowledge
from kb.settings import shipped_data
from kb.text.polarity import PolarityReader
from kb.types.knowledge import Bilingual, Topic
from kb.types.vocabulary import Polarity

# Measured: 492 of 496. The floor is a dozen sentences lower.
RIGHT = 480
EACH_POLARITY = 10  # labelled statements at least
TITLE = Bilingual(zh="某物", en="a thing")


Read = Callable[[str], tuple[TopicStatement, ...]]


def reading(topics: Sequence[Topic], knowledge: Knowledge) -> Read:
    """What reads statements about `topics` with the shipped words of polarity."""
    statements, polarity = StatementReader(topics), PolarityReader(knowledge.polarity)
    return lambda text: distinct(statements.read(polarity.read(text)))


@pytest.fixture(scope="module")
def statements(knowledge: Knowledge) -> Read:
    """The shipped topics."""
    return reading(knowledge.topics, knowledge)


def read(statements: Read, text: str) -> list[tuple[str, str]]:
    """Topic and polarity of every statement of `text`."""
    return [(item.topic.id, str(item.polarity)) for item in statements(text)]


def test_the_labelled_sentences_are_read_right(statements: Read) -> None:
    """Every statement of a sentence, and none besides, in all but a few."""
    judged = judge_sentences(statements, load_sentences(shipped_data() / "golden" / SENTENCES))
    right = sum(item.is_right for item in judged)
    assert right >= RIGHT, misses(judged)


def test_the_labelled_sentences_cover_topics_polarities_and_languages(
    knowledge: Knowledge,
) -> None:
    """Every topic in both languages, every polarity often, half of the sentences Chinese."""
    sentences = load_sentences(shipped_data() / "golden" / SENTENCES)
    topics = {topic.id for topic in knowledge.topics}
    for language in ("zh", "en"):
        own = [item for item in sentences if item.lang == language]
        assert abs(len(own) - len(sentences) / 2) < 0.02 * len(sentences)
        assert {topic for item in own for topic, _ in item.statements} == topics
    for polarity in Polarity:
        count = sum(claim[1] is polarity for item in sentences for claim in item.statements)
        assert count >= EACH_POLARITY, polarity
    assert len({item.text for item in sentences}) == len(sentences)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The firewall is off and all ports are open", [("firewall", "in_order")]),
        ("Network is fine: ib_write_bw at full speed", [("network", "in_order")]),
        ("DistributedSampler with drop_last=True", [("data", "in_order")]),
        (
            "tried increasing the timeout to 2 hours, same result",
            [("timeout_value", "tried_in_vain")],
        ),
        ("防火墙已经关了", [("firewall", "in_order")]),
        ("works with 8 GPUs but not with 16", [("scale", "trouble")]),
        ("I upgraded the RAM, nothing changed", [("host_memory", "tried_in_vain")]),
        ("No `NVRM: Xid`, no `GPU has fallen off the bus`", [("gpu_hardware", "denied")]),
        ("It hangs at step 10.", []),
        ("thanks a lot!", []),
    ],
)
def test_what_a_sentence_says(statements: Read, text: str, expected: list[tuple[str, str]]) -> None:
    """The sentences by which the reader was asked for."""
    assert read(statements, text) == expected


def test_a_statement_has_its_sentence_and_its_line(statements: Read) -> None:
    """The quote is the sentence alone; lines count from 1."""
    text = "It hangs.\nWe use 4 nodes. The firewall is off! Nothing else."
    (statement,) = statements(text)
    assert (statement.quote, statement.line) == ("The firewall is off", 2)
    assert text[statement.start : statement.end] == "firewall is off"
    (long,) = statements(f"The firewall is off {'and so on ' * 40}")
    assert len(long.quote) == MAX_QUOTE


def test_a_general_name_counts_only_where_nothing_else_is_named(knowledge: Knowledge) -> None:
    """The words "the card" say nothing of the card where a fan is spoken of."""
    topics = (
        Topic(id="card", title=TITLE, names=("graphics",), generic=("card",)),
        Topic(id="fan", title=TITLE, names=("fan",)),
    )
    reader = reading(topics, knowledge)
    assert read(reader, "the card is broken") == [("card", "trouble")]
    assert read(reader, "the fan of the card is broken") == [("fan", "trouble")]


def test_an_expression_that_re2_refuses_is_named() -> None:
    """The message names file, topic and standing."""
    topic = Topic(id="card", title=TITLE, names=("card(?= is)",))
    with pytest.raises(DataError, match=r"topics\.yaml: name of card"):
        StatementReader((topic,))


def test_every_expression_is_one_that_re2_takes(knowledge: Knowledge) -> None:
    """And none matches the empty text."""
    options = re2.Options()
    options.case_sensitive = False
    for topic in knowledge.topics:
        named = (topic.names, topic.generic, topic.settings, topic.troubles, topic.sounds)
        for expression in (item for items in named for item in items):
            assert not re2.compile(expression, options).search(""), expression


def test_what_is_in_order_speaks_for_nothing(knowledge: Knowledge) -> None:
    """Weights of a topic that is well are negative, those of trouble and cures positive."""
    for topic in knowledge.topics:
        assert all(weight < 0 for weight in topic.in_order.values()), topic.id
        assert all(weight > 0 for weight in (*topic.trouble.values(), *topic.cures.values()))


@pytest.mark.parametrize("word", ["network ", "no Xid, ", "防火墙、", "GPU is fine "])
def test_statements_are_read_in_linear_time(statements: Read, word: str) -> None:
    """Ten times the text takes no more than some ten times as long."""

    def seconds(count: int) -> float:
        text = word * (count // len(word))
        started = time.perf_counter()
        statements(text)
        return time.perf_counter() - started

    statements(word)
    few, many = (min(seconds(size) for _ in range(3)) for size in (1_600, 16_000))
    assert many < 60 * few + 0.05
