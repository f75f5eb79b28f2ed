"""The plots of the report."""

from __future__ import annotations

from collections.abc import Sequence

from kb.evaluation.figures import Prediction, reliability, risk_coverage
from kb.evaluation.svg import Chart, Series, draw

BLUE, ORANGE, GREY = "#2463a8", "#c65a11", "#777777"
RISK_AXIS = 0.5  # the curve ends near .35; what lies above is drawn at the edge


def reliability_plot(predictions: Sequence[Prediction]) -> str:
    """Stated probability of the leading cause against the share that was right."""
    bins = reliability(predictions)
    points = tuple((part.confidence, part.right.mean) for part in bins)
    return draw(
        Chart(
            title="Reliability: is 60 % right six times in ten?",
            x_label="stated probability of the first cause (bins of equal count)",
            y_label="share right, with 95 % interval",
            series=(
                Series(
                    name="held-out incidents",
                    points=points,
                    colour=BLUE,
                    marks=True,
                    bars=tuple((part.right.low, part.right.high) for part in bins),
                ),
            ),
            diagonal=True,
        )
    )


def risk_coverage_plot(predictions: Sequence[Prediction], threshold: float) -> str:
    """What answering less often buys; the mark is where the product says "unknown"."""
    curve = risk_coverage(predictions)
    answered = [point for point in curve if point.threshold >= threshold]
    return draw(
        Chart(
            title="Risk and coverage: the surest answers first",
            x_label="share of incidents answered",
            y_label="share of answers that are wrong",
            series=(
                Series(
                    name="held-out incidents",
                    points=tuple((point.coverage, point.risk) for point in curve),
                    colour=BLUE,
                ),
                Series(
                    name=f'the product: "unknown" below {threshold:.2f}',
                    points=tuple((point.coverage, point.risk) for point in answered[-1:]),
                    colour=ORANGE,
                    line=False,
                    marks=True,
                ),
            ),
            y_max=RISK_AXIS,
        )
    )
