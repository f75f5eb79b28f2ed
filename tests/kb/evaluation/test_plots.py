"""Charts: well-formed, to scale, the same bytes for the same figures."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from kb.evaluation.figures import reliability
from kb.evaluation.plots import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    reliability_plot,
    risk_coverage_plot,
)
from tests.kb.evaluation.examples import SIX, prediction

SVG = "{http://www.w3.org/2000/svg}"


def marks(text: str) -> list[tuple[float, float]]:
    """Where the points stand on the page."""
    root = ET.fromstring(text)  # noqa: S314 - our own text
    return [(float(c.attrib["cx"]), float(c.attrib["cy"])) for c in root.iter(f"{SVG}circle")]


def test_points_stand_to_scale() -> None:
    """A bin a point, at its confidence and share right, on axes from 0 to 1."""
    inner_width, inner_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    found = [
        ((x - LEFT) / inner_width, (HEIGHT - BOTTOM - y) / inner_height)
        for x, y in marks(reliability_plot(SIX))
    ]
    expected = [(part.confidence, part.right.mean) for part in reliability(SIX)]
    assert [(round(x, 2), round(y, 2)) for x, y in found] == expected


def test_points_outside_are_drawn_at_the_edge() -> None:
    """All wrong is a risk of 1, beyond the axis: nothing leaves it."""
    ((_, y),) = marks(risk_coverage_plot([prediction("bca", "a")], 0.0))
    assert y == TOP


def test_text_is_escaped() -> None:
    """Quotation marks in a name stay text."""
    root = ET.fromstring(risk_coverage_plot(SIX, 0.65))  # noqa: S314 - our own text
    names = [node.text for node in root.iter(f"{SVG}text")]
    assert 'the product: "unknown" below 0.65' in names


def test_plots_are_reproducible_and_show_the_figures() -> None:
    """The same predictions give the same bytes; the mark is where the threshold cuts the curve."""
    assert reliability_plot(SIX) == reliability_plot(SIX)
    text = risk_coverage_plot(SIX, 0.65)
    assert text == risk_coverage_plot(list(reversed(SIX)), 0.65)
    ((x, y),) = marks(text)  # three answers of .65 and more, one of them wrong
    assert round((x - LEFT) / (WIDTH - LEFT - RIGHT), 2) == 0.5
    assert round((HEIGHT - BOTTOM - y) / (HEIGHT - TOP - BOTTOM), 2) == round(1 / 3 / 0.5, 2)
