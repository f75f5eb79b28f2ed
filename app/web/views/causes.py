"""The causes page: every root cause, and all that is known of one of them."""

from __future__ import annotations

import streamlit as st
from markupsafe import Markup

from app.render import present
from app.render.escape import plain
from app.web.components import cards, markup
from app.web.components.markup import html
from app.web.context import interface_words, parameter, service
from kb.diagnose.rendering import answer_check, answer_fix, answer_runbooks
from kb.knowledge.labels import Words
from kb.types.entries import Filters
from kb.types.knowledge import Cause

CASES = 8  # of a cause that are named on its page


def page() -> None:
    """Show one cause where the address names one, else all."""
    words, identifier = interface_words(), parameter("id")
    if not identifier:
        _all(words)
        return
    cause = service().knowledge.cause_by_id.get(identifier)
    if cause is None:
        cards.show_missing(words("page.no_cause", id=plain(identifier)), _back(words))
        return
    show_cause(cause, words)


def _back(words: Words) -> Markup:
    return cards.page_link(words("page.back_to_causes"), "causes")


def _all(words: Words) -> None:
    markup.show(markup.heading(words("page.causes"), level=1))
    causes = service().knowledge.causes
    counts = service().store.facets(Filters(kinds=("case",))).get("cause", {})
    markup.show(markup.faint(words("page.causes_lead", count=len(causes))))
    markup.show(markup.join(cause_card(cause, counts.get(cause.id, 0), words) for cause in causes))


def cause_card(cause: Cause, cases: int, words: Words) -> Markup:
    """A cause of the list: title, definition, whether a restart helps, its cases."""
    return html(
        '<article class="tk-card"><h3 class="tk-h3">{title}</h3>'
        '<p class="tk-faint"><code>{id}</code> · {restart} · {cases}</p>'
        "<p>{definition}</p></article>",
        title=cards.cause_link(cause.id),
        id=cause.id,
        restart=restart(cause, words),
        cases=cases_link(cause, cases, words),
        definition=cards.inline(cause.definition.get(words.language)),
    )


def restart(cause: Cause, words: Words) -> Markup:
    """Whether a restart helps, as a badge."""
    text = words(
        "word.reason", what=words("row.restart"), reason=words.term("restart", cause.restart)
    )
    return markup.badge(text, cards.RESTART.get(cause.restart, "quiet"))


def cases_link(cause: Cause, cases: int, words: Words) -> Markup:
    """How many cases there are, with a link to them."""
    text = words("page.cases_of", count=cases)
    return (
        cards.page_link(text, "cases", cause=cause.id, kind="case") if cases else markup.safe(text)
    )


def show_cause(cause: Cause, words: Words) -> None:
    """All that is known of a cause."""
    language = words.language
    markup.show(markup.paragraph(_back(words)))
    markup.show(
        html(
            "{title}<p><code>{id}</code> {restart}</p><p>{definition}</p><p>{reason}</p>",
            title=markup.heading(cause.title.get(language), level=1),
            id=cause.id,
            restart=restart(cause, words),
            definition=cards.inline(cause.definition.get(language)),
            reason=cards.inline(cause.restart_reason.get(language)),
        )
    )
    team = [
        *present.notices(service().notices_about(cause.id, language), words),
        *present.runbooks(answer_runbooks(cause, words), words),
    ]
    markup.show(markup.join(cards.team_line(text, url) for text, url in team))
    for name, points in (
        ("heading.shows", cause.shows),
        ("heading.confirms", cause.confirms),
        ("heading.refutes", cause.refutes),
    ):
        items = [cards.inline(point.get(language)) for point in points]
        markup.show(markup.section(words(name), markup.listed(items)))
    cards.show_fixes([answer_fix(fix, words) for fix in cause.fixes], words)
    if cause.checks:
        markup.show(markup.heading(words("heading.checks")))
    for check in cause.checks:
        with st.container(border=True):
            cards.show_check(answer_check(check, service().knowledge, words))
    _collect(cause, words)
    _cases(cause, words)
    markup.show(cards.notes_about(cause.id, words))
    markup.show(cards.sources(cause.sources, words))


def _collect(cause: Cause, words: Words) -> None:
    if not cause.collect:
        return
    markup.show(markup.heading(words("heading.collect")))
    for item in cause.collect:
        where = words.listing([*item.versions, *item.backends])
        with st.container(border=True):
            markup.show(
                html(
                    "<p>{why} <span class='tk-faint'>{where}</span></p>",
                    why=cards.inline(item.why.get(words.language)),
                    where=where,
                )
            )
            cards.show_command(item.command)


def _cases(cause: Cause, words: Words) -> None:
    filters = Filters(causes=(cause.id,), kinds=("case",))
    entries = service().entries(filters=filters, limit=CASES)
    if not entries:
        return
    count = len(service().store.ids(filters))
    markup.show(markup.heading(words("page.cases_of", count=count)))
    markup.show(markup.join(cards.entry_card(entry, words) for entry in entries))
    if count > len(entries):
        markup.show(markup.paragraph(cases_link(cause, count, words)))
