"""A checker of what is posted: sizes by Slack's own library, shapes and sums that it leaves out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Literal

from slack_sdk.errors import SlackObjectFormationError
from slack_sdk.models.blocks import Block
from slack_sdk.models.views import View

Surface = Literal["message", "modal"]

# https://docs.slack.dev/reference, in characters or items
MOST_BLOCKS: dict[Surface, int] = {"message": 50, "modal": 100}
MOST_TEXT = 40_000  # of a message; longer ones are refused
ADVISED_TEXT = 4000  # of a message, "for best results"; longer ones are split or cut by clients
MOST_FIELD = 2000  # one text of a section's `fields`
MOST_OPTION = 75
MOST_OPTION_VALUE = 150
# Not in the reference: measured by an app's authors, 9,597 accepted and 11,341 refused; above it
# Slack answers `msg_blocks_too_long`. https://github.com/slackapi/bolt-js/issues/2867
ALL_TEXT = 9597
# What the bot builds its messages and forms of; anything else is a problem.
BLOCKS: dict[Surface, frozenset[str]] = {
    "message": frozenset({"actions", "context", "divider", "header", "rich_text", "section"}),
    "modal": frozenset({"context", "divider", "header", "input", "rich_text", "section"}),
}
ELEMENTS = {
    "actions": frozenset({"button", "static_select"}),
    "context": frozenset({"plain_text"}),
    "rich_text": frozenset({"rich_text_section", "rich_text_list", "rich_text_preformatted"}),
    "rich_text_section": frozenset({"text", "link"}),
    "rich_text_list": frozenset({"rich_text_section"}),
    "rich_text_preformatted": frozenset({"text"}),
}
REQUIRED = {
    "button": ("text", "action_id"),
    "static_select": ("action_id", "options"),
    "link": ("url",),
    "rich_text_list": ("style",),
    "modal": ("title", "blocks", "callback_id"),
}


def problems(message: dict[str, Any], *, surface: Surface = "message") -> list[str]:
    """What Slack would refuse in a message or a modal, and what it advises against."""
    found = schema_problems(message, surface=surface)
    if surface == "message":
        text, blocks = message.get("text") or "", message.get("blocks")
        if not text:
            found.append("message: no text" + (" beside the blocks" if blocks else ""))
        if ADVISED_TEXT < len(text) <= MOST_TEXT:
            found.append(f"message.text: {len(text)} characters, advised {ADVISED_TEXT}")
        if all_text(message) > ALL_TEXT:
            found.append(f"blocks: {all_text(message)} characters in all, measured {ALL_TEXT}")
    return found


def schema_problems(message: dict[str, Any], *, surface: Surface = "message") -> list[str]:
    """What Slack's schema refuses (``invalid_blocks``), each with its JSON pointer."""
    blocks = message.get("blocks") or []
    found = []
    if len(blocks) > MOST_BLOCKS[surface]:
        found.append(f"/blocks: {len(blocks)} items")
    if surface == "message" and len(message.get("text") or "") > MOST_TEXT:
        found.append(f"/text: {len(message['text'])} characters")
    if surface == "modal":
        found += _missing("modal", message, "")
        found += _sizes(partial(_parsed_view, message), "")
    for at, block in enumerate(blocks):
        place, kind = f"/blocks/{at}", block.get("type") if isinstance(block, dict) else None
        if kind not in BLOCKS[surface]:
            found.append(f"{place}: {kind!r} is no block of a {surface}")
        else:
            found += list(_shapes(block, place)) or _sizes(partial(_parsed, block), place)
        found += _twice("action_id", _objects(block))
    found += _twice("block_id", _objects(blocks))
    return found


def _twice(name: str, items: Iterable[dict[str, Any]]) -> list[str]:
    counts = Counter(item[name] for item in items if name in item)
    return [f"{name}: {value!r} stands twice" for value, count in counts.items() if count > 1]


def _parsed(block: dict[str, Any]) -> object:
    parsed = Block.parse(block)
    return parsed and parsed.to_dict()


def _parsed_view(view: dict[str, Any]) -> object:
    return View(**view | {"blocks": [{"type": "divider"}]}).to_dict()


def _sizes(build: Callable[[], object], place: str) -> list[str]:
    """What Slack's library refuses to build."""
    try:
        build()
    except (SlackObjectFormationError, TypeError) as error:
        return [f"{place}: {error}"]
    return []


def _shapes(item: dict[str, Any], place: str) -> Iterator[str]:
    """What the library takes and Slack does not."""
    kind = str(item.get("type", ""))
    yield from _missing(kind, item, place)
    text = item.get("text")
    if text == "":
        yield f"{place}/text: must be more than 0 characters"
    if isinstance(text, dict):
        yield from _shapes(text, f"{place}/text")
        if kind != "section" and text.get("type") != "plain_text":
            yield f"{place}/text: must be plain_text"
    yield from _text_sizes(item, place)
    if kind in ELEMENTS and not item.get("elements"):
        yield f"{place}/elements: must be more than 0 items"
    for at, element in enumerate(item.get("elements") or []):
        where = f"{place}/elements/{at}"
        if element.get("type") in ELEMENTS.get(kind, ()):
            yield from _shapes(element, where)
        else:
            yield f"{where}: {element.get('type')!r} is no element of {kind}"
    if isinstance(item.get("element"), dict):
        yield from _shapes(item["element"], f"{place}/element")


def _text_sizes(item: dict[str, Any], place: str) -> Iterator[str]:
    for at, field in enumerate(item.get("fields") or []):
        if len(field["text"]) > MOST_FIELD:
            yield f"{place}/fields/{at}: more than {MOST_FIELD} characters"
    for at, option in enumerate(item.get("options") or []):
        sizes = (len(option["text"]["text"]), len(option.get("value", "")))
        if not (0 < sizes[0] <= MOST_OPTION and 0 < sizes[1] <= MOST_OPTION_VALUE):
            yield f"{place}/options/{at}: text and value have {sizes} characters"


def _missing(kind: str, item: dict[str, Any], place: str) -> list[str]:
    required = REQUIRED.get(kind, ())
    return [f"{place}: missing required field: {name}" for name in required if name not in item]


def all_text(message: dict[str, Any]) -> int:
    """The characters of all texts in the blocks of a message."""
    texts = (item.get("text") for item in _objects(message.get("blocks") or []))
    return sum(len(text) for text in texts if isinstance(text, str))


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a JSON value, at any depth."""
    if isinstance(value, dict):
        yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in inner:
        yield from _objects(item)
