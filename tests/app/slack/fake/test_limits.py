"""The checker of Block Kit's limits: what is published passes, one more does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.app.slack.fake.limits import (
    ALL_TEXT,
    all_text,
    problems,
    schema_problems,
)


def text(length: int, kind: str = "plain_text") -> dict[str, Any]:
    """A text object of that many characters."""
    return {"type": kind, "text": "x" * length}


def option(number: int) -> dict[str, Any]:
    """An option."""
    return {"text": text(5), "value": f"v{number}"}


def button(number: int = 0, **more: Any) -> dict[str, Any]:
    """A button."""
    return {"type": "button", "text": text(3), "action_id": f"a{number}", **more}


def actions(*elements: dict[str, Any]) -> dict[str, Any]:
    """An actions block."""
    return {"type": "actions", "elements": list(elements)}


def select(options: int) -> dict[str, Any]:
    """A menu with that many options."""
    return {
        "type": "static_select",
        "action_id": "s",
        "placeholder": text(5),
        "options": [option(number) for number in range(options)],
    }


AT_THE_LIMIT: dict[str, tuple[Callable[[int], dict[str, Any]], int]] = {
    "header": (lambda n: {"type": "header", "text": text(n)}, 150),
    "section": (lambda n: {"type": "section", "text": text(n)}, 3000),
    "field": (lambda n: {"type": "section", "fields": [text(n)]}, 2000),
    "button text": (lambda n: actions(button(text=text(n))), 75),
    "option text": (
        lambda n: actions(select(1) | {"options": [option(0) | {"text": text(n)}]}),
        75,
    ),
    "option value": (
        lambda n: actions(select(1) | {"options": [option(0) | {"value": "v" * n}]}),
        150,
    ),
    "block id": (lambda n: {"type": "divider", "block_id": "b" * n}, 255),
}


@pytest.mark.parametrize("name", AT_THE_LIMIT)
def test_the_limit_itself_passes_and_one_more_does_not(name: str) -> None:
    """Every limit is met exactly: n is allowed, n + 1 is refused with one problem."""
    make, most = AT_THE_LIMIT[name]
    assert problems({"text": "t", "blocks": [make(most)]}) == []
    assert len(problems({"text": "t", "blocks": [make(most + 1)]})) == 1


def rich(kind: str, *elements: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A rich text with one part."""
    return {"type": "rich_text", "elements": [{"type": kind, "elements": list(elements), **more}]}


LINE = {"type": "rich_text_section", "elements": [{"type": "text", "text": "x"}]}
WRONG = {
    "empty run": rich("rich_text_section", {"type": "text", "text": ""}),
    "list of runs": rich("rich_text_list", {"type": "text", "text": "x"}, style="bullet"),
    "list without a style": rich("rich_text_list", LINE),
    "empty list": rich("rich_text_list", style="bullet"),
    "emoji in code": rich("rich_text_preformatted", {"type": "emoji", "name": "x"}),
    "link without an address": rich("rich_text_section", {"type": "link", "text": "x"}),
    "unknown block": {"type": "carousel_of_dreams"},
    "not a block": "text",
    "empty text": {"type": "section", "text": text(0)},
    "empty section": {"type": "section"},
    "empty actions": {"type": "actions", "elements": []},
    "mrkdwn header": {"type": "header", "text": text(3, "mrkdwn")},
    "mrkdwn button": actions(button(text=text(3, "mrkdwn"))),
    "button in a context": {"type": "context", "elements": [button()]},
    "style": actions(button(style="pink")),
    "action id twice": actions(button(1), button(1)),
    "no action id": actions({"type": "button", "text": text(3)}),
    "no option value": actions(select(1) | {"options": [{"text": text(3)}]}),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_slack_refuses_is_a_problem(name: str) -> None:
    """Forms that Slack's schema refuses make one problem each."""
    assert len(problems({"text": "t", "blocks": [WRONG[name]]})) == 1


def test_a_rich_text_passes() -> None:
    """Paragraphs, lists of paragraphs and code make no problem."""
    run = {"type": "text", "text": "x", "style": {"bold": True}}
    line = {"type": "rich_text_section", "elements": [run]}
    parts = [
        rich("rich_text_section", run, {"type": "link", "url": "https://x.example", "text": "x"}),
        rich("rich_text_list", line, line, style="ordered"),
        rich("rich_text_preformatted", {"type": "text", "text": "x"}),
    ]
    assert problems({"text": "t", "blocks": parts}) == []


def test_limits_of_the_whole_message() -> None:
    """Fifty blocks, forty thousand characters (four thousand advised), all texts together."""
    divider = {"type": "divider"}
    assert problems({"text": "t", "blocks": [divider] * 50}) == []
    assert len(problems({"text": "t", "blocks": [divider] * 51})) == 1
    assert problems({"text": "t" * 4000}) == []
    assert len(problems({"text": "t" * 4001})) == 1
    assert schema_problems({"text": "t" * 40_000}) == []
    assert len(schema_problems({"text": "t" * 40_001})) == 1
    long = [{"type": "section", "text": text(2999)}] * 3
    assert all_text({"blocks": long}) == 3 * 2999 < ALL_TEXT
    assert problems({"text": "t", "blocks": long}) == []
    assert len(problems({"text": "t", "blocks": [*long, long[0]]})) == 1
    two = [{"type": "divider", "block_id": "same"}] * 2
    assert problems({"text": "t", "blocks": two}) == ["block_id: 'same' stands twice"]


def test_a_message_says_something_without_its_blocks() -> None:
    """Notifications show the text alone, so blocks need one."""
    assert len(problems({})) == 1
    assert len(problems({"blocks": [{"type": "divider"}]})) == 1


def test_a_modal_has_limits_of_its_own() -> None:
    """A modal may have a hundred blocks, a title of 24 signs, and no buttons."""
    inside = {
        "type": "input",
        "label": text(5),
        "element": {"type": "plain_text_input", "action_id": "a"},
    }
    modal = {"type": "modal", "callback_id": "c", "title": text(24), "blocks": [inside]}
    assert problems(modal, surface="modal") == []
    assert len(problems(modal | {"title": text(25)}, surface="modal")) == 1
    assert len(problems(modal | {"blocks": [inside] * 101}, surface="modal")) == 1
    assert len(problems({"type": "modal", "blocks": [inside]}, surface="modal")) == 2
    assert len(problems(modal | {"blocks": [actions(button())]}, surface="modal")) == 1
