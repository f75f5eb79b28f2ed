"""A Slack on this machine: real HTTP and WebSockets, workspaces one can look into.

The servers run in a thread of their own with one event loop; tests call from outside. Web API,
Socket Mode and response URLs answer on `api_address`, files on `files_host`, and a third host
notes who comes where nobody should.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Literal, TypeVar

from aiohttp import web

from tests.slack import payloads
from tests.slack.calls import Call, SlackError
from tests.slack.delivery import ACK_S, Delivery, Kind, Transport
from tests.slack.hosts import MOST_UPLOAD, Elsewhere, FileHost, ResponseUrls
from tests.slack.http_mode import HttpMode
from tests.slack.limits import problems
from tests.slack.lookups import SHARED
from tests.slack.manifest import Manifest
from tests.slack.people import People
from tests.slack.sockets import SocketMode
from tests.slack.web_api import RateLimit, WebApi
from tests.slack.workspace import (
    Channel,
    Message,
    StoredFile,
    User,
    Workspace,
)

T = TypeVar("T")
Mode = Literal["socket", "http"]
WAIT_S = 60.0  # until a test gives up; machines may be busy
POLL_S = 0.01


class FakeSlack(People):
    """Slack with some workspaces that installed one app."""

    def __init__(
        self,
        manifest: Manifest,
        *,
        ack_s: float = ACK_S,
        mode: Literal["socket", "http"] = "socket",
    ) -> None:
        """An app installed by nobody yet; `ack_s` is how long Socket Mode waits to send again."""
        self.manifest = manifest
        self.app_token = f"xapp-1-A0TIMEOUTKB-{secrets.token_hex(8)}-{secrets.token_hex(24)}"
        self.signing_secret = secrets.token_hex(16)
        self.workspaces: dict[str, Workspace] = {}
        self.calls: list[Call] = []
        self.problems: list[str] = []  # of everything posted, against Slack's limits
        self.deliveries: list[Delivery] = []
        self.triggers: dict[str, tuple[str, float]] = {}
        self.api = WebApi(backend=self)
        self.files = FileHost(backend=self)
        self.elsewhere = Elsewhere()
        self.responses = ResponseUrls(backend=self)
        self.sockets = SocketMode(ack_s=ack_s)
        self.http = HttpMode(secret=self.signing_secret)
        self._transport: Transport = self.sockets if mode == "socket" else self.http
        self.base = self.files_host = self.elsewhere_host = ""
        self._loop = asyncio.new_event_loop()
        self._runners: list[web.AppRunner] = []
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._running: set[asyncio.Task[None]] = set()

    # --- servers ---------------------------------------------------------------------------

    @property
    def api_address(self) -> str:
        """The address of the Web API, for `TIMEOUT_KB_SLACK_API_URL`."""
        return f"http://{self.base}/api/"

    def start(self) -> None:
        """Listen on free ports."""
        self._thread.start()
        self.run(self._listen())

    async def _listen(self) -> None:
        api = web.Application(client_max_size=MOST_UPLOAD)
        api.router.add_route("*", "/api/{method}", self.api.handle)
        api.router.add_get("/link/", self.sockets.handle)
        api.router.add_post("/respond/{id}", self.responses.handle)
        files = web.Application(client_max_size=MOST_UPLOAD)
        files.router.add_get("/files-pri/{id}/{rest:.*}", self.files.download)
        files.router.add_post("/upload/{id}", self.files.upload)
        other = web.Application()
        other.router.add_route("*", "/{rest:.*}", self.elsewhere.handle)
        self.base = await self._serve(api)
        self.files_host = await self._serve(files)
        self.elsewhere_host = await self._serve(other)

    async def _serve(self, application: web.Application) -> str:
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self._runners.append(runner)
        host, port = runner.addresses[0][:2]
        return f"{host}:{port}"

    def stop(self) -> None:
        """Close everything."""
        self.run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _close(self) -> None:
        await self.sockets.close()
        await self.http.close()
        for runner in self._runners:
            await runner.cleanup()
        rest = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run in the servers' loop and wait for the end."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT_S)

    # --- what the servers ask --------------------------------------------------------------

    def socket_address(self) -> str:
        """A new address for Socket Mode."""
        return f"ws://{self.base}/link/?ticket={self.sockets.new_ticket()}&app_id=A0TIMEOUTKB"

    def message_json(self, workspace: Workspace, message: Message) -> dict[str, Any]:
        """A message as the Web API shows it."""
        return message.as_json(self.files_host, workspace.team)

    def posted(self, workspace: Workspace, channel: Channel, message: Message) -> None:
        """Tell the app of a new message, its own ones too, as Slack does."""
        for name, body in payloads.message_events(workspace, channel, message, self.files_host):
            if channel.has_bot and self.manifest.hears(name):
                self._deliver(Delivery(kind="events_api", payload=body))

    def _deliver(self, delivery: Delivery) -> None:
        self.deliveries.append(delivery)
        task = self._loop.create_task(self._hand_over(delivery))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _hand_over(self, delivery: Delivery) -> None:
        await self._transport.deliver(delivery)

    def send(self, kind: Kind, body: dict[str, Any]) -> Delivery:
        """Hand any payload to the app, and show what it answers at once."""
        delivery = Delivery(kind=kind, payload=body, heard=self._show)
        self.run(self._send(delivery))
        return delivery

    def deliver_again(self, delivery: Delivery) -> Delivery:
        """Hand over the same envelope, id and all, once more."""
        again = Delivery(
            kind=delivery.kind, payload=delivery.payload, envelope_id=delivery.envelope_id
        )
        self.run(self._send(again))
        return again

    def _show(self, delivery: Delivery, response: dict[str, Any]) -> None:
        """Show what came with an acknowledgement: an answer to a command, a modal's next view."""
        address = self.responses.of(delivery.payload.get("response_url", ""))
        if response.get("response_action") == "update":
            view = delivery.payload["view"]
            workspace = self.workspaces[delivery.payload["team"]["id"]]
            self.problems += problems(response["view"], surface="modal")
            workspace.views[view["id"]] = view | response["view"]
        elif address is not None and (response.get("text") or response.get("blocks")):
            try:
                self.responses.take(address, response, via="acknowledgement")
            except SlackError as error:
                self.problems.append(f"acknowledgement: {error}")

    async def _send(self, delivery: Delivery) -> None:
        self._deliver(delivery)

    # --- what tests look at ----------------------------------------------------------------

    def until(self, found: Callable[[], T], *, what: str, timeout_s: float = WAIT_S) -> T:
        """The first true value of `found`.

        Raises:
            AssertionError: there was none in time; says what was waited for and what there is.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            value = found()
            if value:
                return value
            if time.monotonic() > deadline:
                raise AssertionError(f"no {what} within {timeout_s} s\n{self.told()}")
            time.sleep(POLL_S)

    def told(self) -> str:
        """Refused calls and the last deliveries, for a failure's message."""
        refused = [f"{call.method}: {call.response}" for call in self.calls if not call.ok]
        last = [
            f"{item.kind} {item.payload.get('event', item.payload).get('type', '')} "
            f"acked={item.acked} attempts={[(a.status, a.body[:200]) for a in item.attempts]}"
            for item in self.deliveries[-6:]
        ]
        return "\n".join([*refused[-6:], *self.problems[-6:], *last])

    def answers(self, channel: Channel, root: Message | None = None) -> list[Message]:
        """The app's visible messages in a channel, or in one thread, ephemeral ones too.

        Files the app shared beside them are left out: see `attached`.
        """
        return [
            message
            for message in channel.messages
            if message.bot_id
            and message.via != SHARED
            and not message.deleted
            and (root is None or message.root == root.root)
        ]

    def attached(self, channel: Channel, root: Message | None = None) -> list[StoredFile]:
        """The files the app shared in a channel, or in one thread."""
        return [
            file
            for message in channel.messages
            if message.via == SHARED and (root is None or message.root == root.root)
            for file in message.files
        ]

    def answer(self, channel: Channel, root: Message | None = None, *, number: int = 1) -> Message:
        """The app's `number`-th message there, once it stands."""

        def found() -> Message | None:
            answers = self.answers(channel, root)
            return answers[number - 1] if len(answers) >= number else None

        message = self.until(found, what=f"answer {number} in {channel.name}")
        assert message is not None
        return message

    def view(self, workspace: Workspace, *, after: int = 0) -> dict[str, Any]:
        """The modal opened last, once there are more than `after`."""
        self.until(lambda: len(workspace.views) > after, what="modal")
        return list(workspace.views.values())[-1]

    def spoken(self) -> Iterator[tuple[str, Any]]:
        """All that people got to see of the app, by where it was said."""
        for call in self.calls:
            if call.spoken():
                yield call.method, call.spoken()
        for payload in self.responses.payloads:
            yield "response_url", payload
        for delivery in self.deliveries:
            if delivery.response:
                yield f"acknowledgement of {delivery.kind}", delivery.response
        for workspace in self.workspaces.values():
            for file in workspace.files.values():
                if file.user == workspace.bot_user:
                    yield f"file {file.name}", file.body.decode("utf-8", "replace")

    def limit(
        self, method: str, *, times: int = 1, retry_after_s: int = 1, channel: str = ""
    ) -> None:
        """Refuse the next calls of a method with 429."""
        self.api.limits.append(
            RateLimit(method=method, times=times, retry_after_s=retry_after_s, channel=channel)
        )

    def add_user(self, channel: Channel, name: str) -> User:
        """A person of the channel's workspace."""
        return self.team_of(channel).add_user(name)
