"""`timeout-kb diagnose`: log in, answer out; and `timeout-kb ranks`, its table of ranks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.commands.common import (
    EXIT_DIAGNOSED,
    EXIT_UNDECIDED,
    State,
    check_sources,
    format_option,
    language_option,
    stdin_as_file,
    stdin_chunks,
    text_width,
    torch_option,
    write,
    write_json,
)
from kb.types import Diagnosis, Language

if TYPE_CHECKING:
    from kb.service import Service

STDIN = (Path("-"),)
FILES = click.Path(path_type=Path, allow_dash=True)
dump_option = click.option(
    "--dump",
    "dumps",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Flight-recorder dumps: a folder or a file; may be given more than once.",
)


@click.command("diagnose")
@click.argument("files", nargs=-1, type=FILES, metavar="[FILE|-]...")
@dump_option
@language_option
@format_option("text", "json", "markdown")
@click.option("--top", type=click.IntRange(1, 19), help="How many causes to show.")
@torch_option
@click.option("--full", is_flag=True, help="Show all evidence, fixes, checks, timeline and ranks.")
@click.pass_context
def command(
    context: click.Context,
    files: tuple[Path, ...],
    dumps: tuple[Path, ...],
    language: Language | None,
    form: str,
    top: int | None,
    torch: str | None,
    full: bool,
) -> None:
    """Say what happened in a timeout log, why, and what to do.

    Reads FILEs (also .gz and .zst) or standard input. Exit code 0: diagnosed; 3: the cause stays
    unknown, or there is no timeout.
    """
    state = context.find_object(State) or State()
    files = check_sources(files, dumps=dumps)
    with state.service() as service:
        diagnosis = _diagnose(service, state, files, dumps, language=language, top=top, torch=torch)
        _show(service, state, diagnosis, form=form, full=full)
    context.exit(EXIT_DIAGNOSED if diagnosis.status == "diagnosed" else EXIT_UNDECIDED)


def _diagnose(
    service: Service,
    state: State,
    files: tuple[Path, ...],
    dumps: tuple[Path, ...],
    *,
    language: Language | None,
    top: int | None = None,
    torch: str | None = None,
) -> Diagnosis:
    asked = state.language(language)
    if files == STDIN and not dumps:
        return service.diagnose_stream(stdin_chunks(), language=asked, top=top, torch=torch)
    if files == STDIN:
        with stdin_as_file() as path:
            return service.diagnose_paths([path], dumps=dumps, language=asked, top=top, torch=torch)
    return service.diagnose_paths(files, dumps=dumps, language=asked, top=top, torch=torch)


def _show(
    service: Service, state: State, diagnosis: Diagnosis, *, form: str, full: bool = False
) -> None:
    if form == "json":
        write_json(diagnosis)
        return
    from app.labels import Words
    from app.present import present

    labels = service.knowledge.labels
    view = present(diagnosis, labels)
    words = Words(labels, view.language)
    if form == "markdown":
        from app.markdown import render_markdown

        write(state, render_markdown(view, words))
    elif form == "ranks":
        from app.terminal import render_ranks

        write(state, render_ranks(view, words))
    else:
        from app.terminal import render_text

        write(state, render_text(view, words, width=text_width(), full=full))


@click.command("ranks")
@click.argument("files", nargs=-1, type=FILES, metavar="[FILE|-]...")
@dump_option
@language_option
@format_option("text", "json")
@click.pass_context
def ranks_command(
    context: click.Context,
    files: tuple[Path, ...],
    dumps: tuple[Path, ...],
    language: Language | None,
    form: str,
) -> None:
    """Show how far each rank came: last enqueued, last completed, step, exit.

    Exit code 3 where the input tells nothing about single ranks.
    """
    state = context.find_object(State) or State()
    files = check_sources(files, dumps=dumps)
    with state.service() as service:
        diagnosis = _diagnose(service, state, files, dumps, language=language)
        if form == "json":
            write_json(diagnosis.incident.ranks)
        else:
            _show(service, state, diagnosis, form="ranks")
    context.exit(EXIT_DIAGNOSED if diagnosis.incident.ranks else EXIT_UNDECIDED)
