"""`timeout-kb keys`: who may call the API."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from app.cli.common import State, note

if TYPE_CHECKING:
    from app.api.auth import Role

DEFAULT_PER_MINUTE = 600  # as app.api.auth; the web framework is not loaded for --help


@click.group("keys")
def command() -> None:
    """Make, list and remove keys of the HTTP API.

    Without keys the API answers on this machine only.
    """


@command.command("add")
@click.argument("name")
@click.option("--role", type=click.Choice(["read", "write", "admin"]), default="read")
@click.option(
    "--per-minute", type=click.IntRange(1, 1_000_000), default=DEFAULT_PER_MINUTE, show_default=True
)
@click.pass_context
def add(context: click.Context, name: str, role: Role, per_minute: int) -> None:
    """Make a key called NAME and print it, this once."""
    from app.api.auth import add_key, keys_place, read_keys

    state = context.find_object(State) or State()
    path = keys_place(state.settings)
    text = add_key(path, name, role, per_minute)
    words = state.words()
    note(words("access.keep"))
    if len(read_keys(path)) == 1:
        note(words("access.later"))
    click.echo(text)


@command.command("list")
@click.pass_context
def show(context: click.Context) -> None:
    """List names, roles and limits."""
    from app.api.auth import keys_place, read_keys
    from app.render.columns import columns

    state = context.find_object(State) or State()
    keys = read_keys(keys_place(state.settings))
    if not keys:
        note(state.words()("access.none"))
    for line in columns([(key.name, key.role, f"{key.per_minute}/min") for key in keys]):
        click.echo(line)


@command.command("remove")
@click.argument("name")
@click.pass_context
def remove(context: click.Context, name: str) -> None:
    """Forget the key called NAME; running servers refuse it at once."""
    from app.api.auth import keys_place, read_keys, remove_key

    state = context.find_object(State) or State()
    path = keys_place(state.settings)
    remove_key(path, name)
    words = state.words()
    note(words("access.gone", key=name))
    if not read_keys(path):
        note(words("access.last"))
