"""Names of settings: misspelt ones, and what a question is about by name or by its words."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.knowledge.load import read_yaml
from kb.settings_check.names import find_advice, nearest_name
from kb.types.knowledge import Advice


@pytest.fixture(scope="module")
def advice(data_dir: Path) -> tuple[Advice, ...]:
    """The shipped settings."""
    return read_yaml(data_dir / "advice.yaml", tuple[Advice, ...])


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("NCCL_IB_TIMEOUT", "NCCL_IB_TIMEOUT"),
        ("TORCH_NCCL_BLOCKING_WAIT", "TORCH_NCCL_BLOCKING_WAIT"),
        ("does NCCL_TIMEOUT=3600 help?", "NCCL_TIMEOUT"),
        ("nccl_timeout in verl", "nccl_timeout"),
        ("nccl_ib_timeout", "NCCL_IB_TIMEOUT"),
        ("train_timeout_seconds of comm.train_timeout_seconds", "comm.train_timeout_seconds"),
        ("NCCL_IB_TIMEOUTT", "NCCL_IB_TIMEOUT"),
        ("timeout 参数", "timeout"),
        ("ddp timeout option", "ddp_timeout"),
        ("flight recorder 的环境变量", "TORCH_FR_BUFFER_SIZE"),
        ("hccl 建链超时 环境变量", "HCCL_CONNECT_TIMEOUT"),
    ],
)
def test_the_setting_asked_about_comes_first(
    advice: tuple[Advice, ...], question: str, first: str
) -> None:
    """A name in its own case, in another, misspelt, by its last part, or words for what it does."""
    found = find_advice(question, advice)
    assert found[0].id == first
    assert len(found) <= 3


@pytest.mark.parametrize(
    "question",
    [
        "checkpoint hang",
        "保存检查点卡住",
        "training hangs with torch.distributed and FSDP",
        "parameter",
        "SOME_OTHER_NAME",
        "NCCL_IB_TIMEOUT=22\n" * 50,
    ],
    ids=["words", "Chinese words", "names of code", "nothing asked", "unknown name", "a log"],
)
def test_other_questions_are_about_no_setting(advice: tuple[Advice, ...], question: str) -> None:
    """Descriptions of hangs, unknown names and whole logs bring no setting along."""
    assert find_advice(question, advice) == ()


@pytest.fixture(scope="module")
def known(advice: tuple[Advice, ...]) -> set[str]:
    """Every setting the shipped advice names."""
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
