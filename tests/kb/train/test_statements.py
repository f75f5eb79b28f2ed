"""The models of what sentences state: fitted alike twice, and better than the rules alone."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from kb.embed import embedded_model
from kb.evaluation.statements import LabelledSentence, judge_sentences, load_sentences
from kb.knowledge.load import Knowledge
from kb.service import Service
from kb.train.statements import FOLDER, ExampleMaker, explanations, fit, judge
from kb.types.vocabulary import Polarity

# Looked for and not imported: every process that collects the tests would pay for that.
pytestmark = pytest.mark.skipif(find_spec("sklearn") is None, reason="needs the extra fit")

FEW = 6  # every so many sentences are fitted here
GAIN = 0.06  # of the unseen sentences, at least
UNSEEN = "statements_unseen.jsonl"


@pytest.fixture(scope="module")
def labelled(data_dir: Path) -> tuple[LabelledSentence, ...]:
    """The sentences to learn from."""
    paths = sorted((data_dir / FOLDER).glob("*.jsonl"))
    return tuple(item for path in paths for item in load_sentences(path))


@pytest.fixture(scope="module")
def examples(data_dir: Path, knowledge: Knowledge) -> ExampleMaker:
    """What makes examples of them."""
    return ExampleMaker(knowledge, embedded_model(data_dir))


def test_the_sentences_are_of_known_topics(
    labelled: tuple[LabelledSentence, ...], knowledge: Knowledge
) -> None:
    """Every topic and polarity in both languages, no sentence twice."""
    topics = {topic.id for topic in knowledge.topics}
    for language in ("zh", "en"):
        own = [claim for item in labelled if item.lang == language for claim in item.statements]
        assert {topic for topic, _ in own} == topics
        assert {polarity for _, polarity in own} == set(Polarity)
    assert len({item.text for item in labelled}) == len(labelled)


def test_the_unseen_sentences_stay_unseen(
    labelled: tuple[LabelledSentence, ...], data_dir: Path
) -> None:
    """None of those that judge is among those that are learned from."""
    judging = load_sentences(data_dir / "golden" / UNSEEN)
    assert not {item.text for item in judging} & {item.text for item in labelled}


def test_the_same_sentences_give_the_same_models(
    examples: ExampleMaker, labelled: tuple[LabelledSentence, ...]
) -> None:
    """Bit for bit."""
    for one, other in zip(*(fit(examples, labelled[::FEW]) for _ in range(2)), strict=True):
        assert one.tokens == other.tokens
        assert one.rows.tobytes() == other.rows.tobytes()


def test_sentences_are_judged_left_out(
    examples: ExampleMaker, labelled: tuple[LabelledSentence, ...], knowledge: Knowledge
) -> None:
    """Each once by models fitted without it, and by the rules alone."""
    few = labelled[: 40 * FEW : FEW]
    read = judge(examples, explanations(knowledge), few, 2)
    for judged in read.values():
        assert {item.sentence for item in judged} == set(few)
    by_rules = {item.sentence: item.claims for item in read["rules alone"]}
    assert any(item.claims != by_rules[item.sentence] for item in read["fitted"])


def test_unseen_sentences_are_read_better_than_by_rules(
    shipped: Service, examples: ExampleMaker, data_dir: Path
) -> None:
    """The shipped models hear what nobody wrote an expression for; .640 beside .527."""
    judging = load_sentences(data_dir / "golden" / UNSEEN)
    fitted, rules = (
        sum(item.is_right for item in judge_sentences(read, judging)) / len(judging)
        for read in (shipped.engine.statements, examples.by_rules)
    )
    assert fitted >= rules + GAIN


def test_what_explains_states_nothing(knowledge: Knowledge) -> None:
    """Sentences of notes without their commands, in both languages."""
    found = explanations(knowledge)
    assert {item.lang for item in found} == {"zh", "en"}
    assert not any(item.statements or "```" in item.text for item in found)
