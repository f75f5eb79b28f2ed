"""What several pages show alike: links between pages, prose, fixes, checks, sources."""

from __future__ import annotations

import re
from collections.abc import Sequence

import streamlit as st
from markupsafe import Markup, escape

from app.render import present
from app.render.escape import md_text, plain, plain_block, safe_url
from app.render.listing import LISTED_NOTES, note_lead, source_links, text_blocks
from app.web.components import markup
from app.web.components.markup import html
from app.web.context import href, interface_words, service
from kb.knowledge.labels import Words
from kb.types.answer import AnswerCheck, AnswerFix, FirstStep, NextStep
from kb.types.entries import Claim, Entry
from kb.types.knowledge import Note

STANDING = {"confirmed": "good", "reported": "info", "unverified": "possible"}
RESTART = {"helps": "good", "will_not_help": "possible"}
LEAD_CHARS = 240  # of a note in a list
OPEN_FIXES = 3  # shown unfolded; some causes have a dozen and more
ABOUT = {
    "cause": "row.cause",
    "fix": "page.about_fix",
    "symptom": "page.about_symptom",
    "other": "page.about_other",
}
_INLINE = re.compile(r"`([^`]+)`")
_ITEM = re.compile(r"(?:[-*•]|([0-9]{1,3})[.)])\s+")


# --- links -------------------------------------------------------------------------------------


def page_link(text: str, page: str, **parameters: str | Sequence[str]) -> Markup:
    """A link to another page of ours, in this tab."""
    return html(
        '<a href="{url}" target="_self">{text}</a>',
        url=Markup(escape(href(page, **parameters))),  # noqa: S704 - escaped here
        text=text,
    )


def entry_link(entry_id: str, text: str = "") -> Markup:
    """A link to the page of a case or another entry."""
    return page_link(text or entry_id, "cases", id=entry_id)


def cause_link(cause_id: str) -> Markup:
    """A link to the page of a cause, under its title; an id nobody knows is shown as it is."""
    cause = service().knowledge.cause_by_id.get(cause_id)
    if cause is None:
        return markup.safe(cause_id)
    return page_link(cause.title.get(interface_words().language), "causes", id=cause_id)


def note_link(note: Note, words: Words) -> Markup:
    """A link to the page of a note, under its title."""
    return page_link(note.title.get(words.language), "notes", id=note.id)


def source_link(url: str, words: Words) -> Markup:
    """A link called "source", or nothing where the address is no http(s) one."""
    return markup.link(words("word.source"), url) if safe_url(url) else markup.NOTHING


def status_badge(status: str) -> Markup:
    """How sure something is, as a badge."""
    return markup.badge(interface_words().term("claim", status), STANDING.get(status, "bad"))


def show_missing(text: str, back: Markup) -> None:
    """Say that what an address names is not there, and where to go on."""
    markup.show(markup.note(text, "possible", role="alert"))
    markup.show(markup.paragraph(back))


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
            parts.append(markup.paragraph(inline(line)))
    return markup.join(parts)


def show_text(title: str, text: str) -> None:
    """Prose under a heading, with its code: what is fenced or indented can be copied."""
    blocks = text_blocks(text)
    lead = blocks.pop(0)[1] if blocks and not blocks[0][0] else []
    markup.show(markup.join([markup.heading(title), prose(lead)]))
    _show_blocks(blocks)


def show_body(text: str) -> None:
    """Prose with its code, without a heading."""
    _show_blocks(text_blocks(text))


def _show_blocks(blocks: Sequence[tuple[bool, Sequence[str]]]) -> None:
    for code, lines in blocks:
        if code:
            show_command("\n".join(lines))
        else:
            markup.show(prose(lines))


def show_command(command: str) -> None:
    """Something to copy, exactly as it stands."""
    st.code(plain_block(command), language=None, wrap_lines=True)


# --- fixes, checks and what they rest on --------------------------------------------------------


def show_fixes(
    fixes: Sequence[AnswerFix],
    words: Words,
    *,
    level: int = 2,
    opened: int = OPEN_FIXES,
    first: FirstStep | None = None,
) -> None:
    """Fixes under a heading, the first ones unfolded; nothing where there are none.

    Of the fix that stands above as the `first` thing to do only the rest is shown, and its command
    stands nowhere again.
    """
    step = {first.fix: first} if first is not None else {}
    shown = [fix for fix in fixes if fix.id not in step or _adds_to(fix, step[fix.id], words)]
    if not shown:
        return
    markup.show(markup.heading(words("heading.fixes"), level=level))
    for at, fix in enumerate(shown):
        above = step.get(fix.id)
        title = words("page.first_fix" if fix.steps else "page.first_fix_more")
        label = md_text(f"{title if above else fix.title} · {words.term('claim', fix.status)}")
        with st.expander(label, expanded=at < opened):
            steps = [inline(text) for text in fix.steps]
            markup.show(markup.listed(steps, ordered=len(steps) > 1))
            # before the commands: what to beware of
            notes = _notes(fix, above, words)
            markup.show(markup.pairs((name, inline(text)) for name, text in notes))
            for command in _commands(fix, first):
                show_command(command)
            markup.show(sources(fix.sources, words))


def _adds_to(fix: AnswerFix, above: FirstStep, words: Words) -> bool:
    """Whether the fix says more than its first step, which stands above."""
    links = source_links(fix.sources)
    return bool(fix.steps or _notes(fix, above, words) or _commands(fix, above) or links)


def _notes(fix: AnswerFix, above: FirstStep | None, words: Words) -> list[tuple[str, str]]:
    """Where a fix applies and what to beware of, without what is said above."""
    return [
        (name, text)
        for name, text in present.fix_notes(fix, words)
        if above is None or text != above.caution
    ]


def _commands(fix: AnswerFix, above: FirstStep | None) -> list[str]:
    """The commands of a fix without the one above."""
    return [each for each in fix.commands if above is None or each != above.command]


def team_line(text: str, url: str) -> Markup:
    """A line of the team's, with the page it names."""
    return html(
        '<p class="tk-note tk-possible">{text} {link}</p>',
        text=text,
        link=markup.link(url, url) if url else markup.NOTHING,
    )


def show_check(item: AnswerCheck | NextStep) -> None:
    """What to run, why, and what each outcome means."""
    why, outcomes = present.check_parts(item)
    markup.show(markup.paragraph(inline(why)))
    if item.command:
        show_command(item.command)
    markup.show(markup.listed([inline(outcome) for outcome in outcomes]))


def sources(urls: Sequence[str], words: Words) -> Markup:
    """The pages something rests on, folded; those that are no http(s) addresses left out."""
    links = [markup.link(url.split("://", 1)[-1], url) for url in source_links(urls)]
    if not links:
        return markup.NOTHING
    return html(
        '<details class="tk-sources"><summary>{label} ({count})</summary>{links}</details>',
        label=words("heading.sources"),
        count=len(links),
        links=markup.join(links, markup.BREAK),
    )


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
            status_badge(row.status),
            source_link(row.source, words),
        ]
        for row in rows
    ]
    return markup.table([header, *body])


# --- entries of a list --------------------------------------------------------------------------


def entry_card(entry: Entry, words: Words) -> Markup:
    """An entry of a list: title and where it is from."""
    return html(
        '<article class="tk-card"><h3 class="tk-h3">{title}</h3>{meta}</article>',
        title=entry_link(entry.id, entry.title.get(words.language)),
        meta=entry_line(
            words,
            kind=entry.kind,
            status=entry.status,
            project=entry.project,
            cause=main_cause(entry),
            date=entry.date,
            url=entry.url,
        ),
    )


def note_card(note: Note, words: Words) -> Markup:
    """A note of a list, told apart from an entry by its edge: title, how it begins."""
    badges = [markup.badge(words("word.note"), "info"), status_badge(note.status)]
    return html(
        '<article class="tk-card tk-answer tk-info"><h3 class="tk-h3">{title}</h3>'
        "<p>{meta}</p><p>{lead}</p></article>",
        title=note_link(note, words),
        meta=markup.join(badges, Markup(" ")),
        lead=inline(_cut(note_lead(note, words.language))),
    )


def _cut(text: str) -> str:
    return text if len(text) <= LEAD_CHARS else f"{text[:LEAD_CHARS].rstrip()}…"


def notes_about(name: str, words: Words) -> Markup:
    """Links to the notes about a cause or a setting, under their heading; nothing without any."""
    notes = service().knowledge.notes_naming(name)
    links = [note_link(note, words) for note in notes[:LISTED_NOTES]]
    if len(notes) > LISTED_NOTES:
        text = words("page.all_notes", count=len(notes))
        links.append(page_link(text, "notes", about=name))
    return markup.section(words("heading.notes"), markup.listed(links))


def main_cause(entry: Entry) -> str:
    """The first cause nobody contradicts, or an empty string."""
    return next((claim.id for claim in entry.causes if claim.status != "contradicted"), "")


def entry_line(
    words: Words, *, kind: str, status: str, project: str, cause: str, date: str, url: str
) -> Markup:
    """One line about an entry: kind, standing, cause, project, date, link."""
    parts = [
        markup.safe(words.term("kind", kind)),
        status_badge(status),
        cause_link(cause) if cause else markup.NOTHING,
        markup.safe(project),
        markup.safe(date),
        source_link(url, words),
    ]
    return markup.faint(markup.join(parts, markup.DOT))
