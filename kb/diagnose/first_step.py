"""The one thing to do first: the fix of the likeliest cause, else the check that decides."""

from __future__ import annotations

from kb.types.answer import AnswerCheck, FirstStep, MetBefore, NextStep, RankedCause
from kb.types.vocabulary import DiagnosisStatus


def first_step(
    status: DiagnosisStatus,
    leading: RankedCause | None,
    best_check: AnswerCheck | None,
    collect: tuple[NextStep, ...],
    met: MetBefore | None = None,
) -> FirstStep | None:
    """What to do first; None where nothing is known to do.

    Where the same incident was met and had another cause, what helped then comes first.
    Without a verdict there is nothing to fix: then the check that decides comes first, or what
    would show more.
    """
    if met is not None and met.fix:
        is_leading = status == "diagnosed" and leading is not None and leading.id == met.cause
        if not is_leading:
            return FirstStep(
                kind="fix",
                title=met.fix,
                command=met.command,
                fix=met.fix_id,
                cause=met.cause,
            )
    if status == "diagnosed" and leading is not None and leading.fixes:
        fix = leading.fixes[0]
        return FirstStep(
            kind="fix",
            title=fix.title,
            command=next(iter(fix.commands), ""),
            caution=fix.caution,
            fix=fix.id,
            cause=leading.id,
        )
    if status != "no_timeout" and best_check is not None:
        return FirstStep(kind="check", title=best_check.tells, command=best_check.command)
    if collect:
        return FirstStep(kind="collect", title=collect[0].why, command=collect[0].command)
    return None
