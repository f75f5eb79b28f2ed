"""What a question says of when it hangs."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from kb.knowledge.load import read_yaml
from kb.knowledge.stages import FILE, stages_in
from kb.types.vocabulary import Stage


def test_every_stage_of_the_file_is_one_that_entries_have(data_dir: Path) -> None:
    """All but `unknown`, which nobody asks for."""
    named = set(read_yaml(data_dir / FILE, dict[str, tuple[str, ...]]))
    assert named == set(get_args(Stage)) - {"unknown"}


@pytest.mark.parametrize(
    ("text", "stages"),
    [
        ("hangs while saving", {"save"}),
        ("保存检查点的时候卡住", {"save"}),
        ("dies at init_process_group", {"init"}),
        ("一启动就卡", {"init"}),
        ("stuck while loading the model", {"load"}),
        ("加载权重很慢", {"load"}),
        ("tokenizing takes hours", {"data"}),
        ("during training one rank is slow", {"train"}),
        ("跑验证集时超时", {"eval"}),
        ("prefill and decoding stall", {"inference"}),
        ("it hangs", set()),
        ("on four nodes", set()),
    ],
)
def test_stages_of_a_text(text: str, stages: set[str]) -> None:
    """The words of either language name the stage, others none."""
    assert stages_in(text) == stages
