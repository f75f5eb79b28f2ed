"""The attempts of one job: did the next one come further, and did it fail for the same reason?

Attempts are kept by the job's name in the state folder. They belong together because a scheduler
requeued the job or a person started it again under the same name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kb.errors import StoreError
from kb.files.atomic import write_file
from kb.files.state_folder import locked, make_state_folder

SCHEMA = "timeout-kb/attempts/1"
FOLDER = "attempts"
MAX_ATTEMPTS = 100  # of one job; the oldest go first
HOPELESS_AFTER = 3  # attempts in a row of one root that came no further: two may be chance
# What names a job, and which of its starts this is.
JOB_VARIABLES = (
    "SLURM_JOB_ID",
    "TORCHELASTIC_RUN_ID",
    "PBS_JOBID",
    "LSB_JOBID",
    "RAY_JOB_ID",
    "JOB_NAME",
    "JOB_ID",
)
START_VARIABLES = ("SLURM_RESTART_COUNT", "TORCHELASTIC_RESTART_COUNT", "JOB_COMPLETION_ATTEMPT")
_UNSAFE = re.compile(r"[^\w.-]+")
_NO_NAMES = frozenset({"", "none"})  # torchrun's where nobody names the run


class Attempt(msgspec.Struct, frozen=True):
    """One attempt of a job.

    Attributes:
        start: which start of the job it is by its scheduler; None where that does not say.
        ended_at: UTC, ISO 8601.
        exit_code: None where it is not known.
        root: what tells its failure from others: a cause's id, or the first error with its numbers
            masked; empty where it is not known, or where it ended well.
        cause: id of the cause, empty where none was seen.
        last_step: the last step its output shows.
    """

    ended_at: str
    start: int | None = None
    exit_code: int | None = None
    root: str = ""
    cause: str = ""
    last_step: int | None = None


class _AttemptsFile(msgspec.Struct, frozen=True):
    schema: str
    job: str
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryVerdict:
    """What the attempts say of one more.

    Attributes:
        attempts: how many there were.
        same_root: how many of the last ones in a row failed for the same reason; 0 if unknown.
        gained: steps the last attempt came further than any before; None where steps are unknown.
        hopeless: whether another attempt will end the same way.
    """

    attempts: int
    same_root: int
    gained: int | None
    hopeless: bool


def job_of(environ: Mapping[str, str]) -> str:
    """The name of the job a process belongs to; empty where its environment does not say."""
    values = (environ.get(name, "") for name in JOB_VARIABLES)
    return next((value for value in values if value not in _NO_NAMES), "")


def start_of(environ: Mapping[str, str]) -> int | None:
    """Which start of the job this is, counted from 0."""
    values = (environ.get(name, "") for name in START_VARIABLES)
    return next((int(value) for value in values if value.isdigit()), None)


def read_attempts(home: Path, job: str) -> tuple[Attempt, ...]:
    """The attempts of a job, the oldest first.

    Raises:
        StoreError: the file is not readable or of another version.
    """
    path = _path(home, job)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}", todo="make it readable") from error
    try:
        file = msgspec.json.decode(data, type=_AttemptsFile)
    except msgspec.DecodeError as error:
        raise StoreError(f"{path}: {error}", todo="delete it: attempts start anew") from error
    if file.schema != SCHEMA:
        raise StoreError(f"{path} is {file.schema}, not {SCHEMA}", todo="delete it")
    return file.attempts


def add_attempt(home: Path, job: str, attempt: Attempt) -> tuple[Attempt, ...]:
    """Keep an attempt, in place of an earlier report of the same start; all of them.

    Raises:
        OSError: the state folder cannot be written.
        StoreError: the file is not readable or of another version.
    """
    make_state_folder(home)
    path = _path(home, job)
    path.parent.mkdir(exist_ok=True)
    with locked(path.with_suffix(".lock")):
        known = read_attempts(home, job)
        if attempt.start is not None and known and known[-1].start == attempt.start:
            known = known[:-1]
        attempts = (*known, attempt)[-MAX_ATTEMPTS:]
        file = _AttemptsFile(schema=SCHEMA, job=job, attempts=attempts)
        write_file(path, msgspec.json.encode(file), mode=0o600)
    return attempts


def _path(home: Path, job: str) -> Path:
    return home / FOLDER / f"{_UNSAFE.sub('_', job)[:120].lstrip('.') or 'job'}.json"


def retry_verdict(attempts: Sequence[Attempt]) -> RetryVerdict:
    """Whether another attempt may end otherwise, by those there were.

    It will not where the last `HOPELESS_AFTER` failed for the same reason and none of them after
    the first came further than those before it.
    """
    same = _same_root(attempts)
    gained = _gained(attempts[:-1], attempts[-1]) if attempts else None
    last = attempts[len(attempts) - same :]
    advanced = any(
        (_gained(attempts[: len(attempts) - same + at], attempt) or 0) > 0
        for at, attempt in enumerate(last)
        if at
    )
    return RetryVerdict(
        attempts=len(attempts),
        same_root=same,
        gained=gained,
        hopeless=same >= HOPELESS_AFTER and not advanced,
    )


def _same_root(attempts: Sequence[Attempt]) -> int:
    root = attempts[-1].root if attempts else ""
    count = 0
    for attempt in reversed(attempts):
        if not root or attempt.root != root:
            break
        count += 1
    return count


def _gained(before: Sequence[Attempt], attempt: Attempt) -> int | None:
    """Steps an attempt came further than any before it."""
    steps = [item.last_step for item in before if item.last_step is not None]
    if attempt.last_step is None or not steps:
        return None
    return max(0, attempt.last_step - max(steps))
