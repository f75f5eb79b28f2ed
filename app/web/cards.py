"""What several pages show alike: links between pages, prose, fixes, checks, sources."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

import streamlit as st
from markupsafe import Markup, escape

from app.labels import Words
from app.listing import source_links, text_blocks
from app.present import check_view, fix_view
from app.quoting import md_text, plain, plain_block
from app.view import CommandView, FixView
from app.web import markup
from app.web.markup import html
from app.web.parts import LANG, service, words
from kb.diagnose import wording
from kb.diagnose.answer import answer_check, answer_fix
from kb.types import Check, Claim, Entry, Fix

STANDING = {"confirmed": "good", "reported": "info", "unverified": "possible"}
RESTART = {"helps": "good", "will_not_help": "possible"}
OPEN_FIXES = 3  # shown unfolded; some causes have a dozen and more
ABOUT = {
    "cause": "row.cause",
    "fix": "page.about_fix",
    "symptom": "page.about_symptom",
    "other": "page.about_other",
}
_INLINE = re.compile(r"`([^`]+)`")
_ITEM = re.compile(r"(?:[-*•]|(\d{1,3})[.)])\s+")


# --- links -------------------------------------------------------------------------------------


def address(page: str, language: str, parameters: Mapping[str, str | Sequence[str]]) -> str:
    """The address of a page of ours, relative to any other, with all values of every name."""
    return f"./{page}?{urlencode({LANG: language, **parameters}, doseq=True)}"


def inner(text: str, page: str, **parameters: str | Sequence[str]) -> Markup:
    """A link to another page of ours, in this tab."""
    return html(
        '<a href="{url}" target="_self">{text}</a>',
        url=Markup(escape(address(page, words().language, parameters))),  # noqa: S704 - escaped here
        text=text,
    )


def entry_link(entry_id: str, text: str = "") -> Markup:
    """A link to the page of a case or another entry."""
    return inner(text or entry_id, "cases", id=entry_id)


def cause_link(cause_id: str) -> Markup:
    """A link to the page of a cause, under its title; an id nobody knows is shown as it is."""
    cause = service().knowledge.cause_by_id.get(cause_id)
    if cause is None:
        return markup.safe(cause_id)
    return inner(cause.title.get(words().language), "causes", id=cause_id)


def standing(status: str) -> Markup:
    """How sure something is, as a badge."""
    return markup.badge(words().term("claim", status), STANDING.get(status, "bad"))


def not_there(text: str, back: Markup) -> None:
    """Say that what an address names is not there, and where to go on."""
    markup.show(
        html('<div class="tk-note tk-possible" role="alert">{text}</div>', text=plain(text))
    )
    markup.show(html("<p>{back}</p>", back=back))


# --- prose -------------------------------------------------------------------------------------


def inline(line: str) -> Markup:
    """A line with what stands between backticks as code, all else as it is."""
    parts = _INLINE.split(line)
    return markup.join(
        html("<code>{part}</code>", part=part) if number % 2 else _spaced(part)
        for number, part in enumerate(parts)
        if part
    )


def _spaced(text: str) -> Markup:
    """Text that keeps the space before and after it: the pieces of a line are put together."""
    inside = escape(plain(text))
    before, after = (" " if text[at].isspace() else "" for at in (0, -1))
    return before + inside + after if inside else escape(before)


def prose(lines: Sequence[str]) -> Markup:
    """Paragraphs and lists; a line is a paragraph, lines that begin with a dash are items."""
    parts: list[Markup] = []
    items: list[Markup] = []
    ordered = False
    for line in [*lines, ""]:
        mark = _ITEM.match(line)
        if items and (mark is None or (mark[1] is not None) != ordered):
            parts.append(markup.listed(items, ordered=ordered))
            items = []
        if mark:
            ordered = mark[1] is not None
            items.append(inline(line[mark.end() :]))
        elif line.strip():
            parts.append(html("<p>{line}</p>", line=inline(line)))
    return markup.join(parts)


def show_text(title: str, text: str) -> None:
    """Prose under a heading, with its code: what is fenced or indented can be copied."""
    blocks = text_blocks(text)
    lead = blocks.pop(0)[1] if blocks and not blocks[0][0] else []
    markup.show(markup.join([markup.heading(title), prose(lead)]))
    for code, lines in blocks:
        if code:
            show_command("\n".join(lines))
        else:
            markup.show(prose(lines))


def show_command(command: str) -> None:
    """Something to copy, exactly as it stands."""
    st.code(plain_block(command), language=None, wrap_lines=True)


# --- fixes and checks --------------------------------------------------------------------------


def fix_views(fixes: Sequence[Fix], words: Words) -> list[FixView]:
    """Fixes for a reader, as a diagnosis shows them."""
    labels = wording.Words(service().knowledge.labels, words.language)
    return [fix_view(answer_fix(fix, labels), words) for fix in fixes]


def check_views(checks: Sequence[Check], words: Words) -> list[CommandView]:
    """Checks for a reader, with what every outcome means."""
    knowledge = service().knowledge
    labels = wording.Words(knowledge.labels, words.language)
    return [check_view(answer_check(check, knowledge, labels)) for check in checks]


def show_fix(fix: FixView, status: str, *, folded: bool = False) -> None:
    """One fix: title and standing, steps, commands, where it applies, sources."""
    with st.expander(md_text(fix.title), expanded=not folded):
        markup.show(
            html(
                "{standing}{steps}",
                standing=standing(status),
                steps=markup.listed([inline(step) for step in fix.steps], ordered=True),
            )
        )
        for command in fix.commands:
            show_command(command)
        markup.show(markup.pairs((note.label, inline(note.value)) for note in fix.notes))
        markup.show(sources(fix.sources))


def show_fixes(fixes: Sequence[Fix], words: Words) -> None:
    """All fixes under a heading; nothing where there are none."""
    if not fixes:
        return
    markup.show(markup.heading(words("heading.fixes")))
    for at, view in enumerate(fix_views(fixes, words)):
        show_fix(view, fixes[at].status, folded=at >= OPEN_FIXES)


def show_checks(checks: Sequence[Check], words: Words) -> None:
    """All checks under a heading; nothing where there are none."""
    if not checks:
        return
    markup.show(markup.heading(words("heading.checks")))
    for view in check_views(checks, words):
        with st.container(border=True):
            markup.show(html("<p>{tells}</p>", tells=inline(view.why)))
            show_command(view.command)
            markup.show(markup.listed([inline(outcome) for outcome in view.outcomes]))


# --- what it rests on --------------------------------------------------------------------------


def sources(urls: Sequence[str]) -> Markup:
    """The pages something rests on, each once, those that are no http(s) addresses left out."""
    links = [markup.link(url, url) for url in source_links(urls)]
    return html('<div class="tk-faint">{links}</div>', links=markup.join(links, Markup("<br>")))


def claims(rows: Sequence[Claim], words: Words) -> Markup:
    """What is said of a case, how sure each statement is, and where it is said."""
    if not rows:
        return markup.NOTHING
    header = [
        words("page.about"),
        words("page.statement"),
        words("row.status"),
        words("word.source"),
    ]
    body = [
        [
            words(ABOUT.get(row.about, "page.about_other")),
            inline(row.text.get(words.language)),
            standing(row.status),
            markup.link(words("word.source"), row.source) if row.source else "",
        ]
        for row in rows
    ]
    return markup.table([header, *body])


# --- entries of a list --------------------------------------------------------------------------


def entry_card(entry: Entry, spoken: Words) -> Markup:
    """An entry of a list: title and where it is from."""
    return html(
        '<article class="tk-card"><h3 class="tk-h3">{title}</h3>{meta}</article>',
        title=entry_link(entry.id, entry.title.get(spoken.language)),
        meta=meta(
            spoken,
            kind=entry.kind,
            status=entry.status,
            project=entry.project,
            cause=main_cause(entry),
            date=entry.date,
            url=entry.url,
        ),
    )


def main_cause(entry: Entry) -> str:
    """The first cause nobody contradicts, or an empty string."""
    return next((claim.id for claim in entry.causes if claim.status != "contradicted"), "")


def meta(
    spoken: Words, *, kind: str, status: str, project: str, cause: str, date: str, url: str
) -> Markup:
    """One line about an entry: kind, standing, cause, project, date, link."""
    parts = [
        markup.safe(spoken.term("kind", kind)),
        standing(status),
        cause_link(cause) if cause else markup.NOTHING,
        markup.safe(project),
        markup.safe(date),
        markup.link(spoken("word.source"), url) if url else markup.NOTHING,
    ]
    return html('<p class="tk-faint">{parts}</p>', parts=markup.join(parts, Markup(" · ")))
