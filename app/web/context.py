"""What every page of the face works with: the service, the language, the words, links."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import streamlit as st

from app.render.errors import error_text
from app.render.escape import plain
from app.web.components import markup
from kb.errors import InputError, KBError, NotFoundError
from kb.knowledge.labels import Words
from kb.settings import load_settings
from kb.text.language import answer_language
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    from kb.chat.chat import Chat
    from kb.service import Service

LANGUAGE = "language"  # of the interface, in the session
LANG = "lang"  # the same in the address
MAX_NAME = 200  # characters of a person's name


def _open_service() -> Service:
    from kb.bootstrap import open_service

    return open_service(load_settings())


def _open_chat() -> Chat:
    from kb.chat.chat import Chat

    return Chat(service())


# One of each a process: sessions are threads of it, and both are safe for several threads.
_service: Callable[[], Service] = st.cache_resource(show_spinner=False)(_open_service)
_chat: Callable[[], Chat] = st.cache_resource(show_spinner=False)(_open_chat)


def service() -> Service:
    """The knowledge base, opened once a process."""
    return _service()


def warm() -> None:
    """Open the knowledge base and let it answer once, so that the first visitor need not wait."""
    service().diagnose_text("Watchdog caught collective operation timeout")


def chat() -> Chat:
    """The chat over the knowledge base, opened once a process."""
    return _chat()


def interface_words() -> Words:
    """The labels in the language of the interface."""
    return Words(service().knowledge.labels, language())


def language() -> Language:
    """The language of the interface: chosen, in the address, set for the program, the browser's."""
    if LANGUAGE not in st.session_state and LANG in st.query_params:
        # The menu's links drop the address's parameters: what it said first is remembered.
        st.session_state[LANGUAGE] = st.query_params[LANG]
    chosen = st.session_state.get(LANGUAGE)
    return answer_language(chosen, service().settings.lang, fallback=st.context.locale)


def set_language(chosen: Language) -> None:
    """Choose the language of the interface for this session, and name it in the address."""
    st.session_state[LANGUAGE] = chosen
    st.query_params[LANG] = chosen


def name_language() -> None:
    """Name the language chosen in the address again: the menu's links have dropped it."""
    if LANGUAGE in st.session_state and LANG not in st.query_params:
        st.query_params[LANG] = language()


def href(page: str = "", **params: str | Sequence[str]) -> str:
    """The address of a page of ours relative to any other: ``./cases?lang=en&id=...``.

    Pages are one level deep, so the same address is right on each of them.
    """
    return f"./{page}?{urlencode({LANG: language(), **params}, doseq=True)}"


def parameter(name: str) -> str:
    """A parameter of the address, or an empty string."""
    return str(st.query_params.get(name, ""))


def signed_in() -> str:
    """Who is signed in, as the proxy in front of the page says; empty where none is set."""
    header = service().settings.login_header
    return plain(str(st.context.headers.get(header) or ""))[:MAX_NAME] if header else ""


ERRORS = {InputError: "page.error_input", NotFoundError: "page.error_missing"}


def show_error(error: KBError, words: Words | None = None) -> None:
    """Show an expected failure: what was wrong and what to do.

    Without `words` (the knowledge base that has them does not open) it has no heading.
    """
    title = ERRORS.get(type(error), "page.error_other")
    text = error_text(error, words) if words else error
    markup.show(
        markup.html(
            '<div class="tk-note tk-bad" role="alert">{title}{what}<br>{todo}</div>',
            title=markup.html("<b>{t}</b><br>", t=words(title)) if words else "",
            what=text.what,
            todo=text.todo,
        )
    )
