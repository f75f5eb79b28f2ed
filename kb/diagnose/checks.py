"""The check worth doing first: the one whose outcome is expected to tell the causes apart best.

Expected information gain: entropy over the two leading causes and what is left, less the expected
entropy after each outcome. An outcome is likely under a cause it supports, unlikely under one it
refutes. A check whose outcome the input shows already is none to do.
Source: Lindley 1956, https://doi.org/10.1214/aoms/1177728069
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from kb.diagnose.evidence_provided import shows
from kb.diagnose.fixes import EXCLUDED, elsewhere, fit
from kb.types.incident import Incident
from kb.types.knowledge import Cause, Check, CheckOutcome

LIKELY, NEUTRAL, UNLIKELY = 0.9, 0.4, 0.1  # of an outcome under a cause, before normalising
COST_BITS = {"low": 0.0, "medium": 0.05, "high": 0.15}  # gain a dearer check has to make up for
MIN_GAIN_BITS = 0.05  # below this, as with a cause beyond 92 %, its fix is the better test
REST = ""  # stands for what is left beside the leading causes
LEADING = 2  # causes a check has to tell apart; the others are one: what is left
REST_WEIGHT = 0.5  # of what is left: a check is there to tell the leading causes apart


def best_check(checks: Sequence[Check], probabilities: Mapping[str, float]) -> Check | None:
    """The check with the largest expected gain over `probabilities`, ties by id, or None."""
    if sum(probabilities.values()) <= 0:
        return None
    scored = [
        (expected_gain(check, probabilities) - COST_BITS[check.cost], check)
        for check in checks
        if check.outcomes
    ]
    scored = [(gain, check) for gain, check in scored if gain >= MIN_GAIN_BITS]
    return min(scored, key=lambda pair: (-pair[0], pair[1].id))[1] if scored else None


def fitting_checks(
    cause: Cause,
    incident: Incident,
    provided: Collection[str] = (),
    seen: Collection[str] = (),
) -> list[Check]:
    """The checks of a cause that can be done here and that nothing answers yet.

    Neither their evidence is `provided` nor an outcome `seen`. Best fitting first; those for a
    platform nothing here speaks of come last, ties by id.
    """
    scored = [
        (fit(check.applies_to, incident), check)
        for check in cause.checks
        if check.gives not in provided and is_open(check, seen)
    ]
    scored = [(score, check) for score, check in scored if score > EXCLUDED / 2]
    scored.sort(key=lambda pair: (elsewhere(pair[1].applies_to, incident), -pair[0], pair[1].id))
    return [check for _, check in scored]


def is_open(check: Check, seen: Collection[str]) -> bool:
    """Whether a check makes sense here, and nothing `seen` tells how it would come out."""
    if check.when and not shows(check.when, seen):
        return False
    return not any(shows(outcome.shown_by, seen) for outcome in check.outcomes)


def expected_gain(check: Check, probabilities: Mapping[str, float]) -> float:
    """Bits of entropy the check is expected to remove.

    Entropy is over the two leading causes and what is left of 1, which counts half: the other
    causes of `probabilities` by their shares, and causes nobody names, of which no outcome tells
    anything.
    """
    ranked = sorted(probabilities.items(), key=lambda pair: (-pair[1], pair[0]))
    table = {cause: _likelihoods(check.outcomes, cause) for cause, _ in ranked[:LEADING]}
    beliefs = dict(ranked[:LEADING])
    others = dict(ranked[LEADING:])
    unnamed = max(0.0, 1.0 - sum(probabilities.values()))
    rest = sum(others.values()) + unnamed
    if rest > 0:
        even = [1 / len(check.outcomes)] * len(check.outcomes)
        tables = [(share, _likelihoods(check.outcomes, cause)) for cause, share in others.items()]
        mixed = [(unnamed, even), *tables]
        table[REST] = [
            sum(share * likely[number] for share, likely in mixed) / rest
            for number in range(len(check.outcomes))
        ]
        beliefs[REST] = rest * REST_WEIGHT
    total = sum(beliefs.values())
    return _gain({name: share / total for name, share in beliefs.items()}, table)


def _gain(beliefs: Mapping[str, float], table: Mapping[str, Sequence[float]]) -> float:
    """Entropy of `beliefs`, less what is expected after an outcome with these likelihoods."""
    after = 0.0
    for number in range(len(next(iter(table.values())))):
        joint = {cause: beliefs[cause] * table[cause][number] for cause in beliefs}
        seen = sum(joint.values())
        if seen > 0:
            after += seen * entropy({cause: share / seen for cause, share in joint.items()})
    return entropy(beliefs) - after


def entropy(beliefs: Mapping[str, float]) -> float:
    """Entropy in bits."""
    return -sum(share * math.log2(share) for share in beliefs.values() if share > 0)


def _likelihoods(outcomes: Sequence[CheckOutcome], cause: str) -> list[float]:
    raw = [
        LIKELY if cause in outcome.supports else UNLIKELY if cause in outcome.refutes else NEUTRAL
        for outcome in outcomes
    ]
    total = sum(raw)
    return [value / total for value in raw]
