"""The attempts of a job in a few lines: how far the last came, and whether another may help."""

from __future__ import annotations

from collections.abc import Sequence

from app.render.escape import plain
from kb.incidents.attempts import Attempt, retry_verdict
from kb.knowledge.labels import Words


def attempt_lines(job: str, attempts: Sequence[Attempt], words: Words) -> list[str]:
    """Which attempt it was with its progress, then what that means for a retry."""
    if not attempts:
        return [words("attempt.none", job=plain(job))]
    return [_progress_line(job, attempts, words), verdict_line(attempts, words)]


def _progress_line(job: str, attempts: Sequence[Attempt], words: Words) -> str:
    step = attempts[-1].last_step
    what = words("attempt.number", job=plain(job), count=len(attempts))
    before = [item.last_step for item in attempts[:-1] if item.last_step is not None]
    if step is None:
        return what
    if not before:
        return words("attempt.first_steps", what=what, step=step)
    return words("attempt.steps", what=what, step=step, before=max(before))


def verdict_line(attempts: Sequence[Attempt], words: Words) -> str:
    """What the attempts say of one more."""
    verdict = retry_verdict(attempts)
    root = plain(attempts[-1].root) if attempts else ""
    if verdict.hopeless:
        return words("attempt.hopeless", count=verdict.same_root, root=root)
    if verdict.gained:
        return words("attempt.gained", count=verdict.gained)
    if verdict.same_root > 1:
        return words("attempt.same", root=root)
    return words("attempt.may_help")
