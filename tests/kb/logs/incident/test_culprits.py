"""Ranks the evidence points to: tables of events, ranks and reasons."""

from __future__ import annotations

import pytest

from kb.knowledge.labels import in_both_languages
from kb.logs.incident.culprits import MAX_CULPRITS, find_culprits
from kb.types.incident import Event
from tests.kb.logs.builders import event, knowledge, observed, report


def culprits(*events: Event) -> list[tuple[int, str, int]]:
    """Rank, English reason and line of each culprit."""
    found = find_culprits(observed(*events))
    return [(culprit.rank, culprit.reason.en, culprit.line) for culprit in found]


def because(name: str, **values: object) -> str:
    """The English words of a reason."""
    return in_both_languages(knowledge().labels, f"culprit.{name}", **values).en


def fingerprint(line: int, rank: int | None, shape: str, peer: int | None, other: str) -> Event:
    """One rank's complaint in the debug mode."""
    fields = {"seq": 5, "op": "ALLREDUCE", "shape": shape, "peer_op": "ALLREDUCE"}
    known = fields | ({} if peer is None else {"peer": peer, "peer_shape": other})
    return event("mismatch_detected", line, rank=rank, **known)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], []),
        ([report(1, 0)], []),
        # the first error, unless every rank meets it
        ([event("cuda_oom", 1, rank=3)], [(3, because("first_error", kind="cuda_oom"), 1)]),
        ([event("cuda_oom", 1)], []),
        ([event("store_connect", 1, rank=3)], []),
        # signals but the watchdog's and the launcher's
        ([event("exit_row", 1, rank=3, exit_code=-9)], [(3, because("exit_code", code=-9), 1)]),
        ([event("exit_row", 1, rank=3, exit_code=-6)], []),
        ([event("exit_row", 1, rank=3, exit_code=-15)], []),
        ([event("exit_row", 1, rank=3, exit_code=1)], []),
        ([event("exit_row", 1, exit_code=-9)], []),
        # each rank once, the strongest reason first
        (
            [event("cuda_oom", 1, rank=3), event("exit_row", 2, rank=3, exit_code=-9)],
            [(3, because("first_error", kind="cuda_oom"), 1)],
        ),
        # a fingerprint unlike most; a tie accuses nobody
        (
            [fingerprint(1, 0, "8", 2, "4"), fingerprint(2, 1, "8", 2, "4")],
            [(2, because("odd_fingerprint", seq=5, own="ALLREDUCE[4]", usual="ALLREDUCE[8]"), 1)],
        ),
        ([fingerprint(1, 0, "8", 2, "4")], []),
        ([fingerprint(1, 0, "8", 2, "8")], []),
        # ranks that others name
        (
            [event("desync_report", 4, peers="3, 7, x")],
            [(3, because("desync_report"), 4), (7, because("desync_report"), 4)],
        ),
        ([event("monitored_barrier", 4, rank=0, peers="3")], [(3, because("roll_call"), 4)]),
        (
            [event("barrier_waiter", 4, rank=1, peer=2), event("barrier_waiter", 5, rank=3)],
            [(0, because("awaited"), 4), (2, because("awaited"), 4)],
        ),
        (
            [
                event("barrier_waiter", 4, rank=1, peer=2),
                event("monitored_barrier", 5, rank=0, peers="3"),
            ],
            [(3, because("roll_call"), 5)],
        ),
        (
            [event("peer_closed", 4, peer=2), event("peer_closed", 5, peer=2)],
            [(2, because("peer_closed"), 4)],
        ),
        ([event("peer_closed", 4, peer=2), event("peer_closed", 5, peer=3)], []),
        ([event("peer_closed", 4)], []),
        # another collective than most
        (
            [report(1, 0), report(2, 1), report(3, 2, numel_in=8)],
            [(2, because("odd_work", seq=50, own="ALLREDUCE(8)", usual="ALLREDUCE(1000)"), 3)],
        ),
        ([report(1, 0), report(2, 1, numel_in=8)], []),
        # behind, and the launcher's word
        ([report(1, 0, seq=5), report(2, 1, seq=4)], [(1, because("behind"), 2)]),
        (
            [event("root_cause_row", 10), event("exit_row", 18, rank=2, exit_code=1)],
            [(2, because("first_failure"), 18)],
        ),
        ([event("root_cause_row", 10), event("exit_row", 19, rank=2, exit_code=1)], []),
        ([event("root_cause_row", 10), event("exit_row", 10, rank=2, exit_code=1)], []),
        ([event("root_cause_row", 10), event("exit_row", 18, rank=2, exit_code=-6)], []),
        (
            [event("root_cause_row", 10), event("exit_row", 18, rank=2, exit_code=-15)],
            [(2, because("first_failure"), 18)],
        ),
        ([event("root_cause_row", 10), event("exit_row", 18, rank=2)], []),
        ([event("root_cause_row", 10, file="a"), event("exit_row", 18, rank=2, exit_code=1)], []),
        (
            [report(1, 2), event("root_cause_row", 10), event("exit_row", 18, rank=2, exit_code=1)],
            [],
        ),
        (
            [
                report(1, 2),
                event("root_cause_row", 10),
                event("exit_row", 18, rank=2, exit_code=-15),
            ],
            [(2, because("first_failure"), 18)],
        ),
        (
            [
                event("root_cause_row", 10),
                event("exit_row", 12, rank=2, exit_code=1),
                event("exit_row", 13, rank=3, exit_code=1),
            ],
            [(2, because("first_failure"), 12)],
        ),
        # the one silent rank, where silence is the exception: at most 34 of 100
        ([report(1, 0), report(2, 2), report(3, 3)], [(1, because("silent"), 1)]),
        ([report(1, 0), report(2, 2)], [(1, because("silent"), 1)]),
        ([report(1, 1), report(2, 3)], []),
    ],
)
def test_culprits(events: list[Event], expected: list[tuple[int, str, int]]) -> None:
    """Which ranks are named, why, and by which line."""
    assert culprits(*events) == expected


def test_sources_rank_by_strength() -> None:
    """A weaker reason names nobody where a stronger one does; sixteen at most."""
    weak = [report(1, 0, seq=5), report(2, 1, seq=4)]
    strong = event("desync_report", 9, peers=",".join(map(str, range(20))))
    assert [rank for rank, _, _ in culprits(*weak, strong)] == list(range(MAX_CULPRITS))
    crash = event("exit_row", 3, rank=7, exit_code=-11)
    assert [rank for rank, _, _ in culprits(*weak, strong, crash)] == [7]


def test_reasons_are_in_both_languages() -> None:
    """The sentence of the labels, in Chinese too."""
    (culprit,) = find_culprits(observed(event("exit_row", 1, rank=3, exit_code=-9, file="a")))
    assert culprit.reason == in_both_languages(knowledge().labels, "culprit.exit_code", code=-9)
    assert culprit.file == "a"


@pytest.mark.parametrize(
    ("others", "named"),
    [
        ([], [3]),
        # the same number of another group is another collective
        ([event("parallel_size", 9, name="tensor_parallel_size", size=4)], []),
        ([report(7, 0, seq=5, group="dp"), report(8, 1, seq=5, group="tp")], []),
    ],
)
def test_numbers_of_two_groups_prove_nothing(others: list[Event], named: list[int]) -> None:
    """Without names of groups one number is one collective only where there is one group."""
    same = [report(rank + 1, rank, seq=40) for rank in range(3)]
    found = culprits(*same, report(4, 3, seq=40, op="ALLGATHER", numel_in=3), *others)
    assert [rank for rank, _, _ in found] == named
