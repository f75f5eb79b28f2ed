"""What a person does with an answer: keep it, hand it on, judge it, write it down."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from urllib.parse import urlsplit

import msgspec
import streamlit as st

from app.labels import Words
from app.view import View
from app.web import press
from app.web.markup import html, show
from app.web.outcome import Outcome
from app.web.pages import page
from app.web.parts import chat, href, service
from app.web.press import Notice
from kb.types import Diagnosis, Language

NAME = "pasted.log"
TALK = "talk_about"  # wished for: the conversation to go to
SAID, ACTUAL, COMMENT = "feedback_said", "feedback_actual", "feedback_comment"  # fields
CAUSE, FIX, SOURCE = "resolve_cause", "resolve_fix", "resolve_url"
VERDICTS = {"right": "page.right", "wrong": "page.wrong"}
MAX_COMMENT = 2000  # characters
LOCAL = ("127.0.0.1", "::1", "localhost")


def actions(outcome: Outcome, diagnosis: Diagnosis, view: View, words: Words) -> None:
    """The row of things to do with this answer."""
    with st.container(horizontal=True, key="tk_actions"):
        talk = partial(_talk, outcome, words.language)
        press.button(words("page.talk"), talk, key="talk", words=words)
        with press.fulfil(TALK) as begun:
            if begun.value is not None:
                target, begun.value = begun.value, None
                st.switch_page(page("chat", words), query_params={"c": target})
        kept = outcome.kept is not None
        keep = partial(_keep, outcome)
        press.button(words("page.keep"), keep, key="keep", words=words, disabled=kept)
        st.download_button(
            words("page.markdown"),
            data=_markdown(view, words),
            file_name="diagnosis.md",
            mime="text/markdown",
            on_click="ignore",
            key="download_markdown",
        )
        st.download_button(
            words("page.json"),
            data=msgspec.json.format(msgspec.json.encode(diagnosis), indent=2),
            file_name="diagnosis.json",
            mime="application/json",
            on_click="ignore",
            key="download_json",
        )
    # The place is there with or without a link, so that what is below it stays what it was.
    with st.container():
        if outcome.kept is not None:
            _link(outcome.kept.id, words)


def _markdown(view: View, words: Words) -> str:
    from app.markdown import render_markdown

    return render_markdown(view, words)


def _talk(outcome: Outcome, language: Language) -> None:
    """Begin a conversation about this incident; the page then goes there."""
    press.wish(TALK, chat().begin(outcome.reading, language=language).conversation)


def _keep(outcome: Outcome) -> None:
    """Keep the diagnosis and put its id into the address, where it can be copied from."""
    from kb.kept import keep

    if outcome.kept is None:
        outcome.kept = keep(service(), outcome.reading, torch=outcome.torch or None)
    st.query_params["d"] = outcome.kept.id


def _link(identifier: str, words: Words) -> None:
    show(html('<p class="tk-faint">{text}</p>', text=words("page.kept")))
    base = service().settings.public_url or str(st.context.url or "").split("?", 1)[0]
    address = f"{base.rstrip('/')}/?d={identifier}" if base else f"?d={identifier}"
    st.code(address, language=None, wrap_lines=True)
    if urlsplit(address).hostname in LOCAL:
        show(html('<p class="tk-faint">{text}</p>', text=words("page.kept_local")))


def kept_since(created_s: float) -> str:
    """The time a diagnosis was kept, as people write it."""
    return datetime.fromtimestamp(created_s, UTC).strftime("%Y-%m-%d %H:%M UTC")


# --- was it right? -----------------------------------------------------------------------------


def feedback(outcome: Outcome, diagnosis: Diagnosis, words: Words) -> None:
    """This was it, that was not it, and what it was instead."""
    if not diagnosis.causes:
        return
    with st.expander(words("page.feedback")), st.form("feedback", border=False):
        st.radio(
            words("page.feedback"),
            list(VERDICTS),
            format_func=lambda verdict: words(VERDICTS[verdict]),
            index=None,
            horizontal=True,
            label_visibility="collapsed",
            key=SAID,
        )
        _cause_choice(words, "page.actual", key=ACTUAL)
        st.text_input(words("page.comment"), max_chars=MAX_COMMENT, key=COMMENT)
        send = partial(_send, outcome, diagnosis.causes[0].id)
        submit = st.form_submit_button
        press.button(words("page.send"), send, key="feedback_send", words=words, make=submit)


def _cause_choice(words: Words, label: str, *, key: str) -> None:
    """A cause out of all there are."""
    causes = service().knowledge.cause_by_id
    st.selectbox(
        words(label),
        list(causes),
        index=None,
        format_func=lambda cause: f"{causes[cause].title.get(words.language)} · {cause}",
        placeholder=words("page.choose"),
        key=key,
    )


def _given(key: str) -> str:
    """What stands in a field of a form, without the space around it."""
    return str(st.session_state.get(key) or "").strip()


def _send(outcome: Outcome, cause: str) -> Notice:
    from app.contribute import Feedback, add_feedback

    verdict = st.session_state.get(SAID)
    if verdict is None:
        return Notice(tone="possible", label="page.say_which")
    judgement = Feedback(
        verdict=verdict,
        cause=cause,
        actual=_given(ACTUAL),
        comment=_given(COMMENT),
        diagnosis=outcome.kept.id if outcome.kept else "",
    )
    add_feedback(service(), judgement, source="web")
    return Notice(tone="good", label="page.thanks")


# --- write it down -----------------------------------------------------------------------------


def record(outcome: Outcome, words: Words) -> None:
    """Add the log as an incident, and later its cause and fix."""
    with st.expander(words("page.record")):
        show(html("<p>{text}</p>", text=words("page.record_help")))
        if not outcome.added:
            press.button(words("page.add"), partial(_add, outcome), key="add", words=words)
            return
        link = html(
            '<a href="{url}" target="_blank">{id}</a>',
            url=href("cases", id=outcome.added),
            id=outcome.added,
        )
        text = words("page.added")
        show(html('<p class="tk-note tk-good">{text} {link}</p>', text=text, link=link))
        with st.form("resolve", border=False):
            _cause_choice(words, "row.cause", key=CAUSE)
            st.text_area(words("page.fix"), key=FIX, max_chars=MAX_COMMENT)
            st.text_input(words("page.source_url"), key=SOURCE)
            settle = partial(_resolve, outcome.added)
            submit = st.form_submit_button
            press.button(
                words("page.resolve"), settle, key="resolve_send", words=words, make=submit
            )


def _add(outcome: Outcome) -> None:
    from app.contribute import add_text

    outcome.added = add_text(service(), outcome.text(), name=NAME).entries[0]


def _resolve(entry: str) -> Notice:
    """Write down cause and fix of the incident, once they are known."""
    from app.contribute import Resolution, resolve

    cause, fix = _given(CAUSE), _given(FIX)
    if not cause or not fix:
        return Notice(tone="possible", label="page.say_both")
    resolve(service(), entry, Resolution(cause=cause, fix=fix, url=_given(SOURCE)))
    return Notice(tone="good", label="page.resolved")
