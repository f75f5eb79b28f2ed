"""Answers to questions by what they ask for: each begins with what was asked, in a few lines.

Why the ranking moved, what it is by now, which of several, in what order to act, whether something
would help or is so, what something means, how it is done. What nothing here has a source for is
said to be so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kb.chat.answers.answer import IntentAnswer, cite_note
from kb.chat.answers.causes import (
    POSSIBLE,
    answer_plan,
    answer_why,
    say_definition,
    say_fix,
    say_for,
    say_reasons,
)
from kb.chat.answers.conversation import answer_recap, say_kept
from kb.chat.answers.notes import find_notes, say_note
from kb.chat.answers.passages import ANSWERS, SURELY, say_passages
from kb.chat.answers.ranking import answer_choice, answer_movement, answer_standing
from kb.chat.checks import find_check, mid_sentence
from kb.chat.types import Intent, QuestionForm
from kb.text.tokenizer import default_tokenizer
from kb.types.knowledge import Cause, Check, Fix

FITTING_FIX = 1.3  # points of likeness from which a fix is what a question speaks of
POSSIBLE_FIX = 0.7  # of those points, from which it is a fix of a possible cause
NAMED_FIX = 0.6  # share of what a question names, from which a fix is the very thing asked about
POINTS_OF_ONE = 1.0  # such points that a nearly certain cause is worth beside an unlikely one
NOTE_SURELY = 0.62  # score of a note that answers whatever is asked
NOTE_ANSWERS = 0.5  # of one that answers a question of what something means or how
NOTE_NEAR = 0.3  # of one that is worth naming where none answers
FEW_WORDS = 4  # of a question that points at what was said before: “so what does that mean?”
STEPS_SHOWN = 2
SIGN_NATS = 1.2  # of a question's words, from which it speaks of a cause
NEARLY = 0.5  # of the best cause, from which another is meant as well
# Intents whose questions are answered by their form first.
BY_FORM: frozenset[Intent] = frozenset(
    {
        *("why", "sure", "happened", "cause", "fix", "next", "how_to", "search", "similar", "case"),
        *("recap", "help", "unclear", "off_topic", "impatient", "restart", "setting"),
    }
)
# Forms of questions about the incident as a whole.
OF_ALL: frozenset[QuestionForm] = frozenset({"summary", "movement", "standing", "choice", "plan"})
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
    if answer.phrases.asks_for_record(request.text) and request.form != "how":
        if not say_kept(answer):
            answer.say_of("verdict", "chat.nothing_kept", answer.leading.id)
        return True
    if _say_told(answer):
        return True
    if _is_for_intent(answer):
        return False
    if request.intent == "setting" and request.form in ("", "meaning", "how"):
        return answer.phrases.asks_for_reason(request.text) and _answer_reason(answer)
    by_form = _FORMS.get(request.form)
    if by_form is not None and by_form(answer):
        return True
    asks_for_step = request.intent in ("next", "fix") and not _is_plain(answer)
    if asks_for_step and request.context and not request.causes:
        return say_passages(answer, least=SURELY)
    if request.intent not in OPEN or request.causes or not _is_long(request.text):
        return False
    return _answer_free(answer)


def _say_told(answer: IntentAnswer) -> bool:
    """Answer by a note what asks for a reason or how something is done, whatever cause it names.

    What is asked of our own opinion is not of the field.
    """
    request, phrases = answer.request, answer.phrases
    is_ours = phrases.is_to_us(request.text) or request.ordinal or request.form in OF_ALL
    if is_ours or not _is_long(request.text):
        return False
    if phrases.asks_for_reason(request.text):
        return _say_note(answer, least=NOTE_ANSWERS)
    return request.form in ("meaning", "how") and _say_note(answer, least=NOTE_SURELY)


def _is_for_intent(answer: IntentAnswer) -> bool:
    """Whether a question is answered by its intent alone: the log's story, a place in a list."""
    request = answer.request
    if request.intent == "happened" and answer.incident.first_error is not None:
        return request.form not in ("summary", "plan")
    if request.intent == "recap" and answer.phrases.asks_for_own_words(request.text):
        return True
    if request.intent == "next" and request.form not in OF_ALL and not _names_anything(answer):
        return True
    asks_whether = request.form in ("proposal", "yes_no")
    if request.ordinal and request.form not in OF_ALL:
        count = len(default_tokenizer().tokens(request.text))
        return not (asks_whether and count > 2 * FEW_WORDS)
    return request.is_guess and (asks_whether or request.form in ("meaning", "how"))


def _names_anything(answer: IntentAnswer) -> bool:
    """Whether a question names something of the field: “what else can I run?” does not."""
    request, phrases = answer.request, answer.phrases
    named = request.causes or request.settings or request.platforms
    return bool(named or phrases.tools_in(request.text) or phrases.is_of_the_field(request.text))


def _answer_reason(answer: IntentAnswer) -> bool:
    """Why something is so, where a setting is named: it is the incident that is asked about."""
    if not say_passages(answer, least=SURELY):
        say_reasons(answer, answer.subject)
    return True


def _answer_free(answer: IntentAnswer) -> bool:
    """Answer a long question of no form that names no cause."""
    is_ours = answer.request.intent == "why" and answer.phrases.is_to_us(answer.request.text)
    if not is_ours and (_say_note(answer, least=NOTE_SURELY) or say_passages(answer)):
        return True
    if _say_subject(answer):
        return True
    if answer.request.intent == "why":
        say_reasons(answer, answer.subject)
    else:
        say_no_source(answer)
    return True


def _say_subject(answer: IntentAnswer) -> bool:
    """The cause that the question speaks of, and how likely it is.

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
    if answer.request.intent == "why":  # why it is so, not whether it is something else
        near = [cause for cause in near if answer.ranked[cause].probability >= POSSIBLE]
    if not near:
        return False
    say_reasons(answer, near[0])
    return True


def _is_plain(answer: IntentAnswer) -> bool:
    """Whether a question names nothing: “how do I fix it?”."""
    words = default_tokenizer().tokens(answer.request.text)
    return all(map(answer.phrases.is_filler, words))


def _is_long(text: str) -> bool:
    return len(default_tokenizer().tokens(text)) > FEW_WORDS


def say_no_source(answer: IntentAnswer) -> None:
    """Nothing here answers it; the note that comes nearest is named."""
    ranked = find_notes(answer, least=NOTE_NEAR)
    answer.say("note", "chat.no_answer")
    for hit in ranked[:1]:
        answer.say("hint", "chat.nearest_note", (cite_note(hit),), title=hit.title, id=hit.note.id)


# --- whether something is so, or would help ------------------------------------------------------


def _choice(answer: IntentAnswer) -> bool:
    """Which of two causes; of two things to do, what comes of them."""
    text = answer.request.text
    named = [cause for cause in answer.ranked if cause in answer.request.causes]
    if not named and _is_long(text) and not answer.phrases.speaks_of_causes(text):
        return _proposal(answer)
    answer_choice(answer, named)
    return True


def _yes_no(answer: IntentAnswer) -> bool:
    """Whether something is so: a cause by the ranking, else what is known that comes nearest."""
    if answer.request.settings:
        return _proposal(answer)
    if answer.request.causes:
        answer_why(answer)
        return True
    if answer.request.context and not _is_long(answer.request.text):
        return _proposal(answer)
    if answer.request.intent in ("restart", "similar", "case", "sure", "next"):
        return False
    if _say_note(answer, least=NOTE_SURELY) or say_passages(answer, "chat.cannot_tell"):
        return True
    if not _is_long(answer.request.text):
        return False
    if not _say_subject(answer):
        say_no_source(answer)
    return True


def _proposal(answer: IntentAnswer) -> bool:
    """Whether doing something would help: the fix it is, and for which cause."""
    request = answer.request
    if request.intent == "restart" and answer.phrases.is_restart(request.text):
        return False
    if _say_note(answer, least=NOTE_SURELY):
        return True
    fitting = _fitting_fix(answer)
    if fitting is None:
        return say_passages(answer, "chat.cannot_tell") or _say_note(answer, least=NOTE_ANSWERS)
    _say_would_help(answer, *fitting)
    return True


def _say_would_help(answer: IntentAnswer, cause: Cause, fix: Fix) -> None:
    """Yes, only if, or hardly: by how likely the cause is that the fix is for."""
    ranked, leading = answer.ranked.get(cause.id), answer.leading
    share = ranked.probability if ranked else 0.0
    label = "chat.would_help_if" if share >= POSSIBLE else "chat.would_hardly_help"
    if leading is None or leading.id == cause.id:
        label = "chat.would_help"
    if _coverage(answer, fix) < NAMED_FIX:
        label = "chat.nearest_fix"
    steps = _nearest_first([step.get(answer.language) for step in fix.steps], answer)
    reason = steps[0] if steps else fix.title.get(answer.language)
    answer.say_of(
        "verdict",
        label,
        cause.id,
        quote=reason,
        pages=fix.sources,
        fix=fix.title.get(answer.language),
        reason=reason,
        status=answer.words(f"claim.{fix.status}"),
        leading=answer.title(leading.id) if leading else "",
        leading_percent=answer.percent(leading.id) if leading else "",
    )
    if label == "chat.would_hardly_help":
        return
    for text in steps[1:STEPS_SHOWN]:
        answer.say_of("step", "chat.step", cause.id, quote=text, step=text)
    if fix.caution:
        text = fix.caution.get(answer.language)
        answer.say_of("warning", "chat.caution", cause.id, quote=text, caution=text)
    answer.focus = cause.id


def _coverage(answer: IntentAnswer, fix: Fix) -> float:
    """The share of what a question names that a fix speaks of."""
    tokens = default_tokenizer().tokens
    asked = {word for word in tokens(answer.question_text) if not answer.phrases.is_filler(word)}
    texts = [fix.title, *fix.steps, *filter(None, (fix.caution,))]
    told = {*tokens(" ".join((*(f"{text.zh} {text.en}" for text in texts), *fix.commands)))}
    return len(asked & told) / max(len(asked), 1)


def _nearest_first(steps: list[str], answer: IntentAnswer) -> list[str]:
    """The steps of a fix, the one first that shares most words with the question."""
    tokens = default_tokenizer().tokens
    asked = {word for word in tokens(answer.question_text) if not answer.phrases.is_filler(word)}
    if not steps:
        return []
    best = max(range(len(steps)), key=lambda at: (len(asked & {*tokens(steps[at])}), -at))
    return [steps[best], *steps[:best], *steps[best + 1 :]]


# --- what something is, and what is done ---------------------------------------------------------


def _meaning(answer: IntentAnswer) -> bool:
    """What something is: a note, a cause's definition, an outcome of the check asked."""
    request = answer.request
    few = len(default_tokenizer().tokens(request.text)) <= FEW_WORDS
    short = len(default_tokenizer().tokens(request.text)) <= 3 * FEW_WORDS
    if short and answer.phrases.is_about_check(request.text) and _explain_check(answer):
        return True
    if few and answer.phrases.is_pointing(request.text) and not request.causes:
        return _say_meant(answer) or answer_movement(answer) or answer_standing(answer)
    if _say_note(answer, least=NOTE_SURELY if request.causes else NOTE_ANSWERS):
        return True
    for cause in request.causes[:1]:
        say_definition(answer, cause)
        say_for(answer, cause)
        return True
    return not few and say_passages(answer)


def _say_meant(answer: IntentAnswer) -> bool:
    """What is meant by what the message itself tells: the cause it speaks for most, if any rose."""
    rose = [change for change in answer.changes if change.after > change.before]
    if rose:
        say_definition(answer, max(rose, key=lambda change: change.after - change.before).cause)
    return bool(rose)


def _how(answer: IntentAnswer) -> bool:
    """How something is done: a note, a check by the tool it names, a passage, a fix."""
    if answer.request.intent == "fix" and _is_plain(answer):
        return False
    count = len(default_tokenizer().tokens(answer.question_text))
    has_own = answer.request.intent in ("fix", "next") and count <= 2 * FEW_WORDS
    about = "" if answer.request.intent == "fix" else _tools_pointed_at(answer)
    if count > FEW_WORDS and _say_note(answer, least=NOTE_ANSWERS, about=about):
        return True
    tools = answer.phrases.tools_in(answer.question_text)
    for check in _checks(answer):
        if tools & answer.phrases.tools_in(check.command):
            _say_check(answer, check)
            return True
    fitting = _fitting_fix(answer, least=OWN_POINTS)
    if fitting is None and say_passages(answer, least=SURELY if has_own else ANSWERS):
        return True
    if fitting is None and not has_own:
        fitting = _fitting_fix(answer)
    if fitting is None:
        return False
    say_fix(answer, fitting[0].id, fitting[1])
    answer.focus = fitting[0].id
    return True


def _summary(answer: IntentAnswer) -> bool:
    answer_recap(answer)
    return True


def _tools_pointed_at(answer: IntentAnswer) -> str:
    """The tools of the last check, where a question points at it: “how do I read such a dump?”."""
    asked = "".join(answer.conversation.asked_checks[-1:])
    check = find_check(answer.knowledge, asked)
    if check is None or not answer.phrases.is_pointing(answer.request.text):
        return ""
    return " ".join(sorted(answer.phrases.tools_in(check.command) - {answer.phrases.running}))


def _plan(answer: IntentAnswer) -> bool:
    """What to do, in its order."""
    answer_plan(answer)
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


def _say_note(answer: IntentAnswer, *, least: float, about: str = "") -> bool:
    hits = find_notes(answer, least=least, about=about)
    if hits:
        say_note(answer, hits[0])
    return bool(hits)


def _fitting_fix(answer: IntentAnswer, *, least: float = FITTING_FIX) -> tuple[Cause, Fix] | None:
    """The fix a question speaks of, with its cause; possible causes come before others."""
    points = answer.service.engine.fix_points(answer.question_text)

    def share(cause: Cause) -> float:
        ranked = answer.ranked.get(cause.id)
        return ranked.probability if ranked else 0.0

    def worth(item: tuple[float, Cause, Fix]) -> tuple[bool, float, str]:
        return share(item[1]) >= POSSIBLE, item[0] + POINTS_OF_ONE * share(item[1]), item[2].id

    fixes = [
        (points.get(fix.id, 0.0), cause, fix)
        for cause in answer.knowledge.causes
        for fix in cause.fixes
        if points.get(fix.id, 0.0) >= (POSSIBLE_FIX * least if share(cause) >= POSSIBLE else least)
        and not answer.is_for_others(fix.applies_to.frameworks)
    ]
    if not fixes:
        return None

    _, cause, fix = max(fixes, key=worth)
    return cause, fix


_FORMS: Mapping[QuestionForm, Callable[[IntentAnswer], bool]] = {
    "summary": _summary,
    "movement": answer_movement,
    "standing": answer_standing,
    "plan": _plan,
    "choice": _choice,
    "proposal": _proposal,
    "meaning": _meaning,
    "how": _how,
    "yes_no": _yes_no,
}
