"""Tests of the flight-recorder rules on small hand-made jobs, one rule at a time."""

from __future__ import annotations

import json
import pickle
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kb.errors import InputError
from kb.evidence.collect import read_evidence
from kb.evidence.flight_recorder.analysis import analyse
from kb.evidence.flight_recorder.dump_file import parse_dump, version_pair
from kb.evidence.flight_recorder.unpickle import MAX_CONTAINERS
from kb.evidence.reading import EvidenceReading

WORLD = ("0", "default_pg")
MS = 1_000_000


def entry(record: int, seq: int, op: str = "all_reduce", **changes: Any) -> dict[str, Any]:
    """One entry as the recorder writes it, pending unless `state` says otherwise."""
    size = changes.pop("size", 1024)
    return {
        "record_id": record,
        "pg_id": changes.pop("pg_id", 0),
        "process_group": changes.pop("group", WORLD),
        "collective_seq_id": seq,
        "p2p_seq_id": changes.pop("p2p_seq", 0),
        "op_id": record,
        "profiling_name": f"{changes.pop('backend', 'nccl')}:{op}",
        "time_created_ns": changes.pop("created", record * MS),
        "input_sizes": [[size]],
        "input_dtypes": [changes.pop("dtype", "Float")],
        "output_sizes": [[changes.pop("out", size)]],
        "output_dtypes": ["Float"],
        "state": changes.pop("state", "scheduled"),
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": None,
        "retired": changes.pop("retired", False),
        "timeout_ms": 600_000,
        "is_p2p": changes.pop("p2p", False),
        **changes,
    }


def done(record: int, seq: int, op: str = "all_reduce", **changes: Any) -> dict[str, Any]:
    """A finished entry."""
    return entry(record, seq, op, state="completed", retired=True, **changes)


def dump(entries: Sequence[dict[str, Any]], world: int = 4, **changes: Any) -> dict[str, Any]:
    """One rank's dump of a job of `world` ranks in one group."""
    ranks = str(list(range(world)))
    return {
        "version": "2.10",
        "nccl_version": "2.27.3",
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": ranks}},
        "pg_status": {},
        "entries": list(entries),
        **changes,
    }


def judge(dumps: dict[int, dict[str, Any]]) -> EvidenceReading:
    """Read the dumps of ranks as files would be."""
    return analyse(
        [
            parse_dump(json.dumps(value).encode(), name=f"nccl_trace_rank_{rank}")
            for rank, value in dumps.items()
        ]
    )


def named(reading: EvidenceReading) -> list[int]:
    """The ranks named at fault."""
    return [culprit.rank for culprit in reading.culprits]


def facts(reading: EvidenceReading) -> set[str]:
    """Names of the facts."""
    return {fact.name for fact in reading.facts}


FIRST = [done(0, 1), done(1, 2)]


@pytest.mark.parametrize(
    ("odd", "kind"),
    [
        pytest.param({"op": "broadcast"}, "op", id="operation"),
        pytest.param({"size": 7}, "size", id="size"),
        pytest.param({"dtype": "Half"}, "dtype", id="type"),
    ],
)
def test_one_number_two_operations_is_a_mismatch(odd: dict[str, Any], kind: str) -> None:
    """The smaller side is named; the collective shown is the one they disagree on."""
    reading = judge({r: dump([*FIRST, entry(2, 3, **(odd if r == 2 else {}))]) for r in range(4)})
    assert (reading.fault_type, named(reading)) == ("mismatch", [2])
    assert f"fr_mismatch_{kind}" in {fact.name for fact in reading.facts}
    assert reading.collective is not None
    assert (reading.collective.seq, str(reading.collective.group)) == (3, "0 (default_pg)")
    assert f"fr_mismatch_{kind}" in facts(reading)


def test_two_against_two_names_nobody() -> None:
    """A mismatch without a smaller side is proven, and its ranks stay suspects."""
    reading = judge({r: dump([*FIRST, entry(2, 3, size=8 + r % 2)]) for r in range(4)})
    assert reading.fault_type == "mismatch"
    assert named(reading) == []
    assert reading.facts[0].detail.startswith("rank 0, 1, 2, 3: ")


@pytest.mark.parametrize("op", ["all_to_all", "gather", "scatter", "all_gather"])
def test_operations_that_may_differ_are_no_mismatch(op: str) -> None:
    """All-to-all, gather and scatter have their own sizes on every rank, and that is right."""
    sizes = {"all_to_all": {}, "gather": {}, "scatter": {}, "all_gather": {"out": 4096}}[op]
    reading = judge(
        {
            r: dump([*FIRST, entry(2, 3, op, **({"size": 10 + r} | sizes))])
            if op in ("all_to_all", "all_gather")
            else dump([*FIRST, entry(2, 3, op)])
            for r in range(4)
        }
    )
    assert reading.fault_type != "mismatch"


def test_a_number_finished_elsewhere_and_pending_here_is_this_gpu() -> None:
    """An all-reduce cannot finish on a peer without this rank's data: this device stopped."""
    job = {r: dump([*FIRST, done(2, 3), entry(3, 4)]) for r in range(4)}
    job[1] = dump([*FIRST, entry(2, 3), entry(3, 4)])
    reading = judge(job)
    assert (reading.fault_type, named(reading)) == ("gpu_stall", [1])
    assert "fr_pending_more" in facts(reading)
    assert "3" in reading.culprits[0].reason.en
    assert "3" in reading.culprits[0].reason.zh


@pytest.mark.parametrize(
    ("op", "backend"), [("broadcast", "nccl"), ("reduce", "nccl"), ("all_reduce", "gloo")]
)
def test_roots_and_cpu_backends_prove_no_gpu_stall(op: str, backend: str) -> None:
    """A root may finish a broadcast alone, and Gloo has no device."""
    job = {r: dump([*FIRST, entry(2, 3, op, backend=backend)]) for r in range(4)}
    job[0] = dump([*FIRST, done(2, 3, op, backend=backend)])
    assert judge(job).fault_type != "gpu_stall"


def test_a_rank_that_issued_less_and_waits_for_nothing_stopped_on_the_host() -> None:
    """Nothing pending and behind: the program of that rank is elsewhere."""
    job = {r: dump([*FIRST, entry(2, 3)]) for r in range(4)}
    job[3] = dump(FIRST)
    reading = judge(job)
    assert (reading.fault_type, named(reading)) == ("cpu_stall", [3])
    assert {"fr_behind", "fr_no_entries", "fr_other_rank_behind"} <= facts(reading)
    states = {state.rank: state for state in reading.ranks}
    assert (states[3].last_enqueued, states[0].last_enqueued) == (2, 3)
    assert (states[0].last_completed, states[0].state, states[3].state) == (2, "waiting", "culprit")


def test_a_rank_without_any_operation_never_came() -> None:
    """Rank 0 has recorded nothing at all while the others wait in their first barrier."""
    job = {r: dump([entry(0, 1, "barrier", size=1)]) for r in range(4)}
    job[0] = dump([])
    reading = judge(job)
    assert (reading.fault_type, named(reading)) == ("cpu_stall", [0])
    assert {"fr_only_rank0_behind", "fr_tiny_collective"} <= facts(reading)


def test_a_second_stopped_rank_is_named_though_it_waits_too() -> None:
    """It has pending what its peers have pending, and they went further all the same."""
    ahead = [*FIRST, entry(2, 3), entry(3, 4), entry(4, 5)]
    job = {r: dump(ahead, world=6) for r in range(6)}
    job[1] = dump(FIRST, world=6)
    job[4] = dump(ahead[:-1], world=6)
    reading = judge(job)
    assert (reading.fault_type, named(reading)) == ("cpu_stall", [1, 4])


def test_a_rank_without_a_dump_for_whom_all_wait_is_missing() -> None:
    """Everyone present has come; the one that is absent has not."""
    reading = judge({r: dump([*FIRST, entry(2, 3)]) for r in (0, 1, 3)})
    assert (reading.fault_type, named(reading), reading.absent) == ("missing_rank", [2], (2,))


def test_dumps_that_were_not_collected_prove_nothing() -> None:
    """Two of sixteen dumps: fourteen absent ranks are no culprits."""
    reading = judge({r: dump([*FIRST, entry(2, 3)], world=16) for r in (0, 1)})
    assert named(reading) == []
    assert "fr_dumps_incomplete" in facts(reading)


def test_a_circle_of_waits_is_a_desync() -> None:
    """Two groups used in another order by one rank: it is the one all others wait for."""
    first, second = ("1", "tensor"), ("2", "data")
    config = {
        name: {"name": name, "desc": desc, "ranks": "[0, 1, 2, 3]"}
        for name, desc in (first, second)
    }

    def history(group: tuple[str, str], pg_id: int) -> list[dict[str, Any]]:
        return [
            done(0, 1, group=first, pg_id=1),
            done(1, 1, group=second, pg_id=2),
            entry(2, 2, group=group, pg_id=pg_id),
        ]

    job = {r: dump(history(first, 1), pg_config=config) for r in range(4)}
    job[2] = dump(history(second, 2), pg_config=config)
    reading = judge(job)
    assert (reading.fault_type, named(reading)) == ("desync", [2])
    assert "fr_wait_cycle" in facts(reading)


def test_few_that_wait_for_most_are_not_the_only_suspects() -> None:
    """One rank waits in a collective three have not come to: nobody is named for certain."""
    job = {r: dump(FIRST) for r in range(4)}
    job[3] = dump([*FIRST, entry(2, 3)])
    reading = judge(job)
    assert (reading.fault_type, named(reading)) == ("desync", [])
    assert "fr_few_wait" in facts(reading)


def test_all_in_the_same_collective_names_no_rank() -> None:
    """All came and none finished: network, link or device, the dumps cannot say which."""
    reading = judge({r: dump([*FIRST, entry(2, 3)]) for r in range(4)})
    assert (reading.fault_type, named(reading)) == ("unknown", [])
    assert "fr_all_same_collective" in facts(reading)


def test_started_on_all_but_one_names_the_device_that_did_not_start() -> None:
    """With timing switched on, the rank still at scheduled has a device that never got there."""
    job = {r: dump([*FIRST, entry(2, 3, state="started")]) for r in range(4)}
    job[1] = dump([*FIRST, entry(2, 3)])
    reading = judge(job)
    assert (reading.fault_type, named(reading)) == ("gpu_stall", [1])


def test_the_rank_that_always_comes_last_is_a_straggler() -> None:
    """Rank 2 came last by half a second every time, and is the one waited for now."""
    late = {2: 500 * MS}
    history = {
        r: [done(i, i + 1, created=i * 1000 * MS + late.get(r, r)) for i in range(8)]
        for r in range(4)
    }
    job = {r: dump([*history[r], entry(8, 9, created=9000 * MS)]) for r in range(4)}
    job[2] = dump(history[2])
    reading = judge(job)
    assert (reading.fault_type, named(reading)) == ("straggler", [2])
    assert "0.5" in reading.culprits[0].reason.en


def test_a_finished_job_has_no_culprit() -> None:
    """Everything completed: no fault, and that is a fact."""
    reading = judge({r: dump(FIRST) for r in range(4)})
    assert (reading.fault_type, named(reading)) == ("unknown", [])
    assert "fr_nothing_pending" in facts(reading)


def test_versions_are_number_pairs() -> None:
    """2.10 is newer than 2.9, whatever the float says."""
    assert version_pair("2.10") > version_pair("2.9") > version_pair("2.4")
    old, new = dump([*FIRST, entry(2, 3)], version="2.9"), dump([*FIRST, entry(2, 3)])
    assert judge({0: old, 1: new, 2: old, 3: old}).versions["flight_recorder"] == "2.10"
    for wrong in ("", "2", "two.ten", "2.1.0", "-1.2"):
        with pytest.raises(InputError):
            version_pair(wrong)


@pytest.mark.parametrize("how", ["pickle", "json"])
def test_pickle_and_json_read_alike(how: str, tmp_path: Path) -> None:
    """The same dump as pickle or JSON, and through files, gives the same reading."""
    job = {r: dump([*FIRST, entry(2, 3)]) for r in range(4)}
    job[3] = dump(FIRST)
    for rank, value in job.items():
        content = pickle.dumps(value, 2) if how == "pickle" else json.dumps(value).encode()
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(content)
    assert read_evidence([tmp_path]).dumps == judge(job)


def test_a_refused_file_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    """A hostile file among good ones ends up in `problems`; alone it ends the reading."""
    for rank in (0, 1, 2):
        (tmp_path / f"dump_{rank}").write_text(json.dumps(dump([*FIRST, entry(2, 3)])))
    bad = tmp_path / "dump_3"
    bad.write_bytes(b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R.")
    evidence = read_evidence([tmp_path])
    assert evidence.dumps is not None
    assert evidence.dumps.present == (0, 1, 2)
    assert [problem.file for problem in evidence.problems] == ["dump_3"]
    with pytest.raises(InputError, match="dump_3"):
        read_evidence([bad])


@pytest.mark.parametrize(
    "value",
    [
        pytest.param([], id="a-list"),
        pytest.param({"hello": 1}, id="something-else"),
        pytest.param({"entries": [], "version": "3.0"}, id="future-format"),
        pytest.param({"entries": [], "version": 2.4}, id="version-is-a-number"),
    ],
)
def test_what_is_no_dump_is_refused(value: object) -> None:
    """Another structure or a format this program does not know ends with the file's name."""
    with pytest.raises(InputError, match=r"dump_0|format version"):
        parse_dump(json.dumps(value).encode(), name="dump_0")


def test_numbers_no_recorder_writes_count_as_absent(tmp_path: Path) -> None:
    """A pickle holds numbers of any size; one of thousands of digits cannot even be printed."""
    huge = 10**300
    odd = entry(2, huge, created=huge, size=huge) | {"input_sizes": [[10**9] * 16] * 64}
    value = dump([*FIRST, odd | {"profiling_name": f"nccl:send {huge}->1"}])
    read = parse_dump(pickle.dumps(value, 2), name="dump_0").entries[-1]
    assert (read.seq, read.created_ns, read.peer) == (0, 0, None)
    assert (read.numel_in, read.numel_out) == (0, 0)


def test_what_entries_share_is_not_written_out() -> None:
    """A long text that many entries share, or holds many times, takes its place once."""
    long = "a" * 10_000
    same = entry(9, 9, pg_id=[long] * 100) | {"input_dtypes": [long] * 64}
    data = pickle.dumps(dump([*FIRST, *[same] * 1000]), 4)
    tracemalloc.start()
    try:
        read = parse_dump(data, name="dump_0").entries
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(read) == 1002
    assert {len(item.group_id) for item in read} <= {1, 2}
    assert {item.dtypes[:64] for item in read[2:]} == {("",) * 64}
    assert peak < 8 * 2**20


@pytest.mark.parametrize("ranks", ["0, 1, " * 100_000, [0, 1] * 100_000], ids=["text", "list"])
def test_groups_that_share_their_ranks_are_bounded(ranks: object) -> None:
    """A rank list written once and shared among a hundred groups costs no more than a job's."""
    group = {"name": "", "desc": "", "ranks": ranks}
    shared = dump(FIRST, pg_config={str(number): group for number in range(100)})
    with pytest.raises(InputError, match=r"dump_0 (?:lists more ranks|holds more than)"):
        parse_dump(pickle.dumps(shared, 4), name="dump_0")


def test_json_of_too_many_lists_is_refused() -> None:
    """Three bytes that take sixty in memory are refused before they are read."""
    data = b'{"entries": [' + b"[]," * MAX_CONTAINERS + b"0]}"
    with pytest.raises(InputError, match="dump_0 holds more than"):
        parse_dump(data, name="dump_0")


def test_odd_fields_count_as_absent() -> None:
    """Wrong types inside a dump (a dying process) neither fail nor invent anything."""
    broken = dump(
        [*FIRST, {"record_id": "x", "profiling_name": 7, "input_sizes": 3, "frames": [1]}, 5],
        pg_config={"0": [1], "1": {"ranks": "none"}},
        pg_status={"0": {"last_enqueued_collective": "many"}},
    )
    reading = judge({0: broken, 1: dump([*FIRST, entry(2, 3)], world=2)})
    assert reading.present == (0, 1)


def test_a_rank_is_needed_in_the_name() -> None:
    """Without a rank a dump cannot be placed."""
    with pytest.raises(InputError, match="rank"):
        parse_dump(json.dumps(dump([])).encode(), name="trace")
