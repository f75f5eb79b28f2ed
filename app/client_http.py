"""HTTP as the client needs it: keys, retries, problems turned into errors, server-sent events."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import urlsplit

import msgspec

from app.api.schemas import Problem
from app.server.address import is_loopback
from kb.errors import InputError, KBError, MissingExtraError, NotFoundError
from kb.retry_after import parse_retry_after
from kb.text.redact import redact

if TYPE_CHECKING:
    import httpx
    from httpx_sse import ServerSentEvent

TRIES = 4  # of a request the server is too busy for
PAUSE_S = 1.0  # between two of them, where the server does not say how long
MAX_PAUSE_S = 30.0  # whatever it says
MAX_DETAIL = 200  # characters of an answer that is no problem document
TYPE_PREFIX = "urn:timeout-kb:problem:"
BUSY = (429, 503)


class ApiError(KBError):
    """The server refused or failed; `status` is 0 where there was no answer.

    Attributes:
        status: HTTP status.
        request_id: finds the request in the server's log.
    """

    def __init__(
        self, what: str, *, todo: str = "", code: str = "api", status: int = 0, request_id: str = ""
    ) -> None:
        super().__init__(what, todo=todo)
        self.code = code
        self.status = status
        self.request_id = request_id


class Exchange:
    """Requests to one server."""

    def __init__(
        self, base_url: str, key: str | None, *, timeout_s: float, sleep: Callable[[float], None]
    ) -> None:
        """Talk to the server at `base_url`.

        Raises:
            MissingExtraError: httpx is not installed.
            InputError: `base_url` is no http address, or `key` no key.
        """
        try:
            import httpx
        except ImportError as error:
            raise MissingExtraError(
                "the client needs httpx, which is not installed",
                todo="pip install 'timeout-kb[client]'",
            ) from error
        host = _host(base_url)
        if not host:
            raise InputError(
                f"{shown(base_url)!r} is no address of a server",
                todo="such as http://127.0.0.1:8000",
            )
        if key and not (key.isascii() and key.isprintable()):
            raise InputError("the API key holds characters that no key has", todo="copy it again")
        self._base = base_url.rstrip("/")
        self._sleep = sleep
        self._http = httpx.Client(
            timeout=timeout_s,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            trust_env=not is_loopback(host),  # no proxy stands before this machine
        )

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        body: Callable[[], dict[str, Any]] = dict,
        once: bool = False,
        **options: Any,  # noqa: ANN401 - passed on to httpx as they are
    ) -> httpx.Response:
        """One exchange, repeated while the server is too busy unless it can be sent `once` only.

        `body` makes the body anew for every try.

        Raises:
            KBError: the server refused, failed, or does not answer.
        """
        response = self._tried(
            lambda: self._http.build_request(method, self._base + path, **options, **body()),
            stream=False,
            tries=1 if once else TRIES,
        )
        if not response.is_success:
            raise error_of(response)
        return response

    def events(self, path: str, content: bytes) -> Iterator[ServerSentEvent]:
        """The server-sent events that answer a JSON body, as they come."""
        from httpx_sse import EventSource

        headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        response = self._tried(
            lambda: self._http.build_request(
                "POST", self._base + path, content=content, headers=headers
            ),
            stream=True,
            tries=TRIES,
        )
        with contextlib.closing(response):
            if not response.is_success:
                response.read()
                raise error_of(response)
            with self._explained():
                yield from EventSource(response).iter_sse()

    def _tried(
        self, build: Callable[[], httpx.Request], *, stream: bool, tries: int
    ) -> httpx.Response:
        while True:
            tries -= 1
            with self._explained():
                response = self._http.send(build(), stream=stream)
            if response.status_code not in BUSY or tries <= 0:
                return response
            response.close()
            self._sleep(_pause_s(response.headers.get("retry-after", "")))

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        import httpx

        try:
            yield
        except httpx.HTTPError as error:
            raise ApiError(
                f"{shown(self._base)} does not answer: {error or type(error).__name__}",
                todo="check the address and that the server runs (timeout-kb serve)",
                code="unreachable",
            ) from error


def shown(address: str) -> str:
    """An address as it may be printed: without a password in it."""
    return redact(address)[0]


def error_of(response: httpx.Response) -> KBError:
    """The error a response is: the problem document's words, where it is one."""
    request_id = response.headers.get("x-request-id", "")
    try:
        problem = msgspec.json.decode(response.content, type=Problem)
    except msgspec.DecodeError:
        return ApiError(
            f"{shown(str(response.url))} answered {response.status_code}: "
            f"{response.text[:MAX_DETAIL]}",
            todo="check that this is the address of a timeout-kb server",
            status=response.status_code,
            request_id=request_id,
        )
    return problem_error(problem)


def problem_error(problem: Problem) -> KBError:
    """The error a problem document tells of."""
    code = problem.type.removeprefix(TYPE_PREFIX)
    if code == NotFoundError.code:
        return NotFoundError(problem.detail, todo=problem.todo)
    if code == InputError.code:
        return InputError(problem.detail, todo=problem.todo)
    return ApiError(
        problem.detail,
        todo=problem.todo,
        code=code,
        status=problem.status,
        request_id=problem.request_id,
    )


@contextlib.contextmanager
def opened(paths: Sequence[Path]) -> Iterator[list[BinaryIO]]:
    """The files, open for reading.

    Raises:
        InputError: one cannot be opened.
    """
    with contextlib.ExitStack() as stack:
        files: list[BinaryIO] = []
        for path in paths:
            try:
                files.append(stack.enter_context(path.open("rb")))
            except OSError as error:
                raise InputError(f"{path}: {error.strerror}", todo="check the path") from error
        yield files


def _pause_s(retry_after: str) -> float:
    """Seconds to wait before the next try."""
    seconds = parse_retry_after(retry_after)
    return PAUSE_S if seconds is None else min(seconds, MAX_PAUSE_S)


def _host(base_url: str) -> str:
    """The host of an http address; empty where it is none."""
    try:
        parts = urlsplit(base_url)
        known = parts.scheme in ("http", "https") and parts.port != 0
    except ValueError:  # of a port or an address in brackets
        return ""
    return (parts.hostname or "") if known else ""
