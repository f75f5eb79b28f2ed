"""Steps that ranks print, against each rank's own rhythm: who hangs before any watchdog says so.

A job that hangs prints no further step, whatever else it prints. How long a step may take only the
job itself tells: a rank is overdue when it has printed none for longer than `after_s` and for
`RHYTHM` times the longest pause it made before, checkpoints and evaluations included.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from app.capture.polling import Polling
from kb.logs.event_log import EventVocabulary
from kb.logs.scan.prefix import FRONT_CHARS, origin
from kb.logs.scan.scanner import capture_expression, expression
from kb.types.vocabulary import EventRole

RHYTHM = 2.0  # times the longest pause so far: a pause of a known kind seldom doubles
MIN_MOVES = 5  # looks that found steps; of fewer nobody knows a rhythm
LOOKS = 8  # at the output within the time a rank may stand
MAX_PAUSE_S = 5.0  # between two looks: as exact as the rhythm is known
MAX_LINE = 2000  # characters of a line
MAX_RANKS = 4096  # that are followed
_LINE_END = re.compile(r"[\r\n]+")  # a progress bar is drawn over itself


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedStep:
    """A line that shows progress: whose, by which pattern and in which epoch, and how far."""

    rank: int | None
    form: tuple[str, str]
    step: str
    last: bool = False  # the bar is full


class StepReader:
    """Finds the lines that show steps."""

    def __init__(self, vocabulary: EventVocabulary) -> None:
        roles = vocabulary.players(EventRole.STEP, EventRole.TRAINING_BAR)
        self._patterns = [
            (pattern.id, expression(pattern), capture)
            for pattern in vocabulary.patterns
            if pattern.event in roles and (capture := capture_expression(pattern)) is not None
        ]

    def read(self, text: str) -> Iterator[PrintedStep]:
        """The steps that a piece of output shows, in its order."""
        for line in _LINE_END.split(text):
            if step := self._step(line[:MAX_LINE]):
                yield step

    def _step(self, line: str) -> PrintedStep | None:
        for name, finds, takes in self._patterns:
            if finds.search(line) and (match := takes.search(line)):
                return _printed(name, match.groupdict(), line)
        return None


def _printed(name: str, fields: Mapping[str, str | None], line: str) -> PrintedStep:
    rank = fields.get("rank")
    step = fields.get("step") or fields.get("percent") or ""
    return PrintedStep(
        rank=int(rank) if rank and rank.isdigit() else origin(line[:FRONT_CHARS]).rank,
        form=(name, (fields.get("epoch") or "") if step else ""),
        step=step or fields.get("epoch") or "",
        last=bool(step) and step == fields.get("total"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OverdueSteps:
    """Ranks that are behind, none where all are as far; seconds since they moved, and before."""

    ranks: tuple[int, ...]
    step: str
    usual: str  # where the others are
    seconds: float
    rhythm_s: float


@dataclass(slots=True)
class _RankPace:
    """What one printer has shown: how far it is by each form of line, and when it moved."""

    latest: PrintedStep
    first_s: float
    moved_s: float
    by_form: dict[str, PrintedStep] = field(default_factory=dict)
    steps: int = 0
    moves: int = 0  # looks that found a further step: what comes at once tells no rhythm
    longest_s: float = 0.0

    def take(self, step: PrintedStep, now_s: float) -> None:
        """Note a line; one that shows no more than before is no move."""
        if self.by_form.get(step.form[0]) == step:
            return
        self.steps += bool(self.by_form)
        self.moves += now_s > self.moved_s
        self.longest_s = max(self.longest_s, now_s - self.moved_s)
        self.by_form[step.form[0]] = self.latest = step
        self.moved_s = now_s

    @property
    def has_rhythm(self) -> bool:
        """Whether it has a rhythm and more steps to come."""
        return self.moves >= MIN_MOVES and not self.latest.last

    @property
    def rhythm_s(self) -> float:
        """Seconds between two steps, on the average."""
        return (self.moved_s - self.first_s) / max(self.steps, 1)

    def overdue(self, now_s: float, after_s: float) -> bool:
        """Whether it has not moved for far longer than ever."""
        return now_s - self.moved_s >= max(after_s, RHYTHM * self.longest_s)


class StepProgress:
    """Looks that follow each other: who is overdue is told once, and taken back when it moves."""

    def __init__(self, after_s: float) -> None:
        self._after_s = after_s
        self._ranks: dict[int | None, _RankPace] = {}
        self._reported: dict[int | None, float] = {}  # who is overdue, and when it had moved last

    def take(self, steps: Iterable[PrintedStep], now_s: float, *, whole: bool = True) -> None:
        """Note what was printed since the last look; `whole` says that nothing was left out."""
        seen = set()
        for step in steps:
            seen.add(step.rank)
            rank = self._ranks.get(step.rank)
            if rank is None and len(self._ranks) < MAX_RANKS:
                rank = self._ranks[step.rank] = _RankPace(step, now_s, now_s)
            if rank is not None:
                rank.take(step, now_s)
        if not whole:  # the others may have moved where nobody looked
            for number in self._ranks.keys() - seen - self._reported.keys():
                self._ranks[number].moved_s = now_s

    def overdue(self, now_s: float) -> OverdueSteps | None:
        """Who hangs; None where that is nothing new, or not yet clear of every rank."""
        known = {number: rank for number, rank in self._ranks.items() if rank.has_rhythm}
        late = {n: rank for n, rank in known.items() if rank.overdue(now_s, self._after_s)}
        others = {n: rank for n, rank in known.items() if n not in late}
        if self._reported or not late:
            return None
        if any(now_s - rank.moved_s >= self._after_s / 2 for rank in others.values()):
            return None  # they stopped as well, or are a little later than the others
        self._reported = {number: rank.moved_s for number, rank in late.items()}
        behind = late if others else _behind(late)
        ahead = others or {n: rank for n, rank in late.items() if n not in behind}
        shown = behind or late
        return OverdueSteps(
            ranks=tuple(sorted(number for number in behind if number is not None)),
            step=_lowest(shown.values()),
            usual=_highest(ahead.values()),
            seconds=now_s - min(rank.moved_s for rank in shown.values()),
            rhythm_s=max(rank.rhythm_s for rank in shown.values()),
        )

    def went_on(self) -> float | None:
        """For how long those stood who were told to be overdue, once all of them have moved."""
        if not self._reported or any(
            self._ranks[number].moved_s == moved_s for number, moved_s in self._reported.items()
        ):
            return None
        moved, self._reported = self._reported, {}
        return max(self._ranks[number].moved_s - moved_s for number, moved_s in moved.items())


def _behind(ranks: Mapping[int | None, _RankPace]) -> dict[int | None, _RankPace]:
    """The few that are not as far as most, by lines of one form; none where no step is usual."""
    places = {number: (rank.latest.form, rank.latest.step) for number, rank in ranks.items()}
    usual, count = Counter(places.values()).most_common(1)[0]
    if count * 2 <= len(places) or not usual[1].isdigit():
        return {}
    return {
        number: ranks[number]
        for number, (form, step) in places.items()
        if form == usual[0] and step.isdigit() and int(step) < int(usual[1])
    }


def _by_step(ranks: Iterable[_RankPace]) -> list[str]:
    steps = [rank.latest.step for rank in ranks]
    return sorted(steps, key=lambda step: (int(step) if step.isdigit() else 0, step))


def _lowest(ranks: Iterable[_RankPace]) -> str:
    return next(iter(_by_step(ranks)), "")


def _highest(ranks: Iterable[_RankPace]) -> str:
    return next(reversed(_by_step(ranks)), "")


class StepWatch(Polling):
    """Follows the steps of a job whose new output `printed` gives, until `stop`.

    `printed` says as well whether nothing is missing. `reader` is asked once there is output. `act`
    is called once a rank is overdue, `went_on` with the seconds once it has moved.
    """

    def __init__(
        self,
        printed: Callable[[], tuple[Sequence[bytes], bool]],
        reader: Callable[[], StepReader],
        after_s: float,
        act: Callable[[OverdueSteps], None],
        went_on: Callable[[float], None],
    ) -> None:
        self._printed, self._make_reader = printed, reader
        self._reader: StepReader | None = None
        self._progress = StepProgress(after_s)
        self._act, self._went_on = act, went_on
        super().__init__(self._look_at_output, min(after_s / LOOKS, MAX_PAUSE_S))

    def _look_at_output(self, _stop: threading.Event) -> None:
        pieces, whole = self._printed()
        if self._reader is None and any(pieces):
            self._reader = self._make_reader()
        now_s = time.monotonic()
        if self._reader is not None:
            for piece in pieces:
                steps = self._reader.read(piece.decode("utf-8", "replace"))
                self._progress.take(steps, now_s, whole=whole)
        if (seconds := self._progress.went_on()) is not None:
            self._went_on(seconds)
        elif overdue := self._progress.overdue(now_s):
            self._act(overdue)
