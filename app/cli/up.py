"""`timeout-kb up`: the HTTP API and the page together, as child processes of one command."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from app.cli import serve, web
from app.cli.common import EXIT_FAILURE, State, address_options, note, usage
from app.cli.main import main
from app.server.address import POLL_S, answers_at, listen, shown_address
from app.server.processes import end_with_parent, stop_signals_end_quietly
from kb.errors import KBError
from kb.settings import PREFIX

if TYPE_CHECKING:
    from multiprocessing.context import SpawnProcess

    from kb.settings import Settings

READY_S = 120  # a first start builds the knowledge base, on a slow disk too
STOP_S = 30  # a server's grace of 10 s, then its threads at work


class StartError(KBError):
    """A part did not start, or died."""

    code = "start"


@dataclasses.dataclass(frozen=True, slots=True)
class ChildServer:
    """One of the two servers: its verb with all options, and where it says that it is well."""

    name: str
    words: Sequence[str]
    port: int
    health: str


@click.command("up")
@address_options("8000, of the API")
@click.option("--web-port", type=click.IntRange(0, 65535), help="Of the page. Default: 8501.")
@web.remote_option
@click.pass_context
def command(
    context: click.Context,
    host: str | None,
    port: int | None,
    web_port: int | None,
    allow_remote: bool,
) -> None:
    """Serve the API and the page until Ctrl-C; ends with 1 when one of them dies.

    Port 0 takes a free one. Without Streamlit (the extra `web`) there is the API alone.
    """
    from app.api import auth

    state = context.find_object(State) or State()
    settings = state.settings_at(host, port)
    if web_port is not None:
        settings = dataclasses.replace(settings, web_port=web_port)
    with_page = importlib.util.find_spec("streamlit") is not None
    auth.check_exposure(settings)
    if with_page:
        web.check_exposure(settings, allow_remote=allow_remote)
        if settings.port == settings.web_port != 0:
            raise usage("usage.same_port", port=settings.port)
    else:
        note("Streamlit is not installed, so there is no page: pip install 'timeout-kb[web]'")
    settings, api_address, page_address = reserve(settings, with_page=with_page)
    page_url = settings.public_url or page_address
    linked = ["--page", page_url] if page_url else []
    remote = ["--allow-remote"] if allow_remote else []
    # The API first: it builds the knowledge base where it is missing, the page then opens it.
    servers = [ChildServer("API", ["serve", *linked], settings.port, serve.HEALTH)]
    if with_page:
        servers.append(ChildServer("page", ["web", *remote], settings.web_port, web.HEALTH))
    with stop_signals_end_quietly(), child_processes() as processes:
        for server in servers:
            processes.append(start(server, settings))
            wait_until_ready(server, processes[-1], settings)
        if page_address:
            note(f"page: {page_address}")
        serve.announce(settings, api_address, lead="API: ")
        context.exit(watch(servers, processes))


def reserve(settings: Settings, *, with_page: bool) -> tuple[Settings, str, str]:
    """Settings whose ports are numbers that are free now, and the addresses of API and page.

    The page's is empty where there is none.

    Raises:
        InputError: a port is taken.
    """
    with listen(settings) as api:
        settings = dataclasses.replace(settings, port=api.getsockname()[1])
        if not with_page:
            return settings, shown_address(api), ""
        page_settings = dataclasses.replace(settings, port=settings.web_port)
        with listen(page_settings, option="--web-port") as page:
            settings = dataclasses.replace(settings, web_port=page.getsockname()[1])
            return settings, shown_address(api), shown_address(page)


@contextlib.contextmanager
def child_processes() -> Iterator[list[SpawnProcess]]:
    """Processes put into the list end with the block: asked, and killed where they do not listen.

    Whoever asks a second time meanwhile does not want to wait: then they are killed at once.
    """
    processes: list[SpawnProcess] = []
    try:
        yield processes
    finally:
        try:
            for process in processes:
                process.terminate()
            for process in processes:
                process.join(STOP_S)
        finally:
            for process in processes:
                process.kill()


def start(server: ChildServer, settings: Settings) -> SpawnProcess:
    """Start a server in a process of its own."""
    words = [*server.words, "--host", settings.host, "--port", str(server.port)]
    # The page tells people where the API is.
    variables = {f"{PREFIX}PORT": str(settings.port), f"{PREFIX}HOST": settings.host}
    process = multiprocessing.get_context("spawn").Process(target=run_verb, args=(words, variables))
    process.start()
    return process


def run_verb(words: Sequence[str], variables: Mapping[str, str]) -> None:
    """In the new process: run another verb, whose output goes to standard error."""
    os.setsid()  # Ctrl-C reaches it through its parent, once
    sys.stdout = sys.stderr
    end_with_parent()
    os.environ |= variables
    main(words, state=State(announces=False))


def wait_until_ready(server: ChildServer, process: SpawnProcess, settings: Settings) -> None:
    """Wait until a server answers.

    Raises:
        StartError: it died, or does not answer in time.
    """
    deadline = time.monotonic() + READY_S
    while not answers_at(settings.host, server.port, server.health):
        time.sleep(POLL_S)
        if process.exitcode is not None:
            ending = how_it_ended(process.exitcode)
            raise StartError(
                f"the {server.name} ended with {ending}; its last lines stand above",
                reason="child_ended",
                values={"child": server.name, "ending": ending},
            )
        if time.monotonic() > deadline:
            verb = " ".join(server.words)
            raise StartError(
                f"the {server.name} does not answer after {READY_S} s",
                todo=f"try it alone: timeout-kb {verb}",
                reason="child_silent",
                values={"child": server.name, "seconds": str(READY_S), "verb": verb},
            )


def watch(servers: Sequence[ChildServer], processes: Sequence[SpawnProcess]) -> int:
    """Wait until one of them ends, which it should not; the exit code."""
    while True:
        for server, process in zip(servers, processes, strict=True):
            if process.exitcode is not None:
                ending = how_it_ended(process.exitcode)
                note(f"the {server.name} ended with {ending}; its last lines stand above")
                return EXIT_FAILURE
        time.sleep(POLL_S)


def how_it_ended(code: int) -> str:
    """The end of a process: ``exit code 1`` or ``signal SIGKILL``."""
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
