"""Charts: well-formed, to scale, the same bytes for the same figures."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from kb.evaluation.plots import reliability_plot, risk_coverage_plot
from kb.evaluation.svg import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Chart, Series, draw
from tests.kb.evaluation.samples import SIX

SVG = "{http://www.w3.org/2000/svg}"


def chart(*points: tuple[float, float]) -> Chart:
    """A chart of marked points whose axes end at 2 and 4."""
    series = Series(name="<a & b>", points=points, colour="#123456", line=False, marks=True)
    return Chart(title="t", x_label="x", y_label="y", series=(series,), x_max=2.0, y_max=4.0)


def marks(text: str) -> list[tuple[float, float]]:
    """Where the points stand on the page."""
    root = ET.fromstring(text)  # noqa: S314 - our own text
    return [(float(c.attrib["cx"]), float(c.attrib["cy"])) for c in root.iter(f"{SVG}circle")]


def test_points_stand_to_scale() -> None:
    """Origin, middle and far corner of the axes stand at those places of the page."""
    inner_width, inner_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    assert marks(draw(chart((0, 0), (1, 2), (2, 4)))) == [
        (LEFT, HEIGHT - BOTTOM),
        (LEFT + inner_width / 2, TOP + inner_height / 2),
        (WIDTH - RIGHT, TOP),
    ]


def test_points_outside_are_drawn_at_the_edge() -> None:
    """Nothing leaves the axes."""
    assert marks(draw(chart((9, -9)))) == [(WIDTH - RIGHT, HEIGHT - BOTTOM)]


def test_text_is_escaped() -> None:
    """Names with markup in them stay text."""
    root = ET.fromstring(draw(chart((1, 1))))  # noqa: S314 - our own text
    assert "<a & b>" in [node.text for node in root.iter(f"{SVG}text")]


def test_plots_are_reproducible_and_show_the_figures() -> None:
    """The same predictions give the same bytes; the mark is where the threshold cuts the curve."""
    assert reliability_plot(SIX) == reliability_plot(SIX)
    text = risk_coverage_plot(SIX, 0.65)
    assert text == risk_coverage_plot(list(reversed(SIX)), 0.65)
    ((x, y),) = marks(text)  # three answers of .65 and more, one of them wrong
    assert round((x - LEFT) / (WIDTH - LEFT - RIGHT), 2) == 0.5
    assert round((HEIGHT - BOTTOM - y) / (HEIGHT - TOP - BOTTOM), 2) == round(1 / 3 / 0.5, 2)
    assert re.search("below 0.65", text)
