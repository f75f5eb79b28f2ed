"""Tests of kb/evidence/ras.py on reports in the wording of NVIDIA's documentation."""

from __future__ import annotations

import json

import pytest

from kb.evidence.ras import looks_like_ras, read_ras

HEAD = """NCCL version 2.24.3 compiled with CUDA 12.6
CUDA runtime version 12.6, driver version 12.6

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      4        7-8            1         31       31

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         4       7-8        32        32   RUNNING  INCOMPLETE

"""
DEAD = (
    HEAD
    + """Errors
======

DEAD
  1 job process is considered dead (unreachable via the RAS network)
  Process 3487984 on node 172.16.64.213 managing GPU 5

#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 1 rank
  The missing rank: 21
"""
)
BEHIND = (
    HEAD
    + """Warnings
========

#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different collective operation counts
  26 ranks have launched up to operation 6650
  6 ranks have launched up to operation {low}
  Rank 0 -- GPU 0 managed by process 483072 on node 172.16.64.210
  Rank 2 -- GPU 2 managed by process 483074 on node 172.16.64.210
"""
)
ONE = (
    HEAD
    + """#0-0 (78db921d1c117b4a) MISMATCH
  Communicator ranks have different AllReduce operation counts
  7 ranks have launched up to operation 64
  Rank 7 has launched up to operation 60 -- GPU 3 managed by process 1650386 on node node1
"""
)


def test_the_missing_rank_is_named() -> None:
    """Dead process and missing rank: that rank, with the line as the reason."""
    reading = read_ras(DEAD)
    assert [culprit.rank for culprit in reading.culprits] == [21]
    assert "The missing rank: 21" in reading.culprits[0].reason.en
    assert reading.fault_type == "missing_rank"
    assert reading.versions == {"nccl": "2.24.3"}
    assert {"ras_dead", "ras_incomplete", "ras_rank_missing"} <= {f.name for f in reading.facts}
    for fact in reading.facts:
        assert fact.quote in DEAD.splitlines()[fact.line - 1]


@pytest.mark.parametrize(("low", "ranks"), [(6649, []), (6648, [0, 2]), (100, [0, 2])])
def test_one_operation_of_difference_is_ordinary(low: int, ranks: list[int]) -> None:
    """RAS samples a moving target: only a gap of two and more names the ranks behind."""
    reading = read_ras(BEHIND.format(low=low))
    assert [culprit.rank for culprit in reading.culprits] == ranks


def test_a_single_rank_behind_on_one_operation() -> None:
    """The form that puts count and rank on one line."""
    reading = read_ras(ONE)
    assert [culprit.rank for culprit in reading.culprits] == [7]
    assert reading.fault_type == "cpu_stall"
    for number in ("60", "64", "AllReduce"):
        assert number in reading.culprits[0].reason.en


def report(counts: dict[int, int], missing: tuple[int, ...] = ()) -> str:
    """A JSON report of one communicator."""
    where = {"host": "10.0.0.1", "pid": 7}
    return json.dumps(
        {
            "nccl_version": "2.29.1",
            "communicators_count": 1,
            "communicators": [
                {
                    "hash": "0xae94423cfbb2ef4a",
                    "size": len(counts) + len(missing),
                    "ranks": [
                        {"rank": rank, **where, "collective_counts": {"AllReduce": n, "Reduce": 0}}
                        for rank, n in counts.items()
                    ],
                    "missing_ranks": [
                        {
                            "rank": rank,
                            **where,
                            "status": {"unresponsive": True, "considered_dead": False},
                        }
                        for rank in missing
                    ],
                }
            ],
        }
    )


def test_json_says_the_same_as_text() -> None:
    """Missing ranks and low counts are named from JSON too."""
    reading = read_ras(report({0: 50, 1: 50, 2: 41}, missing=(3,)))
    assert [culprit.rank for culprit in reading.culprits] == [2, 3]
    assert reading.fault_type == "missing_rank"
    assert reading.versions == {"nccl": "2.29.1"}
    assert read_ras(report({0: 50, 1: 50, 2: 50})).culprits == ()


@pytest.mark.parametrize("text", ["{", '{"communicators": 3, "nccl_version": "2"}', "[]", ""])
def test_a_damaged_report_gives_no_facts(text: str) -> None:
    """Nothing is invented from what cannot be read."""
    reading = read_ras(text)
    assert (reading.culprits, reading.facts) == ((), ())


def test_numbers_of_thousands_of_digits_are_no_ranks() -> None:
    """A line with one is passed over."""
    text = DEAD + f"\n  Rank {'9' * 5000} has launched up to operation {'9' * 5000}\n"
    assert read_ras(text) == read_ras(DEAD)


def test_reports_are_told_from_other_text() -> None:
    """A log that mentions NCCL's version is no report."""
    assert looks_like_ras(DEAD)
    assert looks_like_ras(report({0: 1}))
    assert not looks_like_ras("node1:77:77 [0] NCCL INFO NCCL version 2.18.3+cuda12.1\n")
    assert not looks_like_ras('{"message": {"message": "x"}}')
