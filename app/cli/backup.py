"""`timeout-kb backup`: a checked copy of all that cannot be made anew."""

from __future__ import annotations

from pathlib import Path

import click

from app.cli.common import State, language_option
from kb.errors import InputError


@click.command("backup")
@click.option(
    "--to",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Where backups lie, each in a folder of its own. Default: backups/ in the state folder.",
)
@click.option(
    "--keep",
    type=click.IntRange(1, 1000),
    default=7,
    show_default=True,
    help="How many backups stay there; the oldest go.",
)
@language_option
@click.pass_context
def command(context: click.Context, folder: Path | None, keep: int, language: None) -> None:
    """Copy and check the database, the keys and what else cannot be made anew.

    Servers may run meanwhile. Put one back with `timeout-kb doctor --repair`. A backup holds the
    team's logs and the digests of its keys: it is readable by its owner alone.
    """
    from app.doctor_kept import mib
    from kb.store.backup import BACKUPS, back_up

    state = context.find_object(State) or State()
    home = state.settings.home
    if state.settings.shared_store:
        raise InputError(
            "the knowledge base is in a database, which is backed up where it runs",
            todo="pg_dump copies it, pg_restore puts it back; see also `timeout-kb move-store`",
            reason="backup_server",
        )
    backup = back_up(home, folder or home / BACKUPS, keep=keep)
    manifest, words = backup.manifest, state.words()
    files, size = len(manifest.files), mib(backup.size)
    values = {"entries": manifest.entries, "files": files, "size": size}
    click.echo(words("doctor.backup_made", path=backup.folder, **values))
