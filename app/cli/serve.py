"""`timeout-kb serve`: the HTTP API."""

from __future__ import annotations

import atexit
import dataclasses
import ssl
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import click

from app.cli.common import EXIT_FAILURE, State, address_options, note
from app.server.address import listen, shown_address, when_answering
from app.server.processes import end_with_parent, run_apart, stop_signals_end_quietly, use_one_arena
from kb.errors import KBError, SettingsError

if TYPE_CHECKING:
    from fastapi import FastAPI

    from kb.service import Service
    from kb.settings import Settings

KEEP_ALIVE_S = 75  # longer than a load balancer's, or it sends into a closed connection
GRACE_S = 10  # running requests may finish this long after the signal to stop
HEALTHCHECK_S = 15  # of a worker: while it loads it may not answer for a while
HEALTH = "/healthz"
EXAMPLE = r"rank 3: CUDA out of memory\nrank 0: Watchdog caught collective operation timeout\n"


@click.command("serve")
@address_options("TIMEOUT_KB_PORT or 8000")
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
@click.option(
    "--tls-cert",
    type=click.Path(exists=True, dir_okay=False),
    help="Serve HTTPS with this certificate chain (PEM).",
)
@click.option(
    "--tls-key",
    type=click.Path(exists=True, dir_okay=False),
    help="The certificate's private key, where it does not stand in the same file.",
)
@click.pass_context
def command(
    context: click.Context,
    host: str | None,
    port: int | None,
    page: str | None,
    workers: int,
    tls_cert: str | None,
    tls_key: str | None,
) -> None:
    """Serve the HTTP API until Ctrl-C. Port 0 takes a free one."""
    check_certificate(tls_cert, tls_key)
    state = context.find_object(State) or State()
    settings = state.settings_at(host, port)
    if page is not None:
        settings = dataclasses.replace(settings, public_url=page)
    from app.api.auth import check_exposure

    check_exposure(settings)
    with listen(settings) as listening:
        settings = dataclasses.replace(settings, port=listening.getsockname()[1])
        build_apart(settings, state.open_service)
        import uvicorn
        from uvicorn.config import STARTUP_FAILURE
        from uvicorn.supervisors import Multiprocess

        from app.server.http_protocol import BoundedHead

        if state.announces:
            address = shown_address(listening, scheme="https" if tls_cert else "http")
            said = partial(announce, settings, address)
            when_answering(settings, HEALTH, said, tls=bool(tls_cert))
        config = uvicorn.Config(
            partial(open_app, settings, workers, state.open_service),
            factory=True,
            workers=workers,
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=GRACE_S,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_worker_healthcheck=HEALTHCHECK_S,
            server_header=False,
            http=BoundedHead,
            ssl_certfile=tls_cert,
            ssl_keyfile=tls_key,
        )
        with stop_signals_end_quietly():
            if workers == 1:
                uvicorn.Server(config).run(sockets=[listening])
                return
            supervisor = Multiprocess(config, sockets=[listening])
            supervisor.run()
        if any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes):
            context.exit(EXIT_FAILURE)


def check_certificate(tls_cert: str | None, tls_key: str | None) -> None:
    """Whether certificate and key can be used, before anything slow happens.

    Raises:
        SettingsError: they cannot, or there is a key without a certificate.
    """
    if tls_key and not tls_cert:
        raise SettingsError("--tls-key is given without --tls-cert", todo="give both")
    if not tls_cert:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tls_cert, tls_key)
    except OSError as error:  # SSLError is one
        raise SettingsError(
            f"{tls_cert} cannot be used: {error.strerror or error}",
            todo="give a certificate chain and its private key, both PEM, the key without password",
        ) from error


def build_apart(settings: Settings, open_service: Callable[..., Service]) -> None:
    """Build the knowledge base where there is none: 20 MB this process then never has."""
    from kb.bootstrap import INDEX

    if not (settings.home / INDEX).exists():
        run_apart(lambda: open_service(settings, notify=note).close())


def open_app(settings: Settings, workers: int, open_service: Callable[..., Service]) -> FastAPI:
    """The application over a knowledge base opened for it, in the process that serves it."""
    from uvicorn.config import STARTUP_FAILURE

    from app.api import create_app
    from app.server.observability import configure_logging

    use_one_arena()
    configure_logging(settings.log_level)
    if workers > 1:
        end_with_parent()
    try:
        service = open_service(settings, notify=note)
    except KBError as error:
        if workers == 1:
            raise
        note(f"error: {error}")
        sys.exit(STARTUP_FAILURE)  # another try would fail the same way: the supervisor ends
    atexit.register(service.close)
    return create_app(service, settings, workers=workers)


def announce(settings: Settings, address: str, *, lead: str = "timeout-kb answers on") -> None:
    """Say where the API answers, and that only this machine gets in where there are no keys."""
    from app.api.auth import no_keys_notice

    notice = no_keys_notice(settings)
    key = "" if notice else " -H 'Authorization: Bearer KEY'"
    if notice:
        note(notice)
    note(f"{lead} {address} (documentation: {address}/docs). Try:")
    note(f"  printf '{EXAMPLE}' | curl {address}/v1/diagnose -H 'Accept: text/plain'{key} -T -")
    note("  (a log: curl with -T job.log)")
