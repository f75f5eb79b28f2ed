"""What the person might write next, in their language; each is a message that gets an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kb.chat.answers.answer import IntentAnswer
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


def suggest(answer: IntentAnswer, intent: Intent) -> tuple[str, ...]:
    """Two or three things worth writing after an answer to `intent`."""
    if answer.diagnosis is None or answer.diagnosis.status == "no_timeout":
        first = ("chat.suggest_case",) if intent in _LISTED else ()
        return tuple(answer.words(label) for label in (*first, *_START))[:SHOWN]
    labels = dict.fromkeys((*_FIRST.get(intent, ()), *_ABOUT_INCIDENT))
    if answer.question is None:
        labels.pop("chat.suggest_unsure", None)
    second = next(iter(list(answer.ranked)[1:2]), "")
    if not second or second in answer.request.causes:
        labels.pop(WHY_NOT, None)
    return tuple(answer.words(label, cause=second) for label in list(labels)[:SHOWN])
