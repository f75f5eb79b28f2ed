"""What Slack sends, as values: messages, commands and clicks, and the settings of a channel.

Text is read as its author wrote it: Slack's escapes undone, links as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from kb.errors import InputError
from kb.types.vocabulary import Language

Origin = Literal["mention", "direct", "thread", "auto", "shortcut", "command"]

# Subtypes a person's message may have; the others are edits, joins, deletions, bots.
WRITTEN = frozenset({None, "", "file_share", "thread_broadcast", "me_message"})
OPTION = "answer_"  # action of an option of a question, its number behind
MAX_VALUE = 2000  # characters of a button's value
MAX_PARTS = 200  # blocks and attachments of a message that are read
# Slack escapes what people write, so a bare <...> of these forms is its own markup. Other angle
# brackets come from bots that do not escape (std::vector<int>) and stay.
_MARKUP = re.compile(
    r"<(?P<mark>[@#!]|(?:https?|ftp|mailto|tel|slack):)(?P<body>[^<>|\n]*)(?:\|(?P<label>[^<>\n]*))?>"
)
_FENCE = re.compile(r"^[ \t]*```[a-z]*[ \t]*$|```", re.MULTILINE)
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&amp;": "&"}
_ENTITY = re.compile("|".join(_ENTITIES))


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackFile:
    """A file of a message; `url` is where Slack keeps its content, empty if that is to be asked."""

    id: str
    name: str
    size: int = 0
    media_type: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
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


class DiagnosisRef(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename={"saved_id": "kept", "named_cause": "named"},  # as messages of earlier days have it
):
    """What a button carries: the saved diagnosis, its language, the conversation it belongs to.

    `cause` is the one a person says it was, `named_cause` the one the answer named; empty ones
    are the likeliest of the diagnosis. `incident` is the digest of what was read, whatever was
    said of it since.
    """

    saved_id: str
    language: Language
    conversation: str = ""
    cause: str = ""
    named_cause: str = ""
    incident: str = ""

    def encode(self) -> str:
        """As a button's value."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def decode(cls, value: str) -> DiagnosisRef:
        """Out of a button's value.

        Raises:
            InputError: the value is none of ours.
        """
        try:
            return msgspec.json.decode(value[:MAX_VALUE].encode(), type=cls)
        except msgspec.DecodeError as error:
            raise InputError(
                "this button belongs to an older message",
                todo="diagnose the log again",
                reason="slack_button",
            ) from error


def conversation_id(team: str, channel: str, thread: str) -> str:
    """The chat engine's id of a thread; direct messages outside of threads are one thread."""
    return f"slack:{team}:{channel}:{thread or 'direct'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlackRequest:
    """Somebody asks something: text as written (Slack's escapes undone), files, where and how.

    `ts` is the message asked about, empty for a command; `key` tells this delivery from others.
    """

    team: str
    channel: str
    user: str
    origin: Origin
    text: str
    key: str = ""
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

    def destination(self, *, private: bool = False) -> Destination:
        """Where the answer goes: to everybody, or to the person alone."""
        return Destination(
            team=self.team,
            channel=self.channel,
            # Slack shows what is for one person in a thread only where the thread has begun.
            thread=self.thread if private else self.root,
            only_for=self.user if private else "",
            response_url=self.response_url,
        )


# --- texts ---------------------------------------------------------------------------------------


def unescape(text: str) -> str:
    """`text` of a Slack message as its author wrote it: one level of escapes undone, no more."""
    # Markup first: what was escaped must not turn into markup.
    return _ENTITY.sub(lambda match: _ENTITIES[match[0]], _MARKUP.sub(_written, text))


def _written(match: re.Match[str]) -> str:
    mark, body, label = match["mark"], match["body"], match["label"]
    if mark in ("@", "#"):
        return f"{mark}{label or body}"
    if mark == "!":
        return label or f"@{body.partition('^')[0]}"
    address = mark + body
    if label is None:
        return address.removeprefix("mailto:").removeprefix("tel:")
    # "train.py" and "10.0.0.1:80" become links whose label is what was written.
    return label if label in address else f"{label} ({address})"


def without_fences(text: str) -> str:
    """`text` without the marks of code blocks: the lines between them are the log."""
    return _FENCE.sub("", text).strip("\n")


def message_text(message: Mapping[str, Any]) -> str:
    """All text of a message as written; bots put theirs into blocks and attachments."""
    own = unescape(_string(message, "text"))
    parts = [own] if own.strip() else _block_texts(message)
    for attachment in _dicts(message, "attachments"):
        texts = [_string(attachment, name) for name in ("pretext", "title", "text")]
        texts += [_string(field, "value") for field in _dicts(attachment, "fields")]
        shown = [unescape(text) for text in texts if text] + _block_texts(attachment)
        parts += shown or [unescape(_string(attachment, "fallback"))]
    return without_fences("\n".join(part for part in parts if part))


def _block_texts(holder: Mapping[str, Any]) -> list[str]:
    """Texts in the blocks of a message or attachment, in reading order."""
    texts: list[str] = []
    for block in _dicts(holder, "blocks"):
        if block.get("type") == "rich_text":
            texts.append("".join(_rich_text(block)))
        items = [block.get("text"), *_dicts(block, "fields"), *_dicts(block, "elements")]
        texts += [
            unescape(_string(item, "text"))
            for item in items
            if _string(item, "type") in ("mrkdwn", "plain_text")
        ]
    return texts


def _rich_text(holder: Mapping[str, Any]) -> Iterator[str]:
    for element in _dicts(holder, "elements"):
        kind = element.get("type")
        if kind == "text":
            yield unescape(_string(element, "text"))
        elif kind == "link":
            yield _string(element, "text") or _string(element, "url")
        elif kind == "user":
            yield f"@{_string(element, 'user_id')}"
        else:
            yield from _rich_text(element)
            yield "\n"


def _dicts(holder: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The objects in a list of a payload; none where there is no list."""
    items = holder.get(name)
    items = items[:MAX_PARTS] if isinstance(items, list) else []
    return [item for item in items if isinstance(item, dict)]


def _string(holder: object, *path: str) -> str:
    """The text at a path in a payload; empty where there is none."""
    for name in path:
        holder = holder.get(name) if isinstance(holder, Mapping) else None
    return str(holder or "")


# --- messages, commands, clicks ------------------------------------------------------------------


def of_message(
    message: Mapping[str, Any], *, team: str, channel: str, bot_user: str, origin: Origin
) -> SlackRequest:
    """What a message asks, the bot's own name left out."""
    text = message_text(message)
    if bot_user:
        text = re.sub(rf"@{re.escape(bot_user)}\b[:,]?[ \t]*", "", text)
    ts = _string(message, "ts")
    return SlackRequest(
        team=team,
        channel=channel,
        user=_string(message, "user"),
        origin=origin,
        text=text.strip("\n") if text.strip() else "",
        # One message may come as two events (a mention, a message) with ids of their own.
        key=f"message:{team}:{channel}:{ts}",
        files=message_files(message),
        ts=ts,
        thread=_string(message, "thread_ts"),
    )


def of_command(body: Mapping[str, Any], *, team: str) -> SlackRequest:
    """What `/timeout` with a text asks."""
    return SlackRequest(
        team=team,
        channel=_string(body, "channel_id"),
        user=_string(body, "user_id"),
        origin="command",
        text=without_fences(unescape(_string(body, "text"))),
        key=f"command:{team}:{body.get('trigger_id')}",
        response_url=_string(body, "response_url"),
    )


def of_shortcut(body: Mapping[str, Any], *, team: str) -> SlackRequest:
    """What "Diagnose this" in the menu of a message asks."""
    message = {"ts": body.get("message_ts"), **(body.get("message") or {})}
    channel = _string(body, "channel", "id")
    about = of_message(message, team=team, channel=channel, bot_user="", origin="shortcut")
    return replace(
        about,
        user=_string(body, "user", "id"),
        key=f"shortcut:{team}:{body.get('trigger_id')}",
        response_url=_string(body, "response_url"),
    )


def message_files(message: Mapping[str, Any]) -> tuple[SlackFile, ...]:
    """The files of a message; those that were deleted or hidden are left out."""
    return tuple(
        slack_file(item)
        for item in _dicts(message, "files")
        if item.get("mode") not in ("tombstone", "hidden_by_limit")
    )


def slack_file(item: Mapping[str, Any]) -> SlackFile:
    """A file object of Slack's."""
    return SlackFile(
        id=_string(item, "id"),
        name=_string(item, "name") or _string(item, "title") or "file.txt",
        size=int(item.get("size") or 0),
        media_type=_string(item, "mimetype"),
        url=_string(item, "url_private_download") or _string(item, "url_private"),
    )


def event_origin(event: Mapping[str, Any], bot_user: str) -> Origin | None:
    """How a message of an event asks; None where it is not for the bot, or comes as a mention too.

    What a program wrote is never for the bot: answering it makes loops.
    """
    text = _string(event, "text")
    if from_bot(event):
        return None
    if event.get("type") == "app_mention":
        return "mention"
    if event.get("subtype") not in WRITTEN:
        return None
    if event.get("channel_type") == "im":
        return "direct"
    if bot_user and f"<@{bot_user}" in text:
        return None
    if event.get("thread_ts") in (None, "", event.get("ts")):
        return "auto"
    return None if re.search(r"<@[UW]", text) else "thread"  # two people talk to each other


def from_bot(message: Mapping[str, Any]) -> bool:
    """Whether a program wrote the message."""
    return bool(
        message.get("bot_id")
        or message.get("bot_profile")
        or message.get("subtype") == "bot_message"
        or message.get("user") in (None, "", "USLACKBOT")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ButtonClick:
    """A click on a button or menu of an answer: on what, with which value, by whom.

    Attributes:
        action: the action id of the element.
        value: what the button or the menu's block carries.
        option: the value of the option chosen in a menu.
        destination: where an answer for all goes.
        thread: the one the clicked message stands in, empty for the channel itself.
        trigger: what opens a form, within three seconds.
        ephemeral: whether only the person saw that message.
        key: tells this click from others.
    """

    action: str
    value: str
    option: str
    destination: Destination
    thread: str
    user: str
    trigger: str
    ephemeral: bool
    key: str

    @property
    def ref(self) -> DiagnosisRef:
        """The diagnosis it belongs to.

        Raises:
            InputError: the value is none of ours.
        """
        return DiagnosisRef.decode(self.value)

    @property
    def private(self) -> Destination:
        """Where an answer for the person alone goes: Slack shows it in a begun thread only."""
        return replace(self.destination, only_for=self.user, thread=self.thread)

    @property
    def language(self) -> Language:
        """The language of what was clicked on."""
        try:
            return self.ref.language
        except InputError:
            return "en"


def of_click(body: Mapping[str, Any]) -> ButtonClick:
    """The click in a payload of Slack's."""
    action = body["actions"][0]
    team, user = _string(body, "team", "id"), _string(body, "user", "id")
    channel = _string(body, "channel", "id") or _string(body, "container", "channel_id")
    ts = _string(body, "message", "ts") or _string(body, "container", "message_ts")
    thread = _string(body, "message", "thread_ts") or _string(body, "container", "thread_ts")
    ephemeral = bool(_string(body, "container", "is_ephemeral"))
    option, name = _string(action, "selected_option", "value"), _string(action, "action_id")
    # A direct message needs no thread; elsewhere what a click brings belongs under its message.
    under = "" if ephemeral or channel.startswith("D") else ts
    return ButtonClick(
        action=name,
        value=_string(action, "block_id" if option else "value"),
        option=option,
        destination=Destination(
            team=team,
            channel=channel,
            thread=thread or under,
            response_url=_string(body, "response_url"),
        ),
        thread=thread,
        user=user,
        trigger=_string(body, "trigger_id"),
        ephemeral=ephemeral,
        key=f"click:{team}:{user}:{name}:{action.get('action_ts')}:{ts}",
    )
