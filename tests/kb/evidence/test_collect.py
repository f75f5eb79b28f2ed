"""Tests of kb/evidence/collect.py: mixed folders, and what merging changes in an incident."""

from __future__ import annotations

import gzip
import json
import lzma
import pickle
import tarfile
import zipfile
from pathlib import Path

import pytest

from kb.errors import InputError
from kb.evidence.collect import CollectedEvidence, add_evidence, read_evidence
from kb.types.incident import Culprit, Fact, FirstError, Incident, RankState
from kb.types.knowledge import Bilingual
from tests.kb.evidence.flight_recorder.test_analysis import FIRST, dump, entry
from tests.kb.evidence.test_ras import DEAD
from tests.kb.evidence.test_stacks import PLACES, elsewhere, waiting

OOM_KILL = "[84512.391845] Out of memory: Killed process 48213 (python) total-vm:1kB\n"
WORDS = Bilingual(zh="日志所说", en="as the log says")


def write_job(folder: Path, *, behind: int = 3, odd: dict[int, int] | None = None) -> Path:
    """Dumps of four ranks; `behind` has not come, `odd` gives sizes by rank."""
    for rank in range(4):
        last = [] if rank == behind else [entry(2, 3, size=(odd or {}).get(rank, 1024))]
        (folder / f"nccl_trace_rank_{rank}").write_text(json.dumps(dump([*FIRST, *last])))
    return folder


def names(incident: Incident) -> set[str]:
    """Names of the facts."""
    return {fact.name for fact in incident.facts}


def ranks(incident: Incident) -> list[int]:
    """Culprit ranks."""
    return [culprit.rank for culprit in incident.culprit_ranks]


def mixed(folder: Path) -> CollectedEvidence:
    """A folder with one of everything, in sub-folders too."""
    write_job(folder)
    (folder / "stacks").mkdir()
    for rank in (0, 1, 2):
        (folder / "stacks" / f"r{rank}.txt").write_text(waiting(rank))
    (folder / "stacks" / "r3.txt").write_text(elsewhere(3, PLACES["data"]))
    (folder / "dmesg.txt").write_text(OOM_KILL)
    (folder / "ras.txt").write_text(DEAD)
    (folder / "train.log").write_text("step 1 loss 2.0\n")
    (folder / "core.bin").write_bytes(bytes(100))
    return read_evidence([folder])


def test_files_are_told_by_content(tmp_path: Path) -> None:
    """Each kind is read whatever its name; logs and binaries are left alone and named."""
    evidence = mixed(tmp_path)
    assert evidence.dumps is not None
    assert evidence.dumps.present == (0, 1, 2, 3)
    assert [reading.kind for reading in evidence.readings] == ["kernel", "ras", "stacks"]
    assert sorted(evidence.ignored) == ["core.bin", "train.log"]
    assert evidence.problems == ()


def test_an_empty_incident_is_filled(tmp_path: Path) -> None:
    """Without a log the dumps alone give op, number, ranks, culprit and fault type."""
    incident = add_evidence(Incident(), read_evidence([write_job(tmp_path)]))
    assert (incident.backend, incident.op, incident.seq) == ("nccl", "all_reduce", 3)
    assert (incident.numel_in, incident.timeout_ms, incident.world_size) == (1024, 600_000, 4)
    assert (incident.ranks_reporting, incident.ranks_silent) == ((0, 1, 2), (3,))
    assert (incident.fault_type, ranks(incident)) == ("cpu_stall", [3])
    assert incident.has_timeout
    assert incident.versions == {"flight_recorder": "2.10", "nccl": "2.27.3"}


def test_what_the_log_says_stays(tmp_path: Path) -> None:
    """Values of the log are kept; gaps in its rank table are filled."""
    log = Incident(
        backend="nccl",
        op="ALLREDUCE",
        seq=77,
        ranks=(RankState(rank=0, last_op="ALLREDUCE", line=5),),
        facts=(Fact(name="tiny_numel", line=5),),
        versions={"nccl": "2.20"},
    )
    incident = add_evidence(log, mixed(tmp_path))
    assert (incident.op, incident.seq) == ("ALLREDUCE", 77)
    assert incident.versions["nccl"] == "2.20"
    assert incident.facts[0] == log.facts[0]
    assert {"fr_behind", "stack_in_data", "kernel_oom_kill", "ras_dead"} <= names(incident)
    assert all(fact.line == 0 for fact in incident.facts[1:])
    first = incident.ranks[0]
    assert (first.last_op, first.line, first.last_enqueued) == ("ALLREDUCE", 5, 3)
    assert add_evidence(log, mixed_again(tmp_path)) == incident


def mixed_again(folder: Path) -> CollectedEvidence:
    """The same folder read once more: the result does not depend on the call."""
    return read_evidence([folder])


def test_a_rank_that_broke_in_the_log_outranks_the_dumps(tmp_path: Path) -> None:
    """An error of its own is stronger than who waits for whom."""
    log = Incident(
        culprit_ranks=(Culprit(rank=1, reason=WORDS, line=9),),
        first_error=FirstError(rank=1, line=9, kind="exception", text="KeyError"),
    )
    incident = add_evidence(log, read_evidence([write_job(tmp_path)]))
    assert incident.culprit_ranks == log.culprit_ranks


def test_a_proven_mismatch_outranks_the_rank_that_broke(tmp_path: Path) -> None:
    """The rank that reads the wrong size breaks; the one that sent it is at fault."""
    log = Incident(
        culprit_ranks=(Culprit(rank=1, reason=WORDS, line=9),),
        first_error=FirstError(rank=1, line=9, kind="enforce", text="op.preamble.length"),
    )
    evidence = read_evidence([write_job(tmp_path, behind=-1, odd={2: 7})])
    incident = add_evidence(log, evidence)
    assert (ranks(incident), incident.fault_type) == ([2], "mismatch")
    assert "fr_mismatch_explains" in names(incident)


def test_the_dumps_outrank_guesses_of_the_log(tmp_path: Path) -> None:
    """Ranks the log only calls silent give way to the recorder's, which stand on no line."""
    log = Incident(culprit_ranks=(Culprit(rank=0, reason=WORDS, line=4),))
    incident = add_evidence(log, read_evidence([write_job(tmp_path)]))
    assert [(c.rank, c.line) for c in incident.culprit_ranks] == [(3, 0)]


def test_a_missing_dump_is_no_proof_while_other_ranks_are_unaccounted_for(tmp_path: Path) -> None:
    """The log knows six ranks, the dumps four: the absent one may be any of three."""
    write_job(tmp_path, behind=-1)
    (tmp_path / "nccl_trace_rank_2").unlink()
    evidence = read_evidence([tmp_path])
    assert ranks(add_evidence(Incident(), evidence)) == [2]
    assert ranks(add_evidence(Incident(world_size=6), evidence)) == []


def test_a_rank_that_left_its_dump_and_no_error_is_alive(tmp_path: Path) -> None:
    """Only log and dumps together say so: with an error of its own it may be dead by now."""
    evidence = read_evidence([write_job(tmp_path)])
    other = FirstError(rank=0, line=3, kind="gloo", text="Timed out waiting")
    own = FirstError(rank=3, line=3, kind="exception", text="KeyError")
    assert "fr_host_alive" in names(add_evidence(Incident(first_error=other), evidence))
    assert "fr_host_alive" not in names(add_evidence(Incident(first_error=own), evidence))


def test_stacks_alone_name_the_odd_rank(tmp_path: Path) -> None:
    """Without dumps the stacks' odd rank is the culprit."""
    for rank in (0, 1, 2):
        (tmp_path / f"{rank}.txt").write_text(waiting(rank))
    (tmp_path / "3.txt").write_text(elsewhere(3, PLACES["save"]))
    incident = add_evidence(Incident(), read_evidence([tmp_path]))
    assert ranks(incident) == [3]
    assert [state.state for state in incident.ranks] == ["collective"] * 3 + ["save"]


def test_secrets_do_not_come_through(tmp_path: Path) -> None:
    """Evidence is redacted like a log before anything is quoted."""
    token = "hf_" + "a1B2" * 9
    line = OOM_KILL.replace("(python)", f"(python --token={token})")
    (tmp_path / "dmesg.txt").write_text(line)
    incident = add_evidence(Incident(), read_evidence([tmp_path]))
    assert names(incident) == {"kernel_oom_kill"}
    assert incident.has_timeout  # a kernel log alone is answered too
    assert token not in repr(incident)


def test_what_is_refused_stands_in_the_incident(tmp_path: Path) -> None:
    """A dump that would run code is named with the reason; the others are read."""
    write_job(tmp_path)
    (tmp_path / "nccl_trace_rank_2").write_bytes(b"\x80\x02cos\nsystem\n.")
    incident = add_evidence(Incident(), read_evidence([tmp_path]))
    (unread,) = incident.unread
    assert unread.file == "nccl_trace_rank_2"
    assert unread.reason.startswith("holds the pickle opcode GLOBAL ('os system')")
    assert ranks(incident) == [3]


def test_beside_a_log_even_nothing_readable_is_no_error(tmp_path: Path) -> None:
    """Where there is a log to answer from, every file that says nothing is named."""
    (tmp_path / "core.bin").write_bytes(bytes(100))
    (tmp_path / "dump_3").write_bytes(b"\x80\x02cos\nsystem\n.")
    evidence = read_evidence([tmp_path], alone=False)
    assert evidence.empty
    assert [unread.file for unread in evidence.problems] == ["dump_3", "core.bin"]


@pytest.mark.parametrize("what", ["nothing", "no-such-path", "only-logs", "hostile"])
def test_nothing_usable_is_an_error_with_a_next_step(what: str, tmp_path: Path) -> None:
    """The message says why, and what to pass instead."""
    path = tmp_path / "missing" if what == "no-such-path" else tmp_path
    if what == "only-logs":
        (tmp_path / "train.log").write_text("step 1\n")
    if what == "hostile":
        (tmp_path / "dump_3").write_bytes(b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R.")
    with pytest.raises(InputError) as caught:
        read_evidence([path])
    assert caught.value.todo
    if what == "hostile":
        assert "dump_3" in str(caught.value)
        assert "os system" in str(caught.value)


def test_packed_dumps_are_read_or_refused_with_what_to_do(tmp_path: Path) -> None:
    """A dump may be compressed and end in .pkl; an archive of several is named as one."""
    data = pickle.dumps({"version": "2.4", "pg_status": {}, "pg_config": {}, "entries": []}, 2)
    (tmp_path / "nccl_trace_rank_0.gz").write_bytes(gzip.compress(data))
    (tmp_path / "nccl_trace_rank_1.pkl").write_bytes(data)
    (tmp_path / "nccl_trace_rank_2.pkl.xz").write_bytes(lzma.compress(data))
    (tmp_path / "model.pt").write_bytes(pickle.dumps({"weight": [0.1]}, 2))
    with tarfile.open(tmp_path / "dumps.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "model.pt", "nccl_trace_rank_3")
    with zipfile.ZipFile(tmp_path / "dumps.zip", "w") as packed:
        packed.writestr("nccl_trace_rank_4", data)
    evidence = read_evidence([tmp_path])
    assert evidence.dumps is not None
    assert evidence.dumps.present == (0, 1, 2)
    assert evidence.ignored == ("model.pt",)
    assert [(item.file, item.code) for item in evidence.problems] == [
        ("dumps.tar.gz", "archive"),
        ("dumps.zip", "archive"),
    ]
