"""The answer: a verdict put into words, with fixes, checks, warnings and similar cases."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kb.diagnose import wording
from kb.diagnose.checks import best_check
from kb.diagnose.engine import SIMILAR_SHOWN, Verdict
from kb.diagnose.fixes import (
    COMMON_BACKEND,
    elsewhere,
    fit,
    here_first,
    order_fixes,
    versions_allow,
)
from kb.diagnose.given import seen_names, shows
from kb.diagnose.kinship import KIN_SIGNAL
from kb.diagnose.model import Scored
from kb.diagnose.signals import Signal
from kb.diagnose.wording import Words
from kb.knowledge import Knowledge
from kb.types import (
    DIAGNOSIS_SCHEMA,
    UNKNOWN,
    AnswerCheck,
    AnswerCulprit,
    AnswerFix,
    AnswerIncident,
    AnswerMoment,
    Cause,
    Check,
    Diagnosis,
    Entry,
    Evidence,
    Fix,
    Hit,
    Incident,
    Language,
    LogReading,
    NextStep,
    RankedCause,
    SettingWarning,
    SimilarCase,
)

EVIDENCE_SHOWN = 6
MIN_WEIGHT = 0.1  # nats; weaker evidence explains nothing
FIXES_SHOWN = 4
CHECKS_SHOWN = 3
NEXT_SHOWN = 5
CASES_A_CAUSE = 3
MIN_CASE_SCORE = 0.3  # below this a case is not called similar
CASE_FIX_SCORE = 0.5  # above this the case's own fix comes first
BACKEND_CUES = {"cue:cue-ascend": "hccl"}  # words that name what a job runs on, where no log does
WEIGHED_CAUSES = 4  # causes the best check has to tell apart
_DETAIL = re.compile(r" ?[(（]\{detail\}[)）]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is answered: the reading, the engine's verdict and the way it is to be shown.

    `given` is the evidence the input holds, by the ids of data/given.yaml.
    """

    reading: LogReading
    verdict: Verdict
    entries: Mapping[str, Entry]
    warnings: tuple[SettingWarning, ...]
    language: Language
    top: int
    given: frozenset[str] = frozenset()


def build_diagnosis(request: Request, knowledge: Knowledge, *, took_ms: float) -> Diagnosis:
    """The Diagnosis of `request`, in its language."""
    words = Words(knowledge.labels, request.language)
    verdict, incident = request.verdict, request.reading.incident
    leading = verdict.ranking.causes[0]
    title = knowledge.cause_by_id[leading.cause].title.get(request.language)
    ranked = _ranked(request, knowledge, words) if verdict.status != "no_timeout" else ()
    return Diagnosis(
        schema=DIAGNOSIS_SCHEMA,
        status=verdict.status,
        language=request.language,
        summary=wording.summary(words, verdict.status, incident, title, leading.probability),
        incident=answer_incident(incident, words),
        causes=ranked,
        unknown_probability=round(verdict.ranking.unknown, 4),
        cases=_similar(request, knowledge, words) if ranked else (),
        warnings=request.warnings,
        next=_next_steps(request, knowledge) if ranked else (),
        best_check=_best_check(request, knowledge, words) if ranked else None,
        took_ms=round(took_ms, 2),
        redactions=request.reading.redactions,
    )


def answer_incident(incident: Incident, words: Words) -> AnswerIncident:
    """The incident with its words in one language."""
    language = words.language
    plain = {
        name: getattr(incident, name)
        for name in AnswerIncident.__dataclass_fields__
        if name not in ("culprit_ranks", "timeline", "unread")
    }
    return AnswerIncident(
        **plain,
        culprit_ranks=tuple(
            AnswerCulprit(rank=culprit.rank, reason=culprit.reason.get(language))
            for culprit in incident.culprit_ranks
        ),
        timeline=tuple(
            AnswerMoment(
                time=item.time,
                rank=item.rank,
                what=item.what.get(language),
                line=item.line,
                kind=item.kind,
                file=item.file,
            )
            for item in incident.timeline
        ),
        unread=tuple(
            replace(item, reason=wording.why_unread(words, item)) for item in incident.unread
        ),
    )


def _ranked(request: Request, knowledge: Knowledge, words: Words) -> tuple[RankedCause, ...]:
    return tuple(
        _ranked_cause(scored, request, knowledge, words)
        for scored in request.verdict.ranking.causes[: request.top]
    )


def _ranked_cause(
    scored: Scored, request: Request, knowledge: Knowledge, words: Words
) -> RankedCause:
    cause = knowledge.cause_by_id[scored.cause]
    cases = _cases_of(cause.id, request)
    return RankedCause(
        id=cause.id,
        title=cause.title.get(words.language),
        probability=round(scored.probability, 4),
        band=wording.band(scored.probability),
        evidence=_evidence(scored, request, knowledge, words),
        fixes=tuple(answer_fix(fix, words) for fix in _fixes(cause, cases, request)),
        checks=tuple(
            answer_check(check, knowledge, words)
            for check in _checks(cause, request)[:CHECKS_SHOWN]
        ),
        restart=cause.restart,
        restart_reason=cause.restart_reason.get(words.language),
        cases=tuple(hit.entry_id for hit in cases[:CASES_A_CAUSE]),
    )


def _evidence(
    scored: Scored, request: Request, knowledge: Knowledge, words: Words
) -> tuple[Evidence, ...]:
    parts = [part for part in scored.parts if abs(part.weight) >= MIN_WEIGHT]
    strongest = sorted(parts, key=lambda part: (-abs(part.weight), part.signal.name))
    evidence = [
        Evidence(
            kind=part.signal.kind,
            quote=_quote(part.signal, request, words),
            line=part.signal.line,
            weight=round(part.weight, 3),
            source=part.signal.source,
            reason=_reason(part.signal, knowledge, words),
            file=part.signal.file,
        )
        for part in strongest[:EVIDENCE_SHOWN]
    ]
    evidence += [
        Evidence(
            kind="case",
            quote=knowledge.case_by_id[hit.entry_id].title.get(words.language)
            if hit.entry_id in knowledge.case_by_id
            else hit.title.get(words.language),
            line=0,
            weight=round(request.verdict.votes.get(scored.cause, 0.0), 3),
            source=hit.entry_id,
            reason=words.say("evidence.case", case=hit.entry_id),
        )
        for hit in _cases_of(scored.cause, request)[:1]
    ]
    return tuple(evidence)


def _quote(signal: Signal, request: Request, words: Words) -> str:
    """The literal quote; a case is quoted by its title in the language of the answer."""
    if signal.kind == "case" and signal.source in request.entries:
        return request.entries[signal.source].title.get(words.language)
    return signal.quote


def _reason(signal: Signal, knowledge: Knowledge, words: Words) -> str:
    if signal.reason_id == KIN_SIGNAL:
        return words.say("evidence.kin", case=signal.source)
    pattern = knowledge.pattern_by_id.get(signal.reason_id)
    meaning = pattern or knowledge.fact_by_id.get(signal.reason_id)
    means = meaning.means.get(words.language) if meaning else signal.reason_id
    shown = means if signal.detail else _DETAIL.sub("", means)
    means = shown.replace("{detail}", signal.detail)
    return words.say("evidence.denied", means=means) if signal.denied else means


def _cases_of(cause: str, request: Request) -> list[Hit]:
    return [
        hit
        for hit in request.verdict.hits
        if hit.score >= MIN_CASE_SCORE and _main_cause(hit, request.entries) == cause
    ]


def _main_cause(hit: Hit, entries: Mapping[str, Entry]) -> str:
    entry = entries.get(hit.entry_id)
    return entry.causes[0].id if entry and entry.causes else UNKNOWN


def _fixes(cause: Cause, cases: Sequence[Hit], request: Request) -> list[Fix]:
    """The cause's fixes in order of fit, behind what mended a case that is very much alike."""
    incident, seen = request.reading.incident, _seen(request)
    own = [
        fix
        for hit in cases[:1]
        if hit.score >= CASE_FIX_SCORE
        for fix in order_fixes(request.entries[hit.entry_id].fixes, incident)[:1]
        if fix.status == "confirmed"
    ]
    ordered = [*own, *order_fixes(cause.fixes, incident, seen)]
    return here_first(ordered, incident, seen)[:FIXES_SHOWN]


def _seen(request: Request) -> frozenset[str]:
    """Names of all that was seen, the person's words included."""
    return seen_names(request.reading) | {signal.name for signal in request.verdict.signals}


def answer_fix(fix: Fix, words: Words) -> AnswerFix:
    """A fix in one language, with where it applies in words."""
    return AnswerFix(
        id=fix.id,
        title=fix.title.get(words.language),
        steps=tuple(step.get(words.language) for step in fix.steps),
        commands=fix.commands,
        status=fix.status,
        applies_to=wording.scope(words, fix.applies_to),
        caution=fix.caution.get(words.language) if fix.caution else "",
        sources=fix.sources,
    )


def _checks(cause: Cause, request: Request) -> list[Check]:
    incident = request.reading.incident
    open_ = [check for check in cause.checks if check.gives not in request.given]
    scored = [(fit(check.applies_to, incident), check) for check in open_]
    kept = [(score, check) for score, check in scored if score > -5]
    kept.sort(key=lambda pair: (elsewhere(pair[1].applies_to, incident), -pair[0], pair[1].id))
    return [check for _, check in kept]


def answer_check(check: Check, knowledge: Knowledge, words: Words) -> AnswerCheck:
    """A check with what each outcome means, in one language."""
    outcomes: list[str] = []
    for outcome in check.outcomes:
        for name, ids in (("supports", outcome.supports), ("refutes", outcome.refutes)):
            titles = [knowledge.cause_by_id[cause].title.get(words.language) for cause in ids]
            if titles:
                observation = outcome.observation.get(words.language)
                outcomes.append(
                    words.say(f"outcome.{name}", observation=observation, causes=words.join(titles))
                )
    return AnswerCheck(
        command=check.command, tells=check.tells.get(words.language), outcomes=tuple(outcomes)
    )


def _best_check(request: Request, knowledge: Knowledge, words: Words) -> AnswerCheck | None:
    leading = request.verdict.ranking.causes[:WEIGHED_CAUSES]
    checks = [
        check
        for scored in leading[:2]
        for check in _checks(knowledge.cause_by_id[scored.cause], request)
        if not elsewhere(check.applies_to, request.reading.incident)
    ]
    best = best_check(checks, {scored.cause: scored.probability for scored in leading})
    return answer_check(best, knowledge, words) if best else None


def _next_steps(request: Request, knowledge: Knowledge) -> tuple[NextStep, ...]:
    """What to collect: for the leading cause, then what always helps, valid for the version.

    Of several ways to the same evidence the first; nothing the input holds already.
    """
    incident = request.reading.incident
    leading = request.verdict.ranking.causes[0].cause
    order = [UNKNOWN] if request.verdict.status != "diagnosed" else [leading, UNKNOWN]
    seen = _seen(request)
    spoken = (backend for cue, backend in BACKEND_CUES.items() if cue in seen)
    backend = incident.backend or next(spoken, COMMON_BACKEND)
    steps: dict[str, NextStep] = {}
    for identifier in order:
        cause = knowledge.cause_by_id.get(identifier)
        for item in cause.collect if cause else ():
            here = not item.backends or backend in item.backends
            due = (not item.when or shows(item.when, seen)) and item.gives not in request.given
            if here and due and versions_allow(item.versions, incident.versions):
                step = NextStep(command=item.command, why=item.why.get(request.language))
                steps.setdefault(item.gives or item.command, step)
    return tuple(steps.values())[:NEXT_SHOWN]


def _similar(request: Request, knowledge: Knowledge, words: Words) -> tuple[SimilarCase, ...]:
    shown = [hit for hit in request.verdict.hits if hit.score >= MIN_CASE_SCORE][:SIMILAR_SHOWN]
    return tuple(_similar_case(hit, request, knowledge, words) for hit in shown)


def _similar_case(hit: Hit, request: Request, knowledge: Knowledge, words: Words) -> SimilarCase:
    entry = request.entries[hit.entry_id]
    incident = request.reading.incident
    leading = request.verdict.ranking.causes[0].cause
    cause = _main_cause(hit, request.entries)
    tags = entry.tags
    why = list(hit.why)
    differs: list[str] = []
    if cause == leading:
        why.insert(0, words.say("why.same_cause"))
    elif cause in knowledge.cause_by_id:
        title = knowledge.cause_by_id[cause].title.get(words.language)
        differs.append(words.say("differs.cause", title=title))
    hung = {incident.op, *(state.last_op for state in incident.ranks)}
    if shared := [op for op in tags.ops if op in hung]:
        why.append(words.say("why.same_op", op=words.join(shared)))
    if "unknown" not in (incident.stage, tags.stage):
        target, name = (why, "why") if incident.stage == tags.stage else (differs, "differs")
        verb = "same_stage" if name == "why" else "stage"
        target.append(words.say(f"{name}.{verb}", stage=words.say(f"stage.{tags.stage}")))
    if incident.backend and tags.backend and incident.backend != tags.backend:
        differs.append(words.say("differs.backend", backend=tags.backend))
    same = sorted(set(incident.frameworks) & set(tags.frameworks))
    if same:
        why.append(words.say("why.same_framework", frameworks=words.join(same)))
    # nearly all have the same backend: told where nothing else is
    if len(why) == len(hit.why) and incident.backend and incident.backend == tags.backend:
        why.append(words.say("why.same_backend", backend=tags.backend))
    return SimilarCase(
        id=entry.id,
        project=entry.project,
        title=entry.title.get(words.language),
        score=round(hit.score, 3),
        cause=cause,
        url=entry.url,
        status=entry.status,
        why=tuple(why),
        differs=tuple(differs),
    )
