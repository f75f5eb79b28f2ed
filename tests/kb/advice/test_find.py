"""Settings a question is about: by name, misspelt, or by what they do."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.advice import find_advice
from kb.knowledge import read_yaml
from kb.types import Advice


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
