"""Ten inputs every face is asked, and a watchdog line to make more of."""

from __future__ import annotations

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
