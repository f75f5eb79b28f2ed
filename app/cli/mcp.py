"""`timeout-kb mcp`: the MCP server for coding agents."""

from __future__ import annotations

import contextlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.cli.common import State, address_options, note
from kb.errors import MissingExtraError

if TYPE_CHECKING:
    import socket

    from starlette.applications import Starlette

    from kb.settings import Settings

PORT = 8502  # beside the API's 8000 and the page's 8501
GRACE_S = 10


@click.command("mcp")
@click.option("--http", "over_http", is_flag=True, help="Serve streamable HTTP at /mcp instead.")
@address_options(f"{PORT}, with --http")
@click.option(
    "--root",
    "roots",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder whose files tools may read; may repeat. Default: TIMEOUT_KB_MCP_ROOTS, else none.",
)
@click.option("--read-only", is_flag=True, help="Leave out the tools that add and resolve.")
@click.pass_context
def command(
    context: click.Context,
    over_http: bool,
    host: str | None,
    port: int | None,
    roots: tuple[Path, ...],
    read_only: bool,
) -> None:
    """Answer coding agents over the Model Context Protocol.

    By default the agent starts it and talks over standard input and output. With --http it serves
    until Ctrl-C, to this machine alone unless there are keys (`timeout-kb keys add NAME`).
    """
    state = context.find_object(State) or State()
    try:
        from app.mcp import transports
    except ImportError as error:
        raise MissingExtraError(
            f"the MCP server needs a package that is not installed ({error.name})",
            todo="pip install 'timeout-kb[mcp]'",
        ) from error
    from app.mcp.folders import AllowedFolders, roots_of
    from app.server.observability import configure_logging
    from app.server.processes import stop_signals_end_quietly

    folders = AllowedFolders(roots or roots_of(state.settings.mcp_roots))
    settings = state.settings_at(host, PORT if port is None else port)
    configure_logging(settings.log_level)
    with contextlib.ExitStack() as opened:
        listening = opened.enter_context(_listening(settings)) if over_http else None
        service = opened.enter_context(state.service())
        opened.enter_context(stop_signals_end_quietly())
        if listening is None:
            import anyio

            serve = partial(
                transports.serve_stdio, service, settings, folders=folders, read_only=read_only
            )
            anyio.run(serve)
            return
        app = transports.create_http_app(service, settings, folders=folders, read_only=read_only)
        _serve_http(app, settings, listening, transports.PATH)


def _listening(settings: Settings) -> socket.socket:
    """The port of the HTTP server, taken before anything slow; other machines need keys."""
    from app.api.auth import check_exposure
    from app.server.address import listen

    check_exposure(settings)
    return listen(settings)


def _serve_http(app: Starlette, settings: Settings, listening: socket.socket, path: str) -> None:
    import uvicorn

    from app.api.auth import no_keys_notice
    from app.server.address import shown_address

    if notice := no_keys_notice(settings):
        note(notice)
    listening.listen()  # who comes between the line and the server waits
    note(f"timeout-kb answers MCP clients on {shown_address(listening)}{path}")
    config = uvicorn.Config(
        app, log_config=None, access_log=False, timeout_graceful_shutdown=GRACE_S
    )
    uvicorn.Server(config).run(sockets=[listening])
