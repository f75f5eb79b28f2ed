"""Calls of the Web API, what they say to people, and Slack's way to refuse them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

SPOKEN = ("text", "blocks", "attachments", "view", "title", "initial_comment", "content")


class SlackError(Exception):
    """A refusal: ``{"ok": false, "error": code}``."""

    def __init__(self, code: str, **more: Any) -> None:
        super().__init__(code)
        self.code = code
        self.more = more


@dataclass(kw_only=True)
class Call:
    """One call the app made; `team` is that of its token."""

    method: str
    token: str
    arguments: dict[str, Any]
    at_s: float
    team: str = ""
    response: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether Slack accepted it."""
        return bool(self.response.get("ok"))

    def spoken(self) -> dict[str, Any]:
        """The arguments that people get to see."""
        return {name: self.arguments[name] for name in SPOKEN if name in self.arguments}


def strings(value: Any) -> Iterator[str]:
    """Every string inside a JSON value, keys left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings(item)
