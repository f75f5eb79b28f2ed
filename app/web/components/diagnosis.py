"""A diagnosis laid out: the answer first, then why, what to do, and what else was seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st
from markupsafe import Markup

from app.render import present
from app.render.escape import md_text
from app.web.components import cards, charts, log_view, markup
from app.web.components.log_view import Window
from app.web.components.markup import NOTHING, html, join, listed, show
from app.web.context import href
from kb.knowledge.labels import Words
from kb.types.answer import Diagnosis, RankedCause
from kb.types.incident import LogReading

BANDS = {"certain": "good", "likely": "likely", "possible": "possible"}  # band: tone
NEAR = 3  # lines of the log on each side of an evidence
TABLE_ROWS = 200  # ranks in the table; all of them stand in the JSON
OPEN_FIXES = 2  # of the first cause; the others are a click away


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownDiagnosis:
    """What the sections are laid out from: the diagnosis and the log around it."""

    diagnosis: Diagnosis
    words: Words
    reading: LogReading
    windows: tuple[Window, ...]


def show_answer(shown: ShownDiagnosis, below_verdict: Callable[[], None]) -> None:
    """The whole answer; `below_verdict` lays out what stands between the verdict and the causes."""
    diagnosis, words = shown.diagnosis, shown.words
    show(head(shown))
    below_verdict()
    no_timeout = diagnosis.status == "no_timeout"
    if no_timeout:  # whoever pastes settings alone came for these
        _warnings(shown)
    if diagnosis.status != "diagnosed":
        _collect_first(shown)
    wide, narrow = st.columns([2, 1], gap="medium")
    with wide:
        _causes(shown)
        if shown.windows:
            with st.expander(words("page.log")):
                show(log_view.log_html(shown.windows))
        if not no_timeout:
            _warnings(shown)
        if diagnosis.status == "diagnosed":
            _next_steps(shown)
    with narrow:
        _facts(shown)
        _progress(shown)
        _cases(shown)
    if not no_timeout:
        _timeline(shown)
    footer = present.footer(diagnosis, words)
    show(markup.faint(footer))


def head(shown: ShownDiagnosis) -> Markup:
    """Verdict, culprits, first error, summary: what there is time for at night."""
    diagnosis, words = shown.diagnosis, shown.words
    first = diagnosis.incident.first_error
    error = NOTHING
    if first is not None:
        error = html(
            '<div class="tk-error"><div class="tk-faint">{label} · {where}</div>{quote}</div>',
            label=words("row.first_error"),
            where=present.first_error_place(first, words),
            quote=markup.quote(first.text),
        )
    return html(
        '{notices}<section class="tk-verdict tk-{tone}" aria-live="polite">'
        '<h1 class="tk-h1">{verdict}</h1>'
        '<p class="tk-summary">{summary}</p>{culprits}{error}</section>',
        notices=join(_linked(text, url) for text, url in present.notices(diagnosis, words)),
        tone=tone(diagnosis),
        verdict=present.verdict(diagnosis, words),
        culprits=join(
            html('<div class="tk-culprit">{text}</div>', text=text)
            for text in present.culprits(diagnosis.incident, words)
        ),
        error=error,
        summary=diagnosis.summary,
    )


def _linked(text: str, url: str) -> Markup:
    """A line of the team's, with the page it names."""
    return html(
        '<p class="tk-note tk-possible">{text} {link}</p>',
        text=text,
        link=markup.link(url, url) if url else NOTHING,
    )


def tone(diagnosis: Diagnosis) -> str:
    """The colour of the verdict: by how sure the first cause is."""
    if diagnosis.status == "diagnosed" and diagnosis.causes:
        return BANDS.get(diagnosis.causes[0].band, "quiet")
    return "possible" if diagnosis.status == "unknown" else "quiet"


def _collect_first(shown: ShownDiagnosis) -> None:
    """Without a verdict the next step is the answer: what to do and to bring."""
    words = shown.words
    unknown = shown.diagnosis.status == "unknown"
    text = words("page.unknown_help") if unknown else words("page.no_timeout_help")
    show(markup.paragraph(text))
    if not unknown:
        useful = ("page.useful_log", "page.useful_debug", "page.useful_stacks")
        show(listed([words(name) for name in useful]))
    _next_steps(shown)


def _next_steps(shown: ShownDiagnosis) -> None:
    """The check that decides, then what to collect."""
    diagnosis, words = shown.diagnosis, shown.words
    if diagnosis.best_check is not None:
        with st.container(border=True):
            show(markup.heading(words("heading.best_check"), level=3))
            cards.show_check(diagnosis.best_check)
    if diagnosis.next:
        show(markup.heading(words("heading.next")))
        for step in diagnosis.next:
            cards.show_check(step)


# --- causes ------------------------------------------------------------------------------------


def _causes(shown: ShownDiagnosis) -> None:
    diagnosis, words = shown.diagnosis, shown.words
    if not diagnosis.causes:
        return
    show(markup.heading(words("heading.causes")))
    for number, cause in enumerate(diagnosis.causes, start=1):
        band = words.term("band", cause.band)
        label = md_text(f"{number}. {present.cause_share(cause)} · {cause.title} · {band}")
        with st.container(border=True) if number == 1 else st.expander(label):
            _cause(shown, cause, number)
    unknown = present.unknown_share(diagnosis, words)
    show(markup.faint(unknown))


def _cause(shown: ShownDiagnosis, cause: RankedCause, number: int) -> None:
    words = shown.words
    show(cause_head(cause, number, words))
    show(markup.section(words("heading.evidence"), evidence_html(shown, cause), level=3))
    cards.show_fixes(cause.fixes, words, level=3, opened=OPEN_FIXES if number == 1 else 0)
    show(join(_linked(title, url) for title, url in present.runbooks(cause, words)))
    if cause.checks:
        with st.expander(words("heading.checks")):
            for check in cause.checks:
                cards.show_check(check)
    show(
        html(
            '<p class="tk-restart"><b>{label}</b> {text}</p>',
            label=words("heading.restart"),
            text=present.restart_advice(cause, words),
        )
    )


def cause_head(cause: RankedCause, number: int, words: Words) -> Markup:
    """Number, title, probability as a bar and in words, and the way to the cause's own page."""
    return html(
        '<div class="tk-cause"><span class="tk-title">{number}. {title}</span> '
        '<a class="tk-id" href="{url}" target="_blank">{id}</a></div>'
        '<div class="tk-share tk-{tone}">{bar}<b>{percent}</b> <span>{band}</span></div>',
        number=number,
        title=cause.title,
        url=href("causes", id=cause.id),
        id=cause.id,
        tone=BANDS.get(cause.band, "quiet"),
        bar=markup.bar(cause.probability, present.cause_share(cause)),
        percent=present.cause_share(cause),
        band=words.term("band", cause.band),
    )


def evidence_html(shown: ShownDiagnosis, cause: RankedCause) -> Markup:
    """Each evidence with its quote; where the log is at hand a click shows the lines around.

    What is quoted already is not quoted again: several reasons often rest on one line.
    """
    words = shown.words
    rows = []
    quotes: set[str] = set()
    for item in cause.evidence:
        against = item.weight < 0
        quote = present.new_quote(item, quotes)
        notes = (words("word.against") if against else "", cards.source_link(item.source, words))
        window = None
        if item.line and quote:
            place = log_view.place_of(shown.reading, item.line, item.quote)
            window = log_view.near(shown.windows, place, context=NEAR)
        rows.append(
            html(
                '<div class="tk-ev"><span class="tk-sign">{sign}</span><span>{reason} '
                '<span class="tk-faint">{where}{notes}</span></span>{quote}{around}</div>',
                sign="−" if against else "+",
                reason=item.reason,
                where=present.evidence_place(item, words),
                notes=join(html(" · {note}", note=note) for note in notes if note),
                quote=markup.quote(quote),
                around=NOTHING
                if window is None
                else html(
                    '<details class="tk-around"><summary>{label}</summary>{log}</details>',
                    label=words("page.around"),
                    log=log_view.window_html(window),
                ),
            )
        )
    return join(rows)


# --- the other sections ------------------------------------------------------------------------


def _warnings(shown: ShownDiagnosis) -> None:
    diagnosis, words = shown.diagnosis, shown.words
    rows = join(
        html(
            '<div class="tk-note tk-possible"><code>{setting}</code> <b>{verdict}</b> '
            '<span class="tk-faint">{where}</span><br>{text} {source}'
            '<div class="tk-faint">{notes}</div></div>',
            setting=item.setting,
            verdict=words.term("warning", item.verdict),
            where=present.place(item, words),
            text=item.explanation,
            source=cards.source_link(item.source, words),
            notes=" · ".join(present.warning_notes(item, words)),
        )
        for item in diagnosis.warnings
    )
    show(markup.section(words("heading.warnings"), rows))
    if line := present.settings_line(diagnosis, words):
        show(markup.faint(line))


def _cases(shown: ShownDiagnosis) -> None:
    diagnosis, words = shown.diagnosis, shown.words
    rows = join(
        html(
            '<div class="tk-case"><div><b class="tk-score">{score}</b> '
            '<a href="{url}" target="_blank">{title}</a> {badge}</div>'
            '<div class="tk-faint">{origin}</div>{notes}</div>',
            score=f"{case.score:.2f}",
            url=href("cases", id=case.id),
            title=case.title,
            badge=cards.status_badge(case.status),
            origin=join(
                [
                    markup.safe(case.project),
                    markup.safe(case.cause),
                    cards.source_link(case.url, words),
                ],
                markup.DOT,
            ),
            notes=join(
                html('<div class="tk-alike">{note}</div>', note=note)
                for note in present.case_notes(case, words)
            ),
        )
        for case in diagnosis.cases
    )
    show(markup.section(words("heading.cases"), rows))


def _facts(shown: ShownDiagnosis) -> None:
    facts = present.facts(shown.diagnosis.incident, shown.words)
    if facts:
        with st.container(border=True):
            show(markup.heading(shown.words("page.happened"), level=3))
            show(markup.pairs(facts))


def _progress(shown: ShownDiagnosis) -> None:
    """How far each rank got; nothing where that is not known."""
    words, incident = shown.words, shown.diagnosis.incident
    culprits = (culprit.rank for culprit in incident.culprit_ranks)
    rows = charts.rank_groups(incident.ranks, culprits, incident.first_error)
    if rows:
        with st.container(border=True):
            show(markup.heading(words("heading.ranks"), level=3))
            show(charts.progress_html(rows, words))


def _timeline(shown: ShownDiagnosis) -> None:
    """What happened when, drawn and in words."""
    words, incident = shown.words, shown.diagnosis.incident
    points = charts.timeline_points(shown.reading.events)
    if len(points) > 1:
        show(markup.heading(words("heading.timeline")))
        charts.show_chart(charts.timeline_chart(points, words))
    table = present.rank_table(incident.ranks, words)
    if incident.timeline or table:
        with st.expander(words("page.tables")):
            show(listed([present.moment_text(moment, words) for moment in incident.timeline]))
            if table:
                show(markup.table(table[: TABLE_ROWS + 1]))
            hidden = len(table) - 1 - TABLE_ROWS
            if hidden > 0:
                text = words("page.more_ranks", count=hidden)
                show(markup.faint(text))
