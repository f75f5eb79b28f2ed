"""A server that speaks the chat-completions API over real HTTP, and misbehaves as told.

Behaviours are functions on the open connection; what the server received is kept for assertions.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behaviour = Callable[["Exchange"], None]


@dataclass
class Exchange:
    """One request being answered."""

    handler: BaseHTTPRequestHandler
    number: int
    body: dict[str, Any]
    done: threading.Event

    def head(
        self, status: int = 200, kind: str = "text/event-stream", **headers: str | int
    ) -> None:
        """Status line and headers; the body ends with the connection."""
        self.handler.send_response(status)
        self.handler.send_header("Content-Type", kind)
        self.handler.send_header("Connection", "close")
        for name, value in headers.items():
            self.handler.send_header(name.replace("_", "-"), str(value))
        self.handler.end_headers()
        self.handler.close_connection = True

    def write(self, text: str) -> None:
        """Bytes at once."""
        self.handler.wfile.write(text.encode())
        self.handler.wfile.flush()

    def event(self, value: object) -> None:
        """One server-sent event."""
        self.write(f"data: {json.dumps(value, ensure_ascii=False)}\n\n")

    def say(self, text: str, *, finish: str | None = None) -> None:
        """A piece of the answer."""
        delta = {"role": "assistant", "content": text} if text else {}
        self.event(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": self.body.get("model"),
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            }
        )

    def end(self) -> None:
        """A proper end."""
        self.say("", finish="stop")
        self.write("data: [DONE]\n\n")

    def problem(self, status: int, **headers: str | int) -> None:
        """An error as these servers report it."""
        self.head(status, "application/json", **headers)
        self.write(json.dumps({"error": {"message": "no", "type": "error", "code": None}}))

    def pause(self, seconds: float) -> None:
        """Wait without answering, at most until the test is over."""
        self.done.wait(seconds)

    @property
    def evidence(self) -> list[str]:
        """The numbered statements the model was given."""
        text = self.body["messages"][-1]["content"]
        block = re.search(r"<evidence-\w+>\n(.*)\n</evidence-\w+>", text, re.DOTALL)
        return re.findall(r"^\[\d+\] (.*)$", block[1], re.MULTILINE) if block else []


@dataclass
class FakeOpenAI:
    """The server: `behaviour` answers the next requests, `received` are their raw bodies."""

    behaviour: Behaviour
    address: str = ""
    received: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    broken: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)

    def reset(self, behaviour: Behaviour) -> None:
        """Behave so from now on, and forget what came before."""
        self.behaviour = behaviour
        self.received.clear()
        self.keys.clear()
        self.broken.clear()


@contextlib.contextmanager
def fake_openai() -> Iterator[FakeOpenAI]:
    """A running server on a free port of this machine."""
    fake = FakeOpenAI(behaviour=echo)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            fake.received.append(text)
            fake.keys.append(self.headers.get("Authorization", ""))
            number = len(fake.received)
            try:
                fake.behaviour(Exchange(self, number, json.loads(text), fake.done))
            except (BrokenPipeError, ConnectionResetError):
                fake.broken.set()  # the client went away
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    fake.address = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        fake.done.set()
        server.shutdown()
        thread.join()
        server.server_close()


def says(*pieces: str) -> Behaviour:
    """Streams these pieces and ends."""

    def behave(exchange: Exchange) -> None:
        exchange.head()
        for piece in pieces:
            exchange.say(piece)
        exchange.end()

    return behave


def echo(exchange: Exchange) -> None:
    """Words every statement as it stands, cited: what an obedient model could say."""
    exchange.head()
    for number, text in enumerate(exchange.evidence, start=1):
        first = re.split(r"[。.!?！？|]\s|。", text)[0].rstrip(".。")
        exchange.say(f"{first} [{number}]. ")
    exchange.end()


def too_many(retry_after: str, then: Behaviour | None = None) -> Behaviour:
    """429 with Retry-After to the first request; `then` (else again 429) to the others."""

    def behave(exchange: Exchange) -> None:
        if exchange.number > 1 and then is not None:
            then(exchange)
        else:
            exchange.problem(429, Retry_After=retry_after)

    return behave


def slow_first_token(exchange: Exchange) -> None:
    """Accepts, and then says nothing."""
    exchange.pause(30)


def headers_then_silence(exchange: Exchange) -> None:
    """Sends its headers, and then nothing."""
    exchange.head()
    exchange.pause(30)


def slow_drip(exchange: Exchange) -> None:
    """One character every 50 ms, for ever."""
    exchange.head()
    for _ in range(2000):
        exchange.say("a")
        exchange.pause(0.05)


def keeps_alive(exchange: Exchange) -> None:
    """Comments, never an event: the connection lives and nothing is said."""
    exchange.head()
    for _ in range(2000):
        exchange.write(": ping\n\n")
        exchange.pause(0.05)


def cut_mid_stream(exchange: Exchange) -> None:
    """Breaks off in the middle of a chunk."""
    exchange.head(Transfer_Encoding="chunked")
    exchange.write("ff\r\ndata: {")


def cut_between_events(exchange: Exchange) -> None:
    """Closes without an end after half an answer."""
    exchange.head()
    exchange.say("The first error ")


def raw(text: str, *, kind: str = "text/event-stream", status: int = 200) -> Behaviour:
    """Exactly these bytes as the body."""

    def behave(exchange: Exchange) -> None:
        exchange.head(status, kind)
        exchange.write(text)

    return behave


def fails(status: int) -> Behaviour:
    """That status."""
    return lambda exchange: exchange.problem(status)
