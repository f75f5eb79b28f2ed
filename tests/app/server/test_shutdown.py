"""Stopping a server that is at work: what runs is finished, nothing new begins."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest

from tests.app.conftest import Started

DEADLINE_S = 60
LINE = b"step 100 loss 2.5, everything as usual here\n"
LOG = (
    b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    b"[rank1]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=14217, "
    b"OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 ms\n"
)


@pytest.fixture
def process(
    built_home: Callable[[], Path], start: Callable[..., AbstractContextManager[Started]]
) -> Iterator[Started]:
    """A running server and its address."""
    with start(built_home()) as started:
        yield started


def wait_until_refused(address: str) -> None:
    """Poll until nobody accepts connections there."""
    host, port = address.removeprefix("http://").split(":")
    deadline = time.monotonic() + DEADLINE_S
    pause = threading.Event()
    while True:
        with socket.socket() as probe:
            if probe.connect_ex((host, int(port))) != 0:
                return
        assert time.monotonic() < deadline, "the server still takes connections"
        pause.wait(0.02)


def test_an_upload_under_way_is_finished_before_the_server_ends(
    process: Started,
) -> None:
    """SIGTERM amid an upload: new connections are refused, the upload is answered, code 0."""
    running, address = process

    def body() -> Iterator[bytes]:
        yield LINE * 10_000
        running.send_signal(signal.SIGTERM)
        wait_until_refused(address)
        yield LINE * 10_000
        yield LOG

    response = httpx.put(f"{address}/v1/diagnose", content=body(), timeout=DEADLINE_S)
    assert response.status_code == 200
    answer = response.json()
    assert answer["causes"][0]["id"] == "rank-crash"
    assert answer["incident"]["lines"] == 20_002
    assert running.wait(DEADLINE_S) == 0
