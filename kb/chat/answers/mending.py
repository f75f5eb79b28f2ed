"""Answers about what to do: how to fix it, which command now."""

from __future__ import annotations

from kb.chat.incident import mid_sentence
from kb.chat.talk import Said, Talk, cite_cause, cite_sources
from kb.chat.types import Citation, Statement
from kb.diagnose.fixes import order_fixes
from kb.types import Cause, Fix, Incident

FIXES_SHOWN = 2
STEPS_SHOWN = 3
COMMANDS_SHOWN = 2
NEXT_SHOWN = 3


def answer_fix(talk: Talk) -> Said:
    """How to mend the cause meant."""
    meant = talk.meant()
    if not meant:
        return talk.need_log()
    cause = talk.knowledge.cause_by_id[meant]
    statements = [
        talk.say("verdict", "chat.fixes_for", cite_cause(cause, talk), title=talk.title(meant))
    ]
    for number, fix in enumerate(fixes_of(talk, cause)[:FIXES_SHOWN], start=1):
        statements += _fix(talk, cause, fix, number)
    if len(statements) == 1:
        statements = [
            talk.say("verdict", "chat.no_fix", cite_cause(cause, talk), title=talk.title(meant))
        ]
    return Said(statements=tuple(statements), focus=meant)


def fixes_of(talk: Talk, cause: Cause) -> list[Fix]:
    """The fixes of the answer, in its order."""
    ranked = talk.ranked.get(cause.id)
    if ranked is None:
        return order_fixes(cause.fixes, Incident())
    by_id = {fix.id: fix for fix in cause.fixes}
    for case in talk.diagnosis.cases if talk.diagnosis else ():
        entry = talk.knowledge.case_by_id.get(case.id)
        by_id |= {fix.id: fix for fix in entry.fixes} if entry else {}
    return [by_id[fix.id] for fix in ranked.fixes if fix.id in by_id]


def _fix(talk: Talk, cause: Cause, fix: Fix, number: int) -> list[Statement]:
    language = talk.words.language
    title = fix.title.get(language)
    sources = cite_sources(fix.sources)
    entry = Citation(kind="cause", id=cause.id, quote=title)
    standing = talk.words.say(f"claim.{fix.status}")
    statements = [
        talk.say("fix", "chat.fix", (entry, *sources), number=number, title=title, status=standing)
    ]
    for text in (step.get(language) for step in fix.steps[:STEPS_SHOWN]):
        cited = (Citation(kind="cause", id=cause.id, quote=text),)
        statements.append(talk.say("step", "chat.step", cited, step=text))
    for at, command in enumerate(fix.commands[:COMMANDS_SHOWN]):
        cited = (Citation(kind="cause", id=cause.id, quote=command),)
        lead = "chat.run_also" if at else "chat.run"
        statements.append(talk.say("step", lead, cited, command=command))
    if fix.caution:
        caution = fix.caution.get(language)
        cited = (Citation(kind="cause", id=cause.id, quote=caution),)
        statements.append(talk.say("warning", "chat.caution", cited, caution=caution))
    return statements


def answer_next(talk: Talk) -> Said:
    """The command that tells most now, and what to collect for the next run."""
    diagnosis, leading = talk.diagnosis, talk.leading
    if diagnosis is None or leading is None:
        return talk.need_log()
    cause = talk.knowledge.cause_by_id[leading.id]
    statements: list[Statement] = []
    if talk.question is not None and talk.question.command:
        statements.append(_check(talk))
    steps = [step for step in diagnosis.next if step.command != _asked_command(talk)]
    for step in steps[: NEXT_SHOWN - len(statements)]:
        cited = cite_cause(cause, talk, step.why)
        statements.append(
            talk.say("step", "chat.collect", cited, command=step.command, why=step.why)
        )
    if not statements:
        statements.append(talk.say("note", "chat.nothing_to_run"))
    return Said(statements=tuple(statements), focus=leading.id)


def _asked_command(talk: Talk) -> str:
    return talk.question.command if talk.question else ""


def _check(talk: Talk) -> Statement:
    question = talk.question
    found = next(
        (
            (cause, check)
            for cause in talk.knowledge.causes
            for check in cause.checks
            if question is not None and check.id == question.check
        ),
        None,
    )
    if found is None or question is None:
        return talk.say("note", "chat.nothing_to_run")
    cause, check = found
    tells = check.tells.get(talk.words.language)
    cited = (*cite_cause(cause, talk, tells)[:1], *cite_sources(check.sources))
    told = mid_sentence(tells)
    return talk.say("check", "chat.run_first", cited, command=check.command, tells=told)
