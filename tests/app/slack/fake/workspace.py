"""What a fake Slack keeps: workspaces with their people, channels, messages and files."""

from __future__ import annotations

import itertools
import re
import secrets
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.app.slack.fake.harmless import strings

ChannelKind = Literal["channel", "group", "im"]
FileBehaviour = Literal["ok", "busy", "gone", "login", "redirect", "slow", "forbidden"]
TYPED_MOST = 40_000  # Slack cuts the text of a message here
_URL = re.compile(r"https?://[^\s<>|`]+")
_DOMAIN = re.compile(r"(?<![\w./@-])(?:[a-z0-9-]+\.)+(?:com|org|net|io|cn|dev)(?![\w.])")
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_numbers = itertools.count(1)
_stamps = itertools.count(1)
_stamp_lock = threading.Lock()


def new_id(prefix: str) -> str:
    """An identifier as Slack gives them: a letter and ten signs; never given twice."""
    return f"{prefix}{next(_numbers):04d}{secrets.token_hex(3).upper()}"


def new_ts() -> str:
    """A message's identifier: seconds and a number, always later than the last one."""
    with _stamp_lock:
        return f"{int(time.time())}.{next(_stamps):06d}"


def as_typed(text: str) -> str:
    """`text` as Slack hands on what a person typed: signs escaped, addresses made links."""
    escaped = re.sub("[&<>]", lambda match: _ESCAPES[match[0]], text)
    linked = _URL.sub(lambda match: f"<{match[0]}>", escaped)
    parts = re.split(r"(<[^>]*>)", linked)
    for at in range(0, len(parts), 2):
        parts[at] = _DOMAIN.sub(lambda match: f"<http://{match[0]}|{match[0]}>", parts[at])
    return "".join(parts)[:TYPED_MOST]


@dataclass(kw_only=True)
class User:
    """A person or a bot."""

    id: str
    name: str


@dataclass(kw_only=True)
class StoredFile:
    """An uploaded file and how the file host treats a request for it."""

    id: str
    name: str
    body: bytes
    user: str
    team: str
    behaviour: FileBehaviour = "ok"
    redirect: str = ""
    mimetype: str = "text/plain"
    declared_size: int | None = None  # what the message says, where it is not the truth
    title: str = ""
    complete: bool = True  # an upload is until it was shared
    released: bool = False  # a slow file stops after its first byte until this is set

    def as_json(self, host: str) -> dict[str, Any]:
        """The file object of events and `files.info`."""
        address = f"http://{host}/files-pri/{self.team}-{self.id}"
        return {
            "id": self.id,
            "created": int(time.time()),
            "name": self.name,
            "title": self.title or self.name,
            "mimetype": self.mimetype,
            "filetype": self.name.rpartition(".")[2] or "binary",
            "user": self.user,
            "mode": "hosted",
            "is_external": False,
            "file_access": "visible",
            "size": len(self.body) if self.declared_size is None else self.declared_size,
            "url_private": f"{address}/{self.name}",
            "url_private_download": f"{address}/download/{self.name}",
            "permalink": f"http://{host}/files/{self.user}/{self.id}/{self.name}",
        }


@dataclass(kw_only=True)
class Message:
    """A message, its thread and its reactions."""

    ts: str
    channel: str
    user: str
    text: str
    blocks: list[dict[str, Any]] = field(default_factory=list)
    attachments: list[dict[str, Any]] = field(default_factory=list)
    thread_ts: str = ""
    bot_id: str = ""
    files: list[StoredFile] = field(default_factory=list)
    ephemeral_for: str = ""
    via: str = ""  # the method or address it was posted by
    reactions: dict[str, set[str]] = field(default_factory=dict)
    reacted: list[str] = field(default_factory=list)  # every reaction ever added, in order

    @property
    def root(self) -> str:
        """The thread it belongs to."""
        return self.thread_ts or self.ts

    @property
    def shown(self) -> str:
        """All strings of its blocks, in order, one a line."""
        return "\n".join(strings(self.blocks))

    def as_json(self, host: str, team: str) -> dict[str, Any]:
        """The message object of events and `conversations.replies`."""
        found: dict[str, Any] = {
            "type": "message",
            "user": self.user,
            "ts": self.ts,
            "text": self.text,
            "team": team,
        }
        if self.bot_id:
            found |= {"bot_id": self.bot_id, "app_id": "A0TIMEOUTKB"}
        if self.thread_ts:
            found["thread_ts"] = self.thread_ts
        if self.blocks:
            found["blocks"] = self.blocks
        if self.files:
            found["files"] = [file.as_json(host) for file in self.files]
            found["subtype"] = "file_share"
        return found


@dataclass(kw_only=True)
class Channel:
    """A channel, a private one or a direct conversation with the bot."""

    id: str
    name: str
    team: str
    kind: ChannelKind = "channel"
    messages: list[Message] = field(default_factory=list)

    def find(self, ts: str) -> Message | None:
        """The message with that identifier that everyone can see."""
        for message in self.messages:
            if message.ts == ts:
                return message
        return None

    def thread(self, ts: str) -> list[Message]:
        """The messages of a thread that everyone can see, the first one included."""
        return [
            message for message in self.messages if message.root == ts and not message.ephemeral_for
        ]


@dataclass(kw_only=True)
class Workspace:
    """A team that installed the app: its own token, bot user, people and channels."""

    team: str
    domain: str
    bot_token: str
    bot_user: str
    bot_id: str
    users: dict[str, User] = field(default_factory=dict)
    channels: dict[str, Channel] = field(default_factory=dict)
    files: dict[str, StoredFile] = field(default_factory=dict)
    views: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add_user(self, name: str) -> User:
        """The person of that name, new if there is none yet."""
        for user in self.users.values():
            if user.name == name:
                return user
        user = User(id=new_id("U"), name=name)
        self.users[user.id] = user
        return user

    def add_channel(self, name: str, *, kind: ChannelKind = "channel") -> Channel:
        """A new channel with the bot in it."""
        prefix = {"channel": "C", "group": "G", "im": "D"}[kind]
        channel = Channel(id=new_id(prefix), name=name, team=self.team, kind=kind)
        self.channels[channel.id] = channel
        return channel

    def add_file(self, name: str, body: bytes, *, user: str = "ann", **how: Any) -> StoredFile:
        """An uploaded file; `how` holds further fields of it."""
        owner = self.bot_user if user == self.bot_user else self.add_user(user).id
        file = StoredFile(id=new_id("F"), name=name, body=body, user=owner, team=self.team, **how)
        self.files[file.id] = file
        return file


def new_workspace(domain: str) -> Workspace:
    """A workspace with the app installed and nobody in it but the bot."""
    team = new_id("T")
    bot_user = new_id("U")
    digits = f"{next(_numbers):012d}"
    workspace = Workspace(
        team=team,
        domain=domain,
        bot_token=f"xoxb-{digits}-{digits}-{secrets.token_hex(12)}",
        bot_user=bot_user,
        bot_id=new_id("B"),
    )
    workspace.users[bot_user] = User(id=bot_user, name="timeout-kb")
    return workspace
