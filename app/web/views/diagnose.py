"""The diagnose page: paste or upload a log, read the answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app.render.escape import printable
from app.web import recent_answers
from app.web.components import (
    actions,
    answer_actions,
    markup,
    outcome_form,
    second_reading,
    style,
)
from app.web.components.actions import Notice
from app.web.components.answer_head import ShownDiagnosis
from app.web.components.answer_state import MIB, AnswerState, api_command, diagnose_input
from app.web.components.diagnosis import show_answer
from app.web.components.markup import html, show
from app.web.context import interface_words, language, parameter, service, show_error
from kb.errors import KBError
from kb.knowledge.labels import Words

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

PASTE, TORCH, FILES, STATE = "paste", "torch", "files", "answer"
RUN = "diagnose"  # pending: what is to be diagnosed
EXAMPLES = {  # files of data/examples with their labels
    "rank-out-of-memory.log": "page.example_memory",
    "rank-behind.log": "page.example_behind",
    "save-on-rank0.log": "page.example_save",
    "ascend-link-setup.log": "page.example_ascend",
    "words-only.txt": "page.example_words",
}


def page() -> None:
    """Show the page."""
    words = interface_words()
    with actions.pending(RUN) as work:
        if work.value is not None:
            _diagnose(*work.value, words=words)
    actions.show_notice(RUN, words)
    if service().site_waits():
        show(markup.note(words("page.site_waits"), "possible"))
    state = _current(words)
    if state is None:
        show(markup.heading(words("page.lead"), level=1))
        _form(words)
        return
    with st.expander(words("page.another")):
        _form(words)
    _answer(state, words)


def _current(words: Words) -> AnswerState | None:
    """The answer of this session or its tab, or the one the link in the address leads to."""
    state: AnswerState | None = st.session_state.get(STATE)
    linked = parameter("d")
    if state is None and not linked and (state := recent_answers.recall()) is not None:
        st.session_state[STATE], st.session_state[PASTE] = state, state.pasted
    known = state.saved.id if state is not None and state.saved is not None else ""
    if not linked or linked == known:
        return state
    from kb.saved import load_diagnosis

    try:
        saved = load_diagnosis(service(), linked)
    except KBError as error:
        show_error(error, words)
        return None
    state = st.session_state[STATE] = AnswerState(origin=saved, saved=saved)
    outcome_form.fill(None)
    return state


# --- input -------------------------------------------------------------------------------------


def _form(words: Words) -> None:
    limit = service().settings.max_body // MIB
    style.set_texts(
        upload=words("page.upload"),
        limit=words("page.upload_limit", size=limit),
        refused=words("page.file_refused", size=limit),
    )
    with st.form("diagnose", border=False):
        st.text_area(
            words("page.paste"), key=PASTE, height=240, placeholder=words("page.paste_hint")
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.form_submit_button(words("page.run"), type="primary", key="run", on_click=_submit)
            st.text_input(
                words("page.torch"), key=TORCH, placeholder="2.4.1", width=180, max_chars=40
            )
        st.file_uploader(
            words("page.files"),
            accept_multiple_files=True,
            key=FILES,
            help=words("page.files_help"),
        )
    with st.container(horizontal=True, key="tk_examples"):
        show(html('<span class="tk-faint">{text}</span>', text=words("page.examples")))
        for name, label in EXAMPLES.items():
            st.button(
                words(label),
                key=f"example_{name}",
                on_click=partial(_use_example, name),
                type="tertiary",
            )
    with st.expander(words("page.large", size=limit)):
        show(markup.paragraph(words("page.large_help")))
        st.code(api_command(service().settings), language=None, wrap_lines=True)


def _submit() -> None:
    """Have what stands in the form diagnosed before the page is laid out."""
    fields = st.session_state
    text, torch = str(fields.get(PASTE) or ""), str(fields.get(TORCH) or "").strip()
    actions.request(RUN, (text, fields.get(FILES) or [], torch))


def _use_example(name: str) -> None:
    """Put an example into the box and have it diagnosed."""
    path = service().settings.data / "examples" / name
    st.session_state[PASTE] = path.read_text(encoding="utf-8")
    _submit()


def _diagnose(text: str, files: Sequence[UploadedFile], torch: str, *, words: Words) -> None:
    """Diagnose a paste and files, or leave a notice of what is wrong with them."""
    if not text.strip() and not files:
        actions.post(RUN, Notice(tone="possible", label="page.nothing"))
        return
    try:
        with st.spinner(words("page.reading_log")):
            state = diagnose_input(
                service(),
                text=text,
                uploads=[(file.name, file) for file in files],
                torch=torch,
                language=language(),
            )
    except KBError as error:
        actions.post(RUN, error)
        return
    st.session_state[STATE] = state
    outcome_form.fill(None)
    recent_answers.remember(state)
    if "d" in st.query_params:
        del st.query_params["d"]


# --- answer ------------------------------------------------------------------------------------


def _answer(state: AnswerState, words: Words) -> None:
    diagnosis = state.answer(service(), words.language)
    if state.saved is not None and not state.has_log:
        since = datetime.fromtimestamp(state.saved.created_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
        show(markup.faint(words("page.kept_since", time=since)))

    def below_head() -> None:
        second_reading.show_second_reading(state, words)
        answer_actions.show_actions(state, diagnosis, words)
        answer_actions.show_outcome_form(state, diagnosis, words)
        if state.names:  # below: of a large job they fill a screen
            show(markup.faint(words.listing(list(state.names))))

    show_answer(
        ShownDiagnosis(
            diagnosis=printable(diagnosis),
            words=words,
            reading=state.reading,
            windows=state.windows,
        ),
        below_head,
    )
