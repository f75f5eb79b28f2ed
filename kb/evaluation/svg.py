"""Small charts in SVG: lines and points over two axes. No library is needed to draw them."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

Point = tuple[float, float]

WIDTH, HEIGHT = 520, 400
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 40, 54  # margins for labels
TICKS = 5  # steps on each axis
FONT = 'font-family="system-ui, sans-serif"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points of one kind; `bars` are (low, high) of each point, or empty."""

    name: str
    points: tuple[Point, ...]
    colour: str
    line: bool = True
    marks: bool = False
    bars: tuple[Point, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """Two axes from 0 to `x_max` and `y_max`; `diagonal` draws the line y = x."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    x_max: float = 1.0
    y_max: float = 1.0
    diagonal: bool = False


def draw(chart: Chart) -> str:
    """The chart as an SVG document; the same chart gives the same bytes."""
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>{html.escape(chart.title)}</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        _text(LEFT, 22, chart.title, size=15, anchor="start"),
        *_axes(chart),
    ]
    if chart.diagonal:
        reach = min(chart.x_max, chart.y_max)
        parts.append(_path([(0, 0), (reach, reach)], chart, "#999999", dashed=True))
    for number, series in enumerate(chart.series):
        parts += _series(series, chart)
        parts += _legend(series, number)
    return "\n".join([*parts, "</svg>", ""])


def _axes(chart: Chart) -> list[str]:
    parts = []
    for step in range(TICKS + 1):
        x, y = chart.x_max * step / TICKS, chart.y_max * step / TICKS
        left, low = _place((0, y), chart), _place((x, 0), chart)
        parts += [
            f'<path d="M{left[0]:.1f} {left[1]:.1f}H{WIDTH - RIGHT}" stroke="#e4e4e4"/>',
            _text(left[0] - 8, left[1] + 4, f"{y:.2f}", anchor="end"),
            _text(low[0], low[1] + 18, f"{x:.2f}"),
        ]
    middle = TOP + (HEIGHT - TOP - BOTTOM) / 2
    upright = _text(16, middle, chart.y_label, size=13)
    parts += [
        f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="#333333"/>',
        _text(LEFT + (WIDTH - LEFT - RIGHT) / 2, HEIGHT - 14, chart.x_label, size=13),
        f'<g transform="rotate(-90 16 {middle:.1f})">{upright}</g>',
    ]
    return parts


def _series(series: Series, chart: Chart) -> list[str]:
    parts = [_path(series.points, chart, series.colour)] if series.line else []
    for (x, _), (low, high) in zip(series.points, series.bars, strict=False):
        parts.append(_path([(x, low), (x, high)], chart, series.colour, thin=True))
    if series.marks:
        for point in series.points:
            x, y = _place(point, chart)
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{series.colour}"/>')
    return parts


def _legend(series: Series, number: int) -> list[str]:
    y = TOP + 14 + 18 * number
    return [
        f'<rect x="{LEFT + 12}" y="{y - 9}" width="10" height="10" fill="{series.colour}"/>',
        _text(LEFT + 28, y, series.name, anchor="start"),
    ]


def _path(
    points: Sequence[Point], chart: Chart, colour: str, *, dashed: bool = False, thin: bool = False
) -> str:
    places = [_place(point, chart) for point in points]
    trace = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    width = 1 if thin or dashed else 2
    return f'<path d="M{trace}" fill="none" stroke="{colour}" stroke-width="{width}"{dash}/>'


def _place(point: Point, chart: Chart) -> Point:
    """Where a point stands on the page; outside the axes it is moved to their edge."""
    x = min(max(point[0] / chart.x_max, 0.0), 1.0)
    y = min(max(point[1] / chart.y_max, 0.0), 1.0)
    return (LEFT + x * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - y * (HEIGHT - TOP - BOTTOM))


def _text(x: float, y: float, text: str, *, size: int = 12, anchor: str = "middle") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
        f'fill="#222222" {FONT}>{html.escape(text)}</text>'
    )
