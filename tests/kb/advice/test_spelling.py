"""Misspelt names and names that only look like it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.advice.spelling import nearest_name
from kb.knowledge import read_yaml
from kb.types import Advice


@pytest.fixture(scope="module")
def known(data_dir: Path) -> set[str]:
    """Every setting the shipped advice names."""
    advice = read_yaml(data_dir / "advice.yaml", tuple[Advice, ...])
    return {item.id for item in advice} | {name for item in advice for name in item.related}


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("NCCL_SOCKET_IFNAMES", "NCCL_SOCKET_IFNAME"),
        ("NCCL_SOCK_IFNAME", "NCCL_SOCKET_IFNAME"),
        ("NCCL_P2P_DISABLED", "NCCL_P2P_DISABLE"),
        ("NCCL_IB_DISABEL", "NCCL_IB_DISABLE"),
        ("GLOO_SOCKET_IFNAMES", "GLOO_SOCKET_IFNAME"),
        ("TORCH_NCCL_BLOCKING_WAITS", "TORCH_NCCL_BLOCKING_WAIT"),
        ("NCCL_DUMP_ON_TIMEOUT", "TORCH_NCCL_DUMP_ON_TIMEOUT"),
        ("NCCL_TRACE_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"),
        ("TORCH_NCCL_P2P_DISABLE", "NCCL_P2P_DISABLE"),
        ("HCCL_CONNECT_TIMEOUTS", "HCCL_CONNECT_TIMEOUT"),
    ],
)
def test_the_nearest_known_name(wrong: str, right: str, known: set[str]) -> None:
    """A name with a letter or prefix wrong is answered with the one meant."""
    assert nearest_name(wrong, known) == right


@pytest.mark.parametrize(
    "name",
    [
        "NCCL_IB_TC",  # known, though close to NCCL_IB_SL
        "NCCL_MY_OWN_SWITCH",
        "NCCL_LL64_BUFFSIZE",  # only a number away from a known one
        "MY_NCCL_TIMEOUTS",
        "OMP_NUM_THREAD",  # a family not known completely
        "VLLM_USE_V2",
        "NCCL_X",
    ],
)
def test_other_names_are_left_alone(name: str, known: set[str]) -> None:
    """Nothing is called misspelt on a weak likeness."""
    assert nearest_name(name, known) == ""


def test_no_known_name_is_called_misspelt(known: set[str]) -> None:
    """The check never turns against the knowledge it comes from."""
    assert [name for name in sorted(known) if nearest_name(name, known)] == []
