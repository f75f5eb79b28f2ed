"""The models of the chat: fitted alike twice, and better at messages left out than by chance."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from kb.chat.acts import ACTS
from kb.chat.check_answers import NONE
from kb.embed import embedded_model
from kb.knowledge.load import Knowledge
from kb.train.messages import (
    ANSWERS,
    MESSAGES,
    TOLD_CHARS,
    facts,
    fit_acts,
    judge_acts,
    judge_answers,
    read_answers,
    read_messages,
)
from kb.train.reports import load_reports

# Looked for and not imported: every process that collects the tests would pay for that.
pytestmark = pytest.mark.skipif(find_spec("sklearn") is None, reason="needs the extra fit")

FEW = 12  # every so many messages are fitted here


def test_every_act_has_messages_in_both_languages(data_dir: Path) -> None:
    """None stands for itself alone, and no message stands twice."""
    messages = read_messages(data_dir / MESSAGES)
    for act in ACTS:
        texts = [message.text for message in messages if message.act == act]
        chinese = sum(any("\u4e00" <= char <= "\u9fff" for char in text) for text in texts)
        assert 50 <= chinese <= len(texts) - 50, act
    assert len({message.text.casefold() for message in messages}) == len(messages)


def test_every_outcome_has_answers(data_dir: Path, knowledge: Knowledge) -> None:
    """Of each check that can be asked, in both languages."""
    answers = read_answers(data_dir / ANSWERS)
    written = {(answer.check, answer.option, answer.lang) for answer in answers}
    for cause in knowledge.causes:
        for check in cause.checks:
            for number in range(len(check.outcomes) + 1 if check.outcomes else 0):
                assert {(check.id, number, "zh"), (check.id, number, "en")} <= written


def test_the_same_messages_give_the_same_model(data_dir: Path) -> None:
    """Bit for bit."""
    messages = read_messages(data_dir / MESSAGES)[::FEW]
    embedder = embedded_model(data_dir)
    one, other = fit_acts(messages, embedder), fit_acts(messages, embedder)
    assert one.tokens == other.tokens
    assert one.rows.tobytes() == other.rows.tobytes()


def test_messages_left_out_are_read(data_dir: Path) -> None:
    """A twelfth of the messages teaches half of what another says; chance is one in thirty."""
    messages = read_messages(data_dir / MESSAGES)[::FEW]
    pairs = judge_acts(messages, [], embedded_model(data_dir), folds=2)
    assert sum(n for (act, read), n in pairs.items() if act == read) / pairs.total() > 0.3


def test_answers_left_out_are_read(data_dir: Path, knowledge: Knowledge) -> None:
    """What is taken for an outcome with confidence mostly is that outcome."""
    checks = [check for cause in knowledge.causes for check in cause.checks if check.outcomes]
    chosen = checks[:6]
    names = {check.id for check in chosen}
    answers = [one for one in read_answers(data_dir / ANSWERS) if one.check in names]
    found = judge_answers(answers, chosen, embedded_model(data_dir), folds=2)
    sure = [told == best for told, best, share in found if best != NONE and share >= 0.8]
    assert len(sure) > 50
    assert sum(sure) / len(sure) > 0.75


def test_facts_are_of_a_messages_length(data_dir: Path) -> None:
    """Sentences of reports and answers are messages that tell something; a yes is none."""
    told = facts(read_answers(data_dir / ANSWERS), load_reports(data_dir / "reports"))
    assert len(told) > 2000
    assert {one.act for one in told} == {"tell"}
    assert all(len(one.text) in TOLD_CHARS for one in told)
