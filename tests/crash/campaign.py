"""Rounds of `python -m tests.crash`: a process that changes a folder is killed; what is left?

All work is done in children: this process opens nothing, so that they can be forked at any time.
"""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import structlog

from kb.settings import shipped_data
from tests.crash import facts as checks
from tests.crash.facts import Fact, Line, merged
from tests.crash.operations import make_older, new_home, work_until_killed
from tests.fuzz.targets import small_data

FAULTS = ("none", "none", "none", "full", "fsync")
OLDER = 0.15  # of rounds begin with a folder of an older program
SOON = 0.2  # of kills come while the folder is opened
SOON_S = 0.6
MOST_DONE = 16  # operations before a kill
AFTER_S = 0.08  # from the last of them to the kill
WAIT_S = 60.0  # for a worker that does not get so far
FRESH = 20  # rounds on one folder
TOLD_EVERY = 25  # rounds

Known = dict[tuple[str, str], str]


class Campaign:
    """Rounds on state folders below `folder`."""

    def __init__(self, folder: Path, seed: int) -> None:
        """Nothing is opened in this process: all work is done in children of it."""
        self.folder = folder
        self.data = folder / "data"
        self.rng = random.Random(seed)
        self.steps: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.opened_s: list[float] = []
        self.home = folder / "home"
        self._known: Known = {}
        small_data(self.data, shipped_data())
        in_child(lambda _: new_home(folder, self.data))
        self.home.rename(folder / "origin")

    def round(self, number: int) -> None:
        """One kill and its check; what is wrong is noted."""
        if number % FRESH == 0:
            shutil.rmtree(self.home, ignore_errors=True)
            shutil.copytree(self.folder / "origin", self.home)
            self._known = {}
        fault = self.rng.choice(FAULTS)
        if self.rng.random() < OLDER and (self.home / "opened.json").exists():
            make_older(self.home, self.rng)
            self.steps["migrated"] += 1
        lines = self._killed(fault)
        self.steps[f"fault {fault}"] += 1
        self.steps.update(f"{line.step} {line.name.partition(':')[0]}"[:40] for line in lines)
        broken = [line.name for line in lines if line.step == "broken"]
        known, unsure = merged(self._known, lines)
        asked = [Fact(kind, key, value) for (kind, key), value in known.items()]
        asked += [Fact(kind, key, "") for kind, key in unsure - known.keys() if key]
        said = in_child(lambda pipe: write(pipe, checks.check(self.home, self.data, asked)))
        if said[:1] != ["ok"]:
            self._note(number, fault, [*broken, *said])
            self._known = {}
            shutil.rmtree(self.home)
            shutil.copytree(self.folder / "origin", self.home)
            return
        wrong, values, opened_s = json.loads(said[1])
        self.opened_s.append(opened_s)
        lost = [
            f"lost: {kind} {key} is {values[f'{kind} {key}']!r}, acknowledged was {value!r}"
            for (kind, key), value in known.items()
            if (kind, key) not in unsure and not holds(kind, value, values[f"{kind} {key}"])
        ]
        half = [
            f"half a file: {values[f'{kind} {key}']} of {key}"
            for kind, key in unsure
            if kind == "file" and values.get(f"{kind} {key}", "0") not in ("0", "3")
        ]
        self._note(number, fault, [*broken, *wrong, *lost, *half])
        self._known = {place: values.get(f"{place[0]} {place[1]}", "") for place in known}

    def _note(self, number: int, fault: str, wrong: list[str]) -> None:
        for one in wrong:
            self.wrong.append(one)
            print(f"round {number} ({fault}): {one}", flush=True)

    def _killed(self, fault: str) -> list[Line]:
        """What a worker said until its kill."""
        seed = self.rng.randrange(1 << 30)
        there: dict[str, list[str]] = {}
        for (kind, key), value in self._known.items():
            if value:
                there.setdefault(kind, []).append(key)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            run_child(
                lambda pipe: work_until_killed(
                    self.home, self.data, pipe, there, seed=seed, fault=fault
                ),
                writing,
                "broken",
            )
        os.close(writing)
        try:
            said = self._until_the_moment(reading)
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        said += read_all(reading)
        os.close(reading)
        rows = [json.loads(line) for line in said.splitlines()]
        return [Line(step, name, tuple(Fact(*fact) for fact in some)) for step, name, some in rows]

    def _until_the_moment(self, pipe: int) -> bytes:
        """Read what the worker says up to the moment of its kill."""
        if self.rng.random() < SOON:
            time.sleep(self.rng.random() * SOON_S)
            return b""
        done, after_s = self.rng.randrange(MOST_DONE), self.rng.random() * AFTER_S
        said, end = b"", time.monotonic() + WAIT_S
        while said.count(b"\n") < 2 * done + 1 and time.monotonic() < end:
            if not select.select([pipe], [], [], 1.0)[0]:
                continue
            piece = os.read(pipe, 1 << 16)
            said += piece
            if not piece or b'["refused"' in piece:
                break
        time.sleep(after_s)
        return said


def holds(kind: str, value: str, now: str) -> bool:
    """Whether what was acknowledged is so: a conversation may have gone on, nothing else may."""
    return now == value or (kind == "chat" and int(now or 0) >= int(value or 0))


# --- children -------------------------------------------------------------------------------------


def in_child(work: Callable[[int], object]) -> list[str]:
    """The lines a child wrote into its pipe, ``ok`` first where it did all of its work."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        run_child(work, writing, "check")
    os.close(writing)
    said = read_all(reading).decode()
    os.close(reading)
    _, status = os.waitpid(child, 0)
    if status == 0:
        return ["ok", *said.splitlines()]
    return said.splitlines() or [f"the check ended with status {status}"]


def run_child(work: Callable[[int], object], pipe: int, name: str) -> None:
    """Do the work and end the process; what fails is a line in the pipe."""
    code = 0
    try:
        work(pipe)
    except BaseException as error:  # noqa: BLE001 - the campaign reports whatever escapes
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        text = f"{name}: {type(error).__name__} at {where}: {error}"[:1000]
        os.write(pipe, json.dumps(["broken", text, []]).encode() + b"\n")
        code = 1
    os._exit(code)


def write(pipe: int, value: object) -> None:
    """A value as JSON; pipes take it in pieces."""
    with os.fdopen(os.dup(pipe), "w") as file:
        json.dump(value, file)


def read_all(pipe: int) -> bytes:
    """All that comes until the other end is closed."""
    with os.fdopen(os.dup(pipe), "rb") as file:
        return file.read()


def main(rounds: int, seed: int) -> int:
    """Run the rounds and print what came out; 1 where anything was lost or half."""
    structlog.configure(processors=[], logger_factory=structlog.ReturnLoggerFactory())
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="timeout-kb-crash-") as name:
        campaign = Campaign(Path(name), seed)
        for number in range(rounds):
            campaign.round(number)
            if (number + 1) % TOLD_EVERY == 0:
                print(f"{number + 1} rounds, {len(campaign.wrong)} things wrong", flush=True)
    opened = sorted(campaign.opened_s) or [0.0]
    for step, count in sorted(campaign.steps.items()):
        print(f"  {count:6} {step}")
    print(
        f"{rounds} rounds (seed {seed}) in {time.monotonic() - started:.0f} s; opened after a kill"
        f" in {opened[len(opened) // 2]:.2f} s (median), {opened[-1]:.2f} s (longest);"
        f" {len(campaign.wrong)} things wrong"
    )
    return int(bool(campaign.wrong))


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
