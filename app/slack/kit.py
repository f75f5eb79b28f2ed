"""Pieces of Block Kit that cannot be broken out of, within Slack's limits.

Text of logs and people stands only in ``plain_text`` objects and in ``rich_text`` elements, where
Slack interprets nothing: no mention, no link, no format. The one place that is always read as
markup is a message's `text` (for notifications); `escaped` makes that harmless.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from app.quoting import plain, plain_block, safe_url
from app.slack.types import Blocks, Message

# Slack's limits, in characters where not said otherwise.
MAX_BLOCKS = 50
MAX_SECTION = 3000
MAX_FIELDS = 10
MAX_FIELD = 2000
MAX_HEADER = 150
MAX_BUTTON = 75
MAX_BUTTONS = 25
MAX_OPTION = 75
MAX_OPTIONS = 100
MAX_CONTEXT = 10
MAX_TITLE = 24  # of a modal, and its buttons
MAX_LINK = 3000
# Ours: what still reads well, and keeps a message of many blocks under Slack's size.
MAX_TEXT = 700  # of the notification, before escapes; Slack asks for 4,000 after them
MAX_CODE = 1500
MAX_QUOTE = 400
MAX_MESSAGE = 9_000  # all texts of the blocks together: Slack refuses somewhere above 9,600

ELLIPSIS = "…"
# Zero-width space: invisible, and to Slack a space, so that a sign before it opens no format.
_SPLIT = "\u200b"
_TRIGGERS = re.compile(
    r"[*~`@]|(?<![^\W_])_|_(?![^\W_])|:(?=[a-z+-][\w+'-]*:|//)|(?<=\w)\.(?=[a-z]{2})"
)
_QUOTE_MARK = re.compile(r"^(?=[>•])", re.MULTILINE)

Element = dict[str, Any]


def fit(text: str, limit: int) -> str:
    """`text`, cut to `limit` characters with an ellipsis; never empty, which Slack refuses."""
    text = text or "-"
    return text if len(text) <= limit else text[: limit - 1].rstrip() + ELLIPSIS


def escaped(text: str) -> str:
    """`text` for a place that reads markup: it shows as these characters and nothing else.

    ``&``, ``<`` and ``>`` become entities, once, so that ``&lt;!channel&gt;`` stays these letters;
    format signs, ``@names``, emoji codes and bare addresses are split by an invisible space.
    """
    broken = _TRIGGERS.sub(lambda match: match[0] + _SPLIT, plain_block(text))
    broken = _QUOTE_MARK.sub(_SPLIT, broken)
    return broken.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def plain_text(text: str, limit: int) -> Element:
    """A text object nothing is interpreted in, emoji codes included."""
    return {"type": "plain_text", "text": fit(plain_block(text), limit), "emoji": False}


def header(text: str) -> Element:
    """A header block."""
    return {"type": "header", "text": plain_text(plain(text), MAX_HEADER)}


def section(text: str) -> Element:
    """A section block of plain text."""
    return {"type": "section", "text": plain_text(text, MAX_SECTION)}


def fields(texts: Sequence[str]) -> Blocks:
    """Section blocks with the texts side by side; none for no texts."""
    return [
        {
            "type": "section",
            "fields": [plain_text(text, MAX_FIELD) for text in texts[start : start + MAX_FIELDS]],
        }
        for start in range(0, len(texts), MAX_FIELDS)
    ]


def context(*texts: str) -> Element:
    """A block of small grey text."""
    return {"type": "context", "elements": [plain_text(text, MAX_FIELD) for text in texts if text]}


def divider() -> Element:
    """A line."""
    return {"type": "divider"}


def button(text: str, action: str, value: str, *, style: str = "") -> Element:
    """A button; `value` is what comes back with the click."""
    made = {
        "type": "button",
        "text": plain_text(text, MAX_BUTTON),
        "action_id": action,
        "value": value,
    }
    return made | ({"style": style} if style else {})


def actions(buttons: Sequence[Element], *, block_id: str = "") -> Element:
    """A row of buttons or menus."""
    made: Element = {"type": "actions", "elements": list(buttons[:MAX_BUTTONS])}
    return made | ({"block_id": block_id} if block_id else {})


def menu(placeholder: str, action: str, options: Iterable[tuple[str, str]]) -> Element:
    """A menu of (text, value)."""
    return {
        "type": "static_select",
        "action_id": action,
        "placeholder": plain_text(placeholder, MAX_OPTION),
        "options": [
            {"text": plain_text(text, MAX_OPTION), "value": value} for text, value in options
        ][:MAX_OPTIONS],
    }


# --- rich text ---------------------------------------------------------------------------------


def words(text: str, *, bold: bool = False, code: bool = False) -> Element:
    """A run of text."""
    made: Element = {"type": "text", "text": fit(plain(text), MAX_SECTION)}
    style = {name: True for name, on in (("bold", bold), ("code", code)) if on}
    return made | ({"style": style} if style else {})


def gap(text: str = " ") -> Element:
    """Our own text between two runs, spaces kept."""
    return {"type": "text", "text": text}


def link(text: str, url: str) -> Element:
    """A link where the address is a plain http(s) one, else its text."""
    if not safe_url(url) or len(url) > MAX_LINK:
        return words(text)
    return {"type": "link", "url": url, "text": fit(plain(text), MAX_FIELD)}


def line(*elements: Element) -> Element:
    """One paragraph of a rich text."""
    return {"type": "rich_text_section", "elements": list(elements)}


def bullets(lines: Sequence[Sequence[Element]], *, ordered: bool = False) -> Element:
    """A list of paragraphs."""
    return {
        "type": "rich_text_list",
        "style": "ordered" if ordered else "bullet",
        "elements": [line(*elements) for elements in lines],
    }


def code(text: str, *, limit: int = MAX_CODE) -> Element:
    """A block of code, as it stands."""
    return {
        "type": "rich_text_preformatted",
        "elements": [{"type": "text", "text": fit(plain_block(text), limit)}],
    }


def rich(*parts: Element) -> Element:
    """A rich-text block of paragraphs, lists and code."""
    return {"type": "rich_text", "elements": list(parts)}


# --- whole messages ----------------------------------------------------------------------------


def size(block: object) -> int:
    """Characters of all texts in a block."""
    if isinstance(block, dict):
        own = block.get("text")
        inner = sum(size(value) for name, value in block.items() if name != "text")
        return inner + (len(own) if isinstance(own, str) else size(own))
    if isinstance(block, list):
        return sum(size(item) for item in block)
    return 0


def message(text: str, blocks: Blocks, *, last: Blocks | None = None, cut: str = "") -> Message:
    """A message within Slack's limits; what does not fit is left out, and `cut` says so.

    Args:
        text: stands for the blocks in notifications; escaped here.
        blocks: the most important first.
        last: blocks that stay whatever is left out, such as buttons.
        cut: a sentence that tells that something was left out.
    """
    last = last or []
    room = MAX_BLOCKS - len(last) - 1
    left = MAX_MESSAGE - sum(size(block) for block in last)
    kept: Blocks = []
    for block in blocks:
        left -= size(block)
        if len(kept) == room or left < 0:
            kept.append(context(cut or ELLIPSIS))
            break
        kept.append(block)
    return Message(text=escaped(fit(text, MAX_TEXT)), blocks=[*kept, *last])
