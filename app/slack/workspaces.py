"""The workspaces the bot is installed in: a token each, checked at start, and calls with it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import aiohttp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.builtin_async_handlers import (
    AsyncConnectionErrorRetryHandler,
    AsyncRateLimitErrorRetryHandler,
    AsyncServerErrorRetryHandler,
)
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook.async_client import AsyncWebhookClient

from kb.errors import KBError, SettingsError

if TYPE_CHECKING:
    from kb.settings import Settings

T = TypeVar("T")

APP_PAGE = "the app's page at api.slack.com/apps"
# Settings the bot needs: what their tokens begin with, and where to get them.
TOKENS = {
    "SLACK_BOT_TOKEN": ("xoxb-", f"copy it from {APP_PAGE}, 'OAuth & Permissions' (xoxb-…)"),
    "SLACK_APP_TOKEN": (
        "xapp-",
        f"make it on {APP_PAGE}, 'App-Level Tokens', with the scope connections:write (xapp-…)",
    ),
    "SLACK_SIGNING_SECRET": (
        "",
        f"copy it from {APP_PAGE}, 'Basic Information', 'Signing Secret'",
    ),
}
CALL_TIMEOUT_S = 30  # for one attempt
MAX_WAIT_S = 300.0  # for a call with all its waits: after five minutes nobody waits any longer
RATE_RETRIES = 60  # Slack lets one message a second into a channel: bursts wait their turn
CONNECTIONS = 20


class SlackError(KBError):
    """Slack cannot be reached, or refused a call."""

    code = "slack"
    http_status = 502


def reason(error: SlackApiError) -> str:
    """Slack's word for why it refused a call."""
    get = getattr(error.response, "get", None)  # a broken answer has no fields
    code = get("error") if callable(get) else None
    return str(code or "no reason given")


async def slack_call(call: Awaitable[T], *, limit_s: float | None = None) -> T:
    """What a call of Slack gives, its retries and waits included.

    Raises:
        SlackError: Slack cannot be reached, or has the caller wait for more than `limit_s`
            seconds in all; by default five minutes.
        SlackApiError: Slack refuses the call.
    """
    try:
        async with asyncio.timeout(limit_s or MAX_WAIT_S):
            return await call
    except (aiohttp.ClientError, TimeoutError, OSError, UnicodeError) as error:
        # UnicodeError: the name of a host in a delivery is none.
        # Its own text is left out, it may hold an address with a key.
        raise SlackError(
            f"Slack cannot be reached ({type(error).__name__})",
            todo="check network, proxy (HTTPS_PROXY) and TIMEOUT_KB_SLACK_API_URL",
        ) from None


def slack_logger(level: str) -> logging.Logger:
    """The logger of slack-bolt, slack-sdk and their connections.

    Debug output of the SDK holds whole messages: it is never on, whatever `level` says.
    """
    logger = logging.getLogger("timeout_kb.slack")
    logger.setLevel(max(logging.INFO, logging.getLevelName(level.upper())))
    return logger


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """One installation: who the bot is there, and a client that speaks as it."""

    identity: AuthorizeResult
    client: AsyncWebClient


def check_settings(settings: Settings, *, mode: str) -> None:
    """Check that the tokens of `mode` (``socket`` or ``http``) are there.

    Raises:
        SettingsError: one is missing or of another kind; the key is named, never the value.
    """
    second = "SLACK_APP_TOKEN" if mode == "socket" else "SLACK_SIGNING_SECRET"
    for name in ("SLACK_BOT_TOKEN", second):
        start, where = TOKENS[name]
        tokens = tokens_of(getattr(settings, name.lower()))
        if not tokens:
            raise SettingsError(f"TIMEOUT_KB_{name} is not set", todo=where)
        if not all(token.startswith(start) for token in tokens):
            raise SettingsError(f"TIMEOUT_KB_{name} does not start with {start}", todo=where)


def tokens_of(value: str) -> tuple[str, ...]:
    """The tokens of several workspaces, commas between them."""
    return tuple(token.strip() for token in value.split(",") if token.strip())


class Workspaces:
    """Every workspace by team id; made and opened once, on the event loop that uses it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._logger = slack_logger(settings.log_level)
        self._by_team: dict[str, Workspace] = {}
        self._opening = asyncio.Lock()
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=CALL_TIMEOUT_S),
            connector=aiohttp.TCPConnector(limit=CONNECTIONS),
        )

    async def open(self) -> None:
        """Ask Slack who the bot is in each workspace; does nothing when that is known.

        Raises:
            SettingsError: Slack refuses a token.
            SlackError: Slack cannot be reached.
        """
        async with self._opening:
            if not self._by_team:
                tokens = tokens_of(self._settings.slack_bot_token)
                opened = [await self._open(n, token) for n, token in enumerate(tokens, 1)]
                self._by_team = {str(one.identity.team_id): one for one in opened}

    async def _open(self, number: int, token: str) -> Workspace:
        client = self.new_client(token)
        response = await _checked(client.auth_test(), "SLACK_BOT_TOKEN", f"token {number} of ")
        identity = AuthorizeResult.from_auth_test_response(
            bot_token=token, auth_test_response=response
        )
        return Workspace(identity=identity, client=client)

    async def check_app_token(self) -> None:
        """Ask Slack whether the app-level token opens a connection.

        Raises:
            SettingsError: it does not.
            SlackError: Slack cannot be reached.
        """
        token = self._settings.slack_app_token.strip()
        call = self.new_client().apps_connections_open(app_token=token)
        await _checked(call, "SLACK_APP_TOKEN")

    def new_client(self, token: str | None = None) -> AsyncWebClient:
        """A client that shares connections and retries."""
        return AsyncWebClient(token=token, base_url=self._settings.slack_api_url, **self._shared())

    def webhook(self, url: str) -> AsyncWebhookClient:
        """What answers through an interaction's own address."""
        return AsyncWebhookClient(url, **self._shared())

    def _shared(self) -> dict[str, Any]:
        """What all clients have; a retry handler counts in each call's own state."""
        return {
            "timeout": CALL_TIMEOUT_S,
            "session": self._session,
            "logger": self._logger,
            "retry_handlers": [
                AsyncConnectionErrorRetryHandler(max_retry_count=1),
                AsyncServerErrorRetryHandler(max_retry_count=1),
                AsyncRateLimitErrorRetryHandler(max_retry_count=RATE_RETRIES),
            ],
        }

    def __iter__(self) -> Iterator[Workspace]:
        return iter(self._by_team.values())

    def find(self, team: str | None, enterprise: str | None = None) -> Workspace | None:
        """The workspace of a team; an organisation-wide installation is found by its enterprise."""
        workspace = self._by_team.get(team or "")
        if workspace is None and enterprise:
            ours = (one for one in self if one.identity.enterprise_id == enterprise)
            workspace = next(ours, None)
            if workspace is not None and team:
                self._by_team[team] = workspace
        return workspace

    async def authorize(
        self, enterprise_id: str | None, team_id: str | None
    ) -> AuthorizeResult | None:
        """For slack-bolt: who the bot is where an event came from, None where it is unknown."""
        await self.open()
        workspace = self.find(team_id, enterprise_id)
        return workspace and workspace.identity

    async def close(self) -> None:
        """Close the connections."""
        await self._session.close()


async def _checked(call: Awaitable[Any], name: str, which: str = "") -> Any:  # noqa: ANN401
    """What a call with a token of the setting `name` gives.

    Raises:
        SettingsError: Slack refuses the token.
    """
    try:
        return await slack_call(call)
    except SlackApiError as error:
        what = f"Slack refuses {which}TIMEOUT_KB_{name}: {reason(error)}"
        raise SettingsError(what, todo=TOKENS[name][1]) from None
