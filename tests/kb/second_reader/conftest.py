"""A server that speaks the chat API and answers as a test wants: well, slowly or badly."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kb.second_reader.asking import SecondReader
from kb.second_reader.client import ModelClient
from kb.second_reader.limits import Limits
from kb.service import Service

Answer = Callable[[dict[str, Any]], str]
"""From the question to the model's words."""
HANG = (
    "Training on two nodes hangs after an hour.\n"
    "[rank1]:[E ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=64, NumelOut=64, "
    "Timeout(ms)=600000) ran for 600012 milliseconds before timing out.\n"
)
PIECE = 7  # characters in an event of a stream
COMMON = {"id": "chatcmpl-1", "created": 1_760_000_000, "model": "tiny-1"}


class ChatHandler(BaseHTTPRequestHandler):
    """Requests to a `ChatServer`."""

    chat: ChatServer

    def do_GET(self) -> None:
        """List the models."""
        model = {"id": "tiny-1", "object": "model", "created": 1, "owned_by": "tests"}
        is_there = self.path == "/v1/models"
        self.send(
            200 if is_there else 404,
            {"object": "list", "data": [model]} if is_there else self.chat.problem("path"),
        )

    def do_POST(self) -> None:
        """Answer a question."""
        size = int(self.headers["Content-Length"])
        question = json.loads(self.rfile.read(size))
        self.chat.questions.append(question)
        self.chat.keys.append(self.headers["Authorization"])
        self.chat.paths.append(self.path)
        time.sleep(self.chat.delay_s)
        status, answer = self.chat.reply_to(question, self.path)
        self.send(status, answer)

    def send(self, status: int, answer: dict[str, Any] | str | bytes) -> None:
        """Send JSON, or bytes as they are."""
        is_stream = isinstance(answer, bytes)
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        kind = "text/event-stream" if is_stream else "application/json"
        self.send_response(status)
        headers = {"Content-Type": kind} | self.chat.headers
        if not is_stream:  # a stream ends with its connection
            headers["Content-Length"] = str(len(body))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.chat.drop is None:
            self.wfile.write(body[: self.chat.cut])
            return
        for byte in body:
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            time.sleep(self.chat.drop)

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def handle(self) -> None:
        """Take requests until the other side has gone."""
        try:
            super().handle()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True


class ChatServer:
    """A model's server; its attributes say how it behaves.

    Attributes:
        answer: the words of the model.
        status: of the answer; refuses `response_format` without naming it where `is_old`.
        refuses: options it refuses by name, with the message it has for them.
        error: body of an answer that is none; by default the chat API's.
        headers: more of them, in every answer.
        always_streams: answers with a stream of events, whatever was asked for.
        delay_s: before it answers at all.
        drop: seconds between two bytes of the body; None for all at once.
        cut: bytes after which the connection is closed.
        body: replaces the whole body.
        message: replaces the message of the answer.
        finish: why the model ended.
        usage: what it cost; None where the server does not tell.
        questions: those it was asked, in their order.
        keys: their ``Authorization`` headers.
        paths: what was asked for.
    """

    def __init__(self) -> None:
        self.answer: Answer = lambda question: "{}"
        self.status = 200
        self.is_old = False
        self.refuses: dict[str, str] = {}
        self.error: dict[str, Any] | str | None = None
        self.headers: dict[str, str] = {}
        self.always_streams = False
        self.delay_s = 0.0
        self.drop: float | None = None
        self.cut: int | None = None
        self.body: bytes | None = None
        self.message: dict[str, Any] | None = None
        self.finish = "stop"
        self.usage: dict[str, Any] | None = {
            "prompt_tokens": 700,
            "completion_tokens": 50,
            "total_tokens": 750,
        }
        self.questions: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.paths: list[str] = []
        self._server = ThreadingHTTPServer(
            ("127.0.0.1", 0), type("Handler", (ChatHandler,), {"chat": self})
        )
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def reply_to(self, question: dict[str, Any], path: str) -> tuple[int, Any]:
        """Status and body of the answer; a stream is in bytes."""
        if path != "/v1/chat/completions":
            return 404, {"detail": "Not Found"}
        if self.is_old and "response_format" in question:
            return 400, {"error": "bad request"}
        for name, message in self.refuses.items():
            if name in question:
                return 400, self.problem(name, message)
        if self.status != 200:
            return self.status, self.problem(None) if self.error is None else self.error
        if self.body is not None:
            return 200, self.body
        message = {"role": "assistant", "content": None, "refusal": None}
        message |= self.message or {"content": self.answer(question)}
        if self.always_streams or question.get("stream"):
            options = question.get("stream_options") or {}
            return 200, self.stream(message, is_usage_wanted=options.get("include_usage", False))
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self.finish}
        whole = COMMON | {"object": "chat.completion", "choices": [choice]}
        return 200, whole | ({"usage": self.usage} if self.usage else {})

    def stream(self, message: dict[str, Any], *, is_usage_wanted: bool) -> bytes:
        """The same message in pieces, with the end mark."""
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        for name, value in message.items():
            if isinstance(value, str) and name != "role":
                starts = range(0, len(value), PIECE)
                deltas += [{name: value[start : start + PIECE]} for start in starts]
        choices = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
        choices.append([{"index": 0, "delta": {}, "finish_reason": self.finish}])
        usage = {"usage": None} if is_usage_wanted else {}
        chunks = [
            COMMON | {"object": "chat.completion.chunk", "choices": choice} | usage
            for choice in choices
        ]
        if is_usage_wanted:
            chunks.append(chunks[0] | {"choices": [], "usage": self.usage})
        lines = [json.dumps(chunk) for chunk in chunks]
        return "".join(f"data: {line}\n\n" for line in (*lines, "[DONE]")).encode()

    def problem(self, param: str | None, message: str = "No.") -> dict[str, Any]:
        """An error as the chat API has it."""
        return {
            "error": {
                "message": message,
                "type": "invalid_request_error",
                "param": param,
                "code": None,
            }
        }

    def says(self, causes: dict[str, float], **quotes: str) -> None:
        """Answer with these causes; names of quotes have underscores for hyphens."""
        found = {name.replace("_", "-"): quote for name, quote in quotes.items()}
        text = json.dumps({"causes": causes, "quotes": found, "ask": "Which switch?"})
        self.answer = lambda question: text

    def use_tls(self, context: ssl.SSLContext) -> None:
        """Speak TLS from now on."""
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = self.url.replace("http:", "https:")

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


def second_reader(service: Service, server: ChatServer, home: Path) -> SecondReader:
    """A reader that asks the server and trusts it fully."""
    client = ModelClient(server.url, "tiny", limit_s=20)
    return SecondReader(
        client, service.knowledge, Limits(99, 99), trust=1.0, home=home, address=server.url
    )
