"""Answers about the conversation itself: language, outcome, thanks, help, and what is not ours."""

from __future__ import annotations

from kb.chat.answers.verdict import verdict
from kb.chat.talk import Said, Talk, cite_cause


def answer_language(talk: Talk) -> Said:
    """The language changes, and the verdict is said again in it."""
    statements = [talk.say("note", "chat.language_set")]
    diagnosis = talk.diagnosis
    if diagnosis is not None and diagnosis.causes:
        statements.append(verdict(talk, diagnosis))
    return Said(statements=tuple(statements))


def answer_outcome(talk: Talk) -> Said:
    """A cause was confirmed or denied; faces may keep it as feedback."""
    meant = talk.meant()
    if talk.heard.settles == "denied" and not talk.heard.causes:
        second = list(talk.ranked.values())[1:2]
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
        return Said(statements=tuple(statements), focus=second[0].id if second else "")
    if not meant:
        return Said(statements=(talk.say("note", "chat.outcome_good"),))
    cited = cite_cause(talk.knowledge.cause_by_id[meant], talk)[:1]
    return Said(
        statements=(
            talk.say("verdict", "chat.outcome_is", cited, title=talk.title(meant)),
            talk.say("hint", "chat.outcome_keep"),
        ),
        focus=meant,
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
    """Not understood, with what would help."""
    label = "chat.unclear" if talk.judged else "chat.unclear_start"
    return Said(statements=(talk.say("note", label),))
