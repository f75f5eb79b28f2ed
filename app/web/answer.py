"""A diagnosis laid out: the answer first, then why, what to do, and what else was seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import streamlit as st
from markupsafe import Markup

from app.labels import Words
from app.quoting import md_text
from app.view import CauseView, CommandView, FixView, View
from app.web import charts, log_view, markup
from app.web.log_view import Window
from app.web.markup import NOTHING, badge, html, join, listed, show
from app.web.parts import href
from kb.types import Diagnosis, LogReading, RankedCause

BANDS = {"certain": "good", "likely": "likely", "possible": "possible"}  # band: tone
CLAIMS = {"confirmed": "good", "reported": "likely", "contradicted": "bad"}  # standing: tone
NEAR = 3  # lines of the log on each side of an evidence
TABLE_ROWS = 200  # ranks in the table; all of them stand in the JSON
FIXES_AT_SIGHT = 2  # of the first cause; the others are a click away


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the sections are laid out from: the answer, its view, and the log around it."""

    diagnosis: Diagnosis
    view: View
    words: Words
    reading: LogReading
    windows: tuple[Window, ...]


def show_answer(shown: Shown, actions: Callable[[], None]) -> None:
    """The whole answer; `actions` lays out what can be done with it, below the verdict."""
    show(head(shown))
    actions()
    no_timeout = shown.view.status == "no_timeout"
    if no_timeout:  # whoever pastes settings alone came for these
        _warnings(shown)
    if shown.view.status != "diagnosed":
        _collect_first(shown)
    wide, narrow = st.columns([2, 1], gap="medium")
    with wide:
        _causes(shown)
        _log(shown)
        if not no_timeout:
            _warnings(shown)
        if shown.view.status == "diagnosed":
            _best_check(shown)
            _next(shown)
    with narrow:
        _facts(shown)
        _progress(shown)
        _cases(shown)
    _timeline(shown)
    show(html('<p class="tk-faint">{footer}</p>', footer=shown.view.footer))


def head(shown: Shown) -> Markup:
    """Verdict, culprits, first error, summary: what there is time for at night."""
    view, words = shown.view, shown.words
    culprits = join(
        html('<div class="tk-culprit">{text}</div>', text=text) for text in view.culprits
    )
    error = NOTHING
    if view.first_error is not None:
        error = html(
            '<div class="tk-error"><div class="tk-faint">{label} · {where}</div>{quote}</div>',
            label=words("row.first_error"),
            where=view.first_error.where,
            quote=markup.quote(view.first_error.text),
        )
    return html(
        '<section class="tk-verdict tk-{tone}" aria-live="polite"><h1 class="tk-h1">{verdict}</h1>'
        '<p class="tk-summary">{summary}</p>{culprits}{error}</section>',
        tone=tone(shown.diagnosis),
        verdict=view.verdict,
        culprits=culprits,
        error=error,
        summary=view.summary,
    )


def tone(diagnosis: Diagnosis) -> str:
    """The colour of the verdict: by how sure the first cause is."""
    if diagnosis.status == "diagnosed" and diagnosis.causes:
        return BANDS.get(diagnosis.causes[0].band, "quiet")
    return "possible" if diagnosis.status == "unknown" else "quiet"


def _collect_first(shown: Shown) -> None:
    """Without a verdict the next step is the answer: what to do and to bring."""
    words = shown.words
    text = (
        words("page.unknown_help")
        if shown.view.status == "unknown"
        else words("page.no_timeout_help")
    )
    show(html("<p>{text}</p>", text=text))
    if shown.view.status == "no_timeout":
        items = [words("page.useful_log"), words("page.useful_debug"), words("page.useful_stacks")]
        show(listed(items))
    _best_check(shown)
    _next(shown)


# --- causes ------------------------------------------------------------------------------------


def _causes(shown: Shown) -> None:
    view, words = shown.view, shown.words
    if not view.causes:
        return
    show(markup.heading(words("heading.causes")))
    for number, (cause, ranked) in enumerate(
        zip(view.causes, shown.diagnosis.causes, strict=True), start=1
    ):
        if number == 1:
            with st.container(border=True):
                _cause(shown, cause, ranked, number, at_sight=FIXES_AT_SIGHT)
        else:
            label = md_text(f"{number}. {cause.percent} · {cause.title} · {cause.band}")
            with st.expander(label):
                _cause(shown, cause, ranked, number, at_sight=0)
    show(html('<p class="tk-faint">{text}</p>', text=view.unknown))


def _cause(
    shown: Shown, cause: CauseView, ranked: RankedCause, number: int, *, at_sight: int
) -> None:
    words = shown.words
    show(cause_head(shown, cause, ranked, number))
    if cause.evidence:
        title = markup.heading(words("heading.evidence"), level=3)
        show(html("{title}{rows}", title=title, rows=evidence_html(shown, cause, ranked)))
    if cause.fixes:
        show(markup.heading(words("heading.fixes"), level=3))
        for fix, answer in list(zip(cause.fixes, ranked.fixes, strict=True))[:at_sight]:
            _fix(fix, answer.status, words)
        for fix, answer in list(zip(cause.fixes, ranked.fixes, strict=True))[at_sight:]:
            with st.expander(md_text(f"{fix.title} · {fix.status}")):
                _fix(fix, answer.status, words, titled=False)
    if cause.checks:
        with st.expander(words("heading.checks")):
            for check in cause.checks:
                _command(check)
    show(
        html(
            '<p class="tk-restart"><b>{label}</b> {text}</p>',
            label=words("heading.restart"),
            text=cause.restart,
        )
    )


def cause_head(shown: Shown, cause: CauseView, ranked: RankedCause, number: int) -> Markup:
    """Number, title, probability as a bar and in words, and the way to the cause's own page."""
    return html(
        '<div class="tk-cause"><span class="tk-title">{number}. {title}</span> '
        '<a class="tk-id" href="{url}" target="_blank">{id}</a></div>'
        '<div class="tk-share tk-{tone}"><div class="tk-bar" role="img" aria-label="{percent}">'
        '<i style="width:{width}%"></i></div><b>{percent}</b> <span>{band}</span></div>',
        number=number,
        title=cause.title,
        url=href("causes", id=cause.id),
        id=cause.id,
        tone=BANDS.get(ranked.band, "quiet"),
        percent=cause.percent,
        width=round(100 * min(1.0, max(0.0, ranked.probability)), 1),
        band=cause.band,
    )


def evidence_html(shown: Shown, cause: CauseView, ranked: RankedCause) -> Markup:
    """Each evidence with its quote; where the log is at hand a click shows the lines around.

    What is quoted already is not quoted again: several reasons often rest on one line.
    """
    rows = []
    quoted: set[str] = set()
    for item, raw in zip(cause.evidence, ranked.evidence, strict=True):
        quote = NOTHING if item.quote in quoted else markup.quote(item.quote)
        quoted.add(item.quote)
        line = html(
            '<span class="tk-sign">{sign}</span><span>{reason} '
            '<span class="tk-faint">{where} {word}{source}</span></span>',
            sign="−" if item.against else "+",
            reason=item.reason,
            where=item.where,
            source=html(" · {link}", link=markup.link(shown.words("word.source"), item.url))
            if item.url
            else NOTHING,
            word=f"· {shown.words('word.against')}" if item.against else "",
        )
        window = None
        if raw.line and quote:
            place = log_view.place_of(shown.reading, raw.line, raw.quote)
            window = log_view.near(shown.windows, place, context=NEAR)
        around = NOTHING if window is None else _around(window, shown.words)
        rows.append(
            html(
                '<div class="tk-ev">{line}{quote}{around}</div>',
                line=line,
                quote=quote,
                around=around,
            )
        )
    return join(rows)


def _around(window: Window, words: Words) -> Markup:
    return html(
        '<details class="tk-around"><summary>{label}</summary>{log}</details>',
        label=words("page.around"),
        log=log_view.window_html(window),
    )


def _fix(fix: FixView, status: str, words: Words, *, titled: bool = True) -> None:
    title = html('<b class="tk-title">{title}</b> ', title=fix.title) if titled else NOTHING
    show(
        html(
            '<div class="tk-fix">{title}{badge}{steps}{notes}</div>',
            title=title,
            badge=badge(fix.status, CLAIMS.get(status, "quiet")),
            steps=listed(fix.steps, ordered=len(fix.steps) > 1),
            notes=join(
                html(
                    '<p class="tk-faint"><b>{label}</b> {value}</p>',
                    label=note.label,
                    value=note.value,
                )
                for note in fix.notes
            ),
        )
    )
    for command in fix.commands:
        st.code(command, language=None, wrap_lines=True)
    show(sources(fix.sources, words))


def sources(urls: Sequence[str], words: Words) -> Markup:
    """Where a statement comes from."""
    if not urls:
        return NOTHING
    links = join((markup.link(url.split("://", 1)[-1], url) for url in urls), html("<br>"))
    return html(
        '<details class="tk-sources"><summary>{label} ({count})</summary>{links}</details>',
        label=words("heading.sources"),
        count=len(urls),
        links=links,
    )


def _command(command: CommandView) -> None:
    show(html("<p>{why}</p>", why=command.why))
    if command.command:
        st.code(command.command, language=None, wrap_lines=True)
    show(listed(command.outcomes))


# --- the other sections ------------------------------------------------------------------------


def _log(shown: Shown) -> None:
    if not shown.windows:
        return
    with st.expander(shown.words("page.log")):
        show(log_view.log_html(shown.windows))


def _warnings(shown: Shown) -> None:
    view, words = shown.view, shown.words
    if not view.warnings:
        return
    rows = join(
        html(
            '<div class="tk-note tk-possible"><code>{setting}</code> <b>{verdict}</b> '
            '<span class="tk-faint">{where}</span><br>{text} {source}'
            '<div class="tk-faint">{notes}</div></div>',
            setting=item.setting,
            verdict=item.verdict,
            where=item.where,
            text=item.explanation,
            source=markup.link(words("word.source"), item.url) if item.url else NOTHING,
            notes=" · ".join(item.notes),
        )
        for item in view.warnings
    )
    show(html("{title}{rows}", title=markup.heading(words("heading.warnings")), rows=rows))


def _cases(shown: Shown) -> None:
    view, words = shown.view, shown.words
    if not view.cases:
        return
    rows = join(
        html(
            '<div class="tk-case"><div><b class="tk-score">{score}</b> '
            '<a href="{url}" target="_blank">{title}</a> {badge}</div>'
            '<div class="tk-faint">{project} · {cause}{source}</div>{notes}</div>',
            score=case.score,
            url=href("cases", id=case.id),
            title=case.title,
            badge=badge(case.status, CLAIMS.get(raw.status, "quiet")),
            project=case.project,
            cause=case.cause,
            source=html(" · {link}", link=markup.link(words("word.source"), case.url))
            if case.url
            else NOTHING,
            notes=join(
                html('<div class="tk-alike">{note}</div>', note=note) for note in case.notes
            ),
        )
        for case, raw in zip(view.cases, shown.diagnosis.cases, strict=True)
    )
    show(html("{title}{rows}", title=markup.heading(words("heading.cases")), rows=rows))


def _next(shown: Shown) -> None:
    if not shown.view.next:
        return
    show(markup.heading(shown.words("heading.next")))
    for step in shown.view.next:
        _command(step)


def _best_check(shown: Shown) -> None:
    if shown.view.best_check is None:
        return
    with st.container(border=True):
        show(markup.heading(shown.words("heading.best_check"), level=3))
        _command(shown.view.best_check)


def _facts(shown: Shown) -> None:
    if not shown.view.facts:
        return
    with st.container(border=True):
        show(markup.heading(shown.words("page.happened"), level=3))
        show(markup.pairs((row.label, row.value) for row in shown.view.facts))


def _progress(shown: Shown) -> None:
    """How far each rank got; nothing where that is not known."""
    words, incident = shown.words, shown.diagnosis.incident
    culprits = (culprit.rank for culprit in incident.culprit_ranks)
    rows = charts.progress(incident.ranks, culprits, incident.first_error)
    if rows:
        with st.container(border=True):
            show(markup.heading(words("heading.ranks"), level=3))
            _chart(charts.progress_chart(rows, words))


def _chart(spec: charts.Spec) -> None:
    """A chart that has its place before it is drawn: what stands below it never moves."""
    st.vega_lite_chart(spec=spec, height=spec["height"])


def _timeline(shown: Shown) -> None:
    """What happened when, drawn and in words."""
    words, table = shown.words, shown.view.ranks
    if shown.view.status == "no_timeout":
        return
    points = charts.moments(shown.reading.events)
    if len(points) > 1:
        show(markup.heading(words("heading.timeline")))
        _chart(charts.timeline_chart(points, words))
    if shown.view.timeline or table is not None:
        with st.expander(words("page.tables")):
            show(listed(shown.view.timeline))
            if table is not None:
                show(markup.table(table.rows[: TABLE_ROWS + 1]))
                left = len(table.rows) - 1 - TABLE_ROWS
                if left > 0:
                    more = words("page.more_ranks", count=left)
                    show(html('<p class="tk-faint">{text}</p>', text=more))
