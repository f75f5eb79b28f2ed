"""What a language model makes of the report, in a place of its own below the verdict.

The place is as high from the start as it will be, so nothing moves when the model has read; the
answer itself changes only when a person asks for it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st
from markupsafe import Markup

from app.render import present
from app.render.escape import printable
from app.web.components import actions, markup
from app.web.components.answer_state import AnswerState
from app.web.components.markup import html, join, listed, show
from app.web.context import service
from kb.diagnose.verdict import Verdict
from kb.diagnose.wording import percent
from kb.knowledge.labels import Words

if TYPE_CHECKING:
    from kb.second_reader.asking import SecondReader

POLL_S = 1.0  # between two looks whether the model has read
CAUSES = 3  # of the pooled ranking


def show_second_reading(state: AnswerState, words: Words) -> None:
    """The model's place for a fresh answer; for one saved with an opinion, what it said then."""
    reader, first = service().second_reader, state.origin
    if not isinstance(first, Verdict):
        for text in present.second_reading(printable(first.answer(words.language)), words):
            show(markup.paragraph(text))
        return
    if reader is None or first.status == "no_timeout":
        return
    pooled = state.read_along(reader, first)
    with st.container(border=True, key="tk_second"):
        if pooled is None:
            st.fragment(_wait, run_every=POLL_S)(state, reader, first, words)
        else:
            show(_opinion_html(first, pooled, words))
        if pooled is None or not (pooled.second and pooled.second.why):
            actions.button(
                words("second.hide" if state.is_pooled else "second.show"),
                partial(_show_pooled, state, not state.is_pooled),
                key="second_show",
                words=words,
                disabled=pooled is None,
            )
    show(_sent_html(first, reader.address, words))


def _wait(state: AnswerState, reader: SecondReader, first: Verdict, words: Words) -> None:
    """Draw the page again once the model has read: this place changes, and asks no more."""
    if state.read_along(reader, first) is not None:
        actions.repeat_notices()
        st.rerun()
    text = words("second.reads", model=reader.model, address=reader.address)
    show(html('<p aria-live="polite">{text}</p>', text=text))


def _opinion_html(first: Verdict, pooled: Verdict, words: Words) -> Markup:
    """The first causes with it, and what the model asks and says; or why there is nothing."""
    answer = printable(service().render(pooled, language=words.language))
    second = answer.second_reader
    if second is None or second.why:
        lines = [markup.paragraph(text) for text in present.second_reading(answer, words)]
        return join([*lines, markup.faint(words("second.stands"))])
    before = {scored.cause: scored.probability for scored in first.ranking.causes}
    rows = [
        html(
            "{title} <b>{change}</b>",
            title=cause.title,
            change=words(
                "second.change",
                before=percent(before[cause.id]),
                after=present.cause_share(cause),
            ),
        )
        for cause in answer.causes[:CAUSES]
    ]
    counted = [
        words("second.trust", trust=f"{second.trust:.2f}"),
        words("second.tokens", count=second.tokens) if second.tokens else "",
    ]
    title = html(
        '{heading} <span class="tk-faint">{counted}</span>',
        heading=words("second.heading"),
        counted=words.listing(counted),
    )
    top = words.listing(f"{one.title} {percent(one.probability)}" for one in second.top)
    return html(
        '<div class="tk-second" aria-live="polite"><div>{heading}{rows}</div>'
        "<div>{ask}{opinion}</div></div>",
        heading=markup.heading(title, level=3),
        rows=listed(rows, ordered=True),
        ask=markup.paragraph(words("second.asks", ask=second.ask)) if second.ask else "",
        opinion=markup.faint(words("second.opinion", model=second.model, top=top)),
    )


def _sent_html(first: Verdict, address: str, words: Words) -> Markup:
    """What leaves this machine and where to: the report, a click away."""
    from kb.second_reader.prompt import messages

    _, report = messages(first, service().knowledge.causes)
    return html(
        '<details class="tk-around"><summary>{label}</summary>'
        '<code class="tk-quote" tabindex="0">{text}</code></details>',
        label=words("second.sent", address=address),
        text=markup.block(report["content"]),
    )


def _show_pooled(state: AnswerState, is_pooled: bool) -> None:
    """Show the answer with the model's opinion or without; a link to the other one goes."""
    state.show_pooled(is_pooled)
    if "d" in st.query_params:
        del st.query_params["d"]
