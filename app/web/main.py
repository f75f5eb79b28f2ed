"""The script Streamlit runs for every session and every interaction."""

from __future__ import annotations

import streamlit as st
import structlog

from app.web.components import actions, markup, style
from app.web.context import interface_words, language, name_language, set_language, show_error
from app.web.navigation import PAGES, page
from app.web.recent_answers import BROWSER, TAB, browser, tab
from kb.errors import KBError
from kb.types.vocabulary import Language

LANGUAGES: dict[Language, str] = {"zh": "中文", "en": "English"}
SWITCH = "language_switch"


def main() -> None:
    """Lay out the frame and run the page that was asked for."""
    st.set_page_config(page_title="timeout-kb", page_icon=style.icon(), layout="wide")
    style.apply()
    try:
        words = interface_words()
        chosen = st.navigation([page(path, words) for path in PAGES], position="top")
        _top()
        names = style.settle_document(language(), tab(), browser())
        st.session_state[TAB], st.session_state[BROWSER] = names
        name_language()
        try:
            chosen.run()
        except KBError as error:
            show_error(error, words)
        actions.clear_notices()
    except KBError as error:
        show_error(error)  # not even the knowledge base opens
    except Exception as error:  # noqa: BLE001 - the outermost call of this face
        structlog.get_logger().exception("page failed", error=type(error).__name__)
        markup.show(
            markup.html(
                '<div class="tk-note tk-bad" role="alert">unexpected {kind}: the details stand in '
                "the output of <code>timeout-kb web</code>.<br>意外错误，详情见 "
                "<code>timeout-kb web</code> 的输出。</div>",
                kind=type(error).__name__,
            )
        )


def _top() -> None:
    """The name and the language switch."""
    with st.container(horizontal=True, horizontal_alignment="distribute", key="tk_top"):
        markup.show(
            markup.html(
                '<div class="tk-brand"><b>timeout-kb</b> <span>{line}</span></div>',
                line=interface_words()("page.tagline"),
            )
        )
        if SWITCH not in st.session_state:
            st.session_state[SWITCH] = language()
        st.segmented_control(
            interface_words()("page.language"),
            list(LANGUAGES),
            format_func=lambda code: LANGUAGES[code],
            key=SWITCH,
            on_change=_switched,
            label_visibility="collapsed",
        )


def _switched() -> None:
    """Take over the language chosen; pressing the chosen one again chooses nothing new."""
    picked = st.session_state.get(SWITCH)
    if picked is None:
        st.session_state[SWITCH] = language()
    else:
        set_language(picked)
        actions.repeat_notices()


main()
