"""What the chat said, as HTML: statements with numbered sources, changes, the question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from app.labels import Words
from app.present import percent
from app.quoting import plain, safe_url
from app.web import cards, markup
from app.web.markup import html
from kb.chat.chat import HEAD_CHARS
from kb.chat.types import Change, Citation, Question, Statement, Turn

RISES, FALLS = "↑", "↓"
JUDGING = ("log", "tell")  # intents whose replies say which cause leads
LOOK = {"note": "tk-faint", "hint": "tk-faint", "warning": "tk-note tk-possible"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cited:
    """A statement with the numbers of its sources, counted from 1 over the whole reply."""

    statement: Statement
    numbers: tuple[int, ...]


def numbered(statements: Sequence[Statement]) -> tuple[list[Cited], list[Citation]]:
    """Statements with numbers in place of their sources, and the sources in the order of these.

    One source has one number, however often it is cited; a cause is one whatever is quoted of it.
    """
    places: dict[Citation, int] = {}
    cited = [
        Cited(
            statement=statement,
            numbers=tuple(
                dict.fromkeys(
                    places.setdefault(_shown(citation), len(places) + 1)
                    for citation in statement.citations
                )
            ),
        )
        for statement in statements
    ]
    return cited, list(places)


def _shown(item: Citation) -> Citation:
    """The citation without what is not shown: a link to a cause says its title."""
    return replace(item, quote="") if item.kind == "cause" else item


def runs(cited: Sequence[Cited]) -> list[list[Cited]]:
    """The statements in runs that are shown as one piece: a run ends with a command to copy."""
    found: list[list[Cited]] = []
    for item in cited:
        if not found or found[-1][-1].statement.command:
            found.append([])
        found[-1].append(item)
    return found


def statements_html(cited: Sequence[Cited], changes: Sequence[Change] = ()) -> Markup:
    """Statements one below the other; steps that follow each other are one list.

    `changes` tell which way the cause of a statement about a change went.
    """
    rose = {change.cause: change.after > change.before for change in changes}
    parts: list[Markup] = []
    steps: list[Markup] = []
    for item in cited:
        text = html("{text}{marks}", text=_lines(item.statement.text), marks=_marks(item.numbers))
        if item.statement.role == "step" and not item.statement.command:
            steps.append(text)
            continue
        if steps:
            parts.append(markup.listed(steps, ordered=True))
            steps = []
        parts.append(_paragraph(item.statement, text, rose))
    if steps:
        parts.append(markup.listed(steps, ordered=True))
    return markup.join(parts)


def _paragraph(statement: Statement, text: Markup, rose: Mapping[str, bool]) -> Markup:
    if statement.role == "verdict":
        return html("<p><b>{text}</b></p>", text=text)
    if statement.role == "change":
        causes = [item.id for item in statement.citations if item.id in rose]
        if causes:
            arrow, tone = (RISES, "likely") if rose[causes[0]] else (FALLS, "quiet")
            return html("<p>{arrow} {text}</p>", arrow=markup.badge(arrow, tone), text=text)
    return html('<p class="{look}">{text}</p>', look=LOOK.get(statement.role, ""), text=text)


def _lines(text: str) -> Markup:
    return markup.join(
        (markup.safe(line) for line in text.splitlines() if line.strip()), Markup("<br>")
    )


def _marks(numbers: Sequence[int]) -> Markup:
    if not numbers:
        return markup.NOTHING
    return html("<sup class='tk-faint'>[{numbers}]</sup>", numbers=", ".join(map(str, numbers)))


def sources_html(citations: Sequence[Citation], words: Words) -> Markup:
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
    elif item.kind == "setting":
        where = html("<code>{name}</code>", name=item.id)
    elif item.kind != "source":
        where = markup.safe(words.term("source", item.kind))
    url = markup.link(item.url, item.url) if safe_url(item.url) else markup.NOTHING
    return markup.join((where, _quote(item.quote), url), Markup(" "))


def _quote(text: str) -> Markup:
    return html("<code>{text}</code>", text=text) if plain(text) else markup.NOTHING


def changes_html(changes: Sequence[Change], words: Words) -> Markup:
    """How probabilities moved, as a small table: for replies whose statements do not say it."""
    if not changes:
        return markup.NOTHING
    rows = [
        [
            cards.cause_link(change.cause),
            html(
                "{before} → <b>{after}</b> {arrow}",
                before=percent(change.before),
                after=percent(change.after),
                arrow=RISES if change.after > change.before else FALLS,
            ),
        ]
        for change in changes
    ]
    return markup.table([[words("row.cause"), words("page.changed")], *rows])


def question_html(question: Question) -> Markup:
    """The question itself."""
    return html("<p><b>{text}</b></p>", text=question.text)


def options_html(question: Question) -> Markup:
    """The options of a question that has been answered or passed over."""
    return markup.listed([option.text for option in question.options], ordered=True)


def asked_text(turns: Sequence[Turn], at: int) -> str:
    """What the person said; the number of an option is spelt out as that option.

    A turn keeps the beginning of a long message, which is marked as such.
    """
    asked = turns[at].asked
    if len(asked) >= HEAD_CHARS:
        return f"{asked}…"
    question = turns[at - 1].reply.question if at else None
    if question is not None and asked.strip().isdecimal():
        for option in question.options:
            if option.number == int(asked):
                return f"{option.number}. {option.text}"
    return asked


def named_cause(turns: Sequence[Turn]) -> str:
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
