"""What a language model answered: checked against the input, and pooled with our own ranking.

The model is not believed on its word. Causes it names that we do not know are dropped, so are
probabilities that are none; a quote that is not literally in what was sent is dropped and halves
its cause, and so is one that talks about our causes, which a log of a program does not.

Both opinions are pooled by a product of powers (Genest and Zidek 1986,
https://doi.org/10.1214/ss/1177013825): the more a model is trusted, the more its opinion and the
less ours counts. How much that is was fitted on an expert's blind answers to 230 threads.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from kb.diagnose.evidence_model import Contribution, Ranking, ScoredCause
from kb.diagnose.signals import Signal
from kb.types.knowledge import Bilingual
from kb.types.vocabulary import UNKNOWN

NAME = "language_model"
OPEN = 0.2  # share of the model's answer that is spread evenly: it may be wrong about everything
WEIGHT = 1.2  # power of the model's opinion where it is trusted fully
OWN_LOSS = 0.8  # share of our own power that it takes there
UNTESTED_TRUST = 0.3  # of a model nobody has measured: at worst three first places in a hundred
UNQUOTED = 0.5  # of the probability of a cause whose quote is not in the input
MAX_QUOTE = 300
MAX_ASK = 300
MIN_QUOTE = 4  # characters: "." is in every input
MAX_REPLY = 65_536  # characters looked at
_SPACE = re.compile(r"\s+")
_THOUGHTS = re.compile(r"^.*</think>|^\s*<think>.*", re.DOTALL)  # a model's drafts are no answer
Reason = Literal[
    "broken",
    "busy",
    "busy_until",
    "context",
    "empty",
    "failed",
    "key",
    "length",
    "limit_day",
    "limit_minute",
    "long",
    "no_address",
    "no_causes",
    "no_chat",
    "no_grounds",
    "no_json",
    "no_model",
    "redirect",
    "refused",
    "slow",
    "status",
    "tls",
    "unreachable",
    "waiting",
]
"""Why there is no opinion; each has its label, ``second.<reason>``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAnswer:
    """A checked answer.

    Attributes:
        causes: probability by cause id; they sum to at most 1, the rest is left open.
        quotes: a literal piece of the input by cause id.
        ask: the question that would decide; may be empty.
        dropped: quotes that are not in the input.
    """

    causes: Mapping[str, float]
    quotes: Mapping[str, str]
    ask: str = ""
    dropped: int = 0


class NoAnswer(Exception):  # noqa: N818 - one of several ends, no fault of ours
    """There is no opinion; `reason` names the label that says why, `second.<reason>`."""

    def __init__(self, reason: Reason, **values: str) -> None:
        super().__init__(reason)
        self.reason: Reason = reason
        self.values = values


def parse_answer(reply: str, causes: Sequence[str], sent: str) -> ModelAnswer:
    """The opinion in a model's reply to the report `sent`.

    Raises:
        NoAnswer: there is no JSON object in it, or no cause of ours with a probability.
    """
    found = json_object(reply, "causes")
    raw = found.get("causes")
    if not isinstance(raw, Mapping):
        raise NoAnswer("no_causes")
    shares = {
        cause: float(value)
        for cause, value in raw.items()
        if cause in causes and cause != UNKNOWN and _is_share(value)
    }
    total = sum(float(value) for value in raw.values() if _is_share(value))
    if not any(shares.values()):
        raise NoAnswer("no_causes")
    if total > 1:
        shares = {cause: value / total for cause, value in shares.items()}
    given = found.get("quotes")
    given = given if isinstance(given, Mapping) else {}
    haystack = _SPACE.sub(" ", sent)
    quotes: dict[str, str] = {}
    dropped = 0
    for cause in shares:
        quote = given.get(cause)
        if isinstance(quote, str) and _is_in(quote, haystack, causes):
            quotes[cause] = quote.strip()[:MAX_QUOTE]
        elif quote:
            shares[cause] *= UNQUOTED
            dropped += 1
    ask = found.get("ask")
    ask = " ".join(ask.split())[:MAX_ASK] if isinstance(ask, str) else ""
    return ModelAnswer(causes=shares, quotes=quotes, ask=ask, dropped=dropped)


def json_object(reply: str, key: str) -> Mapping[str, Any]:
    """The first JSON object with `key`: bare, in a fence, or behind what a model thought first.

    Raises:
        NoAnswer: there is none.
    """
    reply = _THOUGHTS.sub("", reply)[:MAX_REPLY]
    decoder = json.JSONDecoder()
    for text in (*reply.split("```")[1::2], reply):
        start = text.find("{")
        tries = 0
        while start >= 0 and tries < 50:
            try:
                value, _ = decoder.raw_decode(text, start)
            except (ValueError, RecursionError):
                value = None
            if isinstance(value, Mapping) and key in value:
                return value
            start = text.find("{", start + 1)
            tries += 1
    raise NoAnswer("no_json")


def _is_share(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(float(value)) and 0 <= float(value) <= 1  # type: ignore[arg-type]


def _is_in(quote: str, haystack: str, causes: Sequence[str]) -> bool:
    plain = _SPACE.sub(" ", quote).strip()
    if len(plain) < MIN_QUOTE or plain not in haystack:
        return False
    return not any(cause in plain for cause in causes)


def pool(ranking: Ranking, answer: ModelAnswer, trust: float, means: Bilingual) -> Ranking:
    """Our ranking and the model's opinion as one, with what the model adds to each cause.

    Args:
        ranking: ours.
        answer: the model's.
        trust: from 0, which leaves ours as it is, to 1.
        means: what the model's part of the evidence says.
    """
    known = 1 - ranking.unknown
    own = 1 - OWN_LOSS * trust
    opinion = opinion_of(answer.causes, [scored.cause for scored in ranking.causes])
    count = len(ranking.causes)
    added = {cause: WEIGHT * trust * math.log(share * count) for cause, share in opinion.items()}
    logits = {
        scored.cause: own * math.log(max(scored.probability / known, 1e-12)) + added[scored.cause]
        for scored in ranking.causes
    }
    top = max(logits.values())
    total = sum(math.exp(logit - top) for logit in logits.values())
    left_open = 1 - min(1.0, sum(answer.causes.values()))
    unknown = (1 - trust) * ranking.unknown + trust * left_open
    causes = [
        replace(
            scored,
            probability=(1 - unknown) * math.exp(logits[scored.cause] - top) / total,
            logit=logits[scored.cause],
            contributions=_explained(scored, own, added[scored.cause], answer, means),
        )
        for scored in ranking.causes
    ]
    causes.sort(key=lambda scored: (-scored.logit, scored.cause))
    return Ranking(causes=tuple(causes), unknown=1 - sum(one.probability for one in causes))


def opinion_of(shares: Mapping[str, float], causes: Sequence[str]) -> dict[str, float]:
    """A model's shares over all causes: what it left open and `OPEN` of it spread evenly."""
    total = sum(shares.get(cause, 0.0) for cause in causes)
    scale = 1 / total if total > 1 else 1.0
    left = (1 - total * scale) / len(causes)
    return {
        cause: (1 - OPEN) * (shares.get(cause, 0.0) * scale + left) + OPEN / len(causes)
        for cause in causes
    }


def _explained(
    scored: ScoredCause, own: float, added: float, answer: ModelAnswer, means: Bilingual
) -> tuple[Contribution, ...]:
    ours = [replace(item, weight=own * item.weight) for item in scored.contributions]
    signal = Signal(
        name=NAME,
        kind="language_model",
        quote=answer.quotes.get(scored.cause, ""),
        line=0,
        weights={scored.cause: added},
        reason_id=NAME,
        source=NAME,
        means=means,
        detail=f"{answer.causes.get(scored.cause, 0.0):.2f}",
    )
    every = [*ours, Contribution(signal=signal, weight=added)]
    return tuple(sorted(every, key=lambda item: (-item.weight, item.signal.name)))
