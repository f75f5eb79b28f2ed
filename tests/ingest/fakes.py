"""Stands-in for the store and the reader of logs that keep their contracts, for ingest's tests."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kb.errors import InputError, StoreError
from kb.types.entries import Entry
from kb.types.incident import Event, Incident, LogReading

WATCHDOG = re.compile(r"WorkNCCL\(SeqNum=(\d+), OpType=(\w+).*Timeout\(ms\)=(\d+)")


class MemorySink:
    """Entries by source key; a group is applied as a whole or, when told to fail, not at all."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.groups: list[int] = []
        self.fail_at: int | None = None

    def apply(self, entries: Sequence[Entry]) -> Mapping[str, int]:
        """Store a group."""
        if self.fail_at == len(self.groups):
            raise StoreError("the disk is full", todo="make room")
        counts = {"added": 0, "updated": 0, "unchanged": 0}
        for entry in entries:
            old = self.entries.get(entry.source_key)
            known = entry in self.entries.values()
            counts["unchanged" if known else "updated" if old else "added"] += 1
            if not known:
                self.entries[entry.source_key] = entry
        self.groups.append(len(entries))
        return counts

    def iter_entries(self) -> Iterable[Entry]:
        """What is stored, in id order."""
        return sorted(self.entries.values(), key=lambda entry: entry.id)


class WatchdogReader:
    """Reads the watchdog's line and nothing else."""

    def read_text(self, text: str) -> LogReading:
        """Read text."""
        if not text.strip():
            raise InputError("the input is empty")
        events = tuple(
            Event(
                pattern_id="watchdog", kind="timeout", event="watchdog", line=number, text=line,
                fields={"op": found[2]},
            )
            for number, line in enumerate(text.splitlines(), start=1)
            if (found := WATCHDOG.search(line))
        )  # fmt: skip
        incident = Incident()
        if events:
            incident = Incident(backend="nccl", op=events[0].fields["op"], has_timeout=True)
        excerpt = "\n".join(event.text for event in events)
        return LogReading(incident=incident, events=events, excerpt=excerpt)

    def read_paths(self, paths: Sequence[Path]) -> LogReading:
        """Read files, gzip too."""
        texts = []
        for path in paths:
            data = path.read_bytes()
            try:
                data = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
            except (OSError, EOFError) as error:
                raise InputError(f"{path}: damaged gz archive: {error}") from error
            texts.append(data.decode("utf-8", "replace"))
        return self.read_text("\n".join(texts))
