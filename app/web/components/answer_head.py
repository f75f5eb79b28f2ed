"""The head of an answer: what happened, what to do first, how sure and why, where it shows.

It stands on the first screen, of a phone as well; nothing of it is said again below.
"""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st
from markupsafe import Markup

from app.render import head, present
from app.web.components import cards, log_view, markup
from app.web.components.log_view import Window
from app.web.components.markup import NOTHING, html, join, show
from app.web.context import href
from kb.knowledge.labels import Words
from kb.types.answer import Diagnosis, FirstStep
from kb.types.incident import LogReading

BANDS = {"certain": "sure", "likely": "likely", "possible": "possible"}  # band: tone
NEAR = 3  # lines of the log on each side of an evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownDiagnosis:
    """What the sections are laid out from: the diagnosis and the log around it."""

    diagnosis: Diagnosis
    words: Words
    reading: LogReading
    windows: tuple[Window, ...]


def show_head(shown: ShownDiagnosis) -> None:
    """What happened, what to do first, how sure and why, and the line of the log that shows it."""
    diagnosis, words = shown.diagnosis, shown.words
    with st.container(key="tk_head"):
        show(headline_html(diagnosis, words))
        if diagnosis.first_fix is not None:
            _show_first_step(diagnosis.first_fix, head.first_label(diagnosis, words), words)
        certainty = certainty_html(diagnosis, words)
        met_before = met_before_html(diagnosis, words)
        show(join([certainty, met_before, culprit_line_html(shown)]))


def headline_html(diagnosis: Diagnosis, words: Words) -> Markup:
    """The team's notices, and what happened; the verdict of answers without a headline."""
    return html(
        '{notices}<section class="tk-verdict tk-{tone}" aria-live="polite">'
        '<h1 class="tk-h1">{headline}</h1></section>',
        notices=join(
            cards.team_line(text, url) for text, url in present.notices(diagnosis.notices, words)
        ),
        tone=tone(diagnosis),
        headline=head.title(diagnosis, words),
    )


def tone(diagnosis: Diagnosis) -> str:
    """The colour of the head: how sure the first cause is."""
    if diagnosis.status == "diagnosed" and diagnosis.causes:
        return BANDS.get(diagnosis.causes[0].band, "quiet")
    return "quiet"


def _show_first_step(step: FirstStep, label: str, words: Words) -> None:
    """The one thing to do first, with its command to copy and what to beware of."""
    show(
        html(
            '<p class="tk-first"><b>{label}</b> {title}</p>',
            label=label,
            title=cards.inline(step.title),
        )
    )
    if step.command:
        cards.show_command(step.command)
    if step.caution:
        show(
            html(
                '<p class="tk-caution"><b>{label}</b> {text}</p>',
                label=words("page.caution"),
                text=cards.inline(step.caution),
            )
        )


def certainty_html(diagnosis: Diagnosis, words: Words) -> Markup:
    """How sure the first cause is and why, in one line; nothing where there is no cause."""
    if not diagnosis.causes:
        return NOTHING
    lead = diagnosis.causes[0]
    item = head.strongest(lead)
    name = html(
        '<a href="{url}" target="_blank">{title}</a>',
        url=href("causes", id=lead.id),
        title=lead.title,
    )
    if diagnosis.status == "diagnosed":
        band = words.term("band", lead.band)
        band = words("page.certainty", percent=present.cause_share(lead), band=band)
    else:
        band = words("verdict.unknown")
        leading = words("page.nearest", percent=present.cause_share(lead))
        name = html("{leading} {name}", leading=leading, name=name)
    reason = NOTHING
    if item is not None:
        text = item.reason
        if item.kind != "case":  # whose reason names it
            where = present.evidence_place(item, words)
            text = words("word.reason", what=where, reason=text)
        reason = html(" — {text}", text=text)
    return html(
        '<p class="tk-certainty"><span class="tk-badge tk-{tone}">{band}</span> {name}{reason}</p>',
        tone=tone(diagnosis),
        band=band,
        name=name,
        reason=reason,
    )


def met_before_html(diagnosis: Diagnosis, words: Words) -> Markup:
    """The same incident met before: whose, what helped, how it is alike and how it differs.

    What helped is not said again where it is what is to be done first.
    """
    met, first = diagnosis.met_before, diagnosis.first_fix
    if met is None:
        return NOTHING
    is_said = head.helped_before(diagnosis) or (first is not None and first.command == met.command)
    label = words("word.reason", what=head.met_label(diagnosis, words), reason="").rstrip()
    notes = (
        words("word.why", what=words.listing(met.why)) if met.why else "",
        words("word.differs", what=words.listing(met.differs)) if met.differs else "",
    )
    return html(
        '<div class="tk-note tk-info tk-met"><b>{label}</b> {found} '
        '<a href="{url}" target="_blank">{title}</a>{fixed} {command} {source}{notes}</div>',
        label=label,
        found=words("head.met_cause", cause=met.cause_title),
        url=href("cases", id=met.entry),
        title=words("page.that_incident") if met.title == diagnosis.headline else met.title,
        fixed=cards.inline(head.met_fix(diagnosis, words)),
        command=NOTHING
        if is_said or not met.command
        else html("<code>{text}</code>", text=met.command),
        source=cards.source_link(met.url, words),
        notes=join(html('<div class="tk-alike">{note}</div>', note=note) for note in notes if note),
    )


def culprit_line_html(shown: ShownDiagnosis) -> Markup:
    """The line that shows it, with its place; where the log is at hand also the lines around.

    Without a line, as with dumps alone, the ranks to look at stand here.
    """
    diagnosis, words = shown.diagnosis, shown.words
    where, text = head.culprit_line(diagnosis, words)
    if not text:
        culprits = present.culprits(diagnosis.incident, words)
        label = words("row.culprit")
        return join(
            html(
                '<div class="tk-culprit"><b>{label}</b> {text}</div>',
                label="" if number else label,
                text=text,
            )
            for number, text in enumerate(culprits)
        )
    first = diagnosis.incident.first_error
    if first is not None and first.text:
        label, place = words("row.first_error"), (first.file, first.line)
    else:
        item = head.strongest(diagnosis.causes[0])
        label = words("page.shown_by")
        place = log_view.place_of(shown.reading, item.line if item else 0, text)
    return html(
        '<div class="tk-error tk-{tone}"><div class="tk-faint">{label}</div>{quote}{around}</div>',
        tone="possible" if first is None else "bad",  # a rank that waited broke nothing
        label=join([markup.safe(label), markup.safe(where)], markup.DOT),
        quote=markup.quote(text),
        around=around_html(log_view.near(shown.windows, place, context=NEAR), words),
    )


def around_html(window: Window | None, words: Words) -> Markup:
    """The lines around a place, folded; nothing where the log is not at hand."""
    if window is None:
        return NOTHING
    return html(
        '<details class="tk-around"><summary>{label}</summary>{log}</details>',
        label=words("page.around"),
        log=log_view.window_html(window),
    )
