"""Votes of similar cases: how retrieval speaks about causes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from kb.types import Entry, Hit

VOTERS = 8  # entries that vote; more of them only repeat the prior
SHARPNESS = 3.0  # power on the score: a case twice as similar has eight votes for one
ALSO_SHARE = 0.3  # votes a case gives to the causes it names besides its own


def case_votes(hits: Sequence[Hit], entries: Mapping[str, Entry]) -> dict[str, float]:
    """Share of votes per cause among the most similar entries; sums to 1, or is empty."""
    votes: dict[str, float] = defaultdict(float)
    for hit in hits[:VOTERS]:
        entry = entries.get(hit.entry_id)
        if entry is None or not entry.causes:
            continue
        strength = hit.score**SHARPNESS
        votes[entry.causes[0].id] += strength
        for claim in entry.causes[1:]:
            votes[claim.id] += ALSO_SHARE * strength
    total = sum(votes.values())
    return {cause: share / total for cause, share in sorted(votes.items())} if total else {}
