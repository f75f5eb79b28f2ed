"""Hits become events: captures, rank, host, time; repeats are counted, not collected."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice

from kb.logs.event_log import EventVocabulary
from kb.logs.scan import clock, prefix
from kb.logs.scan.scanner import ONCE_A_BLOCK, Scanner, capture_expression, expression
from kb.text.redact import is_clean, redact
from kb.types.incident import Event
from kb.types.knowledge import Pattern
from kb.types.vocabulary import EventRole

WINDOW = 2048  # bytes looked at on both sides of a hit: longer lines are cut
TEXT_CHARS = 400  # of an event's text
FIELD_CHARS = 300
REPEAT_LINES = 500  # the same event further away is a new one: another wave, another attempt
EVENTS_A_PATTERN = 2000  # 1,000 ranks, two waves
EVENTS_ALL = 20_000
LATEST = 6  # of context and facts: the first and the five latest
FLOOD = 2000  # hits of one pattern in one file after which lines are sampled
FLOOD_A_BLOCK = 32  # lines of one pattern still looked at in a block of a flood
FLOOD_LINES = 50_000  # of those, one line a rank and stretch of so many lines is read
MATCHES_A_LINE = 8  # interleaved prints put several reports on one line
ROW_LINES = 4  # of torchrun's table of failures: rank, exitcode, error_file, traceback
# Numbers that differ between two reports of the same happening.
VOLATILE = frozenset({"ran_ms", "clock", "msg", "pid", "rate", "addr", "boot"})

# A setting behind these words is advice: nobody has set it.
_ADVISED = re.compile(
    r"(?:try setting|[Rr]e-?run with|[Rr]un with|consider \w+|[Pp]lease (?:set|use|try)"
    r"|can (?:also )?set|(?:by|try) (?:setting|using)|recommend\w* (?:to )?(?:set|us)\w*|specify)"
    r"[ `'\"(]{0,3}$"
)


@dataclass(slots=True)
class _Counted:
    """What becomes an event, with its count; `front` is that part of its line with the time."""

    pattern: Pattern
    line: int
    text: str
    file: str
    rank: int | None
    host: str
    process_group: str
    fields: dict[str, str]
    front: str
    last_line: int
    count: int = 1

    def event(self, count: int) -> Event:
        """The event with its time; most are dropped before anybody needs them."""
        when = clock.moment(self.front)
        return Event(
            pattern_id=self.pattern.id,
            kind=self.pattern.kind,
            event=self.pattern.event,
            line=self.line,
            text=self.text,
            file=self.file,
            rank=self.rank,
            host=self.host,
            process_group=self.process_group,
            time_s=when.seconds if when else None,
            fields=self.fields | {"clock": when.text} if when else self.fields,
            count=count,
        )


@dataclass(slots=True)
class _PatternHits:
    """How often a pattern hit in a file; of many hits, those which were read and which not."""

    number: int = 0
    skipped: int = 0
    sampled: set[tuple[bytes, int]] = field(default_factory=set)


@dataclass(slots=True)
class _Line:
    """A line and what every pattern that hits it needs of it, computed once."""

    raw: bytes
    text: str
    clean: bool = False  # known to hold no secret
    chatter: int | None = None  # where advice or chatter begins, None until computed
    shown: dict[int, tuple[str, int]] = field(default_factory=dict)
    origins: dict[str, prefix.Origin] = field(default_factory=dict)

    def redacted(self, start: int) -> tuple[str, int]:
        """The text to show for a hit at `start`, and how many secrets were taken out."""
        start = 0 if start < TEXT_CHARS // 2 else start
        if start not in self.shown:
            text = cut(self.text, start)
            self.shown[start] = (text, 0) if self.clean else redact(text)
        return self.shown[start]

    def origin(self, front: str) -> prefix.Origin:
        """Who printed the part of the line that begins with `front`."""
        if front not in self.origins:
            self.origins[front] = prefix.origin(front)
        return self.origins[front]


@dataclass(slots=True)
class EventCollector:
    """All events of one reading, bounded in number."""

    patterns: Sequence[Pattern]
    noise: Scanner
    vocabulary: EventVocabulary
    redactions: int = 0
    total: int = 0
    _open: dict[tuple[object, ...], _Counted] = field(default_factory=dict)
    _latest: dict[tuple[object, ...], list[_Counted]] = field(default_factory=dict)
    _bursts: dict[str, tuple[int, int]] = field(default_factory=dict)
    _recovered: dict[str, int] = field(default_factory=dict)  # latest line that withdraws others
    _done: list[_Counted] = field(default_factory=list)
    _hits: dict[tuple[str, int], _PatternHits] = field(
        default_factory=lambda: defaultdict(_PatternHits)
    )
    _sizes: Counter[int] = field(default_factory=Counter)
    _line: _Line = field(default_factory=lambda: _Line(b"", ""))
    _clean: bool = False

    def expect(self, lines: Iterable[bytes]) -> None:
        """Look for secrets in lines that are added next, all at once: nearly none holds one."""
        try:
            self._clean = is_clean(b"\n".join(lines).decode())
        except UnicodeDecodeError:  # of several encodings: each line is looked at by itself
            self._clean = False

    def add(
        self,
        number: int,
        raw: bytes,
        line: int,
        *,
        file: str,
        rank: int | None,
        more: Mapping[str, str] | None = None,
    ) -> bool:
        """Take in one hit: pattern `number` on the line `raw`, which is line `line` of `file`.

        `rank` is what is known of who printed the line where it does not say so itself, `more` are
        further fields. Returns whether it counts; advice that only quotes an error does not.
        """
        hits = self.note(number, file)
        if hits.number > FLOOD:
            sample = (prefix.quick_rank(raw), line // FLOOD_LINES)
            if sample in hits.sampled:
                self.skip(number, file)
                return True
            hits.sampled.add(sample)
        before = self.total
        pattern = self.patterns[number]
        for counted in self._read(number, raw, line, file, rank, more or {}):
            self.total += 1
            if pattern.event in self.vocabulary.recoveries:
                self._recovered[file] = max(line, self._recovered.get(file, 0))
            if pattern.kind in ONCE_A_BLOCK:
                self._collect_latest(counted)
            else:
                self._collect(number, counted)
        return self.total > before

    def note(self, number: int, file: str) -> _PatternHits:
        """Count a hit, also one that another pattern explains; many of them are a flood."""
        hits = self._hits[file, number]
        hits.number += 1
        return hits

    def is_flood(self, number: int, file: str) -> bool:
        """Whether a pattern hits so often in a file that its lines are sampled."""
        return (file, number) in self._hits and self._hits[file, number].number > FLOOD

    def skip(self, number: int, file: str) -> None:
        """Count a hit of a flood without reading its line."""
        self.total += 1
        self._hits[file, number].skipped += 1

    def events(self) -> tuple[Event, ...]:
        """All events, in the order of the input; ties by pattern."""
        order = {pattern.id: place for place, pattern in enumerate(self.patterns)}
        skipped = {(f, self.patterns[n].id): hits.skipped for (f, n), hits in self._hits.items()}
        counted = [*self._done, *self._open.values(), *chain.from_iterable(self._latest.values())]
        counted.sort(key=lambda item: -item.line)
        events = []
        for item in counted:  # hits of a flood are counted with the last event of their pattern
            count = item.count + skipped.pop((item.file, item.pattern.id), 0)
            events.append(item.event(count))
        events = _without_pod_ranks(events)
        files = {name: place for place, name in enumerate(dict.fromkeys(e.file for e in events))}
        return tuple(
            sorted(events, key=lambda e: (files[e.file], e.line, order[e.pattern_id], e.text))
        )

    def _read(
        self,
        number: int,
        raw: bytes,
        line: int,
        file: str,
        rank: int | None,
        more: Mapping[str, str],
    ) -> Iterator[_Counted]:
        """What a hit tells: one event for each match on its line, none for chatter."""
        pattern = self.patterns[number]
        if raw != self._line.raw:
            self._line = _Line(raw, decode(raw), self._clean)
        text = self._line.text
        if self._is_noise(number):
            return
        capture = capture_expression(pattern)
        matches: list[re.Match[str] | None] = []
        if capture is not None:
            matches += islice(capture.finditer(text), MATCHES_A_LINE)
        end = 0
        for match in matches or [None]:
            start = match.start() if match else 0
            groups = match.groupdict() if match else {}
            fields = {key: value.strip()[:FIELD_CHARS] for key, value in groups.items() if value}
            # A colon that a hit begins with ends the printer's tag.
            colon = text.startswith(":", start)
            front = text[end : start + colon] if start else text
            who = self._line.origin(front)
            end = match.end() if match else 0
            printed = self._printer(pattern, fields.pop("rank", ""), front, who, rank)
            shown, secrets = self._line.redacted(start)
            self.redactions += secrets
            if secrets:
                fields = {key: redact(value)[0] for key, value in fields.items()}
            yield _Counted(
                pattern=pattern,
                line=line,
                text=shown,
                file=file,
                rank=printed,
                host=who.host,
                process_group=fields.pop("pg", ""),
                fields={**fields, **more},
                front=text[: clock.FRONT_CHARS],
                last_line=line,
            )

    def _printer(
        self, pattern: Pattern, words: str, front: str, who: prefix.Origin, rank: int | None
    ) -> int | None:
        """The rank of a line: by torch's tag, its words, the launcher's tag, or what else is known.

        A launcher prints of others: what its own line or file is called by is not their rank.
        """
        if self.vocabulary.plays(pattern, EventRole.LAUNCHER):
            return int(words) if words.isdecimal() else None
        program = prefix.program_rank(front)
        if program is not None:
            return program
        if words.isdecimal() and int(words) < prefix.MAX_RANK:
            return int(words)
        return rank if who.rank is None else who.rank

    def _is_noise(self, number: int) -> bool:
        """Whether advice or chatter stands in front of the hit on its line."""
        pattern = self.patterns[number]
        text = self._line.text
        if self.vocabulary.plays(pattern, EventRole.SETTING):
            match = expression(pattern).search(text)
            return bool(match and _ADVISED.search(text[: match.start()]))
        if pattern.kind not in ("root", "timeout", "cascade"):
            return False
        if self._line.chatter is None:
            self._line.chatter = self._chatter()
        if self._line.chatter == len(text):
            return False
        hit = expression(pattern).search(text)
        return hit is None or self._line.chatter < hit.start()

    def _chatter(self) -> int:
        """Where advice or chatter begins on the line; its length where there is none."""
        text = self._line.text
        numbers = {number for number, _ in self.noise.scan(self._line.raw)}
        noise = [self.noise.patterns[number] for number in numbers]
        starts = [match.start() for p in noise if (match := expression(p).search(text))]
        return min(starts, default=len(text))

    def _collect(self, number: int, counted: _Counted) -> None:
        """Collect an event, or count it with an equal one that stands close above."""
        file, line = counted.file, counted.line
        last, burst = self._bursts.get(file, (0, 0))
        apart = line - last > REPEAT_LINES  # from here on progress is that of another burst
        self._bursts[file] = (max(last, line), burst + apart)
        stable = tuple(sorted((k, v) for k, v in counted.fields.items() if k not in VOLATILE))
        key = (file, number, counted.rank, counted.host, counted.process_group, stable)
        earlier = self._open.get(key)
        recovered = self._recovered.get(file, 0)  # what comes again after it is another one
        again = earlier is not None and earlier.last_line < recovered < line
        if earlier is not None and line - earlier.last_line <= REPEAT_LINES and not again:
            if line > earlier.last_line:
                earlier.count += 1
                earlier.last_line = line
            return
        all_events = len(self._done) + len(self._open)
        if self._sizes[number] >= EVENTS_A_PATTERN or all_events >= EVENTS_ALL:
            return
        if earlier is not None:
            self._done.append(earlier)
        self._sizes[number] += 1
        self._open[key] = counted

    def _collect_latest(self, counted: _Counted) -> None:
        """Collect of context and facts the first and the latest of each rank and burst."""
        get, line = counted.fields.get, counted.line
        _, burst = self._bursts.get(counted.file, (0, 0))
        pattern = counted.pattern.id
        key = (counted.file, pattern, counted.rank, burst, get("name"), get("what"))
        if key not in self._latest and len(self._latest) >= EVENTS_ALL:
            return
        latest = self._latest.setdefault(key, [])
        if latest and line <= latest[-1].line:  # else it is the last of all
            # the neighbourhood of a failure is read a second time
            if any(other.line == line and other.text == counted.text for other in latest):
                return
            latest.append(counted)
            latest.sort(key=lambda other: other.line)
        else:
            latest.append(counted)
        if len(latest) > LATEST:
            latest[0].count += latest.pop(1).count


def decode(raw: bytes) -> str:
    """A line's text: UTF-8, else GB18030, else with replacement characters."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        pass
    try:
        return raw.decode("gb18030")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace")


def cut(text: str, start: int) -> str:
    """At most `TEXT_CHARS` of a line, from its front where the hit is near, else from the hit."""
    if len(text) <= TEXT_CHARS or start < TEXT_CHARS // 2:
        return text[:TEXT_CHARS].strip()
    return text[start : start + TEXT_CHARS].strip()


def join_rows(events: Sequence[Event], vocabulary: EventVocabulary) -> tuple[Event, ...]:
    """Give exit codes and signals the rank that stands above them in a launcher's table.

    A line outside of it names a process and perhaps a place on its node (`local_rank`): its rank
    is that of the process in the table, or, without a table, its place where there is one node.
    """
    joined: list[Event] = []
    row: Event | None = None
    ranks: dict[str, int] = {}  # by process id
    for event in events:
        if vocabulary.plays(event, EventRole.FAILED_RANK_ROW):
            row = event
        elif (
            row is not None
            and vocabulary.plays(event, EventRole.RANK_DETAIL_ROW)
            and event.rank is None
            and event.file == row.file
            and 0 < event.line - row.line <= ROW_LINES
        ):
            event = replace(event, rank=row.rank)  # noqa: PLW2901 - the same event, its rank known
            if row.rank is not None and event.fields.get("pid"):
                ranks[event.fields["pid"]] = row.rank
        joined.append(event)
    alone = row is None and len({event.host for event in events if event.host}) < 2
    return tuple(_located(event, ranks, alone=alone) for event in joined)


def _located(event: Event, ranks: Mapping[str, int], *, alone: bool) -> Event:
    """An event about a process of no known rank with that rank, where it can be told."""
    pid, place = event.fields.get("pid", ""), event.fields.get("local_rank", "")
    if event.rank is not None or not place.isdecimal():
        return event
    return replace(event, rank=ranks.get(pid, int(place) if alone else None))


def _without_pod_ranks(events: list[Event]) -> list[Event]:
    """Pods' numbers are ranks where several pods print and none of them for another rank."""
    numbers = [prefix.pod_number(event.text) for event in events]
    pods = {number for number in numbers if number is not None}
    pairs = list(zip(events, numbers, strict=True))
    if not pods or (
        len(pods) > 1 and all(n in (None, e.rank) for e, n in pairs if e.rank is not None)
    ):
        return events
    return [
        replace(event, rank=None)
        if number is not None and event.rank == number and not _says_so_itself(event)
        else event
        for event, number in pairs
    ]


def _says_so_itself(event: Event) -> bool:
    """Whether the line behind the pod's name has the same rank once more."""
    return prefix.origin(event.text.partition("]")[2].lstrip()).rank == event.rank
