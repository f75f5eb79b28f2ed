"""Answers about cases: one shown, others like this, a search."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from kb.chat.answers.answer import IntentAnswer, cite_case, cite_pages
from kb.chat.phrases import ENTRY_ID
from kb.diagnose.verdict import SIMILAR_SOUGHT, search_filters
from kb.errors import InputError, NotFoundError, UnreachableIndexError
from kb.types.entries import Entry, Filters, Hit

HITS_SHOWN = 3
CHOICES_SHOWN = 5
WEAK = 0.3  # score below which an entry is not called similar
SAME_CAUSE = 0.1  # probability from which a cause makes a case more alike than its words do
TEXT_CHARS = 400  # of a case's section
FIXES_SHOWN = 2
SECTIONS = {"symptoms": "chat.case_symptoms", "causes": "chat.case_cause"}
MIN_SHARE = 0.5  # of the wanted words that a case must have
TIES = 8  # equally well named cases that are compared with the incident
_WORD = re.compile(r"[a-z0-9][a-z0-9_.+-]{1,60}|[\u4e00-\u9fff]{2,12}")


def answer_case(answer: IntentAnswer) -> None:
    """The case meant: by id, number in the list, project or words."""
    cases = _repeated(answer) or _find(answer)
    if not cases:
        answer_search(answer)
    elif len(cases) > 1 and answer.assessment is None and not answer.request.cases:
        _say_choice(answer, cases)
    else:
        _say_case(answer, cases[0])


def answer_similar(answer: IntentAnswer) -> None:
    """Cases like the incident, on the backend or in the framework named."""
    platforms = answer.request.platforms
    repeated = _repeated(answer)
    if repeated:
        _say_choice(answer, repeated)
    elif answer.assessment is None:  # like what, only a log could tell
        there = _on_platforms(answer, Filters(kinds=("case",)))
        hits = _search(answer, answer.request.text, there, weakest=0.0) if platforms else []
        if hits:
            _say_choice(answer, hits)
        answer.say_need_log()
    else:
        hits = _similar(answer, _query(answer) or answer.request.text)
        if hits or not platforms:
            _say_choice(answer, hits)
        else:
            place = answer.words.listing(platform.id for platform in platforms)
            answer.say("note", "chat.none_there", place=place)


def _similar(answer: IntentAnswer, query: str) -> list[Hit]:
    """Cases not shown yet, those of the likely causes first."""
    filters = _on_platforms(answer, search_filters(answer.conversation.shown_cases))
    causes = tuple(item.id for item in answer.ranked.values() if item.probability >= SAME_CAUSE)
    hits = _search(answer, query, filters, limit=SIMILAR_SOUGHT)
    hits = sorted(hits, key=lambda hit: hit.cause not in causes)[:HITS_SHOWN]
    if answer.request.platforms and causes:
        # Logs of another backend have other words: there the same cause is the likeness.
        same = _search(answer, query, replace(filters, causes=causes), weakest=0.0)
        hits = list({hit.entry_id: hit for hit in (*same, *hits)}.values())[:HITS_SHOWN]
    return hits


def answer_search(answer: IntentAnswer) -> None:
    """Entries about what the message asks for."""
    text, causes, repeated = answer.request.text, answer.request.causes, _repeated(answer)
    if repeated:
        _say_choice(answer, repeated)
        return
    if answer.assessment is not None and not causes and not _wanted(answer, text):
        answer_similar(answer)
        return
    filters = Filters(kinds=("case",))
    hits = _search(answer, text, filters)
    if not hits and causes:
        hits = _search(answer, text, replace(filters, causes=causes), weakest=0.0)
    _say_choice(answer, hits)


# --- which cases -------------------------------------------------------------------------------


def _repeated(answer: IntentAnswer) -> list[Entry]:
    """The cases of an earlier reply that is repeated in another language."""
    return [entry for name in answer.request.cases if (entry := _entry(answer, name))]


def _on_platforms(answer: IntentAnswer, filters: Filters) -> Filters:
    """The filters narrowed to the backends and frameworks the message names."""
    platforms = answer.request.platforms
    return replace(
        filters,
        backends=tuple(name for platform in platforms for name in platform.backends),
        frameworks=tuple(name for platform in platforms for name in platform.frameworks),
    )


def _search(
    answer: IntentAnswer,
    query: str,
    filters: Filters,
    *,
    weakest: float = WEAK,
    limit: int = HITS_SHOWN,
) -> list[Hit]:
    try:
        result = answer.service.search_solved(query, filters=filters, limit=limit)
    except (InputError, UnreachableIndexError):  # nothing to search with, or nobody to ask
        return []
    return [hit for hit in result.hits if hit.score >= weakest]


def _find(answer: IntentAnswer) -> list[Entry]:
    """The cases meant, best first: by id, by place in the list, by project or words of the title.

    Several only where the words fit them equally well; those of the incident come first then.
    """
    text, ordinal = answer.request.text.lower(), answer.request.ordinal
    cases = answer.knowledge.case_by_id
    named = next((case for name, case in sorted(cases.items()) if name in text), None)
    own = ENTRY_ID.search(text)
    named = named or (_entry(answer, own[0]) if own else None)
    if named is not None:
        return [named]
    of_incident = [case.id for case in answer.diagnosis.cases] if answer.diagnosis else []
    wanted = _wanted(answer, text)
    if ordinal:
        turns = reversed(answer.conversation.turns)
        listed = next((turn.reply.cases for turn in turns if turn.reply.cases), None)
        ids = (listed or of_incident)[ordinal - 1 : ordinal]
    elif not wanted:
        ids = [*answer.conversation.shown_cases[-1:], *of_incident[:1]][:1]
    else:
        return _ordered(answer, _best_named(list(cases.values()), wanted), of_incident)
    return [entry for name in ids if (entry := _entry(answer, name))]


def _entry(answer: IntentAnswer, name: str) -> Entry | None:
    """The case or the team's entry of that id; None where it is gone."""
    case = answer.knowledge.case_by_id.get(name)
    if case is not None:
        return case
    try:
        return answer.service.entry(name)
    except NotFoundError:
        return None


def _wanted(answer: IntentAnswer, text: str) -> list[str]:
    """The words of a request that say anything of the cases wanted."""
    words = _WORD.findall(answer.phrases.without_case_request(text.lower()))
    return [word for word in words if not answer.phrases.is_case_request(word)]


def _best_named(cases: list[Entry], wanted: list[str]) -> list[Entry]:
    """The cases whose id, project or titles have most of the words, all of them equally many."""
    shares = []
    for case in cases:
        text = f"{case.id} {case.project} {case.title.zh} {case.title.en}".lower()
        shares.append(sum(word in text for word in wanted) / len(wanted))
    best = max(shares, default=0.0)
    if best < MIN_SHARE:
        return []
    return [case for case, share in zip(cases, shares, strict=True) if share == best]


def _ordered(answer: IntentAnswer, ties: list[Entry], of_incident: list[str]) -> list[Entry]:
    """Cases of the incident first, then those most like it, ties by id."""
    place = {name: number for number, name in enumerate(of_incident)}
    scores: dict[str, float] = {}
    query = _query(answer)
    if len(ties) > 1 and query:
        projects = tuple(sorted({case.project for case in ties}))[:TIES]
        filters = Filters(kinds=("case",), projects=projects)
        hits = answer.service.search(query, filters=filters, limit=TIES).hits
        scores = {hit.entry_id: hit.score for hit in hits}
    return sorted(
        ties,
        key=lambda case: (place.get(case.id, len(place)), -scores.get(case.id, 0.0), case.id),
    )


# --- what is said of them ----------------------------------------------------------------------


def _say_choice(answer: IntentAnswer, cases: Sequence[Entry | Hit]) -> None:
    """Several cases to choose from by number."""
    answer.say("note", "chat.found_cases" if cases else "chat.none_found")
    ids = []
    for number, case in enumerate(cases[:CHOICES_SHOWN], start=1):
        if isinstance(case, Hit):
            identifier, cause = case.entry_id, case.cause
        else:
            identifier, cause = case.id, _cause(case)
        title = case.title.get(answer.language)
        answer.say(
            "case",
            "chat.hit",
            (cite_case(identifier, title, case.url),),
            number=number,
            title=title,
            cause=_cause_title(answer, cause),
            status=answer.words(f"claim.{case.status}"),
        )
        ids.append(identifier)
    answer.cases = tuple(ids)


def _say_case(answer: IntentAnswer, entry: Entry) -> None:
    """What happened there, why, and what helped."""
    title = entry.title.get(answer.language)
    answer.say(
        "case",
        "chat.case",
        (cite_case(entry.id, title, entry.url),),
        title=title,
        project=entry.project,
        cause=_cause_title(answer, _cause(entry)),
        status=answer.words(f"claim.{entry.status}"),
    )
    for role, label in SECTIONS.items():
        text = _section(entry, role, answer)
        if text:
            answer.say("case", label, (cite_case(entry.id, text, entry.url),), text=text)
    for fix in entry.fixes[:FIXES_SHOWN]:
        title = fix.title.get(answer.language)
        citations = (cite_case(entry.id, title, entry.url), *cite_pages(fix.sources))
        command, status = "".join(fix.commands[:1]), answer.words(f"claim.{fix.status}")
        answer.say("fix", "chat.case_fix", citations, command, title=title, status=status)
    answer.focus, answer.cases = _cause(entry), (entry.id,)


def _cause(entry: Entry) -> str:
    return entry.causes[0].id if entry.causes else ""


def _cause_title(answer: IntentAnswer, cause: str) -> str:
    return answer.title(cause) if cause else answer.words("chat.cause_open")


def _section(entry: Entry, role: str, answer: IntentAnswer) -> str:
    """A section's text in the language of the reply, or in the one there is; cut at a word."""
    sections = [section for section in entry.sections if section.role == role]
    sections.sort(key=lambda section: section.language != answer.language)
    text = " ".join(sections[0].text.split()) if sections else ""
    return text if len(text) <= TEXT_CHARS else f"{text[:TEXT_CHARS].rstrip()}…"


def _query(answer: IntentAnswer) -> str:
    """What to search with for the incident; empty without one."""
    if answer.assessment is None:
        return ""
    return answer.service.engine.query_text(answer.assessment.reading)
