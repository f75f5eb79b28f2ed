"""The Web API's methods, one function each; every one checks scopes and arguments as Slack does."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.app.slack.fake.limits import (
    ALL_TEXT,
    MOST_TEXT,
    all_text,
    problems,
    schema_problems,
)
from tests.app.slack.fake.workspace import (
    Channel,
    Message,
    StoredFile,
    Workspace,
    new_id,
    new_ts,
)

UPDATE_TEXT = 4000  # https://docs.slack.dev/reference/methods/chat.update
TRIGGER_S = 3.0  # a trigger_id is good this long, once
VISIBLE = ("text", "blocks", "attachments", "view", "title", "initial_comment", "content")
PAGE = 1000
SHARED = "files.completeUploadExternal"  # how a message with an app's file came
_HISTORY = {"channel": "channels:history", "group": "groups:history", "im": "im:history"}


class SlackError(Exception):
    """A refusal: ``{"ok": false, "error": code}``."""

    def __init__(self, code: str, **more: Any) -> None:
        super().__init__(code)
        self.code = code
        self.more = more


@dataclass(kw_only=True)
class Call:
    """One call the app made; `team` is that of its token."""

    method: str
    token: str
    arguments: dict[str, Any]
    at_s: float
    team: str = ""
    response: dict[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether Slack accepted it."""
        return bool(self.response.get("ok"))

    def visible(self) -> dict[str, Any]:
        """The arguments that people get to see."""
        return {name: self.arguments[name] for name in VISIBLE if name in self.arguments}


@dataclass(frozen=True, kw_only=True)
class Context:
    """A call with the workspace its token belongs to."""

    workspace: Workspace
    call: Call
    backend: Any

    def need(self, scope: str) -> None:
        """Refuse unless the app was installed with `scope`."""
        if scope not in self.backend.manifest.scopes:
            provided = ",".join(sorted(self.backend.manifest.scopes))
            raise SlackError("missing_scope", needed=scope, provided=provided)

    def get(self, name: str) -> str:
        """A required argument."""
        value = self.call.arguments.get(name)
        if value in (None, ""):
            raise SlackError("invalid_arguments", response_metadata={"messages": [name]})
        return str(value)

    def channel(self, *, scopes: dict[str, str] | None = None) -> Channel:
        """The channel of the call; one of another workspace does not exist."""
        channel = self.workspace.channels.get(self.get("channel"))
        if channel is None:
            raise SlackError("channel_not_found")
        if scopes:
            self.need(scopes[channel.kind])
        return channel


def check_message(arguments: dict[str, Any]) -> None:
    """Refuse what Slack refuses of a message."""
    text = arguments.get("text") or ""
    if not text and not arguments.get("blocks") and not arguments.get("attachments"):
        raise SlackError("no_text")
    if len(text) > MOST_TEXT:
        raise SlackError("msg_too_long")
    wrong = schema_problems(arguments)
    if wrong:
        messages = [f"[ERROR] {item}" for item in wrong]
        raise SlackError("invalid_blocks", errors=wrong, response_metadata={"messages": messages})
    if all_text(arguments) > ALL_TEXT:
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
    message.text = str(arguments.get("text") or "")
    message.blocks = arguments.get("blocks") or []
    return {"channel": channel.id, "ts": message.ts, "text": message.text}


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
        context.get("filename"), b"", user=context.workspace.bot_user, declared_size=length
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
        if len(file.body) != file.declared_size:
            raise SlackError("file_uploaded_but_inaccessible")
        if file.complete:  # this can be said once
            raise SlackError("file_not_found")
        file.title = item.get("title", file.name)
        files.append(file)
    channel_id = str(arguments.get("channel_id") or "")
    if channel_id:
        channel = context.workspace.channels.get(channel_id)
        if channel is None:
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


def conversations_replies(context: Context) -> dict[str, Any]:
    """The messages of a thread, oldest first, the first page."""
    channel = context.channel(scopes=_HISTORY)
    found = channel.thread(context.get("ts"))
    if not found:
        raise SlackError("thread_not_found")
    limit = min(int(context.call.arguments.get("limit") or PAGE), PAGE)
    shown = [context.backend.message_json(context.workspace, item) for item in found[:limit]]
    return {"messages": shown, "has_more": limit < len(found)}


METHODS: dict[str, Callable[[Context], dict[str, Any]]] = {
    "auth.test": auth_test,
    "chat.postMessage": chat_post_message,
    "chat.postEphemeral": chat_post_ephemeral,
    "chat.update": chat_update,
    "reactions.add": reactions_add,
    "reactions.remove": reactions_remove,
    "views.open": views_open,
    "files.info": files_info,
    "files.getUploadURLExternal": files_get_upload,
    "files.completeUploadExternal": files_complete_upload,
    "conversations.replies": conversations_replies,
}
