"""What Slack hands to the app, and a record of how the app took it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Kind = Literal["events_api", "slash_commands", "interactive"]
ACK_S = 3.0  # an app must acknowledge within this time


@dataclass(kw_only=True)
class Attempt:
    """One try to hand something over; `status` is that of an HTTP answer, 0 where none came."""

    sent_s: float
    connection: int = 0
    acked_s: float | None = None
    status: int = 0
    body: str = ""

    @property
    def took_s(self) -> float | None:
        """The time to the acknowledgement, or None if there was none."""
        return None if self.acked_s is None else self.acked_s - self.sent_s


@dataclass(kw_only=True, eq=False)
class Delivery:
    """An envelope with all attempts to hand it over."""

    kind: Kind
    payload: dict[str, Any]
    envelope_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    made_s: float = field(default_factory=time.monotonic)
    attempts: list[Attempt] = field(default_factory=list)
    response: dict[str, Any] | None = None  # what the app said with the acknowledgement
    on_response: Callable[[Delivery, dict[str, Any]], None] | None = None  # told of the response

    @property
    def acked(self) -> bool:
        """Whether the app took it."""
        return any(attempt.acked_s is not None for attempt in self.attempts)

    @property
    def took_s(self) -> float | None:
        """The time the acknowledged attempt took."""
        times = [attempt.took_s for attempt in self.attempts if attempt.took_s is not None]
        return times[0] if times else None

    @property
    def waited_s(self) -> float | None:
        """The time from the event to its acknowledgement, with all that went wrong between."""
        taken = [item.acked_s for item in self.attempts if item.acked_s is not None]
        return taken[0] - self.made_s if taken else None

    def begin(self, *, connection: int = 0) -> Attempt:
        """Note a try that starts now."""
        attempt = Attempt(sent_s=time.monotonic(), connection=connection)
        self.attempts.append(attempt)
        return attempt

    def acknowledge(self, response: dict[str, Any] | None = None) -> None:
        """Note that the last try was taken."""
        if self.attempts[-1].acked_s is None:
            self.attempts[-1].acked_s = time.monotonic()
        if response:
            self.response = response
            if self.on_response is not None:
                self.on_response(self, response)


class Transport(Protocol):
    """The way envelopes reach the app."""

    async def deliver(self, delivery: Delivery) -> None:
        """Hand over, with the retries Slack makes."""

    async def close(self) -> None:
        """End what runs."""
