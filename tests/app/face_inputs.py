"""Texts and sets of files every face is asked, and a watchdog line to make more of."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path

from kb.evidence.capture import (
    SCHEMA,
    CapturedHost,
    CaptureFile,
    CaptureManifest,
    write_capture,
)
from tests.kb.evidence.flight_recorder.test_analysis import FIRST, dump, entry
from tests.kb.evidence.test_ras import DEAD
from tests.kb.evidence.test_stacks import PLACES, elsewhere, waiting

ROOT = Path(__file__).parents[2]

WATCHDOG = (
    "[rank{rank}]:[E ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={numel}, "
    "Timeout(ms)=600000) ran for 600029 milliseconds before timing out.\n"
)
INPUTS = {
    "oom": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    + WATCHDOG.format(rank=1, seq=14217, op="ALLREDUCE", numel=1),
    "watchdog-only": WATCHDOG.format(rank=0, seq=5, op="ALLREDUCE", numel=1),
    "mismatch": WATCHDOG.format(rank=0, seq=9, op="ALLREDUCE", numel=64)
    + WATCHDOG.format(rank=1, seq=9, op="BROADCAST", numel=8),
    "disk": "OSError: [Errno 28] No space left on device\n"
    + WATCHDOG.format(rank=3, seq=100, op="_ALLGATHER_BASE", numel=4096),
    "en-question": "training hangs at the end of every epoch, the last batch differs between ranks",
    "zh-question": "训练到一半卡住，所有卡利用率 100%，日志里只有 NCCL 超时，换小数据集就没事",
    "zh-log": "保存检查点的时候报错，NCCL 超时，下面是日志\n"
    + WATCHDOG.format(rank=0, seq=77, op="ALLREDUCE", numel=1),
    "network": "NCCL WARN NET/IB : Got completion from peer with error 12, vendor err 129\n"
    + WATCHDOG.format(rank=2, seq=3000, op="ALLREDUCE", numel=1048576),
    "store": "torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. "
    "1/2 clients joined.\n",
    "fine": "epoch 1 done, accuracy 0.9\n",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSet:
    """Files of one run by name, `logs` of them logs, and dumps that are said to be dumps."""

    files: dict[str, bytes]
    logs: int = 1
    dumps: dict[str, bytes] = field(default_factory=dict)


def _example(name: str) -> bytes:
    return (ROOT / "data" / "examples" / name).read_bytes()


BEHIND = _example("rank-behind.log")
FALLEN = (
    b"[84512.391845] NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.\n"
    b"[84512.391999] NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.\n"
)
STACKS = {f"stack_rank_{rank}.txt": waiting(rank).encode() for rank in (0, 2, 3)} | {
    "stack_rank_1.txt": elsewhere(1, PLACES["data"]).encode()
}
RECORDER = {
    f"nccl_trace_rank_{rank}": json.dumps(
        dump([*FIRST, *([] if rank == 1 else [entry(2, 3)])])
    ).encode()
    for rank in range(4)
}
ERROR_FILE = json.dumps(
    {
        "message": {
            "message": "KeyError: 'image'",
            "extraInfo": {"py_callstack": "Traceback", "timestamp": "1700000000"},
        }
    }
).encode()
CAPTURE = write_capture(
    CaptureManifest(
        schema=SCHEMA,
        taken_at="2026-01-02T03:04:05+00:00",
        job="7",
        hosts=(CapturedHost(name="n1", ranks=(0, 1, 2, 3), processes=4),),
        files=(
            CaptureFile(name="n1/job.log", kind="log"),
            CaptureFile(name="n1/processes.txt", kind="context"),
            *(CaptureFile(name=f"n1/stacks/{name}", kind="evidence") for name in STACKS),
        ),
    ),
    [BEHIND, b"CUDA out of memory: read by people alone\n", *STACKS.values()],
)
FILE_SETS = {
    "capture": FileSet(files={"capture.tar.zst": CAPTURE}),
    "capture-and-kernel": FileSet(files={"capture.tar.zst": CAPTURE, "dmesg.txt": FALLEN}),
    "log-and-kernel": FileSet(files={"rank-behind.log": BEHIND, "dmesg.txt": FALLEN}),
    "kernel-packed": FileSet(
        files={"rank-behind.log": BEHIND, "dmesg.txt.gz": gzip.compress(FALLEN)}
    ),
    "kernel-alone": FileSet(files={"kern.log": FALLEN}),
    "kernel-as-dump": FileSet(files={"rank-behind.log": BEHIND}, dumps={"dmesg.txt": FALLEN}),
    "log-and-stacks": FileSet(files={"rank-behind.log": BEHIND, **STACKS}),
    "stacks-as-dumps": FileSet(files={"rank-behind.log": BEHIND}, dumps=STACKS),
    "log-and-recorder": FileSet(files={"rank-behind.log": BEHIND, **RECORDER}),
    "recorder-as-dumps": FileSet(files={"rank-behind.log": BEHIND}, dumps=RECORDER),
    "recorder-alone": FileSet(files=RECORDER),
    "report-and-error-file": FileSet(
        files={"rank-behind.log": BEHIND, "ras.txt": DEAD.encode(), "error_2.json": ERROR_FILE}
    ),
    "log-with-kernel-lines": FileSet(
        files={"job.log": BEHIND + FALLEN, "words.txt": _example("words-only.txt")}, logs=2
    ),
    "chinese": FileSet(
        files={"ascend-link-setup.log": _example("ascend-link-setup.log"), "dmesg": FALLEN}
    ),
    "two-logs": FileSet(
        files={
            "rank0.log": WATCHDOG.format(rank=0, seq=9, op="ALLREDUCE", numel=64).encode(),
            "rank1.log": INPUTS["oom"].encode(),
        },
        logs=2,
    ),
}
