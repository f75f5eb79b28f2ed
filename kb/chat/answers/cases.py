"""Answers about cases: one shown, others like this, a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kb.chat.lookup import find_cases, names_any
from kb.chat.talk import QUOTE_CHARS, Said, Talk, cite_sources
from kb.chat.types import Citation, Statement
from kb.diagnose.engine import SIMILAR_SOUGHT, query_text, search_filters
from kb.errors import InputError
from kb.types import Bilingual, Entry, Filters, Hit

HITS_SHOWN = 3
CHOICES_SHOWN = 5
WEAK = 0.3  # score below which an entry is not called similar
SAME_CAUSE = 0.1  # probability from which a cause makes a case more alike than its words do
TEXT_CHARS = 400  # of a case's section
FIXES_SHOWN = 2


def answer_case(talk: Talk) -> Said:
    """The case meant: by id, number in the list, project or words."""
    if talk.heard.cases:
        return _again(talk)
    found = find_cases(talk)
    if not found:
        return answer_search(talk)
    if len(found) > 1 and talk.judged is None:
        return _choice(talk, found)
    return show_case(talk, found[0])


def _choice(talk: Talk, cases: Sequence[Entry]) -> Said:
    """Several cases to choose from by number."""
    statements = [
        talk.say(
            "case",
            "chat.hit",
            cite_entry(case, talk),
            number=number,
            title=case.title.get(talk.words.language),
            cause=talk.title(case.causes[0].id)
            if case.causes
            else talk.words.say("chat.cause_open"),
            status=talk.words.say(f"claim.{case.status}"),
        )
        for number, case in enumerate(cases[:CHOICES_SHOWN], start=1)
    ]
    return Said(
        statements=(talk.say("note", "chat.found_cases"), *statements),
        shown=tuple(case.id for case in cases[:CHOICES_SHOWN]),
    )


def show_case(talk: Talk, entry: Entry) -> Said:
    """What happened there, why, and what helped."""
    language = talk.words.language
    cause = entry.causes[0].id if entry.causes else ""
    statements = [
        talk.say(
            "case",
            "chat.case",
            cite_entry(entry, talk),
            title=entry.title.get(language),
            project=entry.project,
            cause=_cause(talk, cause),
            status=talk.words.say(f"claim.{entry.status}"),
        )
    ]
    for role in ("symptoms", "causes"):
        text = _section(entry, role, talk)
        if text:
            label = "chat.case_symptoms" if role == "symptoms" else "chat.case_cause"
            own = Citation(kind="case", id=entry.id, quote=text[:QUOTE_CHARS], url=entry.url)
            statements.append(talk.say("case", label, (own,), text=text))
    for fix in entry.fixes[:FIXES_SHOWN]:
        title = fix.title.get(language)
        cited = (
            Citation(kind="case", id=entry.id, quote=title, url=entry.url),
            *cite_sources(fix.sources),
        )
        command = fix.commands[0] if fix.commands else ""
        standing = talk.words.say(f"claim.{fix.status}")
        statements.append(
            talk.say("fix", "chat.case_fix", cited, command=command, title=title, status=standing)
        )
    return Said(statements=tuple(statements), focus=cause, shown=(entry.id,))


def answer_similar(talk: Talk) -> Said:
    """Cases like the incident, on the backend or in the framework named."""
    if talk.heard.cases:
        return _again(talk)
    if talk.judged is None:
        return _similar_there(talk)
    query = query_text(talk.judged.reading) or talk.heard.query
    places = talk.heard.places
    filters = _there(talk, search_filters(talk.conversation.shown))
    causes = tuple(item.id for item in talk.ranked.values() if item.probability >= SAME_CAUSE)
    found = _hits(talk, query, filters, limit=SIMILAR_SOUGHT)
    found = sorted(found, key=lambda hit: hit.cause not in causes)[:HITS_SHOWN]
    if places:
        # Logs of another backend have other words: there the same cause is the likeness.
        same = _hits(talk, query, replace(filters, causes=causes), weakest=0.0) if causes else []
        found = list({hit.entry_id: hit for hit in (*same, *found)}.values())[:HITS_SHOWN]
    if not found and places:
        place = talk.words.join([place.id for place in places])
        return Said(statements=(talk.say("note", "chat.none_there", place=place),))
    return _listed(talk, found)


def _similar_there(talk: Talk) -> Said:
    """Cases of the place named; like what, only a log could tell."""
    found: list[Hit] = []
    if talk.heard.places:
        filters = _there(talk, Filters(kinds=("case",)))
        found = _hits(talk, talk.heard.query, filters, weakest=0.0)
    if not found:
        return talk.need_log()
    said = _listed(talk, found)
    return replace(said, statements=(*said.statements, talk.say("hint", "chat.need_log")))


def _there(talk: Talk, filters: Filters) -> Filters:
    """The filters narrowed to the backends and frameworks the message names."""
    places = talk.heard.places
    return replace(
        filters,
        backends=tuple(name for place in places for name in place.backends),
        frameworks=tuple(name for place in places for name in place.frameworks),
    )


def _again(talk: Talk) -> Said:
    """The cases of an earlier reply, in the language spoken now."""
    known = talk.knowledge.case_by_id
    cases = [known[name] for name in talk.heard.cases if name in known]
    return show_case(talk, cases[0]) if talk.heard.intent == "case" else _choice(talk, cases)


def answer_search(talk: Talk) -> Said:
    """Entries about what the message asks for."""
    if talk.heard.cases:
        return _again(talk)
    if talk.judged is not None and not talk.heard.causes and not names_any(talk.heard.own):
        return answer_similar(talk)
    only = Filters(kinds=("case",))
    found = _hits(talk, talk.heard.query, only)
    if not found and talk.heard.causes:
        by_cause = replace(only, causes=talk.heard.causes)
        found = _hits(talk, talk.heard.query, by_cause, weakest=0.0)
    return _listed(talk, found)


def _hits(
    talk: Talk, query: str, filters: Filters, *, weakest: float = WEAK, limit: int = HITS_SHOWN
) -> list[Hit]:
    try:
        found = talk.service.search(query, filters=filters, limit=limit)
    except InputError:  # nothing to search with is nothing found
        return []
    return [hit for hit in found.hits if hit.score >= weakest]


def _listed(talk: Talk, hits: Sequence[Hit]) -> Said:
    if not hits:
        return Said(statements=(talk.say("note", "chat.none_found"),))
    statements = [_hit(talk, hit, number) for number, hit in enumerate(hits, start=1)]
    return Said(
        statements=(talk.say("note", "chat.found_cases"), *statements),
        shown=tuple(hit.entry_id for hit in hits),
    )


def _hit(talk: Talk, hit: Hit, number: int) -> Statement:
    return talk.say(
        "case",
        "chat.hit",
        (_cite(hit.entry_id, hit.title, hit.url, talk),),
        number=number,
        title=hit.title.get(talk.words.language),
        cause=_cause(talk, hit.cause),
        status=talk.words.say(f"claim.{hit.status}"),
    )


def _cause(talk: Talk, cause: str) -> str:
    return talk.title(cause) if cause else talk.words.say("chat.cause_open")


def cite_entry(entry: Entry, talk: Talk) -> tuple[Citation, ...]:
    """An entry by its title."""
    return (_cite(entry.id, entry.title, entry.url, talk),)


def _cite(identifier: str, title: Bilingual, url: str, talk: Talk) -> Citation:
    quote = title.get(talk.words.language)[:QUOTE_CHARS]
    return Citation(kind="case", id=identifier, quote=quote, url=url)


def _section(entry: Entry, role: str, talk: Talk) -> str:
    """A section's text in the language spoken, or in the one there is; cut at a word."""
    sections = [section for section in entry.sections if section.role == role]
    sections.sort(key=lambda section: section.language != talk.words.language)
    text = " ".join(sections[0].text.split()) if sections else ""
    return text if len(text) <= TEXT_CHARS else f"{text[:TEXT_CHARS].rstrip()}…"
