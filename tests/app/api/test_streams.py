"""Long bodies: a limit on their time, and on what an archive may unpack to."""

from __future__ import annotations

import contextlib
import gzip
import http.client
import itertools
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from app.api import requests
from app.api.context import STREAMS
from app.server import http_protocol
from kb.bootstrap import open_service
from kb.errors import InputError, SlowInputError
from kb.files.decode import BLANK_BYTES
from kb.files.zstd import compress
from kb.service import Service
from kb.settings import Settings

Serve = Callable[[object, Settings], contextlib.AbstractContextManager[str]]
LINE = b"2025-06-17 10:00:00 INFO step 1 loss 2.0 nothing to see here\n"
SHORT_LIMIT_S = 0.4
RAW = {"Content-Type": "application/octet-stream"}


@pytest.fixture(scope="module")
def service(built_home: Callable[[], Path]) -> Iterator[Service]:
    """The real service."""
    service = open_service(Settings(home=built_home()))
    yield service
    service.close()


def bomb(megabytes: int) -> bytes:
    """A small archive of a large log."""
    frame = compress(LINE * ((1 << 20) // len(LINE)), level=1)
    return frame * megabytes


def test_an_archive_without_end_is_given_up(
    service: Service, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few hundred kilobytes that unpack to gigabytes cost the limit, not minutes."""
    monkeypatch.setattr(requests, "STREAM_S", SHORT_LIMIT_S)
    packed = bomb(4096)
    assert len(packed) < 2 << 20
    with serve(service, Settings(home=service.settings.home)) as address:
        before = time.process_time()  # of server and sender: other programs do not count
        answer = httpx.post(f"{address}/v1/diagnose", content=packed, headers=RAW, timeout=60)
        used = time.process_time() - before
        assert (answer.status_code, answer.json()["type"].rpartition(":")[2]) == (413, "too-long")
        assert "longer than 0.4 seconds" in answer.json()["detail"]
        assert used < 10 * SHORT_LIMIT_S
        part = {"file": ("job.log.zst", packed)}
        form = httpx.post(f"{address}/v1/diagnose", files=part, timeout=60)
        assert form.status_code == 413
        whole = httpx.post(f"{address}/v1/diagnose", content=gzip.compress(LINE * 50), headers=RAW)
        assert whole.status_code == 200


def test_a_sender_that_never_ends_is_cut_off(
    service: Service, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody who sends a line now and then, never idle for long, gets 408 at the limit."""
    monkeypatch.setattr(requests, "STREAM_S", SHORT_LIMIT_S)
    with serve(service, Settings(home=service.settings.home)) as address:
        place = urlsplit(address)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)
        connection.putrequest("POST", "/v1/diagnose")
        connection.putheader("Transfer-Encoding", "chunked")
        connection.putheader("Content-Type", "application/octet-stream")
        connection.endheaders()
        piece = b"%x\r\n%s\r\n" % (len(LINE), LINE)
        end = time.monotonic() + 20
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in itertools.takewhile(lambda _: time.monotonic() < end, itertools.count()):
                connection.send(piece)
                if _readable(connection):
                    break
        answer = connection.getresponse()
        assert answer.status == 408
        connection.close()


def _readable(connection: http.client.HTTPConnection) -> bool:
    """Whether an answer arrives within a moment."""
    import select

    return bool(select.select([connection.sock], [], [], 0.05)[0])


@contextlib.contextmanager
def slow_uploads(address: str, count: int) -> Iterator[list[http.client.HTTPConnection]]:
    """So many uploads that have begun, and of which no more comes by itself."""
    place = urlsplit(address)
    with contextlib.ExitStack() as opened:
        connections = []
        for _ in range(count):
            connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)
            opened.callback(connection.close)
            connection.putrequest("PUT", "/v1/diagnose")
            connection.putheader("Content-Length", "1000000")
            connection.endheaders()
            connection.send(LINE)
            connections.append(connection)
        yield connections


def test_slow_uploads_keep_nobody_from_writing(service: Service, serve: Serve) -> None:
    """While all places of uploads are taken the knowledge base is changed and read as ever."""
    home = service.settings.home
    feedback = {"verdict": "right", "cause": "rank-crash"}
    with (
        serve(service, Settings(home=home)) as address,
        slow_uploads(address, 2 * STREAMS),
        httpx.Client(base_url=address, timeout=requests.IDLE_S * 0.8) as client,
    ):
        assert client.put("/v1/diagnose", content=LINE).status_code == 200
        assert client.post("/v1/feedback", json=feedback).status_code == 201


def test_a_drop_now_and_then_is_too_slow(
    service: Service, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is never idle for long, but far below any line's rate, gives the place back."""
    monkeypatch.setattr(requests, "GRACE_S", 0.3)
    started = time.monotonic()
    with (
        serve(service, Settings(home=service.settings.home)) as address,
        slow_uploads(address, 1) as (connection,),
    ):
        while not _readable(connection):
            connection.send(LINE)
        assert connection.getresponse().status == 408
    assert time.monotonic() - started < 10


def test_a_slow_line_is_taken(
    service: Service, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At twice the least rate a body of seconds comes through."""
    monkeypatch.setattr(requests, "GRACE_S", 0.1)
    body = LINE * 1000

    def drops() -> Iterator[bytes]:
        for start in range(0, len(body), requests.LEAST_RATE // 10):
            yield body[start : start + requests.LEAST_RATE // 10]
            time.sleep(0.05)

    with serve(service, Settings(home=service.settings.home)) as address:
        answer = httpx.put(f"{address}/v1/diagnose", content=drops(), headers=RAW, timeout=30)
    assert answer.status_code == 200


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: "],
    ids=["nothing", "half a line", "half a head"],
)
def test_half_a_head_is_not_waited_for(
    service: Service, serve: Serve, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    """A connection on which no whole head comes is closed, however often a byte is sent."""
    monkeypatch.setattr(http_protocol, "HEAD_S", 0.4)
    with serve(service, Settings(home=service.settings.home)) as address:
        place = urlsplit(address)
        with socket.create_connection((place.hostname, place.port), timeout=60) as connection:
            whole = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
            if sent:  # also behind an answered request
                connection.sendall(whole)
                answered = b""
                while not answered.endswith(b"}"):
                    answered += connection.recv(4096)
            connection.sendall(sent)
            started = time.monotonic()
            assert b" 408 " in connection.recv(4096)
            assert connection.recv(4096) == b""
            assert time.monotonic() - started < 5


def test_the_reader_stops_at_its_limit(service: Service, tmp_path: Path) -> None:
    """Streams and files alike; without a limit nothing stops."""
    endless = itertools.repeat(LINE * 4096)
    with pytest.raises(SlowInputError, match=r"longer than 0\.2 seconds"):
        service.reader.read_stream(endless, limit_s=0.2)
    path = tmp_path / "job.log"
    path.write_bytes(LINE * 100_000)
    with pytest.raises(SlowInputError):
        service.read_paths([path], limit_s=0.0)
    assert service.read_paths([path]).incident.lines == 100_000


def test_blanks_without_end_are_an_empty_log(service: Service) -> None:
    """What unpacks to nothing but blanks is refused after a quarter of a gigabyte."""
    taken = 0

    def blanks() -> Iterator[bytes]:
        nonlocal taken
        while True:
            taken += 1 << 20
            yield b"\n" * (1 << 20)

    with pytest.raises(InputError, match="empty"):
        service.reader.read_stream(blanks())
    assert BLANK_BYTES <= taken <= BLANK_BYTES + (4 << 20)
