"""Hardware has one name: in cases, in imported texts and in filters."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ingest.wordlists import load_word_lists
from kb.knowledge.cases import load_case
from kb.knowledge.facets import wanted_values
from kb.knowledge.hardware import hardware_id
from kb.knowledge.load import read_yaml
from kb.types.entries import Filters


@pytest.mark.parametrize(
    ("written", "tag"),
    [
        ("rtx-3090", "rtx3090"),
        ("RTX 3090", "rtx3090"),
        ("rtx3090", "rtx3090"),
        ("NVIDIA GeForce RTX 3090 Ti", "rtx3090"),
        ("a100-80gb", "a100"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("H100 PCIe", "h100"),
        ("Ascend 910B", "ascend"),
        ("昇腾", "ascend"),
        ("AMD Instinct MI300X", "mi300"),
        ("a10g", "a10g"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA H200 NVL", "h200"),
        ("GB200 NVL72", "gb200"),
        ("MI300X OAM", "mi300"),
        ("RTX 4090D", "rtx4090"),
        ("NVIDIA GeForce RTX 4090 D", "rtx4090"),
        ("rtx5090d", "rtx5090"),
        ("NVIDIA RTX 6000 Ada Generation", "rtx6000-ada"),
        ("910B3", "ascend"),
        ("Ascend910B4", "ascend"),
        ("Quadro K620", "quadro-k620"),
    ],
)
def test_one_name_for_each(written: str, tag: str) -> None:
    """Case, joints, maker, form and memory size do not matter; a name stays what it is."""
    assert hardware_id(written) == tag
    assert hardware_id(tag) == tag


@pytest.mark.parametrize("sign", ["-", " -", "_", "h100 ", "80gb-"])
def test_a_long_name_costs_no_time(sign: str) -> None:
    """A text no card is called stays what it is: the patterns would take seconds for it."""
    name = "x" + sign * 10_000 + "x"
    started = time.process_time()
    assert hardware_id(name) == name
    assert time.process_time() - started < 0.5


def test_shipped_names_are_those_of_the_list(data_dir: Path) -> None:
    """Cases carry the one name, imported texts get it, and no spelling stands for two."""
    known = read_yaml(data_dir / "hardware.yaml", dict[str, tuple[str, ...]])
    assert {name for name, _ in load_word_lists(data_dir).hardware} <= set(known)
    assert {name: hardware_id(name) for name in known} == {name: name for name in known}
    spellings = [spelling for others in known.values() for spelling in others]
    assert len(set(spellings)) == len(spellings)
    assert not set(spellings) & set(known)
    cases = [load_case(path) for path in sorted((data_dir / "cases").glob("*.md"))]
    tagged = {name for case in cases for name in case.tags.hardware}
    assert {name: hardware_id(name) for name in tagged} == {name: name for name in tagged}


def test_a_filter_takes_any_spelling() -> None:
    """Whoever asks for an ``RTX 3090`` finds what is tagged rtx3090."""
    filters = Filters(hardware=("RTX 3090", "a100-80gb"))
    assert wanted_values(filters) == [("hardware", ("rtx3090", "a100"))]
