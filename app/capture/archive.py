"""One archive of what one or several hosts gave, and what it says."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from app.capture.take import HostCapture
from kb.evidence.capture import SCHEMA, CaptureFile, CaptureManifest, read_capture, write_capture
from kb.evidence.stacks import StackGroup, parse_stacks, stack_groups
from kb.files.atomic import write_file

SUFFIX = ".tar.zst"
KEPT = 20  # archives in the state folder; the oldest go first
_UNSAFE = re.compile(r"[^\w.-]+")


def archive_of(captures: Sequence[HostCapture], job: str) -> bytes:
    """The archive of what hosts gave."""
    files = [item for capture in captures for item in capture.files]
    manifest = CaptureManifest(
        schema=SCHEMA,
        taken_at=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        job=job,
        hosts=tuple(capture.host for capture in captures),
        files=tuple(file for file, _ in files),
    )
    return write_capture(manifest, [content for _, content in files])


def captures_in(archive: bytes, name: str) -> list[HostCapture]:
    """What an archive's hosts gave, a single one under `name`.

    Raises:
        InputError: it is no capture.
    """
    manifest, contents = read_capture(archive)
    pairs = list(zip(manifest.files, contents, strict=True))
    result = []
    for host in manifest.hosts:
        files = tuple(item for item in pairs if item[0].name.startswith(f"{host.name}/"))
        result.append(HostCapture(host=host, files=files))
    return [renamed(result[0], name)] if len(result) == 1 else result


def renamed(capture: HostCapture, name: str) -> HostCapture:
    """The same under the name people call the host by: containers often share their own."""
    folder = _UNSAFE.sub("_", name)
    files = tuple(
        (CaptureFile(name=f"{folder}/{file.name.partition('/')[2]}", kind=file.kind), data)
        for file, data in capture.files
    )
    host = msgspec.structs.replace(capture.host, name=folder)
    return HostCapture(host=host, files=files)


def groups_of(captures: Sequence[HostCapture]) -> tuple[StackGroup, ...]:
    """Who stands where, of all hosts together."""
    stacks = [
        stack
        for capture in captures
        for file, data in capture.files
        if "/stacks/" in file.name
        for stack in parse_stacks(data.decode("utf-8", "replace"), name=Path(file.name).name)
    ]
    return stack_groups(stacks)


def new_archive(folder: Path, job: str, archive: bytes) -> Path:
    """Write an archive under a name of its own, whole or not at all, and give its path.

    Raises:
        OSError: the folder cannot be written.
    """
    now = dt.datetime.now(dt.UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3]
    path = folder / f"timeout-kb-{_UNSAFE.sub('_', job) or 'job'}-{now}Z{SUFFIX}"
    write_file(path, archive, mode=0o600)
    return path


def prune(folder: Path) -> None:
    """Delete the oldest archives beyond `KEPT`, and what a killed writer left."""
    archives = sorted(folder.glob(f"timeout-kb-*{SUFFIX}"), key=lambda path: path.stat().st_mtime)
    for path in [*archives[:-KEPT], *folder.glob(f"timeout-kb-*{SUFFIX}.*")]:
        path.unlink(missing_ok=True)
