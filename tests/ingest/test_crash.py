"""``kill -9`` in the middle of an import: the store holds whole entries and whole files only."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kb.store import Store
from kb.types.entries import Entry

RECORDS = 16  # threads a file
FILES = 12  # 192 threads make three groups
KILLS = 10

PROGRAM = """
import sys
from pathlib import Path

from ingest import Ingestor
from kb.settings import shipped_data
from kb.store import Store
from tests.ingest.fakes import WatchdogReader


class Sink:
    def __init__(self, store):
        self.store = store

    def apply(self, entries):
        return self.store.upsert(entries)


def line(done, total, name):
    print(name, flush=True)


store = Store.open(Path(sys.argv[1]))
ingestor = Ingestor(Sink(store), WatchdogReader(), data=shipped_data())
ingestor.ingest_paths([Path(sys.argv[2])], on_progress=line)
store.close()
"""


def write_threads(folder: Path, state: str) -> None:
    """Files of threads, each record long enough to be told apart when half of it is missing."""
    folder.mkdir(exist_ok=True)
    for number in range(FILES):
        lines = [
            json.dumps(
                {
                    "title": f"hang {number}-{record}",
                    "html_url": f"https://github.com/acme/toaster/issues/{number * 100 + record}",
                    "body": f"{state}: all ranks hang in ALLREDUCE.\n\n## Root cause\n\n"
                    + " ".join(f"w{number}-{record}-{word}" for word in range(80)),
                }
            )
            for record in range(RECORDS)
        ]
        (folder / f"{number:02}.jsonl").write_text("\n".join(lines))


def run(store: Path, folder: Path, root: Path, *, kill_after: int = -1) -> int:
    """Import `folder` in a process of its own, killed when it has told of so many sources.

    Returns:
        The exit code: 0, or -9 for a killed one.
    """
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(store), str(folder)],
        stdout=subprocess.PIPE,
        cwd=root,
        text=True,
    )
    with process:
        assert process.stdout is not None
        for count, _ in enumerate(process.stdout):
            if count == kill_after:
                process.kill()
                break
        process.stdout.close()
        return process.wait()


def entries_of(path: Path) -> dict[str, Entry]:
    """What the store holds, by source key."""
    store = Store.open(path)
    try:
        return {entry.source_key: entry for entry in store.iter_entries()}
    finally:
        store.close()


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory, root: Path) -> dict[str, Path]:
    """Two states of the same files, each with its folder and the store of an import in peace."""
    base = tmp_path_factory.mktemp("crash")
    folder = base / "threads"
    found = {"folder": folder, "base": base}
    for state in ("before", "after"):
        write_threads(folder, state)
        found[state] = base / f"{state}.db"
        assert run(found[state], folder, root) == 0
    return found


@pytest.mark.slow
@pytest.mark.parametrize("moment", range(KILLS))
def test_kill_leaves_whole_files(moment: int, states: dict[str, Path], root: Path) -> None:
    """Killed anywhere while files change, each file is as it was or as it is; then it finishes."""
    before, after = entries_of(states["before"]), entries_of(states["after"])
    store = states["base"] / f"killed-{moment}.db"
    shutil.copy(states["before"], store)
    place = random.Random(moment).randrange(FILES)
    assert run(store, states["folder"], root, kill_after=place) == -9
    found = entries_of(store)
    assert found.keys() == before.keys()
    for number in range(FILES):
        keys = [
            f"https://github.com/acme/toaster/issues/{number * 100 + r}" for r in range(RECORDS)
        ]
        held = {key: found[key] for key in keys}
        assert held in ({k: before[k] for k in keys}, {k: after[k] for k in keys}), number
    assert run(store, states["folder"], root) == 0
    assert entries_of(store) == after
