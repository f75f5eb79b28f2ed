"""Putting answers into Slack: post, edit, attach, react; another way where it is no member."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog
from slack_sdk.errors import SlackApiError, SlackClientError

from app.slack.workspaces import SlackError, reason, slack_call

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from slack_sdk.web.async_slack_response import AsyncSlackResponse

    from app.slack.blocks.primitives import SlackMessage
    from app.slack.requests import Destination
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
# ... and for "there is no such message to edit".
GONE = frozenset({"message_not_found", "cant_update_message"})
# Blocks Slack will not take: the text alone still tells the verdict.
UNFIT = frozenset(
    {"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long", "msg_too_long"}
)
# Nothing in a message becomes a name, a channel or a preview by itself.
NO_PREVIEWS = {"unfurl_links": False, "unfurl_media": False}
NO_NAMES = {"link_names": False, "parse": "none"}
REPORT_NAME = "diagnosis.txt"
FILE_TODO = "the app needs the scope files:write: add it and install again, or set a public URL"
REACTION_S = 10.0  # a mark is not worth a longer wait: the answer stands behind it
HARMLESS_REFUSALS = frozenset({"already_reacted", "no_reaction", "message_not_found"})


class Poster:
    """Posts, edits, attaches and reacts at one destination in one workspace."""

    def __init__(
        self, workspaces: Workspaces, workspace: Workspace, destination: Destination
    ) -> None:
        self.destination = destination
        self._workspaces = workspaces
        self._client = workspace.client
        self._log = structlog.get_logger().bind(team=destination.team, channel=destination.channel)

    async def post(self, message: SlackMessage) -> str:
        """Post a message; its ``ts``, or an empty string where it cannot be edited later.

        Raises:
            SlackError: Slack refused it.
        """
        to = self.destination
        if to.only_for and to.response_url and not to.thread:
            return await self._respond(message)  # works where the bot is no member, too
        more: dict[str, object] = {"mrkdwn": False, **NO_PREVIEWS}
        if to.only_for:
            more = {"user": to.only_for}
        if to.thread:
            more["thread_ts"] = to.thread
        method = "chat_postEphemeral" if to.only_for else "chat_postMessage"
        outside = OUTSIDE if to.response_url else frozenset()
        posted = await self._send(method, message, unless=outside, **more)
        return await self._respond(message) if posted is None else str(posted.get("ts") or "")

    async def edit(self, ts: str, message: SlackMessage) -> str:
        """Put `message` in the place of the one posted as `ts`; posts it where that is gone.

        Returns its ``ts``, an empty string where it cannot be edited later.

        Raises:
            SlackError: Slack refused it.
        """
        if not ts or await self._send("chat_update", message, unless=GONE, ts=ts) is None:
            return await self.post(message)
        return ts

    async def update(self, ts: str, message: SlackMessage) -> bool:
        """Put `message` in the place of the one posted as `ts`; whether it stands there now.

        Where that one is gone nothing is posted, and where Slack will not take the new blocks the
        old ones stay.

        Raises:
            SlackError: Slack refused it for another reason.
        """
        unless = GONE | UNFIT
        return await self._send("chat_update", message, unless=unless, ts=ts) is not None

    async def attach(self, text: str, *, title: str, thread: str) -> None:
        """Put a text file beside the answer; one that cannot be put costs a log line."""
        upload = self._client.files_upload_v2(
            filename=REPORT_NAME,
            title=title,
            content=text.encode(),
            channel=self.destination.channel,
            thread_ts=thread or None,
        )
        await self._optional(upload, "file", todo=FILE_TODO)

    async def react(self, ts: str, name: str, *, instead_of: str = "") -> None:
        """Put a reaction on a message; one that cannot be put costs a log line."""
        if not ts:
            return
        client, where = self._client, {"channel": self.destination.channel, "timestamp": ts}
        if instead_of:
            removed = client.reactions_remove(name=instead_of, **where)
            await self._optional(removed, "reaction", limit_s=REACTION_S)
        added = client.reactions_add(name=name, **where)
        await self._optional(added, "reaction", limit_s=REACTION_S)

    async def _optional(
        self, call: Awaitable[Any], what: str, *, limit_s: float | None = None, **hint: str
    ) -> None:
        """Make a call whose refusal costs a log line only, with the `hint` for the admin."""
        try:
            await slack_call(call, limit_s=limit_s)
        except SlackApiError as error:
            if reason(error) not in HARMLESS_REFUSALS:
                self._log.warning(f"slack {what} refused", error=reason(error), **hint)
        except (SlackError, SlackClientError) as error:
            self._log.warning(f"slack {what} lost", error=str(error))

    async def _send(
        self, method: str, message: SlackMessage, *, unless: frozenset[str], **more: object
    ) -> AsyncSlackResponse | None:
        """Call Slack with a message; where it will not take the blocks, with the text alone.

        None where it refuses for one of the reasons in `unless`.

        Raises:
            SlackError: it refuses for another reason.
        """
        call: Callable[..., Awaitable[AsyncSlackResponse]] = getattr(self._client, method)
        arguments = {"channel": self.destination.channel, "text": message.text, **NO_NAMES, **more}
        for blocks in (message.blocks, []):
            try:
                return await slack_call(call(blocks=blocks, **arguments))
            except SlackApiError as error:
                why = reason(error)
            if why in unless:
                return None
            if why not in UNFIT:
                break
            self._log.error("slack refused the blocks", error=why)
        raise SlackError(
            f"Slack refused a message: {why}",
            todo="invite the bot to the channel, and check its scopes in data/slack/manifest.yaml",
        )

    async def _respond(self, message: SlackMessage) -> str:
        """Answer through the interaction's own address, for the person alone."""
        webhook = self._workspaces.webhook(self.destination.response_url)
        response = await slack_call(
            webhook.send(
                text=message.text,
                blocks=message.blocks,
                response_type="ephemeral",
                replace_original=False,
                **NO_PREVIEWS,
            )
        )
        if response.status_code != 200:
            raise SlackError(
                f"Slack refused an answer with status {response.status_code}",
                todo="ask again: such an address lives for half an hour",
            )
        return ""
