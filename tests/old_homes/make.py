"""A state folder as this version writes it, as text: ``python -m tests.old_homes.make NAME``.

It goes to ``tests/old_homes/homes/NAME`` and is never written again: versions to come have to open
it. The shipped cases are left out, as every version brings its own.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path

import msgspec

from app.api.auth import add_key, keys_path
from app.inputs.contributions import (
    Feedback,
    Resolution,
    add_feedback,
    add_text,
    delete,
    merge,
    resolve,
)
from kb.bootstrap import open_service
from kb.chat.chat import Chat
from kb.diagnose.learned import LearnedWeights, base_digest, keep_learned
from kb.incidents.attempts import Attempt, add_attempt
from kb.saved import save_diagnosis
from kb.service import Service
from kb.settings import Settings, shipped_data
from kb.store.database import DATABASE
from tests.fuzz.targets import small_data

STATEMENTS = "kb.sql.gz"
HOMES = Path(__file__).parent / "homes"
LOG = (
    "[rank3]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    "[rank1]:[E ProcessGroupNCCL.cpp:563] [Rank 1] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=100, OpType=ALLREDUCE, NumelIn=1000, NumelOut=1000, Timeout(ms)=600000) "
    "ran for 600068 milliseconds before timing out.\n"
)
WRITEUP = (
    "# The quillfish stall\n\nAll 16 ranks wait in ALLREDUCE after step 400 and the watchdog ends "
    "the job after ten minutes; the GPUs show full use and no rank prints an error before.\n\n"
    "## Root cause\n\nA quillfish sat on the switch: the port of the second node lost its link, so "
    "that rank 8 never sent its part.\n\n## Fix\n\nMove the fish, then raise the link again.\n"
)
DERIVED = ("cache", "index", "locks", "logs")


def fill(service: Service) -> dict[str, object]:
    """Write one of each kind; returns what has to be found again."""
    home = service.settings.home

    def added(text: str, name: str) -> str:
        return add_text(service, text, name=name).entries[0]

    incident = added(f"Training of marlinspike hangs.\n{LOG}", "marlinspike.log")
    resolve(service, incident, Resolution(cause="rank-crash", fix="a smaller batch"), by="ann")
    writeup = added(WRITEUP, "quillfish.md")
    twin = added(f"Training of sextant hangs.\n{LOG}", "sextant.log")
    other = added(f"Training of sextant2 hangs again.\n{LOG}", "sextant2.log")
    merge(service, twin, [other])
    deleted = added(f"Training of bilgepump hangs.\n{LOG}", "bilgepump.log")
    delete(service, deleted)
    verdict = service.judge(service.read_text(LOG))
    kept = save_diagnosis(service, verdict)
    feedback = add_feedback(
        service, Feedback(verdict="right", cause=kept.en.causes[0].id), source="api"
    )
    conversation = Chat(service).say(LOG).conversation
    Chat(service).say("What should I check first?", conversation=conversation)
    service.store.preferences.put("T1:C1", b'{"lang":"zh"}', now_s=1.0)
    add_attempt(home, "job-7", Attempt(ended_at="2026-01-02T03:04:05+00:00", start=0, exit_code=1))
    keep_learned(home, LearnedWeights(base=base_digest(service.settings.data), outcomes=3))
    return {
        "incident": incident,
        "writeup": writeup,
        "merged": [other, twin],
        "deleted": deleted,
        "kept": [kept.id, kept.en.causes[0].id],
        "feedback": feedback.id,
        "conversation": conversation,
        "key": add_key(keys_path(service.settings), "ann", "write"),
    }


def as_text(path: Path, *, without: list[str]) -> str:
    """A database as SQL statements, less these entries and all that is the shipped cases'."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA foreign_keys = ON")
        marks = ",".join("?" * len(without))
        connection.execute(f"DELETE FROM entries WHERE id IN ({marks})", without)  # noqa: S608
        connection.commit()
        pragmas = [
            f"PRAGMA {name} = {connection.execute(f'PRAGMA {name}').fetchone()[0]};"
            for name in ("application_id", "user_version")
        ]
        return "\n".join([*pragmas, *connection.iterdump()]) + "\n"


def from_text(path: Path, target: Path) -> None:
    """Make the database `target` of the statements at `path`."""
    with contextlib.closing(sqlite3.connect(target)) as connection:
        connection.executescript(gzip.decompress(path.read_bytes()).decode())
        connection.execute("PRAGMA journal_mode = WAL")


def main(name: str) -> None:
    """Make the folder.

    Raises:
        FileExistsError: there is one of that name.
    """
    target = HOMES / name
    target.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as place:
        settings = Settings(home=Path(place) / "home", data=Path(place) / "data")
        small_data(settings.data, shipped_data())
        service = open_service(settings)
        expected = fill(service)
        cases = [case.id for case in service.knowledge.cases]
        service.close()
        for path in settings.home.iterdir():
            if path.is_dir() and path.name not in DERIVED:
                shutil.copytree(path, target / path.name, ignore=shutil.ignore_patterns("*.lock"))
            elif path.suffix == ".json":
                shutil.copy(path, target)
        text = as_text(settings.home / DATABASE, without=cases)
    (target / STATEMENTS).write_bytes(gzip.compress(text.encode(), mtime=0))
    (target / "expected.json").write_bytes(
        msgspec.json.format(json.dumps(expected).encode(), indent=1) + b"\n"
    )


if __name__ == "__main__":
    main(sys.argv[1])
