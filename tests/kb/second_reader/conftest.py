"""A server that speaks the chat API and answers as a test wants: well, slowly or badly."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

Answer = Callable[[dict[str, Any]], str]
"""From the question to the model's words."""


class ChatServer:
    """A model's server; its attributes say how it behaves.

    Attributes:
        answer: the words of the model.
        status: of the answer; refuses `response_format` where `is_old`.
        delay_s: before it answers at all.
        drop: seconds between two bytes of the body; None for all at once.
        cut: bytes after which the connection is closed.
        message: replaces the message of the answer.
        questions: those it was asked, in their order.
        keys: their ``Authorization`` headers.
    """

    def __init__(self) -> None:
        self.answer: Answer = lambda question: "{}"
        self.status = 200
        self.is_old = False
        self.delay_s = 0.0
        self.drop: float | None = None
        self.cut: int | None = None
        self.message: dict[str, Any] | None = None
        self.questions: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        behaviour = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                size = int(self.headers["Content-Length"])
                question = json.loads(self.rfile.read(size))
                behaviour.questions.append(question)
                behaviour.keys.append(self.headers["Authorization"])
                time.sleep(behaviour.delay_s)
                status = behaviour.status
                if behaviour.is_old and "response_format" in question:
                    status = 400
                message = behaviour.message
                if message is None:
                    message = {"role": "assistant", "content": behaviour.answer(question)}
                body = json.dumps(
                    {
                        "model": "tiny-1",
                        "choices": [{"message": message}],
                        "usage": {"prompt_tokens": 700, "completion_tokens": 50},
                    }
                ).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if behaviour.drop is None:
                    self.wfile.write(body[: behaviour.cut])
                    return
                for byte in body:
                    self.wfile.write(bytes([byte]))
                    self.wfile.flush()
                    time.sleep(behaviour.drop)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

            def handle(self) -> None:
                try:
                    super().handle()
                except (BrokenPipeError, ConnectionResetError):
                    """Whoever asked has gone."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def says(self, causes: dict[str, float], **quotes: str) -> None:
        """Answer with these causes; names of quotes have underscores for hyphens."""
        found = {name.replace("_", "-"): quote for name, quote in quotes.items()}
        text = json.dumps({"causes": causes, "quotes": found, "ask": "Which switch?"})
        self.answer = lambda question: text

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[ChatServer]:
    """A server of one test."""
    one = ChatServer()
    yield one
    one.close()
