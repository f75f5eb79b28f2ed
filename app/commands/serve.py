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
from app.heap import one_heap, run_apart
from app.workers import Worker, supervised
from kb.errors import InputError

if TYPE_CHECKING:
    from kb.settings import Settings

KEEP_ALIVE_S = 75  # longer than a load balancer's, or it sends into a closed connection
GRACE_S = 10  # running requests may finish this long after the signal to stop
EXAMPLE = "WorkNCCL(SeqNum=7, OpType=ALLREDUCE, Timeout(ms)=600000) timed out"


@click.command("serve")
@click.option("--host", help="Address to listen on. Default: TIMEOUT_KB_HOST or 127.0.0.1.")
@click.option("--port", type=click.IntRange(0, 65535), help="Default: TIMEOUT_KB_PORT or 8000.")
@click.option(
    "--page",
    metavar="URL",
    help="Address of the page, for links to kept diagnoses. Default: TIMEOUT_KB_PUBLIC_URL.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Server processes, each with 210 MB and a core of its own; /metrics tells of one of them.",
)
@click.pass_context
def command(
    context: click.Context, host: str | None, port: int | None, page: str | None, workers: int
) -> None:
    """Serve the HTTP API until Ctrl-C. Port 0 takes a free one."""
    import dataclasses

    state = context.find_object(State) or State()
    settings = state.settings
    settings = dataclasses.replace(
        settings,
        host=settings.host if host is None else host,
        port=settings.port if port is None else port,
        public_url=settings.public_url if page is None else page,
    )
    from app.api.access import check_exposure, open_door

    check_exposure(settings)
    worker = one_worker(settings) if workers == 1 else supervised(listen_all(settings, workers))
    one_heap()
    build_apart(state)
    with worker.listening as listening, state.service() as service:
        import uvicorn

        from app.api import create_app
        from app.observe import configure_logging

        configure_logging(settings.log_level)
        address = shown_address(listening)

        class Server(uvicorn.Server):
            """Says where it answers once it does."""

            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                worker.ready()
                if not worker.first:
                    return
                if alone := open_door(settings):
                    note(alone)
                note(f"timeout-kb answers on {address} (documentation: {address}/docs). Try:")
                note(f"  curl {address}/v1/diagnose -H 'Accept: text/plain' -T job.log")

        config = uvicorn.Config(
            create_app(service, settings, workers=workers),
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=GRACE_S,
            timeout_keep_alive=KEEP_ALIVE_S,
            server_header=False,
        )
        with stop_signals_end_quietly():
            Server(config).run(sockets=[listening])


def build_apart(state: State) -> None:
    """Build the knowledge base where there is none: 20 MB this process then never has."""
    from kb.bootstrap import STAMP

    def build() -> None:
        with state.service():
            pass

    if not (state.settings.home / STAMP).exists():
        run_apart(build)


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


def one_worker(settings: Settings) -> Worker:
    """This process as the only server."""
    return Worker(listening=listen(settings), ready=lambda: None, first=True)


def listen_all(settings: Settings, count: int) -> list[socket.socket]:
    """So many bound sockets on one port.

    Raises:
        InputError: the address is wrong or the port is taken.
    """
    import dataclasses

    first = listen(settings, shared=True)
    settings = dataclasses.replace(settings, port=first.getsockname()[1])
    return [first, *(listen(settings, shared=True) for _ in range(count - 1))]


def listen(settings: Settings, *, option: str = "--port", shared: bool = False) -> socket.socket:
    """A bound socket, taken before anything slow happens; `option` chooses another port.

    With `shared`, other sockets of this user may listen on the same port.

    Raises:
        InputError: the address is wrong or the port is taken.
    """
    host, port = settings.host, settings.port
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        family, kind, protocol, _, address = found
        # With the protocol named, asyncio turns off Nagle's algorithm; else an answer's body waits
        # behind its head for the caller's delayed acknowledgement, 40 ms.
        listening = socket.socket(family, kind, protocol)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if shared:
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            listening.bind(address)
        except OSError:
            listening.close()
            raise
    except OSError as error:
        raise InputError(
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            todo=f"stop what uses the port, or choose another with {option}",
            reason="port",
            values={
                "address": f"{host}:{port}",
                "why": error.strerror or str(error),
                "option": option,
            },
        ) from error
    return listening


def shown_address(listening: socket.socket) -> str:
    """The address to open in a browser."""
    host, port = listening.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = socket.gethostname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
