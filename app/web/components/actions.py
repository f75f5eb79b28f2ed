"""Buttons whose work is done whatever the page is drawing when they are pressed.

Streamlit ends a run at the next event, and a press is forgotten with the run it began unless that
had come to its button. A button's callback is called before anything is drawn. Even then the
session's state is no place for a result: to touch it ends a run that is to be ended, so results
stand in a plain dictionary, or in a value the session holds anyway.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import RerunException

from app.web.components import markup
from app.web.context import show_error
from kb.errors import KBError
from kb.knowledge.labels import Words

# The dictionaries, in the session: notices to be shown, those of the last run, work to be done.
NOTICES, LAST_NOTICES, PENDING = "notices", "last_notices", "pending_work"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A sentence beside a button: its tone (see `markup.badge`) and its label."""

    tone: str
    label: str


@dataclass(slots=True, kw_only=True)
class PendingWork:
    """What is to be done, None where nothing is; set to None once it must not be done again."""

    value: Any


Action = Callable[[], Notice | None]


def button(
    label: str,
    action: Action,
    *,
    key: str,
    words: Words,
    make: Callable[..., object] = st.button,
    **options: Any,  # noqa: ANN401 - those of `make`
) -> None:
    """A button, or a form's, that calls `action`; its notice or failure stands beside it."""
    make(label, key=key, on_click=_call, args=(_session(NOTICES), key, action), **options)
    show_notice(key, words)


def _call(notices: dict[str, Any], key: str, action: Action) -> None:
    notices.pop(key, None)
    try:
        notice = action()
    except KBError as error:
        notices[key] = error
    else:
        if notice is not None:
            notices[key] = notice


def post(key: str, notice: Notice | KBError) -> None:
    """Have `show_notice` of this key show it, in this run or the next one that gets so far."""
    _session(NOTICES)[key] = notice


def show_notice(key: str, words: Words) -> None:
    """Show the notice of the last press of that button; nothing where there is none."""
    notice = _session(NOTICES).get(key)
    if isinstance(notice, KBError):
        show_error(notice, words)
    elif notice is not None:
        markup.show(markup.note(words(notice.label), notice.tone))


def has_notice(key: str) -> bool:
    """Whether `show_notice` of this key has one to show."""
    return key in _session(NOTICES)


def clear_notices() -> None:
    """At the end of a run all notices have been seen; a run cut short does not come here."""
    notices, last = _session(NOTICES), _session(LAST_NOTICES)
    last.clear()
    last.update(notices)
    notices.clear()


def repeat_notices() -> None:
    """Have the run about to begin show the notices of the last one, in another language perhaps."""
    notices = _session(NOTICES)
    notices.update({**_session(LAST_NOTICES), **notices})


def request(name: str, value: object) -> None:
    """Have `pending` of this name give this alone in this run, or the next that gets so far."""
    _session(PENDING)[name] = [value]


def queue(name: str, value: object) -> None:
    """Have it done after what is still to be done, a run for each."""
    _session(PENDING).setdefault(name, []).append(value)


def is_pending(name: str) -> bool:
    """Whether something is still to be done."""
    return bool(_session(PENDING).get(name))


def cancel(name: str) -> None:
    """Have nothing done that is still to be done."""
    _session(PENDING).pop(name, None)


@contextlib.contextmanager
def pending(name: str) -> Iterator[PendingWork]:
    """Take what is to be done first; where the next event ends the run, that run finds it again."""
    waiting: list[Any] = _session(PENDING).get(name, [])
    work = PendingWork(value=waiting.pop(0) if waiting else None)
    try:
        yield work
    except RerunException:
        if work.value is not None:
            waiting.insert(0, work.value)
        raise


def _session(name: str) -> dict[str, Any]:
    values: dict[str, Any] = st.session_state.setdefault(name, {})
    return values
