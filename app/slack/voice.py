"""Saying things in Slack: post, edit, attach, react; with a way out where the bot is no member."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

import aiohttp
import structlog
from slack_sdk.errors import SlackApiError, SlackClientError

from app.slack.types import Message, Place, TextFile
from app.slack.workspaces import SlackError, reason, unreachable

if TYPE_CHECKING:
    from app.slack.workspaces import Workspace, Workspaces

# Slack's words for "the bot may not write here".
OUTSIDE = frozenset(
    {
        "not_in_channel",
        "user_not_in_channel",
        "channel_not_found",
        "is_archived",
        "restricted_action",
    }
)
# Blocks Slack will not take: the text alone still tells the verdict.
UNFIT = frozenset(
    {"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long"}
)
# Nothing in a message becomes a name, a channel or a preview by itself.
NEVER = {"unfurl_links": False, "unfurl_media": False}
UNREAD = {"link_names": False, "parse": "none"}
FILE_NAME = "diagnosis.txt"
FILE_TODO = "the app needs the scope files:write: add it and install again, or set a public URL"
REACTION_S = 10.0  # a mark is not worth a longer wait: the answer stands behind it
REACTION_FINE = frozenset({"already_reacted", "no_reaction", "message_not_found"})


class Voice:
    """Speaks in one place of one workspace."""

    def __init__(self, workspaces: Workspaces, workspace: Workspace, place: Place) -> None:
        self._workspaces = workspaces
        self._client = workspace.client
        self._place = place
        self._log = structlog.get_logger().bind(team=place.team, channel=place.channel)

    @property
    def place(self) -> Place:
        """Where it speaks."""
        return self._place

    async def say(self, message: Message) -> str:
        """Post a message; its ``ts``, or an empty string where it cannot be edited later.

        Raises:
            SlackError: Slack refused it.
        """
        place = self._place
        if place.only_for and place.response_url and not place.thread:
            return await self._respond(message)  # works where the bot is no member, too
        thread = {"thread_ts": place.thread} if place.thread else {}
        try:
            if place.only_for:
                await self._call("chat_postEphemeral", message, user=place.only_for, **thread)
                return ""
            told = await self._call("chat_postMessage", message, mrkdwn=False, **NEVER, **thread)
        except SlackApiError as error:
            if reason(error) in OUTSIDE and place.response_url:
                return await self._respond(message)
            raise _refused(error) from None
        return str(told.get("ts") or "")

    async def edit(self, ts: str, message: Message) -> str:
        """Put `message` in the place of the one posted as `ts`; posts it where that is gone.

        Returns its ``ts``, an empty string where it cannot be edited later.

        Raises:
            SlackError: Slack refused it.
        """
        if not ts:
            return await self.say(message)
        try:
            await self._call("chat_update", message, ts=ts)
        except SlackApiError as error:
            if reason(error) not in ("message_not_found", "cant_update_message"):
                raise _refused(error) from None
            return await self.say(message)
        return ts

    async def attach(self, file: TextFile, *, thread: str) -> None:
        """Put a file beside what was said; one that cannot be put costs a log line."""
        try:
            # The SDK asks for an address, sends the file there and shares it; the older way,
            # files.upload, is closed: https://docs.slack.dev/messaging/working-with-files
            await self._client.files_upload_v2(
                filename=FILE_NAME,
                title=file.title,
                content=file.text.encode(),
                channel=self._place.channel,
                thread_ts=thread or None,
            )
        except SlackApiError as error:
            self._log.warning("slack file refused", error=reason(error), todo=FILE_TODO)
        except (SlackClientError, aiohttp.ClientError, TimeoutError, OSError) as error:
            self._log.warning("slack file lost", error=type(error).__name__)

    async def react(self, ts: str, name: str, *, instead_of: str = "") -> None:
        """Put a reaction on a message; one that cannot be put costs nothing but a log line."""
        if not ts:
            return
        where = {"channel": self._place.channel, "timestamp": ts}
        if instead_of:
            await self._quietly(self._client.reactions_remove(name=instead_of, **where))
        await self._quietly(self._client.reactions_add(name=name, **where))

    async def _quietly(self, call: Awaitable[Any]) -> None:
        try:
            async with asyncio.timeout(REACTION_S):
                await call
        except SlackApiError as error:
            if reason(error) not in REACTION_FINE:
                self._log.info("slack reaction refused", error=reason(error))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._log.info("slack reaction lost", error=type(error).__name__)

    async def _call(self, method: str, message: Message, **arguments: Any) -> Any:  # noqa: ANN401
        """Call Slack with a message; where it will not take the blocks, with the text alone."""
        call = getattr(self._client, method)
        told = {"channel": self._place.channel, "text": message.text, **UNREAD, **arguments}
        try:
            try:
                return await call(blocks=message.blocks, **told)
            except SlackApiError as error:
                if reason(error) not in UNFIT:
                    raise
                self._log.error("slack refused the blocks", error=reason(error))
                return await call(blocks=[], **told)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise unreachable(error) from None

    async def _respond(self, message: Message) -> str:
        """Answer through the interaction's own address, for the person alone."""
        webhook = self._workspaces.webhook(self._place.response_url)
        try:
            answer = await webhook.send(
                text=message.text,
                blocks=message.blocks,
                response_type="ephemeral",
                replace_original=False,
                **NEVER,
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise unreachable(error) from None
        if answer.status_code != 200:
            raise SlackError(
                f"Slack refused an answer with status {answer.status_code}",
                todo="ask again: such an address lives for half an hour",
            )
        return ""


def _refused(error: SlackApiError) -> SlackError:
    return SlackError(
        f"Slack refused a message: {reason(error)}",
        todo="invite the bot to the channel, and check its scopes in data/slack/manifest.yaml",
    )
