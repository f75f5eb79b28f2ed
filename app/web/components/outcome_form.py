"""The fields of an incident's outcome: its cause, what fixed it, and where that is written up."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import streamlit as st

from app.web.components.actions import Notice
from app.web.context import service, signed_in
from kb.knowledge.labels import Words

if TYPE_CHECKING:
    from app.inputs.contributions import Resolution

CAUSE, FIX, COMMANDS, SOURCE = (  # keys of the fields
    "resolve_cause",
    "resolve_fix",
    "resolve_commands",
    "resolve_url",
)
MAX_FIX = 2000  # characters


def show_fields(words: Words, suffix: str = "", outcome: Resolution | None = None) -> None:
    """The fields, filled with the outcome there is; `suffix` tells their keys from others'."""
    cause_choice(words, "row.cause", key=CAUSE + suffix, chosen=outcome.cause if outcome else "")
    for name, label, make, value in (
        (FIX, "page.fix", st.text_area, outcome.fix if outcome else ""),
        (COMMANDS, "page.commands", st.text_area, "\n\n".join(outcome.commands) if outcome else ""),
        (SOURCE, "page.source_url", st.text_input, outcome.url if outcome else ""),
    ):
        make(words(label), value, key=name + suffix, max_chars=MAX_FIX)


def cause_choice(words: Words, label: str, *, key: str, chosen: str = "") -> None:
    """A cause out of all there are."""
    causes = service().knowledge.cause_by_id
    st.selectbox(
        words(label),
        list(causes),
        index=list(causes).index(chosen) if chosen in causes else None,
        format_func=lambda cause: f"{causes[cause].title.get(words.language)} · {cause}",
        placeholder=words("page.choose"),
        key=key,
    )


def field(key: str) -> str:
    """What stands in a field of a form, without the space around it."""
    return str(st.session_state.get(key) or "").strip()


def fill(cause: str, fix: str) -> None:
    """Put a cause, or none, and what fixed it where that is said, into the fields."""
    st.session_state[CAUSE] = cause or None
    if fix:
        st.session_state[FIX] = fix


def clear() -> None:
    """Empty the fields: what was written of one incident is not true of the next."""
    st.session_state[CAUSE] = None
    for key in (FIX, COMMANDS, SOURCE):
        st.session_state[key] = ""


def is_empty() -> bool:
    """Whether neither a cause nor a fix is given."""
    return not field(CAUSE) and not field(FIX)


def save(entry_id: str, suffix: str = "") -> Notice:
    """Write down cause and fix of an incident as the fields have them."""
    from app.inputs.contributions import Resolution, resolve

    cause, fix = field(CAUSE + suffix), field(FIX + suffix)
    if not cause or not fix:
        return Notice(tone="possible", label="page.say_both")
    outcome = Resolution(
        cause=cause,
        fix=fix,
        commands=_commands(field(COMMANDS + suffix)),
        url=field(SOURCE + suffix),
    )
    resolve(service(), entry_id, outcome, by=signed_in())
    return Notice(tone="good", label="page.resolved")


def _commands(text: str) -> tuple[str, ...]:
    """The commands of a field, which blank lines part."""
    runs = groupby(text.splitlines(), key=lambda line: bool(line.strip()))
    return tuple("\n".join(lines) for is_command, lines in runs if is_command)
