"""`timeout-kb search` and `timeout-kb show`: look things up."""

from __future__ import annotations

from typing import Any

import click

from app.cli.common import (
    EXIT_UNDECIDED,
    State,
    format_option,
    language_option,
    text_width,
    write,
    write_json,
)
from kb.knowledge.facets import FACETS, filters_of
from kb.types.entries import Entry
from kb.types.knowledge import Advice, Cause, Note
from kb.types.vocabulary import Language

NEAR_IDS = 3  # how many ids to suggest for a misspelt one


def _filter_options(function: Any) -> Any:  # noqa: ANN401 - click decorates any callable
    for facet in reversed([facet for facet in FACETS.values() if facet.help]):
        function = click.option(f"--{facet.name}", multiple=True, help=facet.help)(function)
    function = click.option("--since", default="", help="Not older than this date (2024-06-18).")(
        function
    )
    return click.option("--until", default="", help="Not newer than this date.")(function)


@click.command("search")
@click.argument("query", nargs=-1, required=True)
@_filter_options
@click.option("--limit", type=click.IntRange(1, 100), default=10, show_default=True)
@language_option
@format_option("text", "json")
@click.pass_context
def command(
    context: click.Context,
    /,
    query: tuple[str, ...],
    limit: int,
    language: Language | None,
    form: str,
    since: str,
    until: str,
    **chosen: tuple[str, ...],
) -> None:
    """Find entries like QUERY: words, a question, a line of a log, or the name of a setting.

    Notes that answer a question stand first.
    Options that name a value may be given more than once. Exit code 3 where nothing is similar
    enough.
    """
    state = context.find_object(State) or State()
    filters = filters_of(chosen, since=since, until=until)
    text = " ".join(query)
    with state.service() as service:
        requested = state.language(language)
        result = service.search(text, filters=filters, limit=limit, language=requested)
        if form == "json":
            write_json(result)
        else:
            from app.render.listing import render_search
            from kb.knowledge.labels import Words
            from kb.text.language import answer_language

            words = Words(service.knowledge.labels, answer_language(requested, text=text))
            write(state, render_search(result, words, width=text_width()))
    found = result.similar_enough or result.settings or result.notes
    context.exit(0 if found else EXIT_UNDECIDED)


@click.command("show")
@click.argument("identifier", metavar="ID")
@language_option
@format_option("text", "json")
@click.pass_context
def show_command(
    context: click.Context, identifier: str, language: Language | None, form: str
) -> None:
    """Show the case, entry, cause, setting or note called ID."""
    state = context.find_object(State) or State()
    with state.service() as service:
        knowledge = service.knowledge
        item: Cause | Advice | Note | Entry | None = knowledge.cause_by_id.get(identifier)
        item = item or knowledge.advice_by_id.get(identifier)
        item = item or knowledge.note_by_id.get(identifier) or _entry(service, identifier)
        if form == "json":
            from app.api.schemas import entry_detail

            write_json(entry_detail(item) if isinstance(item, Entry) else item)
            return
        from app.render.columns import paragraphs
        from app.render.listing import (
            note_list,
            render_cause,
            render_entry,
            render_note,
            render_setting,
        )
        from kb.knowledge.labels import Words
        from kb.text.language import answer_language

        chosen = answer_language(language, state.settings.lang)
        words, width = Words(knowledge.labels, chosen), text_width()
        notes = knowledge.notes_naming(identifier)
        if isinstance(item, Cause):
            notices = service.notices_about(item.id, chosen)
            write(state, render_cause(item, words, width=width, notes=notes, notices=notices))
        elif isinstance(item, Advice):
            setting = render_setting(item, words, width=width)
            write(state, paragraphs([setting, note_list(notes, words, width)]))
        elif isinstance(item, Note):
            write(state, render_note(item, words, width=width))
        else:
            write(state, render_entry(item, words, width=width))


def _entry(service: Any, identifier: str) -> Entry:  # noqa: ANN401 - the service, real or a fake
    """The entry, or an error that names ids spelt alike."""
    from kb.errors import NotFoundError

    try:
        entry: Entry = service.entry(identifier)
    except NotFoundError as error:
        import difflib

        knowledge = service.knowledge
        known = [
            *(*knowledge.cause_by_id, *knowledge.case_by_id),
            *(*knowledge.advice_by_id, *knowledge.note_by_id),
        ]
        near = difflib.get_close_matches(identifier, known, n=NEAR_IDS)
        if not near:
            raise
        names = ", ".join(near)
        raise NotFoundError(
            error.what,
            todo=f"did you mean {names}?",
            reason="no_entry_near",
            values={"id": identifier, "near": names},
        ) from error
    return entry
