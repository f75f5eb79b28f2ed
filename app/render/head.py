"""What an answer begins with, whatever shows it: what happened, what to do, how sure and why.

Texts come through as they are: `app.render.escape.printable` goes first.
"""

from __future__ import annotations

from app.render import present
from app.render.escape import safe_url
from kb.diagnose.wording import waiting_ranks
from kb.knowledge.labels import Words
from kb.types.answer import (
    AnswerCheck,
    AnswerFix,
    AnswerIncident,
    Diagnosis,
    Evidence,
    NextStep,
    RankedCause,
    SimilarCase,
)

LEARNED = frozenset({"reader", "case"})  # kinds that explain less than what stands in the input

BROKEN, CARE = "red", "yellow"  # colours of severity: an error ended it; it waited, or take care


def severity(answer: Diagnosis) -> str | None:
    """The colour of the headline: how bad it is, not how well it is known."""
    if answer.status == "no_timeout":
        return None
    return CARE if answer.incident.first_error is None else BROKEN


def title(answer: Diagnosis, words: Words) -> str:
    """What happened; the verdict where an answer has no headline."""
    return answer.headline or present.verdict(answer, words)


def certainty(answer: Diagnosis, words: Words) -> str:
    """The likeliest cause and how sure it is; empty where there is none."""
    if not answer.causes:
        return ""
    lead = answer.causes[0]
    label = "head.diagnosed" if answer.status == "diagnosed" else "head.undecided"
    return words(
        label,
        title=lead.title,
        id=lead.id,
        percent=present.cause_share(lead),
        band=words.term("band", lead.band),
    )


def strongest(cause: RankedCause) -> Evidence | None:
    """What speaks most for a cause, seen in the input before learned from others."""
    speaking = [item for item in cause.evidence if item.weight > 0 and item.reason]
    return next((item for item in speaking if item.kind not in LEARNED), next(iter(speaking), None))


def certainty_and_why(answer: Diagnosis, words: Words) -> str:
    """How sure the likeliest cause is, and the strongest reason with its place."""
    what = certainty(answer, words)
    reason = strongest(answer.causes[0]) if answer.causes else None
    if reason is None:
        return what
    place = present.place(reason, words)
    why = words("head.at", what=reason.reason, place=place) if place else reason.reason
    return words("head.why", what=what, why=why)


def first_label(answer: Diagnosis, words: Words) -> str:
    """The words before the first step: ``Do first``, ``Check first``; empty where there is none.

    Of what helped the team when it met the same incident they say so, and of what helped in a case
    of another cause than the likeliest one.
    """
    if answer.first_fix is None:
        return ""
    if helped_team(answer) and answer.met_before is not None:
        when = answer.met_before.when
        return words("head.helped_on", when=when) if when else words("head.helped_team")
    if helped_before(answer) and names_another_cause(answer):
        return words("head.helped_case")
    return words(f"head.{answer.first_fix.kind}")


def names_another_cause(answer: Diagnosis) -> bool:
    """Whether the first step is for another cause than the likeliest one, or none is likely."""
    leading = answer.causes[0].id if answer.status == "diagnosed" and answer.causes else ""
    step = answer.first_fix
    return step is not None and step.cause not in ("", leading)


def helped_before(answer: Diagnosis) -> bool:
    """Whether the first step is what helped when the same incident was met before."""
    met, step = answer.met_before, answer.first_fix
    return met is not None and step is not None and bool(met.fix) and step.title == met.fix


def helped_team(answer: Diagnosis) -> bool:
    """Whether the first step is what helped the team itself then."""
    met = answer.met_before
    return met is not None and met.kind == "incident" and helped_before(answer)


def first_title(answer: Diagnosis, words: Words) -> str:
    """The first step, of a fix with how well it is known; empty where there is none."""
    if answer.first_fix is None:
        return ""
    fix = first_answer_fix(answer)
    status = f"  [{words.term('claim', fix.status)}]" if fix else ""
    return answer.first_fix.title + status


def first_answer_fix(answer: Diagnosis) -> AnswerFix | None:
    """The whole of the fix to try first; None where the first step is no fix.

    What helped where the same incident had another cause stands with no cause that is shown.
    """
    step = answer.first_fix
    if step is None or step.kind != "fix":
        return None
    fixes = (fix for cause in answer.causes for fix in cause.fixes)
    met = answer.met_before
    own = AnswerFix(
        id="",
        title=step.title,
        steps=(),
        commands=(step.command,) if step.command else (),
        status=met.fix_status if met and met.fix_id == step.fix else "confirmed",
        applies_to="",
        caution="",
        sources=(),
    )
    return next((fix for fix in fixes if fix.id == step.fix), own)


def caution(answer: Diagnosis, words: Words) -> str:
    """What to beware of in the first step; empty where nothing is."""
    step = answer.first_fix
    if step is None or not step.caution:
        return ""
    return words("word.reason", what=words("row.caution"), reason=step.caution)


def met_before(answer: Diagnosis, words: Words) -> str:
    """The same incident met before and what helped, on one line; empty where there is none.

    What helped is not said again where it is what to do first.
    """
    met = answer.met_before
    if met is None:
        return ""
    same = words(
        "head.same_incident",
        entry=met.entry,
        cause=met.cause_title,
        id=met.cause,
        title=met.title,
    )
    return same + met_fix(answer, words)


def met_fix(answer: Diagnosis, words: Words) -> str:
    """What helped then, to be said behind the title; empty where nobody knows or it is said."""
    met = answer.met_before
    if met is None or not met.fix or helped_before(answer):
        return ""
    return words("head.helped", fix=met.fix)


def met_label(answer: Diagnosis, words: Words) -> str:
    """Whose the same incident is: the team's own, with its day, a case's or an imported page's."""
    met = answer.met_before
    if met is None:
        return ""
    if met.kind == "incident":
        return words("head.team_met_on", when=met.when) if met.when else words("head.team_met")
    if met.kind == "case":
        return words("head.site_case_met" if met.origin == "site" else "head.case_met")
    return words("head.page_met")


def met_address(answer: Diagnosis) -> str:
    """The page of the incident met before; empty where there is none."""
    return safe_url(answer.met_before.url) if answer.met_before else ""


def culprit_line(answer: Diagnosis, words: Words) -> tuple[str, str]:
    """Whose line says most and where it stands, and the line; empty where none is known.

    Of a rank that only waited for another one this is said beside its number.
    """
    error = answer.incident.first_error
    if error is not None and error.text:
        return present.rank_and_place(error, words), error.text
    reason = strongest(answer.causes[0]) if answer.causes else None
    if reason is not None and reason.quote and reason.kind != "case":
        whose = _rank_of_line(reason, answer.incident, words)
        return words.listing([whose, present.place(reason, words)]), reason.quote
    return "", ""


def _rank_of_line(reason: Evidence, incident: AnswerIncident, words: Words) -> str:
    """The rank that printed the line, and whether it waited; empty where nobody knows."""
    here = (reason.file, reason.line)
    rank = next((one.rank for one in incident.ranks if (one.file, one.line) == here), None)
    if rank is None or not reason.line:
        return ""
    waits = rank in waiting_ranks(incident).ranks
    return words("head.waiting_rank" if waits else "word.rank", rank=rank)


def other_causes(answer: Diagnosis) -> list[tuple[str, str]]:
    """The causes behind the likeliest one with their shares."""
    return [(cause.title, present.cause_share(cause)) for cause in answer.causes[1:]]


def check_after_first(answer: Diagnosis) -> AnswerCheck | None:
    """The check that decides, unless it is the first step itself."""
    check = answer.best_check
    return None if check is None or check.command in _first_commands(answer) else check


def steps_after_first(answer: Diagnosis) -> list[NextStep]:
    """What to collect beside the first step and the check."""
    shown = _first_commands(answer)
    if answer.best_check is not None:
        shown |= {answer.best_check.command}
    return [step for step in answer.next if step.command not in shown]


def cases_not_met(answer: Diagnosis) -> list[SimilarCase]:
    """The similar cases beside the incident met before."""
    met = answer.met_before.entry if answer.met_before else ""
    return [case for case in answer.cases if case.id != met]


def _first_commands(answer: Diagnosis) -> set[str]:
    return {answer.first_fix.command} if answer.first_fix and answer.first_fix.command else set()
