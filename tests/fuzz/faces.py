"""Requests of the API and deliveries of Slack as targets: any bytes get an answer, none a failure.

The first line of an API input is method and path, the second the type of the body; what follows is
the body. A path that is none of the document's stands for one of them. Deliveries are signed.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import itertools
import json
import logging
import sys
import time
import urllib.parse
import zlib
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
from fastapi import FastAPI

from app.api import create_app
from app.inputs.contributions import add_text
from app.slack.bot import SHORTCUT
from app.slack.interactions import ACTIONS, FORM
from app.slack.requests import OPTION
from app.slack.run import PATH
from kb.errors import InputError
from kb.settings import Settings, shipped_data
from tests.app.slack.fake.fake_slack import FakeSlack
from tests.app.slack.fake.manifest import read_manifest

if TYPE_CHECKING:
    from kb.service import Service
    from tests.fuzz.targets import Targets

REFUSED, FAILURE = 400, 500  # statuses from which an answer is one
JOBS_S = 5.0  # waited for what a delivery started; a post that is tried again takes minutes
PRINTABLE = bytes(range(0x21, 0x7F))  # the server takes no other bytes in an address
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
LOG = (
    "[rank3]: torch.cuda.OutOfMemoryError: CUDA out of memory.\n"
    "[rank1]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE)\n"
)
BOUNDARY = "zq"
VALUES: Mapping[str, Any] = {  # of fields that do not take any text
    **dict.fromkeys(("cause", "actual"), "rank-crash"),
    **dict.fromkeys(("conversation", "diagnosis", "entry"), ""),
    **dict.fromkeys(("since", "until"), "2024-01-02"),
    "torch": "2.1.0",
    "url": "https://example.org/a",
    "name": "job.log",
    "q": "NCCL",
    "filters": {},
    "causes": ["rank-crash"],
    "rank": "3",
    "labels": ["infra"],
}
# Stand in seeds for what the fake Slack makes anew: ids, and a number that no delivery had before.
TEAM, CHANNEL, USER, BOT, NEW = "T0TEAM", "C0CHANNEL", "U0USER", "U0BOT", "1700000000.000100"


@contextlib.contextmanager
def failures() -> Iterator[list[BaseException]]:
    """What the product logs as failures nobody expected, in place of writing it."""
    found: list[BaseException] = []

    def note(_logger: object, _name: str, event: MutableMapping[str, Any]) -> Any:
        info = event.get("exc_info")
        if info:
            error = info if isinstance(info, BaseException) else sys.exc_info()[1]
            found.append(error or RuntimeError(str(event)))
        raise structlog.DropEvent

    class Handler(logging.Handler):
        """What slack-bolt says of listeners that failed."""

        def emit(self, record: logging.LogRecord) -> None:
            if record.exc_info and record.exc_info[1]:
                found.append(record.exc_info[1])

    processors = structlog.get_config()["processors"]
    before, logger, handler = processors.copy(), logging.getLogger("timeout_kb.slack"), Handler()
    handler.setLevel(logging.ERROR)
    processors[:] = [note]
    logger.addHandler(handler)
    try:
        yield found
    finally:
        processors[:] = before
        logger.removeHandler(handler)


class InProcess:
    """An application called without a server, on an event loop of its own."""

    def __init__(self, app: FastAPI) -> None:
        """Call `app`."""
        self.app = app
        self._loop = asyncio.new_event_loop()

    def call(self, method: str, target: bytes, headers: Mapping[str, str], body: bytes) -> int:
        """The status of the answer, once all that it started is done.

        Raises:
            BaseException: the first failure that was logged.
            RuntimeError: the answer is that the server failed.
        """
        with failures() as found:
            status = self._loop.run_until_complete(self._answered(method, target, headers, body))
        if found:
            raise found[0]
        if status >= FAILURE:
            raise RuntimeError(f"status {status}")
        return status

    async def _answered(
        self, method: str, target: bytes, headers: Mapping[str, str], body: bytes
    ) -> int:
        path, _, query = target.partition(b"?")
        bodies = iter([body])
        statuses: list[int] = []

        async def receive() -> dict[str, Any]:
            piece = next(bodies, None)
            if piece is None:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": piece, "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        pairs = {"host": "127.0.0.1", "content-length": str(len(body)), **headers}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": urllib.parse.unquote_to_bytes(path).decode("utf-8", "replace"),
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": [(name.encode(), text.encode("latin-1")) for name, text in pairs.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8000),
            "state": {},
        }
        await self.app(scope, receive, send)
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        if rest:
            _, late = await asyncio.wait(rest, timeout=JOBS_S)
            for task in late:
                task.cancel()
        return statuses[0]

    def close(self) -> None:
        """End what the application has open."""
        if self.app.state.slack is not None:
            self._loop.run_until_complete(self.app.state.slack.close())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()


# --- the API -------------------------------------------------------------------------------------


def document() -> dict[str, Any]:
    """The API's own description; it needs no service."""
    app = create_app(None, Settings(home=Path("unused")))  # type: ignore[arg-type]
    return app.openapi()


def operations(described: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Method and path of every operation."""
    return [(m.upper(), path) for path, item in described["paths"].items() for m in item]


def api(targets: Targets) -> Any:
    """One request."""
    service = targets.service
    incident = _incident(service)
    app = InProcess(create_app(service, service.settings))
    targets.stack.callback(app.close)
    known = operations(app.app.openapi())

    def run(data: bytes) -> None:
        head, _, rest = data.partition(b"\n")
        media, _, body = rest.partition(b"\n")
        method, _, target = head.partition(b" ")
        if method.decode("latin-1") not in METHODS or not target.startswith(b"/"):
            other, path = known[zlib.crc32(head) % len(known)]
            method, target = other.encode(), path.encode()
        target = target.replace(b"{identifier}", incident.encode())
        address = urllib.parse.quote_from_bytes(target, safe=PRINTABLE).encode()
        kind = media.decode("latin-1")
        headers = {"content-type": kind} if kind.isprintable() and kind else {}
        try:
            status = app.call(method.decode(), address, headers, body)
        finally:
            if method == b"DELETE":
                _incident(service)
        if status >= REFUSED:
            raise InputError("refused")

    return run


def _incident(service: Service) -> str:
    """The id of an incident that is there."""
    return add_text(service, LOG, name="job.log").entries[0]


def api_seeds() -> tuple[bytes, ...]:
    """A request of each operation and type of body, made from the document."""
    described = document()
    seeds = []
    for method, path in operations(described):
        operation = described["paths"][path][method.lower()]
        query = "&".join(
            f"{item['name']}={_in_address(item, described)}"
            for item in operation.get("parameters", [])
            if item["in"] == "query"
        )
        head = f"{method} {path}{'?' if query else ''}{query}"
        bodies = operation.get("requestBody", {}).get("content", {})
        for media, form in bodies.items() or [("", {})]:
            written, body = _body(media, form.get("schema", {}), described)
            seeds.append(f"{head}\n{written}\n{body}".encode())
            seeds.append(f"{method} {path}\n{written}\n{body}".encode())
    return tuple(seeds)


def _in_address(item: Mapping[str, Any], described: Mapping[str, Any]) -> str:
    value = VALUES.get(item["name"]) or example(item["schema"], described)
    return urllib.parse.quote(str(value[0] if isinstance(value, list) else value))


def _body(media: str, schema: Mapping[str, Any], described: Mapping[str, Any]) -> tuple[str, str]:
    """The type and the text of a body."""
    if media == "application/json":
        return media, json.dumps(example(schema, described))
    if media == "multipart/form-data":
        part = 'Content-Disposition: form-data; name="file"; filename="job.log"'
        body = f"--{BOUNDARY}\r\n{part}\r\n\r\n{LOG}\r\n--{BOUNDARY}--\r\n"
        return f"{media}; boundary={BOUNDARY}", body
    return media, LOG if media else ""


def example(schema: Mapping[str, Any], described: Mapping[str, Any]) -> Any:
    """A value that a schema allows, as far as it is this simple."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return example(described["components"]["schemas"][name], described)
    for several in ("anyOf", "allOf", "oneOf"):
        if several in schema:
            return example(schema[several][0], described)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "string")
    if kind == "object":
        parts = schema.get("properties", {}).items()
        return {name: VALUES.get(name, example(part, described)) for name, part in parts}
    if kind == "array":
        return [example(schema.get("items", {}), described)]
    return {"integer": schema.get("minimum", 1), "number": 1.0, "boolean": True}.get(kind, LOG[:20])


# --- Slack ---------------------------------------------------------------------------------------


def slack(targets: Targets) -> Any:
    """One signed delivery, answered to its end."""
    fake = FakeSlack(read_manifest(shipped_data() / "slack" / "manifest.yaml"), mode="http")
    fake.start()
    targets.stack.callback(fake.stop)
    space = fake.workspace("alpha")
    channel, user = space.add_channel("fuzz"), space.add_user("ann")
    settings = replace(
        targets.service.settings,
        slack_mode="http",
        slack_signing_secret=fake.signing_secret,
        slack_bot_token=space.bot_token,
        slack_api_url=fake.api_address,
        slack_files_host=fake.files_host,
    )
    app = InProcess(create_app(targets.service, settings))
    targets.stack.callback(app.close)
    secret = fake.signing_secret.encode()
    places = {TEAM: space.team, CHANNEL: channel.id, USER: user.id, BOT: space.bot_user}
    numbers = itertools.count()

    def run(data: bytes) -> None:
        new = {**places, NEW: f"17{next(numbers):08}.000100"}
        for name, value in new.items():
            data = data.replace(name.encode(), value.encode())
        stamp = str(int(time.time()))
        media = "application/json" if data[:1] == b"{" else "application/x-www-form-urlencoded"
        signed = hmac.new(secret, f"v0:{stamp}:".encode() + data, hashlib.sha256).hexdigest()
        headers = {
            "content-type": media,
            "x-slack-request-timestamp": stamp,
            "x-slack-signature": f"v0={signed}",
        }
        if app.call("POST", PATH.encode(), headers, data) >= REFUSED:
            raise InputError("refused")

    return run


def slack_seeds() -> tuple[bytes, ...]:
    """A mention, a message, a file, a command, a click, a shortcut and a form."""
    person = {"user": {"id": USER, "name": "ann", "team_id": TEAM}, "team": {"id": TEAM}}
    place = {"channel": {"id": CHANNEL, "name": "fuzz"}, "trigger_id": NEW}
    message = {"type": "message", "user": USER, "ts": NEW, "text": LOG}
    file = {"id": "F1", "name": "job.log", "size": 9, "url_private_download": "http://h/f"}
    outer = {"token": "t", "team_id": TEAM, "api_app_id": "A1", "type": "event_callback"}
    events: list[dict[str, Any]] = [
        {"type": "app_mention", "text": f"<@{BOT}> {LOG}"},
        {"type": "app_mention", "text": f"<@{BOT}> why?", "thread_ts": NEW},
        {"type": "message", "channel_type": "im", "text": "what is NCCL_TIMEOUT?"},
        {"type": "message", "channel_type": "channel", "text": LOG, "files": [file]},
        {"type": "message", "subtype": "file_share", "channel_type": "im", "files": [file]},
    ]
    action = {"block_id": "b", "type": "button", "action_ts": NEW, "value": "right"}
    interactions: list[dict[str, Any]] = [
        *(
            {"type": "block_actions", "message": message, "actions": [action | {"action_id": name}]}
            for name in (*ACTIONS, f"{OPTION}1", "incident")
        ),
        {"type": "message_action", "callback_id": SHORTCUT, "message": message},
        {
            "type": "view_submission",
            "view": {
                "id": "V1",
                "type": "modal",
                "callback_id": FORM,
                "private_metadata": "{}",
                "state": {"values": {"fix": {"fix": {"type": "plain_text_input", "value": "x"}}}},
                "blocks": [],
            },
        },
    ]
    command = {
        "team_id": TEAM,
        "channel_id": CHANNEL,
        "user_id": USER,
        "command": "/timeout",
        "text": "search NCCL timeout",
        "trigger_id": NEW,
        "response_url": "http://127.0.0.1:9/respond",
    }
    delivered = [
        outer | {"event_id": NEW, "event": {"user": USER, "channel": CHANNEL, "ts": NEW, **event}}
        for event in events
    ]
    pressed = [{"payload": json.dumps({**person, **place, **item})} for item in interactions]
    forms = [command, command | {"text": "help"}, command | {"text": LOG}, *pressed]
    return (
        *(json.dumps(item).encode() for item in delivered),
        *(urllib.parse.urlencode(form).encode() for form in forms),
    )
