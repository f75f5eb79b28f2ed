"""What each rank prints of its progress: steps, ends of epochs, and how long steps take."""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kb.logs.event_log import EventLog
from kb.logs.incident.observations import Observations, number
from kb.logs.scan.prefix import split_front
from kb.types.incident import Event
from kb.types.vocabulary import EventRole

INTERLEAVED_LINES = 20  # prints of ranks that do the same stand this close, in any order
PRINTS_IN_A_LINE = 8  # at most, of ranks that print at once
STEPS_COMPARED = 3  # the last ones; of fewer one may just be a pause
SLOWER = 1.3  # a step that takes so many times the one before is no jitter
MUCH_SLOWER = 3.0  # from the first to the last steps shown
_DIGITS = re.compile(r"[0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnequalRanks:
    """The few ranks that are unlike the others, with a line of each; `words` tell both sides."""

    ranks: Mapping[int, Event]
    words: str


def uneven_epochs(observations: Observations) -> UnequalRanks | None:
    """Ranks whose last epoch had another number of steps than that of most, or of one other.

    Of two ranks the one with fewer steps; where no number is usual nobody is named.
    """
    steps: dict[str, dict[int, tuple[int, Event]]] = defaultdict(dict)
    for event in observations.log.of(EventRole.EPOCH_END):
        count = number(event.fields.get("steps") or event.fields.get("count"))
        if event.rank is not None and count is not None:
            steps[event.fields.get("epoch", "")][event.rank] = (count, event)
    for epoch in sorted(steps, key=lambda text: -(number(text) or 0)):
        counts = Counter(count for count, _ in steps[epoch].values())
        if len(counts) < 2:
            continue
        usual = max(counts, key=lambda count: (counts[count], count))
        tied = sum(counts[count] == counts[usual] for count in counts) > 1
        odd = {r: e for r, (count, e) in steps[epoch].items() if count != usual}
        named = {} if tied and len(steps[epoch]) > 2 else odd
        return UnequalRanks(ranks=named, words=_sides({r: c for r, (c, _) in steps[epoch].items()}))
    return None


def finished_early(observations: Observations) -> UnequalRanks | None:
    """Ranks that ended an epoch, nothing following, while more others still wait inside of it.

    Rank 0 alone is no such rank: it often prints for all.
    """
    log = observations.log
    moved = {event.file: event.line for event in _in_time(log, EventRole.PROGRESS)}
    ended = {
        event.rank: event
        for event in _in_time(log, EventRole.EPOCH_END)
        if event.rank is not None and moved.get(event.file, 0) <= event.line + INTERLEAVED_LINES
    }
    waiting = set(observations.incident.ranks_reporting)
    waiting |= {stack.rank for stack in observations.places.stacks if stack.rank is not None}
    waiting -= ended.keys()
    if not ended or ended.keys() == {0} or len(ended) >= len(waiting):
        return None
    return UnequalRanks(ranks={rank: ended[rank] for rank in sorted(ended)}, words=_listed(ended))


def behind_in_steps(observations: Observations) -> UnequalRanks | None:
    """The few ranks below the step that most have come to, where ranks print lines of one form.

    Of two ranks, or where no failure follows, one print more or less says nothing: the next one may
    be on its way or cut off.
    """
    forms: dict[tuple[str, str, str], dict[int, tuple[int, Event]]] = defaultdict(dict)
    failures = observations.log.of_kind("timeout", "root", "cascade")
    for event in _in_time(observations.log, EventRole.STEP):
        step = number(event.fields.get("step"))
        if event.rank is not None and step is not None:
            key = (event.pattern_id, event.fields.get("epoch", ""), _form(event.text))
            forms[key][event.rank] = (step, event)
    for key in sorted(forms, key=lambda key: (-len(forms[key]), key)):
        last = {rank: forms[key][rank] for rank in sorted(forms[key])}
        counts = Counter(step for step, _ in last.values())
        usual = max(counts, key=lambda step: (counts[step], step))
        ended = len(last) > 2 and any(f.file == last[min(last)][1].file for f in failures)
        slow = {rank: e for rank, (step, e) in last.items() if usual - step > (0 if ended else 1)}
        if slow and (len(last) == 2 or counts[usual] * 2 > len(last)):
            return UnequalRanks(ranks=slow, words=_sides({r: s for r, (s, _) in last.items()}))
    return None


def _form(line: str) -> str:
    """What a line looks like without numbers and without who printed it.

    Prints of several ranks share a line where one wrote before the other's newline: the first
    print's form is that of all of them.
    """
    whole, form = (_DIGITS.sub("#", text) for text in (line, split_front(line)[1]))
    front = whole[: len(whole) - len(form)].strip()
    if any(map(str.isalpha, front)):
        return form.partition(front)[0].rstrip()
    for prints in range(2, PRINTS_IN_A_LINE + 1):
        size, more = divmod(len(form), prints)
        if not more and form == form[:size] * prints:
            return form[:size]
    return form


def slowing_steps(log: EventLog) -> tuple[Event, str] | None:
    """The last of one printer's steps that take ever longer, and how long they took."""
    printers: dict[tuple[str, str, int | None], list[Event]] = defaultdict(list)
    for event in log.of(EventRole.STEP):
        if event.time_s is not None and number(event.fields.get("step")) is not None:
            printers[event.file, event.pattern_id, event.rank].append(event)
    for key in sorted(printers, key=str):
        took = list(_step_seconds(printers[key]))[-STEPS_COMPARED:]
        grows = all(later >= SLOWER * before for before, later in itertools.pairwise(took))
        if len(took) == STEPS_COMPARED and grows and took[-1] >= MUCH_SLOWER * took[0]:
            return printers[key][-1], ", ".join(f"{seconds:.3g} s" for seconds in took)
    return None


def _step_seconds(events: list[Event]) -> Iterator[float]:
    """Seconds a step between each two events; of one run, so steps and times only grow."""
    for before, after in itertools.pairwise(events):
        steps = int(after.fields["step"]) - int(before.fields["step"])
        seconds = (after.time_s or 0.0) - (before.time_s or 0.0)
        if steps > 0 and seconds > 0:
            yield seconds / steps


def _in_time(log: EventLog, role: EventRole) -> list[Event]:
    """Events of a role above the first failure of their file, or printed at once with it."""
    first: dict[str, int] = {}
    for failure in log.of_kind("timeout", "root", "cascade"):
        first.setdefault(failure.file, failure.line)
    return [
        event
        for event in log.of(role)
        if event.file not in first or event.line < first[event.file] + INTERLEAVED_LINES
    ]


def _sides(values: Mapping[int, int]) -> str:
    """``rank 2: 14; rank 0,1,3: 16``, fewest ranks first."""
    ranks: dict[int, list[int]] = defaultdict(list)
    for rank in sorted(values):
        ranks[values[rank]].append(rank)
    sides = sorted(ranks.items(), key=lambda side: (len(side[1]), side[0]))
    return "; ".join(f"rank {','.join(map(str, who[:16]))}: {value}" for value, who in sides[:8])


def _listed(ranks: Mapping[int, Event]) -> str:
    return "rank " + ",".join(map(str, sorted(ranks)[:16]))
