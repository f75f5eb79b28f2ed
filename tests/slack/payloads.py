"""The payloads Slack sends: events, commands, clicks, modals, shortcuts."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from tests.slack.sockets import APP_ID
from tests.slack.workspace import Channel, Message, Workspace, new_id, new_ts

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


def edit_event(
    workspace: Workspace, channel: Channel, message: Message, host: str
) -> dict[str, Any]:
    """The event of a person's edit."""
    return event(
        workspace,
        {
            "type": "message",
            "subtype": "message_changed",
            "hidden": True,
            "channel": channel.id,
            "channel_type": channel.kind,
            "ts": new_ts(),
            "event_ts": new_ts(),
            "message": message.as_json(host, workspace.team),
            "previous_message": {"text": message.versions[-1][0], "ts": message.ts},
        },
    )


def _who(workspace: Workspace, user: str) -> dict[str, Any]:
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


def block_actions(
    workspace: Workspace,
    channel: Channel,
    message: Message,
    user: str,
    action: dict[str, Any],
    urls: dict[str, str],
    host: str,
) -> dict[str, Any]:
    """What a click on an element of a message sends."""
    return {
        "type": "block_actions",
        **_who(workspace, user),
        "container": {
            "type": "message",
            "message_ts": message.ts,
            "channel_id": channel.id,
            "is_ephemeral": bool(message.ephemeral_for),
            **({"thread_ts": message.thread_ts} if message.thread_ts else {}),
        },
        "channel": {"id": channel.id, "name": channel.name},
        "message": message.as_json(host, workspace.team),
        "state": {"values": {}},
        "actions": [action],
        **urls,
    }


def message_shortcut(
    workspace: Workspace,
    channel: Channel,
    message: Message,
    user: str,
    callback_id: str,
    urls: dict[str, str],
    host: str,
) -> dict[str, Any]:
    """What a shortcut of a message's menu sends."""
    return {
        "type": "message_action",
        "callback_id": callback_id,
        "action_ts": new_ts(),
        "message_ts": message.ts,
        "channel": {"id": channel.id, "name": channel.name},
        "message": message.as_json(host, workspace.team),
        **_who(workspace, user),
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
        **_who(workspace, user),
        "view": view | {"state": {"values": state}},
        "response_urls": [],
        "trigger_id": urls["trigger_id"],
    }


def _state(element: dict[str, Any], value: Any) -> dict[str, Any]:
    kind = element["type"]
    if kind == "plain_text_input":
        given = element.get("initial_value") if value is None else value
        return {"type": kind, "value": given}
    if kind == "checkboxes":
        chosen = [item for item in element["options"] if item["value"] in (value or ())]
        return {"type": kind, "selected_options": chosen}
    if kind in ("static_select", "radio_buttons"):
        options = list(element.get("options") or ())
        for group in element.get("option_groups") or ():
            options += group["options"]
        if value is None:
            return {"type": kind, "selected_option": element.get("initial_option")}
        for option in options:
            if option["value"] == value:
                return {"type": kind, "selected_option": option}
        raise ValueError(f"no option {value!r} among {[item['value'] for item in options]}")
    raise ValueError(f"inputs of type {kind!r} are not known here")
