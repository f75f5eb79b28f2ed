"""HTTP/1.1 as uvicorn speaks it, and a time within which the head of a request has to come.

Else whoever opens connections and sends a byte now and then holds as many of them as they like.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S = 10.0  # from the first byte of a head, or the connection's start, to the head's end
_TOO_LATE = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class BoundedHead(H11Protocol):
    """Closes connections whose next request does not begin, or stops within its head.

    Between two requests the server's keep-alive holds; bodies have limits of their own.
    """

    head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first head."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take the data, and wait on where they end within a head."""
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._wait()
        elif self.conn.their_state is not h11.IDLE:
            self._wait_no_longer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more comes."""
        self._wait_no_longer()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self.head_timer is None:
            self.head_timer = self.loop.call_later(HEAD_S, self._give_up)

    def _wait_no_longer(self) -> None:
        if self.head_timer is not None:
            self.head_timer.cancel()
            self.head_timer = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(_TOO_LATE)
            self.transport.close()
