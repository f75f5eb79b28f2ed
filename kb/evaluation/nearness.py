"""Near-duplicates among incidents, and which projects belong together because of them.

The Jaccard index of whole posts is blind here: two posts with the same watchdog lines share half
their words. So runs of words that stand in more than two posts are boilerplate and do not count;
what remains is compared by containment in the shorter post.
Source of shingles and containment: Broder 1997, On the resemblance and containment of documents,
https://doi.org/10.1109/SEQUEN.1997.666900
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from kb.evaluation.incidents import Incident

SHINGLE = 5  # words; three of them repeat by chance
BOILERPLATE = 3  # posts with the same shingle: then software or habit wrote it
CONTAINED = 0.5  # share of the shorter post: reposts have .55 to .92, the nearest others .36
MIN_SHARED = 5  # shingles: a post of one line repeats by chance
_WORDS = re.compile(r"[a-z_]+|[\u4e00-\u9fff]")


def near_duplicates(incidents: Sequence[Incident]) -> dict[str, tuple[str, ...]]:
    """Ids of the incidents that tell the same story, by incident id; only where there are any."""
    sets = [_shingles(incident.text) for incident in incidents]
    holders: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, shingles in enumerate(sets):
        for shingle in shingles:
            holders[shingle].append(number)
    rare = Counter[int]()
    shared = Counter[tuple[int, int]]()
    for numbers in holders.values():
        if len(numbers) < BOILERPLATE:
            rare.update(numbers)
            shared.update([(numbers[0], numbers[1])] if len(numbers) > 1 else [])
    table: dict[str, list[str]] = defaultdict(list)
    for (one, other), count in shared.items():
        if count >= MIN_SHARED and count >= CONTAINED * min(rare[one], rare[other]):
            table[incidents[one].id].append(incidents[other].id)
            table[incidents[other].id].append(incidents[one].id)
    return {identifier: tuple(sorted(others)) for identifier, others in sorted(table.items())}


def _shingles(text: str) -> set[tuple[str, ...]]:
    words = _WORDS.findall(text.lower())
    return {tuple(words[at : at + SHINGLE]) for at in range(len(words) - SHINGLE + 1)}


def linked(pairs: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """The group of every name: names joined by pairs, directly or not, share the smallest."""
    group: dict[str, str] = {}

    def find(name: str) -> str:
        while group.setdefault(name, name) != name:
            name = group[name]
        return name

    for one, other in pairs:
        low, high = sorted((find(one), find(other)))
        group[high] = low
    return {name: find(name) for name in sorted(group)}
