"""Answers about the conversation itself: language, outcome, thanks, help, and what is not ours."""

from __future__ import annotations

from typing import Literal

from kb.chat.answers.evidence import shorten
from kb.chat.incident import TOLD
from kb.chat.talk import QUOTE_CHARS, Said, Talk, cite_cause
from kb.chat.types import Answered, Citation, Outcome


def answer_language(talk: Talk) -> Said:
    """The language changes; what was said last follows in it."""
    label = "chat.language_set" if talk.heard.speaks else "chat.two_languages"
    return Said(statements=(talk.say("note", label),))


def answer_recap(talk: Talk) -> Said:
    """What the person told so far."""
    known = talk.conversation
    quotes = [*known.told, *(item.quote for item in known.answered)]
    statements = [
        talk.say(
            "evidence",
            "chat.quoted",
            (Citation(kind="text", quote=remark[:QUOTE_CHARS]),),
            quote=shorten(remark),
        )
        for remark in known.told
    ]
    statements += [
        talk.say("evidence", "chat.told_answer", (cited,), observation=_observed(talk, item))
        for item in known.answered
        for cited in (Citation(kind="text", quote=item.quote[:QUOTE_CHARS]),)
    ]
    label = "chat.told_so_far" if quotes else "chat.told_nothing"
    return Said(statements=(talk.say("note", label), *statements))


def _observed(talk: Talk, item: Answered) -> str:
    """What an answer to a check says was seen."""
    signal = talk.judged.signals.get(f"{TOLD}{item.check}") if talk.judged else None
    return signal.reason_id if signal else item.quote


def answer_outcome(talk: Talk) -> Said:
    """A cause was confirmed or denied; faces may keep it as feedback."""
    leading = talk.leading
    named = leading.id if leading else ""
    if talk.heard.settles == "denied" and not talk.heard.causes:
        meant = talk.meant()
        second = [item for item in talk.ranked.values() if item.id != meant][:1]
        statements = [talk.say("note", "chat.outcome_not")]
        statements += [
            talk.say(
                "verdict",
                "chat.then_next",
                cite_cause(talk.knowledge.cause_by_id[item.id], talk)[:1],
                title=item.title,
                percent=talk.percent(item.probability),
            )
            for item in second
        ]
        outcome = Outcome(verdict="wrong", cause=meant) if meant and talk.ranked else None
        focus = second[0].id if second else ""
        return Said(statements=tuple(statements), focus=focus, outcome=outcome)
    meant = talk.meant()
    if not meant:
        return Said(statements=(talk.say("note", "chat.outcome_good"),))
    cited = cite_cause(talk.knowledge.cause_by_id[meant], talk)[:1]
    verdict: Literal["right", "wrong"] = "right" if meant == named else "wrong"
    return Said(
        statements=(talk.say("verdict", "chat.outcome_is", cited, title=talk.title(meant)),),
        focus=meant,
        outcome=Outcome(verdict=verdict, cause=named, actual=meant) if named else None,
    )


def answer_courtesy(talk: Talk) -> Said:
    """A short word back."""
    label = "chat.welcome" if talk.judged else "chat.hello"
    return Said(statements=(talk.say("note", label),))


def answer_help(talk: Talk) -> Said:
    """What this can do."""
    return Said(statements=(talk.say("note", "chat.help"), talk.say("hint", "chat.help_log")))


def answer_off_topic(talk: Talk) -> Said:
    """Not ours, said plainly."""
    return Said(statements=(talk.say("note", "chat.off_topic"),))


def answer_unclear(talk: Talk) -> Said:
    """Not understood, or not known, with what would help."""
    label = "chat.unclear" if talk.judged else "chat.unclear_start"
    if talk.heard.asks:
        label = "chat.no_answer"
    return Said(statements=(talk.say("note", label),))
