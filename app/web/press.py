"""What a press of a button sets off, done whatever the page is drawing at that moment.

Streamlit ends a run at the next event, and a press is forgotten with the run it began unless that
had come to its button. What a button calls back is called before anything is drawn. Even then the
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

from app.labels import Words
from app.web.markup import html, show
from app.web.parts import tell
from kb.errors import KBError

# The dictionaries, in the session: what is to be said, what the last run said, what is wished for.
SAID, SEEN, WISHES = "press_said", "press_seen", "press_wishes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A sentence said beside the button: its tone (see `markup.badge`) and its label."""

    tone: str
    label: str


@dataclass(slots=True, kw_only=True)
class Wish:
    """What was asked for, None where nothing was; set to None once it must not be done again."""

    value: Any


Act = Callable[[], Notice | None]


def button(
    label: str,
    act: Act,
    *,
    key: str,
    words: Words,
    make: Callable[..., object] = st.button,
    **options: Any,  # noqa: ANN401 - those of `make`
) -> None:
    """A button, or a form's, that calls `act`; what that says or fails with stands beside it."""
    make(label, key=key, on_click=_do, args=(_held(SAID), key, act), **options)
    told(key, words)


def _do(said: dict[str, Any], key: str, act: Act) -> None:
    said.pop(key, None)
    try:
        notice = act()
    except KBError as error:
        said[key] = error
    else:
        if notice is not None:
            said[key] = notice


def say(key: str, saying: Notice | KBError) -> None:
    """Have `told` of this key say something, in this run or the next one that gets so far."""
    _held(SAID)[key] = saying


def told(key: str, words: Words) -> None:
    """Show what the last press of that button said; nothing where there is nothing to say."""
    said = _held(SAID).get(key)
    if isinstance(said, KBError):
        tell(said, words)
    elif said is not None:
        text = words(said.label)
        show(html('<p class="tk-note tk-{tone}">{text}</p>', tone=said.tone, text=text))


def forget_told() -> None:
    """At the end of a run everything said has been seen; a run cut short does not come here."""
    said, seen = _held(SAID), _held(SEEN)
    seen.clear()
    seen.update(said)
    said.clear()


def say_again() -> None:
    """Have the run about to begin say what the last one said, in other words perhaps."""
    said = _held(SAID)
    said.update({**_held(SEEN), **said})


def wish(name: str, value: object) -> None:
    """Have `fulfil` of this name do this alone in this run, or the next one that gets so far."""
    _held(WISHES)[name] = [value]


def wish_too(name: str, value: object) -> None:
    """Have it done after what is still wished for, a run for each."""
    _held(WISHES).setdefault(name, []).append(value)


def wished(name: str) -> bool:
    """Whether something is still to be done."""
    return bool(_held(WISHES).get(name))


def unwish(name: str) -> None:
    """Have nothing done that is still wished for."""
    _held(WISHES).pop(name, None)


@contextlib.contextmanager
def fulfil(name: str) -> Iterator[Wish]:
    """Take the first wish; where the next event ends the run first, that run finds it again."""
    waiting: list[Any] = _held(WISHES).get(name, [])
    taken = Wish(value=waiting.pop(0) if waiting else None)
    try:
        yield taken
    except RerunException:
        if taken.value is not None:
            waiting.insert(0, taken.value)
        raise


def _held(name: str) -> dict[str, Any]:
    held: dict[str, Any] = st.session_state.setdefault(name, {})
    return held
