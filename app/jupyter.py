"""`%%timeout_kb` in a notebook: the log in the cell, the answer below it.

    %load_ext app.jupyter

    %%timeout_kb --lang en
    [rank3]: Watchdog caught collective operation timeout: ...

`%timeout_kb FILE...` reads files instead. The answer is Markdown in which everything that comes
out of the log is escaped, and text where a front end shows no Markdown.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from app.cli.common import State
from app.render.forms import render_diagnosis
from kb.errors import InputError, KBError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kb.service import Service
    from kb.types.answer import Diagnosis
    from kb.types.knowledge import Bilingual

MAGIC = "timeout_kb"
TEXT_CELLS = 100  # width of the answer as text


class _Arguments(argparse.ArgumentParser):
    """Options of the magic; a wrong one is told and ends no kernel."""

    def error(self, message: str) -> NoReturn:
        """Raise what is told.

        Raises:
            InputError: always.
        """
        raise InputError(
            f"%{MAGIC}: {message}",
            todo=self.format_usage().strip(),
            reason="magic_options",
            values={"why": message, "usage": self.format_usage().strip()},
        )


def _arguments() -> _Arguments:
    parser = _Arguments(prog=f"%{MAGIC}", add_help=False, allow_abbrev=False)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--lang", choices=("zh", "en"))
    parser.add_argument("--torch", metavar="VERSION")
    parser.add_argument("--top", type=int, choices=range(1, 20), metavar="N")
    return parser


@dataclass(frozen=True, slots=True)
class NotebookAnswer:
    """A diagnosis as notebooks show the value of a cell; `diagnosis` is for the next cell."""

    diagnosis: Diagnosis
    labels: Mapping[str, Bilingual]

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        return {
            "text/markdown": render_diagnosis(
                self.diagnosis, self.labels, "markdown", width=TEXT_CELLS
            ),
            "text/plain": repr(self),
        }

    def __repr__(self) -> str:
        return render_diagnosis(self.diagnosis, self.labels, "text", width=TEXT_CELLS)


class TimeoutMagic:
    """The magic of one kernel: the knowledge base is opened at its first use."""

    def __init__(self, open_service: Callable[[], Service]) -> None:
        self._open = open_service
        self._service: Service | None = None

    def __call__(self, line: str, cell: str | None = None) -> NotebookAnswer | None:
        """Diagnose the cell, or the files the line names; None after a message."""
        try:
            options = _arguments().parse_args(shlex.split(line))
            if self._service is None:
                self._service = self._open()
            service = self._service
            if cell is not None and not options.files:
                reading = service.read_text(cell)
            elif cell is None and options.files:
                reading = service.read_paths(options.files)
            else:
                raise InputError(
                    f"%{MAGIC} reads files, %%{MAGIC} reads its cell",
                    todo=f"%{MAGIC} FILE, or %%{MAGIC} above the log",
                    reason="magic_source",
                )
            answer = service.answer(
                reading, language=options.lang, top=options.top, torch=options.torch
            )
        except KBError as error:
            print(State().error_line(error), file=sys.stderr)  # noqa: T201 - where notebooks show it
            return None
        except ValueError as error:  # a quote without its end
            print(f"error: {error}", file=sys.stderr)  # noqa: T201
            return None
        return NotebookAnswer(answer, service.knowledge.labels)

    def close(self) -> None:
        """Close what was opened."""
        if self._service is not None:
            self._service.close()
            self._service = None


def _open_service() -> Service:
    from kb.bootstrap import open_service
    from kb.settings import load_settings

    return open_service(load_settings())


_magics: dict[int, TimeoutMagic] = {}  # by the shell they were loaded into


def load_ipython_extension(ipython: Any) -> None:  # noqa: ANN401 - IPython's shell, an extra
    """Add the magic to a shell; IPython calls it for ``%load_ext app.jupyter``."""
    magic = _magics[id(ipython)] = TimeoutMagic(_open_service)
    ipython.register_magic_function(magic, "line_cell", MAGIC)


def unload_ipython_extension(ipython: Any) -> None:  # noqa: ANN401 - IPython's shell, an extra
    """Take the magic away and close the knowledge base; for ``%unload_ext app.jupyter``."""
    magic = _magics.pop(id(ipython), None)
    if magic is not None:
        magic.close()
        ipython.magics_manager.magics["line"].pop(MAGIC, None)
        ipython.magics_manager.magics["cell"].pop(MAGIC, None)
