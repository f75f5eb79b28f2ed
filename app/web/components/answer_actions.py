"""What a person does with an answer: save it, share it, judge it, add it as an incident."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
import streamlit as st

from app.web.components import actions, chat_model, markup, outcome_form
from app.web.components.actions import Notice
from app.web.components.answer_state import AnswerState
from app.web.components.markup import html, show
from app.web.context import chat, href, service
from app.web.navigation import page
from app.web.recent_answers import person
from kb.diagnose.verdict import Verdict
from kb.errors import NotFoundError
from kb.knowledge.labels import Words
from kb.types.answer import Diagnosis
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    from app.inputs.contributions import StoredFeedback

NAME = "pasted.log"
TALK = "talk_about"  # pending: the conversation to go to
VERDICT, ACTUAL, COMMENT = "feedback_verdict", "feedback_actual", "feedback_comment"  # fields
TAKE_BACK = "feedback_take_back"  # the button
VERDICTS = {"right": "page.right", "wrong": "page.wrong"}
COPY_PX = 220  # height of a text to copy; longer ones scroll
MAX_COMMENT = 2000  # characters
LOCAL = ("127.0.0.1", "::1", "localhost")


def show_actions(state: AnswerState, diagnosis: Diagnosis, words: Words) -> None:
    """The row of things to do with this answer."""
    with st.container(horizontal=True, key="tk_actions"):
        talk = partial(_talk, state, words.language)
        actions.button(words("page.talk"), talk, key="talk", words=words)
        with actions.pending(TALK) as work:
            if work.value is not None:
                target, work.value = work.value, None
                st.switch_page(page("chat", words), query_params={"c": target})
        actions.button(
            words("page.keep"),
            partial(_save, state),
            key="keep",
            words=words,
            disabled=state.saved is not None,
        )
        st.download_button(
            words("page.markdown"),
            data=_markdown(diagnosis, words),
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
        with st.popover(words("page.copy"), key="copy"):
            for label, render in (("page.copy_short", _short), ("page.copy_markdown", _markdown)):
                text = render(diagnosis, words)
                show(markup.faint(words(label)))
                st.code(text, language=None, wrap_lines=True, height=COPY_PX)
        settings = service().settings
        if settings.slack_bot_token and settings.slack_channel:
            post = partial(_post, _short(diagnosis, words))
            actions.button(words("page.slack"), post, key="slack", words=words)
    # The place is there with or without a link, so that what is below it stays what it was.
    with st.container():
        if state.saved is not None:
            _link(state.saved.id, words)


def _markdown(diagnosis: Diagnosis, words: Words) -> str:
    from app.render.markdown import render_markdown

    return render_markdown(diagnosis, words)


def _short(diagnosis: Diagnosis, words: Words) -> str:
    from app.render.short import render_short

    return render_short(diagnosis, words)


def _post(text: str) -> Notice:
    """Post the short form into the team's channel."""
    from app.slack.posting import post_text

    post_text(service().settings, text)
    return Notice(tone="info", label="page.posted")


def _talk(state: AnswerState, language: Language) -> None:
    """Begin a conversation about this incident; the page then goes there."""
    conversation = chat().begin(state.reading, language=language).conversation
    chat_model.ask_model(chat().conversation(conversation))
    actions.request(TALK, conversation)


def _save(state: AnswerState) -> None:
    """Save the diagnosis shown and put its id into the address, where it can be copied from."""
    from kb.saved import save_diagnosis

    if isinstance(state.shown, Verdict) and state.saved is None:
        state.saved = save_diagnosis(service(), state.shown)
    if state.saved is not None:
        st.query_params["d"] = state.saved.id


def _link(identifier: str, words: Words) -> None:
    show(markup.faint(words("page.kept")))
    base = service().settings.public_url or str(st.context.url or "").split("?", 1)[0]
    address = f"{base.rstrip('/')}/?d={identifier}" if base else f"?d={identifier}"
    st.code(address, language=None, wrap_lines=True)
    if urlsplit(address).hostname in LOCAL:
        show(markup.faint(words("page.kept_local")))


def clear_fields() -> None:
    """Empty the forms below an answer, for the next answer."""
    _clear_feedback()
    outcome_form.clear()


def _clear_feedback() -> None:
    st.session_state[VERDICT] = st.session_state[ACTUAL] = None
    st.session_state[COMMENT] = ""


# --- was it right? -----------------------------------------------------------------------------


def show_feedback_form(state: AnswerState, diagnosis: Diagnosis, words: Words) -> None:
    """This was it, that was not it, and what it was instead."""
    if not diagnosis.causes:
        return
    stored = _stored_feedback(state)
    unfolded = stored is not None or actions.has_notice(TAKE_BACK)
    with st.expander(words("page.feedback"), expanded=unfolded):
        if stored is not None:
            verdict = words(VERDICTS[stored.feedback.verdict])
            show(markup.paragraph(words("page.you_said", verdict=verdict, time=stored.at[:10])))
        with st.form("feedback", border=False):
            st.radio(
                words("page.feedback"),
                list(VERDICTS),
                format_func=lambda verdict: words(VERDICTS[verdict]),
                index=None,
                horizontal=True,
                label_visibility="collapsed",
                key=VERDICT,
            )
            outcome_form.cause_choice(words, "page.actual", key=ACTUAL)
            st.text_input(words("page.comment"), max_chars=MAX_COMMENT, key=COMMENT)
            send = partial(_send, state, diagnosis.causes[0].id)
            label = words("page.send" if stored is None else "page.send_again")
            submit = st.form_submit_button
            actions.button(label, send, key="feedback_send", words=words, make=submit)
        if stored is not None:
            take_back = partial(_take_back, state, stored.id)
            actions.button(words("page.take_back"), take_back, key=TAKE_BACK, words=words)
        else:
            actions.show_notice(TAKE_BACK, words)


def _stored_feedback(state: AnswerState) -> StoredFeedback | None:
    """What this person said of this answer, here or by its link; the form begins with it."""
    from app.inputs.contributions import find_feedback

    stored = find_feedback(service(), _speaker(state))
    if stored is not None and state.feedback is None:
        state.feedback = feedback = stored.feedback
        st.session_state[VERDICT] = feedback.verdict
        st.session_state[ACTUAL] = feedback.actual or None
        st.session_state[COMMENT] = feedback.comment
    return stored


def _speaker(state: AnswerState) -> str:
    """Who speaks of what: of the same only the last word counts."""
    return f"{person()} {state.reading.words} {state.reading.excerpt}"


def _take_back(state: AnswerState, identifier: str) -> Notice:
    from app.inputs.contributions import delete_feedback

    with contextlib.suppress(NotFoundError):  # taken back in another tab, or pressed twice
        delete_feedback(service(), identifier)
    state.feedback = None
    _clear_feedback()
    return Notice(tone="info", label="page.taken_back")


def _send(state: AnswerState, cause: str) -> Notice:
    from app.inputs.contributions import Feedback, add_feedback

    verdict = st.session_state.get(VERDICT)
    if verdict is None:
        return Notice(tone="possible", label="page.say_which")
    actual, comment = outcome_form.field(ACTUAL), outcome_form.field(COMMENT)
    feedback = Feedback(
        verdict=verdict,
        cause=cause,
        actual=actual,
        comment=comment,
        diagnosis=state.saved.id if state.saved else "",
    )
    answered = cause if verdict == "right" else ""
    outcome_form.fill(actual or answered, comment)
    if feedback != state.feedback:  # Streamlit may call a callback twice for one press
        add_feedback(service(), feedback, source="web", by=_speaker(state))
        state.feedback = feedback
    return Notice(tone="good", label="page.noted")


# --- write it down -----------------------------------------------------------------------------


def show_incident_form(state: AnswerState, words: Words) -> None:
    """Add the log as an incident, with its cause and fix or without, and write them down later."""
    with st.expander(words("page.record"), expanded=state.feedback is not None):
        show(markup.paragraph(words("page.record_help")))
        if state.entry:
            link = html(
                '<a href="{url}" target="_blank">{id}</a>',
                url=href("cases", id=state.entry),
                id=state.entry,
            )
            text = words("page.added")
            show(html('<p class="tk-note tk-good">{text} {link}</p>', text=text, link=link))
        label = words("page.resolve" if state.entry else "page.add")
        with st.form("resolve", border=False):
            outcome_form.show_fields(words)
            submit = st.form_submit_button
            actions.button(label, partial(_record, state), key="record", words=words, make=submit)


def _record(state: AnswerState) -> Notice | None:
    """Add the log once; write down cause and fix where they are known already."""
    from app.inputs.contributions import add_reading

    if not state.entry:
        text = "" if state.names else state.pasted
        state.entry = add_reading(service(), state.reading, name=NAME, text=text)
        if outcome_form.is_empty():
            return None
    return outcome_form.save(state.entry)
