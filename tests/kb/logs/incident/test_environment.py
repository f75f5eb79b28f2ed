"""What a log says about machine and job."""

from __future__ import annotations

import pytest

from kb.logs.incident.environment import MAX_SETTINGS, read_environment
from kb.types.incident import Event
from tests.kb.logs.builders import event, log, observed, report


@pytest.mark.parametrize(
    ("events", "backend"),
    [
        ([], ""),
        ([report(1)], "nccl"),
        # the failure's own library first: timeouts, then errors, then anything
        ([event("init_complete", pattern="gloo-x"), report(2)], "nccl"),
        ([event("cuda_oom", pattern="gloo-x"), report(2)], "nccl"),
        ([event("cuda_oom", pattern="gloo-x"), event("train_step", pattern="hccl-x")], "gloo"),
        ([event("peer_closed", pattern="gloo-x"), event("version", pattern="hccl-x")], "gloo"),
        ([event("version", pattern="hccl-x")], "hccl"),
        ([event("teardown", pattern="nccl-x")], "nccl"),
        # of several of one kind the special one
        ([report(1), event("store_timeout", 2, pattern="hccl-x")], "hccl"),
        ([report(1), event("store_timeout", 2, pattern="gloo-x")], "nccl"),
        # NCCL's lines on an AMD machine are RCCL's
        ([report(1), event("version", 2, pattern="rccl-x")], "rccl"),
        ([report(1), event("version", 2, rocm="6.0")], "rccl"),
        ([event("store_timeout", pattern="gloo-x"), event("version", 2, rocm="6.0")], "gloo"),
    ],
)
def test_backend(events: list[Event], backend: str) -> None:
    """The backend whose failure it is."""
    assert read_environment(log(*events)).backend == backend


@pytest.mark.parametrize(
    ("named", "framework"),
    [
        ({"framework": "DeepSpeed"}, ("deepspeed",)),
        ({"source": "LLaMA-Factory"}, ("llamafactory",)),
        ({"source": "Megatron-LM"}, ("megatron",)),
        ({"source": "mmdetection"}, ("mmengine",)),
        ({"framework": "trl", "source": "vllm"}, ("trl",)),
        ({"source": "somebody"}, ()),
        ({}, ()),
    ],
)
def test_frameworks(named: dict[str, str], framework: tuple[str, ...]) -> None:
    """Frameworks by their own name or by a project's."""
    assert read_environment(log(event("framework", **named))).frameworks == framework
    both = log(event("framework", **named), event("train_step", pattern="ray-x"))
    assert read_environment(both).frameworks == tuple(sorted({"ray", *framework}))


def test_versions() -> None:
    """The first of each; a package's name is written with underscores."""
    events = [
        event("version", 1, nccl="2.18", clock="1", name="x", what="y"),
        event("package", 2, name="Flash-Attn", version="2.5"),
        event("version", 3, nccl="2.19", cuda="12.1"),
        event("package", 4, name="torch"),
        event("package", 5, version="1"),
    ]
    expected = {"cuda": "12.1", "flash_attn": "2.5", "nccl": "2.18"}
    assert read_environment(log(*events)).versions == expected


def test_settings() -> None:
    """The last value of each, without a sentence's end; a bounded number."""
    events = [
        event("setting", 1, name="B", value="1."),
        event("setting", 2, name="A", value="x;"),
        event("setting", 3, name="B", value="2,"),
        event("setting", 4, name="C"),
        event("setting", 5, value="3"),
    ]
    assert read_environment(log(*events)).settings == {"A": "x", "B": "2", "C": ""}
    many = [event("setting", n, name=f"N{n}", value="1") for n in range(MAX_SETTINGS + 9)]
    assert len(read_environment(log(*many)).settings) == MAX_SETTINGS


@pytest.mark.parametrize(
    ("events", "size"),
    [
        ([event("train_step", world_size=8)], 8),
        ([event("train_step", world_size=8), event("train_step", world_size=4)], 8),
        ([event("train_step", world_size=0)], None),
        ([event("train_step", world_size=1)], 1),
        ([event("train_step", world_size=1_000_000)], None),
        ([event("train_step", world_size=999_999)], 999_999),
        ([event("parallel_size", name="num_processes", size=2)], 2),
        ([event("parallel_size", name="NRANKS", size=2)], 2),
        ([event("parallel_size", name="world_size", size=1)], None),
        ([event("parallel_size", name="world_size", size=1_000_000)], None),
        ([event("parallel_size", name="tensor_parallel", size=8)], None),
        ([event("parallel_size", name="world_size")], None),
        ([event("train_step", name="world_size", size=8)], None),
    ],
)
def test_world_size(events: list[Event], size: int | None) -> None:
    """The largest size printed, where it can be one."""
    assert read_environment(log(*events)).world_size == size


def test_a_size_of_a_part_is_dropped() -> None:
    """A world no larger than a reporting rank is not the world."""
    part = event("train_step", world_size=4)
    assert observed(part, report(1, 4)).incident.world_size is None
    assert observed(part, report(1, 3)).incident.world_size == 4
    assert observed(part).incident.world_size == 4
