"""The five systems the project began with: each error, in both languages, finds its own case."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kb.bootstrap import open_service
from kb.service import Service
from kb.settings import Settings

# Case, cause and what a user of the project would type.
QUERIES = [
    (
        "open-clip-behind-rank-at-eval",
        "rank0-long-work",
        (
            "open_clip multi-GPU training, after zero-shot evaluation at the end of the "
            "epoch some ranks die: Watchdog caught collective operation timeout: "
            "WorkNCCL(SeqNum=14217, OpType=ALLGATHER, NumelIn=65536, NumelOut=524288, "
            "Timeout(ms)=600000)"
        ),
    ),
    (
        "open-clip-behind-rank-at-eval",
        "rank0-long-work",
        (
            "用 OpenCLIP 多卡训练，测试集快跑完时多个 rank 报 A"
            "LLGATHER 超时 600000 毫秒，进程全部退出"
        ),
    ),
    (
        "llama-recipes-unseeded-split",
        "uneven-data",
        (
            "llama-recipes finetuning with torchrun on 4 A10G, crashes at the end of the "
            "epoch when saving the model: WorkNCCL(SeqNum=1474236, "
            "OpType=_ALLGATHER_BASE, NumelIn=262675456, NumelOut=1050701824, "
            "Timeout(ms)=600000). I use a custom dataset split with train_test_split"
        ),
    ),
    (
        "llama-recipes-unseeded-split",
        "uneven-data",
        (
            "llama-recipes 多卡微调，自定义数据集用 train_t"
            "est_split 划分，训练结束保存模型时 NCCL 超时 _AL"
            "LGATHER_BASE Timeout(ms)=600000"
        ),
    ),
    (
        "wenet-dataloader-contention",
        "data-loading-stall",
        (
            "wenet training on 4 machines with 16 V100: NCCL watchdog ALLREDUCE timeout "
            "after 30 minutes, 8 GPUs are fine, num_workers 4 prefetch 250, NET/Socket "
            "is used"
        ),
    ),
    (
        "wenet-dataloader-contention",
        "data-loading-stall",
        ("wenet 四机 16 卡训练半小时后 ALLREDUCE 超时，8 卡正常，num_workers=4 prefetch=250"),
    ),
    (
        "torchtitan-rank0-logging-io",
        "rank0-long-work",
        (
            "torchtitan FSDP2: step time grows after step 1800 on all ranks but rank 0, "
            "then _allgather_base times out after 100 seconds; rank 0 writes tensorboard "
            "logs"
        ),
    ),
    (
        "torchtitan-rank0-logging-io",
        "rank0-long-work",
        (
            "torchtitan FSDP2 训练 1800 步之后每步时间变长"
            "，_ALLGATHER_BASE 100 秒超时，rank 0 负责"
            "写日志"
        ),
    ),
    (
        "vlm-r1-allgather-stalled-rank",
        "compute-skew",
        (
            "VLM-R1 GRPO training on A100 dies: Watchdog caught collective operation "
            "timeout: WorkNCCL(OpType=_ALLGATHER_BASE, NumelIn=8, NumelOut=32, "
            "Timeout(ms)=1800000), num_generations 8"
        ),
    ),
    (
        "vlm-r1-allgather-stalled-rank",
        "compute-skew",
        (
            "VLM-R1 用 GRPO 训练中断，_ALLGATHER_BASE"
            " NumelIn=8 NumelOut=32 超时 1800000，"
            "各卡生成长度不一样"
        ),
    ),
]


@pytest.fixture(scope="module")
def service(built_home: Callable[[], Path]) -> Iterator[Service]:
    """The real service over the shipped data."""
    opened = open_service(Settings(home=built_home()))
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("case", "cause", "query"), QUERIES, ids=[f"{c}-{i % 2}" for i, (c, _, _) in enumerate(QUERIES)]
)
def test_a_seed_system_finds_its_own_case_and_cause(
    case: str, cause: str, query: str, service: Service
) -> None:
    """Typed as a user of the project would: its own case first, the corrected cause first."""
    diagnosis = service.diagnose_text(query)
    assert diagnosis.cases[0].id == case
    assert diagnosis.causes[0].id == cause
    assert diagnosis.status == "diagnosed"
