"""What a person does with an answer: save it, share it, judge it, add it as an incident."""

from __future__ import annotations

from functools import partial
from urllib.parse import urlsplit

import msgspec
import streamlit as st

from app.web.components import actions, chat_model, markup, outcome_form
from app.web.components.actions import Notice
from app.web.components.answer_state import AnswerState
from app.web.components.markup import html, show
from app.web.context import chat, href, service, signed_in
from app.web.navigation import page
from kb.diagnose.verdict import Verdict
from kb.knowledge.labels import Words
from kb.types.answer import Diagnosis
from kb.types.vocabulary import Language

NAME = "pasted.log"
TALK = "talk_about"  # pending: the conversation to go to
VERDICT, ACTUAL, COMMENT = "feedback_verdict", "feedback_actual", "feedback_comment"  # fields
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
    st.session_state[VERDICT] = st.session_state[ACTUAL] = None
    st.session_state[COMMENT] = ""
    outcome_form.clear()


# --- was it right? -----------------------------------------------------------------------------


def show_feedback_form(state: AnswerState, diagnosis: Diagnosis, words: Words) -> None:
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
            key=VERDICT,
        )
        outcome_form.cause_choice(words, "page.actual", key=ACTUAL)
        st.text_input(words("page.comment"), max_chars=MAX_COMMENT, key=COMMENT)
        send = partial(_send, state, diagnosis.causes[0].id)
        submit = st.form_submit_button
        actions.button(words("page.send"), send, key="feedback_send", words=words, make=submit)


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
        name = signed_in()
        # of one person only the last word on one answer counts
        by = f"{name} {state.reading.excerpt}" if name else ""
        add_feedback(service(), feedback, source="web", by=by)
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
    from app.inputs.contributions import add_text

    if not state.entry:
        state.entry = add_text(service(), state.text(), name=NAME).entries[0]
        if outcome_form.is_empty():
            return None
    return outcome_form.save(state.entry)
