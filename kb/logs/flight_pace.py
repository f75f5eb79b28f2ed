"""Stragglers: the rank that came last to most of the recent collectives.

A collective ends for all at once, so the ranks set out together each time; who enters the next one
last, and by a clear margin, computed longest. Over the recorded history that tells a slow rank from
one that stopped just now.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from statistics import median

from kb.logs.flight_rules import Finding
from kb.logs.flight_table import Table

STRAGGLE_OPS = 4  # fewer matched collectives are no history
STRAGGLE_LAST = 20  # look at the most recent ones: skew changes over a run
STRAGGLE_SHARE = 0.75  # share of them in which the rank came last
STRAGGLE_S = 0.1  # seconds behind the others' median; steps of real jobs jitter by milliseconds


def find_straggler(table: Table) -> Finding | None:
    """The rank that came last to most of the recent collectives, by a clear margin."""
    lags: dict[int, list[float]] = defaultdict(list)
    last: Counter[int] = Counter()
    matched = sorted(
        (min(e.created_ns for e in entries.values()), op[0].name, op[1], op)
        for op, entries in table.matched.items()
        if len(entries) > 2 and len(entries) == len(table.members[op[0]])
    )[-STRAGGLE_LAST:]
    for *_, op in matched:
        times = {rank: entry.created_ns / 1e9 for rank, entry in table.matched[op].items()}
        latest = max(sorted(times), key=lambda rank: times[rank])
        last[latest] += 1
        lags[latest].append(times[latest] - median(t for r, t in times.items() if r != latest))
    if len(matched) < STRAGGLE_OPS:
        return None
    rank = max(sorted(last), key=lambda rank: last[rank])
    lag = median(lags[rank])
    if last[rank] < STRAGGLE_SHARE * len(matched) or lag < STRAGGLE_S:
        return None
    return Finding(
        rule="straggler",
        fault_type="straggler",
        ranks=(rank,),
        op=matched[-1][-1],
        values={rank: {"last": last[rank], "of": len(matched), "lag_s": round(lag, 1)}},
    )
