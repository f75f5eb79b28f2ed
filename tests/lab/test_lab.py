"""The lab itself: its table, real jobs, the replay, and the samples kept from real runs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kb.evidence.collect import add_evidence, read_evidence
from kb.knowledge.load import read_yaml
from kb.types.incident import Incident
from kb.types.knowledge import Cause
from tests.lab.evaluate import Result, table
from tests.lab.jobs_names import job_names
from tests.lab.replay import VERSIONS, replay_run
from tests.lab.run import WORLD, load_scenarios, run_scenario

HERE = Path(__file__).resolve().parent
SAMPLES = sorted((HERE / "samples").glob("*/truth.json"))
SCENARIOS = load_scenarios()
REQUIRED = {
    *("exception", "sigkill", "sigsegv", "oom_kill", "dataloader_killed", "slow_loader"),
    *("uneven_split", "uneven_last_batch", "rank0_preprocessing", "rank0_eval_collective"),
    *("slow_checkpoint", "save_in_main", "straggler", "shape_mismatch", "op_mismatch"),
    *("monitored_barrier", "late_join", "missing_node", "wrong_port", "wrong_world_size"),
    *("two_groups_order", "gil_hold"),
}


def test_the_table_is_complete(data_dir: Path) -> None:
    """Every required fault is there, names a known cause and ranks of the job, and has its job."""
    causes = {cause.id for cause in read_yaml(data_dir / "causes.yaml", tuple[Cause, ...])}
    assert SCENARIOS.keys() >= REQUIRED
    for scenario in SCENARIOS.values():
        assert {scenario.cause, *scenario.also} <= causes
        assert all(0 <= rank <= WORLD for rank in scenario.culprits)
        assert (scenario.job or scenario.id) in job_names(scenario.script)


@pytest.mark.lab
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fault"), [("slow_loader", "cpu_stall"), ("op_mismatch", "mismatch")]
)
def test_a_real_job_names_its_rank(name: str, fault: str, tmp_path: Path) -> None:
    """Four real processes hang; their dumps and stacks name the injected rank and the kind."""
    scenario = SCENARIOS[name]
    folder = run_scenario(scenario, tmp_path)
    incident = add_evidence(Incident(), read_evidence([folder / "evidence"]))
    assert tuple(culprit.rank for culprit in incident.culprit_ranks) == scenario.culprits
    assert incident.fault_type == fault
    assert "RuntimeError" in (folder / "combined.log").read_text(encoding="utf-8")


@pytest.mark.parametrize("truth", SAMPLES, ids=lambda path: path.parent.name)
def test_samples_of_real_runs(truth: Path) -> None:
    """Dumps and stacks kept from real runs give the injected ranks, nothing more."""
    known = json.loads(truth.read_text(encoding="utf-8"))
    incident = add_evidence(Incident(), read_evidence([truth.parent / "evidence"]))
    assert [culprit.rank for culprit in incident.culprit_ranks] == known["culprits"]
    assert incident.fault_type == known["fault_type"]


def test_samples_name_no_machine() -> None:
    """What is kept of real runs holds no paths or hosts of the machine it ran on."""
    files = [path for path in (HERE / "samples").rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 1 << 20
    for path in files:
        assert not re.search(rb"/root/|/home/|/tmp/", path.read_bytes()), path


@pytest.mark.parametrize("version", VERSIONS)
def test_a_replayed_log_says_what_happened(version: str, tmp_path: Path) -> None:
    """Exactly the ranks that waited print a timeout, with the recorded number and operation."""
    run = tmp_path / "slow_loader"
    _copy(HERE / "samples" / "slow_loader", run)
    replay_run(run)
    log = (run / "replayed" / f"nccl-{version}.log").read_text(encoding="utf-8")
    dumps = read_evidence([run / "evidence" / "dumps"]).dumps
    assert dumps is not None
    assert dumps.collective is not None
    lines = re.findall(
        r"^.*\[Rank (\d)\] Watchdog caught.*SeqNum=(\d+), OpType=(\w+).*$", log, re.MULTILINE
    )
    assert {(int(rank), int(seq), op) for rank, seq, op in lines} == {
        (rank, dumps.collective.seq, "ALLREDUCE") for rank in (0, 1, 3)
    }
    assert "gloo" not in log.lower()
    assert ("NumelIn=1024" in log) is (version != "1.13")
    assert ("[rank0]:[E" in log) is (version not in ("1.13", "2.1"))
    assert "epoch 0 step 3" in log
    told = json.loads((run / "replayed" / "truth.json").read_text(encoding="utf-8"))
    assert (told["real"], told["backend"]) == (False, "nccl")


def test_the_shares_below_the_table() -> None:
    """All runs, and of the culprits also those runs that have one to name."""
    known = {"also": (), "fault_type": "", "cause": "rank-crash"}
    results = [
        Result(name="a", culprits=(2,), or_none=False, named=("rank-crash",), ranks=(2,), **known),
        Result(name="b", culprits=(1,), or_none=False, named=("rank-crash",), ranks=(), **known),
        Result(name="c", culprits=(3,), or_none=True, named=("unknown",), ranks=(), **known),
        Result(name="d", culprits=(), or_none=False, named=("unknown",), ranks=(), **known),
    ]
    assert table(results, "log").splitlines()[-1] == (
        "log, 4 runs: injected cause first 2/4 (50 %), acceptable cause first 2/4 (50 %), "
        "in the first three 2/4 (50 %), culprit ranks right 3/4 (75 %), "
        "where there is one 1/2 (50 %)"
    )


def _copy(source: Path, target: Path) -> None:
    for path in source.rglob("*"):
        if path.is_file():
            copy = target / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
