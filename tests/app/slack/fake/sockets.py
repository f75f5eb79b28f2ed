"""Socket Mode: envelopes over WebSockets, acknowledgements, disconnects, redelivery."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import time
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import WSMsgType, web

from tests.app.slack.fake.delivery import ACK_S, Delivery

APP_ID = "A0TIMEOUTKB"
MOST_ATTEMPTS = 4  # the first one and Slack's three retries
TICKET_S = 60  # an address from apps.connections.open is good this long
DRAIN_S = 1.0  # after asking for a refresh Slack keeps the old connection a little


@dataclass(kw_only=True)
class Connection:
    """One WebSocket of the app."""

    number: int
    socket: web.WebSocketResponse
    request: web.Request
    draining: bool = False
    waiting: list[Delivery] = field(default_factory=list)

    def take(self, envelope_id: str) -> Delivery | None:
        """The delivery of that envelope, which waits no longer."""
        for delivery in self.waiting:
            if delivery.envelope_id == envelope_id:
                self.waiting.remove(delivery)
                return delivery
        return None


class SocketMode:
    """The server's side of Socket Mode for one app."""

    def __init__(self, *, ack_s: float = ACK_S) -> None:
        """Envelopes unacknowledged for `ack_s` seconds come again."""
        self.ack_s = ack_s
        self.connections: list[Connection] = []
        self.opened = 0
        self.tickets: dict[str, float] = {}
        self._pending: list[Delivery] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def new_ticket(self) -> str:
        """A ticket for one connection."""
        ticket = secrets.token_hex(16)
        self.tickets[ticket] = time.monotonic() + TICKET_S
        return ticket

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Serve one WebSocket until it ends."""
        expires = self.tickets.pop(request.query.get("ticket", ""), 0.0)
        if expires < time.monotonic():
            return web.Response(status=404, text="link_disabled")
        socket = web.WebSocketResponse(max_msg_size=0)
        await socket.prepare(request)
        self.opened += 1
        connection = Connection(number=self.opened, socket=socket, request=request)
        self.connections.append(connection)
        await socket.send_json(self._hello())
        pending, self._pending = self._pending, []
        for delivery in pending:
            self._start(self._send(delivery))
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    self._take_ack(connection, message.data)
        finally:
            self.connections.remove(connection)
            lost, connection.waiting = connection.waiting, []
            for delivery in lost:
                self._again(delivery)
        return socket

    def _hello(self) -> dict[str, Any]:
        return {
            "type": "hello",
            "num_connections": len(self.connections),
            "debug_info": {"host": "applink-fake", "approximate_connection_time": 3600},
            "connection_info": {"app_id": APP_ID},
        }

    def _take_ack(self, connection: Connection, text: str) -> None:
        message = json.loads(text)
        envelope_id = message.get("envelope_id", "")
        # An acknowledgement may come over the new connection for what went over the old one.
        for holder in (connection, *self.connections):
            delivery = holder.take(envelope_id)
            if delivery is not None:
                delivery.acknowledge(message.get("payload"))
                return

    async def deliver(self, delivery: Delivery) -> None:
        """Send an envelope now, or when the app connects again."""
        await self._send(delivery)

    async def _send(self, delivery: Delivery) -> None:
        open_ones = [item for item in self.connections if not item.socket.closed]
        fresh = [item for item in open_ones if not item.draining] or open_ones
        if not fresh:
            self._pending.append(delivery)
            return
        connection = fresh[-1]
        delivery.begin(connection=connection.number)
        connection.waiting.append(delivery)
        envelope: dict[str, Any] = {
            "envelope_id": delivery.envelope_id,
            "type": delivery.kind,
            "payload": delivery.payload,
            "accepts_response_payload": delivery.kind != "events_api",
        }
        if delivery.kind == "events_api":
            retries = len(delivery.attempts) - 1
            envelope |= {"retry_attempt": retries, "retry_reason": "timeout" if retries else ""}
        with contextlib.suppress(ConnectionError):
            await connection.socket.send_json(envelope)
        self._start(self._watch(connection, delivery, len(delivery.attempts)))

    async def _watch(self, connection: Connection, delivery: Delivery, number: int) -> None:
        await asyncio.sleep(self.ack_s)
        if delivery in connection.waiting and len(delivery.attempts) == number:
            connection.waiting.remove(delivery)
            self._again(delivery)

    def _again(self, delivery: Delivery) -> None:
        """Events come again; a command or a click fails before the person's eyes instead."""
        if delivery.acked:
            return
        if delivery.kind == "events_api" and len(delivery.attempts) < MOST_ATTEMPTS:
            self._start(self._send(delivery))

    def _start(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def disconnect(self, reason: Literal["warning", "refresh_requested"]) -> None:
        """Ask the app to connect anew; the old connections close a little later."""
        for connection in list(self.connections):
            connection.draining = True
            message = {"type": "disconnect", "reason": reason, "debug_info": {"host": "fake"}}
            with contextlib.suppress(ConnectionError):
                await connection.socket.send_json(message)
            self._start(self._drain(connection))

    async def _drain(self, connection: Connection) -> None:
        await asyncio.sleep(DRAIN_S)
        await connection.socket.close()

    async def cut(self) -> int:
        """Break all connections without a word, as a failing network does; how many there were."""
        open_ones = [item for item in self.connections if item.request.transport is not None]
        for connection in open_ones:
            connection.request.transport.abort()  # type: ignore[union-attr]
        return len(open_ones)

    async def close(self) -> None:
        """Close all connections."""
        for connection in list(self.connections):
            await connection.socket.close()
        for task in list(self._tasks):
            task.cancel()
