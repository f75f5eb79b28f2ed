"""Whole jobs: the peers' traces with injected faults, and a model of other topologies."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from kb.evidence.collect import read_evidence
from kb.evidence.flight_recorder.analysis import analyse
from tests.kb.evidence.flight_recorder.simulation import Job

TOPOLOGIES = [
    (2, 2, 4),
    (4, 2, 2),
    (1, 4, 2),
    (2, 4, 1),
    (1, 8, 1),
    (2, 2, 2),
    (4, 1, 4),
    (1, 2, 4),
]
EXPECTED = {"lock_gil": "cpu_stall", "gpu_error": "gpu_stall", "sigstop": "missing_rank"}
RUNS = 40  # a kind; enough to tell 95 % from 85 %


@pytest.mark.shared
@pytest.mark.parametrize("trace", ["gpu_error_1st", "lock_gil_1st"])
def test_the_injected_ranks_and_the_fault_type(trace: str, shared_dir: Path) -> None:
    """Real 16-rank dumps: exactly the ranks the injector wrote down, and its kind of fault."""
    folder = shared_dir / "peers" / "nvrx_fr_traces" / trace
    log = (folder / "fault_injection.log").read_text()
    injected = sorted(int(rank) for rank in re.findall(r"Rank (\d+), fault_type", log))
    kind = re.search(r"fault_type: (\w+)", log)
    assert kind is not None
    reading = read_evidence(sorted(folder.glob("_dump_*"))).dumps
    assert reading is not None
    assert [culprit.rank for culprit in reading.culprits] == injected
    assert reading.fault_type == EXPECTED[kind[1].lower()]
    assert (reading.present, reading.absent) == (tuple(range(16)), ())


def _run(kind: str, seed: int, *, faults: int) -> tuple[list[int], list[int], str]:
    """Injected ranks, named ranks and fault type of one random job."""
    rng = random.Random(f"{kind}-{seed}-{faults}")
    tensor, data, pipeline = TOPOLOGIES[seed % len(TOPOLOGIES)]
    ranks = sorted(rng.sample(range(tensor * data * pipeline), faults))
    job = Job(
        tensor=tensor,
        data=data,
        pipeline=pipeline,
        experts=rng.random() < 0.6,
        seed=seed,
        only_active=rng.random() < 0.6,
    )
    reading = analyse(job.run(dict.fromkeys(ranks, kind)))
    return ranks, [culprit.rank for culprit in reading.culprits], reading.fault_type


@pytest.mark.parametrize(
    ("kind", "right"), [("lock_gil", 0.97), ("sigstop", 1), ("gpu_error", 0.8)]
)
def test_one_fault_on_any_rank_of_any_topology(kind: str, right: float) -> None:
    """The share of modelled jobs whose one faulty rank is named alone, and with the right type.

    A device error that strikes between two collectives leaves nothing behind that shows the device,
    so a fifth of those may be called a host stall.
    """
    runs = [_run(kind, seed, faults=1) for seed in range(RUNS)]
    exact = sum(injected == found for injected, found, _ in runs)
    typed = sum(fault == EXPECTED[kind] for _, _, fault in runs)
    assert exact >= 0.97 * RUNS
    assert typed >= right * RUNS


@pytest.mark.parametrize(
    ("kind", "exact"), [("lock_gil", 0.8), ("sigstop", 1), ("gpu_error", 0.75)]
)
def test_two_faults_never_name_a_healthy_rank(kind: str, exact: float) -> None:
    """With two faults the second may leave no trace, but whoever is named is one of the two."""
    runs = [_run(kind, seed, faults=2) for seed in range(RUNS)]
    for injected, found, _ in runs:
        assert set(found) <= set(injected)
    assert sum(injected == found for injected, found, _ in runs) >= exact * RUNS


@pytest.mark.parametrize("seed", range(8))
def test_names_of_groups_and_order_of_files_do_not_matter(seed: int) -> None:
    """The dumps in any order give the same reading."""
    tensor, data, pipeline = TOPOLOGIES[seed]
    job = Job(tensor=tensor, data=data, pipeline=pipeline, experts=True, seed=seed)
    dumps = job.run({1: "lock_gil"})
    shuffled = dumps.copy()
    random.Random(seed).shuffle(shuffled)
    assert analyse(shuffled) == analyse(dumps)
