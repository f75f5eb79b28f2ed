"""What a person does with an answer: save it, share it, judge it, add it as an incident."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
import streamlit as st

from app.render.escape import plain
from app.web.components import actions, chat_model, markup, outcome_form
from app.web.components.actions import Notice
from app.web.components.answer_state import AnswerState
from app.web.components.markup import html, show
from app.web.context import chat, href, service
from app.web.navigation import page
from app.web.recent_answers import person
from kb.diagnose.verdict import Verdict
from kb.errors import InputError, NotFoundError
from kb.knowledge.labels import Words
from kb.types.answer import Diagnosis
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    from app.inputs.contributions import Feedback, Resolution, StoredFeedback

NAME = "pasted.log"
TALK = "talk_about"  # pending: the conversation to go to
RECORD, TAKE_BACK = "record", "feedback_take_back"  # the buttons
COPY_PX = 220  # height of a text to copy; longer ones scroll
LOCAL = ("127.0.0.1", "::1", "localhost")


def show_actions(state: AnswerState, diagnosis: Diagnosis, words: Words) -> None:
    """The row of things to do with this answer."""
    with st.container(horizontal=True, key="tk_actions"):
        with st.popover(words("page.copy"), key="copy"):
            for label, render in (("page.copy_short", _short), ("page.copy_markdown", _markdown)):
                text = render(diagnosis, words)
                show(markup.faint(words(label)))
                st.code(text, language=None, wrap_lines=True, height=COPY_PX)
            _downloads(diagnosis, words)
        actions.button(
            words("page.keep"),
            partial(_save, state),
            key="keep",
            words=words,
            disabled=state.saved is not None,
        )
        talk = partial(_talk, state, words.language)
        actions.button(words("page.talk"), talk, key="talk", words=words)
        with actions.pending(TALK) as work:
            if work.value is not None:
                target, work.value = work.value, None
                st.switch_page(page("chat", words), query_params={"c": target})
        settings = service().settings
        if settings.slack_bot_token and settings.slack_channel:
            post = partial(_post, _short(diagnosis, words))
            actions.button(words("page.slack"), post, key="slack", words=words)
    # The place is there with or without a link, so that what is below it stays what it was.
    with st.container():
        if state.saved is not None:
            _link(state.saved.id, words)


def _downloads(diagnosis: Diagnosis, words: Words) -> None:
    """The answer as files: Markdown, and JSON with all of it."""
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


# --- what was it? ------------------------------------------------------------------------------


def show_outcome_form(state: AnswerState, diagnosis: Diagnosis, words: Words) -> None:
    """What it was and what fixed it: one press judges the answer and adds the log as an incident.

    Nothing is stored before that press.
    """
    stored = _stored_feedback(state)
    notices = (RECORD, TAKE_BACK)
    unfolded = bool(stored or state.entry or any(map(actions.has_notice, notices)))
    with st.expander(words("page.what_was_it"), expanded=unfolded):
        if stored is not None:
            cause = _cause_said(stored.feedback, words)
            show(markup.paragraph(words("page.you_said", cause=cause, time=stored.at[:10])))
        if state.entry:
            link = html(
                '<a href="{url}" target="_blank">{id}</a>',
                url=href("cases", id=state.entry),
                id=state.entry,
            )
            text = words("page.added")
            show(html('<p class="tk-note tk-good">{text} {link}</p>', text=text, link=link))
        show(markup.paragraph(words("page.record_help")))
        causes = [cause.id for cause in diagnosis.causes]
        label = words("page.send_again" if stored or state.entry else "page.record")
        record = partial(_record, state, causes)
        outcome_form.show_form(words, label, record, key=RECORD, first=causes)
        if stored is not None:
            take_back = partial(_take_back, state, stored.id)
            actions.button(words("page.take_back"), take_back, key=TAKE_BACK, words=words)
        else:
            actions.show_notice(TAKE_BACK, words)


def _cause_said(feedback: Feedback, words: Words) -> str:
    """What a person said it was."""
    cause = feedback.cause if feedback.verdict == "right" else feedback.actual
    known = service().knowledge.cause_by_id.get(cause)
    own = plain(feedback.comment.partition("\n")[0]) or words("page.something_else")
    return known.title.get(words.language) if known else own


def _stored_feedback(state: AnswerState) -> StoredFeedback | None:
    """What this person said of this answer, here or by its link; the form begins with it."""
    from app.inputs.contributions import find_feedback, outcome_of

    stored = find_feedback(service(), _speaker(state))
    if stored is not None and state.feedback is None:
        state.feedback = feedback = stored.feedback
        with contextlib.suppress(NotFoundError):  # deleted since
            entry = service().entry(feedback.entry)
            state.entry = entry.id
            outcome_form.fill(outcome_of(entry))
    return stored


def _speaker(state: AnswerState) -> str:
    """Who speaks of what: of the same only the last word counts."""
    return f"{person()} {state.reading.words} {state.reading.excerpt}"


def _take_back(state: AnswerState, identifier: str) -> Notice:
    from app.inputs.contributions import delete_feedback

    with contextlib.suppress(NotFoundError):  # taken back in another tab, or pressed twice
        delete_feedback(service(), identifier)
    state.feedback = None
    outcome_form.fill(None)
    return Notice(tone="info", label="page.taken_back")


def _record(state: AnswerState, causes: Sequence[str]) -> Notice | None:
    """Judge the answer, add the log once, and write down cause and fix where they are known.

    What a log does not show is no incident, but the answer to it is judged all the same. The
    session is read before anything is stored: to touch it later may end the run in between.
    """
    from app.inputs.contributions import add_reading

    ended, speaker = outcome_form.outcome(), _speaker(state)
    is_chosen = bool(outcome_form.field(outcome_form.CAUSE))
    failure = None
    try:
        state.entry = state.entry or add_reading(
            service(),
            state.reading,
            name=NAME,
            text="" if state.names else state.pasted,
            files=state.names,
        )
    except InputError as error:
        failure = error
    if causes and is_chosen:
        _judge(state, causes[0], ended, speaker)
    if failure is not None:
        raise failure
    return outcome_form.save(state.entry, ended) if is_chosen or ended.fix else None


def _judge(state: AnswerState, answered: str, ended: Resolution, speaker: str) -> None:
    """Keep what the speaker says of the first cause."""
    from app.inputs.contributions import Feedback, add_feedback

    feedback = Feedback(
        verdict="right" if ended.cause == answered else "wrong",
        cause=answered,
        actual=ended.cause,
        comment="\n".join(filter(None, (ended.own_cause, ended.fix))),
        entry=state.entry,
        diagnosis=state.saved.id if state.saved else "",
    )
    if feedback != state.feedback:  # Streamlit may call a callback twice for one press
        add_feedback(service(), feedback, source="web", by=speaker)
        state.feedback = feedback
