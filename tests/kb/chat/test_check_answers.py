"""Answers to an open check in a person's own words, most of them never read while it was made."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kb.chat.chat import open_intents
from kb.chat.checks import find_check
from kb.chat.intents import IntentReader
from kb.chat.meaning import Meaning, Situation
from kb.chat.replies import TAKEN
from kb.diagnose.text_scorer import text_features
from kb.service import Service
from kb.types.knowledge import Bilingual, Check, CheckOutcome

# After the question in the key: what was said, and the outcome it reports (0: none).
SAID: Mapping[str, Mapping[str, int]] = {
    "collective-mismatch/tiny-eval": {
        "still hangs with just ten": 1,
        "passes now": 2,
        "只留 10 条还是卡住": 1,
        "10 条跑完了，没卡": 2,
        "why would the number matter?": 0,
        "we run on Slurm": 0,
    },
    "data-loading-stall/synthetic": {
        "random tensors hang just the same": 2,
        "我换成随机数据也卡": 2,
        "换成假数据就不卡了": 1,
        "no hang any more once I fed it random data": 1,
        "how do I do that": 0,
    },
    "network-config/one-node": {
        "one box is fine, two are not": 1,
        "单机没事，一上两机就卡": 1,
        "it hangs on a single machine too": 2,
        "单机同样卡": 2,
    },
}


@pytest.fixture(scope="module")
def intents(service: Service) -> IntentReader:
    """Understands with the shipped phrasebook and models."""
    return open_intents(service.settings.data, service.knowledge)


def outcome_of(meaning: Meaning) -> int:
    """The outcome a message was taken for; 0 for none."""
    return meaning.check_result.outcome if meaning.check_result else 0


def test_most_answers_are_taken_as_they_were_meant(intents: IntentReader, service: Service) -> None:
    """Two in three at least, and hardly one for the opposite."""
    right, opposite = 0, []
    for name, said in SAID.items():
        check = find_check(service.knowledge, name)
        assert check is not None
        situation = Situation(has_incident=True, open_checks=(check,), just_asked=True)
        for text, outcome in said.items():
            taken = outcome_of(intents.read(text, situation))
            right += taken == outcome
            if taken not in (0, outcome):
                opposite.append((text, taken))
    assert right >= 10, right
    assert len(opposite) <= 1, opposite


def test_the_words_of_an_option_are_that_option(intents: IntentReader, service: Service) -> None:
    """As a button says them, in either language."""
    for cause in service.knowledge.causes:
        for check in cause.checks:
            situation = Situation(has_incident=True, open_checks=(check,), just_asked=True)
            for number, outcome in enumerate(check.outcomes, start=1):
                for text in (outcome.observation.zh, outcome.observation.en):
                    assert outcome_of(intents.read(text, situation)) == number, text


def test_a_check_nobody_wrote_answers_for_is_read_by_its_own_words(intents: IntentReader) -> None:
    """Such as one of a team's own."""
    seen = Bilingual(zh="quobyte 客户端报错", en="the quobyte client reports an error")
    none = Bilingual(zh="没有报错", en="no error is reported")
    check = Check(
        id="team/quobyte",
        command="qmgmt",
        tells=Bilingual(zh="存储是否报错", en="whether the storage reports errors"),
        outcomes=(
            CheckOutcome(observation=seen, trouble=True),
            CheckOutcome(observation=none, trouble=False),
        ),
    )
    result = intents.answer_to("the quobyte client reports an error there", [check], least=TAKEN)
    assert result is not None
    assert result.outcome == 1


def test_features_are_bounded() -> None:
    """A message of any length costs as much as a long sentence, hostile ones too."""
    assert len(list(text_features("why " * 200_000))) < 5000
    assert list(text_features("\x00\ud800")) == ["<always>", "^ $"]
