"""Attached files: fetched from Slack's file host and nowhere else, within limits.

The bot's token goes to that host only; an address elsewhere, or a redirect to one, is refused
before anything is sent. Plain http is taken for this machine's own addresses alone.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import aiohttp
from slack_sdk.errors import SlackApiError

from app.server.address import is_loopback
from app.slack.requests import slack_file
from app.slack.workspaces import MAX_WAIT_S, reason, slack_call
from kb.errors import InputError
from kb.evidence.detect import named_like_evidence
from kb.retry_after import parse_retry_after

if TYPE_CHECKING:
    from slack_sdk.web.async_client import AsyncWebClient

    from app.slack.requests import SlackFile
    from kb.settings import Settings

MAX_FILES = 10  # Slack allows as many on a message
MAX_REDIRECTS = 3
TRIES = 3  # of a file whose host says it has too much to do
TIMEOUT_S = 60
CHUNK = 64 * 1024
REDIRECTS = frozenset({301, 302, 303, 307, 308})
BUSY = frozenset({429, 500, 502, 503, 504})
TEXT_ENDINGS = (".log", ".txt", ".out", ".err", ".stdout", ".stderr", ".gz", ".xz", ".zst", ".md")
TEXT_TYPES = ("text/", "application/gzip", "application/x-gzip", "application/json")
_ROTATED = re.compile(r"\.(log|txt|out|err)[.-]?\w*$")  # job.log.1
_PAGE = re.compile(rb"^\s*(<!doctype html|<html)", re.IGNORECASE)


def readable(files: Sequence[SlackFile]) -> tuple[tuple[SlackFile, ...], tuple[str, ...]]:
    """The files that may be logs, and the names of the others (pictures, archives, ...)."""
    logs = tuple(file for file in files if _may_be_log(file))
    others = tuple(file.name for file in files if not _may_be_log(file))
    return logs[:MAX_FILES], others


def _may_be_log(file: SlackFile) -> bool:
    name = file.name.lower()
    return (
        name.endswith(TEXT_ENDINGS)
        or _ROTATED.search(name) is not None
        or file.media_type.startswith(TEXT_TYPES)
        or named_like_evidence(name)
    )


def file_error(reason: str, **values: str) -> InputError:
    """That a file cannot be read; labels have the sentence and the next step for each `reason`."""
    return InputError(f"{reason} {values}", reason=reason, values=values)


async def download(
    file: SlackFile, path: Path, *, client: AsyncWebClient, settings: Settings
) -> None:
    """Fetch a file to `path`; a host that is busy is asked again when it says so.

    Raises:
        InputError: too large, not at Slack's file host, not readable for the bot.
    """
    why = "busy"
    try:
        if not file.url and file.id:  # of a channel shared with another company
            info = await slack_call(client.files_info(file=file.id))
            file = slack_file(info.get("file") or {})
        _check_size(file.name, file.size, settings)
        async with asyncio.timeout(MAX_WAIT_S):
            for tries_left in range(TRIES - 1, -1, -1):
                wait_s = await _fetch(file, path, client, settings)
                if wait_s is None:
                    return
                if tries_left:
                    await asyncio.sleep(wait_s)
    except SlackApiError as error:
        why = reason(error)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        why = type(error).__name__
    raise file_error("slack_lost", name=file.name, why=why)


async def _fetch(
    file: SlackFile, path: Path, client: AsyncWebClient, settings: Settings
) -> float | None:
    """Fetch once; seconds to wait where the host is busy, None when the file is there."""
    address = file.url
    for _ in range(MAX_REDIRECTS + 1):
        check_address(file.name, address, settings.slack_files_host)
        async with client.session.get(
            address,
            headers={"Authorization": f"Bearer {client.token}"},
            allow_redirects=False,
            proxy=client.proxy,
            timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
        ) as response:
            if response.status in REDIRECTS:
                address = urljoin(address, response.headers.get("Location", ""))
                continue
            if response.status in BUSY:
                seconds = parse_retry_after(response.headers.get("Retry-After", ""))
                return 1.0 if seconds is None else seconds
            if response.status != 200:
                why = f"Slack answered {response.status}"
                raise file_error("slack_refused", name=file.name, why=why)
            await _save(response, file.name, path, settings)
            return None
    raise file_error("slack_refused", name=file.name, why="Slack redirects in a circle")


def check_address(name: str, address: str, host: str) -> None:
    """Check that the address of the file `name` is at Slack's file host.

    Raises:
        InputError: it is elsewhere, or not https.
    """
    parts = urlsplit(address)
    secure = parts.scheme == "https" or (
        parts.scheme == "http" and is_loopback(parts.hostname or "")
    )
    if parts.netloc.lower() != host.lower() or not secure:
        where = parts.netloc.rpartition("@")[2] or "an empty address"
        raise file_error("slack_elsewhere", name=name, host=host, where=where)


async def _save(
    response: aiohttp.ClientResponse, name: str, path: Path, settings: Settings
) -> None:
    """Write the body to `path` as it comes; never more than the limit."""
    _check_size(name, response.content_length or 0, settings)
    received = 0
    with path.open("wb") as target:
        async for chunk in response.content.iter_chunked(CHUNK):
            if not received and response.content_type == "text/html" and _PAGE.match(chunk):
                # Without the right to the file Slack sends its sign-in page, with status 200.
                why = "Slack sent its sign-in page instead"
                raise file_error("slack_refused", name=name, why=why)
            received += len(chunk)
            _check_size(name, received, settings)
            target.write(chunk)


def _check_size(name: str, size: int, settings: Settings) -> None:
    if size > settings.slack_max_file:
        limit = f"{settings.slack_max_file / (1 << 20):.3g}"
        raise file_error("slack_too_large", name=name, size=limit)
