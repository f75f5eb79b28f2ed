"""What Slack would make of the texts an app posts: who is called, what becomes a link."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_CONTROL = re.compile(r"<([^<>]*)>")
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_ADDRESS = re.compile(r"(?i)\b(?:https?://|mailto:|ftp://)[^\s<>|\"']+|\bwww\.[^\s<>|\"']+")
_MARKDOWN_LINK = re.compile(r"\]\(<?([^)>\s]+)")
_NAMES = re.compile(r"(?<!\w)@(?:channel|here|everyone)\b")
MENTIONING = frozenset({"user", "usergroup", "broadcast", "channel", "team"})
NOT_READ = frozenset({"value", "private_metadata", "block_id", "action_id", "callback_id", "type"})


def mentions(payload: Any) -> list[str]:
    """Everybody a posted message, view or answer would call."""
    return [what for kind, what in _effects(payload, top=True) if kind == "mention"]


def links(payload: Any) -> list[str]:
    """Every address that can be clicked, or is fetched by Slack."""
    return [what for kind, what in _effects(payload, top=True) if kind == "link"]


def _effects(value: Any, *, top: bool = False) -> Iterator[tuple[str, str]]:
    """Mentions and links in `value`; `top` is a message, whose text is always read as markup."""
    if isinstance(value, list):
        for item in value:
            yield from _effects(item)
    if not isinstance(value, dict):
        return
    yield from _own(value, top=top)
    for name, item in value.items():
        if name == "attachments" and isinstance(item, list):
            for attachment in item:
                yield from _effects(attachment, top=True)
        elif name not in NOT_READ:
            yield from _effects(item)


def _own(value: dict[str, Any], *, top: bool) -> Iterator[tuple[str, str]]:
    """Mentions and links of one object without those inside it."""
    kind = value.get("type", "")
    if kind in MENTIONING:
        yield "mention", str(value)
    if kind in ("mrkdwn", "markdown"):
        yield from _in_text(value.get("text", ""), bare=not value.get("verbatim"))
    if top:
        loud = bool(value.get("link_names")) or value.get("parse") == "full"
        yield from _in_text(value.get("text") or "", bare=True, names=loud)
    for name in ("url", "image_url", "title_link", "thumb_url"):
        if value.get(name):
            yield "link", str(value[name])


def _in_text(text: str, *, bare: bool, names: bool = False) -> Iterator[tuple[str, str]]:
    for match in _CONTROL.finditer(text):
        body = match[1]
        if body[:1] in ("@", "#", "!"):
            # A date is shown, nobody is called by it.
            if not body.startswith("!date"):
                yield "mention", match[0]
        else:
            yield "link", body.partition("|")[0]
    rest = _CODE.sub(" ", _CONTROL.sub(" ", text))
    if bare:
        for match in _ADDRESS.finditer(rest):
            yield "link", match[0]
        for match in _MARKDOWN_LINK.finditer(rest):
            yield "link", match[1]
    if names:
        for match in _NAMES.finditer(rest):
            yield "mention", match[0]


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
