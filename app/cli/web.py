"""`timeout-kb web`: the page for people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from app.cli.common import State, address_options, note
from app.server.address import is_loopback, listen, shown_address, when_answering
from app.server.processes import stop_signals_end_quietly
from kb.errors import MissingExtraError, SettingsError

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from kb.settings import Settings

MIB = 1024 * 1024
HEALTH = "/_stcore/health"
# Streamlit lays out by inline styles, and loads the scripts of our components from blobs.
PAGE_POLICY = (
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval' blob:; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; "
    "media-src 'self' data: blob:; "
    "worker-src 'self' blob:; connect-src 'self'; object-src 'none'; base-uri 'self'; "
    "form-action 'self'; frame-ancestors 'none'"
)
SCRIPT = Path(__file__).resolve().parent.parent / "web" / "main.py"


remote_option = click.option(
    "--allow-remote",
    is_flag=True,
    help="Serve other machines. The page has no login: put it behind a proxy that has one.",
)


@click.command("web")
@address_options("TIMEOUT_KB_WEB_PORT or 8501")
@remote_option
@click.pass_context
def command(context: click.Context, host: str | None, port: int | None, allow_remote: bool) -> None:
    """Serve the page for the browser until Ctrl-C. Port 0 takes a free one."""
    state = context.find_object(State) or State()
    settings = state.settings_at(host, state.settings.web_port if port is None else port)
    check_exposure(settings, allow_remote=allow_remote)
    check_streamlit()
    # Taken and given back at once: a taken port is told now, and port 0 becomes a number.
    with listen(settings) as listening:
        settings = state.settings_at(settings.host, listening.getsockname()[1])
        address = shown_address(listening)
    with state.service():
        pass  # builds what is missing now and says so, not at the first visitor's expense
    if allow_remote:
        note("the page has no login: whoever reaches it can read and add what is in it")
    from app.server.observability import configure_logging
    from app.web.context import warm

    configure_logging(settings.log_level)
    page = guarded_page(settings, alone=not allow_remote)
    warm()
    if state.announces:
        announcement = f"timeout-kb shows its page on {address} (Ctrl-C ends it)"
        when_answering(settings, HEALTH, lambda: note(announcement))
    with stop_signals_end_quietly():
        page.run(
            config={name.replace("_", "."): value for name, value in options(settings).items()}
        )


def check_exposure(settings: Settings, *, allow_remote: bool) -> None:
    """Refuse to serve other machines unless that is asked for.

    Raises:
        SettingsError: the host is not this machine alone.
    """
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
    from app.web.components.style import theme_flags

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


def guarded_page(settings: Settings, *, alone: bool) -> Any:  # noqa: ANN401 - of Streamlit
    """The page behind a guard: where nobody signs in, no other site reads or writes through it.

    `alone` says that this machine alone is served.
    """
    import streamlit
    from starlette.middleware import Middleware

    from app.server.browser_guard import BrowserGuard

    guarded = alone and not settings.login_header
    guard = Middleware(
        BrowserGuard,
        guards=lambda: guarded,
        refuse=_refuse_foreign,
        public_url=settings.public_url,
        policy=PAGE_POLICY,
    )
    return streamlit.App(SCRIPT, middleware=[guard])


async def _refuse_foreign(
    scope: Scope, receive: Receive, send: Send, reason: str, _foreign: str
) -> None:
    from starlette.responses import PlainTextResponse

    why = f"{reason}: open 127.0.0.1 or localhost, or set TIMEOUT_KB_PUBLIC_URL\n"
    await PlainTextResponse(why, status_code=403)(scope, receive, send)


def check_streamlit() -> None:
    """Whether the page's packages are there.

    Raises:
        MissingExtraError: one is not.
    """
    try:
        import streamlit  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise MissingExtraError(
            f"the page needs a package that is not installed: {error.name}",
            todo="pip install 'timeout-kb[web]'",
        ) from error
