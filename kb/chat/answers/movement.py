"""What a message moved, and what to do first for the cause that leads now."""

from __future__ import annotations

from collections.abc import Sequence

from kb.chat.answers.answer import IntentAnswer, cite_remark, shorten
from kb.chat.answers.causes import fixes_of
from kb.chat.types import Change
from kb.diagnose.wording import model_percent

MUCH = 0.1  # probability by which a cause that moved less than another is worth a word
_DIRECTIONS = {True: "chat.speaks_for", False: "chat.speaks_against"}


def say_changes(answer: IntentAnswer, *, limit: int | None = None) -> None:
    """Add the causes that moved, most first, a sentence for each piece of new evidence."""
    changes = [change for change in answer.changes if change.why] or list(answer.changes)
    changes = [change for change in changes if change in changes[:1] or _by(change) >= MUCH]
    by_evidence: dict[tuple[str, ...], list[Change]] = {}
    for change in changes[:limit]:
        why = () if answer.step.event == "retracted" else change.why
        by_evidence.setdefault(why, []).append(change)
    for why, moved in by_evidence.items():
        _say_moved(answer, why, moved)


def _by(change: Change) -> float:
    return abs(change.after - change.before)


def _say_moved(answer: IntentAnswer, why: tuple[str, ...], moved: Sequence[Change]) -> None:
    titles = [
        answer.words(
            "chat.moves_back" if not why else _DIRECTIONS[change.after > change.before],
            title=change.title,
            before=model_percent(change.before),
            after=model_percent(change.after),
        )
        for change in moved
    ]
    answer.say(
        "change",
        "chat.speaks" if why else "chat.moved",
        [*map(cite_remark, why), *(answer.cite(change.cause) for change in moved)],
        moved=answer.words.listing(titles),
        quotes=listing(answer, why),
    )


def listing(answer: IntentAnswer, quotes: tuple[str, ...]) -> str:
    """The quotes in a row."""
    words = answer.words
    return words.listing(words("chat.quoted", quote=shorten(quote)) for quote in quotes)


def say_next_fix(answer: IntentAnswer, cause: str) -> None:
    """The fix to try by now: the first, or the first of the others that no reply has named."""
    told = len(answer.statements)
    say_first_fix(answer, cause)
    if len(answer.statements) == told or not answer.shown.holds(answer.statements[-1]):
        return
    answer.statements.pop()
    for fix in fixes_of(answer, cause):
        title, command = fix.title.get(answer.language), "".join(fix.commands[:1])
        values = {"quote": title, "title": title, "command": command}
        if not answer.shown.names(title):
            answer.say_of("fix", "chat.try_next", cause, pages=fix.sources, **values)
            return


def say_first_fix(answer: IntentAnswer, cause: str) -> None:
    """The fix that every face names first; a check is asked as a question."""
    step = answer.diagnosis.first_fix if answer.diagnosis else None
    if step is None or step.fix == "" or step.cause != cause:
        return
    fixes = fixes_of(answer, cause)
    first = next((fix for fix in fixes if fix.id == step.fix), None)
    title, command, pages = step.title, step.command, first.sources if first else ()
    if first is None and fixes:  # that one is for another framework than the one told
        title, pages = fixes[0].title.get(answer.language), fixes[0].sources
        command = "".join(fixes[0].commands[:1])
    if answer.is_for_others((), command):
        command = ""
    values = {"quote": title, "title": title, "command": command}
    answer.say_of("fix", "chat.try_first", cause, pages=pages, **values)
