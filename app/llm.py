"""The language model behind an OpenAI-compatible address. Off unless the settings name one.

`llm_timeout` bounds the whole answer: connecting, the first word, and the last. A thread of its own
reads the answer, so that a server that drips or hangs never holds the caller longer than that.
"""

from __future__ import annotations

import contextlib
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog

from kb.chat.model import ModelError, ModelRequest, fenced
from kb.errors import SettingsError
from kb.logs.redact import redact
from kb.settings import Settings

if TYPE_CHECKING:
    from types import ModuleType

    from openai import OpenAI, Stream
    from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam

MAX_TOKENS = 700  # six sentences in either language take less than half
LIMITS: Mapping[str, int] = {"temperature": 0, "max_tokens": MAX_TOKENS}
# Reasoning models refuse both with 400; most servers of other makers know only the ones above.
NEWER_LIMITS: Mapping[str, int] = {"max_completion_tokens": MAX_TOKENS}
MIN_ANSWER_S = 0.5  # time an answer takes at least: no retry that leaves less
LISTEN_S = 0.5  # so soon a request that was cancelled is noticed while the model is silent
NO_KEY = "none"  # local servers want no key, the client wants one to be set
STANDS = "the engine's own answer stands"


@dataclass(frozen=True, slots=True)
class _Piece:
    text: str


@dataclass(frozen=True, slots=True)
class _Failure:
    error: ModelError


@dataclass(frozen=True, slots=True)
class _End:
    pass


class OpenAIModel:
    """A model that speaks the chat-completions API, streaming.

    Attributes:
        openai: the client's package.
        client: the client.
        name: the model's name.
        limits: parameters that keep answers short and steady, as this server takes them.
    """

    def __init__(self, settings: Settings, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Check the settings; nothing is connected yet.

        Raises:
            SettingsError: address or model name is wrong, or the client is not installed.
        """
        check_llm_settings(settings)
        self.openai = _client_package()
        self.name = settings.llm_model
        self.limits = LIMITS
        self.client: OpenAI = self.openai.OpenAI(
            base_url=settings.llm_base_url,
            api_key=settings.llm_api_key or NO_KEY,
            timeout=float(settings.llm_timeout),
            max_retries=0,  # the client's own retries know no deadline
        )
        self._timeout_s = float(settings.llm_timeout)
        self._clock = clock

    def __repr__(self) -> str:
        """Which model where; never the key."""
        return f"OpenAIModel({self.name!r} at {self.client.base_url})"

    def stream(self, request: ModelRequest) -> Iterator[str]:
        """The answer, piece by piece; see `kb.chat.model.LanguageModel`."""
        work = _Work(
            model=self,
            messages=_messages(request),
            deadline_s=self._clock() + self._timeout_s,
            clock=self._clock,
        )
        threading.Thread(target=work.run, name="language-model", daemon=True).start()
        try:
            yield from self._pieces(work)
        except ModelError as error:
            structlog.get_logger("app.llm").warning("language model failed", detail=error.what)
            raise
        finally:
            work.stop()

    def _pieces(self, work: _Work) -> Iterator[str]:
        given = False
        while not isinstance(item := self._next(work), _End):
            if isinstance(item, _Failure):
                raise item.error
            given = given or bool(item.text.strip())
            yield item.text
        if not given:
            raise ModelError("the language model's answer is empty", todo=STANDS)
        if not work.finished:
            raise ModelError("the language model's answer broke off", todo=STANDS)

    def _next(self, work: _Work) -> _Piece | _Failure | _End:
        # Past the deadline not even what waits is given: a server may say more for ever.
        while (left_s := work.left_s()) > 0:
            _stop_if_cancelled()
            with contextlib.suppress(queue.Empty):
                return work.pieces.get(timeout=min(left_s, LISTEN_S))
        return _late(self._timeout_s)


def _stop_if_cancelled() -> None:
    """Raise what cancels the request this thread works for; other threads are not cancelled."""
    import anyio.from_thread

    with contextlib.suppress(RuntimeError):  # no thread of a server
        anyio.from_thread.check_cancelled()


def _late(timeout_s: float) -> _Failure:
    return _Failure(
        ModelError(
            f"the language model did not finish within {timeout_s:.0f} s",
            todo=f"{STANDS}; raise TIMEOUT_KB_LLM_TIMEOUT for a slower model",
        )
    )


@dataclass(slots=True)
class _Work:
    """One answer being read in a thread of its own."""

    model: OpenAIModel
    messages: list[ChatCompletionMessageParam]
    deadline_s: float
    clock: Callable[[], float]
    pieces: queue.SimpleQueue[_Piece | _Failure | _End] = field(default_factory=queue.SimpleQueue)
    stopped: threading.Event = field(default_factory=threading.Event)
    stream: Stream[ChatCompletionChunk] | None = None
    finished: bool = False

    def left_s(self) -> float:
        """Seconds until the deadline."""
        return self.deadline_s - self.clock()

    def run(self) -> None:
        """Read the answer into `pieces`; ends with a failure or an end, whatever happens."""
        try:
            with self._opened() as stream:
                self.stream = stream
                self._read(stream)
        except (self.model.openai.OpenAIError, ValueError, TypeError, OSError) as error:
            # ValueError: an event that is no JSON; TypeError: one of another shape.
            self.pieces.put(_Failure(self._failure(error)))
        finally:
            self.pieces.put(_End())

    def stop(self) -> None:
        """Nobody reads any more: hang up, so that the server stops working too."""
        self.stopped.set()
        hang_up(self.stream)

    def _opened(self) -> Stream[ChatCompletionChunk]:
        """The answering stream; asked for once more where that can help."""
        openai = self.model.openai
        try:
            return self._ask()
        except openai.RateLimitError as error:
            if not self._waited(error.response.headers.get("retry-after", "")):
                raise
        except openai.BadRequestError:
            if self.model.limits is NEWER_LIMITS:
                raise
            self.model.limits = NEWER_LIMITS
        return self._ask()

    def _ask(self) -> Stream[ChatCompletionChunk]:
        stream: Stream[ChatCompletionChunk] = self.model.client.chat.completions.create(
            model=self.model.name,
            messages=self.messages,
            stream=True,
            timeout=max(self.left_s(), MIN_ANSWER_S),
            **self.model.limits,  # type: ignore[call-overload]
        )
        return stream

    def _waited(self, retry_after: str) -> bool:
        """Wait as a server asks; False where that is not said, too long, or nobody listens."""
        wait_s = retry_after_s(retry_after)
        if wait_s is None or wait_s + MIN_ANSWER_S > self.left_s():
            return False
        return not self.stopped.wait(wait_s)

    def _read(self, stream: Stream[ChatCompletionChunk]) -> None:
        # Compatible servers send what they like: nothing of a chunk is taken for granted.
        for chunk in stream:
            if self.stopped.is_set():
                return
            for choice in getattr(chunk, "choices", None) or ():
                text = getattr(getattr(choice, "delta", None), "content", None)
                if isinstance(text, str) and text:
                    self.pieces.put(_Piece(text))
                self.finished = self.finished or bool(getattr(choice, "finish_reason", None))

    def _failure(self, error: Exception) -> ModelError:
        """A failure in words; what the server said may be anything, so only its kind is told."""
        kind = type(error).__name__
        status = getattr(error, "status_code", None)
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            todo = f"check TIMEOUT_KB_LLM_API_KEY; {STANDS}"
        elif status == HTTPStatus.NOT_FOUND:
            todo = f"check TIMEOUT_KB_LLM_BASE_URL and TIMEOUT_KB_LLM_MODEL; {STANDS}"
        elif isinstance(error, self.model.openai.APIConnectionError):
            todo = f"check that {self.model.client.base_url} answers; {STANDS}"
        else:
            todo = STANDS
        told = f"{kind}, status {status}" if status else kind
        return ModelError(f"the language model failed ({told})", todo=todo)


def check_llm_settings(settings: Settings) -> None:
    """Check what the settings say of a language model.

    Raises:
        SettingsError: the address is not http(s), or no model is named; the key is in the text.
    """
    address = settings.llm_base_url
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise SettingsError(
            f"TIMEOUT_KB_LLM_BASE_URL={redact(address)[0]!r} is not an http(s) address",
            todo="set it to the server's base address, such as http://127.0.0.1:8080/v1",
        )
    if parts.username or parts.password:
        raise SettingsError(
            "TIMEOUT_KB_LLM_BASE_URL holds a user name or password",
            todo="put the key in TIMEOUT_KB_LLM_API_KEY",
        )
    if not settings.llm_model:
        raise SettingsError(
            "TIMEOUT_KB_LLM_BASE_URL is set and TIMEOUT_KB_LLM_MODEL is not",
            todo="set TIMEOUT_KB_LLM_MODEL to a model that server has",
        )


def retry_after_s(header: str) -> float | None:
    """Seconds of a Retry-After header; None where it is a date or nothing."""
    try:
        seconds = float(header)
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None


def hang_up(answer: Stream[ChatCompletionChunk] | None) -> None:
    """Shut the connection of an answer read by another thread, which wakes that thread.

    Closing the socket would not: the reader goes on waiting on it.
    """
    network = answer.response.extensions.get("network_stream") if answer else None
    connection = network.get_extra_info("socket") if network else None
    if connection is None:
        return
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the other side was faster


def _messages(request: ModelRequest) -> list[ChatCompletionMessageParam]:
    """The rules, then the data. It is redacted already; what leaves the machine is so again."""
    safe = replace(
        request,
        evidence=tuple(redact(text)[0] for text in request.evidence),
        question=redact(request.question)[0],
    )
    return [
        {"role": "system", "content": safe.system},
        {"role": "user", "content": fenced(safe)},
    ]


def _client_package() -> ModuleType:
    try:
        import openai
    except ImportError as error:
        raise SettingsError(
            "TIMEOUT_KB_LLM_BASE_URL is set and the package 'openai' is not installed",
            todo="install it: pip install 'timeout-kb[llm]'",
        ) from error
    return openai
