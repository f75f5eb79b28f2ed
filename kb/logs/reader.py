"""`LogReader`: from any input to one `LogReading`."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from kb.errors import InputError, SlowInputError
from kb.logs import excerpt, prose, words
from kb.logs.blocks import Block, blocks
from kb.logs.events import FLOOD_A_BLOCK, WINDOW, Expressions, Tally, decode
from kb.logs.incident import build_incident
from kb.logs.prefix import file_ranks
from kb.logs.reading import why_unread
from kb.logs.redact import redact
from kb.logs.rows import join_rows
from kb.logs.scan import ONCE_A_BLOCK, PROGRESS_EVENTS, Hit, Scanner
from kb.logs.source import (
    Source,
    files_under,
    from_bytes,
    from_path,
    from_stream,
    from_text,
    short_names,
)
from kb.logs.timeline import meanings
from kb.types import LogReading, Pattern, Unread

HEAD_BYTES = 256 * 1024  # read in full: settings, versions and transports are printed at the start
NEAR_BYTES = 64 * 1024  # before a failure, read in full: progress bars and the stage
NEAR_TIMES = 64  # neighbourhoods read in full in one input; a storm has more failures than causes
CROWD = 128  # progress lines read at a block's end, half as many before a failure
NEAR_LINES = 2000  # failures closer than this share a neighbourhood
EXPLANATION = "explanation"  # the event of words by which a program explains its error
GENERIC = "exception"  # the event of any Python exception, whatever its message
# Kinds that explain a generic exception on their line: its message is theirs, not a second error.
EXPLAINS = frozenset({"timeout", "cascade", "teardown", "root"})
DESCRIPTION_BYTES = 128 * 1024  # a person's words stand at the start or there are none
DESCRIPTION_LINES = 20_000  # no more lines stand in as many bytes of a description


@dataclass(slots=True)
class _Pass:
    """State of reading one input: what was found, how much was read."""

    tally: Tally
    limit_s: float
    deadline: float
    lines: int = 0
    size: int = 0
    near: int = 0
    head: str = ""
    head_file: str = ""
    output_lines: set[int] = field(default_factory=set)


class LogReader:
    """Reads logs with a set of patterns; make one and use it for many inputs, from any thread.

    Args:
        patterns: what to look for; those of scope `text` are left out.
        cache: folder for the compiled patterns; None compiles anew.
        max_line: bytes after which a line is cut around what was found in it.
    """

    def __init__(
        self, patterns: Sequence[Pattern], *, cache: Path | None, max_line: int = 64 * 1024
    ) -> None:
        noise = [p for p in patterns if p.kind == "noise" and p.scope != "text"]
        self._expressions = Expressions()
        self._explanations = tuple(
            self._expressions.regex(p) for p in patterns if p.event == EXPLANATION
        )
        self._noise = Scanner(noise, once_a_block=False, cache=cache, name="scan-noise")
        chosen = [p for p in patterns if p.kind != "noise" and p.scope != "text"]
        self.patterns = tuple(chosen)
        self._full = Scanner(chosen, once_a_block=False, cache=cache, name="scan-full")
        self._main = Scanner(chosen, once_a_block=True, cache=cache, name="scan-main")
        self._window = min(WINDOW, max_line)
        self._means = meanings(chosen)
        self._generic = tuple(p.event == GENERIC for p in chosen)
        self._progress = frozenset(
            number for number, p in enumerate(chosen) if p.event in PROGRESS_EVENTS
        )

    def read_text(self, text: str) -> LogReading:
        """Read pasted text, a person's words and program output mixed."""
        return self._read([from_text(text)])

    def read_bytes(self, data: bytes, name: str = "") -> LogReading:
        """Read the bytes of a log, compressed or in another encoding too."""
        return self._read([from_bytes(data, name)])

    def read_paths(
        self, paths: Sequence[Path], *, limit_s: float = math.inf, alone: bool = True
    ) -> LogReading:
        """Read files and folders as the logs of one run.

        In a folder, files that are no logs are passed over; a file named itself that is none is
        told in the reading. `alone` says that there is nothing else to answer from.

        Raises:
            InputError: a path does not exist, or, where they are `alone`, no file can be read.
            SlowInputError: reading takes longer than `limit_s`.
        """
        files = files_under(paths)
        ranks = file_ranks(files)
        named = {path for path in paths if not path.is_dir()}
        return self._read(
            [from_path(path, ranks.get(path)) for path in files],
            needed=frozenset(str(path) for path in named),
            limit_s=limit_s,
            alone=alone,
        )

    def read_stream(self, chunks: Iterable[bytes], *, limit_s: float = math.inf) -> LogReading:
        """Read a stream of any length in constant memory.

        Raises:
            SlowInputError: it takes longer than `limit_s`: a megabyte can unpack to a petabyte.
        """
        return self._read([from_stream(chunks)], limit_s=limit_s)

    def _read(
        self,
        sources: Sequence[Source],
        needed: frozenset[str] | None = None,
        limit_s: float = math.inf,
        *,
        alone: bool = True,
    ) -> LogReading:
        state = _Pass(
            Tally(self.patterns, self._noise, self._expressions),
            limit_s=limit_s,
            deadline=time.monotonic() + limit_s,
        )
        refused: list[InputError] = []
        unread: list[Unread] = []
        names = short_names([source.name for source in sources])
        for source, name in zip(sources, names, strict=True):
            try:
                self._read_source(source, state, name)
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
        events = join_rows(state.tally.events())
        incident = build_incident(events, means=self._means, lines=state.lines, size=state.size)
        incident = replace(incident, unread=tuple(unread))
        described, count = redact(
            prose.description(state.head, output=frozenset(state.output_lines))
        )
        spoken, lines = words.numbered(state.head, self._explanations)
        said = redact(spoken)[0]
        return LogReading(
            incident=incident,
            events=events,
            description=described,
            words=said,
            excerpt=excerpt.excerpt(events, incident),
            redactions=state.tally.redactions + count,
            # a secret of many lines was taken out: the others have moved
            word_lines=lines if said.count("\n") == spoken.count("\n") else (),
            word_file=state.head_file,
        )

    def _read_source(self, source: Source, state: _Pass, file: str) -> None:
        before = b""
        near_until = 0
        offset = 0
        lines = 0
        first = not state.head
        for block in blocks(source.chunks()):
            if time.monotonic() > state.deadline:
                raise SlowInputError(
                    f"reading takes longer than {state.limit_s:g} seconds",
                    todo="send the part around the failure, or read it with `timeout-kb diagnose`",
                    reason="slow",
                    values={"seconds": f"{state.limit_s:g}"},
                )
            if first and not offset:
                head = block.data[: min(block.size, DESCRIPTION_BYTES)]
                state.head = head.decode("utf-8", "replace")
                state.head_file = file
            whole = offset < HEAD_BYTES
            scanner = self._full if whole else self._main
            hits = scanner.scan(memoryview(block.data)[: block.size])
            if hits:
                found = self._add(block, hits, state, file, source.rank)
                if not whole and found and found > near_until and state.near < NEAR_TIMES:
                    near_until = found + NEAR_LINES
                    state.near += 1
                    self._near(before, block, found, state, file, source.rank)
            offset += block.size
            before = block.data[max(0, block.size - NEAR_BYTES) : block.size]
            lines = block.first_line - 1 + block.newlines
            if block.last and before and not before.endswith(b"\n"):
                lines += 1
        if offset > HEAD_BYTES:
            self._tail(before, lines, state, file, source.rank)
        state.lines += lines
        state.size += offset

    def _add(self, block: Block, hits: list[Hit], state: _Pass, file: str, rank: int | None) -> int:
        """Give the hits of a block to the tally; returns the first line of a failure, or 0."""
        data = block.data
        line, counted = block.first_line, 0
        start = stop = 0
        failure = 0
        done: set[tuple[int, int]] = set()
        flooding = state.tally.flooding(file)
        looked: Counter[int] = Counter()
        raw = b""
        found: list[tuple[int, int, bytes, int]] = []
        for number, end in self._thinned(hits):
            if number in flooding:
                looked[number] += 1
                if looked[number] > FLOOD_A_BLOCK:
                    continue
            place = end - 1
            line += data.count(b"\n", counted, place)
            counted = place
            if not (start <= place < stop and stop - start < self._window):
                start, stop = self._bounds(data, place, block.size)
                raw = data[start:stop]
            if (number, start) in done:
                continue
            done.add((number, start))
            pattern = self.patterns[number]
            if pattern.kind not in ONCE_A_BLOCK:
                failure = failure or line
            if line <= DESCRIPTION_LINES and pattern.scope == "log" and pattern.kind != "fact":
                state.output_lines.add(line)
            found.append((number, start, raw, line))
        state.tally.expect({raw for _, _, raw, _ in found})
        self._tell(found, state.tally, file, rank)
        for number, count in looked.items():
            state.tally.skip(file, number, max(0, count - FLOOD_A_BLOCK))
        return failure

    def _tell(
        self,
        found: list[tuple[int, int, bytes, int]],
        tally: Tally,
        file: str,
        rank: int | None,
    ) -> None:
        """Hand over hits: pattern, start of the line, the line, its number.

        An exception counts only where nothing says more. A repeat of a specific event is counted,
        not kept, so this must be told here and not later.
        """
        explained: set[int] = set()
        flood = [
            self._expressions.regex(self.patterns[number])
            for number in sorted(tally.flooding(file))
            if self.patterns[number].kind in EXPLAINS and not self._generic[number]
        ]
        for number, start, raw, line in sorted(found, key=lambda hit: self._generic[hit[0]]):
            if self._generic[number] and (
                start in explained or (flood and any(e.search(decode(raw)) for e in flood))
            ):
                tally.note(number, file)
                continue
            taken = tally.add(number, raw, line, file=file, rank=rank)
            if taken and self.patterns[number].kind in EXPLAINS:
                explained.add(start)

    def _thinned(self, hits: list[Hit]) -> list[Hit]:
        """Hits without the bulk of crowded progress: first, last and before failures they stay."""
        counts = Counter(number for number, _ in hits if number in self._progress)
        left = {number: CROWD for number, count in counts.items() if count > 2 * CROWD}
        if not left:
            return hits
        kept: list[Hit] = []
        for hit in reversed(hits):
            if hit[0] not in left:
                kept.append(hit)
                if self.patterns[hit[0]].kind not in ONCE_A_BLOCK:
                    left = {number: max(room, CROWD // 2) for number, room in left.items()}
            elif left[hit[0]] > 0:
                left[hit[0]] -= 1
                kept.append(hit)
        firsts = {number: next(hit for hit in hits if hit[0] == number) for number in left}
        kept += firsts.values()
        return sorted(set(kept), key=lambda hit: (hit[1], hit[0]))

    def _bounds(self, data: bytes, place: int, size: int) -> tuple[int, int]:
        """Where the line around `place` starts and stops; carriage returns part lines too."""
        low, high = max(0, place - self._window), min(size, place + self._window)
        start = max(data.rfind(b"\n", low, place), data.rfind(b"\r", low, place), low - 1) + 1
        stop = data.find(b"\n", place, high)
        stop = high if stop < 0 else stop
        bar = data.find(b"\r", place, stop)
        return start, (stop if bar < 0 else bar)

    def _near(
        self, before: bytes, block: Block, line: int, state: _Pass, file: str, rank: int | None
    ) -> None:
        """Read in full what stands before the failure on `line` of `block`."""
        lines = block.data[: block.size].split(b"\n", line - block.first_line + 1)
        upto = b"\n".join(lines[: line - block.first_line + 1])
        window = (before + upto)[-NEAR_BYTES:]
        window = window[window.find(b"\n") + 1 :]
        self._context(window, line - window.count(b"\n"), state, file, rank)

    def _tail(self, data: bytes, lines: int, state: _Pass, file: str, rank: int | None) -> None:
        window = data[data.find(b"\n") + 1 :]
        first = lines - window.count(b"\n") + (1 if window.endswith(b"\n") else 0)
        self._context(window, first, state, file, rank)

    def _context(
        self, window: bytes, first_line: int, state: _Pass, file: str, rank: int | None
    ) -> None:
        hits = [
            hit for hit in self._full.scan(window) if self.patterns[hit[0]].kind in ONCE_A_BLOCK
        ]
        self._add(Block(window, len(window), first_line, 0, last=False), hits, state, file, rank)
