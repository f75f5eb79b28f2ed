"""What buttons and forms carry through Slack and back: small, checked on the way in."""

from __future__ import annotations

import msgspec

from app.slack.types import Handle
from kb.errors import InputError

MAX_VALUE = 2000  # characters of a button's value


def pack(handle: Handle) -> str:
    """A handle as a button's value."""
    return msgspec.json.encode(handle).decode()


def unpack(value: str) -> Handle:
    """The handle of a button.

    Raises:
        InputError: the value is none of ours.
    """
    try:
        return msgspec.json.decode(value[:MAX_VALUE].encode(), type=Handle)
    except msgspec.DecodeError as error:
        raise InputError(
            "this button belongs to an older message",
            todo="diagnose the log again",
            reason="slack_button",
        ) from error
