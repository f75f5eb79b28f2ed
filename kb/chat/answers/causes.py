"""Answers about causes: why, how sure, what it is, restart or not, how to fix it, what to run."""

from __future__ import annotations

from kb.chat.answers.answer import IntentAnswer
from kb.chat.checks import mid_sentence, open_question
from kb.chat.sentences import sentences
from kb.diagnose.fixes import Job, order_fixes
from kb.diagnose.wording import is_likely, model_percent
from kb.text.tokenizer import default_tokenizer
from kb.types.incident import Incident
from kb.types.knowledge import Fix, Pattern

FOR_SHOWN = 2
SENTENCES_SHOWN = 2  # of how a cause comes about
AGAINST_SHOWN = 1
GENERAL_SHOWN = 2  # causes explained before there is a log; “the network” means two
ABSENT_SHOWN = 1
TYPICAL_NATS = 2.0  # a line that says this much about a cause would be expected under it
SHOWS_SHOWN = 1
FIXES_SHOWN = 2
PLAN_SHOWN = 3  # of what to do in order
STEPS_SHOWN = 2
COMMANDS_SHOWN = 1
NEXT_SHOWN = 2
POSSIBLE = 0.1  # probability from which a cause asked for may well be it
RESTART_LABELS = {
    "helps": "chat.restart_helps",
    "will_not_help": "chat.restart_useless",
    "unknown": "chat.restart_open",
}


def answer_why(answer: IntentAnswer) -> None:
    """Why this cause, or why not that one."""
    subject, leading = answer.subject, answer.leading
    if not subject:
        answer.say_need_log()
    elif leading is None:
        for cause in answer.request.causes[:GENERAL_SHOWN] or (subject,):
            _explain(answer, cause)
        answer.say_need_log()
    elif subject == leading.id:
        _why(answer, subject)
    else:
        _why_not(answer, subject, leading.id)


def _why(answer: IntentAnswer, cause: str) -> None:
    if answer.request.is_guess:
        pages = answer.knowledge.cause_by_id[cause].sources
        answer.say_of("verdict", "chat.guess_leads", cause, pages=pages)
        answer.say_evidence(cause, speaks=1, limit=AGAINST_SHOWN, cases=False)
        _say_mechanism(answer, cause)
    else:
        say_reasons(answer, cause)
    answer.focus = cause


def say_reasons(answer: IntentAnswer, cause: str) -> None:
    """Add what a cause rests on in this incident, how it comes about, and what speaks against."""
    entry = answer.knowledge.cause_by_id[cause]
    answer.say_of("verdict", "chat.rests_on", cause, pages=entry.sources)
    answer.say_evidence(cause, speaks=1, limit=FOR_SHOWN)
    _say_mechanism(answer, cause)
    _say_against(answer, cause)


def _say_mechanism(answer: IntentAnswer, cause: str) -> None:
    """Add in a sentence or two how a cause comes about."""
    entry = answer.knowledge.cause_by_id[cause]
    told = sentences(entry.definition.get(answer.language))[:SENTENCES_SHOWN]
    text = (" " if answer.language == "en" else "").join(told)
    answer.say_of("evidence", "chat.comes_about", cause, quote=text, definition=mid_sentence(text))


def _why_not(answer: IntentAnswer, cause: str, leading: str) -> None:
    """Why another cause leads; “how do I fix it?” after this still means that one: no focus."""
    ranked = answer.ranked.get(cause)
    could_be = ranked is not None and ranked.probability >= POSSIBLE
    label = "chat.guess_fits" if could_be else "chat.less_likely"
    answer.say(
        "verdict",
        label,
        (answer.cite(cause), answer.cite(leading)),
        title=answer.title(cause),
        percent=answer.percent(cause),
        leading=answer.title(leading),
        leading_percent=answer.percent(leading),
    )
    say_for(answer, cause)
    before = len(answer.statements)
    _say_against(answer, cause)
    if len(answer.statements) == before:
        _say_absent(answer, cause)


def say_for(answer: IntentAnswer, cause: str) -> None:
    """Add what speaks most for a cause."""
    answer.say_evidence(cause, speaks=1, limit=AGAINST_SHOWN, lead="chat.for_it")


def _say_against(answer: IntentAnswer, cause: str) -> None:
    answer.say_evidence(cause, speaks=-1, limit=AGAINST_SHOWN, lead="chat.against_it")


def _say_absent(answer: IntentAnswer, cause: str) -> None:
    """A typical line of a cause that the log does not have, the one asked about first."""
    signals = answer.assessment.signals if answer.assessment else {}
    seen = {signal.reason_id for signal in signals.values()}
    typical = [
        pattern
        for pattern in answer.knowledge.patterns
        if pattern.kind == "root"
        and pattern.id not in seen
        and pattern.causes.get(cause, 0.0) >= TYPICAL_NATS
        and pattern.causes[cause] == max(pattern.causes.values())
        and not answer.is_for_others((), pattern.means.en)
    ]
    asked = set(default_tokenizer().tokens(answer.question_text))

    def near(pattern: Pattern) -> tuple[int, float, str]:
        told = f"{pattern.means.zh} {pattern.means.en}"
        common = len(asked.intersection(default_tokenizer().tokens(told)))
        return -common, -pattern.causes[cause], pattern.id

    typical.sort(key=near)
    for pattern in typical[:ABSENT_SHOWN]:
        means = pattern.means.get(answer.language)
        answer.say_of(
            "evidence", "chat.absent", cause, quote=means, pages=pattern.sources, means=means
        )


def say_confirm(answer: IntentAnswer, cause: str) -> None:
    """Add what would confirm a cause."""
    entry = answer.knowledge.cause_by_id[cause]
    for text in (item.get(answer.language) for item in entry.confirms[:1]):
        answer.say_of(
            "check", "chat.would_confirm", cause, quote=text, pages=entry.sources, what=text
        )


def say_runner_up(answer: IntentAnswer, *, least: float = 0.0) -> None:
    """Add the second cause, where its probability is at least `least`."""
    for cause in list(answer.ranked.values())[1:2]:
        if cause.probability >= least:
            answer.say_of("evidence", "chat.runner_up", cause.id)


def answer_sure(answer: IntentAnswer) -> None:
    """How sure, what speaks against it, what would settle it."""
    diagnosis, leading = answer.diagnosis, answer.leading
    if diagnosis is None or leading is None:
        answer.say_need_log()
        return
    unknown = model_percent(diagnosis.unknown_probability)
    answer.say_of("verdict", "chat.sure", leading.id, unknown=unknown)
    say_for(answer, leading.id)
    _say_against(answer, leading.id)
    say_runner_up(answer)
    answer.focus = leading.id


def answer_restart(answer: IntentAnswer) -> None:
    """Whether a restart helps against the cause spoken of."""
    if not answer.subject:
        answer.say_need_log()
        return
    cause = answer.knowledge.cause_by_id[answer.subject]
    reason = cause.restart_reason.get(answer.language)
    ranked = answer.ranked.get(cause.id)
    is_unsure = ranked is not None and not is_likely(ranked.probability)
    label = "chat.restart_unsure" if is_unsure else RESTART_LABELS[cause.restart]
    pages = cause.sources
    answer.say_of("verdict", label, cause.id, quote=reason, pages=pages, reason=reason)
    answer.focus = cause.id


def answer_cause(answer: IntentAnswer) -> None:
    """What a cause is, how it shows, what confirms and refutes it."""
    if not answer.subject:
        answer.say_need_log()
        return
    _explain(answer, answer.subject)
    if answer.request.ordinal or not answer.ranked:
        answer.focus = answer.subject


def _explain(answer: IntentAnswer, subject: str) -> None:
    cause, language = answer.knowledge.cause_by_id[subject], answer.language
    say_definition(answer, subject)
    if answer.request.ordinal and subject in answer.ranked:
        answer.say_of("evidence", "chat.stands_now", subject)
        say_for(answer, subject)
        _say_against(answer, subject)
    groups = (
        ("chat.shows_as", cause.shows[:SHOWS_SHOWN]),
        ("chat.would_confirm", cause.confirms[:1]),
        ("chat.would_refute", cause.refutes[:1]),
    )
    for label, texts in groups:
        for text in (item.get(language) for item in texts):
            answer.say_of("evidence", label, subject, quote=text, what=text)


def say_definition(answer: IntentAnswer, cause: str) -> None:
    """Add what a cause is."""
    entry = answer.knowledge.cause_by_id[cause]
    text = entry.definition.get(answer.language)
    answer.say_of(
        "verdict", "chat.defined", cause, quote=text, pages=entry.sources, definition=text
    )


# --- what to do --------------------------------------------------------------------------------


def answer_fix(answer: IntentAnswer) -> None:
    """How to fix the cause spoken of."""
    subject = answer.subject
    if not subject:
        answer.say_need_log()
        return
    fixes = fixes_of(answer, subject)
    place = answer.request.ordinal if answer.request.is_fix_place else 0
    new = [item for item in enumerate(fixes, start=1) if not _is_shown(answer, item[1])]
    is_further = 0 < len(new) < len(fixes) and not place
    label = "chat.fixes_for" if fixes else "chat.no_fix"
    pages = answer.knowledge.cause_by_id[subject].sources
    answer.say_of("verdict", "chat.more_fixes" if is_further else label, subject, pages=pages)
    answer.focus = subject
    if 1 <= place <= len(fixes):
        say_fix(answer, subject, fixes[place - 1], place)
        return
    listed = (new if is_further else list(enumerate(fixes, start=1)))[:FIXES_SHOWN]
    for at, (number, fix) in enumerate(listed):
        if at == 0:
            say_fix(answer, subject, fix, number)
        else:
            _say_title(answer, subject, fix, number)


def _is_shown(answer: IntentAnswer, fix: Fix) -> bool:
    """Whether an earlier reply told the steps of a fix."""
    steps = [answer.words("chat.step", step=step.get(answer.language)) for step in fix.steps]
    return any(answer.shown.says(step) for step in steps)


def answer_plan(answer: IntentAnswer) -> None:
    """The fixes in the order in which to try them, a line each, and what to type for the first."""
    subject = answer.subject
    fixes = fixes_of(answer, subject)[:PLAN_SHOWN]
    if not fixes:
        answer_fix(answer)
        return
    pages = answer.knowledge.cause_by_id[subject].sources
    answer.say_of("verdict", "chat.plan", subject, pages=pages)
    for number, fix in enumerate(fixes, start=1):
        title, steps = fix.title.get(answer.language), fix.steps[:1]
        step = steps[0].get(answer.language) if steps else title
        commands = [item for item in fix.commands if not answer.is_for_others((), item)]
        is_known = _is_shown(answer, fix)
        answer.say_of(
            "fix",
            "chat.plan_known" if is_known else "chat.plan_step",
            subject,
            quote=title,
            pages=fix.sources,
            command="".join(commands[:1]) if number == 1 and not is_known else "",
            number=number,
            title=title,
            step=step,
        )
    answer.focus = subject


def fixes_of(answer: IntentAnswer, cause: str) -> list[Fix]:
    """The fixes of a cause in the order of the diagnosis; without one as they stand."""
    entry, ranked = answer.knowledge.cause_by_id[cause], answer.ranked.get(cause)
    if ranked is None:
        return order_fixes(entry.fixes, Job(incident=Incident()))
    by_id = {fix.id: fix for fix in entry.fixes}
    for similar in answer.diagnosis.cases if answer.diagnosis else ():
        case = answer.knowledge.case_by_id.get(similar.id)
        by_id |= {fix.id: fix for fix in case.fixes} if case else {}
    fixes = [by_id[fix.id] for fix in ranked.fixes if fix.id in by_id]
    return [
        fix
        for fix in fixes
        if not answer.is_for_others(fix.applies_to.frameworks)
        and not answer.is_for_others((), fix.title.en)
    ]


def say_fix(answer: IntentAnswer, cause: str, fix: Fix, number: int = 1) -> None:
    """Add a fix with its steps and what to type."""
    _say_title(answer, cause, fix, number)
    for step in (item.get(answer.language) for item in fix.steps[:STEPS_SHOWN]):
        answer.say_of("step", "chat.step", cause, quote=step, step=step)
    own = [item for item in fix.commands if not answer.is_for_others((), item)]
    for command in own[:COMMANDS_SHOWN]:
        answer.say_of("step", "chat.run", cause, quote=command, command=command)
    if fix.caution:
        text = fix.caution.get(answer.language)
        answer.say_of("warning", "chat.caution", cause, quote=text, caution=text)


def _say_title(answer: IntentAnswer, cause: str, fix: Fix, number: int) -> None:
    title = fix.title.get(answer.language)
    answer.say_of(
        "fix",
        "chat.fix",
        cause,
        quote=title,
        pages=fix.sources,
        number=number,
        title=title,
        status=answer.words(f"claim.{fix.status}"),
    )


def answer_next(answer: IntentAnswer) -> None:
    """The command that tells most now, and what to collect for the next run."""
    diagnosis, leading = answer.diagnosis, answer.leading
    question = answer.question or open_question(answer.knowledge, answer.conversation, answer.words)
    if diagnosis is None or leading is None:
        answer.say_need_log()
        return
    before = len(answer.statements)  # what leads up to the steps is none of them
    command = question.command if question else ""
    if question and command:
        _say_check(answer, question.check, command)
    steps = [step for step in diagnosis.next if step.command != command]
    pages = answer.knowledge.cause_by_id[leading.id].sources
    for step in steps[: NEXT_SHOWN - len(answer.statements) + before]:
        values = {"quote": step.why, "command": step.command, "why": step.why}
        answer.say_of("step", "chat.collect", leading.id, pages=pages, **values)
    if len(answer.statements) == before:
        answer.say("note", "chat.nothing_to_run")
    answer.focus = leading.id


def _say_check(answer: IntentAnswer, identifier: str, command: str) -> None:
    for cause in answer.knowledge.causes:
        for check in cause.checks:
            if check.id == identifier:
                tells = check.tells.get(answer.language)
                answer.say_of(
                    "check",
                    "chat.run_first",
                    cause.id,
                    quote=tells,
                    pages=check.sources,
                    command=command,
                    tells=mid_sentence(tells),
                )
