"""`timeout-kb lint`: what is wrong with settings, before the job runs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.cli.common import (
    State,
    format_option,
    language_option,
    stdin_chunks,
    text_width,
    torch_option,
    usage,
    write,
    write_json,
)
from app.inputs.settings_files import read_settings_file, settings_text
from kb.settings_check.extract import one_text
from kb.text.language import answer_language
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    from kb.knowledge.labels import Words
    from kb.service import Service
    from kb.types.answer import SettingWarning

EXIT_CLEAN = 0
EXIT_FOUND = 1
STDIN = Path("-")
# What makes exit code 1, and the levels of a warning that count for it.
FAIL_ON = {"note": ("note", "warning"), "warning": ("warning",), "never": ()}


@click.command("lint")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, allow_dash=True))
@language_option
@torch_option
@format_option("text", "json", "sarif", "github")
@click.option(
    "--fail-on",
    type=click.Choice(tuple(FAIL_ON)),
    default="note",
    show_default=True,
    help="The least that makes exit code 1; a note is a setting that does no harm.",
)
@click.option("--together", is_flag=True, help="The files are of one job: compare their settings.")
@click.pass_context
def command(
    context: click.Context,
    files: tuple[Path, ...],
    language: Language | None,
    torch: str | None,
    form: str,
    fail_on: str,
    together: bool,
) -> None:
    """Check settings (NCCL_*, TORCH_NCCL_*, ...) in scripts, configurations or an environment.

    For the current shell: env | timeout-kb lint. Exit code 0: in order; 1: something is to mind
    (--fail-on); 2: a file cannot be read, or the command line is wrong. Each file is checked by
    itself unless --together. `sarif` is for code scanning, `github` prints annotations.
    """
    from app.render.lint_reports import level

    state = context.find_object(State) or State()
    if not files and sys.stdin.isatty():
        raise usage("usage.no_settings")
    texts = [(path, _read(path)) for path in files or (STDIN,)]
    with state.service() as service:
        whole = "\n".join(text for _, text in texts)
        reply_language = answer_language(language, state.settings.lang, whole)
        warnings = _warnings(service, texts, reply_language, torch, together=together)
        _show(state, warnings, service, reply_language, form)
    counted = [warning for warning in warnings if level(warning) in FAIL_ON[fail_on]]
    context.exit(EXIT_FOUND if counted else EXIT_CLEAN)


def _warnings(
    service: Service,
    texts: Sequence[tuple[Path, str]],
    language: Language,
    torch: str | None,
    *,
    together: bool,
) -> list[SettingWarning]:
    """What is wrong with the settings, each with its file and the line in it."""
    if not together:
        return [
            replace(warning, file=_name(path))
            for path, text in texts
            for warning in service.lint(text, language=language, torch=torch)
        ]
    places = [("", 0)]  # of each line of all texts, counted from 1
    for path, text in texts:
        places += [(_name(path), number) for number in range(1, text.count("\n") + 2)]
    whole = "\n".join(text for _, text in texts)
    found = service.lint(whole, language=language, torch=torch)
    where = [places[warning.line] for warning in found]
    return [
        replace(warning, file=file, line=line)
        for warning, (file, line) in zip(found, where, strict=True)
    ]


def _show(
    state: State,
    warnings: Sequence[SettingWarning],
    service: Service,
    language: Language,
    form: str,
) -> None:
    from kb.knowledge.labels import Words

    if form == "json":
        write_json(warnings)
        return
    write(state, _render(warnings, Words(service.knowledge.labels, language), form))


def _render(warnings: Sequence[SettingWarning], words: Words, form: str) -> str:
    from app.render.lint_reports import render_annotations, render_sarif
    from app.render.listing import render_warnings

    if form == "sarif":
        from importlib.metadata import version

        return render_sarif(warnings, words, version("timeout-kb"))
    if form == "github":
        return render_annotations(warnings, words)
    return render_warnings(warnings, words, width=text_width())


def _name(path: Path) -> str:
    return "" if path == STDIN else str(path)


def _read(path: Path) -> str:
    """A text whose lines end at line feeds alone, as those who show them count."""
    if path == STDIN:
        text = settings_text(b"".join(stdin_chunks()), path)
    else:
        text = read_settings_file(path)
    return one_text(text.split("\n"))
