"""The diagnose page: paste or upload a log, read the answer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app.labels import Words
from app.present import present
from app.web import markup, press, share, style
from app.web.answer import Shown, show_answer
from app.web.markup import html, show
from app.web.outcome import MIB, Outcome, curl, from_kept, read
from app.web.parts import language, parameter, service, tell, words
from app.web.press import Notice
from kb.errors import KBError

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

PASTE, TORCH, FILES, OUTCOME = "paste", "torch", "files", "outcome"
RUN = "diagnose"  # wished for: what is to be diagnosed
EXAMPLES = {  # files of data/examples with their labels
    "rank-out-of-memory.log": "page.example_memory",
    "rank-behind.log": "page.example_behind",
    "save-on-rank0.log": "page.example_save",
    "ascend-link-setup.log": "page.example_ascend",
    "words-only.txt": "page.example_words",
}


def page() -> None:
    """Show the page."""
    spoken = words()
    with press.fulfil(RUN) as asked:
        if asked.value is not None:
            _run(*asked.value, words=spoken)
    press.told(RUN, spoken)
    outcome = _current(spoken)
    _input(spoken, folded=outcome is not None)
    if outcome is not None:
        _answer(outcome, spoken)


def _current(words: Words) -> Outcome | None:
    """What this session found out, or what the link in the address leads to."""
    outcome: Outcome | None = st.session_state.get(OUTCOME)
    asked = parameter("d")
    known = outcome.kept.id if outcome is not None and outcome.kept is not None else ""
    if not asked or asked == known:
        return outcome
    from kb.kept import kept

    try:
        outcome = from_kept(kept(service(), asked))
    except KBError as error:
        tell(error, words)
        return None
    st.session_state[OUTCOME] = outcome
    return outcome


# --- input -------------------------------------------------------------------------------------


def _input(words: Words, *, folded: bool) -> None:
    """The form; once there is an answer it is folded away above it."""
    if folded:
        with st.expander(words("page.another")):
            _form(words)
        return
    show(markup.heading(words("page.lead"), level=1))
    _form(words)


def _form(words: Words) -> None:
    limit = service().settings.max_body // MIB
    style.say(upload=words("page.upload"), limit=words("page.upload_limit", size=limit))
    with st.form("diagnose", border=False):
        st.text_area(
            words("page.paste"), key=PASTE, height=240, placeholder=words("page.paste_hint")
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            st.form_submit_button(words("page.run"), type="primary", key="run", on_click=_ask)
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
        show(html("<p>{text}</p>", text=words("page.large_help")))
        st.code(curl(service().settings), language=None, wrap_lines=True)


def _ask() -> None:
    """Have what stands in the form diagnosed before the page is laid out."""
    given = st.session_state
    text, torch = str(given.get(PASTE) or ""), str(given.get(TORCH) or "").strip()
    press.wish(RUN, (text, given.get(FILES) or [], torch))


def _use_example(name: str) -> None:
    """Put an example into the box and have it diagnosed."""
    path = service().settings.data / "examples" / name
    st.session_state[PASTE] = path.read_text(encoding="utf-8")
    _ask()


def _run(text: str, files: Sequence[UploadedFile], torch: str, *, words: Words) -> None:
    """Diagnose what was given, or have said what is wrong with it."""
    if not text.strip() and not files:
        press.say(RUN, Notice(tone="possible", label="page.nothing"))
        return
    try:
        with st.spinner(words("page.reading_log")):
            outcome = read(
                service(),
                text=text,
                uploads=[(file.name, file) for file in files],
                torch=torch,
                language=language(),
            )
    except KBError as error:
        press.say(RUN, error)
        return
    st.session_state[OUTCOME] = outcome
    if "d" in st.query_params:
        del st.query_params["d"]


# --- answer ------------------------------------------------------------------------------------


def _answer(outcome: Outcome, words: Words) -> None:
    diagnosis = outcome.answer(service(), words.language)
    view = present(diagnosis, service().knowledge.labels, language=words.language)
    if outcome.kept is not None and not outcome.has_log:
        since = share.kept_since(outcome.kept.created_s)
        show(html('<p class="tk-faint">{text}</p>', text=words("page.kept_since", time=since)))
    if outcome.names:
        show(html('<p class="tk-faint">{names}</p>', names=words.listing(list(outcome.names))))
    show_answer(
        Shown(
            diagnosis=diagnosis,
            view=view,
            words=words,
            reading=outcome.reading,
            windows=outcome.windows,
        ),
        actions=lambda: share.actions(outcome, diagnosis, view, words),
    )
    share.feedback(outcome, diagnosis, words)
    share.record(outcome, words)
