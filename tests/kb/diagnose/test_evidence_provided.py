"""What is asked for next: nothing the input holds, and one way to the same evidence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kb.diagnose.evidence_provided import evidence_provided, seen_names, shows
from kb.service import Service
from kb.types.answer import Diagnosis
from kb.types.incident import Event, Fact, FirstError, Incident, LogReading
from kb.types.knowledge import InputEvidence
from tests.kb.evidence.test_collect import write_job

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
FAULT_STACK = """\
Current thread 0x00007f7671f116c0 (most recent call first):
  File "/app/train.py", line 88 in train
"""
WAITED = """\
[rank{rank}]: Traceback (most recent call last):
[rank{rank}]:   File "/job/train.py", line 40, in train
[rank{rank}]:     dist.all_reduce(x)
[rank{rank}]:   File "/venv/site-packages/torch/distributed/c10d.py", line 3, in all_reduce
[rank{rank}]: RuntimeError: [unbound_buffer.cc:78] Timed out waiting 4000ms for recv operation
"""
QUIET_KERNEL = "[84512.113370] usb 1-1: new high-speed USB device number 3 using xhci_hcd\n"
TREES = "node1:88:88 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1\n"
SHOWN_TOO = [
    ("python-stacks", FAULT_STACK),
    ("kernel-log", QUIET_KERNEL),
    ("nccl-warnings", TREES),
]
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
    """The kinds of evidence these commands give, by the files that hold them."""
    items = [item for cause in service.knowledge.causes for item in cause.collect]
    by_command = {
        command: kind
        for launcher in service.knowledge.launchers
        for kind, command in launcher.commands.items()
    }
    by_command |= {
        item.command: item.gives for item in (*items, *service.knowledge.missing_evidence)
    }
    return [by_command[command] for command in found]


@pytest.mark.parametrize("kind", SHOWN)
def test_each_kind_is_told_from_the_input(service: Service, kind: str) -> None:
    """What a paste holds beside its timeout is known to be given, and only then."""
    known = service.knowledge.input_evidence
    assert kind in evidence_provided(service.read_text(ONE + SHOWN[kind]), known)
    assert kind not in evidence_provided(service.read_text(ONE), known)


@pytest.mark.parametrize(("kind", "text"), SHOWN_TOO)
def test_another_form_of_it(service: Service, kind: str, text: str) -> None:
    """Stacks of faulthandler, a kernel log without a fault, any line that NCCL logs."""
    reading = service.read_text(ONE + text)
    assert kind in evidence_provided(reading, service.knowledge.input_evidence)
    assert kind not in kinds(service, commands(service.answer(reading, top=19)))


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [("dmesg.txt", QUIET_KERNEL * 20, "kernel-log"), ("stack_rank_0.txt", STACKS, "python-stacks")],
)
def test_a_file_that_says_nothing_was_handed_in(
    service: Service, tmp_path: Path, name: str, text: str, kind: str
) -> None:
    """A kernel log without a fault, or stacks that name nobody: they are not asked for again."""
    (tmp_path / "job.log").write_text(ONE, encoding="utf-8")
    (tmp_path / name).write_text(text, encoding="utf-8")
    reading = service.read_paths([tmp_path])
    assert kind in evidence_provided(reading, service.knowledge.input_evidence)
    assert kind not in kinds(service, commands(service.answer(reading, top=19)))


def test_tracebacks_are_no_stacks_of_who_is_silent(service: Service) -> None:
    """Where waiting ranks stood is known; where the silent one stands is still to be seen."""
    waits = "".join(WAITED.format(rank=rank) for rank in (0, 1, 3))
    assert "python-stacks" in kinds(service, commands(service.diagnose_text(waits)))


@pytest.mark.parametrize("kind", SHOWN)
def test_nothing_given_is_asked_for(service: Service, kind: str) -> None:
    """Neither what to collect nor any check wants it again, whatever cause leads."""
    reading = service.read_text(ONE + SHOWN[kind])
    diagnosis = service.answer(reading, top=19)
    assert kind not in kinds(service, commands(diagnosis))
    checks = {
        check.command
        for cause in service.knowledge.causes
        for check in cause.checks
        if check.gives == kind
    }
    shown = {check.command for cause in diagnosis.causes for check in cause.checks}
    assert not checks & shown
    assert diagnosis.best_check is None or diagnosis.best_check.command not in checks


def test_dumps_handed_in_are_not_asked_for(service: Service, tmp_path: Path) -> None:
    """With dumps of all ranks nothing of the flight recorder is wanted; a missing one is."""
    (tmp_path / "job.log").write_text(ONE, encoding="utf-8")
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    whole = service.answer(service.read_paths([tmp_path / "job.log"], dumps=[write_job(dumps)]))
    assert "flight-recorder" in kinds(service, commands(service.diagnose_text(ONE)))
    assert not {"flight-recorder", "dumps-of-all-ranks"} & set(kinds(service, commands(whole)))
    (dumps / "nccl_trace_rank_2").unlink()
    part = service.answer(service.read_paths([tmp_path / "job.log"], dumps=[dumps]))
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
    words = "It hangs at init on two nodes; NCCL binds to the wrong interface, ib0 is not used.\n"
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
    assert "rank-logs" not in kinds(
        service, commands(service.answer(service.read_paths([tmp_path])))
    )
    assert "rank-logs" in kinds(service, commands(service.diagnose_text(ONE)))


def test_ascend_is_not_asked_about_where_nobody_named_it(service: Service) -> None:
    """A description without a backend is one of NCCL."""
    assert not any("HCCL" in c for c in commands(service.diagnose_text("training hangs at 3%")))
    assert any("HCCL" in c for c in commands(service.diagnose_text("昇腾 910B 上 HCCL 训练卡住")))


def test_names_of_given_exist(service: Service) -> None:
    """Events and patterns that kinds of evidence and `when` name are those of the patterns."""
    patterns = service.knowledge.patterns
    known = {f"event:{item.event}" for item in patterns} | {f"pattern:{p.id}" for p in patterns}
    lists = [names for item in service.knowledge.input_evidence for names in item.shown_by]
    lists += [
        names for cause in service.knowledge.causes for item in cause.collect for names in item.when
    ]
    lists += [names for item in service.knowledge.missing_evidence for names in item.when]
    names = {name.removeprefix("!") for listed in lists for name in listed}
    used = {name for name in names if name.startswith(("event:", "pattern:"))}
    assert used <= known
    signs = {
        name.removeprefix("!")
        for cause in service.knowledge.causes
        for fix in cause.fixes
        for name in fix.signs
    }
    known |= {f"cue:{cue.id}" for cue in service.knowledge.cues}
    assert {name for name in signs if not name.startswith("fact:")} <= known
    wanted = {
        item.gives for cause in service.knowledge.causes for item in (*cause.checks, *cause.collect)
    }
    wanted |= {item.gives for item in service.knowledge.missing_evidence}
    assert {item.id for item in service.knowledge.input_evidence} <= wanted


def test_one_list_has_to_be_seen_whole(service: Service) -> None:
    """Any list, but all of its names; a star stands for any ending."""
    seen = seen_names(service.read_text("export MASTER_ADDR=node1\n" + ONE))
    assert "setting:MASTER_ADDR" in seen
    assert not shows([["setting:MASTER_ADDR", "setting:MASTER_PORT"]], seen)
    assert shows([["event:nowhere"], ["setting:MASTER_*"]], seen)
    assert not shows([], seen)
    assert shows([["setting:MASTER_ADDR", "!setting:MASTER_PORT"]], seen)
    assert not shows([["event:collective_timeout", "!setting:MASTER_*"]], seen)


# --- by name, without the shipped data ------------------------------------------------------------


def event(name: str, *, rank: int | None = None, file: str = "") -> Event:
    """An event of a pattern of its own name."""
    return Event(
        pattern_id=f"of-{name}", kind="root", event=name, line=1, text="", rank=rank, file=file
    )


def read(*events: Event, **fields: object) -> LogReading:
    """A reading of these events and of an incident with these fields."""
    incident = Incident(**fields)  # type: ignore[arg-type]
    return LogReading(incident=incident, events=events, excerpt="")


ERROR = FirstError(rank=2, line=1, kind="oom", text="")


@pytest.mark.parametrize(
    ("reading", "names"),
    [
        (read(), set()),
        (
            read(event("oom"), event("xid")),
            {"event:oom", "pattern:of-oom", "event:xid", "pattern:of-xid"},
        ),
        (read(facts=(Fact(name="behind"), Fact(name="silent"))), {"fact:behind", "fact:silent"}),
        (read(versions={"torch": "2.4"}), {"version:torch"}),
        (
            read(settings={"NCCL_DEBUG": "info"}),
            {"setting:NCCL_DEBUG", "setting:NCCL_DEBUG=INFO"},
        ),
        (read(timeout_ms=1), {"log:timeout"}),
        (read(timeout_ms=0), {"log:timeout"}),
        (read(first_error=ERROR), {"log:first_error_rank"}),
        (read(first_error=replace(ERROR, rank=0)), {"log:first_error_rank"}),
        (read(first_error=replace(ERROR, rank=None)), set()),
    ],
    ids=["none", "events", "facts", "versions", "settings", "timeout", "zero", "rank", "r0", "any"],
)
def test_names_of_what_was_seen(reading: LogReading, names: set[str]) -> None:
    """Each observation under the name that data/input_evidence.yaml uses."""
    assert seen_names(reading) == names


@pytest.mark.parametrize(
    ("ranks", "world", "files", "seen"),
    [
        ((0, 1), 2, ("", ""), {"log:all_ranks"}),
        ((0, 1, 2), 2, ("", "", ""), {"log:all_ranks"}),
        ((0, 2), 2, ("", ""), set()),
        ((1, 2), 2, ("", ""), set()),
        ((0,), 1, ("",), {"log:all_ranks"}),
        ((0, 1), None, ("", ""), set()),
        ((0, None), 2, ("", ""), set()),
        ((), 0, (), set()),
        ((0, 1), None, ("a", "b"), {"log:several_ranks_files"}),
        ((0, 0), None, ("a", "b"), {"log:several_ranks_files"}),
        ((0, 1), None, ("a", "a"), set()),
        ((0, 1), None, ("a", ""), set()),
        ((0, None), None, ("a", "b"), set()),
        ((0, 1), 2, ("a", "b"), {"log:all_ranks", "log:several_ranks_files"}),
    ],
)
def test_what_the_whole_input_holds(
    ranks: tuple[int | None, ...], world: int | None, files: tuple[str, ...], seen: set[str]
) -> None:
    """All ranks of the world, and ranks in more than one file."""
    events = [event("x", rank=rank, file=file) for rank, file in zip(ranks, files, strict=True)]
    whole = {name for name in seen_names(read(*events, world_size=world)) if "log:" in name}
    assert whole == seen


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        ([["event:a"]], True),
        ([["event:c"]], False),
        ([["event:a", "event:b"]], True),
        ([["event:a", "event:c"]], False),
        ([["event:c"], ["event:b"]], True),
        ([["!event:c"]], True),
        ([["!event:a"]], False),
        ([["event:a", "!event:c"]], True),
        ([["fact:stack_*"]], True),
        ([["fact:stac_*"]], False),
        ([["!fact:stack_*"]], False),
        ([["fact:stack"]], False),
        ([["!fact:other_*"]], True),
        ([[]], True),
        ([], False),
    ],
)
def test_one_list_whole(names: list[list[str]], shown: bool) -> None:
    """All names of one list: ``!`` for not seen, ``*`` for any ending."""
    assert shows(names, {"event:a", "event:b", "fact:stack_wait"}) is shown


def test_kinds_of_evidence_that_are_there() -> None:
    """Those of which one list was seen whole."""
    kinds_of = [
        InputEvidence(id="both", shown_by=(("event:oom", "event:xid"),)),
        InputEvidence(id="one", shown_by=(("event:xid",), ("event:oom",))),
    ]
    assert evidence_provided(read(event("oom")), kinds_of) == {"one"}
