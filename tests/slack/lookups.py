"""The Web API's methods about files, channels and people."""

from __future__ import annotations

from typing import Any

from tests.slack.calls import SlackError
from tests.slack.context import Context
from tests.slack.workspace import Channel, Message, StoredFile, new_ts

PAGE = 1000
SHARED = "files.completeUploadExternal"  # how a message with an app's file came
_HISTORY = {"channel": "channels:history", "group": "groups:history", "im": "im:history"}
_READ = {"channel": "channels:read", "group": "groups:read", "im": "im:read"}


def files_info(context: Context) -> dict[str, Any]:
    """What is known of a file."""
    context.need("files:read")
    file = context.workspace.files.get(context.get("file"))
    if file is None:
        raise SlackError("file_not_found")
    if file.behaviour == "gone":
        raise SlackError("file_deleted")
    return {"file": file.as_json(context.backend.files_host)}


def files_get_upload(context: Context) -> dict[str, Any]:
    """An address to put a new file."""
    context.need("files:write")
    length = int(context.get("length"))
    file = context.workspace.add_file(
        context.get("filename"), b"", user=context.workspace.bot_user, told_size=length
    )
    file.complete = False
    host = context.backend.files_host
    return {"upload_url": f"http://{host}/upload/{file.id}", "file_id": file.id}


def files_complete_upload(context: Context) -> dict[str, Any]:
    """Share uploaded files in a channel or thread."""
    context.need("files:write")
    arguments = context.call.arguments
    files: list[StoredFile] = []
    for item in arguments.get("files") or []:
        file = context.workspace.files.get(item.get("id", ""))
        if file is None:
            raise SlackError("file_not_found")
        if len(file.body) != file.told_size:
            raise SlackError("file_uploaded_but_inaccessible")
        if file.complete:  # this can be said once
            raise SlackError("file_not_found")
        file.title = item.get("title", file.name)
        files.append(file)
    channel_id = str(arguments.get("channel_id") or "")
    if channel_id:
        channel = context.workspace.channels.get(channel_id)
        if channel is None or not channel.has_bot:
            raise SlackError("channel_not_found")
        thread = str(arguments.get("thread_ts") or "")
        if thread and (channel.find(thread) is None or not channel.thread(thread)):
            raise SlackError("thread_not_found")
        message = Message(
            ts=new_ts(),
            channel=channel.id,
            user=context.workspace.bot_user,
            bot_id=context.workspace.bot_id,
            text=str(arguments.get("initial_comment") or ""),
            thread_ts=thread,
            files=files,
            via=SHARED,
        )
        channel.messages.append(message)
        context.backend.posted(context.workspace, channel, message)
    for file in files:
        file.complete = True
    return {"files": [{"id": file.id, "title": file.title} for file in files]}


def conversations_info(context: Context) -> dict[str, Any]:
    """What is known of a channel."""
    channel = context.channel(scopes=_READ)
    return {"channel": _channel_json(channel)}


def _channel_json(channel: Channel) -> dict[str, Any]:
    return {
        "id": channel.id,
        "name": channel.name,
        "is_channel": channel.kind == "channel",
        "is_group": channel.kind == "group",
        "is_im": channel.kind == "im",
        "is_private": channel.kind != "channel",
        "is_member": channel.has_bot,
    }


def conversations_replies(context: Context) -> dict[str, Any]:
    """The messages of a thread, oldest first, in pages."""
    channel = context.channel(scopes=_HISTORY)
    if not channel.has_bot:
        raise SlackError("not_in_channel")
    found = channel.thread(context.get("ts"))
    if not found:
        raise SlackError("thread_not_found")
    return _page(context, found)


def conversations_history(context: Context) -> dict[str, Any]:
    """The messages of a channel, newest first, in pages."""
    channel = context.channel(scopes=_HISTORY)
    if not channel.has_bot:
        raise SlackError("not_in_channel")
    shown = [
        message
        for message in channel.messages
        if not message.thread_ts and not message.deleted and not message.ephemeral_for
    ]
    return _page(context, shown[::-1])


def _page(context: Context, messages: list[Message]) -> dict[str, Any]:
    arguments = context.call.arguments
    oldest, latest = str(arguments.get("oldest") or "0"), str(arguments.get("latest") or "9")
    inside = [message for message in messages if oldest <= message.ts <= latest]
    start = int(arguments.get("cursor") or 0)
    limit = min(int(arguments.get("limit") or PAGE), PAGE)
    shown = inside[start : start + limit]
    more = start + limit < len(inside)
    return {
        "messages": [context.backend.message_json(context.workspace, item) for item in shown],
        "has_more": more,
        "response_metadata": {"next_cursor": str(start + limit) if more else ""},
    }


def users_info(context: Context) -> dict[str, Any]:
    """What is known of a person."""
    context.need("users:read")
    user = context.workspace.users.get(context.get("user"))
    if user is None:
        raise SlackError("user_not_found")
    return {
        "user": {
            "id": user.id,
            "team_id": context.workspace.team,
            "name": user.name,
            "real_name": user.name,
            "is_bot": user.is_bot,
            "locale": user.locale,
        }
    }


def users_conversations(context: Context) -> dict[str, Any]:
    """The channels the app is in."""
    context.need("channels:read")
    shown = [channel for channel in context.workspace.channels.values() if channel.has_bot]
    return {
        "channels": [_channel_json(channel) for channel in shown],
        "response_metadata": {"next_cursor": ""},
    }
