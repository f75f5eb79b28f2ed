"""Met before: the team's own incident, or a case, that is this incident.

An entry is, whose text stands out: it is alike, and no other entry nearly as much (less is asked
where it has the leading cause). Of 222 known threads 139 meet their own case so, and 2 another; of
223 without their own case 11 meet another one, 10 of these with the right cause.

Else it has the leading cause (or is of the team, of nearly the same log) and the same error
(`kb.diagnose.same_error`), or the same operation in the same stage of the same framework where no
log shows what failed, and is alike in the rest. A description without a log has to be nearer. Where
both name a backend, or frameworks, and share none, they are not the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from kb.diagnose.fixes import Job, order_fixes
from kb.diagnose.likeness import compare, likeness
from kb.diagnose.same_error import NO_MARKS, ErrorMarks, error_marks
from kb.diagnose.verdict import Verdict
from kb.knowledge.labels import Words
from kb.knowledge.site import is_of_site
from kb.types.answer import MetBefore
from kb.types.entries import Entry, Hit
from kb.types.incident import Incident
from kb.types.knowledge import EventType, Fix
from kb.types.vocabulary import UNKNOWN

ALIKE_TEXT = 0.6  # score of an entry that can stand out
STANDS_OUT = 0.1  # score before the next entry, where the leading cause is its own
STANDS_FAR_OUT = 0.2  # where it is not, or nothing is diagnosed
SAME_ERROR = 0.75  # likeness of the same incident where its error is the same
SAME_LOG = 0.9  # score of what is nearly the same log, whatever cause leads
SAME_WORDS = 0.85  # where only a description tells: there is no error to compare
OWN, CASE, OTHER = range(3)  # whose entry stands first
ORDER = {"incident": OWN, "case": CASE}
DAY_CHARS = len("2026-05-03")
NAMED_ERRORS = 2


def met_before(
    verdict: Verdict, types: Mapping[str, EventType], titles: Mapping[str, str], words: Words
) -> MetBefore | None:
    """The entry that is this incident, the team's own first, then the most alike, ties by id.

    Args:
        verdict: where nothing is diagnosed only what stands out counts, and the team's own incident
            of the same log.
        types: kinds of events by id.
        titles: what causes are called in the language of the answer, by id.
        words: of the language of the answer.
    """
    incident, leading = verdict.reading.incident, verdict.ranking.causes[0]
    own = error_marks(verdict.reading, types)
    same: list[tuple[int, float, str]] = []
    for hit in verdict.hits:
        entry = verdict.entries[hit.entry_id]
        marks = verdict.marks.get(entry.id, NO_MARKS)
        alike = likeness(hit.score, leading.probability)
        if not entry.causes or _is_of_another_stack(incident, entry):
            continue
        agrees = verdict.status == "diagnosed" and entry.causes[0].id == leading.cause
        # A team's log is whole: where it shows another error the job died of another one.
        is_other = entry.kind == "incident" and own and marks and not own.shared(marks)
        least = STANDS_OUT if agrees else STANDS_FAR_OUT
        if not is_other and stands_out(hit, verdict.hits, least):
            same.append((ORDER.get(entry.kind, OTHER), -alike, entry.id))
            continue
        if not agrees:
            same_log = hit.score >= SAME_LOG and own.shared(marks)
            if entry.kind != "incident" or not same_log or verdict.status == "no_timeout":
                continue
            alike = hit.score  # the team knows what its log does not show
        if alike >= _least_likeness(own, marks, incident, entry):
            same.append((ORDER.get(entry.kind, OTHER), -alike, entry.id))
    if not same:
        return None
    entry = verdict.entries[min(same)[2]]
    shared = own.shared(verdict.marks.get(entry.id, NO_MARKS))
    why, differs = compare(incident, entry, words)
    fix = what_helped(entry, incident)
    return MetBefore(
        entry=entry.id,
        kind=entry.kind,
        when=entry.resolved_on[:DAY_CHARS] or entry.date,
        title=entry.title.get(words.language),
        cause=entry.causes[0].id,
        cause_title=titles.get(entry.causes[0].id, entry.causes[0].id),
        fix=fix.title.get(words.language) if fix else "",
        command=next(iter(fix.commands), "") if fix else "",
        fix_id=fix.id if fix else "",
        fix_status=fix.status if fix else "unverified",
        url=entry.url,
        why=(*_in_words(shared, types, words), *why) or (words("why.same_words"),),
        differs=tuple(differs),
        origin="site" if is_of_site(entry) else "",
    )


def stands_out(hit: Hit, hits: Sequence[Hit], least: float = STANDS_FAR_OUT) -> bool:
    """Whether the text is alike, and by `least` more than that of any other entry."""
    others = (other.score for other in hits if other.entry_id != hit.entry_id)
    return hit.score >= ALIKE_TEXT and hit.score - max(others, default=0.0) >= least


def _is_of_another_stack(incident: Incident, entry: Entry) -> bool:
    """Whether both name a backend, or frameworks, and have none in common."""
    own, other = {incident.backend} - {""}, {entry.tags.backend} - {""}
    frameworks, theirs = set(incident.frameworks), set(entry.tags.frameworks)
    return any(a and b and a.isdisjoint(b) for a, b in ((own, other), (frameworks, theirs)))


def _least_likeness(own: ErrorMarks, marks: ErrorMarks, incident: Incident, entry: Entry) -> float:
    """How alike an entry of the leading cause has to be to be the same incident."""
    shared = own.shared(marks)
    if shared.errors:
        return SAME_ERROR
    if own and marks and not (shared.sizes and own.errors == marks.errors):
        return math.inf
    if shared.sizes:  # a team's jobs are of the same sizes
        return SAME_WORDS if entry.kind == "incident" else SAME_ERROR
    tags = entry.tags
    same_place = incident.stage == tags.stage != UNKNOWN and incident.op in tags.ops
    if same_place and set(incident.frameworks) & set(tags.frameworks):
        return SAME_ERROR
    return SAME_WORDS


def what_helped(entry: Entry, incident: Incident) -> Fix | None:
    """The fix that is confirmed, else the one that fits best."""
    ordered = order_fixes(entry.fixes, Job(incident=incident))
    confirmed = (fix for fix in ordered if fix.status == "confirmed")
    return next(confirmed, next(iter(ordered), None))


def _in_words(shared: ErrorMarks, types: Mapping[str, EventType], words: Words) -> list[str]:
    """The errors and sizes that both have."""
    why = []
    for error in sorted(shared.errors)[:NAMED_ERRORS]:
        means = types[error].means.get(words.language) if error in types else error
        why.append(words("why.same_error", error=means))
    for numel_in, numel_out in sorted(shared.sizes)[:1]:
        why.append(words("why.same_sizes", numel_in=numel_in, numel_out=numel_out))
    return why
