"""`timeout-kb ingest`: write-ups, threads and logs into the knowledge base."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.commands.common import EXIT_FAILURE, State, format_option, note, write_json
from app.quoting import plain

if TYPE_CHECKING:
    from ingest.types import Report

SHOWN_NEAR = 20  # near-duplicates named; a folder of copies would fill the screen


@click.command("ingest")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="PATH...")
@click.option("--rebuild", is_flag=True, help="Build the search index anew from what is stored.")
@format_option("text", "json")
@click.pass_context
def command(
    context: click.Context,
    paths: tuple[Path, ...],
    rebuild: bool,
    form: str,
) -> None:
    """Add write-ups (.md .txt .html), threads (.json .jsonl) and logs to the knowledge base.

    A file that did not change is passed over; a changed one replaces its entry. Secrets are
    removed before anything is stored. Stopping at any time loses only the file in work.
    """
    state = context.find_object(State) or State()
    if not paths and not rebuild:
        raise click.UsageError("nothing to read. Name files or folders: timeout-kb ingest notes/")
    with state.service(rebuild=rebuild) as service:
        if not paths:
            note("The search index is new.")
            return
        from app.composition import ingestor_for
        from ingest.progress import progress_for

        report = ingestor_for(service).ingest_paths(paths, progress=progress_for(sys.stderr))
    if form == "json":
        write_json(report)
    else:
        click.echo("\n".join(summary(report)))
    taken = report.added + report.updated + report.unchanged
    context.exit(EXIT_FAILURE if report.refused and not taken else 0)


def summary(report: Report) -> list[str]:
    """The lines that close a run: the counts, then what a person has to look at."""
    counts = {
        "added": report.added,
        "updated": report.updated,
        "unchanged": report.unchanged,
        "refused": len(report.refused),
    }
    lines = [", ".join(f"{name} {count}" for name, count in counts.items())]
    lines += [f"  refused {plain(path)}: {plain(reason)}" for path, reason in report.refused]
    lines += [f"  note {plain(path)}: {plain(reason)}" for path, reason in report.notes]
    return lines + _near(report.near_duplicates)


def _near(pairs: Sequence[tuple[str, str, float]]) -> list[str]:
    lines = [
        f"  {plain(one)} and {plain(other)} are nearly the same ({similarity:.0%})"
        for one, other, similarity in pairs[:SHOWN_NEAR]
    ]
    if len(pairs) > SHOWN_NEAR:
        lines.append(f"  and {len(pairs) - SHOWN_NEAR} more pairs that are nearly the same")
    return lines
