"""Answers to questions by what they ask for: each begins with what was asked, in a few lines.

Why the ranking moved, what it is by now, which of several, whether something would help, what
something means, how it is done. What nothing here has a source for is said to be so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kb.chat.answers.answer import IntentAnswer, cite_note, cite_remark, shorten
from kb.chat.answers.causes import say_confirm, say_definition, say_fix, say_for
from kb.chat.answers.conversation import say_kept
from kb.chat.answers.movement import listing
from kb.chat.answers.notes import find_notes, say_note
from kb.chat.checks import find_check, mid_sentence
from kb.chat.types import Change, Intent, QuestionForm, Turn
from kb.diagnose.wording import model_percent
from kb.text.tokenizer import default_tokenizer
from kb.types.knowledge import Cause, Check, Fix

STANDING_SHOWN = 3  # causes named when asked what it is by now
FITTING_FIX = 1.3  # points of likeness from which a fix is what a question speaks of
POINTS_OF_ONE = 0.5  # such points that a nearly certain cause is worth beside an unlikely one
NOTE_ANSWERS = 0.5  # score of a note that answers a question of what something means or how
NOTE_MAY_ANSWER = 0.45  # of one that does where nothing else does
NOTE_NEAR = 0.3  # of one that is worth naming where none answers
FEW_WORDS = 4  # of a question that points at what was said before: “so what does that mean?”
STEPS_SHOWN = 2
SIGN_NATS = 1.2  # of a question's words, from which it speaks of a cause
NEARLY = 0.5  # of the best cause, from which another is meant as well
# Intents whose questions are answered by their form first.
BY_FORM: frozenset[Intent] = frozenset(
    {
        *("why", "sure", "happened", "cause", "fix", "next", "how_to", "search", "similar", "case"),
        *("recap", "help", "unclear", "off_topic", "impatient", "restart"),
    }
)
# Intents that tell little of what is asked.
OPEN: frozenset[Intent] = frozenset(
    {"why", "happened", "help", "unclear", "off_topic", "how_to", "search"}
)
OWN_POINTS = 1.8  # of a fix that is meant rather than the one for the cause spoken of


def answer_question(answer: IntentAnswer) -> bool:
    """Answer a question about the incident by its form or its subject; whether that could be done.

    What its intent alone tells is left to the answer of that intent.
    """
    request = answer.request
    if answer.assessment is None or answer.leading is None or request.intent not in BY_FORM:
        return False
    if answer.phrases.asks_for_record(request.text) and say_kept(answer):
        return True
    of_ranking = request.form in ("movement", "standing", "choice")
    if (request.ordinal and not of_ranking) or (
        request.is_guess and request.form in ("proposal", "meaning", "how")
    ):
        return False
    if request.intent == "happened" and answer.incident.first_error is not None:
        return False  # the log tells what happened
    by_form = _FORMS.get(request.form)
    if by_form is not None and by_form(answer):
        return True
    if request.intent not in OPEN or request.causes or not _is_long(request.text):
        return False
    if not _say_note(answer, least=NOTE_MAY_ANSWER) and not _say_subject(answer):
        say_no_source(answer)
        if request.intent == "why":
            entry = answer.knowledge.cause_by_id[answer.leading.id]
            text = mid_sentence(entry.definition.get(answer.language))
            answer.say_of("verdict", "chat.by_evidence", entry.id, quote=text, definition=text)
    return True


def _say_subject(answer: IntentAnswer) -> bool:
    """The cause that the question speaks of, how it comes about, and how likely it is.

    A sign in the question tells, else what the learned reader takes it for; of causes that fit
    nearly as well the likelier one is meant.
    """
    engine = answer.service.engine
    text = answer.request.text
    if answer.phrases.is_pointing(text):  # at what was told just before
        text = " ".join((*answer.conversation.remarks[-1:], text))
    signals = engine.observations(answer.service.read_text(text))
    nats: dict[str, float] = {}
    for signal in signals:
        for cause, weight in signal.weights.items():
            nats[cause] = nats.get(cause, 0.0) + weight
    if max(nats.values(), default=0.0) < SIGN_NATS:
        nats = engine.causes_of(text)
    most = max(nats.values(), default=0.0)
    if most < SIGN_NATS:
        return False
    near = [cause for cause in answer.ranked if nats.get(cause, 0.0) >= NEARLY * most]
    if not near:
        return False
    best = near[0]
    say_definition(answer, best)
    answer.say_of("evidence", "chat.stands_now", best)
    say_for(answer, best)
    say_confirm(answer, best)
    return True


def _is_long(text: str) -> bool:
    return len(default_tokenizer().tokens(text)) > FEW_WORDS


def say_no_source(answer: IntentAnswer) -> None:
    """Nothing here answers it; the note that comes nearest is named."""
    ranked = find_notes(answer, least=NOTE_NEAR)
    answer.say("note", "chat.no_answer")
    for hit in ranked[:1]:
        answer.say("hint", "chat.nearest_note", (cite_note(hit),), title=hit.title, id=hit.note.id)


# --- the ranking ---------------------------------------------------------------------------------


def _movement(answer: IntentAnswer) -> bool:
    """Why a cause rose or fell: the message that moved it, and by which words."""
    named = set(answer.request.causes)
    found = _last_change(answer, named)
    if found is None:
        return False
    turn, change = found
    label = "chat.moved_with" if change.why else "chat.moved_alone"
    answer.say(
        "verdict",
        label,
        [answer.cite(change.cause), cite_remark(turn.asked), *map(cite_remark, change.why)],
        title=answer.title(change.cause),
        before=model_percent(change.before),
        after=model_percent(change.after),
        asked=shorten(turn.asked),
        quotes=listing(answer, change.why),
    )
    rose = [item for item in turn.reply.changes if item.after > item.before]
    if change.after < change.before and rose:
        answer.say_of("evidence", "chat.moved_instead", rose[0].cause)
    answer.say("hint", "chat.put_right")
    return True


def _last_change(answer: IntentAnswer, named: set[str]) -> tuple[Turn, Change] | None:
    """The last message that moved one of the causes `named`, or any, and how."""
    for turn in reversed(answer.conversation.turns):
        changes = [item for item in turn.reply.changes if not named or item.cause in named]
        if changes:
            return turn, max(changes, key=lambda item: (abs(item.after - item.before), item.cause))
    return None


def _standing(answer: IntentAnswer) -> bool:
    """The causes as they stand, and what the first rests on."""
    diagnosis, leading = answer.diagnosis, answer.leading
    if diagnosis is None or leading is None:
        return False
    words = answer.words
    listed = words.listing(
        words("chat.ranked", title=item.title, percent=model_percent(item.probability))
        for item in list(answer.ranked.values())[:STANDING_SHOWN]
    )
    unknown = model_percent(diagnosis.unknown_probability)
    answer.say_of("verdict", "chat.standing", leading.id, listed=listed, unknown=unknown)
    say_for(answer, leading.id)
    say_confirm(answer, leading.id)
    answer.focus = leading.id
    return True


def _choice(answer: IntentAnswer) -> bool:
    """Which of two causes, why, and what would tell them apart."""
    named = [cause for cause in answer.ranked if cause in answer.request.causes]
    pointed = len(default_tokenizer().tokens(answer.request.text)) <= 2 * FEW_WORDS
    if len(named) < 2 and not named and not pointed:
        return _proposal(answer)
    others = [cause for cause in answer.ranked if cause not in named]
    first, second = sorted((*named, *others)[:2], key=list(answer.ranked).index)
    answer.say(
        "verdict",
        "chat.rather",
        (answer.cite(first), answer.cite(second)),
        title=answer.title(first),
        percent=answer.percent(first),
        other=answer.title(second),
        other_percent=answer.percent(second),
    )
    for cause in (first, second):
        answer.say_evidence(cause, speaks=1, limit=1, cases=False)
    _say_apart(answer, first, second)
    return True


def _say_apart(answer: IntentAnswer, first: str, second: str) -> None:
    """The check of which one outcome speaks for one of the causes and another for the other."""
    causes = answer.knowledge.cause_by_id
    for check in (*causes[first].checks, *causes[second].checks):
        seen = {
            cause: outcome.observation.get(answer.language)
            for cause in (first, second)
            for outcome in check.outcomes
            if cause in outcome.supports
        }
        if len(set(seen.values())) == 2:
            answer.say_of(
                "check",
                "chat.apart",
                first,
                pages=check.sources,
                command=check.command,
                tells=mid_sentence(check.tells.get(answer.language)),
                first=seen[first],
                title=answer.title(first),
                second=seen[second],
                other=answer.title(second),
            )
            return
    say_confirm(answer, first)


# --- what something is, and what is done ---------------------------------------------------------


def _proposal(answer: IntentAnswer) -> bool:
    """Whether doing something would help: the fix it is, and for which cause."""
    text = answer.request.text
    if answer.request.intent == "restart" and answer.phrases.is_restart(text):
        return False
    if _say_note(answer, least=NOTE_ANSWERS):
        return True
    fitting = _fitting_fix(answer)
    if fitting is None:
        return False
    cause, fix = fitting
    reason = fix.steps[0].get(answer.language) if fix.steps else fix.title.get(answer.language)
    likely = answer.leading is not None and answer.leading.id == cause.id
    answer.say_of(
        "verdict",
        "chat.would_help" if likely else "chat.would_help_if",
        cause.id,
        quote=reason,
        pages=fix.sources,
        fix=fix.title.get(answer.language),
        reason=reason,
        status=answer.words(f"claim.{fix.status}"),
    )
    for step in fix.steps[1:STEPS_SHOWN]:
        text = step.get(answer.language)
        answer.say_of("step", "chat.step", cause.id, quote=text, step=text)
    if fix.caution:
        text = fix.caution.get(answer.language)
        answer.say_of("warning", "chat.caution", cause.id, quote=text, caution=text)
    answer.focus = cause.id
    return True


def _meaning(answer: IntentAnswer) -> bool:
    """What something is: a note, a cause's definition, an outcome of the check asked."""
    request = answer.request
    few = len(default_tokenizer().tokens(request.text)) <= FEW_WORDS
    short = len(default_tokenizer().tokens(request.text)) <= 3 * FEW_WORDS
    if short and answer.phrases.is_about_check(request.text) and _explain_check(answer):
        return True
    if few and answer.phrases.is_pointing(request.text) and not request.causes:
        return _movement(answer) or _standing(answer)
    if _say_note(answer, least=NOTE_ANSWERS):
        return True
    for cause in request.causes[:1]:
        say_definition(answer, cause)
        say_for(answer, cause)
        say_confirm(answer, cause)
        return True
    return False


def _how(answer: IntentAnswer) -> bool:
    """How something is done: a note, a check by the tool it names, a fix."""
    count = len(default_tokenizer().tokens(answer.request.text))
    has_own = answer.request.intent in ("fix", "next") and count <= 2 * FEW_WORDS
    if count > FEW_WORDS and _say_note(answer, least=NOTE_ANSWERS):
        return True
    tools = answer.phrases.tools_in(answer.request.text)
    for check in _checks(answer):
        if tools & answer.phrases.tools_in(check.command):
            _say_check(answer, check)
            return True
    fitting = _fitting_fix(answer, least=OWN_POINTS if has_own else FITTING_FIX)
    if fitting is None:
        return False
    say_fix(answer, fitting[0].id, fitting[1])
    answer.focus = fitting[0].id
    return True


def _checks(answer: IntentAnswer) -> Sequence[Check]:
    """The checks of the causes, best first, the open one before all."""
    found = (find_check(answer.knowledge, one) for one in answer.conversation.open_checks)
    causes = [answer.knowledge.cause_by_id[cause] for cause in answer.ranked]
    return [check for check in found if check] + [c for cause in causes for c in cause.checks]


def _explain_check(answer: IntentAnswer) -> bool:
    """What the check asked last is, and what each of its outcomes would speak for."""
    asked = answer.conversation.asked_checks[-1:]
    check = find_check(answer.knowledge, asked[0]) if asked else None
    if check is None:
        return False
    _say_check(answer, check)
    for outcome in check.outcomes:
        causes = [cause for cause in outcome.supports if cause in answer.ranked]
        if causes:
            seen = outcome.observation.get(answer.language)
            titles = answer.words.listing(map(answer.title, causes[:STEPS_SHOWN]))
            values = {"seen": seen, "title": titles}
            answer.say_of("evidence", "chat.outcome_speaks", causes[0], **values)
    return True


def _say_check(answer: IntentAnswer, check: Check) -> None:
    cause = check.id.partition("/")[0]
    tells = check.tells.get(answer.language)
    answer.say_of(
        "check",
        "chat.check_tells",
        cause,
        quote=tells,
        pages=check.sources,
        command=check.command,
        tells=mid_sentence(tells),
    )


def _say_note(answer: IntentAnswer, *, least: float) -> bool:
    hits = find_notes(answer, least=least)
    if hits:
        say_note(answer, hits[0])
    return bool(hits)


def _fitting_fix(answer: IntentAnswer, *, least: float = FITTING_FIX) -> tuple[Cause, Fix] | None:
    """The fix a question speaks of, with its cause; likelier causes come before others."""
    points = answer.service.engine.fix_points(answer.request.text)
    fixes = [
        (points.get(fix.id, 0.0), cause, fix)
        for cause in answer.knowledge.causes
        for fix in cause.fixes
        if points.get(fix.id, 0.0) >= least and not answer.is_for_others(fix.applies_to.frameworks)
    ]
    if not fixes:
        return None

    def worth(item: tuple[float, Cause, Fix]) -> tuple[float, str]:
        ranked = answer.ranked.get(item[1].id)
        return item[0] + POINTS_OF_ONE * (ranked.probability if ranked else 0.0), item[2].id

    _, cause, fix = max(fixes, key=worth)
    return cause, fix


_FORMS: Mapping[QuestionForm, Callable[[IntentAnswer], bool]] = {
    "movement": _movement,
    "standing": _standing,
    "choice": _choice,
    "proposal": _proposal,
    "meaning": _meaning,
    "how": _how,
}
