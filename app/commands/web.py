"""`timeout-kb web`: the page for people."""

from __future__ import annotations

import dataclasses
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from app.commands.common import State, note
from kb.errors import MissingExtraError, SettingsError

if TYPE_CHECKING:
    from kb.settings import Settings

MIB = 1024 * 1024
POLL_S = 0.1  # between two looks whether the page answers
SCRIPT = Path(__file__).resolve().parent.parent / "web" / "main.py"


@click.command("web")
@click.option("--host", help="Address to listen on. Default: TIMEOUT_KB_HOST or 127.0.0.1.")
@click.option("--port", type=click.IntRange(0, 65535), help="Default: TIMEOUT_KB_WEB_PORT or 8501.")
@click.option(
    "--allow-remote",
    is_flag=True,
    help="Serve other machines. The page has no login: put it behind a proxy that has one.",
)
@click.pass_context
def command(context: click.Context, host: str | None, port: int | None, allow_remote: bool) -> None:
    """Serve the page for the browser until Ctrl-C. Port 0 takes a free one."""
    state = context.find_object(State) or State()
    settings = state.settings
    settings = dataclasses.replace(
        settings,
        host=settings.host if host is None else host,
        port=settings.web_port if port is None else port,
    )
    check_exposure(settings, allow_remote=allow_remote)
    bootstrap = _streamlit()
    from app.commands.serve import listen, shown_address

    # Taken and given back at once: a taken port is told now, and port 0 becomes a number.
    with listen(settings) as listening:
        settings = dataclasses.replace(settings, port=listening.getsockname()[1])
        address = shown_address(listening)
    with state.service():
        pass  # builds what is missing now and says so, not at the first visitor's expense
    if allow_remote:
        note("the page has no login: whoever reaches it can read and add what is in it")
    from app.observe import configure_logging

    configure_logging(settings.log_level)
    flags = options(settings)
    bootstrap.load_config_options(flag_options=flags)
    _warm()
    threading.Thread(target=_announce, args=(settings, address), daemon=True).start()
    bootstrap.run(str(SCRIPT), False, [], flags)


def check_exposure(settings: Settings, *, allow_remote: bool) -> None:
    """Refuse to serve other machines unless that is asked for.

    Raises:
        SettingsError: the host is not this machine alone.
    """
    from app.api.access import is_loopback

    if allow_remote or is_loopback(settings.host):
        return
    raise SettingsError(
        f"host {settings.host} would let everyone in: the page has no login",
        todo="serve this machine only (--host 127.0.0.1), or say --allow-remote",
        reason="page_exposed",
        values={"host": settings.host},
    )


def options(settings: Settings) -> dict[str, Any]:
    """The options Streamlit runs with: nothing is fetched from or sent to anybody else."""
    from app.web.style import theme_flags

    return {
        "server_headless": True,
        "server_address": settings.host,
        "server_port": settings.port,
        "server_maxUploadSize": max(1, settings.max_body // MIB),
        "server_fileWatcherType": "none",
        "server_runOnSave": False,
        "browser_gatherUsageStats": False,
        "client_toolbarMode": "minimal",
        "client_showErrorDetails": "none",
        "client_showErrorLinks": False,
        "logger_hideWelcomeMessage": True,
        "logger_level": "error" if settings.log_level in ("error", "critical") else "warning",
        "runner_magicEnabled": False,
        # One run of a session at a time: else the next event begins a second one beside a press
        # that is still being acted on, which shows nothing of it.
        "runner_fastReruns": False,
        "global_developmentMode": False,
        **theme_flags(),
    }


def _streamlit() -> Any:  # noqa: ANN401 - a module without type information
    try:
        from streamlit.web import bootstrap
    except ImportError as error:
        raise MissingExtraError(
            f"the page needs a package that is not installed: {error.name}",
            todo="pip install 'timeout-kb[web]'",
        ) from error
    return bootstrap


def _warm() -> None:
    """Open what the page will use before anybody asks for it."""
    from app.web.parts import warm

    warm()


def _announce(settings: Settings, address: str) -> None:
    """Say where the page answers once it does."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    health = f"http://{host}:{settings.port}/_stcore/health"
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    while True:
        try:
            with direct.open(health, timeout=5):
                break
        except (urllib.error.URLError, OSError):
            time.sleep(POLL_S)
    note(f"timeout-kb shows its page on {address} (Ctrl-C ends it)")
