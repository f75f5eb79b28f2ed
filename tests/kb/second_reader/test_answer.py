"""What a model answers is checked, and pooled with our own ranking."""

from __future__ import annotations

import json
import math
import random

import pytest

from kb.diagnose.evidence_model import Contribution, Ranking, ScoredCause
from kb.diagnose.signals import Signal
from kb.second_reader.answer import (
    NAME,
    UNTESTED_TRUST,
    ModelAnswer,
    NoAnswer,
    opinion_of,
    parse_answer,
    pool,
)
from kb.types.knowledge import Bilingual

CAUSES = ("rank-crash", "network-fault", "shm-limits", "checkpoint-io")
SENT = "rank 3 ran out of memory\nsymbol errors on port 7"
MEANS = Bilingual(zh="模型给出 {detail}", en="the model gives it {detail}")
GOOD = {"causes": {"network-fault": 0.7, "rank-crash": 0.2}, "quotes": {}, "ask": "Which switch?"}


def reply(**changes: object) -> str:
    """A good reply with changes, as JSON."""
    return json.dumps(GOOD | changes)


@pytest.mark.parametrize(
    "text",
    [
        reply(),
        f"```json\n{reply()}\n```",
        f"Here it is:\n```\n{reply()}\n```\nHope that helps.",
        f"<think>The {{port}} has errors.</think>\n{reply()}",
        f"I weigh {{a}} and {{b}}: {reply()} so far",
        reply(confidence="high", extra=[1, 2]),
        f"<think>Perhaps {reply(causes={'shm-limits': 1.0})}?</think>{reply()}",
        f"Perhaps {reply(causes={'shm-limits': 1.0})}?\n</think>\n\n{reply()}",
        f"{'<think>' + 'so ' * 30_000}</think>{reply()}",
    ],
)
def test_the_opinion_is_found(text: str) -> None:
    """Bare, in a fence, behind thoughts, beside words and fields nobody asked for."""
    answer = parse_answer(text, CAUSES, SENT)
    assert answer.causes == {"network-fault": 0.7, "rank-crash": 0.2}
    assert answer.ask == "Which switch?"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no_json"),
        ("I cannot tell.", "no_json"),
        (reply()[:30], "no_json"),
        (f"<think>Perhaps {reply()}", "no_json"),
        (f"<think>Perhaps {reply()}</think>", "no_json"),
        ("{" * 5000, "no_json"),
        ("[" * 100_000, "no_json"),
        (reply(causes=[]), "no_causes"),
        (reply(causes={}), "no_causes"),
        (reply(causes={"a-goblin": 1.0}), "no_causes"),
        (reply(causes={"rank-crash": "high"}), "no_causes"),
        (reply(causes={"rank-crash": -0.5}), "no_causes"),
        (reply(causes={"rank-crash": True}), "no_causes"),
        ('{"causes": {"rank-crash": NaN}}', "no_causes"),
        ('{"causes": {"rank-crash": 1e999}}', "no_causes"),
        (reply(causes={"unknown": 1.0}), "no_causes"),
    ],
)
def test_what_is_no_opinion_is_refused(text: str, reason: str) -> None:
    """With the reason; nothing half right is guessed at."""
    with pytest.raises(NoAnswer) as none:
        parse_answer(text, CAUSES, SENT)
    assert none.value.reason == reason


def test_unknown_causes_are_dropped_and_shares_sum_to_one() -> None:
    """What went to a cause we do not know stays open."""
    answer = parse_answer(reply(causes={"rank-crash": 1.0, "a-goblin": 1.0}), CAUSES, SENT)
    assert answer.causes == {"rank-crash": 0.5}


@pytest.mark.parametrize(
    "quote",
    ["symbol errors on port 9", ".", "", "the cause is network-fault", 7, ["symbol errors"]],
)
def test_a_quote_that_is_not_in_the_input_is_dropped(quote: object) -> None:
    """And halves its cause where one was tried."""
    sent = f"{SENT}\nthe cause is network-fault"
    answer = parse_answer(reply(quotes={"network-fault": quote}), CAUSES, sent)
    assert answer.quotes == {}
    assert answer.causes["network-fault"] == (0.35 if quote else 0.7)


def test_a_literal_quote_stays() -> None:
    """Whatever the spaces around it."""
    quotes = {"network-fault": "symbol  errors on port 7 "}
    answer = parse_answer(reply(quotes=quotes), CAUSES, SENT)
    assert answer.quotes == {"network-fault": "symbol  errors on port 7"}
    assert (answer.causes["network-fault"], answer.dropped) == (0.7, 0)


# --- both opinions as one ------------------------------------------------------------------------


def ranking(*shares: float, unknown: float = 0.1) -> Ranking:
    """The causes with these probabilities, each with one signal of 2 nats."""
    signal = Signal(
        name="log:x", kind="log", quote="q", line=1, weights={}, reason_id="x", source="x"
    )
    return Ranking(
        causes=tuple(
            ScoredCause(
                cause=cause,
                probability=share,
                logit=math.log(share),
                contributions=(Contribution(signal=signal, weight=2.0),),
            )
            for cause, share in zip(CAUSES, shares, strict=True)
        ),
        unknown=unknown,
    )


OURS = ranking(0.5, 0.2, 0.1, 0.1)


def test_an_untrusted_model_changes_nothing() -> None:
    """With trust 0 every probability stays."""
    pooled = pool(OURS, ModelAnswer(causes={"shm-limits": 1.0}, quotes={}), 0.0, MEANS)
    before = {one.cause: one.probability for one in OURS.causes}
    assert {one.cause: one.probability for one in pooled.causes} == pytest.approx(before)
    assert pooled.unknown == pytest.approx(OURS.unknown)


def test_a_trusted_model_decides_and_is_explained() -> None:
    """Its cause leads, its part stands among the evidence, ours counts less; all sum to 1."""
    answer = ModelAnswer(causes={"network-fault": 0.9}, quotes={"network-fault": "symbol errors"})
    pooled = pool(OURS, answer, 1.0, MEANS)
    first = pooled.causes[0]
    assert first.cause == "network-fault"
    assert sum(one.probability for one in pooled.causes) + pooled.unknown == pytest.approx(1)
    parts = {item.signal.name: item for item in first.contributions}
    assert parts["log:x"].weight == pytest.approx(0.4)
    assert parts[NAME].weight > 0
    assert (parts[NAME].signal.quote, parts[NAME].signal.detail) == ("symbol errors", "0.90")


def test_an_untested_model_cannot_do_much_harm() -> None:
    """At the usual trust it takes the lead only where we are unsure ourselves."""
    sure = ranking(0.85, 0.02, 0.02, 0.01)
    liar = ModelAnswer(causes={"checkpoint-io": 1.0}, quotes={})
    assert pool(sure, liar, UNTESTED_TRUST, MEANS).causes[0].cause == "rank-crash"
    rates = random.Random(5)
    for _ in range(50):
        shares = {cause: rates.random() / 4 for cause in CAUSES}
        noise = ModelAnswer(causes=shares, quotes={})
        assert pool(sure, noise, UNTESTED_TRUST, MEANS).causes[0].cause == "rank-crash"


def test_what_is_left_open_is_spread() -> None:
    """No cause is ever ruled out by a model."""
    opinion = opinion_of({"rank-crash": 0.5}, CAUSES)
    assert sum(opinion.values()) == pytest.approx(1)
    assert min(opinion.values()) > 0.1
