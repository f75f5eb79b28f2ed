"""Two pictures of an incident: what happened when on which rank, and how far each rank got.

The tables (`moments`, `progress`) are plain values, the charts are drawn from them. Both stay
readable with thousands of ranks: moments are thinned, ranks that got equally far are one row. A
rank of which no progress is known has a row as well, with words instead of marks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from app.labels import Words
from app.present import place, rank_span
from app.quoting import plain
from kb.types import Event, FirstError, RankState

KINDS = {  # of events that are drawn, in this order, with their labels
    "root": "page.kind_root",
    "timeout": "page.kind_timeout",
    "cascade": "page.kind_cascade",
    "teardown": "page.kind_teardown",
}
COLOURS = {"root": "#d64545", "timeout": "#d08a1e", "cascade": "#3d86d6", "teardown": "#8b95a1"}
BLAME = {"condition": {"test": "datum.culprit", "value": "#d64545"}, "value": "#3d86d6"}
MAX_MOMENTS = 1500  # points a browser draws at once without a pause
SAME_RUN_S = 7 * 24 * 3600  # a longer span means that two clocks are mixed, one without a year
MAX_ROWS = 24  # rows of the progress chart; the ranks farthest behind come first
SINGLE_ROWS = 16  # up to so many ranks each has a row of its own
MAX_LABEL = 16  # characters of a row's name
ROW_PX = 26
FRAME_PX = 130  # legend, axis and their titles
LEGEND_PX = 20  # of each further line of a legend
MAX_TEXT = 160  # characters of a line in a tooltip

NOTES = {  # states of ranks without progress with what is said of them; any other is unknown
    "crashed": "page.rank_failed",
    "failed": "page.rank_failed",
    "silent": "page.rank_nothing",
    "missing": "page.rank_no_dump",
}
FAILED, QUIET, UNKNOWN = "page.rank_failed", "page.rank_quiet", "page.rank_unknown"

MANY_PX = 270  # height of the rows together where ranks are a scale

Spec = dict[str, Any]  # of Vega-Lite; written out, since building it by altair takes 0.3 s
UNITS = (  # of a timeline: from which span on (seconds), seconds in one, label of its name
    (2 * 3600.0, 3600.0, "page.unit_hours"),
    (2 * 60.0, 60.0, "page.unit_minutes"),
    (1.0, 1.0, "page.unit_seconds"),
    (0.0, 0.001, "page.unit_milliseconds"),
)
EDGE = 0.03  # of the span, left free at both ends: a point on the edge would be cut
TICKS = 8  # of a time axis, about
FROM_DATA = {"zero": False, "nice": True, "padding": 12}
WHOLE = {"tickMinStep": 1, "format": "d"}
NAMED = {"labelOverlap": False, "labelFlush": False, "grid": True, "labelLimit": 220}
ON_TOP = {"orient": "top"}
STACKED = {"orient": "top", "direction": "vertical"}
_INK = {"labelColor": "currentColor", "titleColor": "currentColor"}
INK = {"axis": _INK, "legend": _INK}  # the text colour of the page; Streamlit's own is too faint


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A point of the timeline: seconds since the first, line, rank (-1: none), kind, text."""

    at_s: float | None
    line: int
    rank: int
    kind: str
    text: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A row of the progress chart: ranks that got equally far.

    `note` is the label of what is to be said beside the numbers or, without any, in their place;
    `error` is the first error where it is of this rank.
    """

    name: str
    ranks: int
    culprit: bool
    note: str
    error: FirstError | None
    completed: int | None
    enqueued: int | None
    step: int | None


def moments(events: Iterable[Event], *, limit: int = MAX_MOMENTS) -> tuple[Moment, ...]:
    """The events worth a point in the order of the log; times only where one clock timed all.

    Where there are more than `limit`, roots stay and the rest is thinned evenly.
    """
    chosen = _thinned([event for event in events if event.kind in KINDS], limit)
    times = [event.time_s for event in chosen if event.time_s is not None]
    timed = len(times) == len(chosen) > 0 and 0 < max(times) - min(times) <= SAME_RUN_S
    start = min(times) if timed else 0.0
    return tuple(
        Moment(
            at_s=round(event.time_s - start, 6) if timed and event.time_s is not None else None,
            line=event.line,
            rank=-1 if event.rank is None else event.rank,
            kind=event.kind,
            text=plain(event.text)[:MAX_TEXT],
            count=event.count,
        )
        for event in chosen
    )


def _thinned(events: list[Event], limit: int) -> list[Event]:
    if len(events) <= limit:
        return events
    roots = [at for at, event in enumerate(events) if event.kind == "root"][:limit]
    others = [at for at in range(len(events)) if events[at].kind != "root"]
    room = limit - len(roots)
    every = others[:: max(1, -(-len(others) // room))] if room else []
    return [events[at] for at in sorted({*roots, *every})]


def progress(
    states: Iterable[RankState],
    culprits: Iterable[int] = (),
    error: FirstError | None = None,
) -> tuple[Progress, ...]:
    """How far the ranks got: who failed, then the farthest behind, at last who tells nothing.

    Empty where there is nothing to compare: fewer than two known, none of them beside a failure.
    """
    known = tuple(states)
    counted = [state for state in known if _counted(state)]
    failed = any(_note(state) == FAILED for state in known)
    if len(known) < 2 or not counted or len(counted) + failed < 2:
        return ()
    blamed = set(culprits)
    groups: dict[tuple[object, ...], list[RankState]] = {}
    for state in known:
        few = len(counted if _counted(state) else known) <= SINGLE_ROWS
        alone = state.rank if few or (error is not None and error.rank == state.rank) else None
        key = (*_reached(state), _note(state), state.rank in blamed, alone)
        groups.setdefault(key, []).append(state)
    rows = [_row(members, blamed, error) for members in groups.values()]
    rows.sort(key=_behind)
    return tuple(_fitting(rows))


def _reached(state: RankState) -> tuple[int | None, int | None, int | None]:
    """Last completed, last enqueued (else the last seen) and last step."""
    enqueued = state.last_seq if state.last_enqueued is None else state.last_enqueued
    return state.last_completed, enqueued, state.last_step


def _counted(state: RankState) -> bool:
    return _reached(state) != (None, None, None)


def _note(state: RankState) -> str:
    """The label of what is said of a rank; empty where its numbers say enough."""
    note = NOTES.get(state.state, "" if _counted(state) else UNKNOWN)
    return QUIET if state.state == "silent" and state.line else note


def _row(members: Sequence[RankState], blamed: set[int], error: FirstError | None) -> Progress:
    first = members[0]
    completed, enqueued, step = _reached(first)
    name = rank_span(state.rank for state in members)
    if len(name) > MAX_LABEL:
        name = f"{name[:MAX_LABEL].rpartition(',')[0] or first.rank}, … ({len(members)})"
    return Progress(
        name=name,
        ranks=len(members),
        culprit=first.rank in blamed,
        note=_note(first),
        error=error if error is not None and error.rank == first.rank else None,
        completed=completed,
        enqueued=enqueued,
        step=step,
    )


def _behind(row: Progress) -> tuple[bool, bool, float, float, float, bool, int, str]:
    """Sort key: the first to fail, others, least progress, culprits, number of the first rank."""
    far = float("inf")
    number = "".join(char if char.isdigit() else " " for char in row.name).split()
    return (
        row.error is None,
        row.note != FAILED,
        far if row.enqueued is None else row.enqueued,
        far if row.completed is None else row.completed,
        far if row.step is None else row.step,
        not row.culprit,
        int(number[0]) if number else 0,
        row.name,
    )


def _fitting(rows: list[Progress]) -> list[Progress]:
    """At most `MAX_ROWS`: culprits and those behind, and the largest group to compare with."""
    if len(rows) <= MAX_ROWS:
        return rows
    largest = max(range(len(rows)), key=lambda at: (rows[at].ranks, at))
    order = sorted(range(len(rows)), key=lambda at: (at != largest, not rows[at].culprit, at))
    return [rows[at] for at in sorted(order[:MAX_ROWS])]


def timeline_chart(points: Sequence[Moment], words: Words) -> Spec:
    """The moments by time, else by line; a row for each rank where there are few."""
    timed = all(point.at_s is not None for point in points)
    names = {kind: words(label) for kind, label in KINDS.items()}
    present = [kind for kind in KINDS if any(point.kind == kind for point in points)]
    ranks = sorted({point.rank for point in points})
    few = len(ranks) <= MAX_ROWS
    rank, line, unit_s = words("page.axis_rank"), words("page.axis_line"), 1.0
    domain = [names[kind] for kind in present]
    x = _field("line", "quantitative", line, scale=FROM_DATA, axis=WHOLE)
    if timed:
        unit_s, x = _time_axis(max(point.at_s or 0.0 for point in points), words)
    if few:
        y = _field(
            "who", "nominal", rank, sort=[_who(number, words) for number in ranks], axis=NAMED
        )
    else:
        y = _field("rank", "quantitative", rank, scale={"nice": True})
    return {
        "config": INK,
        "data": {
            "values": [
                {
                    **asdict(point),
                    "at": (point.at_s or 0.0) / unit_s,
                    "who": _who(point.rank, words),
                    "what": names[point.kind],
                }
                for point in points
            ]
        },
        "height": FRAME_PX + (ROW_PX * len(ranks) if few else MANY_PX),
        "mark": {"type": "point", "filled": True, "size": 70, "opacity": 0.85},
        "encoding": {
            "x": x,
            "y": y,
            "color": _field(
                "what",
                "nominal",
                None,
                scale={"domain": domain, "range": [COLOURS[kind] for kind in present]},
                legend=ON_TOP,
            ),
            "shape": _field("what", "nominal", None, scale={"domain": domain}, legend=ON_TOP),
            "tooltip": [
                _field("who", "nominal", rank),
                _field("line", "quantitative", line),
                _field("what", "nominal", words("page.axis_what")),
                _field("count", "quantitative", words("page.axis_count")),
                _field("text", "nominal", words("page.axis_text")),
            ],
        },
    }


def _time_axis(span_s: float, words: Words) -> tuple[float, Spec]:
    """Seconds in the unit that fits a span, and the axis in that unit."""
    unit_s, label = next((unit, label) for least, unit, label in UNITS if span_s >= least)
    span = span_s / unit_s
    return unit_s, _field(
        "at",
        "quantitative",
        words("page.axis_time", unit=words(label)),
        scale={"domain": [-EDGE * span, (1 + EDGE) * span], "nice": False},
        axis={"tickCount": TICKS},
    )


def _who(rank: int, words: Words) -> str:
    return words("page.no_value") if rank < 0 else str(rank)


def _field(name: str, kind: str, title: str | None, **more: object) -> Spec:
    """A channel of the encoding."""
    return {"field": name, "type": kind, "title": title, **more}


def progress_chart(rows: Sequence[Progress], words: Words) -> Spec:
    """From the last completed to the last enqueued operation of each row, else its last step.

    A rank under suspicion is named as one, and words stand where a row has no marks: colour alone
    tells nothing.
    """
    by_operation = any(row.enqueued is not None or row.completed is not None for row in rows)
    axis = words("page.axis_seq") if by_operation else words("page.axis_step")
    possible = (
        {words("page.mark_completed"): "completed", words("page.mark_enqueued"): "enqueued"}
        if by_operation
        else {axis: "step"}
    )
    marks = {
        what: name
        for what, name in possible.items()
        if any(getattr(row, name) is not None for row in rows)
    }
    bare = {row.name for row in rows if all(getattr(row, name) is None for name in marks.values())}
    names = {row.name: _named(row, words, bare=row.name in bare) for row in rows}
    said = {
        names[row.name]: _said(row, words, step=by_operation) for row in rows if row.name in bare
    }
    spans = _spans(rows, names) if by_operation else []
    free = f"indexof({json.dumps([*said])}, datum.label) < 0"  # no line through words
    grid = {"condition": {"test": free, "value": 1}, "value": 0}
    named = {**NAMED, "orient": "left", "gridOpacity": grid}
    y = _field("who", "nominal", words("page.axis_rank"), sort=[*names.values()], axis=named)
    x = _field("at", "quantitative", axis, scale=FROM_DATA, axis=WHOLE)
    dots = _dots(rows, names, marks, words)
    dots["encoding"] |= {"x": x, "y": y, "color": BLAME}
    rules = {
        "data": {"values": spans},
        "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.55},
        "encoding": {
            "x": {**x, "field": "from"},
            "x2": {"field": "to"},
            "y": {**y, "axis": None},
            "color": BLAME,
        },
    }
    return {
        "config": INK,
        "height": FRAME_PX + LEGEND_PX * (len(marks) - 1) + ROW_PX * len(rows),
        "layer": [*([rules] if spans else []), dots, *([_instead(said, y)] if said else [])],
        "resolve": {"axis": {"y": "independent"}},
    }


def _spans(rows: Sequence[Progress], names: dict[str, str]) -> list[Spec]:
    """From the last completed to the last enqueued operation, where both are known."""
    return [
        {
            "who": names[row.name],
            "culprit": row.culprit,
            "from": row.completed,
            "to": row.enqueued,
        }
        for row in rows
        if row.completed is not None and row.enqueued is not None
    ]


def _dots(
    rows: Sequence[Progress], names: dict[str, str], marks: dict[str, str], words: Words
) -> Spec:
    """A point for each number known, by the form of what it counts."""
    axis = words("page.axis_step") if "step" in marks.values() else words("page.axis_seq")
    points = [
        {
            "who": names[row.name],
            "ranks": row.ranks,
            "culprit": row.culprit,
            "what": what,
            "at": reached,
        }
        for row in rows
        for what, name in marks.items()
        if (reached := getattr(row, name)) is not None
    ]
    return {
        "data": {"values": points},
        "mark": {"type": "point", "size": 90, "strokeWidth": 2, "opacity": 1},
        "encoding": {
            "shape": _field("what", "nominal", None, scale={"domain": [*marks]}, legend=STACKED),
            "tooltip": [
                _field("who", "nominal", words("page.axis_rank")),
                _field("ranks", "quantitative", words("page.axis_count")),
                _field("what", "nominal", words("page.axis_what")),
                _field("at", "quantitative", axis, format="d"),
            ],
        },
    }


def _instead(said: dict[str, str], y: Spec) -> Spec:
    """Words in place of marks: labels of a second axis, since those have the theme's own colour."""
    inside = {"orient": "left", "labelAlign": "left", "labelPadding": -8, "labelLimit": 300}
    axis = {
        **NAMED,
        **inside,
        "grid": False,
        "values": [*said],
        "labelExpr": f"({json.dumps(said)})[datum.label]",
    }
    return {
        "data": {"values": [{"who": name} for name in said]},
        "mark": {"type": "point", "opacity": 0},
        "encoding": {"y": {**y, "title": None, "axis": axis}},
    }


def _named(row: Progress, words: Words, *, bare: bool) -> str:
    """The name of a row, with what its marks do not tell."""
    if row.note == FAILED and not bare:
        return f"{row.name} · {_said(row, words)}"
    return f"{row.name} · {words('page.rank_suspect')}" if row.culprit else row.name


def _said(row: Progress, words: Words, *, step: bool = False) -> str:
    """What is known of a row in words."""
    note = words(row.note) if row.note else ""
    if row.note == FAILED and row.error is not None and row.error.line:
        where = place(words, line=row.error.line, file=row.error.file)
        note = words("page.rank_failed_at", place=where)
    reached = words("page.rank_step", step=row.step) if step and row.step is not None else ""
    return " · ".join(filter(None, (note, reached)))
