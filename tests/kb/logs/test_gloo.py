"""Gloo's and torchrun's wording: what is a consequence, what is proof, and who is named."""

from __future__ import annotations

import pytest

from kb.logs import LogReader
from kb.text.line_kind import read_lines, words_of
from kb.types.incident import Incident

PAIR = "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:"
CLOSED = f"RuntimeError: {PAIR}553] Connection closed by peer [127.0.0.1]:27805. This is typically "
CLOSED += "caused by a remote worker crashing."
RESET = f"RuntimeError: {PAIR}537] Read error [127.0.0.1]:61145: Connection reset by peer. This is "
RESET += "typically caused by a remote worker hanging or bugs in the application."
BUFFER = "[/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78]"
WAITED = f"RuntimeError: {BUFFER} Timed out waiting 4000ms for recv operation to complete"
SIZES = f"[enforce fail at {PAIR[1:]}456] op.preamble.length <= op.nbytes. 1024 vs 512. Received "
SIZES += "data size doesn't match expected size. Is there a distributed collective mismatch in "
SIZES += "your code?"


def read(reader: LogReader, *lines: str) -> Incident:
    """The incident of these lines."""
    return reader.read_text("\n".join(lines)).incident


def names(incident: Incident) -> set[str]:
    """Names of the incident's facts."""
    return {fact.name for fact in incident.facts}


def culprits(incident: Incident) -> list[int]:
    """Ranks named."""
    return [culprit.rank for culprit in incident.culprit_ranks]


def barrier(rank: int) -> str:
    """What a waiting rank's monitored barrier prints."""
    return (
        f"Rank {rank} successfully reached monitoredBarrier, but received errors while waiting for "
        f"send/recv from rank 0. Please check rank 0 logs for faulty rank."
    )


def table(rows: dict[int, int], first: int) -> list[str]:
    """Torchrun's failures: exit code by rank, and which it observed first."""
    lines = ["Failures:"]
    for place, rank in enumerate([*(rank for rank in rows if rank != first), first]):
        if rank == first:
            lines.append("Root Cause (first observed failure):")
        lines += [
            f"[{place}]:",
            "  time      : 2026-11-20_11:50:16",
            "  host      : localhost",
            f"  rank      : {rank} (local_rank: {rank})",
            f"  exitcode  : {rows[rank]} (pid: {2000 + rank})",
            "  error_file: <N/A>",
        ]
    return lines


@pytest.mark.parametrize("text", [CLOSED, RESET, WAITED, f"RuntimeError: {barrier(2)}"])
@pytest.mark.parametrize("times", [1, 3])
def test_a_consequence_is_no_first_error(reader: LogReader, text: str, times: int) -> None:
    """However often and on how many ranks it is printed, nothing broke first here."""
    lines = [f"[default{rank}]:[rank{rank}]: {text}" for rank in range(2) for _ in range(times)]
    incident = read(reader, *lines)
    assert incident.first_error is None
    assert incident.has_timeout


@pytest.mark.parametrize("port", [61145, 34952])
def test_an_error_between_consequences_is_found(reader: LogReader, port: int) -> None:
    """The same rank's own error is not taken for the repeat of a consequence."""
    incident = read(
        reader,
        f"[rank0]: {RESET}",
        f"[rank1]: {RESET.replace('61145', str(port))}",
        "[rank2]: KeyError: 'dog'",
        f"[rank2]: {CLOSED}",
    )
    assert incident.first_error is not None
    assert (incident.first_error.rank, incident.first_error.line) == (2, 3)
    assert culprits(incident) == [2]
    assert "single_rank_error" in names(incident)


def test_the_roll_call_beats_the_waiters(reader: LogReader) -> None:
    """Ranks 1 and 2 reached the barrier and complain first; the roll call names rank 3."""
    incident = read(
        reader,
        f"[rank2]:[E1120 11:50:14.916304504 ProcessGroupGloo.cpp:67] {barrier(2)}",
        f"[rank2]: RuntimeError: {barrier(2)}",
        "[rank0]:[E1120 11:50:14.9 ProcessGroupGloo.cpp:67] [Rank 0]: Rank 3 failed to pass "
        "monitoredBarrier in 4000 ms",
        f"[rank1]: RuntimeError: {barrier(1)}",
        f"[rank3]: {CLOSED}",
        *table({2: 1, 3: 1, 1: -15, 0: 1}, first=0),
    )
    assert culprits(incident) == [3]
    assert incident.ranks_reporting == (0, 1, 2)
    assert "rank0_missing" not in names(incident)


def fingerprint(shown: str) -> str:
    """A fingerprint as ProcessGroupWrapper prints it; `shown` is the operation and the shape."""
    op, shape = shown.split()
    return (
        f"CollectiveFingerPrint(SequenceNumber=4, OpType={op}, TensorShape=[{shape}], "
        "TensorDtypes=Float, TensorDeviceTypes=TensorOptions(dtype=float (default), device=cpu, "
        "layout=Strided (default), requires_grad=false (default), pinned_memory=false (default), "
        "memory_format=(nullopt)))"
    )


def mismatch(rank: int, shown: str, other: int, others: str) -> str:
    """One rank's complaint in the debug mode."""
    return (
        f"[rank{rank}]: RuntimeError: Detected mismatch between collectives on ranks. Rank {rank} "
        f"is running collective: {fingerprint(shown)}, but Rank {other} is running collective: "
        f"{fingerprint(others)}.Collectives differ in the following aspects:"
    )


@pytest.mark.parametrize("odd", ["BROADCAST 1024", "ALLREDUCE 2048"])
@pytest.mark.parametrize("culprit", range(4))
def test_the_odd_fingerprint_is_named(reader: LogReader, odd: str, culprit: int) -> None:
    """Every rank complains, the right ones too; the one unlike the others is named."""
    usual = "ALLREDUCE 1024"
    right = [rank for rank in range(4) if rank != culprit]
    lines = [mismatch(rank, usual, culprit, odd) for rank in right]
    lines.insert(1, mismatch(culprit, odd, right[0], usual))
    incident = read(reader, *lines, *table(dict.fromkeys(range(4), 1), first=0))
    assert culprits(incident) == [culprit]
    assert incident.seq == 4
    assert "mismatch_proven" in names(incident)


def test_two_fingerprints_accuse_nobody(reader: LogReader) -> None:
    """One line shows that two ranks differ, not which of them is wrong."""
    incident = read(reader, mismatch(2, "ALLREDUCE 1024", 1, "BROADCAST 1024"))
    assert culprits(incident) == []
    assert incident.op == "ALLREDUCE"
    assert "mismatch_proven" in names(incident)


def test_torchruns_first_failure_may_be_a_signal(reader: LogReader) -> None:
    """SIGTERM on the first failure is the cause, on the others it is torchrun's own."""
    incident = read(
        reader,
        f"[rank3]: {CLOSED}",
        f"[rank1]: {CLOSED}",
        "E1120 12:11:15.015000 17272 torch/distributed/elastic/multiprocessing/api.py:1002] failed "
        "(exitcode: -15) local_rank: 2 (pid: 17285) of binary: /usr/bin/python",
        *table(dict.fromkeys(range(4), -15), first=2),
    )
    assert culprits(incident) == [2]
    assert incident.first_error is not None
    assert (incident.first_error.kind, incident.first_error.line) == ("signal_death", 3)


def test_the_first_to_time_out_is_not_to_blame(reader: LogReader) -> None:
    """Torchrun saw rank 0 fail first because it waited; the rank that never reports is named."""
    lines = [f"[rank{rank}]: {WAITED}" for rank in (0, 2, 3)]
    incident = read(reader, *lines, *table({3: 1, 1: -15, 2: 1, 0: 1}, first=0))
    assert culprits(incident) == [1]
    assert incident.ranks_reporting == (0, 2, 3)


def test_a_size_mismatch_is_no_crash(reader: LogReader) -> None:
    """The rank Gloo's size check ends is one side of a mismatch, not the rank to blame."""
    incident = read(
        reader,
        f"[rank2]: {RESET}",
        "[default1]:terminate called after throwing an instance of 'gloo::EnforceNotMet'",
        f"[default1]:  what():  {SIZES}",
        *table({0: -15, 2: -15, 3: -15, 1: -6}, first=1),
    )
    assert incident.first_error is not None
    assert incident.first_error.kind == "mismatch_detected"
    assert culprits(incident) == []
    assert "mismatch_proven" in names(incident)
    assert not {"single_rank_error", "first_error_before_timeout"} & names(incident)


def test_a_masked_limit_keeps_the_operation(reader: LogReader) -> None:
    """Who hides the number still shows what was waited for."""
    incident = read(reader, WAITED.replace("4000ms", "xxxx ms"))
    assert (incident.op, incident.timeout_ms) == ("recv", None)


def test_a_killed_peer_is_a_communication_failure(reader: LogReader) -> None:
    """Torchrun's table of several ranks with one killed counts, one killed script does not."""
    assert read(reader, *table({0: -15, 1: -15, 3: -9}, first=3)).has_timeout
    assert not read(reader, *table({0: -9}, first=0)).has_timeout


@pytest.mark.parametrize(
    ("text", "stage"),
    [
        (
            "Running tokenizer on dataset (num_proc=80):  12%|█▏ | 42/364 [01:38<17:19, 30 ex/s]",
            "data",
        ),
        ("Loading safetensors checkpoint shards: 99% Completed | 161/163 [32:07<00:19]", "load"),
    ],
    ids=["tokenizer", "shards"],
)
def test_a_silent_hang_has_a_stage(reader: LogReader, text: str, stage: str) -> None:
    """Where nothing failed in print, the last stage told is the stage."""
    assert read(reader, text).stage == stage


def test_launcher_output_is_nobodys_words() -> None:
    """What torchrun stamps and tabulates is left out of a person's words; sentences stay."""
    said = "the node fails at host a1, rank 3 dies"
    glog = "W1120 11:50:16.390000 2032 api.py:1028] Sending process 2035 closing signal SIGTERM"
    lines = [glog, *table({0: 1, 1: -15}, first=0)[2:8], "            ^^^^^^^^", said]
    assert [line.text for line in words_of(read_lines("\n".join(lines)))] == [said]


def test_a_storm_of_consequences_has_no_first_error(reader: LogReader) -> None:
    """Lines of a flood are sampled; their exceptions are still explained by what they say."""
    lines = [f"[rank{number % 64}]: {CLOSED}" for number in range(20_000)]
    assert read(reader, *lines).first_error is None
