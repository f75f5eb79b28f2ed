"""The chat's replies for a terminal: statements with what they rest on, questions, suggestions."""

from __future__ import annotations

from collections.abc import Iterable

import click

from app.render.columns import hang, wrap
from app.render.escape import plain, plain_block, safe_url
from app.render.present import place
from app.render.terminal import INDENT, copyable, quoted
from kb.chat.types import Citation, Question, Reply, Statement, StatementRole
from kb.knowledge.labels import Words

SHOWN_SOURCES = 3  # of a statement; a summary may rest on ten
SAME_START = 40  # characters; a statement that begins a quote need not be followed by it
SIGNS: dict[StatementRole, str] = {
    "evidence": "  + ",
    "fix": "  → ",
    "step": f"{INDENT}- ",
    "check": "  ? ",
    "warning": "  ! ",
    "case": "  · ",
}
COLOURS: dict[StatementRole, str] = {
    "change": "cyan",
    "evidence": "cyan",
    "warning": "yellow",
}
WHOLE: frozenset[StatementRole] = frozenset({"verdict", "change"})  # bold to the end


def _statement(statement: Statement, words: Words, *, width: int, shown: set[str]) -> str:
    """One statement with its sources and its command, ending in a newline.

    Quotes and names among those already `shown` in this reply are left out; new ones join them.
    """
    sign = SIGNS.get(statement.role, "")
    text = plain(statement.text)
    lines = hang(sign, text, width) if sign else wrap(text, width)
    colour = COLOURS.get(statement.role)
    if statement.role in WHOLE:
        lines = [click.style(line, fg=colour, bold=True) for line in lines]
    elif colour and lines[0].startswith(sign):
        lines[0] = click.style(sign, fg=colour) + lines[0][len(sign) :]
    shown.add(statement.command)
    for quote in _fresh((citation.quote for citation in statement.citations), shown):
        if quote[:SAME_START] not in text:
            lines += quoted(plain(quote), INDENT, width, fg="cyan")
    sources = [_source(citation, words) for citation in statement.citations]
    where = [source for source in _fresh(sources, shown) if source not in text]
    if where:
        # Never wrapped: a terminal makes a link of an address only in one piece.
        lines += [click.style(INDENT + " · ".join(where[:SHOWN_SOURCES]), dim=True)]
    if statement.command:
        lines += copyable([plain_block(statement.command)])
    return "\n".join(lines) + "\n"


def _fresh(texts: Iterable[str], shown: set[str]) -> list[str]:
    """The texts not shown yet, each once; they are shown then."""
    fresh = [text for text in dict.fromkeys(texts) if text and text not in shown]
    shown.update(fresh)
    return fresh


def _source(citation: Citation, words: Words) -> str:
    """Where a statement comes from: a rank, a line, a name with its address."""
    rank = citation.kind == "rank" and citation.id
    name = words("word.rank", rank=citation.id) if rank else citation.id
    where = plain(place(citation, words))
    parts = [plain(name), where, safe_url(citation.url)]
    return " ".join(part for part in parts if part)


def render_reply(reply: Reply, words: Words, *, width: int) -> str:
    """A whole reply: its statements, the question, what one might say."""
    shown: set[str] = set()
    statements = [
        _statement(statement, words, width=width, shown=shown) for statement in reply.statements
    ]
    lines: list[str] = []
    if reply.question is not None:
        lines += ["", *_question(reply.question, width)]
    if reply.suggestions:
        what = " · ".join(plain(suggestion) for suggestion in reply.suggestions)
        hint = words("talk.suggestions", what=what)
        lines += ["", *(click.style(line, dim=True) for line in wrap(hint, width))]
    return "".join(statements) + ("\n".join([*lines, "", ""]) if lines else "\n")


def _question(question: Question, width: int) -> list[str]:
    lines = [click.style(line, bold=True) for line in wrap(plain(question.text), width)]
    if question.command:
        lines += copyable([plain_block(question.command)])
    for option in question.options:
        lines += hang(f"  {option.number}. ", plain(option.text), width)
    return lines
