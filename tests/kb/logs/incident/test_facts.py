"""Facts: tables of events and exactly the facts they give."""

from __future__ import annotations

import pytest

from kb.logs.incident.facts import find_facts
from kb.types.incident import Event
from tests.kb.logs.builders import event, facts, observed, report

PROGRESS = {
    "none_completed",
    "gap_enqueued_completed",
    "enqueued_beyond_timeout",
    "nothing_beyond_timeout",
    "enqueued_equals_completed_plus_one",
}


def progress(rank: int, enqueued: int, completed: int | None, seq: int | None = None) -> Event:
    """A rank's progress line."""
    values = {"enqueued": enqueued, "completed": completed, "seq": seq}
    known = {key: value for key, value in values.items() if value is not None}
    return event("rank_progress", rank + 1, rank=rank, group="0", **known)


@pytest.mark.parametrize(
    ("enqueued", "completed", "seq", "expected"),
    [
        (51, 49, 50, {"enqueued_beyond_timeout"}),
        (50, 49, 50, {"nothing_beyond_timeout", "enqueued_equals_completed_plus_one"}),
        (49, 48, 50, {"enqueued_equals_completed_plus_one"}),
        (49, 47, 50, set()),
        (58, 49, 58, {"nothing_beyond_timeout"}),
        (59, 49, 59, {"nothing_beyond_timeout", "gap_enqueued_completed"}),
        # without a number the timed-out work is the one after the last completed
        (50, 49, None, {"nothing_beyond_timeout", "enqueued_equals_completed_plus_one"}),
        (51, 49, None, {"enqueued_beyond_timeout"}),
        (49, 49, None, set()),
        (
            1,
            0,
            1,
            {"none_completed", "nothing_beyond_timeout", "enqueued_equals_completed_plus_one"},
        ),
        (1, -1, 1, {"none_completed", "nothing_beyond_timeout"}),
        (2, 1, 2, {"nothing_beyond_timeout", "enqueued_equals_completed_plus_one"}),
        (51, None, 50, set()),
    ],
)
def test_progress_of_a_rank(
    enqueued: int, completed: int | None, seq: int | None, expected: set[str]
) -> None:
    """What was enqueued and completed, beside the number that timed out."""
    details = facts(progress(0, enqueued, completed, seq))
    assert PROGRESS & details.keys() == expected
    assert {details[name] for name in expected} <= {f"enqueued {enqueued}, completed {completed}"}


@pytest.mark.parametrize(
    ("enqueued", "behind"),
    [
        ((50, 50, 49, 50), "2"),
        ((49, 50, 49, 50), "0,2"),
        ((49, 50, 49), None),
        ((50, 50), None),
        ((50, 49), "1"),
        ((50,), None),
    ],
)
def test_ranks_behind(enqueued: tuple[int, ...], behind: str | None) -> None:
    """The ranks at the lowest number, if they are no more than half and not all."""
    events = [progress(rank, value, value - 1) for rank, value in enumerate(enqueued)]
    assert facts(*events).get("rank_behind") == behind


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        # three ranks agree; two prove nothing
        ([report(rank + 1, rank) for rank in range(3)], {"mismatch_excluded": "3 ranks agree"}),
        ([report(rank + 1, rank) for rank in range(2)], {}),
        # another size, another operation at one number
        (
            [report(1, 0), report(2, 1), report(3, 2, numel_in=8)],
            {"mismatch_proven": "rank 0,1: ALLREDUCE(1000); rank 2: ALLREDUCE(8)"},
        ),
        (
            [report(1, 0), report(2, 1, op="BROADCAST")],
            {"mismatch_proven": "rank 0: ALLREDUCE(1000); rank 1: BROADCAST(1000)"},
        ),
        ([report(1, 0), report(2, 1, op="BROADCAST", numel_in=None)], {"different_ops_hang": ""}),
        # another number with another operation: they hang in different places
        (
            [report(1, 0), report(2, 1), report(3, 2, op="BROADCAST", seq=51, numel_in=8)],
            {"different_ops_hang": "rank 0,1: ALLREDUCE(1000) 50; rank 2: BROADCAST(8) 51"},
        ),
        # a send and its receive differ by nature
        ([report(1, 0, op="SEND"), report(2, 1, op="RECV")], {}),
        (
            [report(1, 0, op="SEND"), report(2, 1, op="ALLREDUCE", seq=51)],
            {"different_ops_hang": ""},
        ),
        # agreement says nothing where sizes are partly unknown, or a rank is behind
        ([report(1, 0), report(2, 1), report(3, 2, numel_in=None)], {}),
        ([*(report(rank + 1, rank) for rank in range(3)), report(4, 3, seq=49)], {}),
        # other groups
        (
            [report(rank + 1, rank, group=str(rank % 2)) for rank in range(2)],
            {"different_groups_hang": "0,1"},
        ),
    ],
)
def test_agreement_of_ranks(reports: list[Event], expected: dict[str, str]) -> None:
    """Whether ranks run the same collective, a different one, or hang elsewhere."""
    names = {"mismatch_proven", "mismatch_excluded", "different_ops_hang", "different_groups_hang"}
    details = facts(*reports)
    assert names & details.keys() == expected.keys()
    assert {name: details[name] for name, detail in expected.items() if detail} == {
        name: detail for name, detail in expected.items() if detail
    }


def test_a_mismatch_the_debug_mode_proves() -> None:
    """The odd rank is named where most ranks agree; two complaints of one kind name nobody."""
    own = {"seq": 5, "op": "ALLREDUCE", "shape": "8", "peer_op": "ALLREDUCE", "peer_shape": "4"}
    first = event("mismatch_detected", 1, rank=0, peer=2, **own)
    second = event("mismatch_detected", 2, rank=1, peer=2, **own)
    assert facts(first, second)["mismatch_proven"] == "rank 2"
    assert facts(first)["mismatch_proven"] == ""


@pytest.mark.parametrize(
    ("reporting", "world", "expected"),
    [
        ((0,), None, {"single_rank_reports": "0", "rank0_only": ""}),
        ((1,), None, {"single_rank_reports": "1"}),
        ((0, 1), None, {}),
        ((0, 2), None, {"ranks_missing": "1"}),
        ((1, 2), None, {"ranks_missing": "0", "rank0_missing": ""}),
        ((0, 1), 2, {"all_ranks_report": "2"}),
        ((0, 1), 4, {"ranks_missing": "2,3"}),
        ((0,), 4, {"single_rank_reports": "0", "rank0_only": ""}),
        ((1, 3), 4, {"ranks_missing": "0,2"}),
        ((0,), 1, {"single_rank_reports": "0", "rank0_only": ""}),
    ],
)
def test_who_reports(
    reporting: tuple[int, ...], world: int | None, expected: dict[str, str]
) -> None:
    """Who reports and who is missing, with and without a known world size."""
    events = [report(rank + 1, rank) for rank in reporting]
    if world is not None:
        events.append(event("parallel_size", 99, name="world_size", size=world))
    names = {"ranks_missing", "rank0_missing", "single_rank_reports", "rank0_only"}
    details = facts(*events)
    found = {name: details[name] for name in details.keys() & (names | {"all_ranks_report"})}
    if world == 1:  # the size of a part: it says nothing about the whole
        assert "all_ranks_report" not in found
    assert found == expected


def test_all_ranks_in_one_work() -> None:
    """Three ranks agree and none is missing; with a gap it is not all of them."""
    assert "all_ranks_same_op_none_completed" in facts(*(report(r + 1, r) for r in range(3)))
    gap = facts(*(report(r + 1, r) for r in (0, 1, 3)))
    assert "mismatch_excluded" in gap
    assert "all_ranks_same_op_none_completed" not in gap


@pytest.mark.parametrize(
    ("op", "numel", "expected"),
    [
        ("ALLREDUCE", 1, {"tiny_numel": "1", "scalar_allreduce": "", "op_allreduce": ""}),
        ("ALLREDUCE", 2, {"tiny_numel": "2", "op_allreduce": ""}),
        ("BROADCAST", 1, {"tiny_numel": "1", "op_broadcast": ""}),
        ("_ALLGATHER_BASE", 16, {"tiny_numel": "16", "op_allgather_base": ""}),
        ("ALLREDUCE", 17, {"op_allreduce": ""}),
        ("ALLREDUCE", (1 << 20) - 1, {"op_allreduce": ""}),
        ("ALLREDUCE", 1 << 20, {"large_numel": "1048576", "op_allreduce": ""}),
        ("ALLREDUCE", None, {"op_allreduce": ""}),
        (None, 4, {"tiny_numel": "4"}),
    ],
)
def test_the_collective(op: str | None, numel: int | None, expected: dict[str, str]) -> None:
    """Its operation and how many elements go into it."""
    details = facts(report(op=op, numel_in=numel))
    names = {"tiny_numel", "scalar_allreduce", "large_numel"}
    assert {n: d for n, d in details.items() if n in names or n.startswith("op_")} == expected


@pytest.mark.parametrize(
    ("seq", "expected"),
    [
        (None, set()),
        (0, {"first_collective"}),
        (1, {"first_collective"}),
        (2, {"early_seq"}),
        (5, {"early_seq"}),
        (6, set()),
        (99, set()),
        (100, {"mid_training_seq"}),
        (9_999, {"mid_training_seq"}),
        (10_000, {"mid_training_seq", "large_seq"}),
    ],
)
def test_the_position(seq: int | None, expected: set[str]) -> None:
    """How many collectives the group had run."""
    names = {"first_collective", "early_seq", "mid_training_seq", "large_seq"}
    details = facts(report(seq=seq))
    assert names & details.keys() == expected
    assert {details[name] for name in expected} <= {str(seq)}


@pytest.mark.parametrize(
    ("limit", "ran", "expected"),
    [
        (600_000, None, {"default_timeout_600s"}),
        (1_800_000, None, {"default_timeout_1800s"}),
        (600_001, None, {"custom_timeout"}),
        (120_001, None, {"custom_timeout"}),
        (120_000, None, {"custom_timeout", "short_timeout"}),
        (1_800, 180_000, {"custom_timeout", "short_timeout"}),
        (1_800, 180_001, {"custom_timeout", "short_timeout", "timeout_in_wrong_unit"}),
        (99_999, 9_999_901, {"custom_timeout", "short_timeout", "timeout_in_wrong_unit"}),
        (100_000, 10_000_001, {"custom_timeout", "short_timeout"}),
        (None, 600_000, set()),
        (0, None, set()),
    ],
)
def test_the_limit(limit: int | None, ran: int | None, expected: set[str]) -> None:
    """Which limit was in force, and whether its unit slipped."""
    names = {"custom_timeout", "short_timeout", "timeout_in_wrong_unit"}
    names |= {"default_timeout_600s", "default_timeout_1800s"}
    details = facts(report(timeout_ms=limit, ran_ms=ran))
    assert names & details.keys() == expected


@pytest.mark.parametrize(
    ("value", "ignored"),
    [
        ("3600", "NCCL_TIMEOUT=3600, limit 600000 ms"),
        ("600", None),
        ("600000", None),
        ("10m", None),
        ("", None),
    ],
)
def test_the_setting_nobody_reads(value: str, ignored: str | None) -> None:
    """NCCL_TIMEOUT is ignored where the log shows another limit, in seconds or milliseconds."""
    setting = event("setting", 1, name="NCCL_TIMEOUT", value=value)
    assert facts(setting, report(2, timeout_ms=600_000)).get("nccl_timeout_ignored") == ignored


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([report(5)], {"only_timeout_lines": ""}),
        ([event("cuda_oom", 4, rank=1), report(5)], {"first_error_before_timeout": "cuda_oom"}),
        ([event("cuda_oom", 5, rank=0), report(5)], {"first_error_before_timeout": "cuda_oom"}),
        ([report(5), event("cuda_oom", 6, rank=0)], {"error_after_timeout": "cuda_oom"}),
        (
            [report(5, file="a"), event("cuda_oom", 6, file="b")],
            {"first_error_before_timeout": "cuda_oom"},
        ),
        ([event("cuda_oom", 4, rank=1)], {"no_timeout_line": "cuda_oom"}),
        ([event("peer_closed", 4, rank=1)], {"cascade_only": ""}),
        ([event("peer_closed", 4, rank=1), report(5)], {"only_timeout_lines": ""}),
        ([event("mismatch_detected", 4, rank=1), report(5)], {}),
        ([event("train_step", 4)], {}),
    ],
)
def test_errors_and_timeouts(events: list[Event], expected: dict[str, str]) -> None:
    """What broke first, beside the first timeout of its file."""
    names = {"first_error_before_timeout", "error_after_timeout", "only_timeout_lines"}
    names |= {"cascade_only", "no_timeout_line"}
    details = facts(*events)
    assert {name: details[name] for name in names & details.keys()} == expected


@pytest.mark.parametrize(
    ("others", "single"),
    [
        ([report(5, 1)], "3"),
        ([event("peer_closed", 5, rank=1)], "3"),
        ([report(5, 3)], None),
        ([], None),
    ],
)
def test_an_error_of_one_rank(others: list[Event], single: str | None) -> None:
    """The error is one rank's where another rank waits or fails after it."""
    assert facts(event("cuda_oom", 4, rank=3), *others).get("single_rank_error") == single
    assert "single_rank_error" not in facts(event("cuda_oom", 4), *others)


EIGHT = [
    event("parallel_size", rank + 1, host="a", rank=rank, name="nranks", size=8)
    for rank in range(8)
]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([event("train_step", 1, host="a")], {}),
        (
            [
                event("parallel_size", 1, host="a", rank=0, name="world_size", size=2),
                event("train_step", 2, host="a", rank=1),
            ],
            {"single_node": "a"},
        ),
        (  # the other rank may print elsewhere
            [
                event("parallel_size", 1, host="a", rank=0, name="world_size", size=2),
                event("train_step", 2, rank=1),
            ],
            {},
        ),
        (EIGHT, {"single_node": "a"}),
        ([*EIGHT, event("parallel_size", 9, host="a", rank=8, name="nranks", size=9)], {}),
        (
            [
                event("train_step", 1, host="b"),
                event("parallel_size", 2, host="a", name="world_size", size=8),
            ],
            {"multi_node": "a,b"},
        ),
        ([event("ib_devices", 1)], {"transport_ib": ""}),
        ([event("network", 1, what="IB")], {"transport_ib": ""}),
        (
            [event("peer_closed", 1, host="a", addr="10.0.0.2:1234")],
            {"multi_node": "10.0.0.2,a"},
        ),
        # a peer on loopback is on the same host
        (
            [event("peer_closed", 1, host="a", addr="127.0.0.1:1234")],
            {},
        ),
        ([event("peer_closed", 1, host="a", addr="[fe80::1]:1")], {}),
        ([event("network", 1, what="Socket")], {"transport_socket": ""}),
        ([event("network", 1, what="NET/Socket")], {"transport_socket": ""}),
        ([event("channel", 1, what="P2P")], {"transport_p2p": ""}),
        ([event("channel", 1, what="SHM")], {"transport_shm": ""}),
        ([event("channel", 1, what="NET/IB")], {"multi_node": "", "transport_ib": ""}),
        ([event("channel", 1)], {}),
        ([event("interface", 1, iface="eth0")], {}),
        ([event("interface", 1, iface="docker0")], {"transport_wrong_interface": "if:docker0"}),
        ([event("interface", 1, iface="lo")], {"transport_wrong_interface": "if:lo"}),
        ([event("interface", 1)], {}),
        ([event("setting", 1, name="NCCL_P2P_DISABLE", value="1.")], {}),
    ],
)
def test_the_machine(events: list[Event], expected: dict[str, str]) -> None:
    """Nodes by hosts, peers and channels; one node where all ranks print; no settings."""
    details = facts(*events)
    prefixes = ("single_node", "multi_node", "transport_", "setting_")
    assert {n: d for n, d in details.items() if n.startswith(prefixes)} == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("vllm-x", {"framework_vllm": "", "inference_server": "vllm", "vllm_engine": ""}),
        ("sglang-x", {"framework_sglang": "", "inference_server": "sglang"}),
        ("deepspeed-x", {"framework_deepspeed": ""}),
        ("torch-x", {}),
        ("gloo-x", {"backend_gloo": ""}),
        ("rccl-x", {"backend_rccl": ""}),
    ],
)
def test_who_printed(pattern: str, expected: dict[str, str]) -> None:
    """Backend and framework by the first word of the pattern's id."""
    details = facts(event("train_step", pattern=pattern))
    names = ("framework_", "backend_", "inference_server", "vllm_engine")
    assert {n: d for n, d in details.items() if n.startswith(names)} == expected


@pytest.mark.parametrize(
    ("distance", "near"), [(-200, True), (-201, False), (200, True), (201, False)]
)
@pytest.mark.parametrize(
    ("name", "fact", "only_near"),
    [
        ("evaluating", "at_eval", True),
        ("preprocessing", "tokenizer_or_map_progress_nearby", True),
        ("unused_parameters", "unused_parameters", False),
    ],
)
def test_events_beside_the_failure(
    name: str, fact: str, only_near: bool, distance: int, near: bool
) -> None:
    """Some events are facts wherever they stand, some only within 200 lines of the failure."""
    there = facts(event(name, 1000 + distance), report(1000))
    assert (fact in there) is (near or not only_near)
    elsewhere = facts(event(name, 1000 + distance, file="b"), report(1000, file="a"))
    assert (fact in elsewhere) is (not only_near)
    assert fact in facts(event(name, 5))


@pytest.mark.parametrize(
    ("events", "last"),
    [
        ([event("init_complete", 5)], True),
        ([event("init_complete", 5), event("train_step", 6)], False),
        ([event("init_complete", 5), event("bar", 5)], True),
        ([event("init_complete", 5), event("evaluating", 6)], False),
        ([event("init_complete", 5), event("train_step", 6), event("init_complete", 7)], True),
        ([event("train_step", 6)], False),
        ([event("init_complete", 5), report(9, 0, seq=5)], True),
        ([event("init_complete", 5), report(9, 0, seq=6)], False),
    ],
)
def test_initialisation_came_last(events: list[Event], last: bool) -> None:
    """Communicators came up and no work followed the last of them, nor did the group number any."""
    assert ("init_complete_last" in facts(*events)) is last


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (1, "exit_code_1"),
        (0, "exit_code_0"),
        (-9, "signal_9"),
        (128, "exit_code_128"),
        (129, "signal_1"),
        (137, "signal_9"),
        (159, "signal_31"),
        (160, "exit_code_160"),
    ],
)
def test_ends_of_processes(code: int, expected: str) -> None:
    """Exit codes as printed; shells print 128 + signal."""
    names = facts(event("exit_row", exit_code=code))
    assert [n for n in names if n.startswith(("exit_code_", "signal_"))] == [expected]
    assert expected in facts(event("exit_row", return_code=code))


@pytest.mark.parametrize(
    ("magic", "http"),
    [
        ("74656d2f20544547", True),  # GET /met
        ("20544547", True),  # zeros in front are not printed
        ("2f2f2f2f54534f50", True),
        ("2f2f2f2f44414548", True),
        ("2f2f2f2f20545550", True),
        ("2f2f2f2f4954504f", True),
        ("2f2f2f2f2f2f2f2f", False),
        ("xyz", False),
        ("", False),
    ],
)
def test_http_on_the_wrong_port(magic: str, http: bool) -> None:
    """The eight bytes that came instead of NCCL's own spell a request, little-endian."""
    assert ("magic_number_http" in facts(event("wrong_magic", magic=magic))) is http


def test_facts_stand_on_the_first_line_that_shows_them() -> None:
    """Each name once, by name; line, file and quote are those of the first event."""
    events = [report(3, 0, file="a"), report(9, 1, file="a"), event("exit_row", 20, exit_code=1)]
    made = find_facts(observed(*events, event("exit_row", 30, exit_code=1)))
    assert [fact.name for fact in made] == sorted({fact.name for fact in made})
    lines = {fact.name: (fact.file, fact.line, fact.quote) for fact in made}
    assert lines["op_allreduce"] == ("a", 3, "collective_timeout on line 3")
    assert lines["exit_code_1"] == ("", 20, "exit_row on line 20")
    assert lines["backend_nccl"] == ("", 0, "")


COMPARED = {
    "same_call_hangs",
    "call_in_group",
    "silent_rank_alive",
    "other_rank_silent",
    "rank_came_late",
    "ended_from_outside",
    "rank_lost_by_all",
}


def stands(rank: int, code: str = "dist.all_reduce(x)") -> list[Event]:
    """A rank that timed out in a call."""
    frames = "all_reduce (/torch/distributed/distributed_c10d.py:3)\ntrain (/job/train.py:40)"
    return [
        event("traceback", rank + 1, rank=rank, frames=frames, code=code),
        event("gloo_timeout", rank + 20, rank=rank),
    ]


def ended(*ranks: int) -> list[Event]:
    """Ranks that the launcher ended."""
    return [
        item
        for rank in ranks
        for item in (
            event("sigterm", 50 + rank, process=rank),
            event("exit_row", 60 + rank, rank=rank, exit_code=-15, pid=rank),
        )
    ]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([*stands(0), *stands(1), *stands(2)], {"same_call_hangs": "all_reduce() train.py:40"}),
        (
            [*stands(0, "dist.all_reduce(x, group=tp)"), *stands(1), *stands(2)],
            {"same_call_hangs": "all_reduce() train.py:40", "call_in_group": "train.py:40"},
        ),
        # two ranks are too few to say so, and a rank that is not shown may be elsewhere
        ([*stands(0), *stands(1)], {}),
        ([*stands(0), *stands(1), *stands(3)], {}),
        (
            [*stands(0), *stands(1), *stands(3), *ended(2)],
            {"silent_rank_alive": "rank 2", "other_rank_silent": "rank 2"},
        ),
        ([*stands(1), *stands(2), *stands(3), *ended(0)], {"silent_rank_alive": "rank 0"}),
        ([*stands(1), *ended(0, 2, 3)], {}),
    ],
)
def test_ranks_compared_by_place_and_ending(events: list[Event], expected: dict[str, str]) -> None:
    """Everyone in one call, or a silent rank that lived; rank 0 works alone, others do not."""
    details = facts(*sorted(events, key=lambda item: item.line))
    assert {name: details[name] for name in COMPARED & details.keys()} == expected
