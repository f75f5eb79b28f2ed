"""Many different 200-line logs, as people paste them: what a server under load is asked with.

Each has the output of a training or serving program, then one of a dozen incidents; half begin
with a sentence of a person. Numbers, hosts, ranks and sizes differ, so no two logs are the same.
"""

# ruff: noqa: E501 - log lines stand as software prints them

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

LINES = 200
SAID = (
    "Training hangs after {n} steps on {w} GPUs, all GPUs show 100 % utilisation.",
    "{w} 卡训练跑到第 {n} 步就卡住，GPU 利用率 100%，过一会报超时。",
    "After resuming from the checkpoint one node stops answering, then everything times out.",
    "换了一台机器之后多机训练起不来，单机没有问题，日志如下：",
    "The job dies every night while saving a checkpoint of {n} GB to NFS.",
    "vLLM 服务跑 {n} 个请求之后挂死，重启就好。",
)
OPS = ("ALLREDUCE", "_ALLGATHER_BASE", "BROADCAST", "_REDUCE_SCATTER_BASE", "ALLTOALL_BASE", "SEND")


def _clock(rng: random.Random) -> str:
    return f"{rng.randrange(24):02d}:{rng.randrange(60):02d}:{rng.randrange(60):02d}"


def _steps(rng: random.Random, rank: int) -> Iterator[str]:
    """Step lines of a trainer."""
    step = rng.randrange(100_000)
    while True:
        step += 1
        yield (
            f"[default{rng.randrange(8)}]:2025-06-{rng.randrange(1, 29):02d} {_clock(rng)},{rng.randrange(1000):03d} INFO trainer.py:412] rank {rank} "
            f"step {step} loss {2 + rng.random():.4f} lr 1.0e-05 grad_norm {rng.random():.3f} tokens/s {rng.randrange(9000, 9999)}"
        )


def _bars(rng: random.Random, rank: int) -> Iterator[str]:
    """A progress bar and warnings of libraries."""
    done = rng.randrange(2000)
    while True:
        done += 1
        yield f"{done % 100:3d}%|{'█' * (done % 10)}| {done}/20000 [{_clock(rng)}<{_clock(rng)}, {rng.random():.2f}s/it]"
        if not done % 9:
            yield f"{{'loss': {rng.random():.4f}, 'grad_norm': {rng.random():.3f}, 'learning_rate': 1e-05, 'epoch': {done / 2000:.2f}}}"
        if not done % 31:
            yield f"/opt/conda/lib/python3.11/site-packages/torch/utils/checkpoint.py:{80 + rank}: FutureWarning: torch.cpu.amp.autocast(args...) is deprecated. Please use torch.amp.autocast('cpu', args...) instead."


def _start(rng: random.Random, rank: int) -> Iterator[str]:
    """What NCCL prints while a job comes up."""
    pid = rng.randrange(1000, 60_000)
    while True:
        node, device = rng.randrange(4), rng.randrange(8)
        front = f"node{node}:{pid + device}:{pid + 100 + device} [{device}] NCCL INFO"
        yield f"{front} Channel {rng.randrange(16):02d}/0 : {rank}[{device}] -> {rng.randrange(32)}[{rng.randrange(8)}] [send] via NET/IB/{device}/GDRDMA"
        yield f"{front} NCCL_IB_TIMEOUT set by environment to {rng.randrange(18, 23)}."
        yield f"{front} NET/IB : Using [0]mlx5_{device}:1/RoCE [RO]; OOB eth0:10.0.0.{node}<0>"


def _serving(rng: random.Random, _rank: int) -> Iterator[str]:
    """Lines of an inference server."""
    while True:
        yield f"INFO 06-{rng.randrange(1, 29):02d} {_clock(rng)} [loggers.py:116] Engine 000: Avg prompt throughput: {rng.random() * 900:.1f} tokens/s, Avg generation throughput: {rng.random() * 90:.1f} tokens/s, Running: {rng.randrange(40)} reqs, Waiting: 0 reqs"
        yield f'INFO:     10.0.0.{rng.randrange(250)}:{rng.randrange(1024, 65000)} - "POST /v1/chat/completions HTTP/1.1" 200 OK'


def _watchdog(rng: random.Random, ranks: list[int], seq: int, op: str) -> Iterator[str]:
    """Timeout reports of waiting ranks."""
    numel, limit = rng.choice((1, 512, 65_536, 25_165_824)), rng.choice((600_000, 1_800_000))
    for rank in ranks:
        front = f"[rank{rank}]:[E617 {_clock(rng)}.{519_000_000 + rank} ProcessGroupNCCL.cpp"
        yield f"{front}:629] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn={numel}, NumelOut={numel * 4}, Timeout(ms)={limit}) ran for {limit + rng.randrange(999)} milliseconds before timing out."
        yield f"{front}:2168] [PG ID 0 PG GUID 0(default_pg) Rank {rank}]  failure detected by watchdog at work sequence id: {seq} PG status: last enqueued work: {seq + rng.randrange(3)}, last completed work: {seq - 1}"
        yield f"{front}:681] [Rank {rank}] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data."


def _out_of_memory(rng: random.Random, world: int) -> Iterator[str]:
    """One rank runs out of memory, the others wait."""
    bad = rng.randrange(world)
    yield f"[rank{bad}]: Traceback (most recent call last):"
    yield f'[rank{bad}]:   File "/workspace/train.py", line {rng.randrange(900)}, in train_step'
    yield f"[rank{bad}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {rng.random() * 9:.2f} GiB. GPU {bad % 8} has a total capacity of 79.15 GiB of which {rng.random():.2f} GiB is free."
    others = [rank for rank in range(world) if rank != bad]
    yield from _watchdog(rng, others, rng.randrange(9, 90_000), rng.choice(OPS))


def _silent_rank(rng: random.Random, world: int) -> Iterator[str]:
    """All report but one, which says nothing."""
    quiet = rng.randrange(world)
    others = [rank for rank in range(world) if rank != quiet]
    yield from _watchdog(rng, others, rng.randrange(9, 90_000), rng.choice(OPS))


def _loader(rng: random.Random, world: int) -> Iterator[str]:
    """A data loader's worker is killed."""
    bad = rng.randrange(world)
    yield f"[rank{bad}]: RuntimeError: DataLoader worker (pid {rng.randrange(99_999)}) is killed by signal: Killed."
    yield from _watchdog(rng, [r for r in range(world) if r != bad], rng.randrange(9, 9999), OPS[0])


def _mismatch(rng: random.Random, world: int) -> Iterator[str]:
    """Ranks wait in different collectives."""
    seq = rng.randrange(9, 9999)
    half = world // 2
    yield from _watchdog(rng, list(range(half)), seq, "ALLREDUCE")
    yield from _watchdog(rng, list(range(half, world)), seq, "_ALLGATHER_BASE")


def _gloo(rng: random.Random, world: int) -> Iterator[str]:
    """Gloo cannot connect its full mesh."""
    for rank in range(world):
        yield f"[rank{rank}]: Traceback (most recent call last):"
        yield f'[rank{rank}]:   File "/opt/conda/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line {rng.randrange(1000, 2000)}, in new_group'
        yield f"[rank{rank}]: RuntimeError: Gloo connectFullMesh failed with [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:{rng.randrange(900)}] connect [127.0.0.1]:{rng.randrange(60_000)}: Connection refused"


def _store(rng: random.Random, world: int) -> Iterator[str]:
    """Clients never reach the store."""
    for rank in range(world):
        yield f"[W617 {_clock(rng)}.{rng.randrange(999_999_999)} socket.cpp:752] [c10d] The client socket has failed to connect to [node-0.cluster.local]:{rng.randrange(20_000, 30_000)} (errno: 110 - Connection timed out)."
        yield f"[rank{rank}]: torch.distributed.DistStoreError: Timed out after {rng.choice((601, 1801))} seconds waiting for clients. {rng.randrange(1, world)}/{world} clients joined."


def _hccl(rng: random.Random, world: int) -> Iterator[str]:
    """An Ascend job waits for a notify."""
    for rank in range(world):
        yield f"[ERROR] HCCL({rng.randrange(99_999)},python):2025-06-17-{_clock(rng)}.123.456 [task_exception_handler.cc:{rng.randrange(900)}][{rng.randrange(99_999)}][TaskExceptionHandler][Callback]Task run failed, base information is streamID:[{rng.randrange(40)}], taskID[{rng.randrange(999)}], taskType[Notify Wait], tag[AllReduce_10.0.0.{rank}]"
        yield f"EI0002: 2025-06-17-{_clock(rng)} The wait execution of the Notify register times out. Reason: The Notify register has not received the Notify record from remote rank [{rng.randrange(world)}].base information: [streamID:[{rng.randrange(40)}], taskID[{rng.randrange(999)}], taskType[Notify Wait], tag[AllReduce_10.0.0.{rank}]]"


def _fabric(rng: random.Random, world: int) -> Iterator[str]:
    """A port of the fabric goes down."""
    node, device = rng.randrange(4), rng.randrange(8)
    yield f"node{node}:{rng.randrange(9999)}:{rng.randrange(9999)} [{device}] NCCL WARN NET/IB : Got completion from peer 10.0.0.{node}<{rng.randrange(60_000)}> with status=12 opcode=0 len=0 vendor err 129 (Recv) localGid fe80::1 remoteGids fe80::2 hca mlx5_{device}"
    yield f"node{node}:{rng.randrange(9999)}:{rng.randrange(9999)} [{device}] NCCL INFO transport/net.cc:{rng.randrange(1500)} -> 6"
    yield from _watchdog(rng, list(range(world)), rng.randrange(9, 9999), rng.choice(OPS))


def _serving_hang(rng: random.Random, world: int) -> Iterator[str]:
    """Workers of an inference server stop answering."""
    for _ in range(6):
        yield f"INFO 06-17 {_clock(rng)} [shm_broadcast.py:466] No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging."
    yield f"ERROR 06-17 {_clock(rng)} [core.py:588] TimeoutError: RPC call to execute_model timed out."
    yield from _watchdog(rng, list(range(min(world, 4))), rng.randrange(9, 9999), "_ALLGATHER_BASE")


def _killed(rng: random.Random, world: int) -> Iterator[str]:
    """The launcher's table of failures."""
    bad = rng.randrange(world)
    yield from _watchdog(
        rng, [r for r in range(world) if r != bad][:4], rng.randrange(9999), OPS[0]
    )
    yield f"E0617 {_clock(rng)}.123000 140000000000000 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) local_rank: {bad % 8} (pid: {rng.randrange(99_999)}) of binary: /opt/conda/bin/python"
    yield "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:"
    yield "Root Cause (first observed failure):"
    yield "[0]:"
    yield f"  time      : 2025-06-17_{_clock(rng)}"
    yield f"  host      : node-{rng.randrange(9)}.cluster.local"
    yield f"  rank      : {bad} (local_rank: {bad % 8})"
    yield f"  exitcode  : -9 (pid: {rng.randrange(99_999)})"
    yield f"  traceback : Signal 9 (SIGKILL) received by PID {rng.randrange(99_999)}"


def _saving(rng: random.Random, world: int) -> Iterator[str]:
    """A checkpoint takes longer than the limit."""
    yield f"[default0]:2025-06-17 {_clock(rng)} INFO saving checkpoint at iteration {rng.randrange(99_999)} to /ckpt in torch_dist format"
    yield from _watchdog(rng, list(range(1, world)), rng.randrange(9, 9999), "ALLREDUCE")


def _healthy(rng: random.Random, _world: int) -> Iterator[str]:
    """An exception that is no timeout."""
    yield "Traceback (most recent call last):"
    yield f'  File "train.py", line {rng.randrange(900)}, in <module>'
    yield f"KeyError: 'layer{rng.randrange(99)}'"


BODIES: tuple[Callable[[random.Random, int], Iterator[str]], ...] = (
    _steps,
    _bars,
    _start,
    _serving,
)
INCIDENTS: tuple[Callable[[random.Random, int], Iterator[str]], ...] = (
    _out_of_memory,
    _silent_rank,
    _loader,
    _mismatch,
    _gloo,
    _store,
    _hccl,
    _fabric,
    _serving_hang,
    _killed,
    _saving,
    _healthy,
)


def short_logs(count: int, *, seed: int = 7) -> list[str]:
    """`count` different logs of 200 lines each, the same ones for the same seed."""
    return [short_log(number, seed=seed) for number in range(count)]


def short_log(number: int, *, seed: int = 7, length: int = LINES) -> str:
    """The log of a number, `length` lines long; the incident is in the last ones."""
    rng = random.Random(f"{seed}:{number}")
    world = rng.choice((4, 8, 16, 32))
    lines = [rng.choice(SAID).format(n=rng.randrange(2, 5000), w=world)] * (number % 2)
    end = list(INCIDENTS[number % len(INCIDENTS)](rng, world))[: length - 20]
    body = rng.choice(BODIES)(rng, rng.randrange(world))
    lines += [next(body) for _ in range(length - len(lines) - len(end))]
    return "\n".join(lines + end) + "\n"
