"""`timeout-kb slack`: the Slack bot."""

from __future__ import annotations

import click

from app.cli.common import State, address_options, note
from kb.errors import MissingExtraError


@click.command("slack")
@address_options("TIMEOUT_KB_PORT, in HTTP mode")
@click.pass_context
def command(context: click.Context, host: str | None, port: int | None) -> None:
    """Answer in Slack until Ctrl-C: mentions, /timeout, "Diagnose this", direct messages.

    Over Socket Mode, which needs no address of its own, unless TIMEOUT_KB_SLACK_MODE=http.
    data/slack/README.md takes a workspace admin from nothing to a working bot.
    """
    import asyncio

    state = context.find_object(State) or State()
    settings = state.settings_at(host, port)
    try:
        from app.slack import run
        from app.slack.workspaces import check_settings
    except ImportError as error:
        raise MissingExtraError(
            f"the Slack bot needs a package that is not installed ({error.name})",
            todo="pip install 'timeout-kb[slack]'",
        ) from error
    check_settings(settings, mode=settings.slack_mode)
    from app.server.observability import configure_logging
    from kb.chat.chat import Chat

    configure_logging(settings.log_level)
    if settings.slack_mode == "socket":
        with state.service() as service:
            asyncio.run(run.serve_socket(service, Chat(service), settings, note))
        return
    from app.server.address import listen, shown_address
    from app.server.processes import stop_signals_end_quietly

    listening = listen(settings)
    with listening, state.service() as service, stop_signals_end_quietly():
        asyncio.run(
            run.serve_http(
                service,
                Chat(service),
                settings,
                note,
                listening=listening,
                address=shown_address(listening),
            )
        )
