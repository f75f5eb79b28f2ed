"""Replies of the chat as HTML: statements with numbered sources, changes, the question."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from markupsafe import Markup

from app.render.escape import plain, safe_url
from app.web.components import cards, markup
from app.web.components.markup import html
from app.web.context import service
from kb.chat.chat import HEAD_CHARS
from kb.chat.types import Change, Citation, Statement, Turn
from kb.diagnose.wording import model_percent
from kb.knowledge.labels import Words

RISES, FALLS, CHOSEN = "↑", "↓", "✓"
JUDGING = ("log", "tell")  # intents whose replies say which cause leads
LOOK = {"note": "tk-faint", "hint": "tk-faint", "warning": "tk-note tk-possible"}


def number_sources(statements: Sequence[Statement]) -> dict[Citation, int]:
    """The sources of a reply with their numbers, counted from 1 in the order they are met.

    One source has one number, however often it is cited; a cause is one whatever is quoted of it.
    """
    numbers: dict[Citation, int] = {}
    for statement in statements:
        for citation in statement.citations:
            numbers.setdefault(_source(citation), len(numbers) + 1)
    return numbers


def _source(item: Citation) -> Citation:
    """The citation without what is not shown: a link to a cause says its title."""
    return replace(item, quote="") if item.kind == "cause" else item


def show_statements(
    statements: Sequence[Statement], numbers: Mapping[Citation, int], changes: Sequence[Change] = ()
) -> None:
    """Statements one below the other, each command in a box below the one it belongs to."""
    start = 0
    for at, statement in enumerate(statements, start=1):
        if statement.command or at == len(statements):
            markup.show(statements_html(statements[start:at], numbers, changes))
            start = at
        if statement.command:
            cards.show_command(statement.command)


def statements_html(
    statements: Sequence[Statement], numbers: Mapping[Citation, int], changes: Sequence[Change] = ()
) -> Markup:
    """Statements one below the other; steps that follow each other are one list.

    `changes` tell which way the cause of a statement about a change went.
    """
    rose = {change.cause: change.after > change.before for change in changes}
    parts: list[Markup] = []
    for steps, group in itertools.groupby(statements, _is_step):
        texts = [(item, _text(item, numbers)) for item in group]
        if steps:
            parts.append(markup.listed([text for _, text in texts], ordered=True))
        else:
            parts += [_paragraph(item, text, rose) for item, text in texts]
    return markup.join(parts)


def _is_step(statement: Statement) -> bool:
    """Whether it is an item of a list; a step with a command stands alone."""
    return statement.role == "step" and not statement.command


def _text(statement: Statement, numbers: Mapping[Citation, int]) -> Markup:
    """What a statement says, with the numbers of its sources."""
    cited = dict.fromkeys(str(numbers[_source(item)]) for item in statement.citations)
    marks = html("<sup class='tk-faint'>[{numbers}]</sup>", numbers=", ".join(cited))
    return html(
        "{text}{marks}", text=lines_html(statement.text), marks=marks if cited else markup.NOTHING
    )


def _paragraph(statement: Statement, text: Markup, rose: Mapping[str, bool]) -> Markup:
    if statement.role == "verdict":
        return html("<p><b>{text}</b></p>", text=text)
    if statement.role == "change":
        causes = [item.id for item in statement.citations if item.id in rose]
        if causes:
            arrow, tone = (RISES, "likely") if rose[causes[0]] else (FALLS, "quiet")
            return html("<p>{arrow} {text}</p>", arrow=markup.badge(arrow, tone), text=text)
    return html('<p class="{look}">{text}</p>', look=LOOK.get(statement.role, ""), text=text)


def lines_html(text: str) -> Markup:
    """The lines of a text, empty ones left out."""
    return markup.join(
        (markup.safe(line) for line in text.splitlines() if line.strip()), markup.BREAK
    )


def offered_html(offered: Sequence[str], chosen: str) -> Markup:
    """What could be said next, on a line, the one chosen marked."""
    return markup.paragraph(
        markup.join(
            (
                markup.badge(f"{CHOSEN} {text}", "likely") if text == chosen else markup.badge(text)
                for text in offered
            ),
            Markup(" "),
        )
    )


def sources_html(citations: Collection[Citation], words: Words) -> Markup:
    """The sources, folded away under how many there are; opens by click or by key."""
    if not citations:
        return markup.NOTHING
    items = markup.join(html("<li>{item}</li>", item=citation(item, words)) for item in citations)
    return html(
        '<details class="tk-sources"><summary>{title}</summary><ol>{items}</ol></details>',
        title=words("page.sources", count=len(citations)),
        items=items,
    )


def citation(item: Citation, words: Words) -> Markup:
    """Where a statement comes from: line and quote, a page of ours, or an address."""
    where: Markup = markup.NOTHING
    if item.line:
        where = markup.safe(words("word.line", line=item.line))
    elif item.kind == "case":
        where = html("{kind} {link}", kind=words("kind.case"), link=cards.entry_link(item.id))
    elif item.kind == "cause":
        where = html("{kind} {link}", kind=words("row.cause"), link=cards.cause_link(item.id))
    elif item.kind == "note":
        where = html("{kind} {link}", kind=words("word.note"), link=_note_link(item.id, words))
    elif item.kind == "setting":
        where = html("<code>{name}</code>", name=item.id)
    elif item.kind != "source":
        where = markup.safe(words.term("source", item.kind))
    url = markup.link(item.url, item.url) if safe_url(item.url) else markup.NOTHING
    quote = html("<code>{text}</code>", text=item.quote) if plain(item.quote) else markup.NOTHING
    return markup.join((where, quote, url), Markup(" "))


def _note_link(identifier: str, words: Words) -> Markup:
    note = service().knowledge.note_by_id.get(identifier)
    return markup.safe(identifier) if note is None else cards.note_link(note, words)


def changes_html(changes: Sequence[Change], words: Words) -> Markup:
    """How probabilities moved, as a small table: for replies whose statements do not say it."""
    if not changes:
        return markup.NOTHING
    rows = [
        [
            cards.cause_link(change.cause),
            html(
                "{before} → <b>{after}</b> {arrow}",
                before=model_percent(change.before),
                after=model_percent(change.after),
                arrow=RISES if change.after > change.before else FALLS,
            ),
        ]
        for change in changes
    ]
    return markup.table([[words("row.cause"), words("page.changed")], *rows])


def message_text(turns: Sequence[Turn], at: int) -> str:
    """What the person said; the number of an option is spelt out as that option.

    A turn keeps the beginning of a long message, which is marked as such.
    """
    message = turns[at].asked
    if len(message) >= HEAD_CHARS:
        return f"{message}…"
    question = turns[at - 1].reply.question if at else None
    if question is not None and message.strip().isdecimal():
        for option in question.options:
            if option.number == int(message):
                return f"{option.number}. {option.text}"
    return message


def judged_cause(turns: Sequence[Turn]) -> str:
    """The cause the last verdict on the incident named, or an empty string.

    An answer to "why not the network?" is about another cause than the leading one, and where the
    person has said since how it ended, there is nothing to ask.
    """
    for turn in reversed(turns):
        if turn.reply.outcome is not None:
            return ""
        if turn.reply.intent not in JUDGING:
            continue
        for statement in turn.reply.statements:
            if statement.role != "verdict":
                continue
            for item in statement.citations:
                if item.kind == "cause":
                    return item.id
    return ""
