"""`timeout-kb ingest`: write-ups, threads and logs into the knowledge base."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.commands.common import (
    EXIT_FAILURE,
    State,
    format_option,
    language_option,
    note,
    usage,
    write_json,
)
from app.failure import why_refused
from app.labels import Words
from app.quoting import plain
from kb.types import Language

if TYPE_CHECKING:
    from ingest.types import Refusal, Report

SHOWN_NEAR = 20  # near-duplicates named; a folder of copies would fill the screen


@click.command("ingest")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="PATH...")
@click.option("--rebuild", is_flag=True, help="Build the search index anew from what is stored.")
@language_option
@format_option("text", "json")
@click.pass_context
def command(
    context: click.Context,
    paths: tuple[Path, ...],
    rebuild: bool,
    language: Language | None,
    form: str,
) -> None:
    """Add write-ups (.md .txt .html), threads (.json .jsonl) and logs to the knowledge base.

    A file that did not change is passed over; a changed one replaces its entry. Secrets are
    removed before anything is stored. Stopping at any time loses only the file in work.
    """
    state = context.find_object(State) or State()
    if not paths and not rebuild:
        raise usage("usage.no_sources")
    with state.service(rebuild=rebuild) as service:
        words = Words(service.knowledge.labels, state.language(language) or "en")
        if not paths:
            note(words("import.index"))
            return
        from app.composition import ingestor_for
        from ingest.progress import progress_for

        progress = progress_for(sys.stderr, words)
        report = ingestor_for(service).ingest_paths(paths, progress=progress)
    if form == "json":
        write_json(report)
    else:
        click.echo("\n".join(summary(report, words)))
    taken = report.added + report.updated + report.unchanged
    context.exit(EXIT_FAILURE if report.refused and not taken else 0)


def summary(report: Report, words: Words) -> list[str]:
    """The lines that close a run: the counts, then what a person has to look at."""
    counts = words(
        "import.counts",
        added=report.added,
        updated=report.updated,
        unchanged=report.unchanged,
        refused=len(report.refused),
    )
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
    return [counts, *(f"  {line}" for line in (*refused, *notes, *_near(report, words)))]


def _noted(item: Refusal, words: Words) -> str:
    values = {key: plain(value) for key, value in item.values.items()}
    return words(f"note.{item.code}", **values)


def _near(report: Report, words: Words) -> list[str]:
    pairs = report.near_duplicates
    lines = [
        words("import.near", one=plain(one), other=plain(other), share=f"{similarity:.0%}")
        for one, other, similarity in pairs[:SHOWN_NEAR]
    ]
    if len(pairs) > SHOWN_NEAR:
        lines.append(words("import.more_near", count=len(pairs) - SHOWN_NEAR))
    return lines
