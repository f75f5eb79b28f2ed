"""The causes page: every root cause, and all that is known of one of them."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from markupsafe import Markup

from app.labels import Words
from app.quoting import plain
from app.web import cards, markup
from app.web.markup import html
from app.web.parts import parameter, service, words
from kb.types import Bilingual, Cause, Filters

CASES = 8  # of a cause that are named on its page


def page() -> None:
    """Show one cause where the address names one, else all."""
    identifier = parameter("id")
    if not identifier:
        _all(words())
        return
    cause = service().knowledge.cause_by_id.get(identifier)
    if cause is None:
        cards.not_there(words()("page.no_cause", id=plain(identifier)), _back(words()))
        return
    show_cause(cause, words())


def _back(spoken: Words) -> Markup:
    return cards.inner(spoken("page.back_to_causes"), "causes")


def _all(spoken: Words) -> None:
    markup.show(markup.heading(spoken("page.causes"), level=1))
    causes = service().causes()
    counts = service().store.facets(Filters(kinds=("case",))).get("cause", {})
    text = spoken("page.causes_lead", count=len(causes))
    markup.show(html('<p class="tk-faint">{text}</p>', text=text))
    markup.show(markup.join(cause_card(cause, counts.get(cause.id, 0), spoken) for cause in causes))


def cause_card(cause: Cause, cases: int, spoken: Words) -> Markup:
    """A cause of the list: title, definition, whether a restart helps, its cases."""
    return html(
        '<article class="tk-card"><h3 class="tk-h3">{title}</h3>'
        '<p class="tk-faint"><code>{id}</code> · {restart} · {cases}</p>'
        "<p>{definition}</p></article>",
        title=cards.cause_link(cause.id),
        id=cause.id,
        restart=restart(cause, spoken),
        cases=cases_link(cause, cases, spoken),
        definition=cards.inline(cause.definition.get(spoken.language)),
    )


def restart(cause: Cause, spoken: Words) -> Markup:
    """Whether a restart helps, as a badge."""
    text = spoken(
        "word.reason", what=spoken("row.restart"), reason=spoken.term("restart", cause.restart)
    )
    return markup.badge(text, cards.RESTART.get(cause.restart, "quiet"))


def cases_link(cause: Cause, cases: int, spoken: Words) -> Markup:
    """How many cases there are, with a link to them."""
    text = spoken("page.cases_of", count=cases)
    return cards.inner(text, "cases", cause=cause.id, kind="case") if cases else markup.safe(text)


def show_cause(cause: Cause, spoken: Words) -> None:
    """All that is known of a cause."""
    language = spoken.language
    markup.show(html("<p>{back}</p>", back=_back(spoken)))
    markup.show(
        html(
            "{title}<p><code>{id}</code> {restart}</p><p>{definition}</p><p>{reason}</p>",
            title=markup.heading(cause.title.get(language), level=1),
            id=cause.id,
            restart=restart(cause, spoken),
            definition=cards.inline(cause.definition.get(language)),
            reason=cards.inline(cause.restart_reason.get(language)),
        )
    )
    for name, points in (
        ("heading.shows", cause.shows),
        ("heading.confirms", cause.confirms),
        ("heading.refutes", cause.refutes),
    ):
        _points(spoken(name), points, spoken)
    cards.show_fixes(cause.fixes, spoken)
    cards.show_checks(cause.checks, spoken)
    _collect(cause, spoken)
    _cases(cause, spoken)
    links = cards.sources(cause.sources)
    if links:
        markup.show(markup.join([markup.heading(spoken("heading.sources")), links]))


def _points(title: str, points: Sequence[Bilingual], spoken: Words) -> None:
    if points:
        items = [cards.inline(point.get(spoken.language)) for point in points]
        markup.show(markup.join([markup.heading(title), markup.listed(items)]))


def _collect(cause: Cause, spoken: Words) -> None:
    if not cause.collect:
        return
    markup.show(markup.heading(spoken("heading.collect")))
    for item in cause.collect:
        where = spoken.listing([*item.versions, *item.backends])
        with st.container(border=True):
            markup.show(
                html(
                    "<p>{why} <span class='tk-faint'>{where}</span></p>",
                    why=cards.inline(item.why.get(spoken.language)),
                    where=where,
                )
            )
            cards.show_command(item.command)


def _cases(cause: Cause, spoken: Words) -> None:
    filters = Filters(causes=(cause.id,), kinds=("case",))
    found = service().entries(filters=filters, limit=CASES)
    if not found:
        return
    count = len(service().store.ids(filters))
    markup.show(markup.heading(spoken("page.cases_of", count=count)))
    markup.show(markup.join(cards.entry_card(entry, spoken) for entry in found))
    if count > len(found):
        markup.show(html("<p>{link}</p>", link=cases_link(cause, count, spoken)))
