"""Laws that hold for every log: chunks, line ends, the order of ranks, damage."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from kb.errors import InputError
from kb.knowledge.load import read_yaml
from kb.logs import LogReader
from kb.settings import shipped_data
from kb.types.incident import Fact, Incident
from kb.types.knowledge import Pattern
from tests.kb.logs.mutate import mutate

PATTERNS = read_yaml(shipped_data() / "patterns.yaml", tuple[Pattern, ...])
EXAMPLES = sorted({line for pattern in PATTERNS for line in pattern.examples})
SLOW = hypothesis_settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
FUZZ_INPUTS = 1500  # a million run in tests/bench/fuzz_reader.py


def report(rank: int, seq: int) -> list[str]:
    """What one rank prints when its watchdog fires."""
    front = f"[rank{rank}]:[E511 21:37:{rank % 60:02d}.1 ProcessGroupNCCL.cpp"
    work = (
        f"WorkNCCL(SeqNum={seq}, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) "
        f"ran for {600000 + rank} milliseconds before timing out."
    )
    status = (
        f"failure detected by watchdog at work sequence id: {seq} PG status: "
        f"last enqueued work: {seq}, last completed work: {seq - 1}"
    )
    return [
        f"{front}:629] [Rank {rank}] Watchdog caught collective operation timeout: {work}",
        f"{front}:2168] [PG ID 0 PG GUID 0(default_pg) Rank {rank}]  {status}",
    ]


def facts(incident: Incident) -> set[tuple[str, str]]:
    """Facts without the lines they stand on."""
    return {(fact.name, fact.detail) for fact in incident.facts}


LOGS = st.lists(st.sampled_from(EXAMPLES), min_size=1, max_size=25).map("\n".join)


@SLOW
@given(log=LOGS, sizes=st.lists(st.integers(1, 400), min_size=1, max_size=8))
def test_chunks_do_not_matter(reader: LogReader, log: str, sizes: list[int]) -> None:
    """A stream cut anywhere, even inside a character, reads like the whole."""
    data = log.encode()
    chunks: list[bytes] = []
    place = 0
    while place < len(data):
        size = sizes[len(chunks) % len(sizes)]
        chunks.append(data[place : place + size])
        place += size
    assert reader.read_stream(chunks) == reader.read_stream([data])


@SLOW
@given(log=LOGS)
def test_line_ends_do_not_matter(reader: LogReader, log: str) -> None:
    """The same log saved on Windows gives the same incident, but for its size in bytes."""
    unix = reader.read_text(log)
    dos = reader.read_text(log.replace("\n", "\r\n"))
    assert dos.incident.facts == unix.incident.facts
    assert dos.events == unix.events
    assert dos.incident.lines == unix.incident.lines


@SLOW
@given(order=st.permutations(range(8)), seed=st.integers(0, 2**32))
def test_order_of_ranks_does_not_matter(reader: LogReader, order: list[int], seed: int) -> None:
    """Ranks print in any order and in between each other; within a rank the order stays."""
    rng = random.Random(seed)
    queues = {rank: report(rank, 120) for rank in order if rank != 5}
    lines: list[str] = []
    while queues:
        rank = rng.choice(list(queues))
        lines.append(queues[rank].pop(0))
        if not queues[rank]:
            del queues[rank]
    plain = [line for rank in range(8) if rank != 5 for line in report(rank, 120)]
    shuffled = reader.read_text("\n".join(lines)).incident
    straight = reader.read_text("\n".join(plain)).incident
    assert facts(shuffled) == facts(straight)
    assert shuffled.ranks_reporting == straight.ranks_reporting == (0, 1, 2, 3, 4, 6, 7)
    assert [c.rank for c in shuffled.culprit_ranks] == [5]


@SLOW
@given(cut=st.integers(0, 300), tail=st.integers(0, 300))
def test_truncated_ends_keep_what_stands_between(reader: LogReader, cut: int, tail: int) -> None:
    """Cutting inside lines in front of and behind the reports changes no fact."""
    before = "INFO trainer: epoch 3 of 10, everything fine so far\n" * 7
    after = "INFO launcher: waiting for processes to leave the pool\n" * 7
    middle = "\n".join(line for rank in range(4) for line in report(rank, 19))
    whole = f"{before}{middle}\n{after}"
    part = whole[min(cut, len(before)) : len(whole) - min(tail, len(after))]
    assert facts(reader.read_text(part).incident) == facts(reader.read_text(whole).incident)


def test_threads_share_a_reader(reader: LogReader) -> None:
    """Several threads reading at once get what each gets alone."""
    logs = ["\n".join(report(rank, rank * 10)) * 50 for rank in range(1, 9)]
    alone = [reader.read_text(log) for log in logs]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(reader.read_text, logs)) == alone


def test_filling_does_not_matter(reader: LogReader) -> None:
    """Megabytes of training output between the start and the failure change no fact."""
    start = "NCCL version 2.18.5+cuda12.2\nexport NCCL_P2P_DISABLE=1\n"
    end = "\n".join(line for rank in range(4) for line in report(rank, 190))
    filler = "".join(f"[default{n % 4}]:step {n} loss 2.1 lr 1e-5\n" for n in range(60_000))
    short = reader.read_text(start + filler[:2000] + end).incident
    long = reader.read_text(start + filler + end).incident
    assert facts(long) == facts(short)
    assert long.settings == short.settings == {"NCCL_P2P_DISABLE": "1"}
    assert long.stage == short.stage == "train"


def test_a_flood_is_counted_not_kept(reader: LogReader) -> None:
    """A hundred thousand equal failures stay a handful of events with the full count."""
    line = report(3, 19)[0]
    reading = reader.read_text("\n".join([line] * 100_000))
    mine = [event for event in reading.events if event.pattern_id == "nccl-work-timeout"]
    assert sum(event.count for event in mine) == 100_000
    assert len(reading.events) < 500
    assert reading.incident.lines == 100_000


@pytest.mark.parametrize(
    "piece",
    ["a", "a_", "a ", "(a_", "[a", "A=", "--a ", "1", "1:", "1%|", "-", ".", "a.", '"', "\\", "卡",
     "rank ", "[PG ", "WorkNCCL(", "OpType=", "'loss': ", "NCCL_A=", "Error: ", "step 1 ", "\r"],
)  # fmt: skip
def test_long_repeats_end(reader: LogReader, piece: str) -> None:
    """A line of one piece over and over is read: no expression goes back over what it read."""
    line = "(" + piece * (40_000 // len(piece)) + "!"
    assert reader.read_text(f"{line}\n{line[1:]}\n").incident.lines == 2


@pytest.mark.parametrize("seed", range(3))
def test_damaged_logs_never_break_the_reader(reader: LogReader, seed: int) -> None:
    """Mutated logs are read or refused with advice; quotes stay short and line numbers real."""
    rng = random.Random(seed)
    seeds = ["\n".join(rng.sample(EXAMPLES, 6)).encode() for _ in range(40)]
    refused = 0
    for _ in range(FUZZ_INPUTS // 3):
        data = mutate(rng, seeds)
        try:
            reading = reader.read_stream([data])
        except InputError:
            refused += 1
            continue
        lines = data.count(b"\n") + 1
        for item in (*reading.events, *reading.incident.facts):
            assert 0 <= item.line <= lines
            assert len(item.quote if isinstance(item, Fact) else item.text) <= 400
    assert refused < FUZZ_INPUTS // 10
