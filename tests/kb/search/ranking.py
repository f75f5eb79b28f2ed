"""Made-up entries and questions with every route, filter and tie: what a ranking is compared on."""

from __future__ import annotations

import random

from kb.types.entries import CauseClaim, Entry, Filters, Tags
from tests.kb.fakes import make_entry

WORDS = [
    *("barrier", "checkpoint", "dataloader", "eviction", "firewall", "gradient", "heartbeat"),
    *("interface", "kernel", "launcher", "memory", "network", "optimizer", "preemption", "queue"),
    *("rendezvous", "socket", "tokenizer", "upgrade", "volume", "watchdog", "xid"),
]
TRANSLATIONS = {"gradient": "梯度", "network": "网络", "watchdog": "memory"}
LINES = [
    "ProcessGroupNCCL.cpp:587 Watchdog caught timeout WorkNCCL OpType=ALLREDUCE NumelIn=8",
    "TCPStore.cpp:106 recvValue failed on SocketImpl remote closed",
    "gloo/transport/tcp/pair.cc:534 Connection closed by peer",
]
FILTERS = (
    Filters(),
    Filters(backends=("NCCL",), since="2021"),
    Filters(causes=("cause-1", "cause-2"), exclude_ids=("e003", "e008"), until="2023-06"),
)


def ranked_entries(count: int = 60) -> list[Entry]:
    """Entries of one to three chunks of different lengths; every third has a log line."""
    chance = random.Random(7)
    return [
        make_entry(
            f"e{number:03}",
            *(
                " ".join(chance.choices([*WORDS, "梯度", "网络"], k=chance.randint(4, 30)))
                for _ in range(chance.randint(1, 3))
            ),
            project=f"owner/{WORDS[number % 7]}",
            date=f"20{18 + number % 8}-{1 + number % 12:02}-11",
            causes=(CauseClaim(id=f"cause-{number % 4}", status="reported"),),
            tags=Tags(backend=("nccl", "NCCL", "gloo")[number % 3], ops=("ALLREDUCE",)),
            signature=(LINES[number % len(LINES)], f"worker{number}.py:{number} failed")
            if number % 3 == 0
            else (),
        )
        for number in range(count)
    ]


def questions() -> list[str]:
    """Short and long questions, some with log lines, one nobody has a word of."""
    chance = random.Random(8)
    made = [" ".join(chance.choices(WORDS, k=size)) for size in (1, 2, 3, 5, 8, 12)]
    return [*made, *(f"{made[2]}\n{line}" for line in LINES), "worker9.py:9 failed", "sourdough"]
