"""A diagnosis laid out: its head first, then why, what else to do, and what else was seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import streamlit as st
from markupsafe import Markup

from app.render import head, present
from app.render.escape import md_text
from app.web.components import answer_head, cards, charts, log_view, markup
from app.web.components.answer_head import BANDS, NEAR, ShownDiagnosis
from app.web.components.markup import html, join, listed, show
from app.web.context import href
from kb.knowledge.labels import Words
from kb.types.answer import Evidence, RankedCause

TABLE_ROWS = 200  # ranks in the table; all of them stand in the JSON
OPEN_FIXES = 2  # of the first cause; the others are a click away


def show_answer(shown: ShownDiagnosis, below_head: Callable[[], None]) -> None:
    """The whole answer; the callable lays out what stands below its head."""
    diagnosis, words = shown.diagnosis, shown.words
    no_timeout = diagnosis.status == "no_timeout"
    answer_head.show_head(shown)
    if no_timeout:  # whoever pastes settings alone came for these
        _warnings(shown)
        _question(shown)
    below_head()
    if diagnosis.status == "unknown":
        _question(shown)
    if diagnosis.status != "diagnosed":
        _next_steps(shown)
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


# --- without a verdict; what to do next --------------------------------------------------------


def _question(shown: ShownDiagnosis) -> None:
    """Without a verdict the answer is a question: what the check shows, or whether a job hung."""
    words, check = shown.words, shown.diagnosis.best_check
    if shown.diagnosis.status == "no_timeout":
        show(markup.paragraph(words("page.no_timeout_help")))
        useful = ("page.useful_log", "page.useful_debug", "page.useful_stacks")
        show(listed([words(name) for name in useful]))
    elif check is not None:
        show(markup.paragraph(words("page.which")))
        show(listed([cards.inline(outcome) for outcome in check.outcomes]))
    else:
        show(markup.paragraph(words("page.unknown_help")))


def _next_steps(shown: ShownDiagnosis) -> None:
    """The check that decides, then what to collect, without what is to be done first."""
    check, steps = head.check_after_first(shown.diagnosis), head.steps_after_first(shown.diagnosis)
    if check is not None:
        with st.container(border=True):
            show(markup.heading(shown.words("heading.best_check"), level=3))
            cards.show_check(check)
    if steps:
        show(markup.heading(shown.words("heading.next")))
        for step in steps:
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
        frame = st.container(border=True) if number == 1 else st.expander(label)
        with frame, st.container(key=f"tk_cause_{number}"):  # where the keys j and k go
            _cause(shown, cause, number)
    unknown = present.unknown_share(diagnosis, words)
    show(markup.faint(unknown))


def _cause(shown: ShownDiagnosis, cause: RankedCause, number: int) -> None:
    """A cause with its evidence, fixes and checks, without what the head says of the first one."""
    words, diagnosis = shown.words, shown.diagnosis
    show(cause_head(cause, number, words))
    evidence = [item for item in cause.evidence if number > 1 or not _in_head(item, shown)]
    label = "heading.evidence" if len(evidence) == len(cause.evidence) else "page.more_evidence"
    show(markup.section(words(label), evidence_html(shown, evidence), level=3))
    opened = OPEN_FIXES if number == 1 else 0
    cards.show_fixes(cause.fixes, words, level=3, opened=opened, first=diagnosis.first_fix)
    show(
        join(cards.team_line(title, url) for title, url in present.runbooks(cause.runbooks, words))
    )
    checks = [check for check in cause.checks if check != diagnosis.best_check]
    if checks:
        with st.expander(words("heading.checks")):
            for check in checks:
                cards.show_check(check)
    show(
        html(
            '<p class="tk-restart"><b>{label}</b> {text}</p>',
            label=words("heading.restart"),
            text=present.restart_advice(cause, words),
        )
    )


def _in_head(item: Evidence, shown: ShownDiagnosis) -> bool:
    """Whether the head says all of this evidence: its reason and its line."""
    said = item == head.strongest(shown.diagnosis.causes[0])
    return said and item.quote in _line_in_head(shown)


def _line_in_head(shown: ShownDiagnosis) -> str:
    """The line of the input that the head quotes, or an empty string."""
    return head.culprit_line(shown.diagnosis, shown.words)[1]


def cause_head(cause: RankedCause, number: int, words: Words) -> Markup:
    """The way to the cause's own page; of the first one, which is not folded, title and share."""
    link = html(
        '<a class="tk-id" href="{url}" target="_blank">{id}</a>',
        url=href("causes", id=cause.id),
        id=cause.id,
    )
    if number > 1:
        return link
    return html(
        '<div class="tk-cause"><span class="tk-title">{number}. {title}</span> {link}</div>'
        '<div class="tk-share tk-{tone}">{bar}<b>{percent}</b> <span>{band}</span></div>',
        number=number,
        title=cause.title,
        link=link,
        tone=BANDS.get(cause.band, "quiet"),
        bar=markup.bar(cause.probability, present.cause_share(cause)),
        percent=present.cause_share(cause),
        band=words.term("band", cause.band),
    )


def evidence_html(shown: ShownDiagnosis, evidence: Sequence[Evidence]) -> Markup:
    """Each evidence with its quote; where the log is at hand a click shows the lines around.

    What is quoted already is not quoted again: several reasons often rest on one line.
    """
    words = shown.words
    rows = []
    quotes = {_line_in_head(shown), shown.diagnosis.headline}
    for item in evidence:
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
                around=answer_head.around_html(window, words),
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
    if line := present.settings_line(replace(diagnosis, setting_notes=()), words):
        show(markup.faint(line))
    _setting_notes(shown)


def _setting_notes(shown: ShownDiagnosis) -> None:
    """Settings worth knowing, each with what to do; folded, for they do no harm."""
    words, notes = shown.words, shown.diagnosis.setting_notes
    if not notes:
        return
    rows = [
        html(
            '<code>{setting}</code> <b>{advice}</b> <span class="tk-faint">{where}</span><br>'
            "{text} {source}",
            setting=item.setting,
            advice=present.setting_advice(item, words),
            where=present.place(item, words),
            text=item.explanation,
            source=cards.source_link(item.source, words),
        )
        for item in notes
    ]
    show(
        html(
            '<details class="tk-sources"><summary>{label}</summary>{rows}</details>',
            label=words("page.settings_to_know", count=len(notes)),
            rows=listed(rows),
        )
    )


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
        for case in head.cases_not_met(diagnosis)
    )
    show(markup.section(words("heading.cases"), rows))


def _facts(shown: ShownDiagnosis) -> None:
    incident, words = shown.diagnosis.incident, shown.words
    facts = present.facts(incident, words)
    if _line_in_head(shown) and shown.diagnosis.status != "no_timeout":  # else the head names them
        culprits = present.culprits(incident, words)
        facts = [*((words("row.culprit"), text) for text in culprits), *facts]
    if facts:
        with st.container(border=True):
            show(markup.heading(words("page.happened"), level=3))
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
    if charts.is_telling(points):
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
