"""What a language model adds to the chat's last reply: asked beside the page, and its place."""

from __future__ import annotations

from functools import partial

import streamlit as st

from app.web.background import begin
from app.web.components import markup
from app.web.context import chat, service
from kb.chat.follow_up import is_due
from kb.chat.types import Conversation
from kb.knowledge.labels import Words

MODEL = "chat_model"  # id of the conversation it reads, and what it will add
POLL_S = 1.0  # between two looks whether it has


def ask_model(conversation: Conversation) -> None:
    """Have the language model read, where one is set and there is something to read."""
    st.session_state.pop(MODEL, None)
    if service().second_reader is None or not is_due(conversation):
        return
    added = begin(partial(chat().follow_up, conversation.id), otherwise=None)
    st.session_state[MODEL] = (conversation.id, added)


def forget_model(current: str) -> None:
    """What it added stands in the conversation now; only the `current` one's is waited for."""
    conversation, added = st.session_state.get(MODEL, ("", None))
    if added is not None and (added.done() or conversation != current):
        del st.session_state[MODEL]


def show_place(words: Words) -> None:
    """Its place in the last reply, while it reads."""
    if MODEL in st.session_state:
        with st.container(key="tk_chat_model"):
            st.fragment(_wait, run_every=POLL_S)(words)


def _wait(words: Words) -> None:
    """Say who reads; when it has, draw the page again: the reply holds what it says."""
    _, added = st.session_state.get(MODEL, ("", None))
    reader = service().second_reader
    if added is None or reader is None or added.done():
        st.rerun()
        return
    markup.show(markup.faint(words("page.model", model=reader.model, address=reader.address)))
