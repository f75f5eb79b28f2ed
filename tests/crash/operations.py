"""What a process does until it is killed: it says what it begins and what was acknowledged."""

from __future__ import annotations

import ctypes
import json
import os
import random
import resource
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from app.api import create_app
from app.api.auth import add_key, keys_path
from ingest import Ingestor
from kb.bootstrap import INDEX, open_service
from kb.diagnose.learned import LearnedWeights, base_digest, keep_learned
from kb.errors import KBError
from kb.service import Service
from kb.settings import Settings
from kb.store.backup import BACKUPS, back_up
from tests.crash.facts import Fact, Line

WRITEUPS = 3  # in a file, which is imported whole or not at all
BACKUPS_KEPT = 3
CAUSES = ("rank-crash", "collective-mismatch", "uneven-data")
CONSONANTS = "bcdfghjklmnpqrstvwxz"


@dataclass
class Worker:
    """One process at work on a state folder; `pipe` takes its lines."""

    settings: Settings
    service: Service
    client: TestClient
    rng: random.Random
    pipe: int
    facts: dict[str, list[str]]  # what earlier rounds left, by kind: `entry`, `chat`, ...

    def say(self, step: str, name: str, facts: list[Fact]) -> None:
        """One line, whole even where the process ends right after it."""
        os.write(self.pipe, json.dumps(Line(step, name, tuple(facts))).encode() + b"\n")

    def word(self) -> str:
        """A word that stands nowhere else."""
        return "zq" + "".join(self.rng.choice(CONSONANTS) for _ in range(9))

    def any_of(self, kind: str) -> str:
        """Something of a kind that is there; empty where there is none."""
        return self.rng.choice(self.facts.get(kind) or [""])

    def call(self, method: str, path: str, **options: Any) -> Any:
        """The JSON of an answer; `RefusedError` for a failure made for people.

        Raises:
            AssertionError: the server failed in another way.
        """
        answer = self.client.request(method, path, **options)
        if answer.is_success:
            return answer.json() if answer.content else {}
        problem = answer.json()
        assert "unexpected" not in problem["type"], problem
        raise RefusedError(problem["detail"])


class RefusedError(KBError):
    """The server refused, and said why."""


def log_of(word: str) -> str:
    """A log that only `word` tells from others."""
    return (
        f"Training of {word} hangs after the second epoch.\n"
        f"[rank3]: RuntimeError: {word} failed: NCCL communicator was aborted on rank 3.\n"
    )


# --- each operation: the facts it changes, and the work, which gives what is true afterwards ------

Work = Callable[[], list[Fact]]
Step = tuple[list[tuple[str, str]], Work]  # (kind, key) of what it touches


def add(worker: Worker) -> Step:
    """A log over the API."""
    word = worker.word()

    def work() -> list[Fact]:
        body = {"text": log_of(word), "name": f"{word}.log"}
        identifier = worker.call("POST", "/v1/entries", json=body)["ids"][0]
        worker.facts.setdefault("entry", []).append(identifier)
        return [Fact("entry", identifier, word)]

    return [], work


def ingest(worker: Worker) -> Step:
    """A file of several write-ups."""
    word = worker.word()
    path = worker.settings.home.parent / "sources" / f"{word}.jsonl"
    path.parent.mkdir(exist_ok=True)
    threads = [
        {
            "title": f"hang of {word}{number}",
            "html_url": f"https://github.com/acme/{word}/issues/{number + 1}",
            "body": f"{word}{number}: all ranks hang in ALLREDUCE.\n\n## Root cause\n\n"
            + " ".join(f"{word}{number}x{place}" for place in range(60)),
        }
        for number in range(WRITEUPS)
    ]
    path.write_text("\n".join(map(json.dumps, threads)))

    def work() -> list[Fact]:
        service = worker.service
        Ingestor(service, service.reader, data=service.settings.data).ingest_paths([path])
        return [Fact("file", word, str(WRITEUPS))]

    return [("file", word)], work


def resolve(worker: Worker) -> Step:
    """How an incident ended."""
    identifier, cause = worker.any_of("entry"), worker.rng.choice(CAUSES)

    def work() -> list[Fact]:
        body = {"cause": cause, "fix": f"a fix for {cause}"}
        worker.call("POST", f"/v1/entries/{identifier}/resolve", json=body)
        return [Fact("outcome", identifier, cause)]

    return [("outcome", identifier), ("entry", identifier)], work


def delete(worker: Worker) -> Step:
    """An entry that goes."""
    identifier = worker.any_of("entry")

    def work() -> list[Fact]:
        worker.call("DELETE", f"/v1/entries/{identifier}")
        worker.facts["entry"].remove(identifier)
        return [Fact("entry", identifier, ""), Fact("outcome", identifier, "")]

    return [("entry", identifier), ("outcome", identifier)], work


def feedback(worker: Worker) -> Step:
    """What a person says of an answer."""

    def work() -> list[Fact]:
        body = {"verdict": "wrong", "cause": CAUSES[0], "actual": CAUSES[1]}
        answer = worker.call("POST", "/v1/feedback", json=body)
        return [Fact("feedback", answer["id"], "wrong")]

    return [], work


def chat(worker: Worker) -> Step:
    """A message in a conversation that goes on."""
    identifier = worker.any_of("chat")

    def work() -> list[Fact]:
        body = {"message": log_of(worker.word()), "conversation": identifier}
        headers = {"Accept": "application/json"}
        found = worker.call("POST", "/v1/chat", json=body, headers=headers)["conversation"]
        worker.facts.setdefault("chat", []).append(found)
        turns = len(worker.call("GET", f"/v1/chat/{found}")["turns"])
        return [Fact("chat", found, str(turns))]

    return [("chat", identifier)], work


def keep(worker: Worker) -> Step:
    """A diagnosis with a link."""

    def work() -> list[Fact]:
        body, headers = log_of(worker.word()), {"Content-Type": "text/plain"}
        answer = worker.client.post("/v1/diagnose?keep=true", content=body, headers=headers)
        if not answer.is_success:
            raise RefusedError(answer.json()["detail"])
        return [Fact("kept", answer.headers["Location"], "there")]

    return [], work


def rebuild(worker: Worker) -> Step:
    """The search index built anew beside the one in use."""

    def work() -> list[Fact]:
        open_service(worker.settings, rebuild=True).close()
        return []

    return [], work


def backup(worker: Worker) -> Step:
    """A backup while others write."""

    def work() -> list[Fact]:
        home = worker.settings.home
        made = back_up(home, home / BACKUPS, keep=BACKUPS_KEPT)
        return [Fact("backup", made.folder.name, "whole")]

    return [], work


def learn(worker: Worker) -> Step:
    """Learned weights written, as `timeout-kb learn` does."""

    def work() -> list[Fact]:
        learned = LearnedWeights(base=base_digest(worker.settings.data), outcomes=3)
        path = _written(lambda: keep_learned(worker.settings.home, learned))
        return [Fact("learned", path.name, "whole")]

    return [], work


def _written(write: Callable[[], Path]) -> Path:
    try:
        return write()
    except OSError as error:  # the command says so and ends
        raise RefusedError(str(error)) from error


def key(worker: Worker) -> Step:
    """A key of the API."""
    name = worker.word()

    def work() -> list[Fact]:
        add_key(keys_path(worker.settings), name, "read")
        return [Fact("key", name, "there")]

    return [("key", name)], work


OPERATIONS: dict[str, tuple[Callable[[Worker], Step], int]] = {  # and how often it comes
    "add": (add, 6),
    "ingest": (ingest, 3),
    "resolve": (resolve, 3),
    "delete": (delete, 1),
    "feedback": (feedback, 3),
    "chat": (chat, 3),
    "keep": (keep, 3),
    "rebuild": (rebuild, 1),
    "backup": (backup, 2),
    "learn": (learn, 1),
    "key": (key, 1),
}
NEEDS = {"resolve": "entry", "delete": "entry"}


def work_until_killed(
    home: Path, data: Path, pipe: int, facts: dict[str, list[str]], *, seed: int, fault: str
) -> None:
    """Open the state folder and change it without end; ended by a kill, or by what it says last."""
    rng = random.Random(seed)
    settings = Settings(home=home, data=data)
    _make_faulty(fault, rng)
    try:
        service = open_service(settings)
        app = create_app(service, settings)
        client = TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)
        client.headers["X-API-Key"] = (home.parent / "key").read_text()
        worker = Worker(settings, service, client, rng, pipe, facts)
        worker.say("open", "", [])
        names = [name for name, (_, often) in OPERATIONS.items() for _ in range(often)]
        while True:
            name = rng.choice(names)
            if NEEDS.get(name) and not facts.get(NEEDS[name]):
                continue
            _one(worker, name)
    except KBError as error:
        os.write(pipe, json.dumps(Line("refused", str(error)[:300], ())).encode() + b"\n")
        signal_wait()


def _one(worker: Worker, name: str) -> None:
    touched, work = OPERATIONS[name][0](worker)
    worker.say("begin", name, [Fact(kind, key, "") for kind, key in touched])
    try:
        facts = work()
    except KBError as error:
        worker.say("failed", f"{name}: {error.what[:200]}", [])
    else:
        worker.say("done", name, facts)


def signal_wait() -> None:
    """Wait for the kill that ends every round."""
    import signal

    signal.pause()


def _make_faulty(fault: str, rng: random.Random) -> None:
    """Let the disk fail in this process from now on, in one way."""
    if fault == "full":
        size = rng.choice((20_000, 200_000, 1_000_000, rng.randrange(3_000_000)))
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    elif fault == "fsync":
        waits, how_many = rng.randrange(1, 60), rng.choice((1, 3, 1000))
        library = ctypes.CDLL(None)
        if hasattr(library, "fail_after"):
            library.fail_after(waits, how_many)
        else:
            _patch_fsync(waits, how_many)


def _patch_fsync(waits: int, how_many: int) -> None:
    """Without a compiler: what Python itself waits for fails, SQLite does not notice."""
    whole, calls = os.fsync, iter(range(1_000_000))

    def fsync(descriptor: int) -> None:
        if waits <= next(calls) < waits + how_many:
            raise OSError(5, "Input/output error")
        whole(descriptor)

    os.fsync = fsync  # type: ignore[assignment]


def make_older(home: Path, rng: random.Random) -> None:
    """Leave the state folder as an older program did: what is opened next migrates it."""
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(home / "kb.sqlite3")) as connection:
        for statement in (
            "DROP TRIGGER IF EXISTS diagnoses_gone",
            "DROP TRIGGER IF EXISTS conversations_gone",
            "DROP TABLE IF EXISTS kept_sizes",
            "DROP TABLE IF EXISTS deleted_entries",
        ):
            connection.execute(statement)
        connection.commit()
    if rng.random() < 0.5:
        for folder in (home / INDEX).iterdir():  # as a program of another model left it
            if folder.is_dir():
                folder.rename(folder.with_name(folder.name[::-1]))


def new_home(folder: Path, data: Path) -> None:
    """A state folder with a key, in `folder` beside what a campaign needs."""
    settings = Settings(home=folder / "home", data=data)
    service = open_service(settings)
    service.diagnose_text(log_of("zq"))  # what reading compiles is kept in the folder
    service.close()
    (folder / "key").write_text(add_key(keys_path(settings), "campaign", "admin", 1_000_000))
