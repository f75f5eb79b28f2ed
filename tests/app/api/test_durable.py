"""kill -9 under writes: what the API acknowledged is there after a restart, and is found."""

from __future__ import annotations

import itertools
import random
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import httpx
import pytest

COMMAND = [sys.executable, "-c", "from app.cli.main import main; main()", "serve", "--port", "0"]
WRITERS = 4
ENOUGH = 6  # acknowledged before the kill
LETTERS = "bcdfghjklmnpqrstvwxz"


def start(home: Path, root: Path) -> tuple[subprocess.Popen[str], str]:
    """A server process and its address."""
    environment = {"PATH": "/usr/bin:/bin", "TIMEOUT_KB_HOME": str(home)}
    server = subprocess.Popen(COMMAND, cwd=root, env=environment, stderr=subprocess.PIPE, text=True)
    said = ""
    for line in server.stderr or ():
        said += line
        if "Try:" in line:
            break
    found = re.search(r"answers on (http://\S+) ", said)
    assert found, said
    return server, found[1]


def stop(server: subprocess.Popen[str]) -> None:
    """End it as a power cut would."""
    server.kill()
    server.wait()
    if server.stderr:
        server.stderr.close()


def log(word: str) -> str:
    """A log that only this word tells from others."""
    return (
        f"Training of {word} hangs after the second epoch.\n"
        f"[rank3]: RuntimeError: {word} failed: NCCL communicator was aborted on rank 3.\n"
    )


def write(
    address: str, words: Sequence[str], kept: dict[str, str], enough: threading.Event
) -> None:
    """Add entries until the server is gone; remember those it acknowledged."""
    with httpx.Client(base_url=address, timeout=60) as client:
        for word in words:
            try:
                body = {"text": log(word), "name": f"{word}.log"}
                answer = client.post("/v1/entries", json=body)
            except httpx.HTTPError:
                return
            if answer.status_code == 201:
                kept[word] = answer.json()["ids"][0]
                if len(kept) >= ENOUGH:
                    enough.set()


@pytest.mark.slow
def test_every_acknowledged_entry_survives_kill_9(
    built_home: Callable[[], Path], root: Path
) -> None:
    """Four writers, kill -9 at a random moment, restart: each acknowledged id is there."""
    rng, home = random.Random(), built_home()
    pool = ["".join(letters) for letters in itertools.product(LETTERS, repeat=3)]
    words = [f"zq{name}yx" for name in rng.sample(pool, 400)]
    server, address = start(home, root)
    kept: dict[str, str] = {}
    enough = threading.Event()
    writers = [
        threading.Thread(target=write, args=(address, words[part::WRITERS], kept, enough))
        for part in range(WRITERS)
    ]
    try:
        for writer in writers:
            writer.start()
        assert enough.wait(120)
        threading.Event().wait(rng.random() * 0.3)  # the moment of the kill is the test's input
    finally:
        stop(server)
    for writer in writers:
        writer.join()
    server, address = start(home, root)
    try:
        with httpx.Client(base_url=address, timeout=60) as client:
            for word, identifier in sorted(kept.items()):
                entry = client.get(f"/v1/entries/{identifier}")
                assert entry.status_code == 200, (word, entry.text)
                found = client.post("/v1/search", json={"query": f"{word} hangs", "limit": 3})
                assert identifier in [hit["entry_id"] for hit in found.json()["hits"]], word
    finally:
        stop(server)
    assert len(kept) >= ENOUGH
