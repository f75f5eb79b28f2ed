"""`timeout-kb slack`: the Slack bot."""

from __future__ import annotations

import click

from app.commands.common import State, note
from kb.errors import MissingExtraError


@click.command("slack")
@click.option("--host", help="HTTP mode: address to listen on. Default: TIMEOUT_KB_HOST.")
@click.option("--port", type=click.IntRange(0, 65535), help="HTTP mode: default TIMEOUT_KB_PORT.")
@click.pass_context
def command(context: click.Context, host: str | None, port: int | None) -> None:
    """Answer in Slack until Ctrl-C: mentions, /timeout, "Diagnose this", direct messages.

    Over Socket Mode, which needs no address of its own, unless TIMEOUT_KB_SLACK_MODE=http.
    data/slack/README.md takes a workspace admin from nothing to a working bot.
    """
    import asyncio
    import dataclasses

    state = context.find_object(State) or State()
    settings = state.settings
    settings = dataclasses.replace(
        settings,
        host=settings.host if host is None else host,
        port=settings.port if port is None else port,
    )
    try:
        from app.slack import serve
        from app.slack.workspaces import check_settings
    except ImportError as error:
        raise MissingExtraError(
            f"the Slack bot needs a package that is not installed ({error.name})",
            todo="pip install 'timeout-kb[slack]'",
        ) from error
    check_settings(settings, mode=settings.slack_mode)
    from app.composition import open_chat
    from app.observe import configure_logging

    configure_logging(settings.log_level)
    if settings.slack_mode == "socket":
        with state.service() as service:
            asyncio.run(serve.serve_socket(service, open_chat(service), settings, note))
        return
    from app.commands.serve import listen, shown_address

    listening = listen(settings)
    with listening, state.service() as service:
        asyncio.run(
            serve.serve_http(
                service,
                open_chat(service),
                settings,
                note,
                listening=listening,
                address=shown_address(listening),
            )
        )
