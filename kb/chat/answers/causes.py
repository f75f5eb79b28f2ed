"""Answers about causes: why this one, why not that, how sure, what it is, whether to restart."""

from __future__ import annotations

from dataclasses import replace

from kb.chat.answers.evidence import evidence_statements
from kb.chat.talk import Said, Talk, cite_cause, cite_sources
from kb.chat.types import Citation, Statement
from kb.types import Cause, Pattern

FOR_SHOWN = 4
GENERAL_SHOWN = 2  # causes told of before there is a log; “the network” means two
AGAINST_SHOWN = 2
ABSENT_SHOWN = 2
TELLING_NATS = 2.0  # a line that says this much about a cause would be expected under it
SHOWS_SHOWN = 2


def answer_why(talk: Talk) -> Said:
    """Why this cause, or why not that one."""
    meant, leading = talk.meant(), talk.leading
    if not meant or leading is None:
        return _in_general(talk) if meant else talk.need_log()
    if meant == leading.id:
        return _why(talk, meant)
    return _why_not(talk, meant, leading.id)


def _in_general(talk: Talk) -> Said:
    """What the causes named are and how they show, before there is a log that could tell."""
    named = talk.heard.causes[:GENERAL_SHOWN] or (talk.meant(),)
    said = [
        answer_cause(replace(talk, heard=replace(talk.heard, causes=(item,)))) for item in named
    ]
    statements = [statement for item in said for statement in item.statements]
    return Said(statements=(*statements, *talk.need_log().statements))


def _why(talk: Talk, cause: str) -> Said:
    entry = talk.knowledge.cause_by_id[cause]
    ranked = talk.ranked[cause]
    cited = cite_cause(entry, talk)
    percent = talk.percent(ranked.probability)
    statements = [talk.say("verdict", "chat.stands_at", cited, title=ranked.title, percent=percent)]
    statements += evidence_statements(talk, cause, speaks=1, limit=FOR_SHOWN)
    against = evidence_statements(talk, cause, speaks=-1, limit=AGAINST_SHOWN)
    if against:
        statements += [talk.say("note", "chat.against_it"), *against]
    return Said(statements=(*statements, *_would_confirm(talk, entry)), focus=cause)


def _why_not(talk: Talk, cause: str, leading: str) -> Said:
    entry, top = talk.knowledge.cause_by_id[cause], talk.knowledge.cause_by_id[leading]
    statements = [
        talk.say(
            "verdict",
            "chat.less_likely",
            (*cite_cause(entry, talk)[:1], *cite_cause(top, talk)[:1]),
            title=talk.title(cause),
            percent=talk.percent(talk.ranked[cause].probability),
            leading=talk.title(leading),
            leading_percent=talk.percent(talk.ranked[leading].probability),
        )
    ]
    speaks_for = evidence_statements(talk, cause, speaks=1, limit=AGAINST_SHOWN)
    if speaks_for:
        statements += [talk.say("note", "chat.for_it"), *speaks_for]
    against = evidence_statements(talk, cause, speaks=-1, limit=AGAINST_SHOWN)
    if against:
        statements += [talk.say("note", "chat.against_it"), *against]
    statements += _absent(talk, entry)
    better = evidence_statements(talk, leading, speaks=1, limit=AGAINST_SHOWN)
    if better:
        statements += [talk.say("note", "chat.for_leading", title=talk.title(leading)), *better]
    # "How do I fix it?" after this still means what is most likely.
    return Said(statements=(*statements, *_would_confirm(talk, entry)))


def _absent(talk: Talk, cause: Cause) -> list[Statement]:
    """The most telling lines of a cause that the log does not have."""
    if talk.judged is None:
        return []
    seen = {signal.reason_id for signal in talk.judged.signals.values()}
    telling = [
        pattern
        for pattern in talk.knowledge.patterns
        if pattern.kind == "root"
        and pattern.id not in seen
        and pattern.causes.get(cause.id, 0.0) >= TELLING_NATS
        and pattern.causes[cause.id] == max(pattern.causes.values())
    ]
    telling.sort(key=lambda pattern: (-pattern.causes[cause.id], pattern.id))
    return [_absence(talk, cause, pattern) for pattern in telling[:ABSENT_SHOWN]]


def _absence(talk: Talk, cause: Cause, pattern: Pattern) -> Statement:
    means = pattern.means.get(talk.words.language)
    cited = (*cite_cause(cause, talk, means)[:1], *cite_sources(pattern.sources))
    return talk.say("evidence", "chat.absent", cited, means=means)


def _would_confirm(talk: Talk, cause: Cause) -> list[Statement]:
    return [
        talk.say("check", "chat.would_confirm", cite_cause(cause, talk, text), what=text)
        for text in (item.get(talk.words.language) for item in cause.confirms[:1])
    ]


def answer_sure(talk: Talk) -> Said:
    """How sure, what speaks against it, what would settle it."""
    diagnosis, leading = talk.diagnosis, talk.leading
    if diagnosis is None or leading is None:
        return talk.need_log()
    cited = cite_cause(talk.knowledge.cause_by_id[leading.id], talk)[:1]
    values = {
        "title": leading.title,
        "percent": talk.percent(leading.probability),
        "unknown": talk.percent(diagnosis.unknown_probability),
    }
    statements = [talk.say("verdict", "chat.sure", cited, **values)]
    statements += evidence_statements(talk, leading.id, speaks=1, limit=1)
    against = evidence_statements(talk, leading.id, speaks=-1, limit=AGAINST_SHOWN)
    if against:
        statements += [talk.say("note", "chat.against_it"), *against]
    second = list(talk.ranked.values())[1:2]
    statements += [
        talk.say(
            "evidence",
            "chat.runner_up",
            cite_cause(talk.knowledge.cause_by_id[item.id], talk)[:1],
            title=item.title,
            percent=talk.percent(item.probability),
        )
        for item in second
    ]
    statements += _would_confirm(talk, talk.knowledge.cause_by_id[leading.id])
    return Said(statements=tuple(statements), focus=leading.id)


def answer_restart(talk: Talk) -> Said:
    """Whether a restart helps against the cause spoken of."""
    meant = talk.meant()
    if not meant:
        return talk.need_log()
    cause = talk.knowledge.cause_by_id[meant]
    labels = {
        "helps": "chat.restart_helps",
        "will_not_help": "chat.restart_useless",
        "unknown": "chat.restart_open",
    }
    reason = cause.restart_reason.get(talk.words.language)
    statement = talk.say(
        "verdict",
        labels[cause.restart],
        cite_cause(cause, talk, reason),
        title=talk.title(meant),
        reason=reason,
    )
    return Said(statements=(statement,), focus=meant)


def answer_cause(talk: Talk) -> Said:
    """What a cause is, how it shows, what confirms and refutes it."""
    meant = talk.meant()
    if not meant:
        return talk.need_log()
    cause, language = talk.knowledge.cause_by_id[meant], talk.words.language
    definition = cause.definition.get(language)
    statements = [
        talk.say(
            "verdict",
            "chat.defined",
            cite_cause(cause, talk, definition),
            title=talk.title(meant),
            definition=definition,
        )
    ]
    if talk.heard.ordinal and meant in talk.ranked:
        statements += _standing(talk, meant)
    groups = (
        ("chat.shows_as", cause.shows[:SHOWS_SHOWN]),
        ("chat.would_confirm", cause.confirms[:1]),
        ("chat.would_refute", cause.refutes[:1]),
    )
    for label, texts in groups:
        for text in (item.get(language) for item in texts):
            cited = (Citation(kind="cause", id=cause.id, quote=text),)
            statements.append(talk.say("evidence", label, cited, what=text))
    opened = bool(talk.heard.ordinal) or not talk.ranked
    return Said(statements=tuple(statements), focus=meant if opened else "")


def _standing(talk: Talk, cause: str) -> list[Statement]:
    """Where a cause stands, and what speaks for and against it."""
    entry, percent = talk.knowledge.cause_by_id[cause], talk.ranked[cause].probability
    values = {"title": talk.title(cause), "percent": talk.percent(percent)}
    statements = [talk.say("evidence", "chat.stands_now", cite_cause(entry, talk)[:1], **values)]
    for label, speaks in (("chat.for_it", 1), ("chat.against_it", -1)):
        found = evidence_statements(talk, cause, speaks=speaks, limit=AGAINST_SHOWN)
        if found:
            statements += [talk.say("note", label), *found]
    return statements
