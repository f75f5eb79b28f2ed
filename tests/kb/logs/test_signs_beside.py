"""What stands beside the timeouts and decides: read from logs, with a near miss of each."""

from __future__ import annotations

import pytest

from kb.service import Service
from kb.types.vocabulary import Polarity

WAIT = (
    "[rank1]:[E1120 03:14:01.1 ProcessGroupNCCL.cpp:632] [Rank 1] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=5121, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
    "Timeout(ms)=600000) ran for 600031 milliseconds before timing out.\n"
)


def seen(shipped: Service, text: str) -> set[str]:
    """The names of the facts of a log."""
    return {
        signal.name
        for signal in shipped.engine.observations(shipped.read_text(text))
        if signal.polarity is Polarity.TROUBLE
    }


@pytest.mark.parametrize(
    ("fact", "there", "missing"),
    [
        pytest.param(
            "fact:program_error_before_timeout",
            "[default0]:KeyError: 'labels'\n" + WAIT,
            "[default0]:RuntimeError: labels\n" + WAIT,
            id="program-error",
        ),
        pytest.param(
            "fact:bar_as_long_as_the_wait",
            "gsm8k:  29%|##9       | 385/1319 [09:58<24:11,  1.55s/it]\n" + WAIT,
            "gsm8k:  29%|##9       | 385/1319 [01:58<24:11,  1.55s/it]\n" + WAIT,
            id="running-bar",
        ),
        pytest.param(
            "fact:bar_as_long_as_the_wait",
            "gsm8k:  99%|######### | 1318/1319 [09:58<00:01,  1.55s/it]\n" + WAIT,
            "gsm8k: 100%|##########| 1319/1319 [09:58<00:00,  1.55s/it]\n" + WAIT,
            id="bar-that-is-full",
        ),
        pytest.param(
            "fact:nccl_versions_differ",
            "[1,0]<stdout>:NCCL version 2.18.6+cuda12.1\n"
            "[1,8]<stdout>:NCCL version 2.22.3+cuda12.4\n" + WAIT,
            "[1,0]<stdout>:NCCL version 2.22.3+cuda12.4\n"
            "[1,8]<stdout>:NCCL version 2.22.3+cuda12.4\n" + WAIT,
            id="versions",
        ),
        pytest.param(
            "fact:networks_differ",
            "gpu-14: gpu-14:3300:3391 [2] NCCL INFO Using network IB\n"
            "gpu-15: gpu-15:2817:2902 [2] NCCL INFO Using network Socket\n" + WAIT,
            "gpu-14: gpu-14:3300:3391 [2] NCCL INFO Using network IB\n"
            "gpu-15: gpu-15:2817:2902 [2] NCCL INFO Using network IB\n" + WAIT,
            id="networks",
        ),
        pytest.param(
            "fact:networks_differ",
            "[rank0]: n1:97:221 [0] NCCL INFO Using network IB\n"
            "[rank8]: n2:97:221 [0] NCCL INFO Using network Socket\n" + WAIT,
            "[rank0]: n1:97:221 [0] NCCL INFO Channel 00 : 0[1000] -> 1[2000] via P2P/IPC\n"
            "[rank2]: n1:99:223 [2] NCCL INFO Channel 00 : 2[3000] -> 3[4000] via SHM/direct\n"
            + WAIT,
            id="channels-are-no-networks",
        ),
        pytest.param(
            "fact:mismatch_of_sizes",
            WAIT + WAIT.replace("ank1", "ank0").replace("Rank 1", "Rank 0").replace("In=1", "In=2"),
            WAIT + WAIT.replace("ank1", "ank0").replace("Rank 1", "Rank 0"),
            id="sizes",
        ),
    ],
)
def test_a_sign_is_seen_where_it_is(shipped: Service, fact: str, there: str, missing: str) -> None:
    """And not in a log that differs in that alone."""
    assert fact in seen(shipped, there)
    assert fact not in seen(shipped, missing)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("[rank3]: RuntimeError: Rank 3 exhausted all inputs.\n", "uneven-data"),
        ("[rank2]: RuntimeError: DataLoader timed out after 300 seconds\n", "data-loading-stall"),
        (
            "[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
            "rank-crash",
        ),
        (
            " 3: ImportError: /v/torch/lib/libtorch_cuda.so: undefined symbol: ncclCommWindow\n",
            "software-version",
        ),
        ("4m51s Warning Evicted pod/m-2 The node was low on resource: memory.\n", "rank-crash"),
    ],
)
def test_a_specific_error_is_answered_without_a_timeout(
    shipped: Service, text: str, cause: str
) -> None:
    """A generic exception alone is not, nor an error of a program that is no rank."""
    answer = shipped.diagnose_text(text)
    assert answer.status == "diagnosed"
    assert answer.causes[0].id == cause
    for other in ("[rank3]: RuntimeError: no such flag\n", "OSError: [Errno 98] Address already\n"):
        assert shipped.diagnose_text(other).status == "no_timeout"
