"""What one visit has found out: the reading of a log, its answers, and the lines to show of it."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import urlsplit

import streamlit as st

from app.quoting import plain
from app.received import save
from app.web.log_view import Window, lines_of, lines_of_chunks, marks_of, windows
from kb.errors import InputError
from kb.logs.flight_read import looks_like_dump
from kb.logs.kernel import looks_like_kernel
from kb.logs.ras import looks_like_ras
from kb.logs.redact import redact
from kb.logs.stacks import looks_like_stacks
from kb.logs.torchrun import parse_error_file
from kb.types import Diagnosis, Language, LogReading

if TYPE_CHECKING:
    from kb.kept import Kept
    from kb.service import Service
    from kb.settings import Settings

HEAD_BYTES = 16 * 1024  # of a file, to tell a dump, a stack or a kernel log from a job's log
STACK_LINES = 2  # faulthandler may print one line before the first thread, a crash prints more
DESCRIPTION = "description.txt"  # pasted words beside uploaded files
MIB = 1024 * 1024

Upload = tuple[str, BinaryIO]  # name and content


@dataclass(slots=True, kw_only=True)
class Outcome:
    """A diagnosis as the session holds it.

    `pasted` is the text as it came and is shown to nobody else; `answers` fills up as languages
    are asked for; `windows` are redacted. `kept` is there once it has a link, `added` is the id of
    the incident it was written down as.
    """

    reading: LogReading
    torch: str = ""
    pasted: str = ""
    names: tuple[str, ...] = ()
    windows: tuple[Window, ...] = ()
    answers: dict[Language, Diagnosis] = field(default_factory=dict)
    kept: Kept | None = None
    added: str = ""

    def answer(self, service: Service, language: Language) -> Diagnosis:
        """The diagnosis in a language; a kept one as it was given then."""
        if language not in self.answers:
            self.answers[language] = (
                self.kept.answer(language)
                if self.kept is not None
                else service.answer(self.reading, language=language, torch=self.torch or None)
            )
        return self.answers[language]

    @property
    def has_log(self) -> bool:
        """Whether the log itself is at hand, not only what was kept of it."""
        return bool(self.pasted or self.names)

    def text(self) -> str:
        """The incident's text without secrets: what was pasted, else what mattered in the files."""
        if self.pasted and not self.names:
            return redact(self.pasted)[0]
        return "\n".join(filter(None, (self.reading.description, self.reading.excerpt)))


def read(
    service: Service,
    *,
    text: str,
    uploads: Sequence[Upload] = (),
    torch: str = "",
    language: Language,
) -> Outcome:
    """Read a paste and uploaded files as one run, diagnose it, and cut out what is worth seeing.

    Raises:
        InputError: there is nothing to read, or too much, or a file is no log.
    """
    started = time.perf_counter()
    check_size(text, uploads, service.settings)
    if not uploads:
        reading = service.read_text(text)
        return _finish(service, reading, {"": lines_of(text)}, text, (), torch, language, started)
    with tempfile.TemporaryDirectory(prefix="timeout-kb-") as name:
        logs, dumps = Path(name, "log"), Path(name, "dump")
        logs.mkdir()
        dumps.mkdir()
        paths = _put(text, uploads, logs, dumps)
        reading = service.read_paths(paths, dumps=[dumps] if any(dumps.iterdir()) else [])
        several = len(paths) > 1
        lines = {path.name if several else "": _file_lines(path) for path in paths}
        names = tuple(plain(name) for name, _ in uploads)
        return _finish(service, reading, lines, text, names, torch, language, started)


def from_kept(kept: Kept) -> Outcome:
    """What a link leads to: the answer of then, without the log."""
    return Outcome(reading=kept.reading, kept=kept)


def curl(settings: Settings) -> str:
    """The command that sends a log of any size to the API."""
    return (
        f"curl http://{_reachable(settings.host)}:{settings.port}/v1/diagnose "
        "-H 'Accept: text/plain' -T job.log"
    )


def _reachable(host: str) -> str:
    """The API's host in an address: where it listens on all, the one the visitor came to."""
    with contextlib.suppress(ValueError):
        if ipaddress.ip_address(host).is_unspecified:
            host = urlsplit(str(st.context.url or "")).hostname or socket.gethostname()
    return f"[{host}]" if ":" in host else host


def check_size(text: str, uploads: Sequence[Upload], settings: Settings) -> None:
    """Refuse what is better sent to the API, which reads any size in constant memory.

    Raises:
        InputError: text and files together are larger than `max_body` bytes.
    """
    limit = settings.max_body
    size = len(text.encode("utf-8", "replace"))
    for _, stream in uploads:
        size += stream.seek(0, 2)
        stream.seek(0)
    if size > limit:
        values = {"size": f"{size / MIB:.1f}", "limit": f"{limit / MIB:.1f}"}
        raise InputError(
            "{size} MiB are more than the {limit} MiB this page takes".format(**values),
            todo=f"send it to the API (timeout-kb serve), which takes any size: {curl(settings)}",
            reason="page_limit",
            values={**values, "curl": curl(settings)},
        )


def _put(text: str, uploads: Sequence[Upload], logs: Path, dumps: Path) -> list[Path]:
    """Put everything into its folder and give the paths of the logs."""
    paths: list[Path] = []
    if text.strip():
        paths.append(logs / DESCRIPTION)
        paths[0].write_text(text, encoding="utf-8", errors="replace")
    beside = [is_evidence(upload) for upload in uploads]
    save([upload for upload, other in zip(uploads, beside, strict=True) if other], dumps, [])
    return save(
        [upload for upload, other in zip(uploads, beside, strict=True) if not other], logs, paths
    )


def is_evidence(upload: Upload) -> bool:
    """Whether a file is evidence beside the log, told by its beginning.

    That is a flight-recorder dump, py-spy stacks, an ``ncclras`` report, a kernel log, or an error
    file of torchrun; they are read by readers of their own.
    """
    name, stream = upload
    stream.seek(0)
    head = stream.read(HEAD_BYTES)
    stream.seek(0)
    if looks_like_dump(head):
        return True
    text = head.decode("utf-8", "replace")
    if text.startswith("{"):
        return parse_error_file(text, path=name) is not None
    # A job's log may hold the stacks of a crash; a file of stacks begins with one.
    first = "\n".join(text.split("\n", STACK_LINES)[:STACK_LINES])
    return looks_like_stacks(first) or looks_like_ras(text) or looks_like_kernel(text)


def _file_lines(path: Path) -> Iterable[str]:
    from kb.logs.source import from_path

    return lines_of_chunks(from_path(path).chunks())


def _finish(
    service: Service,
    reading: LogReading,
    logs: dict[str, Iterable[str]],
    text: str,
    names: tuple[str, ...],
    torch: str,
    language: Language,
    started: float,
) -> Outcome:
    answer = service.answer(reading, started=started, language=language, torch=torch or None)
    return Outcome(
        reading=reading,
        torch=torch,
        pasted=text,
        names=names,
        windows=windows(logs, marks_of(answer, reading)),
        answers={language: answer},
    )
