"""What settings contradict: a table a relation, and healthy scripts that contradict nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kb.knowledge.labels import Words
from kb.knowledge.load import Knowledge, load_knowledge
from kb.logs import LogReader
from kb.settings import shipped_data
from kb.settings_check import ContradictionFinder, lint, report_settings
from kb.settings_check.contradictions import RELATIONS
from kb.types.answer import SettingWarning

SCRIPTS = sorted((Path(__file__).parent / "scripts").iterdir())
TIMEOUT = (
    "[rank0]:[E ProcessGroupNCCL.cpp:607] [Rank 0] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for "
    "600012 milliseconds before timing out.\n"
)
BAR = "Map:  45%|████▌     | 4500/10000 [45:05<55:06, 1.65 examples/s]\n"
IP_ADDR = """\
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000
2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP group default qlen 1000
3: eth2: <BROADCAST,MULTICAST,UP> mtu 1500 qdisc mq state DOWN group default qlen 1000
"""


@pytest.fixture(scope="module")
def finder(knowledge: Knowledge) -> ContradictionFinder:
    """The shipped knowledge's finder."""
    return ContradictionFinder(knowledge)


@pytest.fixture(scope="session")
def knowledge() -> Knowledge:
    """The shipped knowledge."""
    return load_knowledge(shipped_data())


# Per text: the relation, the quoted line and the detail of each conflict; () for none.
LOOPBACK = "setting_loopback_master"
ONE_NODE = "setting_world_of_one_node"
TABLE: dict[str, tuple[tuple[str, int, str], ...]] = {
    # --- where to meet
    "export MASTER_ADDR=localhost\ntorchrun --nnodes 2 --nproc_per_node 8 t.py": (
        (LOOPBACK, 1, "MASTER_ADDR=localhost, --nnodes 2"),
    ),
    "#SBATCH --nodes=4\nexport MASTER_ADDR=127.0.0.1\nsrun python t.py": (
        (LOOPBACK, 2, "MASTER_ADDR=127.0.0.1, #SBATCH --nodes=4"),
    ),
    "#SBATCH -N 4\nMASTER_ADDR=127.0.0.1 srun python t.py": (
        (LOOPBACK, 2, "MASTER_ADDR=127.0.0.1, #SBATCH -N 4"),
    ),
    "torchrun --nnodes=2 --rdzv_endpoint=localhost:29500 t.py": (
        (LOOPBACK, 1, "--rdzv_endpoint localhost:29500, --nnodes 2"),
    ),
    "num_machines: 2\nmain_process_ip: 127.0.0.1": (
        (LOOPBACK, 2, "main_process_ip=127.0.0.1, num_machines=2"),
    ),
    "torchrun --nnodes 2 \\\n  --master_addr 127.0.0.1 \\\n  t.py": (
        (LOOPBACK, 2, "--master_addr 127.0.0.1, --nnodes 2"),
    ),
    "torchrun --nnodes 1 --master_addr 127.0.0.1 t.py": (),
    "torchrun --standalone --nproc_per_node 8 t.py\n#SBATCH --nodes=2": (),
    "MASTER_ADDR=${MASTER_ADDR:-localhost}\ntorchrun --nnodes 2 t.py": (),
    "# MASTER_ADDR=localhost\ntorchrun --nnodes 2 --master_addr 10.0.0.1 t.py": (),
    "MASTER_ADDR=localhost\ntorchrun --nnodes 2 --master_addr 10.0.0.1 t.py": (),
    "torchrun --nnodes 2 --master_addr 10.0.0.1 t.py": (),
    # --- how many
    "torchrun --nnodes 2 --node_rank 2 t.py": (
        ("setting_node_rank_outside", 1, "--node_rank 2, --nnodes 2"),
    ),
    "torchrun --nnodes 2 --node_rank 1 t.py": (),
    "torchrun --nnodes 1:4 --node_rank 2 t.py": (),
    "WORLD_SIZE=8\ntorchrun --nnodes 2 --nproc_per_node 8 t.py": (
        (ONE_NODE, 2, "--nnodes 2, WORLD_SIZE=8"),
    ),
    "WORLD_SIZE=12\ntorchrun --nnodes 2 --nproc_per_node 8 t.py": (
        ("setting_world_size_differs", 1, "WORLD_SIZE=12, --nnodes 2, 2 × 8"),
    ),
    "WORLD_SIZE=16\ntorchrun --nnodes 2 --nproc_per_node 8 t.py": (),
    "WORLD_SIZE=2\ntorchrun --nnodes $WORLD_SIZE --nproc_per_node 8 t.py": (),
    "#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=4\nexport WORLD_SIZE=4\nsrun python t.py": (
        (ONE_NODE, 1, "#SBATCH --nodes=2, WORLD_SIZE=4"),
    ),
    # --- interfaces
    "export NCCL_SOCKET_IFNAME=lo": (("setting_loopback_interface", 1, "NCCL_SOCKET_IFNAME=lo"),),
    "export GLOO_SOCKET_IFNAME=docker0\ntorchrun --nnodes 2 t.py": (
        ("setting_loopback_interface", 1, "GLOO_SOCKET_IFNAME=docker0"),
    ),
    "export NCCL_SOCKET_IFNAME=lo\ntorchrun --nnodes 1 t.py": (),
    "export NCCL_SOCKET_IFNAME=^lo,docker0": (),
    # --- devices
    "export CUDA_VISIBLE_DEVICES=0,1\ntorchrun --nproc_per_node 4 t.py": (
        ("setting_fewer_devices", 1, "CUDA_VISIBLE_DEVICES=0,1, --nproc_per_node 4"),
    ),
    "CUDA_VISIBLE_DEVICES=0,1 accelerate launch --num_processes 4 t.py": (
        ("setting_fewer_devices", 1, "CUDA_VISIBLE_DEVICES=0,1, --num_processes 4"),
    ),
    "docker run --gpus '\"device=0,1\"' img torchrun --nproc-per-node=4 t.py": (
        ("setting_fewer_devices", 1, "--gpus '\"device=0,1, --nproc-per-node 4"),
    ),
    "#SBATCH --gres=gpu:2\ntorchrun --nproc_per_node=4 t.py": (
        ("setting_fewer_devices", 1, "--gres=gpu:2, --nproc_per_node 4"),
    ),
    'args: ["--nproc_per_node", "8"]\nnvidia.com/gpu: 4': (
        ("setting_fewer_devices", 2, "nvidia.com/gpu: 4, --nproc_per_node 8"),
    ),
    "export CUDA_VISIBLE_DEVICES=0,1,2,3\ntorchrun --nproc_per_node 4 t.py": (),
    "CUDA_VISIBLE_DEVICES=0 python s.py\nCUDA_VISIBLE_DEVICES=1,2 torchrun --nproc_per_node=2": (),
    "export CUDA_VISIBLE_DEVICES=GPU-1a2b\ntorchrun --nproc_per_node 4 t.py": (),
    "accelerate launch --num_machines 2 --num_processes 16 t.py\n--gres=gpu:8": (),
    # --- two values
    "export NCCL_IB_HCA=mlx5_0\nexport NCCL_IB_HCA=mlx5_1": (
        ("setting_two_values", 1, "NCCL_IB_HCA=mlx5_0, NCCL_IB_HCA=mlx5_1"),
    ),
    "export NCCL_IB_HCA=mlx5_0\nexport NCCL_IB_HCA=mlx5_0": (),
    "if a; then\nexport NCCL_IB_HCA=mlx5_0\nelse\nexport NCCL_IB_HCA=mlx5_1\nfi": (),
    "NCCL_ALGO=Ring\ntorchrun --nnodes 1 a.py\nNCCL_ALGO=Tree\ntorchrun --nnodes 1 b.py": (),
    "we set NCCL_ALGO=Ring and later NCCL_ALGO=Tree": (),
    # --- two ranks
    "torchrun --nnodes 2 --node_rank 0 --master_addr 10.0.0.1 t\n"
    "torchrun --nnodes 2 --node_rank 1 --master_addr 10.0.0.2 t": (
        (
            "setting_differs_between_ranks",
            1,
            "--master_addr 10.0.0.1, --master_addr 10.0.0.2",
        ),
    ),
    "NCCL_ALGO=Ring torchrun --nnodes 2 --node_rank 0 t\n"
    "NCCL_ALGO=Tree torchrun --nnodes 2 --node_rank 1 t": (
        ("setting_differs_between_ranks", 1, "NCCL_ALGO=Ring, NCCL_ALGO=Tree"),
    ),
    "torchrun --nnodes 2 --node_rank 0 --master_port 29500 t\n"
    "torchrun --nnodes 2 --node_rank 1 --master_port 29501 t": (
        ("setting_differs_between_ranks", 1, "--master_port 29500, --master_port 29501"),
    ),
    "node 0\nNCCL_ALGO=Ring\nMASTER_ADDR=10.0.0.1\nnode 1\nNCCL_ALGO=Tree\nMASTER_ADDR=10.0.0.1": (
        ("setting_differs_between_ranks", 2, "NCCL_ALGO=Ring, NCCL_ALGO=Tree, node 0, node 1"),
    ),
    "me@gpu-1:~$ env\nMASTER_PORT=29500\nme@gpu-2:~$ env\nMASTER_PORT=29501": (
        (
            "setting_differs_between_ranks",
            2,
            "MASTER_PORT=29500, MASTER_PORT=29501, gpu-1, gpu-2",
        ),
    ),
    "node 0:\nNCCL_SOCKET_IFNAME=eth0\nnode 1:\nNCCL_SOCKET_IFNAME=ens5": (),
    "# head\nNCCL_SOCKET_IFNAME=eth0\n# worker\nNCCL_SOCKET_IFNAME=ens5": (),
    "torchrun --nnodes 2 --node_rank 0 --master_addr localhost t\n"
    "torchrun --nnodes 2 --node_rank 1 --master_addr 10.0.0.1 t": (),
}


@pytest.mark.parametrize("text", TABLE, ids=lambda text: text.replace("\n", " / ")[:70])
def test_a_text_alone(text: str, finder: ContradictionFinder) -> None:
    """Each text contradicts exactly what the table says, with the line quoted."""
    conflicts = finder.of_text(text)
    assert (
        tuple((item.contradiction.id, item.first.line, item.detail) for item in conflicts)
        == TABLE[text]
    )
    lines = text.split("\n")
    for item in conflicts:
        assert item.first.quote == lines[item.first.line - 1].strip()


# What a log shows beside the settings.
PASTES: dict[str, tuple[tuple[str, int], ...]] = {
    "torchrun --nnodes 2 --nproc_per_node 8 t.py\nINFO world size: 8\n": (
        ("setting_world_of_one_node", 1),
    ),
    "torchrun --nnodes 2 --nproc_per_node 8 t.py\nINFO world size: 16\n": (),
    "torchrun --nnodes 1 --nproc_per_node 8 t.py\nINFO world size: 8\n": (),
    "#SBATCH --gres=gpu:8\ntorchrun --nnodes 2 --nproc_per_node gpu t.py\nINFO world size: 8\n": (
        ("setting_world_of_one_node", 2),
    ),
    "[rank0]: MASTER_PORT=29500\n[rank1]: MASTER_PORT=29501\n": (
        ("setting_differs_between_ranks", 1),
    ),
    f"export NCCL_SOCKET_IFNAME=eth1\n{IP_ADDR}": (("setting_interface_absent", 1),),
    f"export NCCL_SOCKET_IFNAME=eth\n{IP_ADDR}": (),
    f"export NCCL_SOCKET_IFNAME==eth\n{IP_ADDR}": (("setting_interface_absent", 1),),
    f"export NCCL_SOCKET_IFNAME=eth2\n{IP_ADDR}": (("setting_interface_down", 1),),
    f"export NCCL_SOCKET_IFNAME=bond0,eth0\n{IP_ADDR}": (),
    "NCCL_SOCKET_IFNAME=eth1\neth0: flags=4163<UP,BROADCAST,RUNNING>  mtu 1500\n": (
        ("setting_interface_absent", 1),
    ),
    "NCCL_SOCKET_IFNAME=eth1\neth0      Link encap:Ethernet  HWaddr 02:42\n": (
        ("setting_interface_absent", 1),
    ),
    "NCCL_SOCKET_IFNAME=eth1\neth0             UP             10.0.0.4/24 fe80::1/64\n": (
        ("setting_interface_absent", 1),
    ),
    "NCCL_SOCKET_IFNAME=ib1\nmlx5_0 port 1 ==> ib0 (Up)\n": (("setting_interface_absent", 1),),
    "NCCL_SOCKET_IFNAME=eth0\nmlx5_0 port 1 ==> ib0 (Up)\n": (),
    "NCCL_SOCKET_IFNAME=ib0\nmlx5_0 port 1 ==> ib0 (Down)\n": (("setting_interface_down", 1),),
    "NCCL_IB_HCA=mlx5_4\nmlx5_0 port 1 ==> ib0 (Up)\nmlx5_1 port 1 ==> ib1 (Up)\n": (
        ("setting_rdma_device_absent", 1),
    ),
    "NCCL_IB_HCA==mlx5_1:1\nhca_id: mlx5_1\n": (),
    "NCCL_IB_HCA=mlx5\nCA 'mlx5_1'\n": (),
    "export NCCL_ALGO=Ring\nh1:10:10 [0] NCCL INFO NCCL_ALGO set by environment to Tree.\n": (
        ("setting_not_in_process", 1),
    ),
    "export NCCL_ALGO=Ring\nh1:10:10 [0] NCCL INFO NCCL_ALGO set by environment to Ring.\n": (),
    "node-1:10:10 [0] NCCL INFO NCCL_ALGO set by environment to Ring.\n"
    "node-2:10:10 [0] NCCL INFO NCCL_ALGO set by environment to Tree.\n": (
        ("setting_differs_between_ranks", 1),
    ),
    "node-1:10:10 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0.\n"
    "node-2:10:10 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to ens5.\n": (),
    f"torchrun t.py --ddp_timeout 1800\n{BAR}": (("setting_timeout_below_work", 1),),
    f"torchrun t.py --ddp_timeout 7200\n{BAR}": (),
    BAR: (("setting_timeout_below_work", 1),),
    "Map:  45%|████▌     | 4500/10000 [05:05<05:06, 14.7 examples/s]\n": (),
    "Evaluation took 700.5 s\n": (("setting_timeout_below_work", 1),),
    "Tokenizing finished in 35 minutes\n": (("setting_timeout_below_work", 1),),
    "Evaluation took 500 s\n": (),
    "  3%|▎         | 270/9847 [1:05:50<3:17:42,  1.24s/it]\n": (),
}


@pytest.mark.parametrize("text", PASTES, ids=lambda text: text.replace("\n", " / ")[:70])
def test_against_the_log(text: str, finder: ContradictionFinder, reader: LogReader) -> None:
    """What the log shows is held against the settings."""
    conflicts = finder.of_reading(reader.read_text(text + TIMEOUT))
    named = tuple((item.contradiction.id, item.first.line) for item in conflicts)
    assert named == PASTES[text]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_healthy_script_earns_no_warning(
    script: Path, finder: ContradictionFinder, reader: LogReader, knowledge: Knowledge
) -> None:
    """Launch scripts and environments in order contradict nothing and are counted as such."""
    text = script.read_text(encoding="utf-8")
    assert finder.of_text(text) == ()
    reading = reader.read_text(f"{text}\nThe job hangs in its first step.\n")
    report = report_settings(
        reading, knowledge.advice, (), torch="2.6", words=Words(knowledge.labels, "en")
    )
    assert report.warnings == ()


def test_enough_healthy_scripts() -> None:
    """Each launcher has one."""
    assert len(SCRIPTS) >= 12


def test_every_relation_is_in_the_data(knowledge: Knowledge) -> None:
    """Each entry of contradictions.yaml is made by a case of these tables, and nothing else is."""
    made = {row[0] for rows in TABLE.values() for row in rows}
    made |= {row[0] for rows in PASTES.values() for row in rows}
    assert made == {item.id for item in knowledge.contradictions}
    assert len(RELATIONS) >= 12


def test_one_box_for_a_contradiction(
    finder: ContradictionFinder, reader: LogReader, knowledge: Knowledge
) -> None:
    """A contradiction is one warning; what is only worth a note is folded, the rest counted."""
    text = (
        "export MASTER_ADDR=localhost\nexport NCCL_P2P_DISABLE=1\nexport NCCL_DEBUG=INFO\n"
        "export OMP_NUM_THREADS=8\ntorchrun --nnodes 2 --nproc_per_node 8 t.py\n" + TIMEOUT
    )
    reading = reader.read_text(text)
    report = report_settings(
        reading,
        knowledge.advice,
        finder.of_reading(reading),
        torch=None,
        words=Words(knowledge.labels, "en"),
    )
    assert [(item.setting, item.line) for item in report.warnings] == [("MASTER_ADDR=localhost", 1)]
    assert [item.setting for item in report.notes] == ["NCCL_P2P_DISABLE=1"]
    assert report.in_order == 2


def test_lint_tells_contradictions(finder: ContradictionFinder, knowledge: Knowledge) -> None:
    """The check of settings alone names contradictions beside what is true of each setting."""
    text = "export NCCL_SOCKET_IFNAME=lo\nexport NCCL_P2P_DISABLE=1"
    warnings: tuple[SettingWarning, ...] = lint(
        text,
        knowledge.advice,
        words=Words(knowledge.labels, "zh"),
        conflicts=finder.of_text(text),
    )
    assert [(item.line, item.verdict, item.replacement) for item in warnings] == [
        (1, "wrong_value", "NCCL_SOCKET_IFNAME=<interface>"),
        (2, "debug_only", "unset NCCL_P2P_DISABLE"),
    ]
    assert replace(warnings[0], line=0) != warnings[0]
