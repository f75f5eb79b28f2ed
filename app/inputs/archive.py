"""Diagnosing the logs of an archive into a file of JSON lines, which a later run goes on with."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING
from weakref import WeakKeyDictionary

import msgspec

from app.inputs.in_order import in_order
from app.inputs.in_ray import in_ray
from ingest.files import file_digest
from ingest.formats.logs import day_of
from kb.errors import InputError, KBError
from kb.files.paths import legible
from kb.incidents.archive import (
    LOG_LINE,
    REFUSED,
    ArchivedLog,
    ArchiveSummary,
    ArchiveTally,
    fingerprint_of,
    first_error_of,
    query_key,
)
from kb.log_lines import logger
from kb.logs.incident.hosts import culprit_places
from kb.text.redact import redact
from kb.types.vocabulary import UNKNOWN

if TYPE_CHECKING:
    from kb.service import Service
    from kb.types.entries import SearchResult
    from kb.types.incident import LogReading
    from kb.types.vocabulary import Language

SEARCHES = 4096  # answers of the search kept by a process, about 10 KB each
DIGEST = 16  # characters of the knowledge's digest in each line
OnProgress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveRun:
    """What a run did: `known` logs were diagnosed by an earlier one and have not changed."""

    summary: ArchiveSummary
    diagnosed: int
    known: int


# --- one log -------------------------------------------------------------------------------------


def archived_log(language: Language, service: Service, path: str) -> ArchivedLog:
    """The line of the log at `path`; whatever is wrong with it stands there."""
    log = ArchivedLog(
        path=legible(path),
        size=0,
        mtime_ns=0,
        digest="",
        knowledge=service.knowledge.digest[:DIGEST],
        status=REFUSED,
    )
    try:
        status = Path(path).stat()
        log = replace(
            log,
            size=status.st_size,
            mtime_ns=status.st_mtime_ns,
            digest=file_digest(Path(path)),
            date=datetime.fromtimestamp(status.st_mtime, UTC).date().isoformat(),
        )
        return _diagnosed(Path(path), log, service, language)
    except (KBError, OSError) as error:
        return replace(log, error=redact(str(error))[0])
    except Exception as error:  # noqa: BLE001 - one log must not end the run
        logger().exception("archived log failed", path=path)
        return replace(log, error=f"{type(error).__name__}: {redact(str(error))[0]}")


def _diagnosed(path: Path, log: ArchivedLog, service: Service, language: Language) -> ArchivedLog:
    reading = service.read_paths([path])
    verdict = service.judge(reading, similar=_similar(service, reading))
    diagnosis = service.render(verdict, language=language, top=1)
    decided = diagnosis.causes[0] if diagnosis.status == "diagnosed" else None
    places = (replace(each, host=redact(each.host)[0]) for each in culprit_places(reading))
    return replace(
        log,
        status=diagnosis.status,
        cause=decided.id if decided else UNKNOWN,
        probability=decided.probability if decided else 0.0,
        headline=diagnosis.headline,
        date=day_of(reading) or log.date,
        backend=reading.incident.backend,
        op=reading.incident.op,
        first_error=redact(first_error_of(reading))[0],
        culprits=tuple(places),
        fingerprint=fingerprint_of(reading) if diagnosis.status != "no_timeout" else "",
    )


_searches: WeakKeyDictionary[Service, dict[str, SearchResult]] = WeakKeyDictionary()


def _similar(service: Service, reading: LogReading) -> SearchResult:
    """Similar entries, searched for once of all logs that differ in numbers alone."""
    results = _searches.setdefault(service, {})
    key = query_key(service.engine.query_text(reading))
    if key not in results:
        if len(results) >= SEARCHES:
            results.clear()
        from kb.service import NOT_SEARCHED

        found = service.similar(reading)
        if found is NOT_SEARCHED:
            return found
        results[key] = found
    return results[key]


# --- all of them ---------------------------------------------------------------------------------


def diagnose_archive(
    service: Service,
    paths: Sequence[Path],
    out: Path,
    *,
    language: Language,
    jobs: int = 1,
    ray: str = "",
    since: str = "",
    on_progress: OnProgress | None = None,
) -> ArchiveRun:
    """Write a line of each log below `paths` to `out`, in the order of the logs.

    A log whose line is there already is passed over, unless it or the knowledge has changed since:
    a run that was ended at any moment is gone on with. Memory does not grow with the logs.

    Args:
        service: diagnoses here; with several `jobs` each process opens its own.
        paths: files and folders; hidden files are left out.
        out: the file of JSON lines (`ArchivedLog`).
        language: of the headlines.
        jobs: processes.
        ray: address of a Ray cluster whose workers do it instead; empty: processes here.
        since: an ISO date; logs written before it are left out.
        on_progress: called with how many logs are done, of how many, and the last one's path.

    Raises:
        InputError: a path does not exist, the date cannot be read, `out` cannot be written or
            another run writes it.
    """
    on_progress = on_progress or (lambda _done, _total, _name: None)
    first_ns = _moment_ns(since)
    total = sum(1 for _ in _logs(paths, out, first_ns))
    tally = ArchiveTally()
    with _opened(out) as file:
        known = _known_lines(file, service.knowledge.digest[:DIGEST], tally)
        done = passed = repeated = 0
        mine: set[int] = set()
        on_progress(0, total, "")

        def unread() -> Iterator[str]:
            nonlocal passed, repeated
            for path in _logs(paths, out, first_ns):
                key = _key(path)
                if key in mine:  # named twice, read once
                    repeated += 1
                    continue
                mine.add(key)
                if key in known:
                    passed += 1
                else:
                    yield path

        work = partial(archived_log, language)
        lines: Iterable[ArchivedLog]
        if ray:
            lines = in_ray(work, unread(), settings=service.settings, address=ray)
        elif jobs == 1:
            lines = (work(service, path) for path in unread())
        else:
            lines = in_order(work, unread(), settings=service.settings, jobs=jobs)
        for log in lines:
            file.write(msgspec.json.encode(log) + b"\n")
            file.flush()  # whatever ends the run, what was done is done
            tally.add(log)
            done += 1
            on_progress(min(done + passed + repeated, total), total, log.path)
        if not done:
            on_progress(total, total, "")
    return ArchiveRun(summary=tally.summary(), diagnosed=done, known=passed)


def _logs(paths: Sequence[Path], out: Path, first_ns: int) -> Iterator[str]:
    """The files, folders walked in the order of names, one at a time."""
    own = out.resolve()
    for path in paths:
        if not path.exists():
            raise InputError(f"{path} does not exist", todo="check the path", reason="missing")
        for file in _files(path):
            with suppress(OSError):  # deleted while we looked
                if file.is_file() and file.stat().st_mtime_ns >= first_ns and file.resolve() != own:
                    yield str(file.absolute())


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith("."):
                yield Path(folder) / name


def _moment_ns(since: str) -> int:
    if not since:
        return 0
    try:
        moment = datetime.fromisoformat(since)
    except ValueError as error:
        raise InputError(
            f"--since {since!r} is no date",
            todo="write it as 2026-01-31",
            reason="no_date",
            values={"field": "--since", "text": since},
        ) from error
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()) * 10**9


def _opened(out: Path) -> IO[bytes]:
    """The file, locked for this run."""
    try:
        # not for appending: a line that moves up is written where it goes
        file = os.fdopen(os.open(out, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b")
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        what = f"{out} is being written by another run"
        raise InputError(what, todo="wait for it", reason="archive_busy") from error
    except OSError as error:
        why = error.strerror or ""
        what = f"{out} cannot be written: {why}"
        raise InputError(what, todo="choose another file", reason="unreadable") from error
    return file


def _known_lines(file: IO[bytes], knowledge: str, tally: ArchiveTally) -> set[int]:
    """Keys of the logs whose lines are good; other lines, a torn one too, are taken out."""
    known: set[int] = set()
    file.seek(0)
    good = 0  # where the next good line goes: those behind a bad one move up
    for line, start in _lines(file):
        log = _decoded(line)
        if log is None or log.knowledge != knowledge or not _unchanged(log):
            continue
        key = _key(log.path)
        if key in known:
            continue
        known.add(key)
        tally.add(log)
        if good != start:
            os.pwrite(file.fileno(), line, good)
        good += len(line)
    file.truncate(good)
    file.seek(good)
    return known


def _lines(file: IO[bytes]) -> Iterator[tuple[bytes, int]]:
    start = 0
    for line in file:
        yield line, start
        start += len(line)


def _decoded(line: bytes) -> ArchivedLog | None:
    try:
        return LOG_LINE.decode(line) if line.endswith(b"\n") else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _unchanged(log: ArchivedLog) -> bool:
    """Whether the log is as it was read, or gone: then its line is all that is left of it."""
    path = Path(log.path)
    try:
        status = path.stat()
        if status.st_size != log.size:
            return False
        return status.st_mtime_ns == log.mtime_ns or file_digest(path) == log.digest
    except FileNotFoundError:
        return True
    except (OSError, KBError):
        return False


def _key(path: str) -> int:
    """A number for a path: of a million logs it takes a tenth of the memory of their paths."""
    digest = hashlib.blake2b(legible(path).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")
