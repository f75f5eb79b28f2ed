"""The workspaces the bot is installed in: a token each, checked at start, and calls with it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import aiohttp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.errors import SlackApiError
from slack_sdk.http_retry.async_handler import AsyncRetryHandler
from slack_sdk.http_retry.builtin_async_handlers import (
    AsyncConnectionErrorRetryHandler,
    AsyncRateLimitErrorRetryHandler,
    AsyncServerErrorRetryHandler,
)
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook.async_client import AsyncWebhookClient

from app.slack import patience
from app.slack.logs import slack_logger
from kb.errors import KBError, SettingsError

if TYPE_CHECKING:
    from slack_sdk.http_retry.state import RetryState

    from kb.settings import Settings

FROM_OAUTH = "copy it from the app's page at api.slack.com/apps, 'OAuth & Permissions' (xoxb-…)"
FROM_APP_LEVEL = (
    "make it on the app's page at api.slack.com/apps, 'Basic Information', 'App-Level Tokens', "
    "with the scope connections:write (xapp-…)"
)
FROM_BASICS = (
    "copy it from the app's page at api.slack.com/apps, 'Basic Information', 'Signing Secret'"
)
CALL_TIMEOUT_S = 30
RATE_RETRIES = 4  # Slack lets one message a second into a channel: bursts wait their turn
CONNECTIONS = 20
WAITED = "rate_limited_s"  # in the state of a call: what it was told to wait so far


class SlackError(KBError):
    """Slack cannot be reached, or refused a call."""

    code = "slack"
    http_status = 502


def reason(error: SlackApiError) -> str:
    """Slack's word for why it refused a call."""
    get = getattr(error.response, "get", None)  # a broken answer has no fields
    told = get("error") if callable(get) else None
    return str(told or "no reason given")


def unreachable(error: Exception) -> SlackError:
    """The failure of a connection; its own text is left out, it may hold an address with a key."""
    return SlackError(
        f"Slack cannot be reached ({type(error).__name__})",
        todo="check network, proxy (HTTPS_PROXY) and TIMEOUT_KB_SLACK_API_URL",
    )


class RateLimited(AsyncRateLimitErrorRetryHandler):  # type: ignore[misc]
    """Waits as long as Slack says (Retry-After); a call that waited too long in all is given up."""

    def __init__(self, *, wait: Callable[[float], Awaitable[None]] = patience.wait) -> None:
        super().__init__(max_retry_count=RATE_RETRIES)
        self._wait = wait

    async def _can_retry_async(
        self,
        *,
        state: RetryState,
        response: Any = None,  # noqa: ANN401 - the SDK's own type
        **others: Any,  # noqa: ANN401
    ) -> bool:
        limited = await super()._can_retry_async(state=state, response=response, **others)
        return bool(limited) and _waited_s(state) + _asked_s(response) <= patience.MAX_WAIT_S

    async def prepare_for_next_attempt_async(
        self,
        *,
        state: RetryState,
        response: Any = None,  # noqa: ANN401 - the SDK's own type
        **_others: Any,  # noqa: ANN401
    ) -> None:
        """Wait. The SDK's own way reads the header's first digit alone: 6 seconds of 61."""
        state.next_attempt_requested = True
        # The rest of a second keeps those apart who were told the same.
        await self._wait(_asked_s(response) + random.random())  # noqa: S311
        waited_s = _waited_s(state) + _asked_s(response)
        state.custom_values = {**(state.custom_values or {}), WAITED: waited_s}
        state.increment_current_attempt()


def _waited_s(state: RetryState) -> float:
    """How long the call this state belongs to was told to wait so far."""
    return float((state.custom_values or {}).get(WAITED, 0.0))


def _asked_s(response: Any) -> float:  # noqa: ANN401 - the SDK's own type
    for name, values in response.headers.items():
        if name.lower() == "retry-after":
            return patience.wait_s(values if isinstance(values, str) else values[0])
    return patience.NOT_SAID_S


def retry_handlers() -> list[AsyncRetryHandler]:
    """What is tried again: lost connections once, Slack's failures once, rate limits a few times.

    A handler counts a single call's attempts in that call's state, so sharing them is right.
    """
    return [
        AsyncConnectionErrorRetryHandler(max_retry_count=1),
        AsyncServerErrorRetryHandler(max_retry_count=1),
        RateLimited(),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """One installation: who the bot is there, and a client that speaks as it."""

    team: str
    enterprise: str
    name: str
    bot_id: str
    bot_user: str
    client: AsyncWebClient


def check_settings(settings: Settings, *, mode: str) -> None:
    """Check that the tokens of `mode` (``socket`` or ``http``) are there.

    Raises:
        SettingsError: one is missing or of another kind; the key is named, never the value.
    """
    needed = [("SLACK_BOT_TOKEN", settings.slack_bot_token, "xoxb-", FROM_OAUTH)]
    if mode == "socket":
        needed.append(("SLACK_APP_TOKEN", settings.slack_app_token, "xapp-", FROM_APP_LEVEL))
    else:
        needed.append(("SLACK_SIGNING_SECRET", settings.slack_signing_secret, "", FROM_BASICS))
    for name, value, start, where in needed:
        key = f"TIMEOUT_KB_{name}"
        tokens = tokens_of(value) if name == "SLACK_BOT_TOKEN" else (value.strip(),)
        if not any(tokens):
            raise SettingsError(f"{key} is not set", todo=where)
        if not all(token.startswith(start) for token in tokens):
            raise SettingsError(f"{key} does not start with {start}", todo=where)


def tokens_of(value: str) -> tuple[str, ...]:
    """The tokens of several workspaces, commas between them."""
    return tuple(token.strip() for token in value.split(",") if token.strip())


class Workspaces:
    """Every workspace by team id; opened once, on the event loop that uses it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._logger = slack_logger(settings.log_level)
        self._by_team: dict[str, Workspace] = {}
        self._opening = asyncio.Lock()
        self._session: aiohttp.ClientSession | None = None

    @property
    def session(self) -> aiohttp.ClientSession:
        """The connections to Slack, kept open between calls.

        Raises:
            SlackError: `open` was not called yet.
        """
        if self._session is None:
            raise SlackError("the Slack client is not open", todo="start the bot first")
        return self._session

    async def open(self) -> None:
        """Ask Slack who the bot is in each workspace; does nothing when that is known.

        Raises:
            SettingsError: Slack refuses a token.
            SlackError: Slack cannot be reached.
        """
        async with self._opening:
            if self._by_team:
                return
            if self._session is None:
                self._session = aiohttp.ClientSession(
                    timeout=aiohttp.ClientTimeout(total=CALL_TIMEOUT_S),
                    connector=aiohttp.TCPConnector(limit=CONNECTIONS),
                )
            tokens = tokens_of(self._settings.slack_bot_token)
            found = [await self._ask(number, token) for number, token in enumerate(tokens, 1)]
            self._by_team = {workspace.team: workspace for workspace in found}

    async def _ask(self, number: int, token: str) -> Workspace:
        client = self.new_client(token)
        try:
            told = await client.auth_test()
        except SlackApiError as error:
            raise SettingsError(
                f"Slack refuses token {number} of TIMEOUT_KB_SLACK_BOT_TOKEN: {reason(error)}",
                todo=FROM_OAUTH,
            ) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise unreachable(error) from None
        return Workspace(
            team=str(told.get("team_id") or ""),
            enterprise=str(told.get("enterprise_id") or ""),
            name=str(told.get("team") or ""),
            bot_id=str(told.get("bot_id") or ""),
            bot_user=str(told.get("user_id") or ""),
            client=client,
        )

    async def check_app_token(self) -> None:
        """Ask Slack whether the app-level token opens a connection.

        Raises:
            SettingsError: it does not.
            SlackError: Slack cannot be reached.
        """
        token = self._settings.slack_app_token.strip()
        try:
            await self.new_client().apps_connections_open(app_token=token)
        except SlackApiError as error:
            raise SettingsError(
                f"Slack refuses TIMEOUT_KB_SLACK_APP_TOKEN: {reason(error)}",
                todo=FROM_APP_LEVEL,
            ) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise unreachable(error) from None

    def new_client(self, token: str | None = None) -> AsyncWebClient:
        """A client that shares connections and retries."""
        return AsyncWebClient(
            token=token,
            base_url=self._settings.slack_api_url,
            timeout=CALL_TIMEOUT_S,
            session=self._session,
            logger=self._logger,
            retry_handlers=retry_handlers(),
        )

    def webhook(self, url: str) -> AsyncWebhookClient:
        """What answers through an interaction's own address."""
        return AsyncWebhookClient(
            url,
            timeout=CALL_TIMEOUT_S,
            session=self._session,
            logger=self._logger,
            retry_handlers=retry_handlers(),
        )

    def __iter__(self) -> Any:  # noqa: ANN401 - of Workspace
        return iter(self._by_team.values())

    def find(self, team: str | None, enterprise: str | None = None) -> Workspace | None:
        """The workspace of a team; an organisation-wide installation is found by its enterprise."""
        found = self._by_team.get(team or "")
        if found is None and enterprise:
            found = next((one for one in self if one.enterprise == enterprise), None)
            if found is not None and team:
                self._by_team[team] = found
        return found

    async def authorize(self, enterprise_id: str | None, team_id: str | None) -> Any:  # noqa: ANN401
        """For slack-bolt: who the bot is where an event came from, None where it is unknown."""
        await self.open()
        found = self.find(team_id, enterprise_id)
        if found is None:
            return None
        return AuthorizeResult(
            enterprise_id=enterprise_id,
            team_id=team_id,
            bot_token=found.client.token,
            bot_id=found.bot_id,
            bot_user_id=found.bot_user,
        )

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
