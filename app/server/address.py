"""Where a server listens: its socket, its address, whether it answers, who can reach it."""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from kb.errors import InputError

if TYPE_CHECKING:
    from kb.settings import Settings

HEALTH_TIMEOUT_S = 5.0
POLL_S = 0.1  # between two looks whether a server answers


def is_loopback(host: str) -> bool:
    """Whether `host` names this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(settings: Settings, *, option: str = "--port") -> socket.socket:
    """A bound socket, taken before anything slow happens; `option` chooses another port.

    Raises:
        InputError: the address is wrong or the port is taken.
    """
    host, port = settings.host, settings.port
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        # With the protocol named, asyncio turns off Nagle's algorithm; else an answer's body waits
        # behind its head for the caller's delayed acknowledgement, 40 ms.
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
        except OSError:
            listening.close()
            raise
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(
            f"cannot listen on {host}:{port}: {why}",
            todo=f"stop what uses the port, or choose another with {option}",
            reason="port",
            values={"address": f"{host}:{port}", "why": why, "option": option},
        ) from error
    return listening


def shown_address(listening: socket.socket, *, scheme: str = "http") -> str:
    """The address to open in a browser."""
    host, port = listening.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = socket.gethostname()
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def answers_at(host: str, port: int, path: str, *, tls: bool = False) -> bool:
    """Whether an HTTP server answers `path` with 200; whose certificate it has is not asked."""
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_unspecified:
            host = "::1" if ":" in host else "127.0.0.1"
    connection = http.client.HTTPConnection(host, port, timeout=HEALTH_TIMEOUT_S)
    if tls:
        context = ssl._create_unverified_context()  # noqa: S323 - our own server, before it is used
        connection = http.client.HTTPSConnection(
            host, port, timeout=HEALTH_TIMEOUT_S, context=context
        )
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def when_answering(
    settings: Settings, path: str, act: Callable[[], object], *, tls: bool = False
) -> None:
    """Call `act` in a thread once the server of these settings answers `path`."""

    def wait() -> None:
        while not answers_at(settings.host, settings.port, path, tls=tls):
            time.sleep(POLL_S)
        act()

    threading.Thread(target=wait, daemon=True).start()
