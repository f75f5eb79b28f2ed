"""A fake workspace as text: who wrote what, what came of it, what can be pressed."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

from tests.slack.workspace import Channel, Message, Workspace

PERSON_LINES = 6  # of a person's message; logs are long
INDENT = "    "


def workspace_text(workspace: Workspace) -> str:
    """All channels of a workspace, thread by thread."""
    lines: list[str] = []
    for channel in workspace.channels.values():
        sign = "@" if channel.kind == "im" else "#"
        lines.append(f"=== {sign}{channel.name} ({workspace.domain}) ===")
        roots = [message for message in channel.messages if not message.thread_ts]
        for root in roots:
            lines += _message(workspace, root, "")
            for reply in _replies(channel, root):
                lines += _message(workspace, reply, INDENT)
        lines.append("")
    return "\n".join(lines)


def _replies(channel: Channel, root: Message) -> list[Message]:
    return [message for message in channel.messages if message.thread_ts == root.ts]


def _message(workspace: Workspace, message: Message, indent: str) -> Iterator[str]:
    if message.deleted:
        return
    author = workspace.users.get(message.user)
    notes = [f"edited {len(message.versions)}×"] if message.versions else []
    if message.ephemeral_for:
        notes.append(f"only {workspace.users[message.ephemeral_for].name} sees it")
    about = f" ({', '.join(notes)})" if notes else ""
    yield f"{indent}{author.name if author else message.user}{about}:"
    body = _body(workspace, message)
    if not message.bot_id and len(body) > PERSON_LINES:
        body = [*body[:PERSON_LINES], f"… {len(body) - PERSON_LINES} more lines"]
    yield from (f"{indent}  {line}" for line in body)
    yield from (f"{indent}  📎 {file.name} ({len(file.body)} bytes)" for file in message.files)
    if message.reacted:
        yield f"{indent}  reactions over time: {' → '.join(message.reacted)}"


def _body(workspace: Workspace, message: Message) -> list[str]:
    if not message.blocks:
        text = message.text.replace(f"<@{workspace.bot_user}>", "@timeout-kb")
        return html.unescape(text).splitlines()
    return [line for block in message.blocks for line in block_lines(block)]


def block_lines(block: dict[str, Any]) -> Iterator[str]:
    """The lines of a block."""
    kind = block["type"]
    if kind == "divider":
        yield "─" * 40
    elif kind == "header":
        yield f"# {block['text']['text']}"
    elif kind == "section":
        if "text" in block:
            yield from block["text"]["text"].splitlines()
        yield from (f"  {field['text']}" for field in block.get("fields", ()))
    elif kind == "context":
        yield " ".join(f"({element['text']})" for element in block["elements"])
    elif kind == "actions":
        yield "  ".join(f"[{_label(element)}]" for element in block["elements"])
    elif kind == "rich_text":
        for part in block["elements"]:
            yield from _rich_lines(part)


def _label(element: dict[str, Any]) -> str:
    text = element.get("text") or element.get("placeholder") or {}
    return str(text.get("text", element["type"]))


def _rich_lines(part: dict[str, Any]) -> Iterator[str]:
    kind = part["type"]
    if kind == "rich_text_list":
        for number, item in enumerate(part["elements"], 1):
            mark = f"{number}." if part.get("style") == "ordered" else "•"
            text = "".join(map(_run, item["elements"]))
            yield from (f"{mark} {line}" for line in text.splitlines())
        return
    text = "".join(map(_run, part["elements"]))
    mark = "| " if kind == "rich_text_preformatted" else ""
    yield from (f"{mark}{line}" for line in text.splitlines())


def _run(element: dict[str, Any]) -> str:
    if element["type"] == "link":
        return f"{element.get('text') or ''} <{element['url']}>"
    text = str(element.get("text", ""))
    style = element.get("style") or {}
    if style.get("code"):
        return f"`{text}`"
    return f"*{text}*" if style.get("bold") else text
