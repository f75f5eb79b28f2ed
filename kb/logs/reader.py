"""`LogReader`: from any input to one `LogReading`."""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from kb.errors import InputError, SlowInputError
from kb.evidence.reading import why_unread
from kb.evidence.source_code import code_facts
from kb.files.log_source import LogSource, from_path, from_stream, from_text
from kb.files.paths import files_under, short_names
from kb.logs.event_log import EventVocabulary
from kb.logs.excerpt import excerpt
from kb.logs.incident.assemble import build_incident
from kb.logs.incident.denied import without_denied
from kb.logs.incident.recovered import without_recovered
from kb.logs.scan.blocks import Block, blocks
from kb.logs.scan.call_stacks import CallStack, read_thread_stacks, read_traceback
from kb.logs.scan.events import FLOOD_A_BLOCK, WINDOW, EventCollector, decode, join_rows
from kb.logs.scan.prefix import file_ranks, table_host
from kb.logs.scan.scanner import ONCE_A_BLOCK, Hit, Scanner, expression
from kb.text.line_kind import PRINTED, read_lines, words_of
from kb.text.redact import redact, redact_name
from kb.types.incident import LogReading, TextLine, Unread
from kb.types.vocabulary import EventRole, LineKind

HEAD_BYTES = 256 * 1024  # read in full: settings, versions and transports are printed at the start
NEAR_BYTES = 64 * 1024  # before a failure, read in full: progress bars and the stage
NEAR_TIMES = 64  # neighbourhoods read in full in one input; a storm has more failures than causes
CROWD = 128  # progress lines read at a block's end, half as many before a failure
TRACEBACKS = 1024  # read in one input; more are a storm that repeats itself
THREAD_TAIL = 4096  # bytes of the last stack of a block, about
THREAD_BYTES = 4 * 1024 * 1024  # likewise, of threads' stacks: hundreds of ranks
NEAR_LINES = 2000  # failures closer than this share a neighbourhood
# Kinds that explain a generic exception on their line: its message is theirs, not a second error.
EXPLAINS = frozenset({"timeout", "cascade", "teardown", "root"})
HEAD_LINES_BYTES = 128 * 1024  # a person's words and scripts stand at the start or there are none
LEAST_HEAD_BYTES = 4096  # of each of many files
WRITTEN = frozenset({LineKind.CODE, LineKind.SCRIPT})  # by a person, for a program to run
LINES_CHARS = 64 * 1024  # of scripts, settings, code and tables


@dataclass(slots=True)
class _Pass:
    """State of reading one input: events so far, the source being read, how much was read."""

    collector: EventCollector
    limit_s: float
    deadline: float
    file: str = ""
    rank: int | None = None
    lines: int = 0
    size: int = 0
    near: int = 0
    tracebacks: int = 0
    thread_bytes: int = 0
    sources: int = 1
    heads: list[TextLine] = field(default_factory=list)
    written: set[int] = field(default_factory=set)  # lines of code and scripts in this source


class _LineHit(NamedTuple):
    """A pattern's hit with its line: number of the pattern, where the line starts in its block."""

    number: int
    line: int
    start: int
    raw: bytes


class LogReader:
    """Reads logs with a set of patterns; make one and use it for many inputs, from any thread.

    Args:
        vocabulary: what to look for and what it means.
        cache: folder for the compiled patterns; None compiles anew.
        max_line: bytes after which a line is cut around the hits in it.
    """

    def __init__(
        self, vocabulary: EventVocabulary, *, cache: Path | None, max_line: int = 64 * 1024
    ) -> None:
        self.vocabulary = vocabulary
        plays = vocabulary.plays
        self._explanations = tuple(
            expression(p) for p in vocabulary.patterns if plays(p, EventRole.EXPLANATION)
        )
        of_logs = [p for p in vocabulary.patterns if p.scope != "text"]
        noise = [p for p in of_logs if p.kind == "noise"]
        self._noise = Scanner(noise, once_a_block=False, cache=cache, name="scan-noise")
        chosen = [p for p in of_logs if p.kind != "noise"]
        self.patterns = tuple(chosen)
        self._full = Scanner(chosen, once_a_block=False, cache=cache, name="scan-full")
        # Progress stands on every line of a healthy log, so looking for it everywhere costs a
        # third of the speed; it matters where all is read: start, neighbourhood of failures, end.
        self._progress = frozenset(
            number for number, p in enumerate(chosen) if plays(p, EventRole.FREQUENT)
        )
        self._tracebacks = vocabulary.players(EventRole.TRACEBACK)
        self._threads = vocabulary.players(EventRole.THREAD_STACK)
        self._heads = self._tracebacks | self._threads
        self._rank_rows = vocabulary.players(EventRole.FAILED_RANK_ROW)
        self._main = Scanner(
            chosen,
            once_a_block=True,
            left_out={chosen[number].event for number in self._progress},
            each=self._heads,
            cache=cache,
            name="scan-main",
        )
        self._window = min(WINDOW, max_line)
        self._generic = tuple(plays(p, EventRole.EXCEPTION) for p in chosen)
        self._explaining = [
            number
            for number, p in enumerate(chosen)
            if p.kind in EXPLAINS and not self._generic[number]
        ]

    def read_text(self, text: str) -> LogReading:
        """Read pasted text, a person's words and program output mixed."""
        return self._read([from_text(text)])

    def read_paths(
        self,
        paths: Sequence[Path],
        *,
        without: Container[Path] = (),
        limit_s: float = math.inf,
        alone: bool = True,
    ) -> LogReading:
        """Read files and folders as the logs of one run.

        In a folder, files that are no logs are passed over; a file named itself that is none is
        named in the reading. Those in `without` are none of it. `alone` says that there is nothing
        else to answer from.

        Raises:
            InputError: a path does not exist, or, where they are `alone`, no file can be read.
            SlowInputError: reading takes longer than `limit_s`.
        """
        files = [path for path in files_under(paths) if path not in without]
        ranks = file_ranks(files)
        named = {path for path in paths if not path.is_dir()}
        return self._read(
            [from_path(path, ranks.get(path)) for path in files],
            needed=frozenset(str(path) for path in named),
            limit_s=limit_s,
            alone=alone,
        )

    def read_stream(self, chunks: Iterable[bytes], *, limit_s: float = math.inf) -> LogReading:
        """Read a stream of any length, compressed or in another encoding too, in constant memory.

        Raises:
            SlowInputError: it takes longer than `limit_s`: a megabyte can unpack to a petabyte.
        """
        return self._read([from_stream(chunks)], limit_s=limit_s)

    def _read(
        self,
        sources: Sequence[LogSource],
        needed: frozenset[str] | None = None,
        limit_s: float = math.inf,
        *,
        alone: bool = True,
    ) -> LogReading:
        state = _Pass(
            EventCollector(self.patterns, self._noise, self.vocabulary),
            limit_s=limit_s,
            deadline=time.monotonic() + limit_s,
            sources=len(sources),
        )
        refused: list[InputError] = []
        unread: list[Unread] = []
        names = [redact_name(n) for n in short_names([source.name for source in sources])]
        for source, name in zip(sources, names, strict=True):
            try:
                state.file, state.rank = name, source.rank
                self._read_source(source, state)
            except SlowInputError:
                raise
            except InputError as error:
                refused.append(error)
                if needed is not None and source.name in needed:
                    shown = name or Path(source.name).name
                    unread.append(why_unread(error, source.name, shown=shown))
        if alone and refused and len(refused) == len(sources):
            raise refused[0]
        return self._reading(state, unread)

    def _reading(self, state: _Pass, unread: Sequence[Unread]) -> LogReading:
        words, others, count = _head_lines(state.heads, self._explanations)
        own = {(line.file, line.number): line.text for line in words}
        events = without_denied(
            join_rows(state.collector.events(), self.vocabulary), own, self.vocabulary
        )
        events = without_recovered(events, self.vocabulary)
        incident = build_incident(events, self.vocabulary, lines=state.lines, size=state.size)
        facts = (*incident.facts, *code_facts(others, "\n".join(line.text for line in words)))
        incident = replace(incident, unread=tuple(unread), facts=facts)
        return LogReading(
            incident=incident,
            events=events,
            words="\n".join(line.text for line in words),
            excerpt=excerpt(events, incident),
            redactions=state.collector.redactions + count,
            word_places=tuple((line.file, line.number) for line in words),
            lines=others,
        )

    def _read_source(self, source: LogSource, state: _Pass) -> None:
        before = b""
        near_until = offset = lines = 0
        for block in blocks(source.chunks()):
            if time.monotonic() > state.deadline:
                raise SlowInputError(
                    f"reading takes longer than {state.limit_s:g} seconds",
                    todo="send the part around the failure, or read it with `timeout-kb diagnose`",
                    reason="slow",
                    values={"seconds": f"{state.limit_s:g}"},
                )
            if not offset:
                head = block.data[: max(HEAD_LINES_BYTES // state.sources, LEAST_HEAD_BYTES)]
                lines_of_head = read_lines(head.decode("utf-8", "replace"), state.file)
                state.heads += lines_of_head
                state.written = {line.number for line in lines_of_head if line.kind in WRITTEN}
            whole = offset < HEAD_BYTES
            scanner = self._full if whole else self._main
            error = self._add(block, scanner.scan(block.data), state)
            if error and not whole and error.line > near_until and state.near < NEAR_TIMES:
                near_until = error.line + NEAR_LINES
                state.near += 1
                upto = block.data[: error.start + len(error.raw)]
                self._add_context(before + upto, error.line, state)
            offset += len(block.data)
            before = block.data[-NEAR_BYTES:]
            lines = block.first_line - 1 + block.newlines
            if block.last and before and not before.endswith(b"\n"):
                lines += 1
        if offset > HEAD_BYTES:
            self._add_context(before.removesuffix(b"\n"), lines, state)
        state.lines += lines
        state.size += offset

    def _add(self, block: Block, hits: list[Hit], state: _Pass) -> _LineHit | None:
        """Hand the hits of a block to the collector; returns the first that is a failure.

        An exception counts only where nothing says more. A repeat of a specific event is counted
        and not collected, so this is decided here and not later.
        """
        collector, file = state.collector, state.file
        lines = [hit for hit in self._line_hits(block, hits, state) if self._printed(hit, state)]
        collector.expect({hit.raw for hit in lines})
        stacks = self._stacks(block, lines, state)
        explained: set[int] = set()
        for hit in sorted(lines, key=lambda hit: self._generic[hit.number]):
            pattern = self.patterns[hit.number]
            if self._generic[hit.number] and (
                hit.start in explained or self._explained_by_flood(hit.raw, state)
            ):
                collector.note(hit.number, file)
                continue
            stack = stacks.get(hit.line) if pattern.event in self._heads else None
            more = stack.fields if stack else None
            if pattern.event in self._rank_rows and (host := table_host(block.data, hit.start)):
                more = {"host": host}
            counts = collector.add(
                hit.number,
                hit.raw,
                hit.line,
                file=file,
                rank=state.rank if stack is None or stack.rank is None else stack.rank,
                more=more,
            )
            if counts and pattern.kind in EXPLAINS:
                explained.add(hit.start)
        failures = (hit for hit in lines if self.patterns[hit.number].kind not in ONCE_A_BLOCK)
        return next(failures, None)

    def _stacks(self, block: Block, hits: Sequence[_LineHit], state: _Pass) -> dict[int, CallStack]:
        """The stacks whose heads were hit, by line; of a storm the first ones."""
        stacks: dict[int, CallStack] = {}
        threads: set[tuple[int, int]] = set()
        for hit in hits:
            event = self.patterns[hit.number].event
            if event in self._tracebacks and state.tracebacks < TRACEBACKS:
                state.tracebacks += 1
                if stack := read_traceback(block.data, hit.start, hit.line):
                    stacks[hit.line] = stack
            elif event in self._threads:
                threads.add((hit.start, hit.line))
        if threads and state.thread_bytes < THREAD_BYTES:
            state.thread_bytes += max(threads)[0] - min(threads)[0] + THREAD_TAIL
            stacks |= read_thread_stacks(block.data, threads)
        return stacks

    def _printed(self, hit: _LineHit, state: _Pass) -> bool:
        """Whether a pattern may count: what programs print does not stand in code and scripts."""
        return hit.line not in state.written or self.patterns[hit.number].scope != "log"

    def _explained_by_flood(self, raw: bytes, state: _Pass) -> bool:
        """Whether a pattern whose lines are sampled stands on the line."""
        return any(
            expression(self.patterns[number]).search(decode(raw))
            for number in self._explaining
            if state.collector.is_flood(number, state.file)
        )

    def _line_hits(self, block: Block, hits: list[Hit], state: _Pass) -> Iterator[_LineHit]:
        """The hits with their lines, each pattern once a line; of a flood a few a block."""
        data = block.data
        line, counted = block.first_line, 0
        start = stop = 0
        raw = b""
        done: set[tuple[int, int]] = set()
        looked: Counter[int] = Counter()
        for number, end in self._thinned(hits):
            if state.collector.is_flood(number, state.file):
                looked[number] += 1
                if looked[number] > FLOOD_A_BLOCK:
                    state.collector.skip(number, state.file)
                    continue
            place = end - 1
            line += data.count(b"\n", counted, place)
            counted = place
            if not (start <= place < stop and stop - start < self._window):
                start, stop = self._bounds(data, place)
                raw = data[start:stop]
            if (number, start) not in done:
                done.add((number, start))
                yield _LineHit(number, line, start, raw)

    def _add_context(self, before: bytes, line: int, state: _Pass) -> None:
        """Read in full the context in the last bytes of `before`, which ends with `line`."""
        window = before[-NEAR_BYTES:]
        window = window[window.find(b"\n") + 1 :]
        hits = [
            hit for hit in self._full.scan(window) if self.patterns[hit[0]].kind in ONCE_A_BLOCK
        ]
        first_line = line - window.count(b"\n")
        self._add(Block(window, first_line, 0, last=False), hits, state)

    def _thinned(self, hits: list[Hit]) -> list[Hit]:
        """Hits without the bulk of crowded progress: first, last and before failures they stay."""
        counts = Counter(number for number, _ in hits if number in self._progress)
        left = {number: CROWD for number, count in counts.items() if count > 2 * CROWD}
        if not left:
            return hits
        chosen: list[Hit] = []
        for hit in reversed(hits):
            if hit[0] not in left:
                chosen.append(hit)
                if self.patterns[hit[0]].kind not in ONCE_A_BLOCK:
                    left = {number: max(room, CROWD // 2) for number, room in left.items()}
            elif left[hit[0]] > 0:
                left[hit[0]] -= 1
                chosen.append(hit)
        firsts = {number: next(hit for hit in hits if hit[0] == number) for number in left}
        chosen += firsts.values()
        return sorted(set(chosen), key=lambda hit: (hit[1], hit[0]))

    def _bounds(self, data: bytes, place: int) -> tuple[int, int]:
        """Where the line around `place` starts and stops; carriage returns part lines too."""
        low, high = max(0, place - self._window), min(len(data), place + self._window)
        start = max(data.rfind(b"\n", low, place) + 1, low)
        start = max(data.rfind(b"\r", start, place) + 1, start)
        stop = data.find(b"\n", place, high)
        stop = high if stop < 0 else stop
        bar = data.find(b"\r", place, stop)
        return start, (stop if bar < 0 else bar)


def _head_lines(
    lines: Sequence[TextLine], explanations: Sequence[re.Pattern[str]]
) -> tuple[tuple[TextLine, ...], tuple[TextLine, ...], int]:
    """The lines of a person's words, those of scripts and settings, and secrets taken out."""
    words, redacted = _redacted(words_of(lines, explanations))
    size = 0
    others: list[TextLine] = []
    for line in lines:
        if line.kind in PRINTED or line.kind in (LineKind.PROSE, LineKind.MARKUP):
            continue
        size += len(line.text)
        if size > LINES_CHARS:
            break
        others.append(line)
    other_lines, count = _redacted(others)
    return words, other_lines, redacted + count


def _redacted(lines: Sequence[TextLine]) -> tuple[tuple[TextLine, ...], int]:
    """The lines without secrets, and how many there were; of one over several lines all go."""
    text, count = redact("\n".join(line.text for line in lines))
    if not count:
        return tuple(lines), 0
    pieces = text.split("\n")
    if len(pieces) == len(lines):
        return tuple(replace(line, text=t) for line, t in zip(lines, pieces, strict=True)), count
    redacted = (replace(line, text=redact(line.text)[0]) for line in lines)
    return tuple(line for line in redacted if line.text in pieces), count
