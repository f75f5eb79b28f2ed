"""An answer posted into the team's channel from a face that is not Slack."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from slack_sdk.errors import SlackApiError

from app.slack.blocks.primitives import escaped
from app.slack.delivery import NO_NAMES, NO_PREVIEWS
from app.slack.workspaces import SlackError, Workspaces, reason, slack_call, tokens_of

if TYPE_CHECKING:
    from kb.settings import Settings

POST_S = 20.0  # somebody waits at the page


def post_text(settings: Settings, text: str) -> None:
    """Post plain text into the channel of the settings; nothing in it names anybody or links.

    Raises:
        SlackError: Slack cannot be reached, or does not take it.
    """
    asyncio.run(_post(settings, text))


async def _post(settings: Settings, text: str) -> None:
    workspaces = Workspaces(settings)
    try:
        client = workspaces.new_client(tokens_of(settings.slack_bot_token)[0])
        call = client.chat_postMessage(
            channel=settings.slack_channel,
            text=escaped(text),
            mrkdwn=False,
            **NO_PREVIEWS,
            **NO_NAMES,
        )
        await slack_call(call, limit_s=POST_S)
    except SlackApiError as error:
        raise SlackError(
            f"Slack did not take it ({reason(error)})",
            todo="invite the bot into the channel; check TIMEOUT_KB_SLACK_CHANNEL",
        ) from None
    finally:
        await workspaces.close()
