"""The Web API's methods, one function each; every one checks scopes and arguments as Slack does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.slack import lookups
from tests.slack.calls import SlackError
from tests.slack.context import Context
from tests.slack.limits import ALL_TEXT, LIMITS, all_text, problems, schema_problems
from tests.slack.workspace import Channel, Message, new_id, new_ts

UPDATE_TEXT = 4000  # https://docs.slack.dev/reference/methods/chat.update
TRIGGER_S = 3.0  # a trigger_id is good this long, once


def check_message(arguments: dict[str, Any]) -> None:
    """Refuse what Slack refuses of a message."""
    text = arguments.get("text") or ""
    if not text and not arguments.get("blocks") and not arguments.get("attachments"):
        raise SlackError("no_text")
    if len(text) > LIMITS["message", "text"].most:
        raise SlackError("msg_too_long")
    wrong = schema_problems(arguments)
    if wrong:
        messages = [f"[ERROR] {item}" for item in wrong]
        raise SlackError("invalid_blocks", errors=wrong, response_metadata={"messages": messages})
    if all_text(arguments) > ALL_TEXT.most:
        raise SlackError("msg_blocks_too_long")


def auth_test(context: Context) -> dict[str, Any]:
    """Who the token belongs to."""
    workspace = context.workspace
    return {
        "url": f"https://{workspace.domain}.slack.com/",
        "team": workspace.domain,
        "user": "timeout-kb",
        "team_id": workspace.team,
        "user_id": workspace.bot_user,
        "bot_id": workspace.bot_id,
        "is_enterprise_install": False,
    }


def chat_post_message(context: Context) -> dict[str, Any]:
    """Post for everyone in the channel or thread."""
    context.need("chat:write")
    channel = context.channel()
    if not channel.has_bot and "chat:write.public" not in context.backend.manifest.scopes:
        raise SlackError("not_in_channel")
    message = _new_message(context, channel, via="chat.postMessage")
    channel.messages.append(message)
    context.backend.posted(context.workspace, channel, message)
    return {
        "channel": channel.id,
        "ts": message.ts,
        "message": context.backend.message_json(context.workspace, message),
    }


def chat_post_ephemeral(context: Context) -> dict[str, Any]:
    """Post for one person."""
    context.need("chat:write")
    channel = context.channel()
    if not channel.has_bot:
        raise SlackError("not_in_channel")
    user = context.get("user")
    if user not in context.workspace.users:
        raise SlackError("user_not_in_channel")
    message = _new_message(context, channel, via="chat.postEphemeral")
    message.ephemeral_for = user
    if message.thread_ts and len(channel.thread(message.thread_ts)) < 2:
        # Slack takes it and shows it to nobody.
        context.backend.problems.append("chat.postEphemeral: in a thread that has not begun")
    channel.messages.append(message)
    return {"message_ts": message.ts}


def _new_message(context: Context, channel: Channel, *, via: str) -> Message:
    arguments = context.call.arguments
    _note_problems(context, arguments)
    check_message(arguments)
    thread = str(arguments.get("thread_ts") or "")
    if thread and channel.find(thread) is None:
        raise SlackError("thread_not_found")
    return Message(
        ts=new_ts(),
        channel=channel.id,
        user=context.workspace.bot_user,
        bot_id=context.workspace.bot_id,
        text=str(arguments.get("text") or ""),
        blocks=arguments.get("blocks") or [],
        attachments=arguments.get("attachments") or [],
        thread_ts=thread,
        via=via,
    )


def _note_problems(context: Context, arguments: dict[str, Any]) -> None:
    found = problems(arguments)
    context.backend.problems += [f"{context.call.method}: {item}" for item in found]


def chat_update(context: Context) -> dict[str, Any]:
    """Replace a message of the app's own."""
    context.need("chat:write")
    channel = context.channel()
    message = channel.find(context.get("ts"))
    if message is None or message.ephemeral_for:
        raise SlackError("message_not_found")
    if message.bot_id != context.workspace.bot_id:
        raise SlackError("cant_update_message")
    arguments = context.call.arguments
    _note_problems(context, arguments)
    check_message(arguments)
    if len(arguments.get("text") or "") > UPDATE_TEXT:
        raise SlackError("msg_too_long")
    replace_content(message, arguments)
    return {"channel": channel.id, "ts": message.ts, "text": message.text}


def replace_content(message: Message, arguments: dict[str, Any]) -> None:
    """Give a message new text and blocks; the old ones are kept among its versions."""
    message.versions.append((message.text, message.blocks))
    message.text = str(arguments.get("text") or "")
    message.blocks = arguments.get("blocks") or []


def chat_delete(context: Context) -> dict[str, Any]:
    """Delete a message of the app's own."""
    context.need("chat:write")
    channel = context.channel()
    message = channel.find(context.get("ts"))
    if message is None:
        raise SlackError("message_not_found")
    if message.bot_id != context.workspace.bot_id:
        raise SlackError("cant_delete_message")
    message.deleted = True
    return {"channel": channel.id, "ts": message.ts}


def chat_get_permalink(context: Context) -> dict[str, Any]:
    """The address of a message."""
    channel = context.channel()
    ts = context.get("message_ts")
    if channel.find(ts) is None:
        raise SlackError("message_not_found")
    place = f"archives/{channel.id}/p{ts.replace('.', '')}"
    return {
        "channel": channel.id,
        "permalink": f"https://{context.workspace.domain}.slack.com/{place}",
    }


def _reacted(context: Context) -> tuple[Message, str]:
    context.need("reactions:write")
    channel = context.channel()
    message = channel.find(context.get("timestamp"))
    if message is None:
        raise SlackError("message_not_found")
    return message, context.get("name").strip(":")


def reactions_add(context: Context) -> dict[str, Any]:
    """Put a reaction under a message."""
    message, name = _reacted(context)
    users = message.reactions.setdefault(name, set())
    if context.workspace.bot_user in users:
        raise SlackError("already_reacted")
    users.add(context.workspace.bot_user)
    message.reacted.append(name)
    return {}


def reactions_remove(context: Context) -> dict[str, Any]:
    """Take the app's reaction away."""
    message, name = _reacted(context)
    users = message.reactions.get(name, set())
    if context.workspace.bot_user not in users:
        raise SlackError("no_reaction")
    users.remove(context.workspace.bot_user)
    return {}


def views_open(context: Context) -> dict[str, Any]:
    """Open a modal; the trigger is good once, for three seconds."""
    trigger = context.get("trigger_id")
    team, made_s = context.backend.triggers.pop(trigger, ("", 0.0))
    if team != context.workspace.team:
        raise SlackError("invalid_trigger_id" if not team else "trigger_exchanged")
    if time.monotonic() - made_s > TRIGGER_S:
        raise SlackError("expired_trigger_id")
    view = _checked_view(context)
    stored = view | {"id": new_id("V"), "team_id": context.workspace.team, "hash": new_ts()}
    stored.setdefault("private_metadata", "")
    context.workspace.views[stored["id"]] = stored
    return {"view": stored}


def views_update(context: Context) -> dict[str, Any]:
    """Replace an open modal."""
    view_id = context.get("view_id")
    if view_id not in context.workspace.views:
        raise SlackError("not_found")
    stored = _checked_view(context) | {"id": view_id, "team_id": context.workspace.team}
    stored["hash"] = new_ts()
    context.workspace.views[view_id] = stored
    return {"view": stored}


def _checked_view(context: Context) -> dict[str, Any]:
    view = context.call.arguments.get("view")
    if not isinstance(view, dict) or view.get("type") != "modal":
        raise SlackError("invalid_arguments")
    wrong = problems(view, surface="modal")
    context.backend.problems += [f"{context.call.method}: {item}" for item in wrong]
    if wrong:
        messages = [f"[ERROR] {item}" for item in wrong]
        raise SlackError("invalid_arguments", response_metadata={"messages": messages})
    return view


METHODS: dict[str, Callable[[Context], dict[str, Any]]] = {
    "auth.test": auth_test,
    "chat.postMessage": chat_post_message,
    "chat.postEphemeral": chat_post_ephemeral,
    "chat.update": chat_update,
    "chat.delete": chat_delete,
    "chat.getPermalink": chat_get_permalink,
    "reactions.add": reactions_add,
    "reactions.remove": reactions_remove,
    "views.open": views_open,
    "views.update": views_update,
    "files.info": lookups.files_info,
    "files.getUploadURLExternal": lookups.files_get_upload,
    "files.completeUploadExternal": lookups.files_complete_upload,
    "conversations.info": lookups.conversations_info,
    "conversations.replies": lookups.conversations_replies,
    "conversations.history": lookups.conversations_history,
    "users.info": lookups.users_info,
    "users.conversations": lookups.users_conversations,
}
