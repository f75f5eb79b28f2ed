"""What the pictures of an incident are drawn from, and the log windows beside them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.labels import Words
from app.web import charts, figures, log_view
from app.web.charts import MAX_ROWS, moments, progress, progress_chart, timeline_chart
from kb.types import Bilingual, Event, FirstError, Language, LogReading, RankState

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
    found = moments(events)
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
    assert {point.at_s for point in moments([event(1, at=time) for time in times])} == {None}


def test_a_storm_is_thinned_and_keeps_the_roots() -> None:
    """At most `limit` points; every original error is one of them."""
    events = [event(at, kind="root" if at % 1000 == 0 else "timeout") for at in range(1, 20_001)]
    found = moments(events, limit=500)
    assert len(found) <= 500
    assert {point.line for point in found if point.kind == "root"} == set(range(1000, 20_001, 1000))
    assert [point.line for point in found] == sorted({point.line for point in found})
    assert found[-1].line > 19_000


def state(rank: int, enqueued: int | None, completed: int | None = None) -> RankState:
    """What is known of a rank."""
    return RankState(rank=rank, last_enqueued=enqueued, last_completed=completed)


def test_the_rank_behind_comes_first() -> None:
    """Few ranks have a row each, the least far first, culprits marked."""
    rows = progress([state(0, 9, 8), state(1, 9, 8), state(2, 7, 6)], culprits=[2])
    assert [(row.name, row.culprit, row.completed, row.enqueued) for row in rows] == [
        ("2", True, 6, 7),
        ("0", False, 8, 9),
        ("1", False, 8, 9),
    ]


def test_a_thousand_ranks_are_a_few_rows() -> None:
    """Ranks that got equally far are one row; the one behind stands alone."""
    states = [state(rank, 100, 99) for rank in range(2048) if rank != 77] + [state(77, 98, 97)]
    rows = progress(states, culprits=[77])
    assert [(row.name, row.ranks, row.culprit) for row in rows] == [
        ("77", 1, True),
        ("0-76, 78-2047", 2047, False),
    ]


def test_when_all_differ_those_behind_the_culprits_and_the_crowd_are_shown() -> None:
    """The number of rows is bounded; none of the three is left out."""
    states = [state(rank, 1000 + rank) for rank in range(500)]
    states += [state(rank, 5000) for rank in range(500, 700)]
    rows = progress(states, culprits=[400])
    assert len(rows) == MAX_ROWS
    assert rows[0].name == "0"
    assert "400" in {row.name for row in rows if row.culprit}
    assert max(row.ranks for row in rows) == 200


def test_nothing_known_is_no_picture() -> None:
    """One rank alone, or ranks of which nothing is counted, give no rows."""
    assert progress([state(0, 5)]) == ()
    assert progress([RankState(rank=0, last_seq=5, state="crashed")]) == ()
    assert progress([state(0, 5), RankState(rank=1, state="silent")]) == ()
    assert progress([RankState(rank=rank, state="silent") for rank in range(4)]) == ()


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
    rows = progress(states, [5], error)
    assert [(row.name, row.note, row.error) for row in rows] == [
        ("5", "page.rank_failed", error),
        ("2", "", None),
        ("0", "", None),
        ("1", "page.rank_nothing", None),
        ("3", "page.rank_quiet", None),
        ("4", "page.rank_no_dump", None),
        ("6", "page.rank_unknown", None),
    ]


def test_a_thousand_silent_ranks_are_one_row() -> None:
    """The few that were counted keep a row each, and so does the one that failed."""
    error = FirstError(rank=700, line=3, kind="cuda_oom", text="out of memory")
    states = [state(0, 9, 8), state(1, 9, 8)]
    states += [RankState(rank=rank, state="silent") for rank in range(2, 1000) if rank != 700]
    rows = progress([*states, RankState(rank=700, state="crashed")], [700], error)
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
    rows = progress(states)
    if 0 < len(rows) < MAX_ROWS:
        assert sum(row.ranks for row in rows) == len(states)
    assert bool(rows) >= (sum(seq is not None for _, seq, _ in known) > 1)
    assert all(len(row.name) <= 60 for row in rows)


def test_charts_draw_what_the_tables_say(labels: Labels) -> None:
    """Each row has its two marks; every kind present has its own colour."""
    words = Words(labels, "en")
    rows = progress([state(0, 9, 8), state(1, 7, 6)], culprits=[1])
    spans, dots = progress_chart(rows, words)["layer"]
    assert [(line["who"], line["from"], line["to"]) for line in spans["data"]["values"]] == [
        ("1 · suspect", 6, 7),
        ("0", 8, 9),
    ]
    assert len(dots["data"]["values"]) == 4
    points = moments([event(1, kind="root", at=1.0), event(2, rank=None, at=3.0)])
    chart = timeline_chart(points, words)
    assert chart["encoding"]["x"]["title"] == "time since the first event (s)"
    assert [row["at"] for row in chart["data"]["values"]] == [0.0, 2.0]
    assert chart["encoding"]["color"]["scale"] == {
        "domain": ["original error", "timeout"],
        "range": [charts.COLOURS["root"], charts.COLOURS["timeout"]],
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
    points = moments([event(1, at=start), event(2, at=start + span_s)])
    chart = timeline_chart(points, Words(labels, "en"))
    assert chart["encoding"]["x"]["title"] == f"time since the first event ({unit})"
    first, last = (row["at"] for row in chart["data"]["values"])
    assert (first, last) == (0.0, pytest.approx(shown, rel=0.01))
    low, high = chart["encoding"]["x"]["scale"]["domain"]
    assert low < first < last < high


def test_a_legend_names_what_is_drawn(labels: Labels) -> None:
    """Where nobody tells what was completed, there is no sign for it."""
    rows = progress([RankState(rank=rank, last_seq=9 - rank) for rank in range(2)])
    (dots,) = progress_chart(rows, Words(labels, "en"))["layer"]
    assert dots["encoding"]["shape"]["scale"]["domain"] == ["last enqueued"]


@pytest.mark.parametrize(
    ("language", "failed", "behind", "silent"),
    [
        ("en", "✕ failed at line 9", "3 · ✕ failed", "○ reported nothing"),
        ("zh", "✕ 第 9 行出错", "3 · ✕ 出错退出", "○ 没有任何输出"),
    ],
)
def test_words_stand_where_marks_do_not(
    labels: Labels, language: Language, failed: str, behind: str, silent: str
) -> None:
    """A row without marks says why in its plot, a failed one with marks beside its name."""
    error = FirstError(rank=2, line=9, kind="cuda_oom", text="out of memory")
    states = [
        state(0, 9, 8),
        RankState(rank=1, state="silent"),
        RankState(rank=2, state="crashed"),
        RankState(rank=3, state="crashed", last_enqueued=7, last_completed=6),
    ]
    chart = progress_chart(progress(states, [2], error), Words(labels, language))
    spans, _, instead = chart["layer"]
    assert [line["who"] for line in spans["data"]["values"]] == [behind, "0"]
    suspect, nobody = instead["encoding"]["y"]["axis"]["values"]
    assert nobody == "1"
    said = instead["encoding"]["y"]["axis"]["labelExpr"]
    assert json.loads(said.removesuffix("[datum.label]")[1:-1]) == {suspect: failed, nobody: silent}
    assert instead["encoding"]["y"]["sort"] == [suspect, behind, "0", "1"]


def test_a_step_is_told_where_operations_are_drawn(labels: Labels) -> None:
    """A rank that never came to an operation is no empty row."""
    rows = progress([state(1, 9), state(2, 9), RankState(rank=0, state="seen", last_step=70)])
    instead = progress_chart(rows, Words(labels, "en"))["layer"][-1]
    assert '{"0": "step 70"}' in instead["encoding"]["y"]["axis"]["labelExpr"]


def test_steps_are_drawn_where_no_numbers_are_known(labels: Labels) -> None:
    """Without sequence numbers the last step is the measure."""
    rows = progress([RankState(rank=rank, last_step=10 - rank) for rank in range(3)])
    (dots,) = progress_chart(rows, Words(labels, "zh"))["layer"]
    assert [(dot["who"], dot["at"]) for dot in dots["data"]["values"]] == [
        ("2", 8),
        ("1", 9),
        ("0", 10),
    ]


def test_words_of_a_chart_have_the_colour_of_the_page(labels: Labels) -> None:
    """Whatever the theme, they stand out as its text does."""
    words = Words(labels, "en")
    drawn = [
        progress_chart(progress([state(0, 9), state(1, 7)]), words),
        timeline_chart(moments([event(1), event(2)]), words),
        figures.bar_chart([figures.Bar(name="a", count=1)], "cases").to_dict(),
        figures.reliability_chart([], words).to_dict(),
        figures.cause_chart([], words).to_dict(),
    ]
    for chart in drawn:
        for part in ("axis", "legend"):
            assert set(chart["config"][part].values()) == {"currentColor"}


def test_charts_are_json(labels: Labels) -> None:
    """A specification is plain data, whatever the log said."""
    hostile = Event(pattern_id="p", kind="root", event="e", line=1, text="\x1b[2J<b>\x00", rank=0)
    chart = timeline_chart(moments([hostile, event(2)]), Words(labels, "en"))
    assert json.loads(json.dumps(chart))["data"]["values"][0]["text"] == "<b>"


# --- log windows -------------------------------------------------------------------------------


def test_windows_show_the_lines_around_a_mark() -> None:
    """Numbers and text are those of the log; windows that touch are one."""
    text = "\n".join(f"line {number}" for number in range(1, 101))
    marks: dict[log_view.Place, log_view.Mark] = {("", 3): "error", ("", 9): "evidence"}
    marks |= {("", 100): "evidence"}
    first, last = log_view.windows({"": log_view.lines_of(text)}, marks, context=3)
    assert [line.number for line in first.lines] == list(range(1, 13))
    assert [line.number for line in last.lines] == [97, 98, 99, 100]
    assert {line.number: line.mark for line in first.lines if line.mark} == {
        3: "error",
        9: "evidence",
    }
    assert all(
        line.text == f"line {line.number}" for window in (first, last) for line in window.lines
    )


def test_windows_hide_secrets_and_keep_line_numbers() -> None:
    """A key that began before the window is hidden too, and the lines below keep their numbers."""
    key = [
        "-----BEGIN RSA PRIVATE KEY-----",
        *["MIIEpAIBAAKCAQEA0"] * 30,
        "-----END RSA PRIVATE KEY-----",
    ]
    lines = ["before", *key, "password=hunter2hunter2", "the error"]
    at = len(lines)
    (window,) = log_view.windows({"": lines}, {("", at): "error"}, context=5)
    shown = {line.number: line.text for line in window.lines}
    assert shown[at] == "the error"
    assert "MIIE" not in str(shown)
    assert "hunter2" not in str(shown)


@given(st.binary(max_size=400), st.integers(1, 50))
def test_lines_of_a_file_do_not_depend_on_its_pieces(data: bytes, size: int) -> None:
    """Read in pieces of any size the lines are the same."""
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    *whole, last = [line.decode("utf-8", "replace") for line in data.split(b"\n")]
    whole += [last] if last else []
    assert list(log_view.lines_of_chunks(pieces)) == whole


def test_a_quote_is_found_in_its_own_file() -> None:
    """Two files have a line 7; the one with the quoted text is meant."""
    events = tuple(
        Event(pattern_id="p", kind="root", event="e", line=7, text=text, file=file)
        for file, text in (("rank0.log", "all is well"), ("rank1.log", "CUDA out of memory"))
    )
    reading = LogReading(incident=None, events=events, description="", excerpt="")  # type: ignore[arg-type]
    assert log_view.place_of(reading, 7, "CUDA out of memory") == ("rank1.log", 7)
    assert log_view.place_of(reading, 8, "elsewhere") == ("", 8)


def test_hostile_lines_are_text() -> None:
    """HTML, escapes and reordering marks in a log show as characters or not at all."""
    (window,) = log_view.windows(
        {"": ["<script>x</script>\x1b[31m\u202e"]}, {("", 1): "error"}, context=1
    )
    content = log_view.window_html(window)
    assert "&lt;script&gt;x&lt;/script&gt;" in content
    assert "\x1b" not in content
    assert "\u202e" not in content
