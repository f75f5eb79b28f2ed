"""Feed the reader damaged logs by the million: no crash, no hang, no input ten times too slow.

Run: ``python tests/bench/fuzz_reader.py [COUNT] [SEED]``. Prints the slowest input and the rate;
exits 1 on the first failure and writes the input beside the script's working folder.
"""

from __future__ import annotations

import random
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from kb.errors import KBError
from kb.knowledge.load import load_knowledge
from kb.logs import LogReader
from kb.logs.event_log import EventVocabulary
from kb.settings import shipped_data
from kb.types.knowledge import Pattern
from tests.kb.logs.mutate import mutate

SLOW_FACTOR = 10.0  # against the mean of inputs of that size
HANG_S = 20  # an input takes half a millisecond; expressions that blow up take for ever
FLOOR_S = 0.1  # scheduling noise on a shared machine stays below this


def seeds(patterns: tuple[Pattern, ...], rng: random.Random) -> list[bytes]:
    """Logs made of lines as software prints them."""
    lines = sorted({line for pattern in patterns for line in pattern.examples})
    return ["\n".join(rng.sample(lines, rng.randrange(1, 12))).encode() for _ in range(500)]


def hang(_number: int, _frame: object) -> None:
    """Turn a hang into a failure of its input."""
    raise TimeoutError(f"no answer within {HANG_S} s")


def main(count: int, seed: int) -> int:
    """Run `count` inputs; 0 when all passed."""
    knowledge = load_knowledge(shipped_data())
    patterns = knowledge.patterns
    reader = LogReader(EventVocabulary.of(knowledge), cache=None)
    signal.signal(signal.SIGALRM, hang)
    rng = random.Random(seed)
    pool = seeds(patterns, rng)
    slowest, slow_input, total, refused = 0.0, b"", 0.0, 0
    for number in range(count):
        data = mutate(rng, pool)
        start = time.process_time()
        signal.alarm(HANG_S)
        try:
            reader.read_stream([data])
        except KBError:
            refused += 1
        except Exception as error:  # noqa: BLE001 - the fuzzer reports whatever escapes
            Path("fuzz-failure.bin").write_bytes(data)
            print(f"input {number}: {type(error).__name__}: {error}")
            return 1
        took = time.process_time() - start
        total += took
        if took > slowest:
            slowest, slow_input = took, data
        if number % 100_000 == 99_999:
            print(f"{number + 1} inputs, mean {total / (number + 1) * 1e3:.2f} ms")
    mean = total / count
    print(
        f"{count} inputs, {refused} refused, mean {mean * 1e3:.2f} ms, "
        f"slowest {slowest * 1e3:.1f} ms ({len(slow_input)} bytes)"
    )
    return int(slowest > max(SLOW_FACTOR * mean, FLOOR_S))


if __name__ == "__main__":
    arguments = [int(argument) for argument in sys.argv[1:]]
    sys.exit(main(*(arguments + [1_000_000, 1][len(arguments) :])))
