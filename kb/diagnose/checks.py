"""The check worth doing first: the one whose outcome is expected to tell the causes apart best.

Expected information gain: entropy of the leading causes now, less the expected entropy after each
outcome. An outcome is likely under a cause it supports, unlikely under one it refutes.
Source: Lindley 1956, https://doi.org/10.1214/aoms/1177728069
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from kb.diagnose.fixes import EXCLUDED, elsewhere, fit
from kb.types.incident import Incident
from kb.types.knowledge import Cause, Check, CheckOutcome

LIKELY, NEUTRAL, UNLIKELY = 0.9, 0.4, 0.1  # of an outcome under a cause, before normalising
COST_BITS = {"low": 0.0, "medium": 0.05, "high": 0.15}  # gain a dearer check has to make up for
MIN_GAIN_BITS = 0.02  # below this the check tells nothing


def best_check(checks: Sequence[Check], probabilities: Mapping[str, float]) -> Check | None:
    """The check with the largest expected gain over `probabilities`, ties by id, or None."""
    total = sum(probabilities.values())
    if total <= 0:
        return None
    beliefs = {cause: share / total for cause, share in probabilities.items()}
    scored = [
        (expected_gain(check, beliefs) - COST_BITS[check.cost], check)
        for check in checks
        if check.outcomes
    ]
    scored = [(gain, check) for gain, check in scored if gain >= MIN_GAIN_BITS]
    return min(scored, key=lambda pair: (-pair[0], pair[1].id))[1] if scored else None


def fitting_checks(cause: Cause, incident: Incident, provided: Collection[str] = ()) -> list[Check]:
    """The checks of a cause that can be done here and whose evidence is not `provided` yet.

    Best fitting first; those for a platform nothing here speaks of come last, ties by id.
    """
    scored = [
        (fit(check.applies_to, incident), check)
        for check in cause.checks
        if check.gives not in provided
    ]
    scored = [(score, check) for score, check in scored if score > EXCLUDED / 2]
    scored.sort(key=lambda pair: (elsewhere(pair[1].applies_to, incident), -pair[0], pair[1].id))
    return [check for _, check in scored]


def expected_gain(check: Check, beliefs: Mapping[str, float]) -> float:
    """Bits of entropy over `beliefs` (summing to 1) the check is expected to remove."""
    table = {cause: _likelihoods(check.outcomes, cause) for cause in beliefs}
    after = 0.0
    for number in range(len(check.outcomes)):
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
