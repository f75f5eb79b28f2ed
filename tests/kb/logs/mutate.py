"""Random damage to logs: what truncation, interleaving, terminals and bad storage do to them."""

from __future__ import annotations

import random
from collections.abc import Sequence

SPLICES = (b"\r", b"\n", b"\x1b[31m", b"\x00", b"\xff\xfe", "卡".encode(), b"[Rank ", b"WorkNCCL(",
           b"Timeout(ms)=", b"999999999999999999999", b"-", b"(" * 40, b"{" * 40, b"last enqueued ",
           b"Traceback (most recent call last):\n", b"<" * 30, b" " * 300, b"9" * 300,
           b"(" + b"a_" * 60, b"[" + b"a " * 60, b"--a=" * 60)  # fmt: skip


def mutate(rng: random.Random, seeds: Sequence[bytes]) -> bytes:
    """One damaged log made of one or two seeds."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.randrange(1, 6)):
        place = rng.randrange(len(data) + 1)
        kind = rng.randrange(6)
        if kind == 0:
            del data[place : place + rng.randrange(1, 60)]
        elif kind == 1:
            data[place:place] = rng.choice(SPLICES)
        elif kind == 2 and data:
            data[place % len(data)] = rng.randrange(256)
        elif kind == 3:
            other = rng.choice(seeds)
            start = rng.randrange(len(other) + 1)
            data[place:place] = other[start : start + rng.randrange(200)]
        elif kind == 4:
            data[place:place] = data[place : place + rng.randrange(100)] * rng.randrange(1, 5)
        else:
            data = data[place:] if rng.random() < 0.5 else data[:place]
    return bytes(data)
