"""`timeout-kb ingest`: write-ups, threads and logs into the knowledge base."""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from app.cli.common import (
    EXIT_FAILURE,
    State,
    format_option,
    language_option,
    note,
    usage,
    write_json,
)
from app.render.columns import cut
from app.render.errors import why_refused
from app.render.escape import plain
from kb.knowledge.labels import Words
from kb.text.language import answer_language
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    from ingest.pipeline import OnProgress
    from ingest.types import FileReading, ImportReport, Refusal
    from kb.service import Service

CACHE = "cache"  # in the state folder
CLEAR_LINE = "\r\x1b[2K"
NAME_CHARACTERS = 60  # shown of the file that was read last
PLAIN_EVERY = 100  # files between two plain lines
SHOWN_NEAR = 20  # near-duplicates named; a folder of copies would fill the screen


jobs_option = click.option(
    "--jobs",
    type=click.IntRange(1, 256),
    default=1,
    show_default=True,
    help="Processes that read files, each with the memory of one command.",
)


@click.command("ingest")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="PATH...")
@click.option("--rebuild", is_flag=True, help="Build the search index anew from what is stored.")
@jobs_option
@language_option
@format_option("text", "json")
@click.pass_context
def command(
    context: click.Context,
    paths: tuple[Path, ...],
    rebuild: bool,
    jobs: int,
    language: Language | None,
    form: str,
) -> None:
    """Add write-ups (.md .txt .html), threads (.json .jsonl) and logs to the knowledge base.

    A file that did not change is passed over; a changed one replaces its entry. Secrets are
    removed before anything is stored. Stopping at any time loses only the file in work.
    """
    from app.server.observability import configure_logging

    state = context.find_object(State) or State()
    if not paths and not rebuild:
        raise usage("usage.no_sources")
    configure_logging(state.settings.log_level)
    with state.service(rebuild=rebuild) as service:
        words = Words(service.knowledge.labels, answer_language(language, state.settings.lang))
        if not paths:
            note(words("import.index"))
            return
        from app.inputs.in_order import in_order
        from ingest.pipeline import ImportRecord, Ingestor, reader_stamp

        stamp = reader_stamp(service.settings.data, service.knowledge.digest)
        data, stored = service.settings.data, service.store.iter_entries
        read_elsewhere = None
        if jobs > 1:
            read_elsewhere = partial(
                in_order, read_whole_file, settings=service.settings, jobs=jobs
            )
        ingestor = Ingestor(
            service,
            service.reader,
            data=data,
            stored=stored,
            summarise=service.summarise,
            record=ImportRecord(service.store.imported_files, stamp),
            cache=service.settings.home / CACHE,
            read_elsewhere=read_elsewhere,
        )
        with shown_progress(sys.stderr, words) as on_progress:
            report = ingestor.ingest_paths(paths, on_progress=on_progress)
    if form == "json":
        write_json(report)
    else:
        click.echo("\n".join(summary(report, words)))
    taken = report.added + report.updated + report.unchanged
    context.exit(EXIT_FAILURE if report.refused and not taken else 0)


def read_whole_file(service: Service, path: Path) -> FileReading:
    """What a file gives, read in a process that has the knowledge base open."""
    from ingest.pipeline import Ingestor

    one = Ingestor(
        service,
        service.reader,
        data=service.settings.data,
        summarise=service.summarise,
        cache=service.settings.home / CACHE,
    )
    return one.read_whole(path)


@contextmanager
def shown_progress(stream: TextIO, words: Words) -> Iterator[OnProgress]:
    """How a run goes: on a terminal one line that is gone at the end, plain lines elsewhere."""
    started_s = time.monotonic()
    if not stream.isatty():
        yield partial(_plain_line, stream, words, started_s)
        return
    try:
        yield partial(_rewritten_line, stream, words, started_s)
    finally:
        click.echo(CLEAR_LINE, file=stream, nl=False)


def _rewritten_line(
    stream: TextIO, words: Words, started_s: float, done: int, total: int, name: str
) -> None:
    """The count, the time left and the file, over what stood there before."""
    line = f"{_read_so_far(words, started_s, done, total)}  {plain(name[-NAME_CHARACTERS:])}"
    room = shutil.get_terminal_size().columns - 1  # a line that wraps is not cleared whole
    click.echo(CLEAR_LINE + cut(line.rstrip(), room), file=stream, nl=False)


def _plain_line(
    stream: TextIO, words: Words, started_s: float, done: int, total: int, _name: str
) -> None:
    """A line at the start, every `PLAIN_EVERY` files and at the end."""
    if not done:
        click.echo(words("import.reading", total=total), file=stream)
    if done == total or (done and done % PLAIN_EVERY == 0):
        click.echo(_read_so_far(words, started_s, done, total), file=stream)


def _read_so_far(words: Words, started_s: float, done: int, total: int) -> str:
    left_s = (time.monotonic() - started_s) / max(done, 1) * (total - done)
    known = 0 < done < total
    left = words("import.time_left", minutes=math.ceil(left_s / 60)) if known else ""
    return words("import.read", done=done, total=total) + left


def summary(report: ImportReport, words: Words) -> list[str]:
    """The lines that close a run: the counts, then what a person has to look at."""
    counts = words(
        "import.counts",
        added=report.added,
        updated=report.updated,
        unchanged=report.unchanged,
        refused=len(report.refused),
    )
    known = [words("import.known_files", count=report.known_files)] if report.known_files else []
    refused = [
        words(
            "import.refused",
            path=plain(item.path),
            why=why_refused(item.reason, words, code=item.code, values=item.values),
        )
        for item in report.refused
    ]
    notes = [
        words("import.note", path=plain(item.path), what=_noted(item, words))
        for item in report.notes
    ]
    return [counts, *(f"  {line}" for line in (*known, *refused, *notes, *_near(report, words)))]


def _noted(item: Refusal, words: Words) -> str:
    values = {key: plain(value) for key, value in item.values.items()}
    return words(f"note.{item.code}", **values)


def _near(report: ImportReport, words: Words) -> list[str]:
    pairs = report.near_duplicates
    lines = [
        words("import.near", one=plain(one), other=plain(other), share=f"{similarity:.0%}")
        for one, other, similarity in pairs[:SHOWN_NEAR]
    ]
    if len(pairs) > SHOWN_NEAR:
        lines.append(words("import.more_near", count=len(pairs) - SHOWN_NEAR))
    return lines
