"""Hits become events: captures, rank, host, time; repeats are counted, not kept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from kb.logs import clock, prefix
from kb.logs.redact import is_clean, redact
from kb.logs.scan import ONCE_A_BLOCK, Scanner, regex_flags
from kb.types import Event, Pattern

WINDOW = 2048  # bytes looked at on both sides of a hit: longer lines are cut
TEXT_CHARS = 400  # of an event's text
FIELD_CHARS = 300
REPEAT_LINES = 500  # the same event further away is a new one: another wave, another attempt
EVENTS_A_PATTERN = 2000  # kept a pattern: 1,000 ranks, two waves
EVENTS_ALL = 20_000
LATEST = 4  # of context and facts: the first and the three latest
FLOOD = 2000  # hits of one pattern in one file after which lines are sampled
FLOOD_A_BLOCK = 32  # lines of one pattern still looked at in a block of a flood
FLOOD_LINES = 50_000  # of those, one line a rank and stretch of so many lines is read
MATCHES_A_LINE = 8  # interleaved prints put several reports on one line
# Numbers that differ between two reports of the same happening.
VOLATILE = frozenset({"ran_ms", "clock", "msg", "pid", "rate", "addr"})

# A setting behind these words is advice: nobody has set it.
_ADVISED = re.compile(
    r"(?:try setting|[Rr]e-?run with|[Rr]un with|consider \w+|[Pp]lease (?:set|use|try)"
    r"|can (?:also )?set|(?:by|try) (?:setting|using)|recommend\w* (?:to )?(?:set|us)\w*|specify)"
    r"[ `'\"(]{0,3}$"
)


class Expressions:
    """Expressions for `re`, compiled when first needed: compiling all takes a tenth of a second."""

    def __init__(self) -> None:
        self._regexes: dict[str, re.Pattern[str]] = {}
        self._captures: dict[str, re.Pattern[str] | None] = {}

    def regex(self, pattern: Pattern) -> re.Pattern[str]:
        """What finds the pattern in a line's text."""
        found = self._regexes.get(pattern.id)
        if found is None:
            found = self._regexes[pattern.id] = re.compile(pattern.regex, regex_flags(pattern))
        return found

    def capture(self, pattern: Pattern) -> re.Pattern[str] | None:
        """What takes the fields out of a line, or None."""
        if pattern.id not in self._captures:
            flags = re.IGNORECASE if pattern.ignore_case else 0
            text = pattern.capture
            self._captures[pattern.id] = re.compile(text, flags) if text else None
        return self._captures[pattern.id]


@dataclass(slots=True)
class _Kept:
    """An event with its count and the last line it stood on."""

    event: Event
    count: int
    last_line: int


@dataclass(slots=True)
class _Sight:
    """A hit and what its event says; of context few hits are kept, so its event is made late.

    `front` is that part of its line which may tell the time.
    """

    pattern: Pattern
    line: int
    text: str
    front: str
    file: str
    rank: int | None
    host: str
    fields: dict[str, str]
    count: int = 1

    def event(self) -> Event:
        """The event; its fields are this hit's own, so it is made once."""
        fields = self.fields
        group = fields.pop("pg", "")
        when = clock.moment(self.front)
        if when is not None:
            fields["clock"] = when.text
        return Event(
            pattern_id=self.pattern.id,
            kind=self.pattern.kind,
            event=self.pattern.event,
            line=self.line,
            text=self.text,
            file=self.file,
            rank=self.rank,
            host=self.host,
            process_group=group,
            time_s=when.seconds if when else None,
            fields=fields,
        )


@dataclass(slots=True)
class _Line:
    """A line and what every pattern that hits it asks of it, found out once."""

    raw: bytes
    text: str
    clean: bool = False  # known to hold no secret
    chatter: int | None = None  # where advice or chatter begins, None before anybody asked
    shown: dict[int, tuple[str, int]] = field(default_factory=dict)
    origins: dict[str, prefix.Origin] = field(default_factory=dict)

    def redacted(self, start: int) -> tuple[str, int]:
        """The text to show for a hit at `start`, and how many secrets were taken out."""
        start = 0 if start < TEXT_CHARS // 2 else start
        found = self.shown.get(start)
        if found is None:
            text = cut(self.text, start)
            found = self.shown[start] = (text, 0) if self.clean else redact(text)
        return found

    def origin(self, front: str) -> prefix.Origin:
        """Who printed the part of the line that begins with `front`."""
        found = self.origins.get(front)
        if found is None:
            found = self.origins[front] = prefix.origin(front)
        return found


@dataclass(slots=True)
class Tally:
    """All events of one reading, bounded in number."""

    patterns: Sequence[Pattern]
    noise: Scanner
    expressions: Expressions
    redactions: int = 0
    total: int = 0
    _kept: dict[tuple[object, ...], _Kept] = field(default_factory=dict)
    _latest: dict[tuple[object, ...], list[_Sight]] = field(default_factory=dict)
    _bursts: dict[str, tuple[int, int]] = field(default_factory=dict)
    _done: list[_Kept] = field(default_factory=list)
    _seen: dict[tuple[str, int], int] = field(default_factory=dict)
    _flooding: dict[str, set[int]] = field(default_factory=dict)
    _skipped: dict[tuple[str, int], int] = field(default_factory=dict)
    _flood: set[tuple[str, int, bytes, int]] = field(default_factory=set)
    _sizes: dict[int, int] = field(default_factory=dict)
    _line: _Line = field(default_factory=lambda: _Line(b"", ""))
    _clean: bool = False

    def expect(self, lines: Iterable[bytes]) -> None:
        """Look for secrets in lines that are added next, all at once: nearly none holds one."""
        try:
            self._clean = is_clean(b"\n".join(lines).decode())
        except UnicodeDecodeError:  # of several encodings: each line is looked at by itself
            self._clean = False

    def add(self, number: int, raw: bytes, line: int, *, file: str, rank: int | None) -> bool:
        """Take in one hit: pattern `number` on the line `raw`, which is line `line` of `file`.

        Returns whether it counts; advice that only quotes an error does not.
        """
        if self.note(number, file) > FLOOD:
            key = (file, number, prefix.quick_rank(raw), line // FLOOD_LINES)
            if key in self._flood:
                self.skip(file, number, 1)
                return True
            self._flood.add(key)
        before = self.total
        for sight in self._read(number, raw, line, file, rank):
            self._keep(number, sight)
        return self.total > before

    def note(self, number: int, file: str) -> int:
        """Count a hit, also one that another pattern explains; many of them are a flood."""
        seen = self._seen.get((file, number), 0) + 1
        self._seen[file, number] = seen
        if seen > FLOOD:
            self._flooding.setdefault(file, set()).add(number)
        return seen

    def flooding(self, file: str) -> frozenset[int]:
        """Patterns that hit so often in a file that their lines are sampled."""
        return frozenset(self._flooding.get(file, ()))

    def skip(self, file: str, number: int, count: int) -> None:
        """Count hits of a flood without reading their lines."""
        self.total += count
        self._skipped[file, number] = self._skipped.get((file, number), 0) + count

    def events(self) -> tuple[Event, ...]:
        """Everything kept, in the order of the input; ties by pattern."""
        order = {pattern.id: place for place, pattern in enumerate(self.patterns)}
        kept = [*self._done, *self._kept.values()]
        kept += [
            _Kept(sight.event(), sight.count, sight.line)
            for latest in self._latest.values()
            for sight in latest
        ]
        skipped = {(f, self.patterns[n].id): count for (f, n), count in self._skipped.items()}
        events = []
        for item in sorted(kept, key=lambda k: -k.event.line):  # the flood goes to the last one
            extra = skipped.pop((item.event.file, item.event.pattern_id), 0)
            count = item.count + extra
            same = count == item.event.count
            events.append(item.event if same else replace(item.event, count=count))
        files = {name: place for place, name in enumerate(dict.fromkeys(e.file for e in events))}
        return tuple(
            sorted(events, key=lambda e: (files[e.file], e.line, order[e.pattern_id], e.text))
        )

    def _read(
        self, number: int, raw: bytes, line: int, file: str, rank: int | None
    ) -> Iterator[_Sight]:
        pattern = self.patterns[number]
        if raw != self._line.raw:
            self._line = _Line(raw, decode(raw), self._clean)
        text = self._line.text
        if self._is_noise(number):
            return
        capture = self.expressions.capture(pattern)
        if capture is None:
            yield self._sight(pattern, 0, {}, line, file, rank)
            return
        found = 0
        end = 0
        for match in capture.finditer(text):
            fields = {k: v.strip()[:FIELD_CHARS] for k, v in match.groupdict().items() if v}
            front = text[end : match.start()] if found else text[: match.start()]
            yield self._sight(pattern, match.start(), fields, line, file, rank, front)
            end = match.end()
            found += 1
            if found == MATCHES_A_LINE:
                break
        if not found:
            yield self._sight(pattern, 0, {}, line, file, rank)

    def _is_noise(self, number: int) -> bool:
        """Whether advice or chatter stands in front of the hit on its line."""
        pattern = self.patterns[number]
        text = self._line.text
        if pattern.event == "setting":
            match = self.expressions.regex(pattern).search(text)
            return bool(match and _ADVISED.search(text[: match.start()]))
        if pattern.kind not in ("root", "timeout", "cascade"):
            return False
        if self._line.chatter is None:
            self._line.chatter = self._chatter()
        if self._line.chatter == len(text):
            return False
        hit = self.expressions.regex(pattern).search(text)
        return hit is None or self._line.chatter < hit.start()

    def _chatter(self) -> int:
        """Where advice or chatter begins on the line; its length where there is none."""
        text = self._line.text
        found = [
            self.noise.patterns[place] for place in {n for n, _ in self.noise.scan(self._line.raw)}
        ]
        starts = [m.start() for p in found if (m := self.expressions.regex(p).search(text))]
        return min(starts, default=len(text))

    def _sight(
        self,
        pattern: Pattern,
        start: int,
        fields: dict[str, str],
        line: int,
        file: str,
        rank: int | None,
        front: str | None = None,
    ) -> _Sight:
        who = self._line.origin(front if start and front is not None else self._line.text)
        number = fields.pop("rank", None)
        if number is not None and number.isdigit() and int(number) < prefix.MAX_RANK:
            rank = int(number)
        elif who.rank is not None:
            rank = who.rank
        shown, count = self._line.redacted(start)
        self.redactions += count
        if count:
            fields = {key: redact(value)[0] for key, value in fields.items()}
        return _Sight(
            pattern=pattern,
            line=line,
            text=shown,
            front=self._line.text[: clock.FRONT_CHARS],
            file=file,
            rank=rank,
            host=who.host,
            fields=fields,
        )

    def _keep(self, number: int, sight: _Sight) -> None:
        self.total += 1
        if sight.pattern.kind in ONCE_A_BLOCK:
            self._keep_latest(sight)
            return
        event = sight.event()
        self._mark_failure(event)
        stable = tuple(sorted((k, v) for k, v in event.fields.items() if k not in VOLATILE))
        key = (event.file, event.pattern_id, event.rank, event.host, event.process_group, stable)
        kept = self._kept.get(key)
        if kept is not None and event.line - kept.last_line <= REPEAT_LINES:
            if event.line > kept.last_line:
                kept.count += 1
                kept.last_line = event.line
            return
        size = self._sizes.get(number, 0)
        if size >= EVENTS_A_PATTERN or len(self._done) + len(self._kept) >= EVENTS_ALL:
            return
        if kept is not None:
            self._done.append(kept)
        self._sizes[number] = size + 1
        self._kept[key] = _Kept(event, 1, event.line)

    def _mark_failure(self, event: Event) -> None:
        """Progress before one burst of failures is kept apart from progress before the next."""
        last, burst = self._bursts.get(event.file, (0, 0))
        apart = event.line - last > REPEAT_LINES
        self._bursts[event.file] = (max(last, event.line), burst + apart)

    def _keep_latest(self, sight: _Sight) -> None:
        """Of context and facts the first and the latest of each rank and burst are kept."""
        get = sight.fields.get
        _, burst = self._bursts.get(sight.file, (0, 0))
        key = (sight.file, sight.pattern.id, sight.rank, burst, get("name"), get("what"))
        latest = self._latest.get(key)
        if latest is None:
            if len(self._latest) >= EVENTS_ALL:
                return
            latest = self._latest[key] = []
        ordered = not latest or latest[-1].line < sight.line
        if not ordered and any(
            kept.line == sight.line and kept.text == sight.text for kept in latest
        ):
            return  # the neighbourhood of a failure is read a second time
        latest.append(sight)
        if not ordered:
            latest.sort(key=lambda kept: kept.line)
        if len(latest) > LATEST:
            dropped = latest.pop(1)
            latest[0].count += dropped.count


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
