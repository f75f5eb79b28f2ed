"""Answers about the conversation itself: language, outcome, thanks, help, and what is not ours."""

from __future__ import annotations

from kb.chat.answers.answer import IntentAnswer, cite_remark, shorten
from kb.chat.answers.movement import say_changes, say_first_fix
from kb.chat.answers.passages import ANSWERS, SURELY, say_passages
from kb.chat.assessment import CHECK_RESULT
from kb.chat.types import CheckResult
from kb.diagnose.wording import model_percent

WORTH_A_LOOK = 0.04  # probability of the next cause; below it nothing known points there


def answer_language(answer: IntentAnswer) -> None:
    """The language changes; what was said last follows in it."""
    answer.say("note", "chat.language_set" if answer.request.language else "chat.two_languages")


def answer_recap(answer: IntentAnswer) -> None:
    """The incident in a few lines; what the person wrote of it where that is asked for."""
    if answer.leading is None or answer.phrases.asks_for_own_words(answer.request.text):
        _say_own_words(answer)
        return
    diagnosis, leading = answer.diagnosis, answer.leading
    if diagnosis is not None:
        answer.say_of("verdict", "chat.summary", leading.id, headline=diagnosis.headline)
    answer.say_evidence(leading.id, speaks=1, limit=1, cases=False)
    say_first_fix(answer, leading.id)
    for other in list(answer.ranked.values())[1:2]:
        unknown = model_percent(diagnosis.unknown_probability) if diagnosis else ""
        answer.say_of("evidence", "chat.summary_open", other.id, unknown=unknown)


def _say_own_words(answer: IntentAnswer) -> None:
    remarks, results = answer.conversation.remarks, answer.conversation.check_results
    endings = answer.conversation.endings
    told = remarks or results or endings
    answer.say("note", "chat.told_so_far" if told else "chat.told_nothing")
    for remark in remarks:
        answer.say("evidence", "chat.quoted", (cite_remark(remark),), quote=shorten(remark))
    for ending in endings:
        label = "chat.told_not_it" if ending.is_denied else "chat.told_it"
        answer.say_of("evidence", label, ending.cause)
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
    """A cause was confirmed or denied: what that moves, and what comes next."""
    subject = next(iter(answer.request.causes), "") if answer.step.event else answer.subject
    if not subject or answer.diagnosis is None:
        answer.say("note", "chat.outcome_good")
    elif answer.step.event == "settled":
        kept = answer.step.outcome is not None
        answer.say_of("verdict", "chat.outcome_is" if kept else "chat.outcome_open", subject)
        answer.focus = subject if kept else ""
    elif answer.request.settles == "confirmed":
        answer.say("note", "chat.outcome_heard")
        say_changes(answer)
        answer.focus = subject
    else:
        answer.say_of("note", "chat.outcome_not", subject)
        say_changes(answer)
        others = [cause for cause in answer.ranked if cause != subject]
        answer.focus = next(iter(others), "")
        if answer.focus and answer.ranked[answer.focus].probability >= WORTH_A_LOOK:
            answer.say_of("verdict", "chat.then_next", answer.focus)
            say_first_fix(answer, answer.focus)


def say_kept(answer: IntentAnswer) -> bool:
    """Whether it was kept how the incident ended, where it has."""
    for ending in reversed(answer.conversation.endings):
        if not ending.is_denied:
            answer.say_of("verdict", "chat.kept", ending.cause)
            return True
    return False


def answer_impatient(answer: IntentAnswer) -> None:
    """The short of it: the likeliest cause and the one thing to do."""
    if answer.leading is None:
        answer.say_need_log()
        return
    answer.say_of("verdict", "chat.in_short", answer.leading.id)
    say_first_fix(answer, answer.leading.id)
    answer.focus = answer.leading.id


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
        is_named = answer.request.platforms or answer.request.causes
        if not say_passages(answer, least=ANSWERS if is_named else SURELY):
            answer.say("note", "chat.no_answer")
    else:
        answer.say("note", "chat.unclear" if answer.assessment else "chat.unclear_start")
