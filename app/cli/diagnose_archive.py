"""`timeout-kb diagnose-archive`: many logs, a line of each, and what all of them come to."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.cli.common import State, format_option, language_option, note, write_json
from app.cli.ingest import jobs_option, shown_progress
from app.render.escape import plain
from kb.knowledge.labels import Words
from kb.text.language import answer_language
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from app.inputs.archive import ArchiveRun

SHOWN = 40  # rows of a table; --format json has all
ERROR_CHARS = 70  # of a group's first error


@click.command("diagnose-archive")
@click.argument(
    "paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="PATH..."
)
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.jsonl",
    help="Where a line of each log goes; a later run goes on with it.",
)
@jobs_option
@click.option("--ray", default="", metavar="ADDRESS", help="Let a Ray cluster do it; or: local.")
@click.option("--group", is_flag=True, help="Show the failures of one kind together.")
@click.option("--since", default="", metavar="DATE", help="Leave out files older than this day.")
@click.option(
    "--chart",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.svg",
    help="Draw the causes by week there.",
)
@language_option
@format_option("text", "json")
@click.pass_context
def command(
    context: click.Context,
    paths: tuple[Path, ...],
    out: Path,
    jobs: int,
    ray: str,
    group: bool,
    since: str,
    chart: Path | None,
    language: Language | None,
    form: str,
) -> None:
    """Diagnose the logs below PATHs: a JSON line of each, causes by week, repeat offenders.

    A log that did not change since the last run is passed over, so a run that was stopped goes on.
    """
    from app.inputs.archive import diagnose_archive

    state = context.find_object(State) or State()
    with state.service() as service:
        spoken = answer_language(language, state.settings.lang)
        words = Words(service.knowledge.labels, spoken)
        with shown_progress(sys.stderr, words) as on_progress:
            run = diagnose_archive(
                service,
                paths,
                out,
                language=spoken,
                jobs=jobs,
                ray=ray,
                since=since,
                on_progress=on_progress,
            )
        titles = {cause.id: cause.title for cause in service.knowledge.causes}

    def title(cause: str) -> str:
        named = titles.get(cause)
        return named.get(words.language) if named else cause

    if chart is not None:
        _draw(run, chart, title, words)
    if form == "json":
        write_json(run)
        return

    click.echo("\n".join(_report(run, words, title, group=group)))
    note(words("archive.out", path=plain(str(out))))


def _draw(run: ArchiveRun, chart: Path, title: Callable[[str], str], words: Words) -> None:
    from app.render.weeks_picture import weeks_picture
    from kb.errors import InputError

    try:
        chart.write_text(
            weeks_picture(run.summary.weeks, title, words("archive.others")), encoding="utf-8"
        )
    except OSError as error:
        what = f"{chart} cannot be written: {error.strerror or ''}"
        raise InputError(what, todo="choose another file", reason="unreadable") from error


def _report(
    run: ArchiveRun, words: Words, title: Callable[[str], str], *, group: bool
) -> list[str]:
    summary = run.summary
    counts = {name: summary.statuses.get(name, 0) for name in _STATUSES}
    lines = [words("archive.counts", logs=summary.logs, known=run.known, **counts)]
    weeks = [(week.week, str(week.logs), title(week.cause)) for week in summary.weeks]
    lines += _table(words("archive.weeks"), weeks[-SHOWN:], len(weeks), words)
    offenders = [
        (str(each.logs), each.host, each.gpu, each.last_date, ", ".join(map(title, each.causes)))
        for each in summary.offenders
    ]
    lines += _table(words("archive.offenders"), offenders[:SHOWN], len(offenders), words)
    if group:
        groups = [
            (str(each.logs), each.last_date, title(each.cause), each.first_error[:ERROR_CHARS])
            for each in summary.groups
        ]
        lines += _table(words("archive.groups"), groups[:SHOWN], len(groups), words)
    return lines


_STATUSES = ("diagnosed", "unknown", "no_timeout", "refused")


def _table(head: str, rows: Sequence[Sequence[str]], total: int, words: Words) -> list[str]:
    from app.render.columns import columns

    if not rows:
        return []
    shown = columns([[plain(cell) for cell in row] for row in rows])
    more = [words("archive.more", count=total - len(rows))] if total > len(rows) else []
    return ["", head, *(f"  {line}" for line in (*shown, *more))]
