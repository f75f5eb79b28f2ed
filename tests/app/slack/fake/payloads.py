"""The payloads Slack sends: events, commands, clicks, modals, shortcuts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from tests.app.slack.fake.sockets import APP_ID
from tests.app.slack.fake.workspace import Channel, Message, Workspace, new_id

VERIFICATION = "verification-token-no-app-should-use"


def event(workspace: Workspace, inner: dict[str, Any]) -> dict[str, Any]:
    """The outer event around `inner`, with an id of its own."""
    return {
        "token": VERIFICATION,
        "team_id": workspace.team,
        "context_team_id": workspace.team,
        "api_app_id": APP_ID,
        "event": inner,
        "type": "event_callback",
        "event_id": new_id("Ev"),
        "event_time": int(time.time()),
        "authorizations": [
            {
                "enterprise_id": None,
                "team_id": workspace.team,
                "user_id": workspace.bot_user,
                "is_bot": True,
                "is_enterprise_install": False,
            }
        ],
        "is_ext_shared_channel": False,
    }


def message_events(
    workspace: Workspace, channel: Channel, message: Message, host: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The events of a new message by name in the manifest: a mention makes two.

    What programs write comes too, without a subtype; `bot_id` tells it.
    """
    body = message.as_json(host, workspace.team) | {
        "channel": channel.id,
        "event_ts": message.ts,
        "client_msg_id": new_id("m"),
    }
    mention = f"<@{workspace.bot_user}>" in message.text
    if mention and channel.kind != "im":
        mentioned = {name: value for name, value in body.items() if name != "subtype"}
        yield "app_mention", event(workspace, mentioned | {"type": "app_mention"})
    suffix = {"channel": "channels", "group": "groups", "im": "im"}[channel.kind]
    yield f"message.{suffix}", event(workspace, body | {"channel_type": channel.kind})


def person(workspace: Workspace, user: str) -> dict[str, Any]:
    """Who does something, and for which app."""
    name = workspace.users[user].name
    return {
        "user": {"id": user, "username": name, "name": name, "team_id": workspace.team},
        "team": {"id": workspace.team, "domain": workspace.domain},
        "enterprise": None,
        "is_enterprise_install": "false",
        "api_app_id": APP_ID,
        "token": VERIFICATION,
    }


def slash_command(
    workspace: Workspace, channel: Channel, user: str, command: str, text: str, urls: dict[str, str]
) -> dict[str, Any]:
    """What a slash command sends."""
    return {
        "token": VERIFICATION,
        "team_id": workspace.team,
        "team_domain": workspace.domain,
        "channel_id": channel.id,
        "channel_name": channel.name,
        "user_id": user,
        "user_name": workspace.users[user].name,
        "command": command,
        "text": text,
        "api_app_id": APP_ID,
        "is_enterprise_install": "false",
        **urls,
    }


def view_submission(
    workspace: Workspace,
    view: dict[str, Any],
    user: str,
    values: dict[str, Any],
    urls: dict[str, str],
) -> dict[str, Any]:
    """What submitting a modal sends; `values` are texts or option values by action id.

    Raises:
        ValueError: a value is for no input of the modal.
    """
    state: dict[str, dict[str, Any]] = {}
    left = dict(values)
    for at, block in enumerate(view["blocks"]):
        element = block.get("element")
        if block["type"] != "input" or not element:
            continue
        block_id = block.get("block_id") or f"auto{at}"
        action_id = element.get("action_id") or "auto"
        state[block_id] = {action_id: _state(element, left.pop(action_id, None))}
    if left:
        raise ValueError(f"the modal has no input called {sorted(left)}")
    return {
        "type": "view_submission",
        **person(workspace, user),
        "view": view | {"state": {"values": state}},
        "response_urls": [],
        "trigger_id": urls["trigger_id"],
    }


def _state(element: dict[str, Any], value: Any) -> dict[str, Any]:
    kind = element["type"]
    if kind == "plain_text_input":
        return {"type": kind, "value": value}
    options = {item["value"]: item for item in element["options"]}
    return {"type": kind, "selected_option": options[value] if value else None}
