"""The causes of an archive by week as a picture: stacked bars in SVG."""

from __future__ import annotations

import html
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from kb.incidents.archive import WeekCount

LEFT, TOP, PLOT, BOTTOM = 48, 16, 240, 44  # pixels; the plot's height
BAR, GAP = 18, 6
LEGEND, MOST_CHARS = 18, 70  # height of a line, and its length
NAMED = 6  # causes with a colour of their own, those with the most failures; the others share grey
COLOURS = ("#2463a8", "#c65a11", "#2f8f5b", "#8a4fa3", "#b8352f", "#7a6a1f")
GREY = "#999999"
WEEKS = 104  # two years; the picture shows the last ones


def weeks_picture(weeks: Sequence[WeekCount], title: Callable[[str], str], others: str) -> str:
    """The picture, as SVG.

    Args:
        weeks: counts by week and cause; a week without failures has no bar.
        title: the words for a cause.
        others: the words for the causes without a colour of their own.
    """
    totals = Counter[str]()
    bars: dict[str, Counter[str]] = defaultdict(Counter)
    for week in weeks:
        bars[week.week][week.cause] += week.logs
    shown = sorted(bars)[-WEEKS:]
    for week_name in shown:
        totals.update(bars[week_name])
    ranked = sorted(totals, key=lambda cause: (-totals[cause], cause))
    colours = dict(zip(ranked[:NAMED], COLOURS, strict=False))
    most = max((bars[name].total() for name in shown), default=1)
    parts = [_text(LEFT - 6, TOP + 10, str(most), "end"), _text(LEFT - 6, TOP + PLOT, "0", "end")]
    for at, name in enumerate(shown):
        parts += _bar(LEFT + at * (BAR + GAP), name, bars[name], ranked, colours, most, title)
    names = [(title(cause)[:MOST_CHARS], colour) for cause, colour in colours.items()]
    names += [(others, GREY)] if len(ranked) > NAMED else []
    for at, (name, colour) in enumerate(names):
        y = TOP + PLOT + BOTTOM + at * LEGEND
        parts.append(f'<rect x="{LEFT}" y="{y}" width="10" height="10" fill="{colour}"/>')
        parts.append(_text(LEFT + 16, y + 10, name, "start"))
    width = max(LEFT + len(shown) * (BAR + GAP) + 16, 560)
    height = TOP + PLOT + BOTTOM + len(names) * LEGEND + 8
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">'
    return "\n".join(
        [head, '<rect width="100%" height="100%" fill="#ffffff"/>', *parts, "</svg>\n"]
    )


def _bar(
    x: int,
    week: str,
    counts: Counter[str],
    ranked: Sequence[str],
    colours: dict[str, str],
    most: int,
    title: Callable[[str], str],
) -> list[str]:
    """A week's bar, the commonest cause of all at its foot, with its Monday below."""
    parts, y = [], float(TOP + PLOT)
    for cause in ranked:
        if not counts[cause]:
            continue
        height = PLOT * counts[cause] / most
        y -= height
        told = html.escape(f"{week}: {counts[cause]} {title(cause)}")
        parts.append(
            f'<rect x="{x}" y="{y:.1f}" width="{BAR}" height="{height:.1f}" '
            f'fill="{colours.get(cause, GREY)}"><title>{told}</title></rect>'
        )
    place = f"{x + BAR / 2:.1f} {TOP + PLOT + 8}"
    parts.append(
        f'<text transform="translate({place}) rotate(35)" font-size="9" '
        f'font-family="system-ui, sans-serif" fill="#222222">{week[2:]}</text>'
    )
    return parts


def _text(x: int, y: int, text: str, anchor: str) -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="12" text-anchor="{anchor}" fill="#222222" '
        f'font-family="system-ui, sans-serif">{html.escape(text)}</text>'
    )
