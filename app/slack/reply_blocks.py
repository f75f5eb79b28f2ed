"""What the chat engine says, as a Slack message; its question as buttons."""

from __future__ import annotations

from app.labels import Words
from app.present import place
from app.quoting import safe_url
from app.slack import kit
from app.slack.diagnosis_blocks import judging_buttons
from app.slack.handles import pack
from app.slack.types import Blocks, Handle, Message
from kb.chat.types import Citation, Question, Reply, Statement

MAX_CITATIONS = 3  # shown a statement
MAX_ANSWERS = 9  # buttons of a question


def reply_message(reply: Reply, words: Words, *, judged: Handle | None = None) -> Message:
    """A reply, statement by statement with what it rests on, then the question.

    `judged` is the diagnosis the person spoke about as right or wrong: buttons keep that.
    """
    blocks: Blocks = [_statement(item, words) for item in reply.statements]
    last: Blocks = []
    if reply.question:
        blocks.append(kit.divider())
        blocks += _question(reply.question)
        last.append(_answers(reply))
    if judged:
        named = bool(judged.cause)
        last.append(kit.actions(judging_buttons(words, judged, named=named)))
    if reply.suggestions:
        last.insert(0, kit.context(words("slack.try", what=" · ".join(reply.suggestions))))
    told = [item.text for item in reply.statements]
    if reply.question:
        told.append(reply.question.text)
    text = " ".join(told)
    return kit.message(text, blocks or [kit.section(text)], last=last, cut=words("slack.cut"))


def _statement(item: Statement, words: Words) -> kit.Element:
    bold = item.role in ("verdict", "change")
    parts = [kit.line(kit.words(item.text, bold=bold), *_citations(item, words))]
    if item.command:
        parts.append(kit.code(item.command))
    return kit.rich(*parts)


def _citations(item: Statement, words: Words) -> list[kit.Element]:
    """What a statement rests on, in brackets; what it names itself is left out."""
    shown: list[kit.Element] = []
    for citation in item.citations:
        one = _citation(citation, words)
        if one and one not in shown and one["text"].casefold() not in item.text.casefold():
            shown.append(one)
    spaced = [part for one in shown[:MAX_CITATIONS] for part in (kit.gap(", "), one)]
    return [kit.gap(" ("), *spaced[1:], kit.gap(")")] if shown else []


def _citation(citation: Citation, words: Words) -> kit.Element | None:
    if safe_url(citation.url):
        return kit.link(citation.id or words("word.source"), citation.url)
    if citation.line:
        return kit.words(place(words, line=citation.line, file=citation.file))
    return kit.words(citation.id, code=True) if citation.id else None


def _question(question: Question) -> Blocks:
    parts = [kit.line(kit.words(question.text, bold=True))]
    if question.command:
        parts.append(kit.code(question.command))
    parts += [kit.line(kit.words(f"{item.number}. {item.text}")) for item in question.options]
    return [kit.rich(*parts)]


def _answers(reply: Reply) -> kit.Element:
    """One button an option; its number comes back as if it was typed."""
    handle = Handle(kept="", language=reply.language, conversation=reply.conversation)
    options = reply.question.options if reply.question else ()
    value = pack(handle)
    return kit.actions(
        [
            kit.button(str(item.number), f"answer_{item.number}", value)
            for item in options[:MAX_ANSWERS]
        ]
    )
