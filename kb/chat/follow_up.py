"""What a language model adds to a reply, after it: its reading of the incident, or an answer.

The reply stands before the model is asked. A question that nothing of ours answers goes to it with
what we know of the incident as its only material; else it reads the incident as it is now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kb.chat.answers.answer import cite_case
from kb.chat.assessment import CHANGES_SHOWN, MOVED, verdict_of
from kb.chat.types import Change, Citation, Conversation, Reply, Statement
from kb.diagnose.verdict import Verdict
from kb.diagnose.wording import model_percent
from kb.knowledge.labels import Words
from kb.types.answer import Diagnosis, RankedCause, SimilarCase

if TYPE_CHECKING:
    from kb.second_reader.asking import SecondReader
    from kb.service import Service

WAITING = "waiting"  # why there is no answer yet
CAUSES_GIVEN = 3  # of the incident, as material for an answer
CASES_GIVEN = 3
LINES_GIVEN = 8  # of the log


def is_due(conversation: Conversation) -> bool:
    """Whether a model may add to the last reply: it read an incident, or could not answer."""
    if conversation.reading is None or not conversation.turns:
        return False
    return bool(conversation.unanswered) or conversation.turns[-1].reply.intent in ("log", "tell")


def follow_up(
    service: Service, conversation: Conversation, *, wait_s: float | None
) -> tuple[Reply, str | None] | None:
    """What the model adds to the last reply, and the question it asks; None where nothing is due.

    The question is None where the model has not answered yet: it may be asked for again. Blocks
    for as long as the model takes, at most `wait_s` seconds.
    """
    reader = service.second_reader
    verdict = verdict_of(service, conversation) if is_due(conversation) else None
    if reader is None or verdict is None or verdict.status == "no_timeout":
        return None
    last = conversation.turns[-1].reply
    reply = replace(last, statements=(), question=None, changes=(), suggestions=())
    words = Words(service.knowledge.labels, conversation.language or "en")
    if conversation.unanswered:
        return _answered(service, reader, verdict, words, conversation.unanswered, reply, wait_s)
    better = reader.read(verdict, wait_s=wait_s)
    second = better.second
    if second is None:
        return None
    if second.why:
        question = None if second.why == WAITING else ""
        said = _no_opinion(second.model, second.why, second.why_values, words)
        return replace(reply, statements=(said,)), question
    top = service.settings.top
    ours = service.render(verdict, language=words.language, top=len(service.knowledge.causes))
    both = service.render(better, language=words.language, top=len(service.knowledge.causes))
    moved = _moved(ours, both)
    added = replace(
        reply,
        statements=(*_opinion(both, words), *(_change(change, words) for change in moved)),
        changes=moved,
        diagnosis=replace(both, causes=both.causes[:top]),
    )
    return added, second.ask


def _no_opinion(model: str, why: str, values: Mapping[str, str], words: Words) -> Statement:
    text = words("second.none", model=model, why=words(f"second.{why}", **values))
    return Statement(role="note", text=text)


def _opinion(both: Diagnosis, words: Words) -> tuple[Statement, ...]:
    second = both.second_reader
    if second is None:
        return ()
    top = ", ".join(f"{one.title} {model_percent(one.probability)}" for one in second.top)
    says = words("chat.model_says", model=second.model, top=top, trust=f"{second.trust:.2f}")
    statements = [Statement(role="note", text=says)]
    if second.ask:
        statements.append(Statement(role="hint", text=words("chat.model_asks", ask=second.ask)))
    return tuple(statements)


def _change(change: Change, words: Words) -> Statement:
    text = words(
        "chat.moved_to",
        title=change.title,
        before=model_percent(change.before),
        after=model_percent(change.after),
    )
    citation = Citation(kind="cause", id=change.cause, quote=change.title)
    return Statement(role="change", text=text, citations=(citation,))


def _moved(ours: Diagnosis, both: Diagnosis) -> tuple[Change, ...]:
    before = {cause.id: cause.probability for cause in ours.causes}
    moved = [
        Change(
            cause=cause.id,
            title=cause.title,
            before=before[cause.id],
            after=cause.probability,
        )
        for cause in both.causes
        if abs(cause.probability - before[cause.id]) >= MOVED
    ]
    moved.sort(key=lambda change: (-abs(change.after - change.before), change.cause))
    return tuple(moved[:CHANGES_SHOWN])


# --- free questions ------------------------------------------------------------------------------


def _answered(
    service: Service,
    reader: SecondReader,
    verdict: Verdict,
    words: Words,
    question: str,
    reply: Reply,
    wait_s: float | None,
) -> tuple[Reply, str | None]:
    diagnosis = service.render(verdict, language=words.language, top=CAUSES_GIVEN)
    pieces = material(service, diagnosis, question, words)
    asked = reader.answer(question, [text for _, text in pieces], wait_s=wait_s)
    if asked.why is not None or asked.answer is None:
        why, values = (asked.why.reason, asked.why.values) if asked.why else ("failed", {})
        said = _no_opinion(asked.model, why, values, words)
        return replace(reply, statements=(said,)), None if why == WAITING else ""
    head = Statement(role="note", text=words("chat.model_answers", model=asked.model))
    sentences = tuple(
        Statement(
            role="evidence",
            text=sentence.text,
            citations=tuple(pieces[number][0] for number in sentence.sources),
        )
        for sentence in asked.answer
    )
    return replace(reply, statements=(head, *sentences)), ""


def material(
    service: Service, diagnosis: Diagnosis, question: str, words: Words
) -> list[tuple[Citation, str]]:
    """What is known that may answer a question, each piece with what it cites."""
    pieces = _lines(diagnosis, words)
    pieces += [
        (Citation(kind="rank", id=str(culprit.rank)), culprit.reason)
        for culprit in diagnosis.incident.culprit_ranks
    ]
    pieces += [_cause_piece(cause, service, words) for cause in diagnosis.causes]
    pieces += [_case_piece(case, service, words) for case in diagnosis.cases[:CASES_GIVEN]]
    pieces += _setting_pieces(service, question, words)
    return pieces


def _lines(diagnosis: Diagnosis, words: Words) -> list[tuple[Citation, str]]:
    """The lines of the log that count, each once with all that it shows."""
    shows: dict[Citation, list[str]] = {}
    first = diagnosis.incident.first_error
    if first is not None:
        citation = Citation(kind="line", quote=first.text, line=first.line, file=first.file)
        shows[citation] = [words("row.first_error")]
    for cause in diagnosis.causes:
        for item in cause.evidence:
            if item.quote and item.line:
                citation = Citation(kind="line", quote=item.quote, line=item.line, file=item.file)
                shows.setdefault(citation, []).append(item.reason)
    return [
        (citation, f"{citation.quote}\n({'; '.join(dict.fromkeys(reasons))})")
        for citation, reasons in list(shows.items())[:LINES_GIVEN]
    ]


def _cause_piece(cause: RankedCause, service: Service, words: Words) -> tuple[Citation, str]:
    known = service.knowledge.cause_by_id[cause.id]
    share = model_percent(cause.probability)
    lines = [f"{cause.title} {share}: {known.definition.get(words.language)}"]
    lines += [f"{fix.title}: {' '.join((*fix.steps, *fix.commands))}" for fix in cause.fixes]
    return Citation(kind="cause", id=cause.id, quote=cause.title), "\n".join(lines)


def _case_piece(case: SimilarCase, service: Service, words: Words) -> tuple[Citation, str]:
    entry = service.knowledge.case_by_id.get(case.id)
    fixes = [fix.title.get(words.language) for fix in entry.fixes] if entry else []
    text = "\n".join((f"{case.project}: {case.title} ({case.cause})", *fixes))
    return cite_case(case.id, case.title, case.url), text


def _setting_pieces(
    service: Service, question: str, words: Words
) -> Sequence[tuple[Citation, str]]:
    from kb.settings_check import find_advice

    return [
        (
            Citation(kind="setting", id=item.id, quote=item.effect.get(words.language)),
            f"{item.id}: {item.effect.get(words.language)}",
        )
        for item in find_advice(question, service.knowledge.advice)
    ]
