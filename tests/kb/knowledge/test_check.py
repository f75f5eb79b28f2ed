"""Broken data files: the message names file, line, field and value, and what to do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kb.knowledge.check import check_knowledge

CASE = "cases/areal-ib-timeout-too-small.md"


@pytest.fixture(scope="module")
def copied(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the knowledge with two of the cases."""
    folder = tmp_path_factory.mktemp("data")
    for path in data_dir.glob("*.yaml"):
        shutil.copy(path, folder)
    shutil.copytree(data_dir / "labels", folder / "labels")
    (folder / "cases").mkdir()
    for name in (CASE, "cases/ascend-ei0002-one-npu-exited.md"):
        shutil.copy(data_dir / name, folder / "cases")
    return folder


def broken(folder: Path, file: str, old: str, new: str) -> list[str]:
    """What is said of the folder while `old` is `new` in one of its files."""
    path = folder / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    try:
        return [str(error) for error in check_knowledge(folder)]
    finally:
        path.write_text(text, encoding="utf-8")


NAME = CASE.removeprefix("cases/")
TITLE = "title: {zh: 把 NCCL_IB_TIMEOUT 恢复到正常量级, en: "


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        pytest.param(
            CASE,
            "backend: nccl",
            "backend: nccll",
            f"{NAME} line 12: backend: 'nccll' is not one of nccl, gloo, hccl, rccl, other"
            " — did you mean 'nccl'?",
            id="backend",
        ),
        pytest.param(
            CASE,
            TITLE,
            "title: {zh: 升级, en: Upgrade}\n    applies_to: {versions: ['torch>=2.6']}\n"
            "    steps: [{zh: 升级, en: Upgrade}]\n  - " + TITLE,
            f"{NAME}: versions: 'torch>=2.6' hides an upgrade from older ones"
            " — name those that need it, as in torch<2.6",
            id="upgrade of those who have it",
        ),
        pytest.param(
            CASE,
            "stage: train",
            "stage: train\nbackend: gloo",
            f"{NAME} line 14: 'backend' stands twice, first on line 12"
            " — keep one of the two: of such keys YAML drops all but the last",
            id="key-twice-in-front-matter",
        ),
        pytest.param(
            "events.yaml",
            "- id: watchdog_timeout\n",
            "- id: watchdog_timeout\n  id: watchdog_timeout\n",
            "events.yaml line 21: 'id' stands twice, first on line 20"
            " — keep one of the two: of such keys YAML drops all but the last",
            id="key-twice",
        ),
        pytest.param(
            "labels/common.yaml",
            "error.busy: ",
            "error.busy: {zh: 忙, en: busy}\nerror.busy: ",
            " — keep one of the two: of such keys YAML drops all but the last",
            id="label-twice",
        ),
        pytest.param(
            CASE,
            "stage: train",
            "stage: training",
            f"{NAME} line 13: stage: 'training' is not one of init, data, train, eval, save, load,"
            " inference, unknown — did you mean 'train'?",
            id="stage",
        ),
        pytest.param(
            CASE,
            "backends: [nccl]",
            "backends: [nccl, ncl]",
            f"{NAME} line 22: fixes[0].applies_to.backends[1]: 'ncl' is not one of nccl, gloo, "
            "hccl, rccl, other — did you mean 'nccl'?",
            id="backend-of-a-fix",
        ),
        pytest.param(
            CASE,
            "frameworks: [areal]",
            "frameworks: [ascendd]",
            f"{NAME}: frameworks: 'ascendd' is named nowhere else — did you mean 'ascend'?",
            id="framework",
        ),
        pytest.param(
            CASE,
            "cause: network-config",
            "cause: network-confg",
            f"{NAME}: cause: 'network-confg' is no cause — did you mean 'network-config'?",
            id="cause",
        ),
        pytest.param(
            CASE,
            f"{TITLE}Bring NCCL",
            f"{TITLE}Bring it back, NCCL",
            f"{NAME} line 17: fixes[0].title.NCCL_IB_TIMEOUT back to a normal size: a comma ends "
            'the text before it — quote the text: {zh: "…", en: "…"}',
            id="comma",
        ),
        pytest.param(
            CASE,
            f"{TITLE}Bring NCCL",
            f"{TITLE}Bring it back: NCCL",
            f"{NAME} line 17 is not YAML: did not find expected ',' or '}}' — "
            'quote the text: {zh: "…", en: "…"}',
            id="colon",
        ),
        pytest.param(
            CASE,
            "cost: low",
            "cots: low",
            f"{NAME} line 23: fixes[0].cots: unknown field — did you mean 'cost'?",
            id="field",
        ),
        pytest.param(
            CASE,
            "first_seen: 2025-11-27",
            "first_seen: soon",
            f"{NAME} line 10: first_seen: Invalid RFC3339 encoded date, it is 'soon'"
            " — see data/README.md",
            id="date",
        ),
        pytest.param(
            CASE,
            "  zh: ",
            f"  zh: {'很长' * 40}",
            f"{NAME}: the title in zh has 128 characters — say it in 60",
            id="long-title",
        ),
        pytest.param(
            "labels/common.yaml",
            'en: "line {line}"',
            "en: 7",
            ": word.line.en: Expected `str`, got `int`, it is 7 — see data/README.md",
            id="label",
        ),
        pytest.param(
            "causes.yaml",
            "gives: exit-codes",
            "gives: exit-code",
            "gives of rank-crash: 'exit-code' is no kind of evidence — did you mean 'exit-codes'?",
            id="evidence",
        ),
        pytest.param(
            "input_evidence.yaml",
            '"event:thread_dump"',
            '"event:thread_dmp"',
            "'thread_dmp' is no event that can be seen — did you mean 'thread_dump'?",
            id="event",
        ),
    ],
)
def test_what_is_wrong_is_said(copied: Path, file: str, old: str, new: str, says: str) -> None:
    """One slip gives one message, in full."""
    (message,) = broken(copied, file, old, new)
    assert message.endswith(says)
    assert message.startswith(Path(file).name)


def test_all_files_are_looked_at(copied: Path) -> None:
    """A slip in one file does not hide that in another; references wait until files are right."""
    path = copied / "advice.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("read_by:", "readby:", 1), encoding="utf-8")
    messages = broken(copied, CASE, "backend: nccl\n", "backend: 3\n")
    path.write_text(text, encoding="utf-8")
    assert [message.partition(" line ")[0] for message in messages] == ["advice.yaml", NAME]


def test_shipped_knowledge_is_right(data_dir: Path) -> None:
    """Nothing is said of the files as they are."""
    assert [str(error) for error in check_knowledge(data_dir)] == []
