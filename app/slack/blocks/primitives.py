"""Pieces of Block Kit that cannot be broken out of, within Slack's limits.

Text of logs and people stands only in ``plain_text`` objects and in ``rich_text`` elements, where
Slack interprets nothing: no mention, no link, no format. The one place that is always read as
markup is a message's `text` (for notifications); `escaped` makes that harmless.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.render.errors import error_text
from app.render.escape import plain, plain_block, safe_url
from kb.errors import KBError
from kb.knowledge.labels import Words
from kb.text.redact import redact

if TYPE_CHECKING:
    from app.slack.service_calls import ShownVerdict

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

Block = dict[str, Any]
Element = dict[str, Any]

DIVIDER: Block = {"type": "divider"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackMessage:
    """A message to post: blocks, and the text that stands for them in a notification.

    Not `sure` is what a quiet channel is spared: a cause that is only possible, no timeout, a
    message that was not understood. `report` is all of the diagnosis of a long log as text, empty
    where the message links to it. `for_model` is what a language model reads once the
    message stands, None where none does. `adds_to` is the conversation to whose last reply it
    may add something, empty where it does not.
    """

    text: str
    blocks: list[Block]
    sure: bool = True
    report: str = ""
    for_model: ShownVerdict | None = None
    adds_to: str = ""


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


# --- blocks of plain text, buttons, menus --------------------------------------------------------


def plain_text(text: str, limit: int) -> Element:
    """A text object nothing is interpreted in, emoji codes included."""
    return {"type": "plain_text", "text": fit(plain_block(text), limit), "emoji": False}


def header(text: str) -> Block:
    """A header block."""
    return {"type": "header", "text": plain_text(plain(text), MAX_HEADER)}


def section(text: str) -> Block:
    """A section block of plain text."""
    return {"type": "section", "text": plain_text(text, MAX_SECTION)}


def fields(texts: Sequence[str]) -> list[Block]:
    """A section block with the first ten texts side by side; none for no texts."""
    shown = [plain_text(text, MAX_FIELD) for text in texts[:MAX_FIELDS]]
    return [{"type": "section", "fields": shown}] if shown else []


def context(*texts: str) -> Block:
    """A block of small grey text."""
    return {"type": "context", "elements": [plain_text(text, MAX_FIELD) for text in texts if text]}


def button(text: str, action: str, value: str, **more: str) -> Element:
    """A button; `value` is what comes back with the click. `more` may hold a `style`."""
    label = plain_text(text, MAX_BUTTON)
    return {"type": "button", "text": label, "action_id": action, "value": value, **more}


def menu(placeholder: str, action: str, options: Iterable[tuple[str, str]]) -> Element:
    """A menu of (text, value)."""
    choices = [{"text": plain_text(text, MAX_OPTION), "value": value} for text, value in options]
    return {
        "type": "static_select",
        "action_id": action,
        "placeholder": plain_text(placeholder, MAX_OPTION),
        "options": choices[:MAX_OPTIONS],
    }


def actions(elements: Sequence[Element], **more: str) -> Block:
    """A row of buttons or menus; `more` may hold a `block_id`."""
    return {"type": "actions", "elements": list(elements[:MAX_BUTTONS]), **more}


# --- rich text -----------------------------------------------------------------------------------


def text_run(text: str, **style: bool) -> Element:
    """A run of text, untrusted or not; `style` may be ``bold=True`` or ``code=True``."""
    run: Element = {"type": "text", "text": fit(plain(text), MAX_SECTION)}
    return run | ({"style": style} if style else {})


def spacing(text: str = " ") -> Element:
    """Our own text between two runs, spaces kept."""
    return {"type": "text", "text": text}


def link(text: str, url: str) -> Element:
    """A link where the address is a plain http(s) one, else its text."""
    if not safe_url(url) or len(url) > MAX_LINK:
        return text_run(text)
    return {"type": "link", "url": url, "text": fit(plain(text), MAX_FIELD)}


def joined(elements: Iterable[Element], separator: str) -> list[Element]:
    """The elements with our own text between them."""
    spaced = [item for element in elements for item in (spacing(separator), element)]
    return spaced[1:]


def paragraph(*elements: Element) -> Element:
    """One paragraph of a rich text."""
    return {"type": "rich_text_section", "elements": list(elements)}


def bullets(lines: Sequence[Sequence[Element]], *, style: str = "bullet") -> list[Element]:
    """A list of paragraphs, ``bullet`` or ``ordered``; none for no lines."""
    items = [paragraph(*elements) for elements in lines]
    return [{"type": "rich_text_list", "style": style, "elements": items}] if items else []


def text_list(texts: Iterable[str], *, style: str = "bullet") -> list[Element]:
    """A list of texts, untrusted or not; none for no texts."""
    return bullets([[text_run(text)] for text in texts], style=style)


def code(text: str, *, limit: int = MAX_CODE) -> Element:
    """A block of code, as it stands."""
    run = {"type": "text", "text": fit(plain_block(text), limit)}
    return {"type": "rich_text_preformatted", "elements": [run]}


def rich_text(*parts: Element) -> Block:
    """A rich-text block of paragraphs, lists and code."""
    return {"type": "rich_text", "elements": list(parts)}


def titled(title: str, *parts: Element) -> Block:
    """A rich-text block that begins with a bold line."""
    return rich_text(paragraph(text_run(title, bold=True)), *parts)


# --- whole messages ------------------------------------------------------------------------------


def text_size(block: object) -> int:
    """Characters of all texts in a block."""
    if isinstance(block, dict):
        own = block.get("text")
        inner = sum(text_size(value) for name, value in block.items() if name != "text")
        return inner + (len(own) if isinstance(own, str) else text_size(own))
    if isinstance(block, list):
        return sum(text_size(item) for item in block)
    return 0


def message(
    text: str, blocks: list[Block], *, last: Sequence[Block] = (), cut: str = ELLIPSIS
) -> SlackMessage:
    """A message within Slack's limits; what does not fit is left out, and `cut` says so.

    Args:
        text: stands for the blocks in notifications; escaped here.
        blocks: the most important first.
        last: blocks that stay whatever is left out, such as buttons.
        cut: a sentence that tells that something was left out.
    """
    room = MAX_BLOCKS - len(last) - 1
    left = MAX_MESSAGE - sum(text_size(block) for block in last)
    shown: list[Block] = []
    for block in blocks:
        left -= text_size(block)
        if len(shown) == room or left < 0:
            shown.append(context(cut))
            break
        shown.append(block)
    return SlackMessage(text=escaped(fit(text, MAX_TEXT)), blocks=[*shown, *last])


def notice(text: str) -> SlackMessage:
    """A sentence."""
    return message(text, [section(text)])


def error_message(error: KBError, words: Words) -> SlackMessage:
    """An expected failure: what was wrong, and the next step; secrets in it redacted."""
    shown = error_text(error, words)
    text, todo = words("slack.trouble", what=redact(shown.what)[0]), redact(shown.todo)[0]
    return message(text, [section(text), *([context(todo)] if todo else [])])
