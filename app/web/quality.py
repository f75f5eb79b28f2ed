"""The quality page: how good the answers are, what the knowledge covers, what people said."""

from __future__ import annotations

import streamlit as st

from app.contribute import read_feedback
from app.labels import Words
from app.present import percent
from app.web import figures, markup
from app.web.markup import html
from app.web.parts import service, tell, words
from kb.errors import DataError
from kb.evaluation.published import DiagnosisFigures, Published, RetrievalFigures, load_published

LEFT = (0, 5)  # the two long charts, beside the four short ones
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


def page() -> None:
    """Show the page."""
    spoken = words()
    markup.show(markup.heading(spoken("page.quality"), level=1))
    published = _published()
    if published.diagnosis is not None:
        _diagnosis(published.diagnosis, spoken)
    if published.retrieval is not None:
        _retrieval(published.retrieval, spoken)
    if published.diagnosis is None or published.retrieval is None:
        text = spoken("page.not_measured")
        markup.show(html('<div class="tk-note tk-quiet">{text}</div>', text=text))
    _coverage(spoken)
    _feedback(spoken)


def _published() -> Published:
    """What was measured; a damaged file is told and costs only this part of the page."""
    try:
        return load_published(service().settings.data / "golden")
    except DataError as error:
        tell(error)
        return Published()


def _section(title: str, text: str) -> None:
    markup.show(
        html("{title}<p>{text}</p>", title=markup.heading(title), text=text),
    )


def _diagnosis(found: DiagnosisFigures, spoken: Words) -> None:
    _section(
        spoken("page.how_good"),
        spoken(
            "page.how_measured",
            incidents=found.incidents,
            measurable=found.measurable,
            date=found.date,
            cases=found.cases,
        ),
    )
    rows = [[spoken(label), figures.share(found.figures.get(name))] for name, label in HEADLINES]
    header = [spoken("page.figure"), spoken("page.share_interval")]
    markup.show(markup.table([header, *rows]))
    answered = spoken(
        "page.answered",
        threshold=percent(found.unknown_below),
        answered=found.answered,
        measurable=found.measurable,
        right=found.answered_right,
    )
    notes = [answered, spoken("page.what_known"), spoken("page.what_twins")]
    if found.negatives:
        notes.append(spoken("page.what_alarms", negatives=found.negatives))
    markup.show(markup.listed(notes))
    parts = [
        [
            spoken(figures.PARTS[part.name]),
            figures.share(part.top1),
            figures.share(part.top3),
        ]
        for part in found.parts
        if part.name in figures.PARTS
    ]
    header = [spoken("page.incidents"), spoken("page.first_right"), spoken("page.three_right")]
    markup.show(markup.table([header, *parts]))
    _calibration(found, spoken)
    _section(spoken("page.by_cause_right"), spoken("page.what_causes"))
    causes = service().causes()
    st.altair_chart(
        figures.cause_chart(figures.cause_rows(found.causes, causes, spoken), spoken),
        width="stretch",
    )


def _calibration(found: DiagnosisFigures, spoken: Words) -> None:
    error = found.figures.get("calibration_error")
    text = spoken("page.what_calibration", error=figures.share(error))
    _section(spoken("page.calibration"), text)
    left, _ = st.columns([3, 2])
    left.altair_chart(figures.reliability_chart(found.bins, spoken), width="stretch")


def _retrieval(found: RetrievalFigures, spoken: Words) -> None:
    _section(
        spoken("page.retrieval"),
        spoken(
            "page.what_retrieval",
            queries=found.queries,
            cases=found.cases,
            date=found.date,
            parity=figures.share(found.parity_of_words),
        ),
    )
    markup.show(markup.table(figures.recall_table(found, spoken)))


def _coverage(spoken: Words) -> None:
    knowledge = service().knowledge
    _section(
        spoken("page.coverage"),
        spoken(
            "page.what_coverage",
            cases=len(knowledge.cases),
            projects=len({case.project for case in knowledge.cases}),
            entries=service().store.count(),
        ),
    )
    charts = figures.coverage(knowledge.cases, knowledge.causes, spoken)
    left, right = st.columns(2)
    for at, (label, bars) in enumerate(charts.items()):
        with (left, right)[0 if at in LEFT else 1]:
            markup.show(markup.heading(spoken(label), level=3))
            st.altair_chart(figures.bar_chart(bars, spoken("page.case_count")), width="stretch")


def _feedback(spoken: Words) -> None:
    stored = read_feedback(service())
    rows = figures.feedback_rows(stored, service().causes(), spoken)
    text = spoken("page.what_feedback", count=len(stored)) if rows else spoken("page.no_feedback")
    _section(spoken("page.said"), text)
    if rows:
        header = [spoken("row.cause"), spoken("page.said_right"), spoken("page.said_wrong")]
        markup.show(
            markup.table([header, *([name, str(good), str(bad)] for name, good, bad in rows)])
        )
