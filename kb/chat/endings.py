"""How an incident ended, by the person's word: which cause they mean, and the question to confirm.

“Dropping the rank-0 guard fixed it” names no cause: it is that of the fix it is most like, weighed
with how likely the cause was.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from kb.chat.assessment import Assessment
from kb.chat.meaning import UserRequest
from kb.chat.types import IncidentOutcome, Option, Question
from kb.knowledge.labels import Words
from kb.knowledge.load import Knowledge

if TYPE_CHECKING:
    from kb.service import Service

CONFIRM = "outcome"  # the id of the question; no check has it
LEAST = 1e-4  # probability of a cause
OUTWEIGHS = 4.0  # points of likeness by which what was done says more than a cause's name beside it


def meant_cause(assessment: Assessment, service: Service, request: UserRequest, focus: str) -> str:
    """The cause that is said to be the one, or not to be it."""
    if request.settles == "denied" and not request.causes:
        shown = assessment.diagnosis.causes[0].id if assessment.diagnosis.causes else ""
        return focus or shown
    order = [cause.id for cause in assessment.diagnosis.causes]
    named = [cause for cause in order if cause in request.causes]
    likeness = service.engine.fix_points(request.text)
    nats = service.engine.causes_of(request.text)
    denied = request.causes if request.is_denial else ()
    best = {
        cause.id: max((likeness.get(fix.id, 0.0) for fix in cause.fixes), default=0.0)
        for cause in service.knowledge.causes
    }

    if named and not request.is_denial and best[named[0]] + OUTWEIGHS > max(best.values()):
        return named[0]

    def points(cause: str) -> float:
        told = best[cause] + nats.get(cause, 0.0)
        return told + math.log(max(assessment.probability(cause), LEAST))

    meant = (cause for cause in best if cause not in denied)
    return max(meant, key=lambda cause: (points(cause), cause))


def outcome_question(outcome: IncidentOutcome, knowledge: Knowledge, words: Words) -> Question:
    """Whether it ended so, to be kept only after a yes."""
    title = knowledge.cause_by_id[outcome.actual].title.get(words.language)
    return Question(
        check=CONFIRM,
        text=words("chat.keep_outcome", title=title),
        options=(
            Option(number=1, text=words("chat.keep_yes")),
            Option(number=2, text=words("chat.keep_no")),
        ),
    )
