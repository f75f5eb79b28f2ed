"""Answers about the conversation itself: language, outcome, thanks, help, and what is not ours."""

from __future__ import annotations

from kb.chat.answers.answer import IntentAnswer, cite_remark, shorten
from kb.chat.assessment import CHECK_RESULT
from kb.chat.types import CheckResult, IncidentOutcome


def answer_language(answer: IntentAnswer) -> None:
    """The language changes; what was said last follows in it."""
    answer.say("note", "chat.language_set" if answer.request.language else "chat.two_languages")


def answer_recap(answer: IntentAnswer) -> None:
    """What the person wrote of the incident so far."""
    remarks, results = answer.conversation.remarks, answer.conversation.check_results
    answer.say("note", "chat.told_so_far" if remarks or results else "chat.told_nothing")
    for remark in remarks:
        answer.say("evidence", "chat.quoted", (cite_remark(remark),), quote=shorten(remark))
    for result in results:
        seen = observation(answer, result) or result.quote
        citation = cite_remark(result.quote)
        answer.say("evidence", "chat.told_answer", (citation,), observation=seen)


def observation(answer: IntentAnswer, result: CheckResult) -> str:
    """What an answer to a check says was seen; empty where the check is gone."""
    signals = answer.assessment.signals if answer.assessment else {}
    signal = signals.get(f"{CHECK_RESULT}{result.check}")
    return signal.means.get(answer.language) if signal and signal.means else ""


def answer_outcome(answer: IntentAnswer) -> None:
    """A cause was confirmed or denied; faces may store it as feedback."""
    subject, leading = answer.subject, answer.leading
    if answer.request.settles == "denied" and not answer.request.causes:
        answer.say("note", "chat.outcome_not")
        if subject and answer.ranked:
            answer.outcome = IncidentOutcome(verdict="wrong", cause=subject)
        answer.focus = next((cause for cause in answer.ranked if cause != subject), "")
        if answer.focus:
            answer.say_of("verdict", "chat.then_next", answer.focus)
    elif not subject:
        answer.say("note", "chat.outcome_good")
    else:
        answer.say_of("verdict", "chat.outcome_is", subject)
        answer.focus = subject
        if leading:
            answer.outcome = IncidentOutcome(
                verdict="right" if subject == leading.id else "wrong",
                cause=leading.id,
                actual=subject,
            )


def answer_courtesy(answer: IntentAnswer) -> None:
    """A short word back."""
    answer.say("note", "chat.welcome" if answer.assessment else "chat.hello")


def answer_help(answer: IntentAnswer) -> None:
    """What this can do."""
    answer.say("note", "chat.help")
    answer.say("hint", "chat.help_log")


def answer_off_topic(answer: IntentAnswer) -> None:
    """Not ours, said plainly."""
    answer.say("note", "chat.off_topic")


def answer_unclear(answer: IntentAnswer) -> None:
    """Not understood, or not known, with what would help."""
    if answer.request.unanswerable:
        answer.say("note", "chat.no_answer")
    else:
        answer.say("note", "chat.unclear" if answer.assessment else "chat.unclear_start")
