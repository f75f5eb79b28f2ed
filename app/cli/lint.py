"""`timeout-kb lint`: what is wrong with settings, before the job runs."""

from __future__ import annotations

import sys
from pathlib import Path

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
from kb.text.language import answer_language
from kb.types.vocabulary import Language

EXIT_CLEAN = 0
EXIT_FOUND = 1
STDIN = Path("-")


@click.command("lint")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, allow_dash=True))
@language_option
@torch_option
@format_option("text", "json")
@click.pass_context
def command(
    context: click.Context,
    files: tuple[Path, ...],
    language: Language | None,
    torch: str | None,
    form: str,
) -> None:
    """Check settings (NCCL_*, TORCH_NCCL_*, ...) in scripts, configurations or an environment.

    For the current shell: env | timeout-kb lint. Exit code 1 where something is to mind.
    """
    state = context.find_object(State) or State()
    if not files and sys.stdin.isatty():
        raise usage("usage.no_settings")
    text = "\n".join(_read(path) for path in files or (STDIN,))
    with state.service() as service:
        reply_language = answer_language(language, state.settings.lang, text)
        warnings = service.lint(text, language=reply_language, torch=torch)
        if form == "json":
            write_json(warnings)
        else:
            from app.render.listing import render_warnings
            from kb.knowledge.labels import Words

            words = Words(service.knowledge.labels, reply_language)
            write(state, render_warnings(warnings, words, width=text_width()))
    context.exit(EXIT_FOUND if warnings else EXIT_CLEAN)


def _read(path: Path) -> str:
    if path == STDIN:
        return settings_text(b"".join(stdin_chunks()), path)
    return read_settings_file(path)
