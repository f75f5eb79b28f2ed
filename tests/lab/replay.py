"""Lab runs told again in the words of ProcessGroupNCCL, per torch version. Not real NCCL output.

``python -m tests.lab.replay DIR`` writes ``replayed/nccl-<torch version>.log`` into every run under
DIR that has flight-recorder dumps. What happened comes from the run (each rank's last operation,
who came, who died, what the program printed); only the wording of the timeout is NCCL's: that of
the named torch release, which prints numbers, prefixes and advice differently. A rank without a
dump, or ahead of what the others wait for, prints no timeout.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kb.errors import InputError
from kb.evidence.flight_recorder.dump_file import Dump, RecordedOperation, parse_dump

VERSIONS = ("1.13", "2.1", "2.3", "2.5", "2.8")
DEFAULT_TIMEOUT_MS = {"1.13": 1_800_000, "2.1": 1_800_000, "2.3": 600_000, "2.5": 600_000}
DEFAULT_TIMEOUT_NEW_MS = 600_000

_PREFIX = re.compile(r"^\[default(\d+)\]:")
_GLOO = re.compile(r"gloo|Timed out waiting \d+ms|monitoredBarrier|ProcessGroupGloo", re.IGNORECASE)
_OPS = {
    "all_reduce": "ALLREDUCE",
    "broadcast": "BROADCAST",
    "all_gather": "ALLGATHER",
    "barrier": "ALLREDUCE",
    "reduce_scatter": "REDUCE_SCATTER",
}
_CORRUPTED = (
    "Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels,"
    " subsequent GPU operations might run on corrupted/incomplete data."
)
_DOWN = "To avoid data inconsistency, we are taking the entire process down."


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A rank's last operation as the watchdog would report it."""

    rank: int
    seq: int
    op: str
    numel: int
    enqueued: int
    completed: int


def waits_of(dumps: Sequence[Dump]) -> list[Wait]:
    """Ranks that wait in their last operation; one that has not come to it waits for nothing."""
    last: dict[int, RecordedOperation] = {}
    for dump in dumps:
        collectives = [entry for entry in dump.entries if not entry.p2p]
        if collectives:
            last[dump.rank] = collectives[-1]
    furthest = max((entry.record for entry in last.values()), default=-1)
    return [
        Wait(
            rank=rank,
            seq=entry.seq,
            op=_OPS.get(entry.op, entry.op.upper()),
            numel=max(1, entry.numel_in),
            enqueued=entry.seq,
            completed=entry.seq - 1,
        )
        for rank, entry in sorted(last.items())
        if not entry.done or entry.record == furthest
    ]


def program_lines(log: str) -> list[str]:
    """What the program itself printed: no Gloo, no launcher, no traceback that ends in Gloo."""
    blocks: dict[str, list[str]] = {}
    kept: list[str] = []
    for raw in log.splitlines():
        match = _PREFIX.match(raw)
        if match is None:
            continue
        line = raw[match.end() :]
        block = blocks.setdefault(match[1], [])
        if "Traceback (most recent call last)" in line or block:
            block.append(line)
            ends = re.match(r"(?:\[rank\d+\]: )?[A-Za-z_.]+(?:Error|Exception|Interrupt)\b", line)
            if ends:
                kept += [] if _GLOO.search("\n".join(block[-1:])) else block
                blocks[match[1]] = []
        elif not _GLOO.search(line):
            kept.append(line)
    return kept


def launcher_lines(log: str, waiting: frozenset[int]) -> list[str]:
    """What torchrun says of a rank that died of its own: with NCCL it would say the same.

    Ranks that failed because Gloo noticed a lost peer would wait on with NCCL.
    """
    failed = re.search(r"^.*failed \(exitcode: -?\d+\) local_rank: (\d+).*$", log, re.MULTILINE)
    if failed is None or int(failed[1]) in waiting:
        return []
    cause = re.search(r"^Root Cause \(first observed failure\):\n(?:.*\n)*?=+$", log, re.MULTILINE)
    return [failed[0], *(cause[0].splitlines() if cause else [])]


def replay(log: str, dumps: Sequence[Dump], version: str) -> str:
    """The run as a job over NCCL with torch `version` would have printed it."""
    timeout = DEFAULT_TIMEOUT_MS.get(version, DEFAULT_TIMEOUT_NEW_MS)
    waits = waits_of(dumps)
    lines = program_lines(log)
    lines += launcher_lines(log, frozenset(wait.rank for wait in waits))
    for position, wait in enumerate(waits):
        lines += _watchdog(wait, version, timeout, timeout + 37 + 61 * position)
    return "\n".join(lines) + "\n"


def _work(wait: Wait, version: str, timeout_ms: int, ran_ms: int) -> str:
    numel = "" if version == "1.13" else f"NumelIn={wait.numel}, NumelOut={wait.numel}, "
    return (
        f"[Rank {wait.rank}] Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum={wait.seq}, OpType={wait.op}, {numel}Timeout(ms)={timeout_ms}) "
        f"ran for {ran_ms} milliseconds before timing out."
    )


def _watchdog(wait: Wait, version: str, timeout_ms: int, ran_ms: int) -> Iterator[str]:
    work = _work(wait, version, timeout_ms, ran_ms)
    progress = f"last enqueued NCCL work: {wait.enqueued}, last completed NCCL work: "
    group = f"[PG ID 0 PG GUID 0(default_pg) Rank {wait.rank}]"

    def line(number: int, text: str) -> str:
        clock = "" if version in ("1.13", "2.1", "2.3") else f"1120 11:38:48.{304215871 + ran_ms}"
        front = "" if version in ("1.13", "2.1") else f"[rank{wait.rank}]:"
        return f"{front}[E{clock} ProcessGroupNCCL.cpp:{number}] {text}"

    if version == "1.13":
        yield line(821, work)
        yield line(456, _CORRUPTED)
        yield line(461, _DOWN)
        yield "terminate called after throwing an instance of 'std::runtime_error'"
        yield f"  what():  {work}"
    elif version == "2.1":
        yield line(475, work)
        yield line(489, _CORRUPTED)
        yield line(495, _DOWN)
        yield line(
            916, f"[Rank {wait.rank}] NCCL watchdog thread terminated with exception: {work}"
        )
    elif version == "2.3":
        yield line(563, work)
        yield line(
            1537,
            f"[PG 0 Rank {wait.rank}] Timeout at NCCL work: {wait.seq}, "
            f"{progress}{wait.completed}.",
        )
        yield line(577, f"[Rank {wait.rank}] {_CORRUPTED}")
        yield line(583, f"[Rank {wait.rank}] {_DOWN}")
        ended = f"Process group watchdog thread terminated with exception: {work}"
        yield line(1414, f"[PG 0 Rank {wait.rank}] {ended}")
    elif version == "2.5":
        yield line(616, work)
        yield line(1834, f"{group} Timeout at NCCL work: {wait.seq}, {progress}{wait.completed}.")
        yield line(630, f"[Rank {wait.rank}] {_CORRUPTED}")
        yield line(636, f"[Rank {wait.rank}] {_DOWN}")
        yield line(1595, f"{group} Process group watchdog thread terminated with exception: {work}")
    else:
        yield line(684, work)
        yield line(
            2168,
            f"{group}  failure detected by watchdog at work sequence id: {wait.seq} PG status: "
            f"last enqueued work: {wait.enqueued}, last completed work: {wait.completed}",
        )
        yield line(698, f"[Rank {wait.rank}] {_CORRUPTED}")
        yield line(704, f"[Rank {wait.rank}] {_DOWN}")
        yield line(1921, f"{group} Process group watchdog thread terminated with exception: {work}")


def replay_run(folder: Path) -> list[Path]:
    """Write the replayed logs of one run; none when it left no dumps."""
    dumps = []
    for path in sorted((folder / "evidence" / "dumps").glob("nccl_trace_rank_*")):
        try:
            dumps.append(parse_dump(path.read_bytes(), name=path.name))
        except InputError as error:
            sys.stderr.write(f"{error}\n")
    if not dumps:
        return []
    log = (folder / "combined.log").read_text(encoding="utf-8", errors="replace")
    out = folder / "replayed"
    out.mkdir(exist_ok=True)
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    truth |= {"real": False, "backend": "nccl"}
    (out / "truth.json").write_text(json.dumps(truth, indent=1), encoding="utf-8")
    written = []
    for version in VERSIONS:
        path = out / f"nccl-{version}.log"
        path.write_text(replay(log, dumps, version), encoding="utf-8")
        written.append(path)
    return written


def main() -> int:
    """Replay all runs under a folder."""
    parser = argparse.ArgumentParser(description="Write lab runs in ProcessGroupNCCL's words.")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    for truth in sorted(options.folder.glob("*/truth.json")):
        written = replay_run(truth.parent)
        sys.stdout.write(f"{truth.parent.name}: {len(written)} logs\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
