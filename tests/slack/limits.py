"""Block Kit's published limits as data, and a checker of what is posted against them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

Surface = Literal["message", "modal"]
REFERENCE = "https://docs.slack.dev/reference"
_BLOCKS = f"{REFERENCE}/block-kit/blocks"
_ELEMENTS = f"{REFERENCE}/block-kit/block-elements"
_OBJECTS = f"{REFERENCE}/block-kit/composition-objects"
_POST = f"{REFERENCE}/methods/chat.postMessage"
_VIEWS = f"{REFERENCE}/views"
# Not in the reference: measured by an app's authors, 9,597 accepted and 11,341 refused.
_MEASURED = "https://github.com/slackapi/bolt-js/issues/2867"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The longest text (characters) or list (items) that Slack takes in one place."""

    most: int
    source: str
    least: int = 1


def _limit(most: int, source: str, *, least: int = 1) -> Limit:
    return Limit(most=most, source=source, least=least)


# (type of the object, field) → limit; a text object is measured by its text, a list by its items.
LIMITS: dict[tuple[str, str], Limit] = {
    ("message", "text"): _limit(40_000, _POST, least=0),
    ("message", "blocks"): _limit(50, _BLOCKS, least=0),
    ("modal", "blocks"): _limit(100, _BLOCKS),
    ("modal", "title"): _limit(24, _VIEWS),
    ("modal", "submit"): _limit(24, _VIEWS),
    ("modal", "close"): _limit(24, _VIEWS),
    ("modal", "private_metadata"): _limit(3000, _VIEWS, least=0),
    ("modal", "callback_id"): _limit(255, _VIEWS),
    ("section", "text"): _limit(3000, f"{_BLOCKS}/section-block"),
    ("section", "fields"): _limit(10, f"{_BLOCKS}/section-block"),
    ("header", "text"): _limit(150, f"{_BLOCKS}/header-block"),
    ("context", "elements"): _limit(10, f"{_BLOCKS}/context-block"),
    ("actions", "elements"): _limit(25, f"{_BLOCKS}/actions-block"),
    ("image", "alt_text"): _limit(2000, f"{_BLOCKS}/image-block"),
    ("image", "image_url"): _limit(3000, f"{_BLOCKS}/image-block"),
    ("image", "title"): _limit(2000, f"{_BLOCKS}/image-block"),
    ("input", "label"): _limit(2000, f"{_BLOCKS}/input-block"),
    ("input", "hint"): _limit(2000, f"{_BLOCKS}/input-block"),
    ("markdown", "text"): _limit(12_000, f"{_BLOCKS}/markdown-block"),
    ("table", "rows"): _limit(100, f"{_BLOCKS}/table-block"),
    ("button", "text"): _limit(75, f"{_ELEMENTS}/button-element"),
    ("button", "value"): _limit(2000, f"{_ELEMENTS}/button-element"),
    ("button", "url"): _limit(3000, f"{_ELEMENTS}/button-element"),
    ("button", "accessibility_label"): _limit(75, f"{_ELEMENTS}/button-element"),
    ("overflow", "options"): _limit(5, f"{_ELEMENTS}/overflow-menu-element"),
    ("static_select", "options"): _limit(100, f"{_ELEMENTS}/select-menu-element"),
    ("static_select", "option_groups"): _limit(100, f"{_ELEMENTS}/select-menu-element"),
    ("static_select", "placeholder"): _limit(150, f"{_ELEMENTS}/select-menu-element"),
    ("radio_buttons", "options"): _limit(10, f"{_ELEMENTS}/radio-button-group-element"),
    ("checkboxes", "options"): _limit(10, f"{_ELEMENTS}/checkboxes-element"),
    ("plain_text_input", "placeholder"): _limit(150, f"{_ELEMENTS}/plain-text-input-element"),
    ("plain_text_input", "initial_value"): _limit(
        3000, f"{_ELEMENTS}/plain-text-input-element", least=0
    ),
    ("option", "text"): _limit(75, f"{_OBJECTS}/option-object"),
    ("option", "value"): _limit(150, f"{_OBJECTS}/option-object"),
    ("option", "description"): _limit(75, f"{_OBJECTS}/option-object"),
    ("option_group", "label"): _limit(75, f"{_OBJECTS}/option-group-object"),
    ("option_group", "options"): _limit(100, f"{_OBJECTS}/option-group-object"),
    ("confirm", "title"): _limit(100, f"{_OBJECTS}/confirmation-dialog-object"),
    ("confirm", "text"): _limit(300, f"{_OBJECTS}/confirmation-dialog-object"),
    ("confirm", "confirm"): _limit(30, f"{_OBJECTS}/confirmation-dialog-object"),
    ("confirm", "deny"): _limit(30, f"{_OBJECTS}/confirmation-dialog-object"),
    ("plain_text", "text"): _limit(3000, f"{_OBJECTS}/text-object"),
    ("mrkdwn", "text"): _limit(3000, f"{_OBJECTS}/text-object"),
}
FIELD_TEXT = _limit(2000, f"{_BLOCKS}/section-block")  # one text of a section's `fields`
ANY_ID = _limit(255, _BLOCKS)  # block_id and action_id
TABLE_COLUMNS = _limit(20, f"{_BLOCKS}/table-block")
ADVISED_TEXT = _limit(4000, _POST)  # "for best results"; longer ones are split or cut by clients
ALL_TEXT = _limit(9597, _MEASURED)  # all texts of a message's blocks: `msg_blocks_too_long` above

REQUIRED: dict[str, tuple[str, ...]] = {
    "header": ("text",),
    "context": ("elements",),
    "actions": ("elements",),
    "input": ("label", "element"),
    "image": ("alt_text",),
    "markdown": ("text",),
    "rich_text": ("elements",),
    "table": ("rows",),
    "button": ("text", "action_id"),
    "static_select": ("action_id",),
    "option": ("text", "value"),
    "modal": ("title", "blocks", "callback_id"),
}
PLAIN_ONLY = frozenset(
    {
        ("header", "text"),
        ("button", "text"),
        ("input", "label"),
        ("input", "hint"),
        ("modal", "title"),
        ("modal", "submit"),
        ("modal", "close"),
        ("confirm", "title"),
        ("confirm", "confirm"),
        ("confirm", "deny"),
        ("static_select", "placeholder"),
        ("plain_text_input", "placeholder"),
    }
)
BLOCKS: dict[Surface, frozenset[str]] = {
    "message": frozenset(
        {
            "actions",
            "context",
            "divider",
            "header",
            "image",
            "input",
            "markdown",
            "rich_text",
            "section",
            "table",
        }
    ),
    "modal": frozenset(
        {"actions", "context", "divider", "header", "image", "input", "rich_text", "section"}
    ),
}
_SELECTS = frozenset(
    f"{multi}{kind}_select"
    for multi in ("", "multi_")
    for kind in ("static", "external", "users", "conversations", "channels")
)
_CONTROLS = _SELECTS | {"button", "overflow", "radio_buttons", "checkboxes", "datepicker"}
ELEMENTS: dict[str, frozenset[str]] = {
    "actions": _CONTROLS,
    "section": _CONTROLS | {"image"},
    "context": frozenset({"plain_text", "mrkdwn", "image"}),
    "input": (_CONTROLS - {"button", "overflow"})
    | {"plain_text_input", "file_input", "number_input", "url_text_input", "email_text_input"},
    "rich_text": frozenset(
        {"rich_text_section", "rich_text_list", "rich_text_preformatted", "rich_text_quote"}
    ),
}
STYLES = frozenset({"primary", "danger"})
# Elements inside a rich text: https://docs.slack.dev/reference/block-kit/blocks/rich-text-block
RICH_TEXT = frozenset(
    {"text", "link", "emoji", "user", "usergroup", "channel", "broadcast", "color", "date"}
)
RICH: dict[str, frozenset[str]] = {
    "rich_text_list": frozenset({"rich_text_section"}),
    "rich_text_preformatted": frozenset({"text", "link"}),
}


def problems(message: dict[str, Any], *, surface: Surface = "message") -> list[str]:
    """What Slack would refuse in a message or a modal, and what it advises against."""
    found = []
    text = message.get("text")
    if surface == "message":
        if not text and not message.get("blocks") and not message.get("attachments"):
            found.append("message: neither text nor blocks (no_text)")
        if message.get("blocks") and not text:
            found.append("message: blocks without a fallback text for notifications")
        if len(text or "") > ADVISED_TEXT.most:
            found.append(f"message.text: {len(text or '')} characters, advised {ADVISED_TEXT.most}")
    found += schema_problems(message, surface=surface)
    if surface == "message" and all_text(message) > ALL_TEXT.most:
        found.append(f"blocks: {all_text(message)} characters in all, measured {ALL_TEXT.most}")
    return found


def schema_problems(message: dict[str, Any], *, surface: Surface = "message") -> list[str]:
    """What Slack's schema refuses (``invalid_blocks``), each with its JSON pointer."""
    found = list(_measure(surface, message, ""))
    found += _missing(surface, message, "")
    blocks = message.get("blocks") or []
    if not isinstance(blocks, list):
        return ["/blocks: not a list"]
    ids: set[str] = set()
    for at, block in enumerate(blocks):
        place = f"/blocks/{at}"
        kind = block.get("type", "") if isinstance(block, dict) else ""
        if kind not in BLOCKS[surface]:
            found.append(f"{place}: {kind!r} is no block of a {surface}")
            continue
        found += _check(kind, block, place)
        block_id = block.get("block_id")
        if block_id is not None and block_id in ids:
            found.append(f"{place}/block_id: {block_id!r} stands twice")
        ids.add(block_id)
    tables = sum(block.get("type") == "table" for block in blocks if isinstance(block, dict))
    if tables > 1:
        found.append("/blocks: more than one table")
    return found


def all_text(message: dict[str, Any]) -> int:
    """The characters of all texts in the blocks of a message."""
    return sum(len(text) for text in _texts(message.get("blocks") or []))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name == "text" and isinstance(item, str):
                yield item
            else:
                yield from _texts(item)


def _check(kind: str, item: dict[str, Any], place: str) -> Iterator[str]:
    """Problems of one object and of those inside it."""
    yield from _measure(kind, item, place)
    yield from _missing(kind, item, place)
    if kind == "section":
        yield from _check_section(item, place)
    if kind == "table":
        yield from _check_table(item, place)
    if kind == "button" and item.get("style", "primary") not in STYLES:
        yield f"{place}/style: {item['style']!r}"
    yield from _check_elements(kind, item, place)
    for at, option in enumerate(item.get("options") or []):
        yield from _check("option", option, f"{place}/options/{at}")
    for at, group in enumerate(item.get("option_groups") or []):
        yield from _check("option_group", group, f"{place}/option_groups/{at}")
    if isinstance(item.get("confirm"), dict) and kind != "confirm":
        yield from _check("confirm", item["confirm"], f"{place}/confirm")


def _check_section(item: dict[str, Any], place: str) -> Iterator[str]:
    if "text" not in item and "fields" not in item:
        yield f"{place}: neither text nor fields"
    for at, field in enumerate(item.get("fields") or []):
        if len(field.get("text", "")) > FIELD_TEXT.most:
            yield f"{place}/fields/{at}: must be less than {FIELD_TEXT.most + 1} characters"


def _check_table(item: dict[str, Any], place: str) -> Iterator[str]:
    for at, row in enumerate(item.get("rows") or []):
        if len(row) > TABLE_COLUMNS.most:
            yield f"{place}/rows/{at}: no more than {TABLE_COLUMNS.most} items allowed"


def _check_elements(kind: str, item: dict[str, Any], place: str) -> Iterator[str]:
    inside = [(f"{place}/elements/{at}", el) for at, el in enumerate(item.get("elements") or [])]
    inside += [(f"{place}/{name}", item[name]) for name in ("accessory", "element") if name in item]
    actions: set[str] = set()
    for where, element in inside:
        if kind not in ELEMENTS:
            continue
        inner = element.get("type", "")
        if inner not in ELEMENTS[kind]:
            yield f"{where}: {inner!r} is no element of {kind}"
            continue
        if kind == "rich_text":
            yield from _check_rich(element, where)
            continue
        yield from _check(inner, element, where)
        action = element.get("action_id")
        if action is not None and action in actions:
            yield f"{where}/action_id: {action!r} stands twice"
        actions.add(action)


def _check_rich(item: dict[str, Any], place: str) -> Iterator[str]:
    """Problems of a paragraph, list, quote or code block of a rich text."""
    kind = item["type"]
    for at, element in enumerate(item.get("elements") or []):
        where, inner = f"{place}/elements/{at}", element.get("type", "")
        if inner not in RICH.get(kind, RICH_TEXT):
            yield f"{where}: {inner!r} is no element of {kind}"
        elif inner == "rich_text_section":
            yield from _check_rich(element, where)
        elif inner == "text" and not element.get("text"):
            yield f"{where}/text: must be more than 0 characters"
        elif inner == "link" and not element.get("url"):
            yield f"{where}: missing required field: url"
    if kind == "rich_text_list" and item.get("style") not in ("bullet", "ordered"):
        yield f"{place}/style: {item.get('style')!r}"
    if not isinstance(item.get("elements"), list):
        yield f"{place}: missing required field: elements"


def _missing(kind: str, item: dict[str, Any], place: str) -> Iterator[str]:
    for name in REQUIRED.get(kind, ()):
        if name not in item:
            yield f"{place}: missing required field: {name}"


def _measure(kind: str, item: dict[str, Any], place: str) -> Iterator[str]:
    """Problems of the sizes and text kinds of an object's own fields."""
    for name, value in item.items():
        where = f"{place}/{name}"
        limit = ANY_ID if name in ("block_id", "action_id") else LIMITS.get((kind, name))
        measured = value
        if isinstance(value, dict) and value.get("type") in ("plain_text", "mrkdwn"):
            if (kind, name) in PLAIN_ONLY and value["type"] != "plain_text":
                yield f"{where}: must be plain_text"
            measured = value.get("text", "")
        if limit is None or not isinstance(measured, str | list):
            continue
        unit = "characters" if isinstance(measured, str) else "items"
        if len(measured) > limit.most:
            yield f"{where}: must be less than {limit.most + 1} {unit}, is {len(measured)}"
        if len(measured) < limit.least:
            yield f"{where}: must be more than {limit.least - 1} {unit}"
