"""`timeout-kb serve`: the HTTP API."""

from __future__ import annotations

import contextlib
import ipaddress
import signal
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from app.commands.common import State, note
from kb.errors import InputError

if TYPE_CHECKING:
    from kb.settings import Settings

GRACE_S = 10  # running requests may finish this long after the signal to stop
EXAMPLE = "WorkNCCL(SeqNum=7, OpType=ALLREDUCE, Timeout(ms)=600000) timed out"


@click.command("serve")
@click.option("--host", help="Address to listen on. Default: TIMEOUT_KB_HOST or 127.0.0.1.")
@click.option("--port", type=click.IntRange(0, 65535), help="Default: TIMEOUT_KB_PORT or 8000.")
@click.pass_context
def command(context: click.Context, host: str | None, port: int | None) -> None:
    """Serve the HTTP API until Ctrl-C. Port 0 takes a free one."""
    import dataclasses

    state = context.find_object(State) or State()
    settings = state.settings
    settings = dataclasses.replace(
        settings,
        host=settings.host if host is None else host,
        port=settings.port if port is None else port,
    )
    from app.api.access import check_exposure

    check_exposure(settings)
    listening = listen(settings)
    with listening, state.service() as service:
        import uvicorn

        from app.api import create_app
        from app.observe import configure_logging

        configure_logging(settings.log_level)
        address = shown_address(listening)

        class Server(uvicorn.Server):
            """Says where it answers once it does."""

            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                note(f"timeout-kb answers on {address} (documentation: {address}/docs). Try:")
                note(f"  curl {address}/v1/diagnose -H 'Accept: text/plain' -T job.log")

        config = uvicorn.Config(
            create_app(service, settings),
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=GRACE_S,
            server_header=False,
        )
        with stop_signals_end_quietly():
            Server(config).run(sockets=[listening])


@contextlib.contextmanager
def stop_signals_end_quietly() -> Iterator[None]:
    """Let SIGTERM and Ctrl-C leave the block with exit code 0.

    The server finishes running requests on either, then raises the signal again; its usual
    effect would end the process before the knowledge base is closed.
    """

    def leave(_number: int, _frame: object) -> None:
        raise SystemExit(0)

    kept = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def listen(settings: Settings) -> socket.socket:
    """A bound socket, taken before anything slow happens.

    Raises:
        InputError: the address is wrong or the port is taken.
    """
    host, port = settings.host, settings.port
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as error:
        raise InputError(
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            todo="stop what uses the port, or choose another with --port",
        ) from error
    return listening


def shown_address(listening: socket.socket) -> str:
    """The address to open in a browser."""
    host, port = listening.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = socket.gethostname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
