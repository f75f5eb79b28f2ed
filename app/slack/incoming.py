"""What Slack sends → what was written: escapes undone, links as text, files, who and where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from app.slack.types import Ask, SlackFile

# Slack escapes what people write, so a bare <...> of these forms is its own markup. Other angle
# brackets come from bots that do not escape (std::vector<int>) and stay.
_MARKUP = re.compile(
    r"<(?P<mark>[@#!]|(?:https?|ftp|mailto|tel|slack):)(?P<body>[^<>|\n]*)(?:\|(?P<label>[^<>\n]*))?>"
)
_FENCE = re.compile(r"^[ \t]*```[a-z]*[ \t]*$|```", re.MULTILINE)
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&amp;": "&"}
_ENTITY = re.compile("|".join(_ENTITIES))
MAX_PARTS = 200  # blocks and attachments of a message that are read


def unescape(text: str) -> str:
    """`text` of a Slack message as its author wrote it: one level of escapes undone, no more."""
    # Markup first: what was escaped must not turn into markup.
    return _ENTITY.sub(lambda match: _ENTITIES[match[0]], _MARKUP.sub(_written, text))


def _written(match: re.Match[str]) -> str:
    mark, body, label = match["mark"], match["body"], match["label"]
    if mark == "@":
        return f"@{label or body}"
    if mark == "#":
        return f"#{label or body}"
    if mark == "!":
        return label or f"@{body.partition('^')[0]}"
    address = mark + body
    if label is None:
        return address.removeprefix("mailto:").removeprefix("tel:")
    # "train.py" and "10.0.0.1:80" become links whose label is what was written.
    return label if label in address else f"{label} ({address})"


def without_fences(text: str) -> str:
    """`text` without the marks of code blocks: the lines between them are the log."""
    return _FENCE.sub("", text).strip("\n")


def message_text(message: Mapping[str, Any]) -> str:
    """All text of a message as written; bots put theirs into blocks and attachments."""
    own = unescape(str(message.get("text") or ""))
    parts = [own] if own.strip() else list(_texts(message.get("blocks")))
    for attachment in _dicts(message.get("attachments")):
        told = [str(attachment.get(name) or "") for name in ("pretext", "title", "text")]
        told += [str(field.get("value") or "") for field in _dicts(attachment.get("fields"))]
        shown = [unescape(part) for part in told if part]
        shown += _texts(attachment.get("blocks"))
        parts += shown or [unescape(str(attachment.get("fallback") or ""))]
    return without_fences("\n".join(part for part in parts if part))


def _dicts(value: object) -> list[dict[str, Any]]:
    items = value if isinstance(value, list) else []
    return [item for item in items[:MAX_PARTS] if isinstance(item, dict)]


def _texts(blocks: object) -> Iterable[str]:
    """Texts in blocks, in reading order."""
    for block in _dicts(blocks):
        if block.get("type") == "rich_text":
            yield "".join(_rich(block.get("elements")))
        text = block.get("text")
        for holder in (text, *_dicts(block.get("fields")), *_dicts(block.get("elements"))):
            if isinstance(holder, dict) and holder.get("type") in ("mrkdwn", "plain_text"):
                yield unescape(str(holder.get("text") or ""))


def _rich(elements: object) -> Iterable[str]:
    for element in _dicts(elements):
        kind = element.get("type")
        if kind == "text":
            yield unescape(str(element.get("text") or ""))
        elif kind == "link":
            yield str(element.get("text") or element.get("url") or "")
        elif kind == "user":
            yield f"@{element.get('user_id') or ''}"
        else:
            yield from _rich(element.get("elements"))
            yield "\n"


def message_files(message: Mapping[str, Any]) -> tuple[SlackFile, ...]:
    """The files of a message; those that were deleted or hidden are left out."""
    return tuple(
        slack_file(item)
        for item in _dicts(message.get("files"))
        if item.get("mode") not in ("tombstone", "hidden_by_limit")
    )


def slack_file(item: Mapping[str, Any]) -> SlackFile:
    """A file object of Slack's."""
    size = item.get("size")
    return SlackFile(
        id=str(item.get("id") or ""),
        name=str(item.get("name") or item.get("title") or "file.txt"),
        size=size if isinstance(size, int) else 0,
        kind=str(item.get("mimetype") or ""),
        url=str(item.get("url_private_download") or item.get("url_private") or ""),
    )


def from_bot(message: Mapping[str, Any]) -> bool:
    """Whether a program wrote the message; answering those makes loops."""
    return bool(
        message.get("bot_id")
        or message.get("bot_profile")
        or message.get("subtype") == "bot_message"
        or message.get("user") in (None, "", "USLACKBOT")
    )


def mentions(message: Mapping[str, Any], bot_user: str) -> bool:
    """Whether the message names the bot, so that Slack sends it as a mention too."""
    return bool(bot_user) and f"<@{bot_user}" in str(message.get("text") or "")


def mentions_anybody(message: Mapping[str, Any]) -> bool:
    """Whether the message is addressed to people by name."""
    return re.search(r"<@[UW]", str(message.get("text") or "")) is not None


def ask_of_message(
    message: Mapping[str, Any], *, team: str, channel: str, bot_user: str, origin: str
) -> Ask:
    """What a message asks, the bot's own name left out."""
    text = message_text(message)
    if bot_user:
        text = re.sub(rf"@{re.escape(bot_user)}\b[:,]?[ \t]*", "", text)
    return Ask(
        team=team,
        channel=channel,
        user=str(message.get("user") or ""),
        origin=origin,  # type: ignore[arg-type]
        text=text.strip("\n") if text.strip() else "",
        files=message_files(message),
        ts=str(message.get("ts") or ""),
        thread=str(message.get("thread_ts") or ""),
    )
