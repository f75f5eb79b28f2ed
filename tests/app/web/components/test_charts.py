"""What the pictures of an incident are drawn from, and the log windows beside them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.web.components import charts
from app.web.components.charts import (
    LEAST_BAR,
    MAX_ROWS,
    RankGroup,
    is_telling,
    progress_html,
    rank_groups,
    timeline_chart,
    timeline_points,
)
from app.web.views.quality import reliability_chart
from kb.knowledge.labels import Words
from kb.types.incident import Event, FirstError, RankState
from kb.types.knowledge import Bilingual
from kb.types.vocabulary import Language

Labels = dict[str, Bilingual]


def event(line: int, *, kind: str = "timeout", rank: int | None = 0, at: float | None = 0) -> Event:
    """A small event."""
    return Event(
        pattern_id="p",
        kind=kind,  # type: ignore[arg-type]
        event="e",
        line=line,
        text=f"line {line}",
        rank=rank,
        time_s=at,
    )


def test_moments_are_the_events_that_say_what_went_wrong() -> None:
    """Facts and progress are no moments; order and lines are those of the log."""
    kinds = ("fact", "root", "context", "timeout", "noise", "cascade", "teardown")
    events = [event(at, kind=kind, at=float(at)) for at, kind in enumerate(kinds, start=1)]
    found = timeline_points(events)
    assert [(point.line, point.kind) for point in found] == [
        (2, "root"),
        (4, "timeout"),
        (6, "cascade"),
        (7, "teardown"),
    ]
    assert [point.at_s for point in found] == [0.0, 2.0, 4.0, 5.0]


@pytest.mark.parametrize(
    "times",
    [(5.0, None), (5.0, 5.0), (12_007_459.0, 1_779_232_364.0)],
    ids=["one without", "no span", "two clocks"],
)
def test_time_is_an_axis_only_where_one_clock_timed_all(times: tuple[float | None, ...]) -> None:
    """Otherwise the line is: a wrong distance would be worse than none."""
    assert {point.at_s for point in timeline_points([event(1, at=time) for time in times])} == {
        None
    }


def test_a_storm_is_thinned_and_keeps_the_roots() -> None:
    """At most `limit` points; every original error is one of them."""
    events = [event(at, kind="root" if at % 1000 == 0 else "timeout") for at in range(1, 20_001)]
    found = timeline_points(events, limit=500)
    assert len(found) <= 500
    assert {point.line for point in found if point.kind == "root"} == set(range(1000, 20_001, 1000))
    assert [point.line for point in found] == sorted({point.line for point in found})
    assert found[-1].line > 19_000


def state(rank: int, enqueued: int | None, completed: int | None = None) -> RankState:
    """What is known of a rank."""
    return RankState(rank=rank, last_enqueued=enqueued, last_completed=completed)


def test_the_rank_behind_comes_first() -> None:
    """Few ranks have a row each, the least far first, culprits marked."""
    rows = rank_groups([state(0, 9, 8), state(1, 9, 8), state(2, 7, 6)], culprits=[2])
    assert [(row.name, row.culprit, row.completed, row.enqueued) for row in rows] == [
        ("2", True, 6, 7),
        ("0", False, 8, 9),
        ("1", False, 8, 9),
    ]


def test_a_thousand_ranks_are_a_few_rows() -> None:
    """Ranks that got equally far are one row; the one behind stands alone."""
    states = [state(rank, 100, 99) for rank in range(2048) if rank != 77] + [state(77, 98, 97)]
    rows = rank_groups(states, culprits=[77])
    assert [(row.name, row.ranks, row.culprit) for row in rows] == [
        ("77", 1, True),
        ("0-76, 78-2047", 2047, False),
    ]


def test_when_all_differ_those_behind_the_culprits_and_the_crowd_are_shown() -> None:
    """The number of rows is bounded; none of the three is left out."""
    states = [state(rank, 1000 + rank) for rank in range(500)]
    states += [state(rank, 5000) for rank in range(500, 700)]
    rows = rank_groups(states, culprits=[400])
    assert len(rows) == MAX_ROWS
    assert rows[0].name == "0"
    assert "400" in {row.name for row in rows if row.culprit}
    assert max(row.ranks for row in rows) == 200


def test_nothing_known_is_no_picture() -> None:
    """One rank alone, or ranks of which nothing is counted, give no rows."""
    assert rank_groups([state(0, 5)]) == ()
    assert rank_groups([RankState(rank=0, last_seq=5, state="crashed")]) == ()
    assert rank_groups([state(0, 5), RankState(rank=1, state="silent")]) == ()
    assert rank_groups([RankState(rank=rank, state="silent") for rank in range(4)]) == ()


def test_ranks_that_got_equally_far_are_no_picture() -> None:
    """A picture is of a difference: none where all got equally far, unless one of them failed."""
    equal = [state(rank, 9, 8) for rank in range(4)]
    assert rank_groups(equal) == ()
    assert len(rank_groups([*equal, RankState(rank=4, state="crashed")])) == 5


def test_process_groups_stand_apart(labels: Labels) -> None:
    """Numbers of two groups are not compared: rows by group, named, each with its own scale."""
    states = [
        RankState(rank=rank, last_enqueued=count, process_group=group)
        for rank, count, group in ((0, 900, "0"), (1, 890, "0"), (2, 7, "5"), (3, 5, "5"))
    ]
    rows = rank_groups(states)
    assert [(row.process_group, row.name) for row in rows] == [
        ("0", "1"),
        ("0", "0"),
        ("5", "3"),
        ("5", "2"),
    ]
    shown = str(progress_html(rows, Words(labels, "en")))
    assert shown.count("width:100.0%") == shown.count(f"width:{100 * LEAST_BAR}%") == 2
    assert shown.count(Words(labels, "en")("word.process_group", group="5")) == 2
    one = [replace(state, process_group="0") for state in states]
    assert {row.process_group for row in rank_groups(one)} == {""}


def test_a_timeline_needs_two_ranks_and_two_moments() -> None:
    """One rank's events, or one moment of all, are said better in words."""
    two = [event(1, rank=0, at=1.0), event(2, rank=1, at=3.0)]
    assert is_telling(timeline_points(two))
    assert not is_telling(timeline_points([event(1, at=1.0), event(2, at=3.0)]))
    assert not is_telling(timeline_points([replace(one, time_s=None) for one in two]))
    kinds = [event(1, kind="root", rank=0, at=None), event(2, rank=1, at=None)]
    assert is_telling(timeline_points(kinds))


def test_ranks_without_numbers_have_a_row() -> None:
    """The one that failed comes first with its error, those that told nothing come last."""
    error = FirstError(rank=5, line=9, kind="cuda_oom", text="out of memory")
    states = [
        state(0, 9, 8),
        RankState(rank=1, state="silent"),
        state(2, 7, 6),
        RankState(rank=3, state="silent", line=4),
        RankState(rank=4, state="missing"),
        RankState(rank=5, state="crashed", line=2),
        RankState(rank=6, state="seen", line=3),
    ]
    rows = rank_groups(states, [5], error)
    assert [(row.name, row.note, row.error) for row in rows] == [
        ("5", "page.rank_failed", error),
        ("2", "", None),
        ("0", "", None),
        ("1", "page.rank_nothing", None),
        ("3", "page.rank_quiet", None),
        ("4", "page.rank_no_dump", None),
        ("6", "page.rank_unknown", None),
    ]


def test_a_rank_silent_in_the_log_and_counted_in_a_dump_is_not_called_silent() -> None:
    """Its numbers say that it told something."""
    silent = RankState(rank=1, state="silent", last_enqueued=84920)
    rows = rank_groups([state(0, 9, 8), silent])
    assert [(row.name, row.enqueued, row.note) for row in rows] == [("0", 9, ""), ("1", 84920, "")]


def test_a_thousand_silent_ranks_are_one_row() -> None:
    """The few that were counted keep a row each, and so does the one that failed."""
    error = FirstError(rank=700, line=3, kind="cuda_oom", text="out of memory")
    states = [state(0, 9, 8), state(1, 9, 8)]
    states += [RankState(rank=rank, state="silent") for rank in range(2, 1000) if rank != 700]
    rows = rank_groups([*states, RankState(rank=700, state="crashed")], [700], error)
    assert [(row.name, row.ranks) for row in rows] == [
        ("700", 1),
        ("0", 1),
        ("1", 1),
        ("2-699, 701-999", 997),
    ]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 3000),
            st.one_of(st.none(), st.integers(0, 50)),
            st.sampled_from(["waiting", "silent", "crashed", "missing", ""]),
        ),
        max_size=200,
        unique_by=lambda known: known[0],
    )
)
def test_every_known_rank_is_in_one_row(known: list[tuple[int, int | None, str]]) -> None:
    """Unless rows were left out, the rows' sizes add up to the ranks known."""
    states = [RankState(rank=rank, last_seq=seq, state=word) for rank, seq, word in known]
    rows = rank_groups(states)
    if 0 < len(rows) < MAX_ROWS:
        assert sum(row.ranks for row in rows) == len(states)
    assert bool(rows) >= (len({seq for _, seq, _ in known if seq is not None}) > 1)
    assert all(len(row.name) <= 60 for row in rows)


def test_the_timeline_draws_its_points(labels: Labels) -> None:
    """By time, a row a rank; every kind present has its own colour."""
    words = Words(labels, "en")
    points = timeline_points([event(1, kind="root", at=1.0), event(2, rank=None, at=3.0)])
    chart = timeline_chart(points, words)
    assert chart["encoding"]["x"]["title"] == "time since the first event (s)"
    assert [row["at"] for row in chart["data"]["values"]] == [0.0, 2.0]
    assert chart["encoding"]["color"]["scale"] == {
        "domain": ["original error", "timeout"],
        "range": [charts.KINDS["root"][1], charts.KINDS["timeout"][1]],
    }
    assert [row["who"] for row in chart["data"]["values"]] == ["0", "not stated"]


@pytest.mark.parametrize(
    ("span_s", "unit", "shown"),
    [
        (0.002, "ms", 2.0),
        (0.000_25, "ms", 0.25),
        (0.44, "ms", 440.0),
        (90.0, "s", 90.0),
        (600.0, "min", 10.0),
        (3 * 3600.0, "h", 3.0),
    ],
)
def test_the_unit_of_a_timeline_fits_its_span(
    labels: Labels, span_s: float, unit: str, shown: float
) -> None:
    """Few digits tell its moments apart, and none of them lies on the edge, which would cut it."""
    start = 1_732_000_000.0
    points = timeline_points([event(1, at=start), event(2, at=start + span_s)])
    chart = timeline_chart(points, Words(labels, "en"))
    assert chart["encoding"]["x"]["title"] == f"time since the first event ({unit})"
    first, last = (row["at"] for row in chart["data"]["values"])
    assert (first, last) == (0.0, pytest.approx(shown, rel=0.01))
    low, high = chart["encoding"]["x"]["scale"]["domain"]
    assert low < first < last < high


def cells(rows: Sequence[RankGroup], labels: Labels, language: Language = "en") -> list[list[str]]:
    """The text of the table's cells, row by row, its header first."""
    shown = str(progress_html(rows, Words(labels, language)))
    return [
        [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row)]
        for row in re.findall(r"<tr>(.*?)</tr>", shown)
    ]


@pytest.mark.parametrize(
    ("language", "header", "failed", "behind", "silent"),
    [
        (
            "en",
            ["rank", "last completed", "last enqueued", ""],
            "✕ failed at line 9 · suspect",
            "✕ failed",
            "○ reported nothing",
        ),
        (
            "zh",
            ["rank", "最后完成", "最后入队", ""],
            "✕ 第 9 行出错 · 嫌疑",
            "✕ 出错退出",
            "○ 没有任何输出",
        ),
    ],
)
def test_progress_is_told_in_numbers_and_words(
    labels: Labels, language: Language, header: list[str], failed: str, behind: str, silent: str
) -> None:
    """What is known of each row, and why nothing is known of the others."""
    error = FirstError(rank=2, line=9, kind="cuda_oom", text="out of memory")
    states = [
        state(0, 9, 8),
        RankState(rank=1, state="silent"),
        RankState(rank=2, state="crashed"),
        RankState(rank=3, state="crashed", last_enqueued=7, last_completed=6),
    ]
    assert cells(rank_groups(states, [2], error), labels, language) == [
        header,
        ["2", "", "", failed],
        ["3", "6", "7", behind],
        ["0", "8", "9", ""],
        ["1", "", "", silent],
    ]


@pytest.mark.parametrize(
    ("states", "header", "first", "bars"),
    [
        ([state(0, 9, 8), state(1, 7, 6)], ["last completed", "last enqueued"], "1", [8.0, 100.0]),
        ([state(0, 9), state(1, 9), state(2, 7)], ["last enqueued"], "2", [8.0, 100.0, 100.0]),
        (
            [state(0, 9), state(1, 9), RankState(rank=2, state="crashed")],
            ["last enqueued"],
            "2",
            [100.0, 100.0],
        ),
        (
            [RankState(rank=rank, last_step=10 - rank) for rank in range(3)],
            ["last step"],
            "2",
            [8.0, 54.0, 100.0],
        ),
        (
            [state(1, 9), state(2, 9), RankState(rank=0, state="seen", last_step=70)],
            ["last enqueued", "last step"],
            "1",
            [100.0, 100.0],
        ),
    ],
    ids=["both", "enqueued", "equal", "steps", "one step"],
)
def test_bars_measure_what_is_known(
    labels: Labels, states: list[RankState], header: list[str], first: str, bars: list[float]
) -> None:
    """Columns of what somebody tells; the farthest has a whole bar, the one behind a short one."""
    rows = rank_groups(states, [])
    assert cells(rows, labels)[0][1:-1] == header
    assert rows[0].name == first
    shown = str(progress_html(rows, Words(labels, "en")))
    assert [float(width) for width in re.findall(r"width:([\d.]+)%", shown)] == bars


def test_words_of_a_chart_have_the_colour_of_the_page(labels: Labels) -> None:
    """Whatever the theme, they stand out as its text does."""
    words = Words(labels, "en")
    drawn = [
        timeline_chart(timeline_points([event(1), event(2)]), words),
        reliability_chart([], words),
    ]
    for chart in drawn:
        for part in ("axis", "legend"):
            assert set(chart["config"][part].values()) == {"currentColor"}


def test_charts_are_json(labels: Labels) -> None:
    """A specification is plain data, whatever the log said."""
    hostile = Event(pattern_id="p", kind="root", event="e", line=1, text="\x1b[2J<b>\x00", rank=0)
    chart = timeline_chart(timeline_points([hostile, event(2)]), Words(labels, "en"))
    assert json.loads(json.dumps(chart))["data"]["values"][0]["text"] == "<b>"


# --- log windows -------------------------------------------------------------------------------
