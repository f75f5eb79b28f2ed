"""What scripts, settings and code of a paste do to a diagnosis: faults count, names don't."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.service import Service
from kb.types.answer import Diagnosis

HERE = Path(__file__).parent
SCRIPTS = sorted(HERE.glob("settings_check/scripts/*"))
CODE = sorted(HERE.glob("evidence/training_scripts/*"))
WATCHDOG = (
    "[rank0]:[E ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=2, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, Timeout(ms)=600000) "
    "ran for 600012 milliseconds before timing out.\n"
)
OOM = (
    "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a "
    "total capacity of 79.15 GiB of which 1.20 GiB is free.\n"
)
ADDED = 0.02  # of probability; what tells nothing may move a cause by rounding

# Settings or code before the watchdog's line, and the cause that they show.
SHOWN = {
    "loopback": (
        "export MASTER_ADDR=localhost\ntorchrun --nnodes 2 --nproc_per_node 8 t.py\n",
        "rendezvous",
    ),
    "one-node": (
        "srun torchrun --nnodes 2 --nproc_per_node 8 t.py\nINFO world size: 8\n",
        "rendezvous",
    ),
    "interface": ("export NCCL_SOCKET_IFNAME=lo\ntorchrun --nnodes 2 t.py\n", "network-config"),
    "devices": ("CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc_per_node 4 t.py\n", "device-mapping"),
    "gloo": ("export GLOO_SOCKET_IFNAME=^lo,docker0\ntorchrun --nnodes 2 t.py\n", "network-config"),
    "barrier": (
        "for e in range(9):\n    train(m)\n    if dist.get_rank() == 0:\n        dist.barrier()\n",
        "collective-mismatch",
    ),
    "order": (
        "import random\nrandom.shuffle(files)\nmine = files[rank::world_size]\n",
        "uneven-data",
    ),
    "no-device": (
        "import torch\ndist.init_process_group('nccl')\nmodel = DDP(Net().cuda())\n",
        "device-mapping",
    ),
}


def probabilities(diagnosis: Diagnosis) -> dict[str, float]:
    """Probability by cause."""
    return {cause.id: cause.probability for cause in diagnosis.causes}


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_wrong_is_the_first_cause_with_its_line(shipped: Service, name: str) -> None:
    """A contradiction or a fault of the code comes first, and its line is quoted as evidence."""
    text, cause = SHOWN[name]
    diagnosis = shipped.diagnose_text(text + WATCHDOG)
    assert diagnosis.causes[0].id == cause
    quoted = {item.quote for item in diagnosis.causes[0].evidence if item.weight > 1}
    assert quoted & {line.strip() for line in text.splitlines()}


@pytest.mark.parametrize("log", [WATCHDOG, OOM + WATCHDOG], ids=["timeout", "oom"])
@pytest.mark.parametrize("added", [*SCRIPTS, *CODE], ids=lambda path: path.name)
def test_what_is_in_order_changes_nothing(shipped: Service, added: Path, log: str) -> None:
    """A healthy script, environment, configuration or training loop moves no cause."""
    alone = probabilities(shipped.diagnose_text(log, top=19))
    text = f"{added.read_text(encoding='utf-8')}\n{log}"
    beside = shipped.diagnose_text(text, top=19)
    moved = {
        cause: round(value - alone[cause], 3)
        for cause, value in probabilities(beside).items()
        if abs(value - alone[cause]) > ADDED
    }
    assert moved == {}
    assert [item for item in beside.warnings if item.verdict != "no_effect"] == []
