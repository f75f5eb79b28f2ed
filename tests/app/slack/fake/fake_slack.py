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
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, Literal, TypeVar

from aiohttp import web

from tests.app.slack.fake import payloads
from tests.app.slack.fake.delivery import ACK_S, Delivery, Kind, Transport
from tests.app.slack.fake.hosts import (
    MOST_UPLOAD,
    Elsewhere,
    FileHost,
    ResponseUrl,
    ResponseUrls,
)
from tests.app.slack.fake.http_mode import HttpMode
from tests.app.slack.fake.manifest import Manifest
from tests.app.slack.fake.methods import SHARED, Call, SlackError
from tests.app.slack.fake.sockets import SocketMode
from tests.app.slack.fake.web_api import RateLimit, WebApi
from tests.app.slack.fake.workspace import (
    Channel,
    Message,
    StoredFile,
    User,
    Workspace,
    as_typed,
    new_id,
    new_ts,
    new_workspace,
)

T = TypeVar("T")
Mode = Literal["socket", "http"]
WAIT_S = 60.0  # until a test gives up; machines may be busy
POLL_S = 0.01


class FakeSlack:
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
            if self.manifest.hears(name):
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
        delivery = Delivery(kind=kind, payload=body, on_response=self._show)
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
        """Show what came with an acknowledgement: an answer to a command."""
        address = self.responses.of(delivery.payload.get("response_url", ""))
        if address is not None and (response.get("text") or response.get("blocks")):
            try:
                self.responses.take(address, response, via="acknowledgement")
            except SlackError as error:
                self.problems.append(f"acknowledgement: {error}")

    async def _send(self, delivery: Delivery) -> None:
        self._deliver(delivery)

    # --- what people do --------------------------------------------------------------------

    def workspace(self, domain: str) -> Workspace:
        """A new workspace with the app installed."""
        workspace = new_workspace(domain)
        self.workspaces[workspace.team] = workspace
        return workspace

    def team_of(self, channel: Channel) -> Workspace:
        """The workspace a channel belongs to."""
        return self.workspaces[channel.team]

    def say(
        self,
        channel: Channel,
        text: str,
        *,
        user: str = "ann",
        mention: bool = False,
        thread: Message | None = None,
        files: Sequence[StoredFile] = (),
        raw: bool = False,
    ) -> Message:
        """A person writes; `raw` text holds Slack's own markup, else it is escaped as typed."""
        workspace = self.team_of(channel)
        body = text if raw else as_typed(text)
        if mention:
            body = f"<@{workspace.bot_user}> {body}"
        message = Message(
            ts=new_ts(),
            channel=channel.id,
            user=workspace.add_user(user).id,
            text=body,
            thread_ts=thread.root if thread else "",
            files=list(files),
        )
        self.run(self._write(workspace, channel, message))
        return message

    async def _write(self, workspace: Workspace, channel: Channel, message: Message) -> None:
        channel.messages.append(message)
        self.posted(workspace, channel, message)

    def slash(
        self, channel: Channel, text: str, *, command: str = "/timeout", user: str = "ann"
    ) -> Delivery:
        """A person runs a slash command.

        Raises:
            ValueError: the manifest has no such command.
        """
        if command not in self.manifest.commands:
            raise ValueError(f"{command} is not in the manifest")
        workspace = self.team_of(channel)
        who = workspace.add_user(user).id
        urls = self._urls(workspace, channel, who)
        body = payloads.slash_command(workspace, channel, who, command, as_typed(text), urls)
        return self.send("slash_commands", body)

    def click(
        self,
        channel: Channel,
        message: Message,
        action: str,
        *,
        user: str = "ann",
        choice: str | None = None,
    ) -> Delivery:
        """A person presses the element with that action id, or chooses the option `choice`."""
        element, block_id = find_element(message, action)
        made: dict[str, Any] = {
            "action_id": element["action_id"],
            "block_id": block_id,
            "type": element["type"],
            "action_ts": new_ts(),
        }
        if element["type"] == "button":
            made |= {"text": element["text"], "value": element.get("value", "")}
        else:
            options = {item["value"]: item for item in element["options"]}
            made["selected_option"] = options[choice or ""]
        container = {
            "type": "message",
            "message_ts": message.ts,
            "channel_id": channel.id,
            "is_ephemeral": bool(message.ephemeral_for),
            **({"thread_ts": message.thread_ts} if message.thread_ts else {}),
        }
        return self._interact(
            channel, message, user, type="block_actions", container=container, actions=[made]
        )

    def message_shortcut(
        self, channel: Channel, message: Message, callback_id: str, *, user: str = "ann"
    ) -> Delivery:
        """A person picks the app's entry in a message's menu.

        Raises:
            ValueError: the manifest has no such entry.
        """
        if ("message", callback_id) not in self.manifest.shortcuts:
            raise ValueError(f"the manifest has no message shortcut {callback_id!r}")
        return self._interact(
            channel,
            message,
            user,
            type="message_action",
            callback_id=callback_id,
            action_ts=new_ts(),
            message_ts=message.ts,
        )

    def _interact(self, channel: Channel, message: Message, user: str, **fields: Any) -> Delivery:
        """What a person does with a message, with the `fields` of that."""
        workspace = self.team_of(channel)
        who = workspace.add_user(user).id
        body = {
            "channel": {"id": channel.id, "name": channel.name},
            "message": message.as_json(self.files_host, workspace.team),
            **payloads.person(workspace, who),
            **self._urls(workspace, channel, who),
            **fields,
        }
        return self.send("interactive", body)

    def submit(
        self, workspace: Workspace, view: dict[str, Any], values: dict[str, Any], *, user: str
    ) -> Delivery:
        """A person submits a modal with `values` by action id."""
        who = workspace.add_user(user).id
        urls = {"trigger_id": self._trigger(workspace)}
        body = payloads.view_submission(workspace, view, who, values, urls)
        return self.send("interactive", body)

    def _urls(self, workspace: Workspace, channel: Channel, user: str) -> dict[str, str]:
        name = secrets.token_hex(12)
        address = ResponseUrl(workspace=workspace, channel=channel, user=user)
        self.responses.open[name] = address
        return {
            "response_url": f"http://{self.base}/respond/{name}",
            "trigger_id": self._trigger(workspace),
        }

    def _trigger(self, workspace: Workspace) -> str:
        trigger = f"{new_id('t')}.{secrets.token_hex(8)}"
        self.triggers[trigger] = (workspace.team, time.monotonic())
        return trigger

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
                raise AssertionError(f"no {what} within {timeout_s} s\n{self.report()}")
            time.sleep(POLL_S)

    def report(self) -> str:
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

    def answer_to(
        self, channel: Channel, act: Callable[[], Delivery], root: Message | None = None
    ) -> Message:
        """What the app says next in a channel, or in one thread, once `act` was done.

        It has to be acknowledged in time: Slack shows the person an error after three seconds.
        """
        number = len(self.answers(channel, root)) + 1
        delivery = act()
        answer = self.answer(channel, root, number=number)
        self.until(lambda: delivery.acked, what="acknowledgement")
        assert (delivery.took_s or 9.0) < 3
        assert len(delivery.attempts) == 1
        return answer

    def run_command(self, channel: Channel, text: str) -> Message:
        """A person runs `/timeout <text>`; its answer."""
        return self.answer_to(channel, lambda: self.slash(channel, text))

    def press(
        self,
        channel: Channel,
        message: Message,
        action: str,
        *,
        user: str = "ann",
        choice: str | None = None,
    ) -> Message:
        """A person presses something; the message that comes of it."""
        return self.answer_to(
            channel, lambda: self.click(channel, message, action, user=user, choice=choice)
        )

    def fill_in(
        self, channel: Channel, message: Message, values: dict[str, str], *, user: str = "ann"
    ) -> Message:
        """A person opens the form behind "Add as incident" and submits it; what the app says."""
        workspace = self.team_of(channel)
        opened = len(workspace.views)
        self.click(channel, message, "incident", user=user)
        view = self.view(workspace, after=opened)
        return self.answer_to(channel, lambda: self.submit(workspace, view, values, user=user))

    def view(self, workspace: Workspace, *, after: int = 0) -> dict[str, Any]:
        """The modal opened last, once there are more than `after`."""
        self.until(lambda: len(workspace.views) > after, what="modal")
        return list(workspace.views.values())[-1]

    def visible(self) -> Iterator[tuple[str, Any]]:
        """All that people got to see of the app, by where it was said."""
        for call in self.calls:
            if call.visible():
                yield call.method, call.visible()
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


def find_element(message: Message, action: str) -> tuple[dict[str, Any], str]:
    """The interactive element of a message with that action id, and its block's id.

    Raises:
        AssertionError: there is none; names those there are.
    """
    known = []
    for at, block in enumerate(message.blocks):
        for element in (*block.get("elements", ()), block.get("accessory") or {}):
            if "action_id" in element:
                known.append(element["action_id"])
                if element["action_id"] == action:
                    return element, block.get("block_id") or f"auto{at}"
    raise AssertionError(f"no element {action!r} among {known}")
