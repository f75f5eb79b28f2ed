"""The board counts what is in the incidents: a table of entries and exact figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kb.errors import InputError
from kb.incidents.board import Board, board_of, monday
from kb.incidents.records import IncidentFilters, IncidentRecord, records_of, selected, short_host
from kb.types.entries import CauseClaim, Entry, Tags
from tests.kb.incidents.builders import OOM, TIMEOUT, at, cause, fixed, incident


def board(*entries: Entry) -> Board:
    """The board of these entries."""
    return board_of(records_of(entries))


def record(entry: Entry) -> IncidentRecord:
    """The only record."""
    (only,) = records_of([entry])
    return only


def test_an_empty_board() -> None:
    """Without incidents every list is empty and no mean is made up."""
    empty = board(replace(incident(1), kind="case"))
    assert (empty.incidents, empty.open, empty.mean_hours_to_resolve) == (0, 0, None)
    assert (empty.weeks, empty.causes, empty.recurring, empty.offenders) == ((), (), (), ())


def test_figures_by_cause_week_place_and_tag() -> None:
    """Each value with its number of incidents, the open ones, and their ids, the latest first."""
    shown = board(
        incident(1, causes=cause("network-fault"), culprits=at(3, "gpu-07", "3"), project="a/b"),
        incident(2, causes=cause("network-fault"), date="2026-11-09", labels=("night", "prod")),
        incident(3, date="2026-11-15", labels=("prod",), **fixed("rebooted")),
    )
    assert (shown.incidents, shown.open, shown.resolved) == (3, 2, 1)
    rows = [(t.name, t.incidents, t.open, t.ids) for t in shown.causes]
    assert rows == [
        ("network-fault", 2, 2, ("incident-02", "incident-01")),
        ("unknown", 1, 0, ("incident-03",)),
    ]
    assert [(w.week, w.cause, w.incidents) for w in shown.weeks] == [
        ("2026-11-02", "network-fault", 1),
        ("2026-11-09", "network-fault", 1),
        ("2026-11-09", "unknown", 1),
    ]
    assert [(t.name, t.ids) for t in shown.hosts] == [("gpu-07", ("incident-01",))]
    assert [(t.name, t.ids) for t in shown.gpus] == [("gpu-07 3", ("incident-01",))]
    assert [(t.name, t.ids) for t in shown.ranks] == [("3", ("incident-01",))]
    assert [(t.name, t.incidents) for t in shown.projects] == [("a/b", 1)]
    assert [(t.name, t.incidents) for t in shown.labels] == [("prod", 2), ("night", 1)]


@pytest.mark.parametrize(
    ("day", "week"),
    [("2026-11-02", "2026-11-02"), ("2026-11-08", "2026-11-02"), ("2026-11", ""), ("", "")],
)
def test_weeks_begin_on_monday(day: str, week: str) -> None:
    """A day's week is called by its Monday; a date that is not whole has none."""
    assert monday(day) == week


def test_what_recurs_and_what_fixed_it() -> None:
    """One failure on other ranks with other numbers is one group; its fixes are counted."""
    other = OOM.replace("rank3", "rank12").replace("2.00", "14.06").replace("GPU 3", "GPU 1")
    oom = {"causes": cause("oom")}
    shown = board(
        incident(1, signature=(OOM,), culprits=at(3, "gpu-07"), **oom, **fixed("Smaller batch")),
        incident(2, signature=(other,), culprits=at(1, "gpu-08"), **oom, **fixed("smaller batch ")),
        incident(3, signature=(other,), culprits=at(1, "gpu-08"), date="2026-11-20", **oom),
        incident(4, signature=(TIMEOUT,), tags=Tags(ops=("ALLREDUCE",), stage="train")),
        incident(5, signature=(TIMEOUT,), tags=Tags(ops=("ALLGATHER",), stage="train")),
    )
    (group,) = shown.recurring
    assert group.ids == ("incident-03", "incident-01", "incident-02")
    assert (group.cause, group.incidents, group.open) == ("oom", 3, 1)
    assert (group.first_date, group.last_date) == ("2026-11-02", "2026-11-20")
    assert group.hosts == ("gpu-08", "gpu-07")
    assert [(f.fix.title, f.fix.commands, f.ids) for f in group.fixes] == [
        ("Smaller batch", ("reboot",), ("incident-01", "incident-02"))
    ]


def test_another_cause_is_another_group() -> None:
    """The same line with two causes does not recur."""
    shown = board(
        incident(1, signature=(OOM,), causes=cause("oom")),
        incident(2, signature=(OOM,), causes=cause("rank-crash")),
    )
    assert shown.recurring == ()


def test_repeat_offenders() -> None:
    """A GPU that stood out twice is named; its host only where it stood out more often."""
    shown = board(
        incident(1, culprits=at(3, "gpu-07.cluster", "3 (1b:00)"), causes=cause("gpu-hardware")),
        incident(2, culprits=at(None, "gpu-07", "1b:00"), causes=cause("gpu-hardware")),
        incident(3, culprits=at(11, "gpu-08", "3")),
        incident(4, culprits=at(11, "gpu-08", "3")),
        incident(5, culprits=at(12, "gpu-08", "4")),
        incident(6, culprits=at(12, "gpu-09", "4")),
        incident(7, culprits=at(12, "", "4")),
    )
    assert [(o.host, o.gpu, o.incidents, o.causes) for o in shown.offenders] == [
        ("gpu-08", "", 3, ("unknown",)),
        ("gpu-07", "3 (1b:00)", 2, ("gpu-hardware",)),
        ("gpu-08", "3", 2, ("unknown",)),
    ]


@pytest.mark.parametrize(
    ("date", "added", "resolved", "hours"),
    [
        ("", "2026-11-02T10:00:00Z", "2026-11-02T16:30:00Z", 6.5),
        ("2026-11-02", "2026-11-02T10:00:00Z", "2026-11-02T16:00:00Z", 6.0),
        ("2026-11-01", "2026-11-02T10:00:00Z", "2026-11-02T16:00:00Z", 6.0),
        ("2026-10-01", "2026-11-02T10:00:00Z", "2026-10-03T00:00:00Z", 48.0),
        ("2026-11-02", "", "2026-11-03T00:00:00+00:00", 24.0),
        ("", "", "2026-11-02T16:00:00Z", None),
        ("", "2026-11-02T10:00:00Z", "", None),
        ("", "2026-11-02T10:00:00Z", "2026-11-01T10:00:00Z", None),
        ("some day", "2026-11-02T10:00:00Z", "2026-11-02T11:00:00Z", 1.0),
    ],
)
def test_time_to_resolve(date: str, added: str, resolved: str, hours: float | None) -> None:
    """From when it was handed in, of an old log from its day; unknown rather than negative."""
    entry = incident(1, **{**fixed("x", added=added, on=resolved), "date": date})
    assert record(entry).hours_to_resolve == hours
    assert board(entry).mean_hours_to_resolve == hours


def test_the_mean_is_over_those_with_times() -> None:
    """Incidents without a time of resolution count for nothing in the mean."""
    start, end = "2026-11-02T10:00:00Z", "2026-11-02T{:02}:00:00Z"
    shown = board(
        incident(1, **fixed("x", added=start, on=end.format(11))),
        incident(2, **fixed("x", added=start, on=end.format(14))),
        incident(3, **fixed("x")),
    )
    assert (shown.mean_hours_to_resolve, shown.timed, shown.resolved) == (2.5, 2, 3)


def test_the_day_without_a_date() -> None:
    """A log without dates counts on the day it was added."""
    assert record(incident(1, date="", added_on="2026-11-04T10:00:00Z")).date == "2026-11-04"


def test_a_contradicted_cause_is_none() -> None:
    """What somebody contradicted does not count; the outcome stands before a suggestion."""
    claims = (
        CauseClaim(id="oom", status="contradicted"),
        CauseClaim(id="network-fault", status="confirmed"),
    )
    assert record(incident(1, causes=claims)).cause == "network-fault"
    assert record(incident(1, causes=claims[:1])).cause == "unknown"


@pytest.mark.parametrize(
    ("host", "short"),
    [("gpu-07.cluster.local", "gpu-07"), ("10.0.0.1", "10.0.0.1"), ("fe80::1", "fe80::1")],
)
def test_hosts_without_domains(host: str, short: str) -> None:
    """Names lose their domain, addresses stay."""
    assert short_host(host) == short


MANY = records_of(
    [
        incident(
            1, causes=cause("oom"), culprits=at(3, "gpu-07.x", "3 (1b:00)"), labels=("Night",)
        ),
        incident(2, date="2026-11-20", culprits=at(0, "gpu-08", "3"), project="a/b"),
        incident(3, date="2026-12-01", **fixed("x")),
    ]
)


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        (IncidentFilters(), [3, 2, 1]),
        (IncidentFilters(cause=("oom",)), [1]),
        (IncidentFilters(cause=("oom", "unknown")), [3, 2, 1]),
        (IncidentFilters(host=("GPU-07.other",)), [1]),
        (IncidentFilters(gpu=("3",)), [2, 1]),
        (IncidentFilters(gpu=("1b:00",)), [1]),
        (IncidentFilters(rank=("0",)), [2]),
        (IncidentFilters(project=("A/B",)), [2]),
        (IncidentFilters(label=("night",)), [1]),
        (IncidentFilters(resolved=True), [3]),
        (IncidentFilters(resolved=False, host=("gpu-08",)), [2]),
        (IncidentFilters(since="2026-11-20"), [3, 2]),
        (IncidentFilters(until="2026-11"), [2, 1]),
        (IncidentFilters(host=("gpu-07",), rank=("0",)), []),
    ],
)
def test_filters(filters: IncidentFilters, ids: list[int]) -> None:
    """One value of each filter is enough, all filters have to pass."""
    assert [int(r.id[-2:]) for r in selected(MANY, filters)] == ids


@pytest.mark.parametrize(
    ("filters", "known"),
    [
        (IncidentFilters(host=("gpu-09",)), "gpu-07, gpu-08"),
        (IncidentFilters(cause=("ooms",)), "oom, unknown"),
        (IncidentFilters(rank=("7",)), "0, 3"),
        (IncidentFilters(label=("nigth",)), "Night"),
    ],
)
def test_a_value_that_nothing_has_is_refused(filters: IncidentFilters, known: str) -> None:
    """A misspelt filter is no empty list; what there is is named."""
    with pytest.raises(InputError) as refused:
        selected(MANY, filters)
    assert refused.value.reason == "no_such_value"
    assert refused.value.values["known"] == known


def test_of_one_day_the_newest_comes_first() -> None:
    """By the time they were added, ties by id; another day counts before that."""
    morning, evening = "2026-11-02T08:00:00Z", "2026-11-02T20:00:00Z"
    records = records_of(
        [
            incident(1, added_on=morning),
            incident(4, added_on=evening),
            incident(3, added_on=evening),
            incident(2, added_on=morning, date="2026-11-03"),
        ]
    )
    assert [record.id[-2:] for record in records] == ["02", "03", "04", "01"]
