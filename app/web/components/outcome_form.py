"""The form of an incident's outcome: what it was, what fixed it, and where that is written up."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import streamlit as st

from app.web.components import actions
from app.web.components.actions import Action, Notice
from app.web.context import service, signed_in
from kb.knowledge.labels import Words

if TYPE_CHECKING:
    from app.inputs.contributions import Resolution

CAUSE, OWN_CAUSE, FIX, COMMANDS, SOURCE = (  # keys of the fields
    "resolve_cause",
    "resolve_own_cause",
    "resolve_fix",
    "resolve_commands",
    "resolve_url",
)
SOMETHING_ELSE = "something_else"  # in place of a cause's id
MAX_FIX = 2000  # characters
MAX_OWN_CAUSE = 300


def show_form(
    words: Words,
    label: str,
    action: Action,
    *,
    key: str,
    suffix: str = "",
    first: Sequence[str] = (),
) -> None:
    """The fields as `fill` left them, and the button that calls `action`.

    `suffix` tells the fields' keys from others'; the causes in `first` are offered first.
    """
    cause_choice(words, "row.cause", key=CAUSE + suffix, first=first, something_else=True)
    with st.form(f"{key}_form", border=False):
        with st.container():  # so that the fields below keep their place and what is typed
            if field(CAUSE + suffix) == SOMETHING_ELSE:
                label_of_own = words("page.own_cause")
                st.text_input(label_of_own, key=OWN_CAUSE + suffix, max_chars=MAX_OWN_CAUSE)
        for name, text, make in (
            (FIX, "page.fix", st.text_area),
            (COMMANDS, "page.commands", st.text_area),
            (SOURCE, "page.source_url", st.text_input),
        ):
            make(words(text), key=name + suffix, max_chars=MAX_FIX)
        actions.button(label, action, key=key, words=words, make=st.form_submit_button)


def cause_choice(
    words: Words,
    label: str,
    *,
    key: str,
    first: Sequence[str] = (),
    something_else: bool = False,
) -> None:
    """A cause out of all there are: those in `first`, all others by name, and none of them.

    The id stands in the session under `key`. A browser names what is chosen by its label, so each
    language has a widget of its own: the labels of another would choose nothing.
    """
    causes = service().knowledge.cause_by_id
    titles = {cause: causes[cause].title.get(words.language) for cause in causes}
    others = sorted(titles.keys() - set(first), key=lambda cause: (titles[cause], cause))
    names = {cause: f"{titles[cause]} · {cause}" for cause in (*first, *others) if cause in causes}
    if something_else:
        names[SOMETHING_ELSE] = words("page.something_else")
    widget = f"{key}_{words.language}"
    chosen = st.session_state.get(key)
    st.session_state[widget] = chosen if chosen in names else None
    st.selectbox(
        words(label),
        list(names),
        format_func=lambda cause: names[cause],
        placeholder=words("page.choose"),
        key=widget,
        on_change=_choose,
        args=(key, widget),
    )


def _choose(key: str, widget: str) -> None:
    st.session_state[key] = st.session_state[widget]


def field(key: str) -> str:
    """What stands in a field of a form, without the space around it."""
    return str(st.session_state.get(key) or "").strip()


def fill(outcome: Resolution | None, suffix: str = "") -> None:
    """Put an outcome into the fields, or empty them."""
    cause = own_cause = fix = commands = url = ""
    if outcome is not None:
        cause, own_cause, fix, url = outcome.cause, outcome.own_cause, outcome.fix, outcome.url
        commands = "\n\n".join(outcome.commands)
    st.session_state[CAUSE + suffix] = (SOMETHING_ELSE if own_cause else cause) or None
    for name, text in ((OWN_CAUSE, own_cause), (FIX, fix), (COMMANDS, commands), (SOURCE, url)):
        st.session_state[name + suffix] = text


def outcome(suffix: str = "") -> Resolution:
    """What stands in the fields."""
    from app.inputs.contributions import Resolution

    cause = field(CAUSE + suffix)
    is_own = cause == SOMETHING_ELSE
    return Resolution(
        cause="" if is_own else cause,
        own_cause=field(OWN_CAUSE + suffix) if is_own else "",
        fix=field(FIX + suffix),
        commands=_commands(field(COMMANDS + suffix)),
        url=field(SOURCE + suffix),
    )


def save(entry_id: str, ended: Resolution) -> Notice:
    """Write down how an incident ended."""
    from app.inputs.contributions import resolve

    if not ended.cause and not ended.own_cause:
        return Notice(tone="possible", label="page.say_cause")
    entry = resolve(service(), entry_id, ended, by=signed_in())
    if not entry.resolved:
        return Notice(tone="info", label="page.fix_open")
    return Notice(tone="good", label="page.own_cause_kept" if entry.own_cause else "page.resolved")


def _commands(text: str) -> tuple[str, ...]:
    """The commands of a field, which blank lines part."""
    runs = groupby(text.splitlines(), key=lambda line: bool(line.strip()))
    return tuple("\n".join(lines) for is_command, lines in runs if is_command)
