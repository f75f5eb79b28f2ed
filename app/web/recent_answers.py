"""The last answer of each browser tab: a reload shows it again. In memory only, and not for long.

A tab is known by a random name that its own `sessionStorage` keeps; no address holds it, so nobody
comes to another's answer by a link.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

import streamlit as st

from app.web.components.answer_state import AnswerState
from app.web.context import signed_in

TAB = "tab"  # in the session: the name of the tab it is shown in
BROWSER = "browser"  # likewise, of the browser, which its `localStorage` keeps
NAME_BYTES = 16
MOST_CHARS = 64 * 1024 * 1024  # of all pasted texts together; the oldest answer goes first
MOST_ANSWERS = 500
KEPT_S = 12 * 3600.0  # a working day


class RecentAnswers:
    """Answers by the name of their tab; several threads use it."""

    def __init__(
        self, *, most_chars: int = MOST_CHARS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`most_chars` bounds the pasted texts together; `clock` tells seconds."""
        self._most_chars, self._clock = most_chars, clock
        self._answers: OrderedDict[str, tuple[float, AnswerState]] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, tab: str, state: AnswerState) -> None:
        """Have `get` give this answer; what is too old or too much goes."""
        with self._lock:
            self._answers.pop(tab, None)
            self._answers[tab] = (self._clock(), state)
            while self._answers and self._is_too_much():
                self._answers.popitem(last=False)

    def get(self, tab: str) -> AnswerState | None:
        """The last answer of a tab, or None."""
        with self._lock:
            since, state = self._answers.get(tab, (0.0, None))
            return state if state is not None and self._clock() - since <= KEPT_S else None

    def _is_too_much(self) -> bool:
        oldest, _ = next(iter(self._answers.values()))
        chars = sum(len(state.pasted) for _, state in self._answers.values())
        return (
            self._clock() - oldest > KEPT_S
            or chars > self._most_chars
            or len(self._answers) > MOST_ANSWERS
        )


_recent: Callable[[], RecentAnswers] = st.cache_resource(show_spinner=False)(RecentAnswers)


def tab() -> str:
    """The name of the tab this session is shown in."""
    name: str = st.session_state.setdefault(TAB, secrets.token_urlsafe(NAME_BYTES))
    return name


def browser() -> str:
    """The name of the browser this session is shown in."""
    name: str = st.session_state.setdefault(BROWSER, secrets.token_urlsafe(NAME_BYTES))
    return name


def person() -> str:
    """Who sits there: the name they are signed in with, else that of their browser."""
    return signed_in() or browser()


def remember(state: AnswerState) -> None:
    """Have a reload of this tab show this answer."""
    _recent().put(tab(), state)


def recall() -> AnswerState | None:
    """The last answer this tab showed, or None."""
    return _recent().get(tab())
