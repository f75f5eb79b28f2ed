"""An incident in pictures: what happened when on which rank, and how far each rank got.

Both stay readable with thousands of ranks: points are thinned, ranks that got equally far are one
row. A rank of which no progress is known has a row as well, with words in place of numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import streamlit as st
from markupsafe import Markup

from app.render.escape import plain
from app.render.present import place
from app.web.components import markup
from app.web.components.markup import html
from kb.diagnose.wording import rank_span
from kb.knowledge.labels import Words
from kb.types.incident import Event, FirstError, RankState

KINDS = {  # of events that are drawn, in this order, with their labels and colours
    "root": ("page.kind_root", "#d64545"),
    "timeout": ("page.kind_timeout", "#d08a1e"),
    "cascade": ("page.kind_cascade", "#3d86d6"),
    "teardown": ("page.kind_teardown", "#8b95a1"),
}
MAX_POINTS = 1500  # that a browser draws at once without a pause
SAME_RUN_S = 7 * 24 * 3600  # a longer span means that two clocks are mixed, one without a year
MAX_ROWS = 24  # of ranks; those farthest behind come first
SINGLE_ROWS = 16  # up to so many ranks each has a row of its own
MAX_LABEL = 16  # characters of a row's name
MAX_TEXT = 160  # characters of a line in a tooltip
LEAST_BAR = 0.08  # of the whole: the rank that is farthest behind still has a bar
ROW_PX, FRAME_PX = 26, 130  # a row; legend, axis and their titles
MANY_PX = 270  # height of the rows together where ranks are a scale

NOTES = {  # states of ranks without progress with what is said of them; any other is unknown
    "crashed": "page.rank_failed",
    "failed": "page.rank_failed",
    "silent": "page.rank_nothing",
    "missing": "page.rank_no_dump",
}
FAILED, QUIET, UNKNOWN = "page.rank_failed", "page.rank_quiet", "page.rank_unknown"

Spec = dict[str, Any]  # of Vega-Lite; written out, since building it by altair takes 0.3 s
UNITS = (  # of a timeline: from which span on (seconds), seconds in one, label of its name
    (2 * 3600.0, 3600.0, "page.unit_hours"),
    (2 * 60.0, 60.0, "page.unit_minutes"),
    (1.0, 1.0, "page.unit_seconds"),
    (0.0, 0.001, "page.unit_milliseconds"),
)
EDGE = 0.03  # of the span, left free at both ends: a point on the edge would be cut
_INK = {"labelColor": "currentColor", "titleColor": "currentColor"}
INK = {"axis": _INK, "legend": _INK}  # the text colour of the page; Streamlit's own is too faint


def show_chart(spec: Spec) -> None:
    """A chart that has its place before it is drawn: what stands below it never moves."""
    st.vega_lite_chart(spec=spec, height=spec["height"])


def field(name: str, kind: str, title: str | None, **more: object) -> Spec:
    """A channel of the encoding."""
    return {"field": name, "type": kind, "title": title, **more}


# --- what happened when ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelinePoint:
    """A point of the timeline: seconds since the first, line, rank (-1: none), kind, text."""

    at_s: float | None
    line: int
    rank: int
    kind: str
    text: str
    count: int


def timeline_points(
    events: Iterable[Event], *, limit: int = MAX_POINTS
) -> tuple[TimelinePoint, ...]:
    """The events worth a point in the order of the log; times only where one clock timed all.

    Where there are more than `limit`, roots stay and the rest is thinned evenly.
    """
    chosen = _thinned([event for event in events if event.kind in KINDS], limit)
    times = [event.time_s for event in chosen if event.time_s is not None]
    timed = len(times) == len(chosen) > 0 and 0 < max(times) - min(times) <= SAME_RUN_S
    start = min(times) if timed else 0.0
    return tuple(
        TimelinePoint(
            at_s=round(event.time_s - start, 6) if timed and event.time_s is not None else None,
            line=event.line,
            rank=-1 if event.rank is None else event.rank,
            kind=event.kind,
            text=plain(event.text)[:MAX_TEXT],
            count=event.count,
        )
        for event in chosen
    )


def is_telling(points: Sequence[TimelinePoint]) -> bool:
    """Whether a timeline shows more than the text: two ranks, and two moments or two kinds."""
    ranks = {point.rank for point in points if point.rank >= 0}
    moments = {(point.kind, point.at_s if point.at_s is not None else "") for point in points}
    return len(ranks) > 1 and len(moments) > 1


def _thinned(events: list[Event], limit: int) -> list[Event]:
    if len(events) <= limit:
        return events
    roots = [at for at, event in enumerate(events) if event.kind == "root"][:limit]
    others = [at for at in range(len(events)) if events[at].kind != "root"]
    room = limit - len(roots)
    every = others[:: max(1, -(-len(others) // room))] if room else []
    return [events[at] for at in sorted({*roots, *every})]


def timeline_chart(points: Sequence[TimelinePoint], words: Words) -> Spec:
    """The points by time, else by line; a row for each rank where there are few."""
    present = [kind for kind in KINDS if any(point.kind == kind for point in points)]
    names = {kind: words(KINDS[kind][0]) for kind in present}
    ranks = sorted({point.rank for point in points})
    few = len(ranks) <= MAX_ROWS
    rank, line, unit_s = words("page.axis_rank"), words("page.axis_line"), 1.0
    scale = {"zero": False, "nice": True, "padding": 12}
    x = field("line", "quantitative", line, scale=scale, axis={"tickMinStep": 1, "format": "d"})
    if all(point.at_s is not None for point in points):
        unit_s, x = _time_axis(max(point.at_s or 0.0 for point in points), words)
    y = field("rank", "quantitative", rank, scale={"nice": True})
    if few:
        axis = {"labelOverlap": False, "labelFlush": False, "grid": True, "labelLimit": 0}
        y = field("who", "nominal", rank, sort=[_who(at, words) for at in ranks], axis=axis)
    kinds = {"domain": [*names.values()]}
    colours = {**kinds, "range": [KINDS[kind][1] for kind in present]}
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
            "color": field("what", "nominal", None, scale=colours, legend={"orient": "top"}),
            "shape": field("what", "nominal", None, scale=kinds, legend={"orient": "top"}),
            "tooltip": [
                field("who", "nominal", rank),
                field("line", "quantitative", line),
                field("what", "nominal", words("page.axis_what")),
                field("count", "quantitative", words("page.axis_count")),
                field("text", "nominal", words("page.axis_text")),
            ],
        },
    }


def _time_axis(span_s: float, words: Words) -> tuple[float, Spec]:
    """Seconds in the unit that fits a span, and the axis in that unit."""
    unit_s, label = next((unit, label) for least, unit, label in UNITS if span_s >= least)
    span = span_s / unit_s
    return unit_s, field(
        "at",
        "quantitative",
        words("page.axis_time", unit=words(label)),
        scale={"domain": [-EDGE * span, (1 + EDGE) * span], "nice": False},
        axis={"tickCount": 8},
    )


def _who(rank: int, words: Words) -> str:
    return words("page.no_value") if rank < 0 else str(rank)


# --- how far each rank got ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RankGroup:
    """Ranks that got equally far: a row of the table of progress.

    `note` is the label of what is to be said beside the numbers or, without any, in their place;
    `error` is the first error where it is of this rank; `process_group` is named where there are
    several.
    """

    name: str
    first: int
    ranks: int
    culprit: bool
    note: str
    error: FirstError | None
    completed: int | None
    enqueued: int | None
    step: int | None
    process_group: str = ""


def rank_groups(
    states: Iterable[RankState],
    culprits: Iterable[int] = (),
    error: FirstError | None = None,
) -> tuple[RankGroup, ...]:
    """How far the ranks got: who failed, then the farthest behind, at last who tells nothing.

    Each process group counts by itself, so ranks of two stand apart.

    Empty where there is nothing to compare: fewer than two known, all of them equally far and none
    failed.
    """
    known = tuple(states)
    counted = [state for state in known if _counted(state)]
    failed = any(_note(state) == FAILED for state in known)
    reached = {(state.process_group, *_reached(state)) for state in counted}
    if len(known) < 2 or not counted or len(reached) + failed < 2:
        return ()
    several = len({state.process_group for state in counted}) > 1
    blamed = set(culprits)
    groups: dict[tuple[object, ...], list[RankState]] = {}
    for state in known:
        few = len(counted if _counted(state) else known) <= SINGLE_ROWS
        alone = state.rank if few or (error is not None and error.rank == state.rank) else None
        apart = state.process_group if several and _counted(state) else ""
        key = (apart, *_reached(state), _note(state), state.rank in blamed, alone)
        groups.setdefault(key, []).append(state)
    rows = [
        replace(_group(members, blamed, error), process_group=str(key[0]))
        for key, members in groups.items()
    ]
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
    if state.state == "silent" and _counted(state):  # silent in the log, counted in a dump
        return ""
    note = NOTES.get(state.state, "" if _counted(state) else UNKNOWN)
    return QUIET if state.state == "silent" and state.line else note


def _group(members: Sequence[RankState], blamed: set[int], error: FirstError | None) -> RankGroup:
    first = members[0]
    completed, enqueued, step = _reached(first)
    name = rank_span(state.rank for state in members)
    if len(name) > MAX_LABEL:
        name = f"{name[:MAX_LABEL].rpartition(',')[0] or first.rank}, … ({len(members)})"
    return RankGroup(
        name=name,
        first=min(state.rank for state in members),
        ranks=len(members),
        culprit=first.rank in blamed,
        note=_note(first),
        error=error if error is not None and error.rank == first.rank else None,
        completed=completed,
        enqueued=enqueued,
        step=step,
    )


def _behind(row: RankGroup) -> tuple[float | str, ...]:
    """Sort key: the first to fail, others, group, least progress, culprits, the first rank."""
    reached = (row.enqueued, row.completed, row.step)
    progress = (float("inf") if value is None else value for value in reached)
    return (
        row.error is None,
        row.note != FAILED,
        row.process_group,
        *progress,
        not row.culprit,
        row.first,
    )


def _fitting(rows: list[RankGroup]) -> list[RankGroup]:
    """At most `MAX_ROWS`: culprits and those behind, and the largest group to compare with."""
    if len(rows) <= MAX_ROWS:
        return rows
    largest = max(range(len(rows)), key=lambda at: (rows[at].ranks, at))
    order = sorted(range(len(rows)), key=lambda at: (at != largest, not rows[at].culprit, at))
    return [rows[at] for at in sorted(order[:MAX_ROWS])]


def progress_html(rows: Sequence[RankGroup], words: Words) -> Markup:
    """The rows as a table: numbers that are known of any, a bar, and what else is to be said."""
    columns = {
        "completed": words("page.mark_completed"),
        "enqueued": words("page.mark_enqueued"),
        "step": words("page.axis_step"),
    }
    used = [name for name in columns if any(getattr(row, name) is not None for row in rows)]
    measure = "enqueued" if "enqueued" in used else [*used, "step"][0]
    values: dict[str, list[int]] = {}
    for row in rows:
        if getattr(row, measure) is not None:
            values.setdefault(row.process_group, []).append(getattr(row, measure))
    header = [words("page.axis_rank"), *(columns[name] for name in used), ""]
    body = []
    for row in rows:
        numbers = ["" if getattr(row, name) is None else str(getattr(row, name)) for name in used]
        own = values.get(row.process_group, [])
        bar = _bar(getattr(row, measure), own, culprit=row.culprit)
        body.append([row.name, *numbers, markup.join([bar, markup.safe(_remark(row, words))])])
    return markup.table([header, *body])


def _bar(value: int | None, values: Sequence[int], *, culprit: bool) -> Markup:
    if value is None:
        return markup.NOTHING
    least, most = min(values), max(values)
    share = LEAST_BAR + (1 - LEAST_BAR) * ((value - least) / (most - least) if most > least else 1)
    tone = "bad" if culprit else "likely"
    return html('<div class="tk-{tone} tk-rank">{bar}</div>', tone=tone, bar=markup.bar(share))


def _remark(row: RankGroup, words: Words) -> str:
    """What is known of a row in words."""
    note = words(row.note) if row.note else ""
    if row.note == FAILED and row.error is not None and row.error.line:
        note = words("page.rank_failed_at", place=place(row.error, words))
    group = row.process_group and words("word.process_group", group=row.process_group)
    return " · ".join(
        filter(None, (note, words("page.rank_suspect") if row.culprit else "", group))
    )
