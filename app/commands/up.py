"""`timeout-kb up`: the HTTP API and the page together, as child processes of one command."""

from __future__ import annotations

import dataclasses
import importlib.util
import signal
import threading
from typing import TYPE_CHECKING

import click

from app.commands.common import EXIT_FAILURE, State, note, usage
from kb.errors import KBError
from kb.settings import PREFIX

if TYPE_CHECKING:
    from types import FrameType

    from app.children import Child
    from kb.settings import Settings

READY_S = 120  # a first start builds the knowledge base, on a slow disk too
POLL_S = 0.1  # between two looks at the children
STOP_S = 30  # a server's grace of 10 s, then its threads at work: up to 23 s with a slow model
SHOWN = 20  # lines of a child that died
API, PAGE = "API", "page"
# What the children say themselves once they answer; this command says it for both.
ANNOUNCED = ("timeout-kb answers on ", "timeout-kb shows its page on ", "  curl ", "no keys: ")


class StartError(KBError):
    """A part did not start, or died."""

    code = "start"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where both parts answer; `page` is empty where there is none."""

    api: str
    page: str


@click.command("up")
@click.option("--host", help="Address to listen on. Default: TIMEOUT_KB_HOST or 127.0.0.1.")
@click.option("--port", type=click.IntRange(0, 65535), help="Of the API. Default: 8000.")
@click.option("--web-port", type=click.IntRange(0, 65535), help="Of the page. Default: 8501.")
@click.option(
    "--allow-remote", is_flag=True, help="Let other machines open the page, which has no login."
)
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
    state = context.find_object(State) or State()
    settings = state.settings
    settings = dataclasses.replace(
        settings,
        host=settings.host if host is None else host,
        port=settings.port if port is None else port,
        web_port=settings.web_port if web_port is None else web_port,
    )
    with_page = importlib.util.find_spec("streamlit") is not None
    if not with_page:
        note("Streamlit is not installed, so there is no page: pip install 'timeout-kb[web]'")
    _check_exposure(settings, with_page=with_page, allow_remote=allow_remote)
    if with_page and settings.port == settings.web_port != 0:
        raise usage("usage.same_port", port=settings.port)
    settings, addresses = reserve(settings, with_page=with_page)
    context.exit(_Supervisor(settings, addresses, allow_remote=allow_remote).run())


def _check_exposure(settings: Settings, *, with_page: bool, allow_remote: bool) -> None:
    from app.api import access
    from app.commands import web

    access.check_exposure(settings)
    if with_page:
        web.check_exposure(settings, allow_remote=allow_remote)


def reserve(settings: Settings, *, with_page: bool) -> tuple[Settings, Addresses]:
    """Settings whose ports are numbers that are free now, and the addresses with them.

    Raises:
        InputError: a port is taken.
    """
    from app.commands.serve import listen, shown_address

    with listen(settings) as api:
        settings = dataclasses.replace(settings, port=api.getsockname()[1])
        if not with_page:
            return settings, Addresses(api=shown_address(api), page="")
        wanted = dataclasses.replace(settings, port=settings.web_port)
        with listen(wanted, option="--web-port") as page:
            settings = dataclasses.replace(settings, web_port=page.getsockname()[1])
            return settings, Addresses(api=shown_address(api), page=shown_address(page))


class _Supervisor:
    """Starts the children, waits for them, and stops all when one ends or a signal comes."""

    def __init__(self, settings: Settings, addresses: Addresses, *, allow_remote: bool) -> None:
        self._settings = settings
        self._addresses = addresses
        self._allow_remote = allow_remote
        self._children: list[Child] = []
        self._asked = threading.Event()
        self._signals = 0

    def run(self) -> int:
        """Serve until a signal (0) or until a part dies (1)."""
        kept = {
            number: signal.signal(number, self._on_signal)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        }
        try:
            return self._serve()
        finally:
            self._stop()
            for number, handler in kept.items():
                signal.signal(number, handler)

    def _serve(self) -> int:
        settings, addresses = self._settings, self._addresses
        place = ["--host", settings.host, "--port"]
        page = settings.public_url or addresses.page
        linked = ["--page", page] if page else []
        # The API first: it builds the knowledge base where it is missing, the page then opens it.
        self._start(API, ["serve", *place, str(settings.port), *linked], settings.port, "/healthz")
        if addresses.page and not self._asked.is_set():
            remote = ["--allow-remote"] if self._allow_remote else []
            words = ["web", *place, str(settings.web_port), *remote]
            self._start(PAGE, words, settings.web_port, "/_stcore/health")
        if not self._asked.is_set():
            self._announce()
        while not self._asked.wait(POLL_S):
            for child in self._children:
                if child.ended():
                    note(f"the {child.name} ended with {child.outcome()}; its last lines:")
                    for line in child.last_lines():
                        note(f"  {line}")
                    return EXIT_FAILURE
        return 0

    def _start(self, name: str, words: list[str], port: int, health: str) -> None:
        """Start a child and wait until it answers.

        Raises:
            StartError: it died, or does not answer in time.
        """
        import time

        from app.children import Child, answers

        # The page tells people where the API is.
        known = {f"{PREFIX}PORT": str(self._settings.port), f"{PREFIX}HOST": self._settings.host}
        child = Child(name, words, hidden=ANNOUNCED, settings=known)
        self._children.append(child)
        deadline = time.monotonic() + READY_S
        while not answers(self._settings.host, port, health):
            if self._asked.wait(POLL_S):
                return
            if child.ended():
                said = "\n  ".join(child.last_lines())
                raise StartError(
                    f"the {name} ended with {child.outcome()}:\n  {said}",
                    reason="child_ended",
                    values={"child": name, "outcome": child.outcome(), "said": said},
                )
            if time.monotonic() > deadline:
                raise StartError(
                    f"the {name} does not answer after {READY_S} s",
                    todo=f"try it alone: timeout-kb {' '.join(words)}",
                    reason="child_silent",
                    values={"child": name, "seconds": str(READY_S), "verb": " ".join(words)},
                )

    def _announce(self) -> None:
        from app.api.access import open_door

        api, page = self._addresses.api, self._addresses.page
        if alone := open_door(self._settings):
            note(alone)
        if page:
            note(f"page: {page}")
        note(f"API:  {api} (documentation: {api}/docs). Try:")
        note(f"  curl -s {api}/v1/diagnose -H 'Accept: text/plain' -T job.log")

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        """Stop in order; who asks a second time does not want to wait."""
        self._signals += 1
        self._asked.set()
        if self._signals > 1:
            for child in self._children:
                child.kill()

    def _stop(self) -> None:
        for child in self._children:
            child.terminate()
        for child in self._children:
            child.wait(STOP_S)
