"""The two plots of the report in SVG; the same predictions give the same bytes."""

from __future__ import annotations

import html
from collections.abc import Sequence

from kb.evaluation.figures import Prediction, reliability, risk_coverage

WIDTH, HEIGHT = 520, 400
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 40, 54  # margins for labels
TICKS = 5  # steps on each axis
RISK_AXIS = 0.5  # the curve ends near .35; what lies above is drawn at the edge
FONT = 'font-family="system-ui, sans-serif"'
BLUE, ORANGE, GREY = "#2463a8", "#c65a11", "#999999"


def reliability_plot(predictions: Sequence[Prediction]) -> str:
    """Stated probability of the leading cause against the share that was right."""
    plot = _Plot("Reliability: is 60 % right six times in ten?", 1.0)
    plot.label_axes(
        "stated probability of the first cause (bins of equal count)",
        "share right, with 95 % interval",
    )
    plot.line([(0, 0), (1, 1)], GREY, 'stroke-width="1" stroke-dasharray="5 4"')
    bins = reliability(predictions)
    plot.line([(part.confidence, part.right.mean or 0) for part in bins], BLUE, 'stroke-width="2"')
    for part in bins:
        ends = [(part.confidence, part.right.low or 0), (part.confidence, part.right.high or 0)]
        plot.line(ends, BLUE, 'stroke-width="1"')
        plot.mark((part.confidence, part.right.mean or 0), BLUE)
    plot.legend("held-out incidents", BLUE)
    return plot.text()


def risk_coverage_plot(predictions: Sequence[Prediction], threshold: float) -> str:
    """What answering less often buys; the mark is where the product says "unknown"."""
    plot = _Plot("Risk and coverage: the surest answers first", RISK_AXIS)
    plot.label_axes("share of incidents answered", "share of answers that are wrong")
    curve = risk_coverage(predictions)
    plot.line([(point.coverage, point.risk) for point in curve], BLUE, 'stroke-width="2"')
    plot.legend("held-out incidents", BLUE)
    for point in [point for point in curve if point.threshold >= threshold][-1:]:
        plot.mark((point.coverage, point.risk), ORANGE)
    plot.legend(f'the product: "unknown" below {threshold:.2f}', ORANGE)
    return plot.text()


class _Plot:
    """Lines and marks over two axes, from 0 to 1 and from 0 to `y_max`."""

    def __init__(self, title: str, y_max: float) -> None:
        self._y_max = y_max
        self._legends = 0
        size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        self._parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            f"<title>{html.escape(title)}</title>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        ]
        self._text(LEFT, 22, title, size=15, anchor="start")

    def label_axes(self, x_label: str, y_label: str) -> None:
        for step in range(TICKS + 1):
            x, y = step / TICKS, self._y_max * step / TICKS
            left, low = self._place((0, y)), self._place((x, 0))
            self._parts.append(
                f'<path d="M{left[0]:.1f} {left[1]:.1f}H{WIDTH - RIGHT}" stroke="#e4e4e4"/>'
            )
            self._text(left[0] - 8, left[1] + 4, f"{y:.2f}", anchor="end")
            self._text(low[0], low[1] + 18, f"{x:.2f}")
        frame = f"M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"
        self._parts.append(f'<path d="{frame}" fill="none" stroke="#333333"/>')
        self._text(LEFT + (WIDTH - LEFT - RIGHT) / 2, HEIGHT - 14, x_label, size=13)
        middle = TOP + (HEIGHT - TOP - BOTTOM) / 2
        self._parts.append(f'<g transform="rotate(-90 16 {middle:.1f})">')
        self._text(16, middle, y_label, size=13)
        self._parts.append("</g>")

    def line(self, points: Sequence[tuple[float, float]], colour: str, style: str) -> None:
        trace = "L".join(f"{x:.1f} {y:.1f}" for x, y in map(self._place, points))
        self._parts.append(f'<path d="M{trace}" fill="none" stroke="{colour}" {style}/>')

    def mark(self, point: tuple[float, float], colour: str) -> None:
        x, y = self._place(point)
        self._parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')

    def legend(self, name: str, colour: str) -> None:
        y = TOP + 14 + 18 * self._legends
        self._legends += 1
        self._parts.append(
            f'<rect x="{LEFT + 12}" y="{y - 9}" width="10" height="10" fill="{colour}"/>'
        )
        self._text(LEFT + 28, y, name, anchor="start")

    def text(self) -> str:
        return "\n".join([*self._parts, "</svg>", ""])

    def _place(self, point: tuple[float, float]) -> tuple[float, float]:
        """Where a point stands on the page; outside the axes it is moved to their edge."""
        x, y = min(max(point[0], 0.0), 1.0), min(max(point[1] / self._y_max, 0.0), 1.0)
        return LEFT + x * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - y * (HEIGHT - TOP - BOTTOM)

    def _text(
        self, x: float, y: float, text: str, *, size: int = 12, anchor: str = "middle"
    ) -> None:
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
            f'fill="#222222" {FONT}>{html.escape(text)}</text>'
        )
