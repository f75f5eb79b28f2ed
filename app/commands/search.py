"""`timeout-kb search` and `timeout-kb show`: look things up."""

from __future__ import annotations

from typing import Any

import click

from app.commands.common import (
    EXIT_UNDECIDED,
    State,
    format_option,
    language_option,
    text_width,
    write,
    write_json,
)
from kb.types import Advice, Cause, Entry, Filters, Language

NEAR_IDS = 3  # how many ids to suggest for a misspelt one


def _filter_options(function: Any) -> Any:  # noqa: ANN401 - click decorates any callable
    helps = {
        "cause": "Only entries of this cause.",
        "framework": "Only this framework (fsdp, deepspeed, vllm, ...).",
        "backend": "Only this backend (nccl, gloo, hccl, rccl).",
        "op": "Only this collective.",
        "stage": "Only this stage (init, train, eval, save, ...).",
        "kind": "Only this kind (case, writeup, thread, incident).",
        "status": "Only this standing (confirmed, reported, ...).",
        "project": "Only this project.",
        "hardware": "Only this hardware (a100, h100, ascend, infiniband, ...).",
    }
    for name, text in reversed(helps.items()):
        function = click.option(f"--{name}", multiple=True, help=text)(function)
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

    Options that name a value may be given more than once. Exit code 3 where nothing is similar
    enough.
    """
    state = context.find_object(State) or State()
    filters = Filters(
        causes=chosen["cause"],
        frameworks=chosen["framework"],
        backends=chosen["backend"],
        ops=chosen["op"],
        stages=chosen["stage"],
        kinds=chosen["kind"],
        statuses=chosen["status"],
        projects=chosen["project"],
        hardware=chosen["hardware"],
        since=since,
        until=until,
    )
    text = " ".join(query)
    with state.service() as service:
        asked = state.language(language)
        result = service.search(text, filters=filters, limit=limit, language=asked)
        if form == "json":
            write_json(result)
        else:
            from app.labels import Words
            from app.listing import render_search
            from kb.text import detect_language

            words = Words(service.knowledge.labels, asked or detect_language(text))
            write(state, render_search(result, words, width=text_width()))
    context.exit(0 if result.similar_enough or result.settings else EXIT_UNDECIDED)


@click.command("show")
@click.argument("identifier", metavar="ID")
@language_option
@format_option("text", "json")
@click.pass_context
def show_command(
    context: click.Context, identifier: str, language: Language | None, form: str
) -> None:
    """Show the case, entry, cause or setting called ID."""
    state = context.find_object(State) or State()
    with state.service() as service:
        knowledge = service.knowledge
        found: Cause | Advice | Entry | None = knowledge.cause_by_id.get(identifier)
        found = found or knowledge.advice_by_id.get(identifier) or _entry(service, identifier)
        if form == "json":
            from app.schemas import entry_detail

            write_json(entry_detail(found) if isinstance(found, Entry) else found)
            return
        from app.labels import Words
        from app.layout import paragraphs
        from app.listing import render_cause, render_entry, render_setting

        words = Words(service.knowledge.labels, state.language(language) or "en")
        if isinstance(found, Cause):
            write(state, render_cause(found, words, width=text_width()))
        elif isinstance(found, Advice):
            write(state, paragraphs([render_setting(found, words, width=text_width())]))
        else:
            write(state, render_entry(found, words, width=text_width()))


def _entry(service: Any, identifier: str) -> Entry:  # noqa: ANN401 - the service, real or a fake
    """The entry, or an error that names ids spelt alike."""
    from kb.errors import NotFoundError

    try:
        entry: Entry = service.entry(identifier)
    except NotFoundError as error:
        import difflib

        knowledge = service.knowledge
        known = [*knowledge.cause_by_id, *knowledge.case_by_id, *knowledge.advice_by_id]
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
