"""Fuzz every target: `python -m tests.fuzz MINUTES [TARGET...]`.

Guided by coverage where atheris is installed (`pip install atheris`), else by chance. An input
fails that ends in an error not made for people, takes longer than 0.25 s for 100 kB (a second at
least), or more memory than three times its size and 50 MB. Each kind of failure is written once,
made as short as it can be, to `tests/fuzz/inputs/TARGET/`, where a test runs it from then on.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import structlog

from tests.kb.logs.mutate import mutate

ONE = "--one"  # a target in this process
GUIDED = (
    sys.argv[1:2] == [ONE]
    and "FUZZ_BY_CHANCE" not in os.environ
    and importlib.util.find_spec("atheris") is not None
)
if GUIDED:
    import atheris
with atheris.instrument_imports(include=["kb", "ingest"]) if GUIDED else contextlib.nullcontext():
    import ingest.pipeline  # noqa: F401 - its lines count as reached
    import kb.service  # noqa: F401
    from tests.fuzz.targets import INPUTS, RUNS, Target, Targets, refuse_quietly

FLOOR_S = 1.0
S_A_BYTE = 2.5e-6
MEMORY = 50 << 20
SHRINKS = 300  # tries to make a failing input shorter
PRODUCT = ("kb/", "ingest/", "app/")


class SlowError(Exception):
    """An input takes too long."""


class LargeError(Exception):
    """An input takes too much memory."""


@contextlib.contextmanager
def _limits(data: bytes) -> Iterator[None]:
    """Time of the processor and growth of the process's peak that one input may take."""

    def end(_number: int, _frame: object) -> None:
        raise SlowError

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, max(FLOOR_S, S_A_BYTE * len(data)))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    if grown > MEMORY + 3 * len(data):
        raise LargeError(f"{grown >> 20} MB for {len(data)} bytes")


class Fuzzer:
    """Runs one target and writes down what fails."""

    def __init__(self, name: str, target: Target, seconds: float) -> None:
        self._name = name
        self._target = target
        self._known: set[str] = set()
        self.count = self.refused = 0
        for _ in range(3):  # caches fill
            for seed in target.seeds:
                refuse_quietly(target.run, seed)
        self._begun_s = time.process_time()  # the processor's; beside other work it is far less
        self._end = time.monotonic() + seconds

    def one(self, data: bytes) -> None:
        """Try one input; when the time is over, say what was done and end the process."""
        if time.monotonic() > self._end:
            print(f"{self._name}: {self.count} inputs, {self.refused} refused, ", end="")
            print(f"{len(self._known)} kinds of failure, ", end="")
            print(f"{time.process_time() - self._begun_s:.0f} s of processor time", flush=True)
            os._exit(0)  # libFuzzer would go on after an exception
        self.count += 1
        place = self._failure(data)
        if place and place not in self._known:
            self._known.add(place)
            short = self._shortened(data, place)
            path = INPUTS / self._name / hashlib.sha256(short).hexdigest()[:12]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(short)
            print(f"{self._name}: {place}: {path} ({len(short)} bytes)", flush=True)

    def _failure(self, data: bytes) -> str:
        """Where an input fails, empty for none."""
        try:
            with _limits(data):
                self.refused += refuse_quietly(self._target.run, data)
        except Exception as error:  # noqa: BLE001 - the fuzzer reports whatever escapes
            frames = traceback.extract_tb(error.__traceback__)
            own = [f for f in frames if any(f"/{part}" in f.filename for part in PRODUCT)]
            last = own[-1] if own and not isinstance(error, (SlowError, LargeError)) else None
            where = f" at {Path(last.filename).name}:{last.lineno}" if last else ""
            told = str(error)[:60] if isinstance(error, RuntimeError) else ""
            return f"{type(error).__name__}{where} {told}".strip()
        return ""

    def _shortened(self, data: bytes, place: str) -> bytes:
        """The input without what it fails without, as far as some hundred tries go."""
        size, tries = len(data) // 2, 0
        while size and tries < SHRINKS:
            start = 0
            while start < len(data) and tries < SHRINKS:
                shorter = data[:start] + data[start + size :]
                tries += 1
                if self._failure(shorter) == place:
                    data = shorter
                else:
                    start += size
            size //= 2
        return data


def by_chance(fuzzer: Fuzzer, target: Target) -> None:
    """Damage seeds at random."""
    rng = random.Random(time.time())
    pool = list(target.seeds)
    while True:
        data = mutate(rng, pool)
        for _ in range(rng.randrange(3)):
            place = rng.randrange(len(data) + 1)
            data = data[:place] + rng.choice(target.words) + data[place:]
        fuzzer.one(data)


def by_coverage(fuzzer: Fuzzer, target: Target, folder: Path) -> None:
    """Let atheris look for inputs that reach new lines."""
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(target.seeds):
        (corpus / str(number)).write_bytes(seed)
    words = folder / "words"
    words.write_text(
        "\n".join(
            '"' + "".join(f"\\x{byte:02x}" for byte in word[:64]) + '"' for word in target.words
        )
    )
    options = [
        "-max_len=20000", "-timeout=60", "-rss_limit_mb=4000",
        "-verbosity=0", "-print_final_stats=0", f"-dict={words}", f"-artifact_prefix={folder}/",
    ]  # fmt: skip
    atheris.Setup(["fuzz", *options, str(corpus)], fuzzer.one)
    atheris.Fuzz()


def _run(name: str, seconds: float, folder: Path) -> None:
    """Fuzz one target in this process."""
    structlog.configure(processors=[], logger_factory=structlog.ReturnLoggerFactory())
    target = Targets(folder).of(name)
    fuzzer = Fuzzer(name, target, seconds)
    if GUIDED:
        by_coverage(fuzzer, target, folder)  # ends the process
    by_chance(fuzzer, target)


def main(minutes: float, names: list[str]) -> int:
    """Fuzz the targets in turn, each in a process of its own; 1 when anything failed."""
    before = {path for path in INPUTS.rglob("*") if path.is_file()}
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            seconds = minutes * 60 / len(names)
            command = [sys.executable, "-m", "tests.fuzz", ONE, name, str(seconds), folder]
            subprocess.run(command, check=False, stderr=subprocess.DEVNULL)
    new = {path for path in INPUTS.rglob("*") if path.is_file()} - before
    print(f"{len(new)} new inputs that fail")
    return int(bool(new))


if __name__ == "__main__":
    if sys.argv[1:2] == [ONE]:
        _run(sys.argv[2], float(sys.argv[3]), Path(sys.argv[4]))
    else:
        sys.exit(main(float((sys.argv[1:] or ["10"])[0]), sys.argv[2:] or list(RUNS)))
