"""How a run goes: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from ingest.types import Outcome, Progress

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

Say = Callable[..., str]  # a label by its name, filled with values
PLAIN_EVERY = 100  # sources between two plain lines; the refused ones are listed at the end


class PlainProgress:
    """A line at the start, every `PLAIN_EVERY` sources and at the end."""

    def __init__(self, stream: TextIO, say: Say) -> None:
        self._stream = stream
        self._say = say
        self._total = 0
        self._done = 0

    def start(self, total: int) -> None:
        """Say how much there is."""
        self._total = total
        self._write(self._say("import.reading", total=total))

    def advance(self, name: str, outcome: Outcome) -> None:
        """Count one, say so now and then."""
        del name, outcome
        self._done += 1
        if self._done % PLAIN_EVERY == 0 and self._done < self._total:
            self.finish()

    def finish(self) -> None:
        """Say how far it came."""
        self._write(self._say("import.read", done=self._done, total=self._total))

    def _write(self, line: str) -> None:
        self._stream.write(line + "\n")
        self._stream.flush()


class BarProgress:
    """A bar with the name of the current source."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def start(self, total: int) -> None:
        """Show the bar."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            console=Console(file=self._stream),
            transient=True,
        )
        self._bar.start()
        self._task = self._bar.add_task("", total=total)

    def advance(self, name: str, outcome: Outcome) -> None:
        """Move the bar."""
        del outcome
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, advance=1, description=name[-60:])

    def finish(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()


class NoProgress:
    """Says nothing."""

    def start(self, total: int) -> None:
        """Nothing."""

    def advance(self, name: str, outcome: Outcome) -> None:
        """Nothing."""

    def finish(self) -> None:
        """Nothing."""


def progress_for(stream: TextIO, say: Say) -> Progress:
    """The bar where `stream` is a terminal, plain lines, by labels `import.*`, elsewhere."""
    return BarProgress(stream) if stream.isatty() else PlainProgress(stream, say)
