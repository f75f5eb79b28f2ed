"""`timeout-kb doctor`: whether this installation is well, and what to do where it is not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.cli.common import (
    EXIT_FAILURE,
    State,
    format_option,
    language_option,
    note,
    text_width,
    write_json,
)
from kb.errors import SettingsError
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    from app.doctor import HealthFinding
    from kb.knowledge.labels import Words

COLOURS = {"ok": "green", "warn": "yellow", "fail": "red", "skip": "bright_black"}


@click.command("doctor")
@language_option
@format_option("text", "json")
@click.option(
    "--repair", is_flag=True, help="Put the latest backup in the place of a damaged database."
)
@click.option(
    "--from",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Where the backups lie. Default: backups/ in the state folder.",
)
@click.pass_context
def command(
    context: click.Context, language: Language | None, form: str, repair: bool, folder: Path | None
) -> None:
    """Check versions, data, index, ports, keys and connections; say what to do.

    Nothing is built or changed without --repair; a language model and Slack are asked where they
    are set. Exit code 1 where something has to be done.
    """
    from app.doctor import Doctor

    state = context.find_object(State) or State()
    words = state.words()
    if repair:
        from app.repair import repair_database

        for step in repair_database(state.settings, words, folder):
            note(step)
    try:
        findings = list(Doctor(settings=state.settings, words=words).findings())
    except SettingsError as error:
        findings = [settings_finding(error, words)]
    failed = any(finding.standing == "fail" for finding in findings)
    if form == "json":
        write_json({"well": not failed, "findings": findings})
    else:
        for line in lines_of(findings, words):
            click.echo(line, color=state.colour)
    context.exit(EXIT_FAILURE if failed else 0)


def settings_finding(error: SettingsError, words: Words) -> HealthFinding:
    """A setting that is wrong: nothing else can be examined before it is right."""
    from app.doctor import HealthFinding
    from app.render.errors import error_text

    text = error_text(error, words)
    return HealthFinding(
        check="settings", standing="fail", what=text.what, todo=text.todo or error.todo
    )


def lines_of(findings: list[HealthFinding], words: Words) -> list[str]:
    """A line a finding, what to do below it; at last how many are wrong."""
    from app.render.columns import hang
    from app.render.escape import plain

    width = text_width()
    lines = []
    for finding in findings:
        mark = words.term("doctor_standing", finding.standing)
        name = words.term("doctor_check", finding.check)
        lead = words("word.reason", what=f"{mark} {name}", reason="")
        first, *rest = hang(lead, plain(finding.what), width)
        coloured = click.style(mark, fg=COLOURS[finding.standing])
        lines += [coloured + first.removeprefix(mark), *rest]
        if finding.todo:
            lines += hang("     → ", plain(finding.todo), width)
    wrong = sum(finding.standing == "fail" for finding in findings)
    lines.append(words("doctor.wrong", count=wrong) if wrong else words("doctor.well"))
    return lines
