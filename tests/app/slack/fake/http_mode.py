"""HTTP mode: signed requests to the app's address, and forged ones."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.parse
from dataclasses import dataclass, field
from typing import Any, Literal

import aiohttp
from slack_sdk.signature import SignatureVerifier

from tests.app.slack.fake.delivery import ACK_S, Attempt, Delivery

Forgery = Literal["none", "wrong", "stale", "future", "missing", "unsigned", "other_body"]
STALE_S = 6 * 60  # older than the five minutes an app may accept
RETRIES_S = (0.0, 0.2, 0.4)  # Slack waits nothing, a minute, five minutes
OK = 200


@dataclass(kw_only=True)
class HttpMode:
    """Posts to the app's request address."""

    secret: str
    address: str = ""
    _session: aiohttp.ClientSession | None = field(default=None, repr=False)

    async def deliver(self, delivery: Delivery) -> None:
        """Post, and again as Slack does where no 2xx came in time."""
        reason = ""
        retries = RETRIES_S if delivery.kind == "events_api" else ()
        for number, wait_s in enumerate((0.0, *retries)):
            await asyncio.sleep(wait_s)
            extra = {}
            if number:
                extra = {"x-slack-retry-num": str(number), "x-slack-retry-reason": reason}
            attempt = await self.post(delivery, extra=extra)
            if attempt.status == OK:
                delivery.acknowledge(_json_or_none(attempt.body))
                return
            reason = "http_error" if attempt.status else "http_timeout"

    async def post(
        self,
        delivery: Delivery,
        *,
        forgery: Forgery = "none",
        extra: dict[str, str] | None = None,
    ) -> Attempt:
        """Post once; `forgery` says what is wrong with the signature."""
        body, content_type = encode(delivery)
        headers = {"Content-Type": content_type, **(extra or {})}
        headers |= self.signature(body, forgery=forgery)
        if forgery == "other_body":
            body += b" "
        attempt = delivery.begin()
        if self._session is None:
            self._session = aiohttp.ClientSession()
        timeout = aiohttp.ClientTimeout(total=ACK_S)
        try:
            async with self._session.post(
                self.address, data=body, headers=headers, timeout=timeout
            ) as answer:
                attempt.status = answer.status
                attempt.body = await answer.text()
        except (aiohttp.ClientError, TimeoutError):
            attempt.status = 0
        if attempt.status == OK:
            attempt.acked_s = time.monotonic()
        return attempt

    def signature(self, body: bytes, *, forgery: Forgery) -> dict[str, str]:
        """The two headers of a signed request, or what a forger sends."""
        now = int(time.time())
        stamp = str({"stale": now - STALE_S, "future": now + STALE_S}.get(forgery, now))
        secret = "0" * 32 if forgery == "wrong" else self.secret
        if forgery == "missing":
            return {}
        if forgery == "unsigned":
            return {"X-Slack-Request-Timestamp": stamp}
        return {
            "X-Slack-Request-Timestamp": stamp,
            "X-Slack-Signature": str(
                SignatureVerifier(secret).generate_signature(timestamp=stamp, body=body)
            ),
        }

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()


def encode(delivery: Delivery) -> tuple[bytes, str]:
    """The body Slack posts, with its content type: JSON for events, forms for the rest."""
    if delivery.kind == "events_api":
        return json.dumps(delivery.payload).encode(), "application/json"
    form: dict[str, Any] = delivery.payload
    if delivery.kind == "interactive":
        form = {"payload": json.dumps(delivery.payload)}
    return urllib.parse.urlencode(form).encode(), "application/x-www-form-urlencoded"


def _json_or_none(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return {"text": text} if text.strip() else None
    return found if isinstance(found, dict) else None
