"""The chat: one engine for page, API, Slack and command line. `Chat.say` answers a message."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kb.chat.chat import Chat

__all__ = ["Chat"]


def __getattr__(name: str) -> object:
    """Load `Chat` when it is asked for: its values are needed without it."""
    if name != "Chat":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kb.chat.chat import Chat

    return Chat
