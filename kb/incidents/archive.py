"""An archive of logs, diagnosed one by one: a line of each, and what all of them come to."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from kb.incidents.board import RECURRING, monday
from kb.incidents.records import short_host
from kb.text.template import line_template
from kb.types.entries import RankPlace
from kb.types.incident import LogReading
from kb.types.vocabulary import UNKNOWN

REFUSED = "refused"  # the status of a file that is no log


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedLog:
    """A log of an archive and what it was diagnosed with.

    Attributes:
        path, size, mtime_ns, digest: the file as it was read.
        knowledge: the beginning of the digest of the knowledge that judged it.
        status: of the diagnosis, or `REFUSED`, with the reason in `error`.
        cause: the likeliest one of a log that was diagnosed, else ``unknown``.
        date: day of the failure by the log's clock, else of the file.
        fingerprint: what logs of one kind of failure share; empty where nothing failed.
    """

    path: str
    size: int
    mtime_ns: int
    digest: str
    knowledge: str
    status: str
    cause: str = UNKNOWN
    probability: float = 0.0
    headline: str = ""
    date: str = ""
    backend: str = ""
    op: str = ""
    first_error: str = ""
    culprits: tuple[RankPlace, ...] = ()
    fingerprint: str = ""
    error: str = ""


def fingerprint_of(reading: LogReading) -> str:
    """What a failure shares with others of its kind: backend, operation, first error, culprit."""
    incident = reading.incident
    first = first_error_of(reading)
    if not first and not incident.has_timeout:
        return ""
    kinds = sorted({culprit.kind for culprit in incident.culprit_ranks})
    return _digest([incident.backend, incident.op, line_template(first), *kinds])


def query_key(query: str) -> str:
    """What questions share that differ in numbers, addresses and paths alone."""
    return _digest(sorted({line_template(line) for line in query.splitlines()}))


def first_error_of(reading: LogReading) -> str:
    """The line that failed first; a timeout's where there is no other."""
    if reading.incident.first_error is not None:
        return reading.incident.first_error.text
    return next((event.text for event in reading.events if event.kind in ("root", "timeout")), "")


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class WeekCount:
    """Failures of one cause in the week that begins on the Monday `week`."""

    week: str
    cause: str
    logs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatOffender:
    """A host, or with `gpu` a GPU of it, that several failures point to."""

    host: str
    gpu: str
    logs: int
    causes: tuple[str, ...]
    last_date: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogGroup:
    """Failures with one fingerprint; `example` is the path of the first."""

    fingerprint: str
    logs: int
    cause: str
    first_error: str
    first_date: str
    last_date: str
    example: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveSummary:
    """What the logs of an archive come to; lists begin with the most logs, weeks are by time."""

    logs: int
    statuses: dict[str, int]
    weeks: tuple[WeekCount, ...]
    offenders: tuple[RepeatOffender, ...]
    groups: tuple[LogGroup, ...]


@dataclass(slots=True)
class _Tally:
    logs: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    first_date: str = ""
    last_date: str = ""
    first_error: str = ""
    example: str = ""

    def add(self, log: ArchivedLog) -> None:
        self.logs += 1
        self.causes[log.cause] += 1
        self.first_date = min(self.first_date or log.date, log.date)
        self.last_date = max(self.last_date, log.date)
        self.first_error = self.first_error or log.first_error
        self.example = self.example or log.path

    def ranked_causes(self) -> tuple[str, ...]:
        return tuple(sorted(self.causes, key=lambda cause: (-self.causes[cause], cause)))


class ArchiveTally:
    """Counts logs; its size is that of the kinds of failures and of the places, not of the logs."""

    def __init__(self) -> None:
        self._statuses: Counter[str] = Counter()
        self._weeks: Counter[tuple[str, str]] = Counter()
        self._places: dict[tuple[str, str], _Tally] = {}
        self._groups: dict[str, _Tally] = {}

    def add(self, log: ArchivedLog) -> None:
        """Count one more log."""
        self._statuses[log.status] += 1
        if not log.fingerprint:
            return
        self._weeks[monday(log.date), log.cause] += 1
        self._groups.setdefault(log.fingerprint, _Tally()).add(log)
        named = {(short_host(place.host), place.gpu) for place in log.culprits if place.host}
        for place in sorted(named | {(host, "") for host, _ in named}):
            self._places.setdefault(place, _Tally()).add(log)

    def summary(self) -> ArchiveSummary:
        """What was counted so far."""
        weeks = sorted(self._weeks.items(), key=lambda item: (item[0][0], -item[1], item[0][1]))
        groups = sorted(self._groups.items(), key=lambda item: (-item[1].logs, item[0]))
        return ArchiveSummary(
            logs=self._statuses.total(),
            statuses=dict(sorted(self._statuses.items())),
            weeks=tuple(WeekCount(week=w, cause=c, logs=n) for (w, c), n in weeks),
            offenders=self._offenders(),
            groups=tuple(
                LogGroup(
                    fingerprint=fingerprint,
                    logs=tally.logs,
                    cause=tally.ranked_causes()[0],
                    first_error=tally.first_error,
                    first_date=tally.first_date,
                    last_date=tally.last_date,
                    example=tally.example,
                )
                for fingerprint, tally in groups
            ),
        )

    def _offenders(self) -> tuple[RepeatOffender, ...]:
        """GPUs, and hosts that more failures point to than to any one of their GPUs."""
        most = Counter[str]()
        for (host, gpu), tally in self._places.items():
            if gpu:
                most[host] = max(most[host], tally.logs)
        offenders = [
            RepeatOffender(
                host=host,
                gpu=gpu,
                logs=tally.logs,
                causes=tally.ranked_causes(),
                last_date=tally.last_date,
            )
            for (host, gpu), tally in self._places.items()
            if tally.logs >= RECURRING and (gpu or tally.logs > most[host])
        ]
        return tuple(sorted(offenders, key=lambda each: (-each.logs, each.host, each.gpu)))


LOG_LINE = msgspec.json.Decoder(ArchivedLog)
"""Reads a line that `msgspec.json.encode` wrote of an `ArchivedLog`."""
