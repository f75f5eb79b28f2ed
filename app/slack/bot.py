"""The slack-bolt application: what Slack sends is acknowledged, then handed to the pool.

A delivery is marked in the store before it is answered, so that a repeated one (Slack repeats an
event up to three times, also over a restart of the bot) is answered once at most.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from slack_bolt.async_app import AsyncApp

from app.slack import incoming, lookup_blocks
from app.slack.answering import Answerer
from app.slack.clicks import ANSWER, Clicks, click_of
from app.slack.commands import Command, Lookups, parse
from app.slack.counters import new_counters
from app.slack.desk import Desk
from app.slack.logs import slack_logger
from app.slack.office import Office
from app.slack.pool import Compute, Pool
from app.slack.types import Ask, Place
from app.slack.voice import Voice
from app.slack.workspaces import Workspaces
from kb.errors import KBError
from kb.text import detect_language

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from kb.chat.chat import Chat
    from kb.service import Service
    from kb.settings import Settings

COMMAND = re.compile(r"^/")  # /timeout, or what the workspace had to rename it to
SHORTCUT = "diagnose_message"
FORM = "incident_form"
MODEL_THREADS = 8
# Subtypes a person's message may have; the others are edits, joins, deletions, bots.
SPOKEN = frozenset({None, "", "file_share", "thread_broadcast", "me_message"})
BUTTONS = ("right", "wrong", "actual", "fixes", "cases", "next_check")


class Bot:
    """One bot for all workspaces. Make and use it on one event loop; `close` it there."""

    def __init__(
        self,
        service: Service,
        chat: Chat,
        settings: Settings,
        *,
        compute: Compute | None = None,
        registry: CollectorRegistry | None = None,
    ) -> None:
        """`compute` and `registry` are those of a server the bot is a part of."""
        self.workspaces = Workspaces(settings)
        # A language model's answer is waited for in a thread: others must not wait with it.
        threads = max(settings.threads, MODEL_THREADS if settings.llm_base_url else 1)
        self.pool = Pool(threads, compute=compute)
        self._desk = Desk(service, chat)
        self._lookups = Lookups(self._desk)
        self._counters = new_counters(registry)
        office = Office(
            desk=self._desk,
            workspaces=self.workspaces,
            pool=self.pool,
            counters=self._counters,
            settings=settings,
        )
        self._answerer = Answerer(office)
        self._clicks = Clicks(office)
        workspaces = self.workspaces

        async def authorize(enterprise_id: str | None, team_id: str | None) -> Any:  # noqa: ANN401
            return await workspaces.authorize(enterprise_id, team_id)

        self.app = AsyncApp(
            name="timeout-kb",
            logger=slack_logger(settings.log_level),
            signing_secret=settings.slack_signing_secret,
            authorize=authorize,  # a function: bolt does not take a method here
            client=self.workspaces.new_client(),
        )
        self._listen()

    async def open(self) -> None:
        """Find out who the bot is in each workspace, and get ready to answer.

        Raises:
            SettingsError: Slack refuses a token.
            SlackError: Slack cannot be reached.
        """
        await self.workspaces.open()
        await self.pool.compute(self._desk.warm_up)

    async def close(self) -> None:
        """Finish running jobs and close the connections."""
        await self.pool.close()
        await self.workspaces.close()

    def _listen(self) -> None:
        app = self.app
        app.event("app_mention")(self._on_mention)
        app.event("message")(self._on_message)
        app.command(COMMAND)(self._on_command)
        app.shortcut(SHORTCUT)(self._on_shortcut)
        for name in BUTTONS:
            app.action(name)(self._on_click)
        app.action(re.compile(rf"{ANSWER}\d+"))(self._on_click)
        app.action("incident")(self._on_incident)
        app.view(FORM)(self._on_form)

    # --- events: bolt has acknowledged them when these run ---------------------------------------

    async def _on_mention(self, body: dict[str, Any], event: dict[str, Any], context: Any) -> None:  # noqa: ANN401
        if incoming.from_bot(event):
            return
        await self._take(body, event, context, origin="mention")

    async def _on_message(self, body: dict[str, Any], event: dict[str, Any], context: Any) -> None:  # noqa: ANN401
        if event.get("subtype") not in SPOKEN or incoming.from_bot(event):
            return
        bot_user = str(context.bot_user_id or "")
        if event.get("channel_type") == "im":
            origin = "direct"
        elif incoming.mentions(event, bot_user):
            return  # comes as a mention, too
        elif event.get("thread_ts") and event["thread_ts"] != event.get("ts"):
            if incoming.mentions_anybody(event):
                return  # two people talk to each other
            origin = "thread"
        else:
            origin = "auto"
        await self._take(body, event, context, origin=origin)

    async def _take(
        self,
        body: dict[str, Any],
        event: dict[str, Any],
        context: Any,  # noqa: ANN401 - bolt's
        *,
        origin: str,
    ) -> None:
        team, channel = str(context.team_id or ""), str(event.get("channel") or "")
        ask = incoming.ask_of_message(
            event,
            team=team,
            channel=channel,
            bot_user=str(context.bot_user_id or ""),
            origin=origin,
        )
        # One message may come as two events (a mention, a message) with ids of their own.
        keys = (f"event:{body.get('event_id')}", f"message:{team}:{channel}:{ask.ts}")
        if not self.pool.start(lambda: self._answerer.answer(ask, keys=keys)):
            await self._busy(ask)

    async def _busy(self, ask: Ask) -> None:
        """Too much to do: a mark on the message says so, unless nobody asked."""
        self._counters.failed.labels("busy").inc()
        workspace = self.workspaces.find(ask.team)
        if workspace is not None and ask.origin not in ("auto", "thread"):
            place = Place(team=ask.team, channel=ask.channel)
            await Voice(self.workspaces, workspace, place).react(ask.ts, "hourglass")

    # --- interactions: acknowledged first --------------------------------------------------------

    async def _on_command(self, ack: Any, body: dict[str, Any], context: Any) -> None:  # noqa: ANN401
        ask = Ask(
            team=str(context.team_id or ""),
            channel=str(body.get("channel_id") or ""),
            user=str(body.get("user_id") or ""),
            origin="command",
            text=incoming.without_fences(incoming.unescape(str(body.get("text") or ""))),
            response_url=str(body.get("response_url") or ""),
        )
        if self.pool.full:
            await ack(text=self._busy_text(ask))
            return
        await ack()
        key = f"command:{ask.team}:{body.get('trigger_id')}"
        command = parse(ask.text)
        if command.verb:
            self.pool.start(lambda: self._look_up(ask, command, key))
        else:
            self.pool.start(lambda: self._answerer.answer(ask, keys=(key,)))

    async def _look_up(self, ask: Ask, command: Command, key: str) -> None:
        workspace = self.workspaces.find(ask.team)
        if workspace is None or not await self.pool.quick(lambda: self._desk.first_time(key)):
            return
        self._counters.asked.labels("command").inc()
        try:
            message = await self.pool.compute(lambda: self._lookups.answer(ask, command))
        except KBError as error:
            channel = await self.pool.quick(lambda: self._desk.channel(ask.team, ask.channel))
            words = self._desk.words(self._desk.language(ask.text, channel))
            message = lookup_blocks.trouble(error, words)
        place = Place(
            team=ask.team,
            channel=ask.channel,
            only_for=ask.user,
            response_url=ask.response_url,
        )
        await Voice(self.workspaces, workspace, place).say(message)

    async def _on_shortcut(self, ack: Any, body: dict[str, Any], context: Any) -> None:  # noqa: ANN401
        await ack()
        message = body.get("message") or {}
        ts = str(message.get("ts") or body.get("message_ts") or "")
        channel = str((body.get("channel") or {}).get("id") or "")
        ask = Ask(
            team=str(context.team_id or ""),
            channel=channel,
            user=str((body.get("user") or {}).get("id") or ""),
            origin="shortcut",
            text=incoming.message_text(message),
            files=incoming.message_files(message),
            ts=ts,
            thread=str(message.get("thread_ts") or ""),
            response_url=str(body.get("response_url") or ""),
        )
        key = f"shortcut:{ask.team}:{body.get('trigger_id')}"
        if not self.pool.start(lambda: self._answerer.answer(ask, keys=(key,))):
            await self._busy(ask)

    async def _on_click(self, ack: Any, body: dict[str, Any]) -> None:  # noqa: ANN401
        await ack()
        click, key = click_of(body)
        self.pool.start(lambda: self._clicks.answer(click, key=key))

    async def _on_incident(self, ack: Any, body: dict[str, Any]) -> None:  # noqa: ANN401
        await ack()
        click, _ = click_of(body)
        await self._clicks.open_form(click)

    async def _on_form(self, ack: Any, body: dict[str, Any], view: dict[str, Any]) -> None:  # noqa: ANN401
        await ack()
        user = str((body.get("user") or {}).get("id") or "")
        self.pool.start(lambda: self._clicks.submitted(view, user=user))

    def _busy_text(self, ask: Ask) -> str:
        return self._desk.words(detect_language(ask.text))("slack.busy")
