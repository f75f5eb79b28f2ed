"""The checks a person here can be asked to do, and the next question of a conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kb.chat.phrases import Phrasebook
from kb.chat.types import Conversation, Option, Question
from kb.diagnose.checks import best_check, fitting_checks, is_open
from kb.diagnose.evidence_provided import evidence_provided
from kb.diagnose.fixes import elsewhere
from kb.diagnose.launchers import SCRIPT, job_commands
from kb.diagnose.verdict import Verdict
from kb.knowledge.framework_names import FrameworkNames, framework_names
from kb.knowledge.labels import Words
from kb.knowledge.load import Knowledge
from kb.types.incident import Incident
from kb.types.knowledge import Check

if TYPE_CHECKING:
    from kb.chat.assessment import Assessment

UNKNOWN = "unknown"  # the cause that is none; its checks tell where to look
ASKED_CAUSES = 4  # leading causes a question has to tell apart
FLATTER = 0.5  # power on the probabilities when the verdict is nearly certain: what would test it?


def find_check(knowledge: Knowledge, identifier: str) -> Check | None:
    """The check with that id."""
    return next(
        (check for cause in knowledge.causes for check in cause.checks if check.id == identifier),
        None,
    )


def next_question(
    assessment: Assessment,
    conversation: Conversation,
    knowledge: Knowledge,
    phrases: Phrasebook,
    words: Words,
) -> Question | None:
    """The check not asked yet whose outcome separates the leading causes best, as a question."""
    leading = [cause.id for cause in assessment.diagnosis.causes[:ASKED_CAUSES]]
    if assessment.diagnosis.status == "unknown":  # first where it stands, then why
        leading = [UNKNOWN, *leading]
    shares = {cause: assessment.probability(cause) for cause in leading}
    names = framework_names(knowledge.framework_names)
    provided = evidence_provided(assessment.reading, knowledge.input_evidence)
    checks = [
        check
        for cause in leading
        for check in askable_checks(knowledge, cause, assessment.reading.incident)
        if check.id not in conversation.asked_checks
        and check.gives not in provided
        and is_open(check, assessment.verdict.seen)
    ]
    commands = job_commands(knowledge.launchers, assessment.reading, assessment.verdict.seen)
    checks = [
        check
        for check in commands.checks(checks)
        if _is_for_job(check, conversation, assessment.verdict, names, phrases)
    ]
    general = [check for check in checks if check.id.startswith(f"{UNKNOWN}/")]
    best = best_check(checks, shares) if not general else general[-1]
    if best is None:
        best = best_check(checks, {cause: share**FLATTER for cause, share in shares.items()})
    return check_question(best, words) if best else None


def is_foreign(names: FrameworkNames, made_for: frozenset[str], uses: frozenset[str]) -> bool:
    """Whether something is made for frameworks none of which the job uses, and it uses some."""
    theirs, ours = names.of_group(made_for, None), names.of_group(uses, None)
    engines, own_engines = names.of_group(made_for, "engine"), names.of_group(uses, "engine")
    is_other = bool(engines and own_engines) or bool(ours and (theirs or engines - uses))
    return is_other and not made_for & uses


def _is_for_job(
    check: Check,
    conversation: Conversation,
    verdict: Verdict,
    names: FrameworkNames,
    phrases: Phrasebook,
) -> bool:
    """Whether a check can be done here: with the tools there are, on what the job runs on."""
    if phrases.tools_in(check.command).intersection(conversation.refused_tools):
        return False
    if conversation.excluded_by(check.applies_to.frameworks):
        return False
    if SCRIPT in check.command and verdict.uses & phrases.own_programs:
        return False
    named = names.named(check.command)
    if named & {*conversation.excluded} or is_foreign(names, named, verdict.uses):
        return False
    return not names.foreign(check.command, verdict.uses)


def check_question(check: Check, words: Words) -> Question:
    """A check as a question with its outcomes as options."""
    return Question(
        check=check.id,
        text=words("chat.ask", tells=mid_sentence(check.tells.get(words.language))),
        options=tuple(
            Option(number=number, text=outcome.observation.get(words.language))
            for number, outcome in enumerate(check.outcomes, start=1)
        ),
        command=check.command,
    )


def open_question(
    knowledge: Knowledge, conversation: Conversation, words: Words
) -> Question | None:
    """The check that was asked last and is not answered, with its options."""
    last = conversation.open_checks[-1:]
    check = find_check(knowledge, last[0]) if last else None
    return check_question(check, words) if check else None


def askable_checks(knowledge: Knowledge, cause: str, incident: Incident) -> list[Check]:
    """The checks of a cause whose outcome a person here can be asked for, best fitting first."""
    return [
        check
        for check in fitting_checks(knowledge.cause_by_id[cause], incident)
        if check.outcomes and not elsewhere(check.applies_to, incident)
    ]


def mid_sentence(text: str) -> str:
    """The text without the capital of a sentence's beginning; names keep theirs."""
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
