"""`timeout-kb incident`: the team's incidents from the first log to the outcome."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.cli.common import State, format_option, language_option, note, write, write_json
from kb.knowledge.labels import Words
from kb.text.language import answer_language
from kb.types.entries import Entry, Filters
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    from kb.service import Service

INCIDENTS = Filters(kinds=("incident",))


@click.group("incident")
def command() -> None:
    """Keep the team's incidents: add, list, resolve, edit, merge, export, delete, restore.

    A resolved incident is found again by whoever meets the same one.
    """


@command.command("add")
@click.argument("log", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.pass_context
def add(context: click.Context, log: Path) -> None:
    """Add the incident that LOG tells of and print its id."""
    from app.inputs.contributions import add_files

    with _state(context).service() as service:
        for identifier in add_files(service, [log]).entries:
            click.echo(identifier)


@command.command("list")
@click.option("--open", "only_open", is_flag=True, help="Only those without an outcome.")
@language_option
@format_option("text", "json")
@click.pass_context
def show(context: click.Context, only_open: bool, language: Language | None, form: str) -> None:
    """List incidents: id, how it ended, title."""
    state = _state(context)
    with state.service() as service:
        entries = [
            entry
            for entry in service.store.iter_entries(INCIDENTS)
            if not (only_open and entry.resolved)
        ]
        words = _words(state, service, language)
    if form == "json":
        from app.api.schemas import entry_summary

        write_json([entry_summary(entry) for entry in entries])
        return
    from app.render.columns import columns
    from app.render.escape import plain

    rows = [
        (entry.id, plain(_outcome(entry, words)), plain(entry.title.get(words.language)))
        for entry in entries
    ]
    for line in columns(rows):
        click.echo(line)


def _outcome(entry: Entry, words: Words) -> str:
    if not entry.resolved:
        return words("page.not_resolved")
    cause = entry.own_cause or next((claim.id for claim in entry.causes), "")
    return f"{entry.resolved_on[:10]} {cause}".strip()


@command.command("resolve")
@click.argument("identifier", metavar="ID")
@click.option("--cause", default="", help="Id of the cause: see `timeout-kb show`.")
@click.option("--own-cause", default="", help="The cause in your own words, where it is none.")
@click.option("--fix", required=True, help="What helped, in a sentence.")
@click.option("--command", "commands", multiple=True, help="A command of the fix; may repeat.")
@click.option("--url", default="", help="Where it is written up.")
@click.pass_context
def resolve_command(
    context: click.Context,
    identifier: str,
    cause: str,
    own_cause: str,
    fix: str,
    commands: tuple[str, ...],
    url: str,
) -> None:
    """Write down how the incident ID ended; it counts in answers from now on."""
    from app.inputs.contributions import Resolution, resolve

    state = _state(context)
    outcome = Resolution(cause=cause, own_cause=own_cause, fix=fix, commands=commands, url=url)
    with state.service() as service:
        entry = resolve(service, identifier, outcome, by=_user())
        note(_words(state, service, None)("incident.resolved", id=entry.id))


@command.command("edit")
@click.argument("identifier", metavar="ID")
@click.option("--title")
@click.option("--label", "labels", multiple=True, help="A tag of your own; replaces all of them.")
@click.option("--cause", help="Id of the cause.")
@click.option("--fix", help="What helped, in a sentence.")
@click.option("--url", help="Where it is written up.")
@click.pass_context
def edit_command(
    context: click.Context,
    identifier: str,
    title: str | None,
    labels: tuple[str, ...],
    cause: str | None,
    fix: str | None,
    url: str | None,
) -> None:
    """Change the incident ID; what is not named stays."""
    from app.inputs.contributions import Changes, edit

    state = _state(context)
    changes = Changes(title=title, labels=labels or None, cause=cause, fix=fix, url=url)
    with state.service() as service:
        entry = edit(service, identifier, changes, by=_user())
        note(_words(state, service, None)("incident.changed", id=entry.id))


@command.command("merge")
@click.argument("identifier", metavar="ID")
@click.argument("others", metavar="OTHER...", nargs=-1, required=True)
@click.pass_context
def merge_command(context: click.Context, identifier: str, others: tuple[str, ...]) -> None:
    """Merge the incidents OTHER into ID; their ids lead to it."""
    from app.inputs.contributions import merge

    state = _state(context)
    with state.service() as service:
        entry = merge(service, identifier, others)
        words = _words(state, service, None)
        note(words("incident.merged", id=entry.id, count=len(entry.merged)))


@command.command("delete")
@click.argument("identifier", metavar="ID")
@click.option("--for-good", is_flag=True, help="It cannot be restored, not even if deleted before.")
@click.pass_context
def delete_command(context: click.Context, identifier: str, for_good: bool) -> None:
    """Delete the incident ID; for 30 days it can be restored."""
    from app.inputs.contributions import RESTORABLE_DAYS, delete

    state = _state(context)
    with state.service() as service:
        delete(service, identifier, for_good=for_good)
        label = "incident.deleted_for_good" if for_good else "incident.deleted"
        note(_words(state, service, None)(label, id=identifier, days=RESTORABLE_DAYS))


@command.command("restore")
@click.argument("identifier", metavar="ID")
@click.pass_context
def restore_command(context: click.Context, identifier: str) -> None:
    """Bring the deleted incident ID back as it was."""
    from app.inputs.contributions import restore

    state = _state(context)
    with state.service() as service:
        entry = restore(service, identifier)
        note(_words(state, service, None)("incident.restored", id=entry.id))


@command.command("export")
@click.argument("identifiers", metavar="[ID...]", nargs=-1)
@language_option
@format_option("markdown", "json")
@click.pass_context
def export(
    context: click.Context, identifiers: tuple[str, ...], language: Language | None, form: str
) -> None:
    """Print incidents with outcome and log: those named, or all of them."""
    state = _state(context)
    with state.service() as service:
        entries = (
            [service.entry(identifier) for identifier in identifiers]
            if identifiers
            else list(service.store.iter_entries(INCIDENTS))
        )
        words = _words(state, service, language)
    if form == "json":
        from app.api.schemas import entry_detail

        write_json([entry_detail(entry) for entry in entries])
        return
    from app.render.incident_markdown import render_incidents

    write(state, render_incidents(entries, words))


def _state(context: click.Context) -> State:
    return context.find_object(State) or State()


def _words(state: State, service: Service, language: Language | None) -> Words:
    return Words(service.knowledge.labels, answer_language(language, state.settings.lang))


def _user() -> str:
    """The system's name of who runs the program; empty where it has none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
