"""What the person might say next, in their language; each is understood when said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kb.chat.talk import Talk
from kb.chat.types import Intent

SHOWN = 3
WHY_NOT = "chat.suggest_why_not"
_ABOUT_INCIDENT = (
    "chat.suggest_why",
    "chat.suggest_fix",
    "chat.suggest_next",
    WHY_NOT,
    "chat.suggest_similar",
    "chat.suggest_restart",
)
# What fits best after each intent; the rest follows.
_FIRST: Mapping[Intent, Sequence[str]] = {
    "log": ("chat.suggest_why", "chat.suggest_fix", "chat.suggest_happened"),
    "tell": ("chat.suggest_fix", "chat.suggest_next", "chat.suggest_sure"),
    "why": (WHY_NOT, "chat.suggest_next", "chat.suggest_fix"),
    "sure": (WHY_NOT, "chat.suggest_next", "chat.suggest_fix"),
    "fix": ("chat.suggest_restart", "chat.suggest_similar", "chat.suggest_solved"),
    "next": ("chat.suggest_unsure", "chat.suggest_fix", "chat.suggest_why"),
    "restart": ("chat.suggest_fix", "chat.suggest_why", "chat.suggest_next"),
    "case": ("chat.suggest_similar", "chat.suggest_fix", "chat.suggest_solved"),
    "similar": ("chat.suggest_case", "chat.suggest_fix", "chat.suggest_next"),
    "happened": ("chat.suggest_why", "chat.suggest_fix", "chat.suggest_next"),
    "outcome": ("chat.suggest_fix", "chat.suggest_similar", "chat.suggest_next"),
}
_START = ("chat.suggest_setting", "chat.suggest_search", "chat.suggest_cause")
_LISTED: tuple[Intent, ...] = ("search", "similar")


def suggest(talk: Talk, intent: Intent) -> tuple[str, ...]:
    """Two to four things worth saying after an answer of that intent."""
    if talk.diagnosis is None or talk.diagnosis.status == "no_timeout":
        first = ("chat.suggest_case",) if intent in _LISTED else ()
        return tuple(talk.words.say(label) for label in (*first, *_START))[:SHOWN]
    labels = dict.fromkeys((*_FIRST.get(intent, ()), *_ABOUT_INCIDENT))
    if talk.question is None:
        labels.pop("chat.suggest_unsure", None)
    if len(talk.ranked) < 2 or list(talk.ranked)[1] in talk.heard.causes:
        labels.pop(WHY_NOT, None)
    return tuple(_worded(talk, label) for label in list(labels)[:SHOWN])


def _worded(talk: Talk, label: str) -> str:
    if label != WHY_NOT:
        return talk.words.say(label)
    second = list(talk.ranked)[1]
    return talk.words.say(label, cause=second)
