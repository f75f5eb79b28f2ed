"""What a message moved, and what to do first for the cause that leads now."""

from __future__ import annotations

from kb.chat.answers.answer import IntentAnswer, cite_remark, shorten
from kb.chat.answers.causes import fixes_of
from kb.chat.types import Change
from kb.diagnose.wording import model_percent


def say_changes(answer: IntentAnswer, *, limit: int | None = None) -> None:
    """Add the causes that moved, most first, and the new evidence that moved them."""
    told = [change for change in answer.changes if change.why] or list(answer.changes)
    for change in told[:limit]:
        _say_change(answer, change)


def _say_change(answer: IntentAnswer, change: Change) -> None:
    direction = "rises" if change.after > change.before else "falls"
    label = f"chat.{direction}" if change.why else f"chat.{direction}_alone"
    answer.say(
        "change",
        "chat.moves_back" if answer.step.event == "retracted" else label,
        [*map(cite_remark, change.why), answer.cite(change.cause)],
        title=change.title,
        before=model_percent(change.before),
        after=model_percent(change.after),
        quotes=listing(answer, change.why),
    )


def listing(answer: IntentAnswer, quotes: tuple[str, ...]) -> str:
    """The quotes in a row."""
    words = answer.words
    return words.listing(words("chat.quoted", quote=shorten(quote)) for quote in quotes)


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
