"""`timeout-kb new`: files of knowledge to fill in."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import click

from app.cli.common import State, language_option
from kb.errors import InputError
from kb.settings import Settings
from kb.text.language import answer_language
from kb.types.entries import Entry
from kb.types.vocabulary import Language

STDIN = "-"


@click.group("new")
def command() -> None:
    """Begin a file of knowledge: what is known is filled in, the rest says TODO."""


@command.command("case")
@click.argument("source", required=False)
@click.option("--url", default="", help="Page that tells of the incident.")
@click.option("--id", "case_id", default="", help="Name of the case: project-what-went-wrong.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder it is written to; by default cases/ of the site folder, or data/cases.",
)
@language_option
@click.pass_context
def case(
    context: click.Context,
    source: str | None,
    url: str,
    case_id: str,
    out: Path | None,
    language: Language | None,
) -> None:
    """Write a case to fill in, in one language.

    SOURCE is a file with the log or the post, - for what is piped, or the id of an incident; its
    tags, its log lines and the cause that the diagnosis proposes are filled in. Nothing is
    overwritten.
    """
    from app.inputs.case_skeleton import case_skeleton
    from app.inputs.readings import incident_of

    state = context.find_object(State) or State()
    incident: Entry | None = None
    text = ""
    with state.service() as service:
        if source is not None and (source == STDIN or Path(source).exists()):
            text = _read(source)
            with suppress(InputError):  # it tells of no failure: everything is to be written
                reading = service.reader.read_text(text)
                incident = incident_of(service, reading, name=Path(source).name, text=text)
        elif source is not None:
            incident = service.entry(source)
        words = state.words(answer_language(language, state.settings.lang, text))
        case_id, skeleton = case_skeleton(
            state.settings.data, incident, words, url=url, case_id=case_id
        )
    path = (out or _folder(state.settings)) / f"{case_id}.md"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(skeleton)
    except FileExistsError as error:
        raise InputError(
            f"{path} is there already",
            todo="choose another name by --id",
            reason="case_exists",
            values={"path": str(path)},
        ) from error
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror}",
            todo="choose a folder by --out",
            reason="case_not_written",
            values={"path": str(path), "why": error.strerror or str(error)},
        ) from error
    click.echo(str(path))
    click.echo(words("new.fill_in"), err=True)
    click.echo(words("new.check", path=str(path)), err=True)


def _read(source: str) -> str:
    """A file or what is piped; bytes that are no UTF-8 are shown as such."""
    raw = sys.stdin.buffer.read() if source == STDIN else Path(source).read_bytes()
    return raw.decode("utf-8", "replace")


def _folder(settings: Settings) -> Path:
    if settings.site is not None:
        return settings.site / "cases"
    shipped = Path("data/cases")  # in a checkout
    return shipped if shipped.is_dir() else Path()
