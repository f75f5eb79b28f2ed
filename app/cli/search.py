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
from kb.types.vocabulary import Language


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
        from app.render.item import find_item, render_item

        item = find_item(service, identifier)
        if form == "json":
            from app.api.schemas import entry_detail

            write_json(entry_detail(item) if isinstance(item, Entry) else item)
            return
        from kb.knowledge.labels import Words
        from kb.text.language import answer_language

        words = Words(service.knowledge.labels, answer_language(language, state.settings.lang))
        write(state, render_item(service, item, words, width=text_width()))
