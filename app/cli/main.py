"""The command line: `timeout-kb VERB`. Every verb is loaded when it is called."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from app.cli.common import EXIT_FAILURE, EXIT_USAGE, State, colour_choice
from kb.errors import KBError

ABORTED = 130  # what a shell reports for Ctrl-C

VERBS = {
    "diagnose": "app.cli.diagnose:command",
    "diagnose-archive": "app.cli.diagnose_archive:command",
    "chat": "app.cli.chat:command",
    "search": "app.cli.search:command",
    "show": "app.cli.search:show_command",
    "ingest": "app.cli.ingest:command",
    "incident": "app.cli.incident:command",
    "lint": "app.cli.lint:command",
    "new": "app.cli.new:command",
    "check-data": "app.cli.check_data:command",
    "doctor": "app.cli.doctor:command",
    "backup": "app.cli.backup:command",
    "move-store": "app.cli.move_store:command",
    "ranks": "app.cli.diagnose:ranks_command",
    "serve": "app.cli.serve:command",
    "up": "app.cli.up:command",
    "watch": "app.cli.watch:command",
    "collect": "app.cli.collect:command",
    "slack": "app.cli.slack:command",
    "mcp": "app.cli.mcp:command",
    "evaluate": "app.cli.evaluate:command",
    "learn": "app.cli.learn:command",
    "web": "app.cli.web:command",
    "keys": "app.cli.keys:command",
}


class LazyGroup(click.Group):
    """A group whose commands are imported by name, in the order of `VERBS`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, in the order people need them."""
        return [*VERBS, *sorted(set(super().list_commands(ctx)) - set(VERBS))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the verb's module and give its command."""
        place = VERBS.get(cmd_name)
        if place is None:
            return super().get_command(ctx, cmd_name)
        module, name = place.split(":")
        command = getattr(importlib.import_module(module), name)
        return command if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; a misspelt one is answered with the nearest."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib

            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            if near:
                message = f"{error.message} Did you mean {near[0]!r}?"
                raise click.UsageError(message, ctx) from None
            raise


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="timeout-kb", prog_name="timeout-kb")
@click.option("--debug", is_flag=True, help="Show the traceback of an unexpected failure.")
@click.option(
    "--color/--no-color",
    "colour",
    default=None,
    help="Colours. Default: where the output is a terminal, unless NO_COLOR or TERM=dumb is set.",
)
@click.pass_context
def cli(context: click.Context, debug: bool, colour: bool | None) -> None:
    """Say what happened in a distributed-training timeout log, why, and what to do.

    \b
    timeout-kb diagnose job.log
    srun ... 2>&1 | timeout-kb diagnose
    """  # noqa: D301 - \b is click's mark for text not to be rewrapped
    state = context.ensure_object(State)
    state.debug = debug
    state.colour = context.color = colour_choice(colour, os.environ)


def run(argv: Sequence[str] | None = None, *, state: State | None = None) -> int:
    """Run one command line and give its exit code; nothing expected shows a traceback."""
    state = state or State()
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        code = cli.main(
            args=words,
            prog_name="timeout-kb",
            standalone_mode=False,
            obj=state,
        )
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        click.echo("stopped", err=True)
        return ABORTED
    except KBError as error:
        click.echo(state.error_line(error), err=True)
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - the outermost call of this face
        # A path or a watched command may be of any bytes, so only what fails on them is told.
        wrong = next((word for word in words if not _is_text(word)), None)
        if isinstance(error, ValueError) and wrong is not None:
            click.echo(f"error: {wrong!a} is not UTF-8 — type it as text", err=True)
            return EXIT_USAGE
        return _unexpected(error, state)
    return code if isinstance(code, int) else 0


def _is_text(word: str) -> bool:
    """Whether an argument's bytes were UTF-8: Python marks others by lone surrogates."""
    return not any("\ud800" <= character <= "\udfff" for character in word)


def _unexpected(error: Exception, state: State) -> int:
    """Tell an unexpected failure in one line and keep its traceback in a file."""
    if state.debug:
        import traceback

        click.echo("".join(traceback.format_exception(error)), nl=False, err=True)
    else:
        click.echo(f"error: {state.unexpected_error_line(error)}", err=True)
    return EXIT_FAILURE


def _open_closed_streams() -> None:
    """Lead what the caller closed (``>&-``) to nowhere.

    The next file opened, the database say, would else get its number and all that is printed there.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - open to the end


def main(argv: Sequence[str] | None = None, *, state: State | None = None) -> None:
    """Entry point of the console script; ends the process with the exit code."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets a question mark, not a failure.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    sys.exit(run(argv, state=state))
