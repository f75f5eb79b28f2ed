"""Evidence put into statements; shared by the answers about causes."""

from __future__ import annotations

from collections.abc import Iterable

from kb.chat.talk import QUOTE_CHARS, Talk, cite_cause
from kb.chat.types import Citation, Statement
from kb.diagnose.wording import place
from kb.types import Evidence

MIN_NATS = 0.15  # weaker evidence is not worth a tired person's time
SPOKEN_CHARS = 120  # of a quote inside a sentence; the citation has more
REASONS = 3  # told of one line


def evidence_statements(
    talk: Talk, cause: str, *, speaks: int, limit: int, cases: bool = True
) -> list[Statement]:
    """The strongest evidence for (`speaks` = 1) or against (-1) a cause, a statement a quote.

    What the log and the person say comes before like `cases`.
    """
    ranked = talk.ranked.get(cause)
    if ranked is None:
        return []
    chosen = [
        item
        for item in ranked.evidence
        if item.weight * speaks >= MIN_NATS and (cases or item.kind != "case")
    ]
    chosen.sort(key=lambda item: item.kind == "case")
    return [_statement(talk, cause, group) for group in _by_quote(chosen)[:limit]]


def _by_quote(items: Iterable[Evidence]) -> list[list[Evidence]]:
    """Evidence of one quote together, since a line often gives several signals."""
    groups: dict[tuple[str, str, int, str], list[Evidence]] = {}
    for item in items:
        key = (item.quote, item.file, item.line, item.source if item.kind == "case" else "")
        groups.setdefault(key, []).append(item)
    return list(groups.values())


def _statement(talk: Talk, cause: str, group: list[Evidence]) -> Statement:
    item = group[0]
    quote = shorten(item.quote)
    if item.kind == "case":
        return talk.say("evidence", "chat.case_alike", _cite_case(talk, item), title=quote)
    reasons = list(dict.fromkeys(other.reason for other in group))[:REASONS]
    reason = talk.words.say("chat.reasons").join(reasons)
    if not quote:
        cited = cite_cause(talk.knowledge.cause_by_id[cause], talk)
        return talk.say("evidence", "chat.log_shows", cited, reason=reason)
    citation = cite_evidence(item)
    if citation.line:
        where = place(talk.words, item)
        return talk.say(
            "evidence", "chat.log_says", (citation,), place=where, quote=quote, reason=reason
        )
    own = any(item.quote in told for told in talk.conversation.told)
    label = "chat.you_said" if own else "chat.found"
    return talk.say("evidence", label, (citation,), quote=quote, reason=reason)


def shorten(quote: str) -> str:
    """A quote of one line, short enough to stand in a sentence."""
    line = " ".join(quote.split())
    return line if len(line) <= SPOKEN_CHARS else f"{line[:SPOKEN_CHARS].rstrip()}…"


def cite_evidence(item: Evidence) -> Citation:
    """What a piece of evidence rests on."""
    quote = item.quote[:QUOTE_CHARS]
    url = item.source if item.source.startswith(("https://", "http://")) else ""
    if item.kind == "text":  # what a person says of a log is no line of it
        return Citation(kind="text", quote=quote, url=url)
    if item.line:
        return Citation(kind="line", quote=quote, line=item.line, url=url, file=item.file)
    return Citation(kind="rank" if item.kind == "rank" else "text", quote=quote, url=url)


def _cite_case(talk: Talk, item: Evidence) -> tuple[Citation, ...]:
    case = talk.knowledge.case_by_id.get(item.source)
    quote = item.quote[:QUOTE_CHARS]
    return (Citation(kind="case", id=item.source, quote=quote, url=case.url if case else ""),)
