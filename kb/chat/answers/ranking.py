"""Answers about the ranking: why it moved, how it stands, which of two causes."""

from __future__ import annotations

from kb.chat.answers.answer import IntentAnswer, cite_remark, shorten
from kb.chat.answers.causes import say_confirm, say_for
from kb.chat.answers.movement import listing, say_first_fix
from kb.chat.checks import mid_sentence
from kb.chat.types import Change, Turn
from kb.diagnose.wording import model_percent

STANDING_SHOWN = 3  # causes named when asked what it is by now


def answer_movement(answer: IntentAnswer) -> bool:
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


def answer_standing(answer: IntentAnswer) -> bool:
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
    if answer.request.intent == "fix":
        say_first_fix(answer, leading.id)
    answer.focus = leading.id
    return True


def answer_choice(answer: IntentAnswer, named: list[str]) -> None:
    """Which of two causes, why, and what would tell them apart; `named` come before others."""
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
    answer.say_evidence(first, speaks=1, limit=1, cases=False)
    _say_apart(answer, first, second)


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
