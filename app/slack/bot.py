"""The slack-bolt application: what Slack sends is acknowledged, then answered by a job.

A delivery is marked in the store before it is answered, so that a repeated one (Slack repeats an
event up to three times, also over a restart of the bot) is answered once at most.

A mention goes `Bot._on_message` → `responder.answer_request` → `ServiceCalls.reply` → `Chat.say` →
`Dialogue.answer` → `kb.chat.assessment.assess` (`Service.judge`, then `Service.render`), and back:
`ServiceCalls` makes blocks of the `Diagnosis` (`blocks.diagnosis.diagnosis_message`), the responder
puts them into the channel (`Poster.edit` or `Poster.post`). A mention with files takes
`ServiceCalls.diagnose_files` instead (`Service.read_paths`, `Chat.begin`). Where a language model
reads along the responder asks it once the answer stands, and edits the answer.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread
import structlog
from slack_bolt.async_app import AsyncApp

from app.slack import requests
from app.slack.blocks.primitives import SlackMessage, error_message
from app.slack.commands import answer_command, parse
from app.slack.delivery import Poster
from app.slack.interactions import ACTIONS, FORM, answer_click, open_form, submit_form
from app.slack.requests import OPTION, ChannelSettings, Destination, SlackRequest
from app.slack.responder import answer_request
from app.slack.service_calls import ServiceCalls
from app.slack.workspaces import Workspaces, slack_logger
from kb.errors import KBError

if TYPE_CHECKING:
    from app.slack.workspaces import Workspace
    from kb.chat.chat import Chat
    from kb.service import Service
    from kb.settings import Settings
    from kb.types.vocabulary import Language

COMMAND = re.compile(r"^/")  # /timeout, or what the workspace had to rename it to
SHORTCUT = "diagnose_message"
MAX_JOBS = 500  # beyond: told to try again; at ten answers a second that is a minute of work
FILE_JOBS = 20  # messages with files at once: what they bring lies on the disk meanwhile
MODEL_READS = 16  # at once; the usual limit of ten questions a minute never fills them
GRACE_S = 10.0  # running jobs may finish this long when the bot stops
MODEL_GRACE_S = 2.0  # ... and those that wait for a language model: their answer stands already
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class BotContext:
    """The parts of one bot, made once."""

    calls: ServiceCalls
    workspaces: Workspaces
    jobs: Jobs
    settings: Settings
    file_jobs: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(FILE_JOBS))
    model_jobs: Jobs = field(default_factory=lambda: Jobs(anyio.CapacityLimiter(MODEL_READS)))

    async def workspace_once(self, team: str, key: str) -> Workspace | None:
        """The workspace of a delivery; None where there is none, or Slack repeats itself."""
        workspace = self.workspaces.find(team)
        if workspace is None or not await asyncio.to_thread(self.calls.first_time, key):
            return None
        return workspace

    async def answer_once(
        self,
        work: Callable[[], SlackMessage],
        *,
        key: str,
        to: Destination,
        errors_to: Destination,
        language: Language,
    ) -> None:
        """Do the work of a delivery in a thread and post what comes of it, or what was wrong."""
        workspace = await self.workspace_once(to.team, key)
        if workspace is None:
            return
        try:
            message = await self.jobs.compute(work)
        except KBError as error:
            structlog.get_logger().warning("slack work failed", code=error.code, what=error.what)
            message, to = error_message(error, self.calls.words(language)), errors_to
        await Poster(self.workspaces, workspace, to).post(message)


class Jobs:
    """Work after the acknowledgement: tasks of the event loop, threads for what blocks.

    A task that waits for Slack, for minutes after a 429 perhaps, holds no thread and keeps nobody.
    """

    def __init__(self, limiter: anyio.CapacityLimiter) -> None:
        """`limiter` says how many threads compute at once."""
        self._limiter = limiter
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def full(self) -> bool:
        """Whether no further job is taken."""
        return len(self._tasks) >= MAX_JOBS

    def start(self, job: Callable[[], Awaitable[None]]) -> bool:
        """Start a job; False where too many run already."""
        if self.full:
            structlog.get_logger().warning("slack job refused", running=len(self._tasks))
            return False
        task = asyncio.get_running_loop().create_task(self._run(job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def _run(self, job: Callable[[], Awaitable[None]]) -> None:
        try:
            await job()
        except Exception:  # noqa: BLE001 - the outermost call of this face
            structlog.get_logger().exception("slack job failed")

    async def compute(self, work: Callable[[], T]) -> T:
        """Do `work` in one of the compute threads."""
        return await anyio.to_thread.run_sync(work, limiter=self._limiter)

    async def wait_for(self, work: Callable[[], T]) -> T:
        """Do `work`, which waits for another server, in a thread that keeps no process alive."""
        result: Future[T] = Future()

        def run() -> None:
            result.set_running_or_notify_cancel()
            try:
                result.set_result(work())
            except BaseException as error:  # noqa: BLE001 - raised where the result is awaited
                result.set_exception(error)

        async with self._limiter:
            threading.Thread(target=run, name="slack-wait", daemon=True).start()
            return await asyncio.wrap_future(result)

    async def close(self, *, grace_s: float = GRACE_S) -> None:
        """Let running jobs finish for a while, then stop."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=grace_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)


class Bot:
    """One bot for all workspaces. Make and use it on one event loop; `close` it there."""

    def __init__(
        self,
        service: Service,
        chat: Chat,
        settings: Settings,
        *,
        limiter: anyio.CapacityLimiter | None = None,
    ) -> None:
        """`limiter` is that of the threads that compute, where a server around it has one."""
        self.workspaces = Workspaces(settings)
        self._calls = ServiceCalls(service, chat)
        self._jobs = Jobs(limiter or anyio.CapacityLimiter(settings.threads))
        self._context = BotContext(
            calls=self._calls, workspaces=self.workspaces, jobs=self._jobs, settings=settings
        )

        async def authorize(enterprise_id: str | None, team_id: str | None) -> Any:  # noqa: ANN401
            return await self.workspaces.authorize(enterprise_id, team_id)

        self.app = AsyncApp(
            name="timeout-kb",
            logger=slack_logger(settings.log_level),
            signing_secret=settings.slack_signing_secret,
            authorize=authorize,  # a function: bolt does not take a method here
            client=self.workspaces.new_client(),
        )
        self.app.event("app_mention")(self._on_message)
        self.app.event("message")(self._on_message)
        self.app.command(COMMAND)(self._on_command)
        self.app.shortcut(SHORTCUT)(self._on_shortcut)
        for name in ACTIONS:
            self.app.action(name)(self._on_click)
        self.app.action(re.compile(rf"{OPTION}[0-9]+"))(self._on_click)
        self.app.action("incident")(self._on_incident)
        self.app.view(FORM)(self._on_form)

    async def open(self) -> None:
        """Find out who the bot is in each workspace, and get ready to answer.

        Raises:
            SettingsError: Slack refuses a token.
            SlackError: Slack cannot be reached.
        """
        await self.workspaces.open()
        await self._jobs.compute(self._calls.warm_up)

    async def aclose(self) -> None:
        """Finish running jobs and close the connections."""
        await self._jobs.close()
        await self._context.model_jobs.close(grace_s=MODEL_GRACE_S)
        await self.workspaces.close()

    # --- events: bolt has acknowledged them when these run ---------------------------------------

    async def _on_message(self, event: dict[str, Any], context: Any) -> None:  # noqa: ANN401
        bot_user = str(context.bot_user_id or "")
        origin = requests.event_origin(event, bot_user)
        if origin is not None:
            request = requests.of_message(
                event,
                team=str(context.team_id or ""),
                channel=str(event.get("channel") or ""),
                bot_user=bot_user,
                origin=origin,
            )
            await self._start(request)

    async def _start(self, request: SlackRequest) -> None:
        """Answer it; where there is too much to do a mark says so, unless nobody asked."""
        if self._jobs.start(partial(answer_request, self._context, request)):
            return
        workspace = self.workspaces.find(request.team)
        if workspace is not None and request.origin not in ("auto", "thread"):
            poster = Poster(self.workspaces, workspace, request.destination())
            await poster.react(request.ts, "hourglass")

    # --- interactions: acknowledged first --------------------------------------------------------

    async def _on_command(self, ack: Any, body: dict[str, Any], context: Any) -> None:  # noqa: ANN401
        request = requests.of_command(body, team=str(context.team_id or ""))
        if self._jobs.full:
            words = self._calls.words(self._calls.language(request.text, ChannelSettings()))
            await ack(text=words("slack.busy"))
            return
        await ack()
        verb, rest = parse(request.text)
        job = partial(self._look_up, request, verb, rest) if verb else None
        self._jobs.start(job or partial(answer_request, self._context, request))

    async def _look_up(self, request: SlackRequest, verb: str, rest: str) -> None:
        calls = self._calls
        channel = await asyncio.to_thread(calls.channel, request.team, request.channel)
        to = request.destination(private=True)
        await self._context.answer_once(
            partial(answer_command, calls, request, verb, rest),
            key=request.key,
            to=to,
            errors_to=to,
            language=calls.language(request.text, channel),
        )

    async def _on_shortcut(self, ack: Any, body: dict[str, Any], context: Any) -> None:  # noqa: ANN401
        await ack()
        await self._start(requests.of_shortcut(body, team=str(context.team_id or "")))

    async def _on_click(self, ack: Any, body: dict[str, Any]) -> None:  # noqa: ANN401
        await ack()
        self._jobs.start(partial(answer_click, self._context, requests.of_click(body)))

    async def _on_incident(self, ack: Any, body: dict[str, Any]) -> None:  # noqa: ANN401
        await ack()
        await open_form(self._context, requests.of_click(body))

    async def _on_form(self, ack: Any, body: dict[str, Any], view: dict[str, Any]) -> None:  # noqa: ANN401
        await ack()
        user = str((body.get("user") or {}).get("id") or "")
        self._jobs.start(partial(submit_form, self._context, view, user=user))
