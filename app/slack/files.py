"""Attached files: fetched from Slack's file host and nowhere else, within limits.

The bot's token goes to that host only; an address elsewhere, or a redirect to one, is refused
before anything is sent. Plain http is taken for this machine's own addresses alone.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urljoin, urlsplit

from app.received import safe_name
from app.slack import patience
from app.slack.types import SlackFile
from kb.errors import InputError
from kb.logs.source import from_stream

if TYPE_CHECKING:
    import aiohttp

MAX_FILES = 10  # Slack allows as many on a message
MAX_REDIRECTS = 3
TRIES = 3  # of a file whose host says it has too much to do
UNPACKED_FACTOR = 50  # a message's archives may grow to so many times the largest file, no bomb
TIMEOUT_S = 60
CHUNK = 64 * 1024
BOMB = "slack_unpacked"  # reason of the error
REDIRECTS = frozenset({301, 302, 303, 307, 308})
BUSY = frozenset({429, 500, 502, 503, 504})
TEXT_ENDINGS = (".log", ".txt", ".out", ".err", ".stdout", ".stderr", ".gz", ".xz", ".zst", ".md")
TEXT_KINDS = ("text/", "application/gzip", "application/x-gzip", "application/json")
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\x00")
_PAGE = re.compile(rb"^\s*(<!doctype html|<html)", re.IGNORECASE)


class _BusyError(Exception):
    """The file host answers that it cannot now, and when to ask again."""

    def __init__(self, status: int, retry_after_s: float) -> None:
        super().__init__(status)
        self.status = status
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAccess:
    """Where files may come from, how large they may be (bytes), and what to fetch them with."""

    host: str
    max_bytes: int
    token: str = field(repr=False)
    proxy: str | None = None


def readable(files: Sequence[SlackFile]) -> tuple[tuple[SlackFile, ...], tuple[str, ...]]:
    """The files that may be logs, and the names of the others (pictures, archives, ...)."""
    logs = tuple(file for file in files if _may_be_log(file))
    others = tuple(file.name for file in files if not _may_be_log(file))
    return logs[:MAX_FILES], others


def _may_be_log(file: SlackFile) -> bool:
    name = file.name.lower()
    # Rotated logs end on a number: job.log.1
    return (
        name.endswith(TEXT_ENDINGS)
        or re.search(r"\.(log|txt|out|err)[.-]?\w*$", name) is not None
        or file.kind.startswith(TEXT_KINDS)
    )


async def download(
    session: aiohttp.ClientSession,
    file: SlackFile,
    access: FileAccess,
    *,
    folder: Path,
    number: int,
) -> Path:
    """Fetch a file into `folder` under its own name, made harmless and unique by `number`.

    Raises:
        InputError: too large, not at Slack's file host, not readable for the bot.
    """
    if file.size > access.max_bytes:
        raise _too_large(file.name, access.max_bytes)
    path = folder / (safe_name(file.name) or f"file-{number}.txt")
    if path.exists():
        path = path.with_name(f"{number}-{path.name}")
    waits_s = 0.0
    for tries_left in range(TRIES - 1, -1, -1):
        try:
            await _fetch_in_time(session, file, path, access)
            break
        except _BusyError as error:
            waits_s += error.retry_after_s
            if not tries_left or waits_s > patience.MAX_WAIT_S:
                raise _lost(file.name, f"HTTP {error.status}") from None
            await patience.wait(error.retry_after_s)
    return path


async def _fetch_in_time(
    session: aiohttp.ClientSession, file: SlackFile, path: Path, access: FileAccess
) -> None:
    import aiohttp

    try:
        async with asyncio.timeout(TIMEOUT_S):
            await _fetch(session, file, path, access)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise _lost(file.name, type(error).__name__) from error


async def _fetch(
    session: aiohttp.ClientSession, file: SlackFile, path: Path, access: FileAccess
) -> None:
    import aiohttp

    address = file.url
    for _ in range(MAX_REDIRECTS + 1):
        check_address(file.name, address, access.host)
        async with session.get(
            address,
            headers={"Authorization": f"Bearer {access.token}"},
            allow_redirects=False,
            proxy=access.proxy,
            timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
        ) as response:
            if response.status in REDIRECTS:
                address = urljoin(address, response.headers.get("Location", ""))
                continue
            if response.status in BUSY:
                asked = patience.wait_s(response.headers.get("Retry-After", ""))
                raise _BusyError(response.status, asked)
            if response.status != 200:
                raise _refused(file.name, f"Slack answered {response.status}")
            await _save(response, file.name, path, access.max_bytes)
            return
    raise _refused(file.name, "Slack redirects in a circle")


def check_address(name: str, address: str, host: str) -> None:
    """Check that the address of the file `name` is at Slack's file host.

    Raises:
        InputError: it is elsewhere, or not https.
    """
    parts = urlsplit(address)
    if parts.netloc.lower() != host.lower() or not _scheme_fits(parts):
        where = parts.netloc.rpartition("@")[2] or "an empty address"
        raise InputError(
            f"{name} is not at {host} but at {where}: it is not fetched",
            todo="upload the log to Slack itself, or paste it",
            reason="slack_elsewhere",
            values={"name": name, "host": host, "where": where},
        )


def _scheme_fits(parts: SplitResult) -> bool:
    return parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(parts.hostname))


def _is_loopback(host: str | None) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


async def _save(response: aiohttp.ClientResponse, name: str, path: Path, max_bytes: int) -> None:
    """Write the body to `path` as it comes; never more than `max_bytes`."""
    if (response.content_length or 0) > max_bytes:
        raise _too_large(name, max_bytes)
    received = 0
    with path.open("wb") as target:
        async for chunk in response.content.iter_chunked(CHUNK):
            if not received and response.content_type == "text/html" and _PAGE.match(chunk):
                # Without the right to the file Slack sends its sign-in page, with status 200.
                raise _refused(name, "Slack sent its sign-in page instead")
            received += len(chunk)
            if received > max_bytes:
                raise _too_large(name, max_bytes)
            target.write(chunk)


def unpack_all(paths: Sequence[Path], max_bytes: int) -> list[Path]:
    """Unpack the compressed ones of a message's files; the limit of `unpack` is on all together.

    A damaged one stays as it is: who reads them all names it beside the answer to the others.

    Raises:
        InputError: they grow too large.
    """
    used = 0
    plain = []
    for path in paths:
        try:
            one = unpack(path, max_bytes, used=used)
        except InputError as error:
            if error.reason == BOMB:
                raise
            one = path
        used += 0 if one == path else one.stat().st_size
        plain.append(one)
    return plain


def unpack(path: Path, max_bytes: int, *, used: int = 0) -> Path:
    """Unpack a compressed log beside itself; a plain one stays as it is.

    Raises:
        InputError: with the `used` bytes before it grows beyond `UNPACKED_FACTOR` times
            `max_bytes`, or it is damaged.
    """
    with path.open("rb") as file:
        if not file.read(6).startswith(_COMPRESSED):
            return path
    plain = _plain_path(path)
    with path.open("rb") as packed, plain.open("wb") as target:
        for chunk in from_stream(iter(lambda: packed.read(CHUNK), b""), path.name).chunks():
            used += len(chunk)
            if used > UNPACKED_FACTOR * max_bytes:
                raise _bomb(path.name, UNPACKED_FACTOR * max_bytes)
            target.write(chunk)
    path.unlink()
    return plain


def _plain_path(path: Path) -> Path:
    """Where a compressed file is unpacked to: without its ending, beside others of that name."""
    packed = path.suffix in (".gz", ".xz", ".zst") and path.stem
    plain = path.with_suffix("") if packed else path.with_name(f"{path.name}.log")
    return path.with_name(f"unpacked-{plain.name}") if plain.exists() else plain


def _too_large(name: str, max_bytes: int) -> InputError:
    size = f"{max_bytes / (1 << 20):.3g}"
    return InputError(
        f"{name} is larger than {size} MiB",
        todo="attach the part around the first error, or use the web page or the command line",
        reason="slack_too_large",
        values={"name": name, "size": size},
    )


def _bomb(name: str, max_bytes: int) -> InputError:
    size = str(max_bytes >> 20)
    return InputError(
        f"{name} unpacks to more than {size} MiB",
        todo="attach the part around the first error",
        reason=BOMB,
        values={"name": name, "size": size},
    )


def _lost(name: str, why: str) -> InputError:
    return InputError(
        f"{name} could not be fetched from Slack ({why})",
        todo="try again, or paste the part around the first error",
        reason="slack_lost",
        values={"name": name, "why": why},
    )


def _refused(name: str, why: str) -> InputError:
    return InputError(
        f"{name} could not be fetched: {why}",
        todo="the app needs the scope files:read, and must be a member of the channel",
        reason="slack_refused",
        values={"name": name, "why": why},
    )
