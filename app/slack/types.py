"""The values of the Slack face: who asks what, and where the answer goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from kb.types import Language

Origin = Literal["mention", "direct", "thread", "auto", "shortcut", "command"]
Blocks = list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackFile:
    """A file of a message; `url` is where Slack keeps its content, empty if that is to be asked."""

    id: str
    name: str
    size: int = 0
    kind: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an answer goes.

    `thread` is the first message of the thread, empty for the channel itself. With
    `response_url` Slack takes an answer even where the bot is no member. `only_for` is the user
    who alone shall see it, empty for everybody.
    """

    team: str
    channel: str
    thread: str = ""
    only_for: str = ""
    response_url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Somebody asks something: text as written (Slack's escapes undone), files, where and how.

    `ts` is the message asked about, empty for a command.
    """

    team: str
    channel: str
    user: str
    origin: Origin
    text: str
    files: tuple[SlackFile, ...] = ()
    ts: str = ""
    thread: str = ""
    response_url: str = ""

    @property
    def root(self) -> str:
        """The first message of the thread the answer goes to; direct messages need no thread."""
        return self.thread or ("" if self.origin == "direct" else self.ts)

    @property
    def conversation(self) -> str:
        """The conversation this belongs to: that of the thread, or of the direct messages."""
        return conversation_id(self.team, self.channel, self.root)


@dataclass(frozen=True, slots=True, kw_only=True)
class Handle:
    """What a button carries: the kept diagnosis, its language, the conversation it belongs to.

    `cause` is the one a person says it was, `named` the one the answer named; empty ones are the
    likeliest of the diagnosis.
    """

    kept: str
    language: Language
    conversation: str = ""
    cause: str = ""
    named: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message to post: blocks, and the text that stands for them in a notification."""

    text: str
    blocks: Blocks


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFile:
    """A file to put beside a message, under the title people see."""

    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelSettings:
    """What people set for a channel.

    Attributes:
        auto: diagnose messages that look like a timeout without being asked.
        language: of the answers; empty for that of the message.
        ephemeral: only who asked sees the answer.
        quiet: say nothing where the evidence does not decide.
    """

    auto: bool = False
    language: Literal["", "zh", "en"] = ""
    ephemeral: bool = False
    quiet: bool = False


def conversation_id(team: str, channel: str, thread: str) -> str:
    """The chat engine's id of a thread; direct messages outside of threads are one thread."""
    return f"slack:{team}:{channel}:{thread or 'direct'}"
