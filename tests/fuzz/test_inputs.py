"""Inputs that once failed a target of `make fuzz` are read or refused, in little time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz.targets import INPUTS, RUNS, Targets, refuse_quietly

FAILED = sorted(path for path in INPUTS.rglob("*") if path.is_file())
LIMIT_S = 2.0


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Targets]:
    """All targets over one small knowledge base."""
    targets = Targets(tmp_path_factory.mktemp("fuzz"))
    yield targets
    targets.close()


@pytest.mark.parametrize("path", FAILED, ids=[f"{p.parent.name}/{p.name}" for p in FAILED])
def test_what_failed_once_does_not(path: Path, targets: Targets) -> None:
    """The input ends in an answer or an error made for people."""
    target = targets.of(path.parent.name)
    refuse_quietly(target.run, path.read_bytes())  # the first one compiles and fills caches
    start = time.process_time()
    refuse_quietly(target.run, path.read_bytes())
    assert time.process_time() - start < LIMIT_S


@pytest.mark.parametrize("name", list(RUNS))
def test_every_target_takes_its_seeds(name: str, targets: Targets) -> None:
    """A target reads what it begins from: some of its seeds are not refused."""
    target = targets.of(name)
    assert not all(refuse_quietly(target.run, seed) for seed in target.seeds[:3])
