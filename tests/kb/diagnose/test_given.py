"""What is asked for next: nothing the input holds, and one way to the same evidence."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.diagnose.given import given, seen_names, shows
from kb.service import Service
from kb.types import Diagnosis
from tests.kb.logs.test_evidence import write_job

TIMEOUT = """\
[rank{rank}]:[E ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog caught collective operation \
timeout: WorkNCCL(SeqNum=14217, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576, \
Timeout(ms)=600000) ran for 600105 milliseconds before timing out.
"""
ONE = TIMEOUT.format(rank=1)
STACKS = """\
Process 812: python train.py
Python v3.10.12 (/usr/bin/python3.10)

Thread 812 (active): "MainThread"
    all_reduce (torch/distributed/distributed_c10d.py:2501)
    train (train.py:88)
    <module> (train.py:120)
"""
NETWORK = "node1:88:88 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.5<0>\n"
CHANNEL = "node1:88:99 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/IPC\n"
SHOWN = {
    "python-stacks": STACKS,
    "nccl-network": NETWORK,
    "nccl-channels": CHANNEL,
    "nccl-warnings": "export NCCL_DEBUG=info\n",
    "nccl-version": "node1:88:88 [0] NCCL INFO NCCL version 2.21.5+cuda12.4\n",
    "kernel-log": "[84512.391845] Out of memory: Killed process 48213 (python) total-vm:1kB\n",
    "versions": "PyTorch version: 2.4.0\nCUDA used to build PyTorch: 12.4\n",
    "topology": "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV12\t0-31\n",
    "addresses": "    inet 10.0.0.5/24 brd 10.0.0.255 scope global eth0\n",
    "rendezvous-values": "export MASTER_ADDR=node1\nexport MASTER_PORT=29500\n",
    "shm-size": "shm              64M     0   64M   0% /dev/shm\n",
    "memory-summary": "|        PyTorch CUDA memory summary, device ID 0         |\n",
    "exit-codes": "  exitcode  : -9 (pid: 1234)\n",
    "long-work": "Map:  12%|█▏        | 1200/10000 [00:10<01:10, 120.00 examples/s]\n",
    "rank-logs": "world_size: 2\n" + TIMEOUT.format(rank=0),
    "connection-steps": "export TORCH_CPP_LOG_LEVEL=INFO TORCH_DISTRIBUTED_DEBUG=DETAIL\n",
}


def commands(diagnosis: Diagnosis) -> list[str]:
    """The commands of what is asked for next."""
    return [step.command for step in diagnosis.next]


def kinds(service: Service, found: list[str]) -> list[str]:
    """The kinds of evidence these commands give, by data/causes.yaml."""
    items = [item for cause in service.causes() for item in cause.collect]
    by_command = {item.command: item.gives for item in items}
    return [by_command[command] for command in found]


@pytest.mark.parametrize("kind", SHOWN)
def test_each_kind_is_told_from_the_input(service: Service, kind: str) -> None:
    """What a paste holds beside its timeout is known to be given, and only then."""
    known = service.knowledge.given
    assert kind in given(service.read_text(ONE + SHOWN[kind]), known)
    assert kind not in given(service.read_text(ONE), known)


@pytest.mark.parametrize("kind", SHOWN)
def test_nothing_given_is_asked_for(service: Service, kind: str) -> None:
    """Neither what to collect nor any check wants it again, whatever cause leads."""
    reading = service.read_text(ONE + SHOWN[kind])
    diagnosis = service.answer(reading, top=19)
    assert kind not in kinds(service, commands(diagnosis))
    checks = {
        check.command for cause in service.causes() for check in cause.checks if check.gives == kind
    }
    shown = {check.command for cause in diagnosis.causes for check in cause.checks}
    assert not checks & shown
    assert diagnosis.best_check is None or diagnosis.best_check.command not in checks


def test_dumps_handed_in_are_not_asked_for(service: Service, tmp_path: Path) -> None:
    """With dumps of all ranks nothing of the flight recorder is wanted; a missing one is."""
    (tmp_path / "job.log").write_text(ONE, encoding="utf-8")
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    whole = service.diagnose_paths([tmp_path / "job.log"], dumps=[write_job(dumps)])
    assert "flight-recorder" in kinds(service, commands(service.diagnose_text(ONE)))
    assert not {"flight-recorder", "dumps-of-all-ranks"} & set(kinds(service, commands(whole)))
    (dumps / "nccl_trace_rank_2").unlink()
    part = service.diagnose_paths([tmp_path / "job.log"], dumps=[dumps])
    assert "flight-recorder" not in kinds(service, commands(part))
    assert "dumps-of-all-ranks" in kinds(service, commands(part))


@pytest.mark.parametrize(
    "said",
    [
        "[rank1]:[I ProcessGroupNCCL.cpp:1713] ProcessGroupNCCL dumping nccl trace to /tmp/fr/1",
        "[rank0]: Finished writing Flight Recorder debug info to /tmp/fr/rank_0",
        "export TORCH_NCCL_DUMP_ON_TIMEOUT=1 TORCH_NCCL_TRACE_BUFFER_SIZE=2000",
        "export TORCH_NCCL_DUMP_ON_TIMEOUT=true TORCH_FR_BUFFER_SIZE=20000",
    ],
    ids=["dumping", "written", "set-before-2.8", "set-since-2.8"],
)
def test_dumps_a_job_wrote_are_to_be_handed_in(service: Service, said: str) -> None:
    """Where the job wrote dumps the next step is to add them, not to switch them on."""
    found = commands(service.diagnose_text(f"{ONE}{said}\n"))
    assert any("--dump" in command for command in found)
    assert not any("BUFFER_SIZE" in command for command in found)


@pytest.mark.parametrize(
    "said",
    [
        "torch 2.5.1\nexport TORCH_NCCL_DUMP_ON_TIMEOUT=1",
        "export TORCH_NCCL_DUMP_ON_TIMEOUT=1 TORCH_NCCL_TRACE_BUFFER_SIZE=0",
        "export TORCH_NCCL_DUMP_ON_TIMEOUT=1 TORCH_FR_BUFFER_SIZE=2000\nFlightRecorder is disabled",
    ],
    ids=["no-buffer", "empty-buffer", "said-to-be-off"],
)
def test_a_recorder_that_kept_nothing_is_to_be_switched_on(service: Service, said: str) -> None:
    """A dump at the timeout holds nothing where no collective was recorded."""
    found = commands(service.diagnose_text(f"{said}\n{ONE}"))
    assert any("BUFFER_SIZE=20000" in command for command in found)
    assert not any("--dump" in command for command in found)


def test_nccl_lines_that_were_not_pasted(service: Service) -> None:
    """Whoever has set NCCL_DEBUG=INFO is asked for its lines, not to set it again."""
    words = "It hangs at init on two nodes, the network may be wrong.\n"
    wanted = commands(service.diagnose_text(words + ONE))
    assert any("export NCCL_DEBUG=INFO" in command for command in wanted)
    found = commands(service.diagnose_text(words + "export NCCL_DEBUG=INFO\n" + ONE))
    assert any("grep" in command and "NCCL" in command for command in found)
    assert not any("export NCCL_DEBUG" in command for command in found)


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("", "TORCH_NCCL_TRACE_BUFFER_SIZE"),
        ("torch==2.1.0\n", "NCCL_DESYNC_DEBUG"),
        ("torch==2.5.1\n", "TORCH_NCCL_TRACE_BUFFER_SIZE"),
        ("torch==2.9.0\n", "TORCH_FR_BUFFER_SIZE"),
    ],
    ids=["unknown", "2.1", "2.5", "2.9"],
)
def test_one_way_to_the_same_evidence(service: Service, version: str, name: str) -> None:
    """Of the recorder's names by version one stands in an answer; unknown, the widest."""
    found = commands(service.diagnose_text(version + ONE))
    ways = [
        command
        for command, kind in zip(found, kinds(service, found), strict=True)
        if kind == "flight-recorder"
    ]
    assert len(ways) == 1
    assert name in ways[0]


def test_logs_of_several_ranks_are_not_asked_for(service: Service, tmp_path: Path) -> None:
    """Two files of two ranks are one log a rank."""
    for rank in (0, 1):
        (tmp_path / f"rank_{rank}.log").write_text(TIMEOUT.format(rank=rank), encoding="utf-8")
    assert "rank-logs" not in kinds(service, commands(service.diagnose_paths([tmp_path])))
    assert "rank-logs" in kinds(service, commands(service.diagnose_text(ONE)))


def test_ascend_is_not_asked_about_where_nobody_named_it(service: Service) -> None:
    """A description without a backend is one of NCCL."""
    assert not any("HCCL" in c for c in commands(service.diagnose_text("training hangs at 3%")))
    assert any("HCCL" in c for c in commands(service.diagnose_text("昇腾 910B 上 HCCL 训练卡住")))


def test_names_of_given_exist(service: Service) -> None:
    """Events and patterns that data/given.yaml and `when` speak of are those of the patterns."""
    patterns = service.knowledge.patterns
    known = {f"event:{item.event}" for item in patterns} | {f"pattern:{p.id}" for p in patterns}
    lists = [names for item in service.knowledge.given for names in item.shown_by]
    lists += [names for cause in service.causes() for item in cause.collect for names in item.when]
    names = {name.removeprefix("!") for listed in lists for name in listed}
    used = {name for name in names if name.startswith(("event:", "pattern:"))}
    assert used <= known
    signs = {name for cause in service.causes() for fix in cause.fixes for name in fix.signs}
    known |= {f"cue:{cue.id}" for cue in service.knowledge.cues}
    assert {name for name in signs if not name.startswith("fact:")} <= known
    wanted = {item.gives for cause in service.causes() for item in (*cause.checks, *cause.collect)}
    assert {item.id for item in service.knowledge.given} <= wanted


def test_one_list_has_to_be_seen_whole(service: Service) -> None:
    """Any list, but all of its names; a star stands for any ending."""
    seen = seen_names(service.read_text("export MASTER_ADDR=node1\n" + ONE))
    assert "setting:MASTER_ADDR" in seen
    assert not shows([["setting:MASTER_ADDR", "setting:MASTER_PORT"]], seen)
    assert shows([["event:nowhere"], ["setting:MASTER_*"]], seen)
    assert not shows([], seen)
    assert shows([["setting:MASTER_ADDR", "!setting:MASTER_PORT"]], seen)
    assert not shows([["event:collective_timeout", "!setting:MASTER_*"]], seen)
