"""Same project: a case of the same project with the same error is more than a similar text.

Retrieval compares words; people who meet a known incident name the project and paste the same
error (`kb.diagnose.same_error`), or tell it in nearly the same words. Where one of the leading
cases shares both, its cause gains nats: more for rarer names, for equal operations and for equal
sizes, less where nobody confirmed the case's cause. A framework that is only used, or a name that
is a word of the field, is no project.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from kb.diagnose.same_error import NO_MARKS, ErrorMarks
from kb.diagnose.signals import Signal
from kb.types.entries import Entry, Hit

SAME_ERROR = "case:same-error"
SAME_PROJECT = "case:same-project"  # no error to compare, but nearly the same description
NEARLY_SAME = 0.83  # score of a case whose project is named: two thirds by the text alone
NEAREST = 3  # hits that are looked at: further down the likeness is weak
NAMED = 0.8  # nats for a project that only one case is about
PROJECT_SHARE = 0.5  # of the unlikeness that naming the project takes away
SAME_OP = 1.2
SAME_SIZE = 2.0  # the same NumelIn and NumelOut
STANDING = {"confirmed": 1.0, "reported": 0.9, "unverified": 0.75, "contradicted": 0.0}
MIN_NAME = 3  # letters of a project's name: shorter ones are words
ONLY_NAME = 0.9  # rarity of a name that hardly any other case has
MIN_RARITY = 0.3  # of a project's name: nccl has .13, vllm .57
_JOINTS = str.maketrans("", "", "-_ ")


class ProjectNames:
    """The names cases go by, and how rare each is."""

    def __init__(self, cases: Sequence[Entry]) -> None:
        self._names = {case.id: _names(case) for case in cases}
        self._symptoms = [_squeeze(_symptoms(case)) for case in cases]
        self._known: dict[str, float] = {}

    def rarity(self, name: str) -> float:
        """How much naming it says, in [0, 1]: 1 for a name one report mentions.

        A name many reports mention (nccl, pytorch) is a word of the field, not a project named.
        """
        if name not in self._known:
            squeezed = _squeeze(name)
            count = sum(squeezed in text for text in self._symptoms)
            self._known[name] = 1 - math.log(max(count, 1)) / math.log(max(len(self._symptoms), 2))
        return self._known[name]

    def nearer(
        self, hits: Sequence[Hit], entries: Mapping[str, Entry], text: str
    ) -> tuple[Hit, ...]:
        """Hits with the named project's cases moved up, best first, ties by id.

        Naming the project closes PROJECT_SHARE of what the text leaves open, times its rarity.
        """
        folded = _fold(text)
        moved = []
        for hit in hits:
            rarity = self._named(entries[hit.entry_id], folded)
            gain = (1 - hit.score) * PROJECT_SHARE * rarity
            moved.append(replace(hit, score=hit.score + gain) if gain else hit)
        return tuple(sorted(moved, key=lambda hit: (-hit.score, hit.entry_id)))

    def _named(self, entry: Entry, folded: str) -> float:
        """Rarity of the rarest name of the entry that stands in the folded text, or 0."""
        names = (name for name in self._names.get(entry.id, ()) if f" {name} " in folded)
        return max((self.rarity(name) for name in names), default=0.0)

    def signals(
        self,
        hits: Sequence[Hit],
        entries: Mapping[str, Entry],
        text: str,
        shared: Callable[[Entry], ErrorMarks],
        *,
        described: bool = False,
    ) -> list[Signal]:
        """The nearest of the first hits with the same project and error, as at most one signal.

        `shared` gives what tells the text's failure from others and an entry's as well, `described`
        says that the text shows no such thing. A team's
        own incidents are of its own projects.
        """
        folded = _fold(text)
        weighed: list[tuple[float, str, str]] = []
        for hit in hits[:NEAREST]:
            entry = entries[hit.entry_id]
            if not entry.causes:
                continue
            rarity = self._of_project(entry, folded)
            if described and entry.kind == "case" and hit.score >= NEARLY_SAME:
                named = self._named(entry, folded)  # as a project is called after it was renamed
                rarity = max(rarity, named if named >= ONLY_NAME else 0.0)
                if rarity:
                    nats = _nats(entry, rarity, text, NO_MARKS) * hit.score
                    weighed.append((nats, entry.id, SAME_PROJECT))
            marks = shared(entry) if rarity else NO_MARKS
            same_error = bool(marks.errors or (marks.sizes and entry.kind != "incident"))
            if same_error:
                nats = _nats(entry, rarity, text, marks) * hit.score
                weighed.append((nats, entry.id, SAME_ERROR))
        if not weighed:
            return []
        nats, case, name = max(weighed)
        return [
            Signal(
                name=name,
                kind="case",
                quote=entries[case].title.en,
                line=0,
                weights={entries[case].causes[0].id: round(nats, 3)},
                reason_id=name,
                source=case,
            )
        ]

    def _of_project(self, entry: Entry, folded: str) -> float:
        """Rarity of the entry's project where the folded text names it, or 0."""
        if entry.kind == "incident":
            return 1.0
        name = _fold(entry.project.rsplit("/", 1)[-1]).strip()
        if name not in self._names.get(entry.id, ()) or f" {name} " not in folded:
            return 0.0
        rarity = self.rarity(name)
        return rarity if rarity >= MIN_RARITY else 0.0


def _nats(entry: Entry, rarity: float, text: str, marks: ErrorMarks) -> float:
    nats = NAMED * rarity
    if any(_mentions(op, text) for op in entry.tags.ops):
        nats += SAME_OP * rarity
    if marks.sizes and entry.kind != "incident":  # a team's jobs are of the same sizes
        nats += SAME_SIZE
    return nats * STANDING[entry.status]


def _mentions(op: str, text: str) -> bool:
    return bool(re.search(rf"(?<![A-Za-z]){re.escape(op)}(?![A-Za-z])", text, re.IGNORECASE))


def _symptoms(case: Entry) -> str:
    return " ".join(
        section.text for section in case.sections if section.role == "symptoms"
    ) + " ".join(case.signature)


def _names(case: Entry) -> tuple[str, ...]:
    """The project's name and the frameworks', folded."""
    raw = (case.project.rsplit("/", 1)[-1], *case.tags.frameworks)
    names = {_fold(name).strip() for name in raw}
    return tuple(sorted(name for name in names if len(name.replace(" ", "")) >= MIN_NAME))


def _squeeze(text: str) -> str:
    """Lower case without the marks that join the parts of a name."""
    return text.lower().translate(_JOINTS)


@lru_cache(maxsize=8)  # a text is folded for the order of hits, then for the signal
def _fold(text: str) -> str:
    """Lower case, letters and digits apart from everything else, one space between words.

    ``Open_CLIP``, ``open-clip`` and ``OpenCLIP`` fold to the same.
    """
    split = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text[:20_000])
    return f" {' '.join(re.findall(r'[a-z0-9]+', split.lower()))} "
