"""What a person does with an answer: keep it, hand it on, judge it, write it down."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlsplit

import msgspec
import streamlit as st

from app.labels import Words
from app.view import View
from app.web.markup import html, show
from app.web.outcome import Outcome
from app.web.pages import page
from app.web.parts import chat, href, service, tell
from kb.errors import KBError
from kb.types import Diagnosis

ADDED = "added_entry"  # id of the incident this session wrote down
NAME = "pasted.log"
MAX_COMMENT = 2000  # characters
LOCAL = ("127.0.0.1", "::1", "localhost")


def actions(outcome: Outcome, diagnosis: Diagnosis, view: View, words: Words) -> None:
    """The row of things to do with this answer."""
    with st.container(horizontal=True, key="tk_actions"):
        if st.button(words("page.talk"), key="talk"):
            _talk(outcome, words)
        if st.button(words("page.keep"), key="keep", disabled=outcome.kept is not None):
            _keep(outcome)
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


def _talk(outcome: Outcome, words: Words) -> None:
    """Begin a conversation about this incident and go there."""
    reply = chat().begin(outcome.reading, language=words.language)
    st.switch_page(page("chat", words), query_params={"c": reply.conversation})


def _keep(outcome: Outcome) -> None:
    """Keep the diagnosis and put its id into the address, where it can be copied from."""
    from kb.kept import keep

    outcome.kept = keep(service(), outcome.reading, torch=outcome.torch or None)
    st.query_params["d"] = outcome.kept.id
    st.rerun()


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
        right = words("page.right")
        said = st.radio(
            words("page.feedback"),
            [right, words("page.wrong")],
            index=None,
            horizontal=True,
            label_visibility="collapsed",
        )
        actual = _cause_choice(words, "page.actual", key="feedback_actual")
        comment = st.text_input(words("page.comment"), max_chars=MAX_COMMENT)
        if st.form_submit_button(words("page.send")):
            if said is None:
                show(html('<p class="tk-note tk-possible">{t}</p>', t=words("page.say_which")))
            else:
                _send(outcome, diagnosis, verdict=said == right, actual=actual, comment=comment)
                show(html('<p class="tk-note tk-good">{t}</p>', t=words("page.thanks")))


def _cause_choice(words: Words, label: str, *, key: str) -> str:
    """A cause out of all there are, or an empty string."""
    causes = service().knowledge.cause_by_id
    chosen = st.selectbox(
        words(label),
        list(causes),
        index=None,
        format_func=lambda cause: f"{causes[cause].title.get(words.language)} · {cause}",
        placeholder=words("page.choose"),
        key=key,
    )
    return chosen or ""


def _send(
    outcome: Outcome, diagnosis: Diagnosis, *, verdict: bool, actual: str, comment: str
) -> None:
    from app.contribute import Feedback, add_feedback

    add_feedback(
        service(),
        Feedback(
            verdict="right" if verdict else "wrong",
            cause=diagnosis.causes[0].id,
            actual=actual,
            comment=comment,
            diagnosis=outcome.kept.id if outcome.kept else "",
        ),
        source="web",
    )


# --- write it down -----------------------------------------------------------------------------


def record(outcome: Outcome, words: Words) -> None:
    """Add the log as an incident, and later its cause and fix."""
    with st.expander(words("page.record")):
        show(html("<p>{text}</p>", text=words("page.record_help")))
        entry = st.session_state.get(ADDED)
        if entry is None:
            if st.button(words("page.add"), key="add"):
                _add(outcome)
            return
        show(
            html(
                '<p class="tk-note tk-good">{text} {link}</p>',
                text=words("page.added"),
                link=html(
                    '<a href="{u}" target="_blank">{id}</a>', u=href("cases", id=entry), id=entry
                ),
            )
        )
        _resolve(entry, words)


def _add(outcome: Outcome) -> None:
    from app.contribute import add_text

    report = add_text(service(), outcome.text(), name=NAME)
    st.session_state[ADDED] = report.entries[0]
    st.rerun()


def _resolve(entry: str, words: Words) -> None:
    """Cause and fix of the incident, once they are known."""
    from app.contribute import Resolution, resolve

    with st.form("resolve", border=False):
        cause = _cause_choice(words, "row.cause", key="resolve_cause")
        fix = st.text_area(words("page.fix"), key="resolve_fix", max_chars=MAX_COMMENT)
        url = st.text_input(words("page.source_url"), key="resolve_url")
        if not st.form_submit_button(words("page.resolve")):
            return
        if not cause or not fix.strip():
            show(html('<p class="tk-note tk-possible">{t}</p>', t=words("page.say_both")))
            return
        try:
            resolve(service(), entry, Resolution(cause=cause, fix=fix.strip(), url=url.strip()))
        except KBError as error:
            tell(error, words)
            return
        show(html('<p class="tk-note tk-good">{t}</p>', t=words("page.resolved")))
