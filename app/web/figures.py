"""Tables and charts of the quality page: from counts and published figures to rows, then Altair.

The rows are plain values; the charts only draw them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from app.labels import Words
from app.present import percent
from app.quoting import plain
from app.web.charts import INK
from kb.types import Cause, Entry

if TYPE_CHECKING:
    from app.contribute import StoredFeedback
    from kb.evaluation.published import CauseFigures, Figure, RetrievalFigures

MOST_BARS = 15  # of a chart; more values are counted together
BAR_PX = 22
PAIR_PX = 26  # of two bars that stand together
AXIS_PX = 80  # axis, its title and a legend, which count as height of the chart
TITLE_PX = 50  # the title alone
BESIDE_CELLS = 30  # of a name beside its bar; longer ones stand above, or a phone has no room
NAME_PX = 18  # of a name above its bar
WHOLE = {"labelLimit": 0, "labelOverlap": False}  # of an axis: each name, and nothing of it cut
TICKS = 5
ROOM = 1.12  # of the longest bar: its count stands behind it
BLUE, PALE, GREY = "#3d86d6", "#a9c9ee", "#888888"  # readable on light and dark ground
SETTINGS = {
    "same language": "page.same_language",
    "cross-language": "page.cross_language",
    "both languages": "page.both_languages",
}
ROUTES = {
    "hybrid": "page.route_hybrid",
    "dense": "page.route_dense",
    "lexical + expansion": "page.route_expanded",
    "lexical": "page.route_lexical",
}
LANGUAGES = {"zh": "page.chinese", "en": "page.english", "both": "page.both_languages"}
PARTS = {
    "English": "page.english",
    "Chinese": "page.chinese",
    "with a log": "page.with_log",
    "words only": "page.words_only",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar: what is counted and how many there are."""

    name: str
    count: int


def spread(values: Iterable[str], *, order: Sequence[str] = (), rest: str = "") -> list[Bar]:
    """How often each value stands there: in `order` (zeros included), else the most frequent first.

    Without `order` at most `MOST_BARS` are named; `rest` stands for the others together.
    """
    counts = Counter(values)
    if order:
        return [Bar(name=name, count=counts[name]) for name in order]
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    bars = [Bar(name=plain(name), count=count) for name, count in ranked[:MOST_BARS]]
    others = sum(count for _, count in ranked[MOST_BARS:])
    return [*bars, Bar(name=rest, count=others)] if others else bars


def coverage(cases: Sequence[Entry], causes: Sequence[Cause], words: Words) -> dict[str, list[Bar]]:
    """How the cases are spread, by the name of the chart's label.

    A case counts for its first cause, so that the bars add up to the cases.
    """
    titles = {cause.id: plain(cause.title.get(words.language)) for cause in causes}
    years = [case.date[:4] or "–" for case in cases]
    return {
        "page.by_cause": spread(
            (titles[case.causes[0].id] for case in cases if case.causes),
            order=list(titles.values()),
        ),
        "page.by_backend": spread(case.tags.backend or words("page.no_value") for case in cases),
        "page.by_year": spread(years, order=sorted(set(years))),
        "page.by_standing": spread(words.term("claim", case.status) for case in cases),
        "page.by_language": spread(words(LANGUAGES[case.language]) for case in cases),
        "page.by_project": spread((case.project for case in cases), rest=words("page.others")),
    }


def share(figure: Figure | None) -> str:
    """A figure as people read it: ``69% (60–77%), n = 105``."""
    if figure is None or figure.mean is None or figure.low is None or figure.high is None:
        return "–"
    low, high = (percent(value).removesuffix("%") for value in (figure.low, figure.high))
    return f"{percent(figure.mean)} ({low}–{high}%), n = {figure.n}"


def recall_table(figures: RetrievalFigures, words: Words) -> list[list[str]]:
    """Recall among five by route and setting, the shipped search first."""
    found = {(row.setting, row.route): row.recall_at_5 for row in figures.routes}
    header = [words("page.route"), *(words(label) for label in SETTINGS.values())]
    return [
        header,
        *(
            [words(label), *(share(found.get((setting, route))) for setting in SETTINGS)]
            for route, label in ROUTES.items()
            if any((setting, route) in found for setting in SETTINGS)
        ),
    ]


def cause_rows(
    rows: Sequence[CauseFigures], causes: Sequence[Cause], words: Words
) -> list[dict[str, Any]]:
    """Two bars a cause, its share right at first place and among three, the most frequent first."""
    titles = {cause.id: plain(cause.title.get(words.language)) for cause in causes}
    return [
        {
            "cause": f"n={row.n} · {titles.get(row.cause, row.cause)}",
            "what": words(label),
            "share": value,
            "n": row.n,
        }
        for row in rows
        for label, value in (("page.first_right", row.top1), ("page.three_right", row.top3))
        if value is not None
    ]


def feedback_rows(
    stored: Sequence[StoredFeedback], causes: Sequence[Cause], words: Words
) -> list[tuple[str, int, int]]:
    """Cause the answer named, how often that was right and how often wrong, in the causes' order.

    Only counts: what people wrote is for those who keep the knowledge base.
    """
    counts = Counter((item.feedback.cause, item.feedback.verdict) for item in stored)
    rows = [
        (
            plain(cause.title.get(words.language)),
            counts[cause.id, "right"],
            counts[cause.id, "wrong"],
        )
        for cause in causes
    ]
    return [row for row in rows if row[1] or row[2]]


# --- charts ------------------------------------------------------------------------------------


def bar_chart(bars: Sequence[Bar], title: str) -> Any:  # noqa: ANN401 - altair.Chart
    """Bars lying down, each with its count."""
    import altair as alt

    rows = [{"name": bar.name, "count": bar.count} for bar in bars]
    above = any(cell_len(bar.name) > BESIDE_CELLS for bar in bars)
    room = ROOM * max((bar.count for bar in bars), default=0) or 1
    base = alt.Chart(alt.Data(values=rows)).encode(
        y=_above("name:N", BAR_PX) if above else alt.Y("name:N", sort=None, title=None, axis=WHOLE),
        x=alt.X(
            "count:Q",
            title=title,
            scale=alt.Scale(domain=[0, room], nice=False),
            axis=alt.Axis(labels=False, ticks=False, grid=False),  # each bar has its count
        ),
        tooltip=[alt.Tooltip("name:N", title=" "), alt.Tooltip("count:Q", title=title)],
    )
    text = base.mark_text(align="left", dx=4, color="currentColor").encode(text="count:Q")
    height = (BAR_PX + NAME_PX * above) * len(rows) + TITLE_PX
    return (base.mark_bar(color=BLUE) + text).properties(height=height, config=INK)


def _above(field: str, bar_px: int) -> Any:  # noqa: ANN401 - altair.Y
    """Each name above its bar, from the left edge on: nothing of it is cut off."""
    import altair as alt

    room = NAME_PX / (bar_px + NAME_PX)
    return alt.Y(
        field,
        sort=None,
        title=None,
        scale=alt.Scale(paddingInner=room, paddingOuter=room),
        axis=alt.Axis(
            labelAlign="left",
            labelPadding=0,
            labelOffset=2 - (bar_px + NAME_PX) / 2,
            ticks=False,
            **WHOLE,
        ),
    )


def reliability_chart(bins: Sequence[Any], words: Words) -> Any:  # noqa: ANN401 - altair.Chart
    """Stated probability against the share that was right; on the line they agree."""
    import altair as alt

    rows = [
        {
            "stated": part.confidence,
            "right": part.right.mean,
            "low": part.right.low,
            "high": part.right.high,
            "n": part.right.n,
        }
        for part in bins
    ]
    scale = alt.Scale(domain=[0, 1])
    x = alt.X(
        "stated:Q",
        title=words("page.stated"),
        scale=scale,
        axis=alt.Axis(format="%", tickCount=TICKS),
    )
    y = alt.Y("right:Q", title=words("page.was_right"), scale=scale, axis=alt.Axis(format="%"))
    tooltip = [
        alt.Tooltip("stated:Q", title=words("page.stated"), format=".0%"),
        alt.Tooltip("right:Q", title=words("page.was_right"), format=".0%"),
        alt.Tooltip("n:Q", title="n"),
    ]
    base = alt.Chart(alt.Data(values=rows))
    ideal = alt.Chart(alt.Data(values=[{"at": 0}, {"at": 1}])).encode(x="at:Q", y="at:Q")
    return (
        ideal.mark_line(strokeDash=[5, 4], color=GREY)
        + base.mark_rule(color=PALE, strokeWidth=2).encode(x=x, y=alt.Y("low:Q"), y2="high:Q")
        + base.mark_circle(color=BLUE, size=80, opacity=1).encode(x=x, y=y, tooltip=tooltip)
    ).properties(height=340, config=INK)


def cause_chart(rows: Sequence[dict[str, Any]], words: Words) -> Any:  # noqa: ANN401 - altair.Chart
    """Two bars a cause."""
    import altair as alt

    names = [words("page.first_right"), words("page.three_right")]
    return (
        alt.Chart(alt.Data(values=list(rows)))
        .mark_bar()
        .encode(
            y=_above("cause:N", PAIR_PX),
            yOffset=alt.YOffset("what:N", sort=names),
            x=alt.X(
                "share:Q",
                title=None,
                scale=alt.Scale(domain=[0, 1]),
                axis=alt.Axis(format="%", tickCount=TICKS),
            ),
            color=alt.Color(
                "what:N",
                title=None,
                scale=alt.Scale(domain=names, range=[BLUE, PALE]),
                legend=alt.Legend(orient="top", direction="vertical"),  # narrow screens cut a row
            ),
            tooltip=[
                alt.Tooltip("cause:N", title=" "),
                alt.Tooltip("what:N", title=" "),
                alt.Tooltip("share:Q", title="%", format=".0%"),
            ],
        )
        .properties(height=(PAIR_PX + NAME_PX) * len(rows) // 2 + AXIS_PX + TITLE_PX, config=INK)
    )
