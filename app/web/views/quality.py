"""The quality page: how good the answers are, what the knowledge covers, what people said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import streamlit as st
from markupsafe import Markup

from app.inputs.contributions import StoredFeedback, read_feedback
from app.web.components import charts, markup
from app.web.components.markup import html
from app.web.context import interface_words, service, show_error
from kb.diagnose.wording import percent
from kb.errors import DataError
from kb.evaluation.figures import RiskPoint, calibration_error, reliability, risk_coverage
from kb.evaluation.published import (
    BatchRecord,
    CauseFigures,
    ConfidenceBin,
    DiagnosisFigures,
    FirstSightAnswer,
    Interval,
    LearningPoint,
    PublishedFigures,
    RetrievalFigures,
    load_published,
    load_records,
)
from kb.knowledge.labels import Words
from kb.types.entries import Entry
from kb.types.knowledge import Cause

MOST_BARS = 15  # of a chart; more values are counted together
LEFT = ("page.by_cause", "page.by_project")  # the two long tables, beside the four short ones
BLUE, PALE, GREY = "#3d86d6", "#a9c9ee", "#888888"  # readable on light and dark ground
HEADLINES = (
    ("top1", "page.first_right"),
    ("top1_also", "page.first_as_good"),
    ("top3", "page.three_right"),
    ("macro_top3", "page.three_right_per_cause"),
    ("known_recall_at_1", "page.known_first"),
    ("known_recall_at_5", "page.known_five"),
    ("parity", "page.twins_agree"),
    ("false_alarms", "page.false_alarms"),
)
BATCHES = 3
SIGHT_BINS = 5  # of the answers of those batches
AT_SIGHT = (
    ("top1", "page.first_right"),
    ("top1_also", "page.first_as_good"),
    ("top3", "page.three_right"),
    ("calibration_error", "page.calibration_gap"),
    ("sure_right", "page.sure_right"),
)
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


def page() -> None:
    """Show the page."""
    words = interface_words()
    markup.show(markup.heading(words("page.quality"), level=1))
    published = _published()
    _first_sight(words)
    if published.diagnosis is not None:
        _diagnosis(published.diagnosis, words)
    if published.retrieval is not None:
        _retrieval(published.retrieval, words)
    if published.diagnosis is None or published.retrieval is None:
        markup.show(markup.note(words("page.not_measured")))
    _coverage(words)
    _feedback(words)


def _published() -> PublishedFigures:
    """What was measured; a damaged file is told and costs only this part of the page."""
    try:
        return load_published(service().settings.data / "golden")
    except DataError as error:
        show_error(error)
        return PublishedFigures()


def _first_sight(words: Words) -> None:
    """The last batches of fresh threads: the only figures nothing was made from."""
    try:
        batches = load_records(service().settings.data / "golden")[-BATCHES:]
    except DataError as error:
        show_error(error)
        return
    if not batches:
        return
    _section(words("page.first_sight"), words("page.what_first_sight"))
    names = [words("page.batch"), words("page.threads"), *(words(label) for _, label in AT_SIGHT)]
    rows = [
        [
            f"{batch.batch} ({batch.date})",
            str(batch.posts),
            *(batch_figure(batch, name) for name, _ in AT_SIGHT),
        ]
        for batch in reversed(batches)
    ]
    markup.show(markup.table([names, *rows]))
    _first_sight_answers([answer for batch in batches for answer in batch.answers], words)


def _first_sight_answers(answers: Sequence[FirstSightAnswer], words: Words) -> None:
    """Whether what is stated of fresh threads can be believed, and what is often missed."""
    if not answers:
        return
    error = f"{calibration_error(answers):.2f}"
    _section(words("page.sight_calibration"), words("page.what_sight", n=len(answers), error=error))
    left, right = st.columns(2)
    with left:
        charts.show_chart(reliability_chart(reliability(answers, SIGHT_BINS), words))
    with right:
        charts.show_chart(risk_chart(risk_coverage(answers), words))
    markup.show(markup.table(sight_table(answers, service().knowledge.causes, words)))


def sight_table(
    answers: Sequence[FirstSightAnswer], causes: Sequence[Cause], words: Words
) -> list[list[str | Markup]]:
    """A row a language and a cause: how many, and how often right first and among three."""
    groups = {
        words("page.english"): [answer for answer in answers if answer.lang == "en"],
        words("page.chinese"): [answer for answer in answers if answer.lang == "zh"],
        words("page.with_log"): [answer for answer in answers if answer.log],
        words("page.words_only"): [answer for answer in answers if not answer.log],
    }
    titles = {cause.id: cause.title.get(words.language) for cause in causes}
    counted = Counter(answer.cause for answer in answers)
    for cause, _ in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0])):
        own = [answer for answer in answers if answer.cause == cause]
        groups[titles.get(cause, cause)] = own
    rows: list[list[str | Markup]] = [
        ["", words("page.threads"), words("page.first_right"), words("page.three_right")]
    ]
    for name, own in groups.items():
        if own:
            first = sum(answer.rank == 1 for answer in own)
            three = sum(answer.rank <= 3 for answer in own)
            rows.append([name, str(len(own)), f"{first} / {len(own)}", f"{three} / {len(own)}"])
    return rows


def risk_chart(points: Sequence[RiskPoint], words: Words) -> charts.Spec:
    """What answering less often buys: the share answered against the share of it wrong."""
    rows = [{"answered": point.coverage, "wrong": point.risk} for point in points]
    whole = {"scale": {"domain": [0, 1]}, "axis": {"format": "%", "tickCount": 5}}
    x = charts.field("answered", "quantitative", words("page.share_answered"), **whole)
    y = charts.field("wrong", "quantitative", words("page.share_wrong"), **whole)
    return {
        "config": charts.INK,
        "data": {"values": rows},
        "height": 340,
        "mark": {"type": "line", "color": BLUE},
        "encoding": {"x": x, "y": y},
    }


def batch_figure(batch: BatchRecord, name: str) -> str:
    """A figure of a batch as people read it; those of a few surely stated answers are counted."""
    if name not in batch.figures:
        return "-"
    mean, low, high = batch.figures[name]
    if name == "sure_right":  # of a handful: an interval would look like more
        sure = round(batch.figures["sure"][0] * batch.posts)
        return f"{round(mean * sure)} / {sure}"
    return share(Interval(mean=mean, low=low, high=high, n=batch.posts))


def _section(title: str, text: str) -> None:
    markup.show(html("{title}<p>{text}</p>", title=markup.heading(title), text=text))


def _diagnosis(measured: DiagnosisFigures, words: Words) -> None:
    _section(
        words("page.how_good"),
        words(
            "page.how_measured",
            incidents=measured.incidents,
            measurable=measured.measurable,
            date=measured.date,
            cases=measured.cases,
        ),
    )
    rows = [[words(label), share(measured.figures.get(name))] for name, label in HEADLINES]
    header = [words("page.figure"), words("page.share_interval")]
    markup.show(markup.table([header, *rows]))
    answered = words(
        "page.answered",
        threshold=percent(measured.unknown_below),
        answered=measured.answered,
        measurable=measured.measurable,
        right=measured.answered_right,
    )
    notes = [answered, words("page.what_known"), words("page.what_twins")]
    if measured.negatives:
        notes.append(words("page.what_alarms", negatives=measured.negatives))
    markup.show(markup.listed(notes))
    parts = [
        [words(PARTS[part.name]), share(part.top1), share(part.top3)]
        for part in measured.parts
        if part.name in PARTS
    ]
    header = [words("page.incidents"), words("page.first_right"), words("page.three_right")]
    markup.show(markup.table([header, *parts]))
    error = measured.figures.get("calibration_error")
    _section(words("page.calibration"), words("page.what_calibration", error=share(error)))
    with st.columns([3, 2])[0]:
        charts.show_chart(reliability_chart(measured.bins, words))
    if measured.learning:
        _section(words("page.learning"), words("page.what_learning"))
        markup.show(markup.table(learning_table(measured.learning, words)))
    _section(words("page.by_cause_right"), words("page.what_causes"))
    markup.show(markup.table(cause_table(measured.causes, service().knowledge.causes, words)))


def learning_table(points: Sequence[LearningPoint], words: Words) -> list[list[str]]:
    """How much was learned from, and what was reached."""
    header = [words("page.reports"), words("page.first_right"), words("page.three_right")]
    rows = [
        [f"{point.name} ({point.reports})", share(point.top1), share(point.top3)]
        for point in points
    ]
    return [header, *rows]


def _retrieval(measured: RetrievalFigures, words: Words) -> None:
    _section(
        words("page.retrieval"),
        words(
            "page.what_retrieval",
            queries=measured.queries,
            cases=measured.cases,
            date=measured.date,
            parity=share(measured.parity_of_words),
        ),
    )
    markup.show(markup.table(recall_table(measured, words)))


def _coverage(words: Words) -> None:
    knowledge = service().knowledge
    _section(
        words("page.coverage"),
        words(
            "page.what_coverage",
            cases=len(knowledge.cases),
            projects=len({case.project for case in knowledge.cases}),
            entries=service().store.count(),
        ),
    )
    left, right = st.columns(2)
    for label, bars in coverage(knowledge.cases, knowledge.causes, words).items():
        with left if label in LEFT else right:
            markup.show(markup.heading(words(label), level=3))
            markup.show(bar_table(bars, words("page.case_count")))


def _feedback(words: Words) -> None:
    stored = read_feedback(service())
    rows = feedback_rows(stored, service().knowledge.causes, words)
    text = words("page.what_feedback", count=len(stored)) if rows else words("page.no_feedback")
    _section(words("page.said"), text)
    if rows:
        header = [words("row.cause"), words("page.said_right"), words("page.said_wrong")]
        body = [[name, str(right), str(wrong)] for name, right, wrong in rows]
        markup.show(markup.table([header, *body]))


# --- figures as rows ---------------------------------------------------------------------------


Count = tuple[str, int]
"""What is counted, and how many there are."""


def spread(values: Iterable[str], *, order: Sequence[str] = (), rest: str = "") -> list[Count]:
    """How often each value stands there: in `order` (zeros included), else the most frequent first.

    Without `order` at most `MOST_BARS` are named; `rest` stands for the others together.
    """
    counts = Counter(values)
    if order:
        return [(name, counts[name]) for name in order]
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    others = sum(count for _, count in ranked[MOST_BARS:])
    return ranked[:MOST_BARS] + ([(rest, others)] if others else [])


def coverage(
    cases: Sequence[Entry], causes: Sequence[Cause], words: Words
) -> dict[str, list[Count]]:
    """How the cases are spread, by the name of the chart's label.

    A case counts for its first cause, so that the bars add up to the cases.
    """
    titles = {cause.id: cause.title.get(words.language) for cause in causes}
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


def share(figure: Interval | None) -> str:
    """A figure as people read it: ``69% (60–77%), n = 105``."""
    if figure is None or figure.mean is None or figure.low is None or figure.high is None:
        return "–"
    low, high = (percent(value).removesuffix("%") for value in (figure.low, figure.high))
    return f"{percent(figure.mean)} ({low}–{high}%), n = {figure.n}"


def recall_table(figures: RetrievalFigures, words: Words) -> list[list[str]]:
    """Recall among five by route and setting, the shipped search first."""
    recall = {(row.setting, row.route): row.recall_at_5 for row in figures.routes}
    body = [
        [words(label), *(share(recall.get((setting, route))) for setting in SETTINGS)]
        for route, label in ROUTES.items()
        if any((setting, route) in recall for setting in SETTINGS)
    ]
    return [[words("page.route"), *(words(label) for label in SETTINGS.values())], *body]


def cause_table(
    rows: Sequence[CauseFigures], causes: Sequence[Cause], words: Words
) -> list[list[Markup | str]]:
    """Each cause with its shares right at first place and among three, as bars and in words."""
    titles = {cause.id: cause.title.get(words.language) for cause in causes}
    header = [words("row.cause"), "n", words("page.first_right"), words("page.three_right")]
    body = [
        [titles.get(row.cause, row.cause), str(row.n), *map(_share_bar, (row.top1, row.top3))]
        for row in rows
        if row.n
    ]
    return [header, *body]


def _share_bar(value: float | None) -> Markup | str:
    return "–" if value is None else _bar(value, percent(value))


def _bar(filled: float, text: str) -> Markup:
    return html(
        '<div class="tk-share tk-likely">{bar}<b>{text}</b></div>',
        bar=markup.bar(filled, text),
        text=text,
    )


def bar_table(bars: Sequence[Count], title: str) -> Markup:
    """What is counted, a bar and a number each; the longest bar is whole."""
    most = max((count for _, count in bars), default=0) or 1
    rows = [[name, _bar(count / most, str(count))] for name, count in bars]
    return markup.table([["", title], *rows])


def reliability_chart(bins: Sequence[ConfidenceBin], words: Words) -> charts.Spec:
    """Stated probability against the share that was right; on the line they agree."""
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
    whole = {"scale": {"domain": [0, 1]}, "axis": {"format": "%", "tickCount": 5}}
    x = charts.field("stated", "quantitative", words("page.stated"), **whole)
    y = charts.field("right", "quantitative", words("page.was_right"), **whole)
    tooltip = [
        charts.field(at["field"], "quantitative", at["title"], format=".0%") for at in (x, y)
    ]
    tooltip.append(charts.field("n", "quantitative", "n"))
    dots = {
        "mark": {"type": "circle", "color": BLUE, "size": 80, "opacity": 1},
        "encoding": {"x": x, "y": y, "tooltip": tooltip},
    }
    intervals = {
        "mark": {"type": "rule", "color": PALE, "strokeWidth": 2},
        "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
    }
    diagonal = {
        "data": {"values": [{"stated": 0, "right": 0}, {"stated": 1, "right": 1}]},
        "mark": {"type": "line", "strokeDash": [5, 4], "color": GREY},
        "encoding": {"x": x, "y": y},
    }
    return {
        "config": charts.INK,
        "data": {"values": rows},
        "height": 340,
        "layer": [diagonal, intervals, dots],
    }


def feedback_rows(
    stored: Sequence[StoredFeedback], causes: Sequence[Cause], words: Words
) -> list[tuple[str, int, int]]:
    """Cause the answer named, how often that was right and how often wrong, in the causes' order.

    Only counts: what people wrote is for those who keep the knowledge base.
    """
    counts = Counter((item.feedback.cause, item.feedback.verdict) for item in stored)
    rows = [
        (
            cause.title.get(words.language),
            counts[cause.id, "right"],
            counts[cause.id, "wrong"],
        )
        for cause in causes
    ]
    return [row for row in rows if row[1] or row[2]]
