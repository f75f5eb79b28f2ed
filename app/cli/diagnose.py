"""`timeout-kb diagnose`: log in, answer out; and `timeout-kb ranks`, its table of ranks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.cli.common import (
    EXIT_DIAGNOSED,
    EXIT_UNDECIDED,
    State,
    check_sources,
    format_option,
    language_option,
    note,
    stdin_chunks,
    stdin_stream,
    torch_option,
    write_change,
    write_diagnosis,
    write_json,
)
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    from kb.service import Service
    from kb.types.incident import LogReading

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
@format_option("text", "json", "markdown", "short")
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
        language = state.language(language)
        verdict = service.judge(_read(service, files, dumps), torch=torch)
        if service.second_reader is not None and form != "text":
            verdict = service.second_reader.read(verdict)
        diagnosis = service.render(verdict, language=language, top=top)
        labels = service.knowledge.labels
        write_diagnosis(state, diagnosis, labels, form, full=full)
        if service.second_reader is not None and form == "text":
            click.echo("", err=True)
            note(f"asking the language model at {service.second_reader.address} ...")
            better = service.render(service.second_reader.read(verdict), language=language, top=top)
            write_change(state, diagnosis, better, labels)
            diagnosis = better
    context.exit(EXIT_DIAGNOSED if diagnosis.status == "diagnosed" else EXIT_UNDECIDED)


def _read(service: Service, files: tuple[Path, ...], dumps: tuple[Path, ...]) -> LogReading:
    if files != STDIN:
        return service.read_paths(files, dumps=dumps)
    if not dumps:
        return service.read_stream(stdin_chunks())
    from app.inputs.uploads import upload_folder

    with upload_folder() as folder:
        path = folder.add("stdin.log", stdin_stream())
        return service.read_paths([path], dumps=dumps)


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
        reading = _read(service, files, dumps)
        diagnosis = service.answer(reading, language=state.language(language))
        if form == "json":
            write_json(diagnosis.incident.ranks)
        else:
            write_diagnosis(state, diagnosis, service.knowledge.labels, "ranks")
    context.exit(EXIT_DIAGNOSED if diagnosis.incident.ranks else EXIT_UNDECIDED)
