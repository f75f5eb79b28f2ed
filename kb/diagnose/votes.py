"""Votes of similar cases: how retrieval speaks about causes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from kb.types.entries import Entry, Hit

VOTERS = 12  # entries that vote; more of them only repeat the base rates
SHARPNESS = 3.0  # power on the score: a case twice as similar has eight votes for one
PLACE = 0.5  # power on the place: the fourth hit has half the vote of the first
ALSO_SHARE = 0.3  # votes a case gives to the causes it names besides its own
RATE_COUNT = 2.0  # cases added to every cause when base rates are taken


def base_rates(cases: Sequence[Entry]) -> dict[str, float]:
    """Smoothed number of cases per cause: what votes by chance alone look like."""
    rates: dict[str, float] = defaultdict(lambda: RATE_COUNT)
    for case in cases:
        if case.causes:
            rates[case.causes[0].id] += 1
    return dict(rates)


def case_votes(
    hits: Sequence[Hit], entries: Mapping[str, Entry], rates: Mapping[str, float]
) -> dict[str, float]:
    """Share of votes per cause among the most similar entries.

    The shares sum to the score of the nearest entry, so unlike cases leave most of the vote open.

    Votes are divided by how many cases a cause has, since frequent causes stand beside any
    question; the prior already knows that they are frequent.
    """
    votes: dict[str, float] = defaultdict(float)
    for place, hit in enumerate(hits[:VOTERS], start=1):
        entry = entries[hit.entry_id]
        if not entry.causes:
            continue
        strength = hit.score**SHARPNESS / place**PLACE
        votes[entry.causes[0].id] += strength
        for claim in entry.causes[1:]:
            votes[claim.id] += ALSO_SHARE * strength
    fair = {cause: share / rates.get(cause, RATE_COUNT) for cause, share in votes.items()}
    total = sum(fair.values())
    nearest = max((hit.score for hit in hits[:VOTERS]), default=0.0)
    scale = nearest / total if total else 0.0
    return {cause: share * scale for cause, share in sorted(fair.items())} if scale else {}
