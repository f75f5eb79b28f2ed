"""The answer: a verdict put into words, with fixes, checks, warnings and similar cases."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kb.diagnose import wording
from kb.diagnose.checks import best_check, fitting_checks
from kb.diagnose.evidence_model import ScoredCause
from kb.diagnose.evidence_provided import evidence_provided, seen_names, shows
from kb.diagnose.first_step import first_step
from kb.diagnose.fixes import (
    COMMON,
    COMMON_BACKEND,
    Job,
    elsewhere,
    order_fixes,
)
from kb.diagnose.headline import headline
from kb.diagnose.signals import Signal
from kb.diagnose.verdict import SIMILAR_SHOWN, Verdict
from kb.knowledge.framework_names import framework_names
from kb.knowledge.labels import Words
from kb.knowledge.load import Knowledge
from kb.knowledge.versions import versions_meet
from kb.settings_check import report_settings
from kb.types.answer import (
    AnswerCheck,
    AnswerCulprit,
    AnswerFix,
    AnswerIncident,
    AnswerMoment,
    Diagnosis,
    Evidence,
    LikelyCause,
    NextStep,
    RankedCause,
    ReaderOpinion,
    SecondReading,
    SimilarCase,
)
from kb.types.entries import Entry, Hit
from kb.types.incident import Incident
from kb.types.knowledge import Cause, Check, Fix
from kb.types.vocabulary import DIAGNOSIS_SCHEMA, UNKNOWN, Language, Polarity, ReaderName

EVIDENCE_SHOWN = 6
MIN_WEIGHT = 0.1  # nats; weaker evidence explains nothing
CHECKS_SHOWN = 3
NEXT_SHOWN = 5
CASES_A_CAUSE = 3
READER_CAUSES = 3  # of what each reader alone would say
MIN_CASE_SCORE = 0.3  # below this a case is not called similar
CASE_FIX_SCORE = 0.5  # above this the case's own fix is listed
BACKEND_CUES = {"cue:cue-ascend": "hccl"}  # words that name what a job runs on, where no log does
WEIGHED_CAUSES = 4  # causes the best check has to tell apart
_DETAIL = re.compile(r" ?[(（]\{detail\}[)）]")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rendering:
    """What the parts of one answer are made of.

    `seen` are the names of all that was seen, the person's words included, `provided` the ids of
    data/input_evidence.yaml for the evidence the input holds, `job` what fixes are held against.
    """

    verdict: Verdict
    knowledge: Knowledge
    words: Words
    seen: frozenset[str]
    provided: frozenset[str]
    job: Job

    @property
    def incident(self) -> Incident:
        """The verdict's incident."""
        return self.verdict.reading.incident

    @property
    def leading(self) -> ScoredCause:
        """The likeliest cause."""
        return self.verdict.ranking.causes[0]


def render(verdict: Verdict, knowledge: Knowledge, *, language: Language, top: int) -> Diagnosis:
    """The verdict as a Diagnosis with the `top` likeliest causes, in one language."""
    reading, words = verdict.reading, Words(knowledge.labels, language)
    seen = seen_names(reading) | {signal.name for signal in verdict.signals}
    made = _Rendering(
        verdict=verdict,
        knowledge=knowledge,
        words=words,
        seen=seen,
        provided=evidence_provided(reading, knowledge.input_evidence),
        job=_job(verdict, knowledge, seen),
    )
    title = knowledge.cause_by_id[made.leading.cause].title.get(language)
    probability = made.leading.probability
    settings = report_settings(
        reading, knowledge.advice, verdict.conflicts, torch=verdict.torch or None, words=words
    )
    says = verdict.status != "no_timeout"
    causes = tuple(_ranked(scored, made) for scored in verdict.ranking.causes[:top]) if says else ()
    check = _best_check(made) if says else None
    steps = _next_steps(made) if says else ()
    return Diagnosis(
        schema=DIAGNOSIS_SCHEMA,
        status=verdict.status,
        language=language,
        summary=wording.summary(words, verdict.status, reading.incident, title, probability),
        incident=answer_incident(reading.incident, words),
        causes=causes,
        unknown_probability=round(verdict.ranking.unknown, 4),
        cases=_similar_cases(made) if says else (),
        warnings=settings.warnings,
        next=steps,
        best_check=check,
        took_ms=0.0,
        redactions=reading.redactions,
        setting_notes=settings.notes,
        settings_in_order=settings.in_order,
        second_reader=_second_reading(made),
        readers=_readers(made) if says else (),
        headline=headline(reading, verdict.status, knowledge.event_by_id, words),
        first_fix=first_step(verdict.status, next(iter(causes), None), check, steps),
    )


def _job(verdict: Verdict, knowledge: Knowledge, seen: frozenset[str]) -> Job:
    """What fixes are held against: frameworks and backend also as a person's words name them."""
    incident = verdict.reading.incident
    uses = verdict.uses | frozenset(incident.frameworks)
    named = (backend for cue, backend in BACKEND_CUES.items() if cue in seen)
    backend = incident.backend or next(named, "")
    if backend == "hccl":
        uses |= {"ascend"}
    return Job(
        incident=replace(incident, frameworks=tuple(sorted(uses)), backend=backend),
        seen=seen,
        uses=uses,
        likeness=verdict.fix_likeness,
        names=framework_names(knowledge.framework_names),
    )


def _readers(made: _Rendering) -> tuple[ReaderOpinion, ...]:
    second = made.verdict.second
    tops: list[tuple[ReaderName, Sequence[tuple[str, float]]]] = [
        (name, sorted(shares.items(), key=lambda pair: (-pair[1], pair[0]))[:READER_CAUSES])
        for name, shares in made.verdict.opinions.items()
    ]
    if second is not None and second.top:
        tops.append(("language_model", second.top))
    return tuple(ReaderOpinion(name=name, top=_likely(top, made)) for name, top in tops)


def _likely(top: Sequence[tuple[str, float]], made: _Rendering) -> tuple[LikelyCause, ...]:
    causes, language = made.knowledge.cause_by_id, made.words.language
    return tuple(
        LikelyCause(id=cause, title=causes[cause].title.get(language), probability=round(share, 4))
        for cause, share in top
    )


def _second_reading(made: _Rendering) -> SecondReading | None:
    second = made.verdict.second
    if second is None:
        return None
    return SecondReading(
        model=second.model,
        why=made.words(f"second.{second.why}", **second.why_values) if second.why else "",
        trust=second.trust,
        top=_likely(second.top, made),
        ask=second.ask,
        tokens=second.tokens,
        took_ms=second.took_ms,
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
            AnswerCulprit(rank=culprit.rank, reason=culprit.reason.get(language), kind=culprit.kind)
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


def _ranked(scored: ScoredCause, made: _Rendering) -> RankedCause:
    cause, words = made.knowledge.cause_by_id[scored.cause], made.words
    cases = _cases_of(cause.id, made)
    return RankedCause(
        id=cause.id,
        title=cause.title.get(words.language),
        probability=round(scored.probability, 4),
        band=wording.band(scored.probability),
        evidence=_evidence(scored, cases, made),
        fixes=tuple(_fixes(cause, cases, made)),
        checks=tuple(
            answer_check(check, made.knowledge, words)
            for check in fitting_checks(cause, made.incident, made.provided)[:CHECKS_SHOWN]
        ),
        restart=cause.restart,
        restart_reason=cause.restart_reason.get(words.language),
        cases=tuple(hit.entry_id for hit in cases[:CASES_A_CAUSE]),
    )


def _evidence(scored: ScoredCause, cases: Sequence[Hit], made: _Rendering) -> tuple[Evidence, ...]:
    contributions = [item for item in scored.contributions if abs(item.weight) >= MIN_WEIGHT]
    strongest = sorted(contributions, key=lambda item: (-abs(item.weight), item.signal.name))
    evidence = [
        Evidence(
            kind=item.signal.kind,
            quote=_quote(item.signal, made),
            line=item.signal.line,
            weight=round(item.weight, 3),
            source=item.signal.source,
            reason=_reason(item.signal, made.words),
            file=item.signal.file,
        )
        for item in strongest[:EVIDENCE_SHOWN]
    ]
    evidence += [
        Evidence(
            kind="case",
            quote=made.verdict.entries[hit.entry_id].title.get(made.words.language),
            line=0,
            weight=round(made.verdict.votes.get(scored.cause, 0.0), 3),
            source=hit.entry_id,
            reason=made.words("evidence.case", case=hit.entry_id),
        )
        for hit in cases[:1]
    ]
    return tuple(evidence)


def _quote(signal: Signal, made: _Rendering) -> str:
    """The literal quote; a case is quoted by its title in the language of the answer."""
    if signal.kind == "case":
        return made.verdict.entries[signal.source].title.get(made.words.language)
    return signal.quote


def _reason(signal: Signal, words: Words) -> str:
    if signal.kind == "reader":
        return words("evidence.reader" if signal.quote else "evidence.reader_rest")
    if signal.means is None:
        return words("evidence.same_project", case=signal.source)
    means = signal.means.get(words.language)
    shown = means if signal.detail else _DETAIL.sub("", means)
    means = shown.replace("{detail}", signal.detail)
    if signal.polarity is Polarity.TROUBLE:
        return means
    return words(f"evidence.{signal.polarity}", means=means)


def _cases_of(cause: str, made: _Rendering) -> list[Hit]:
    return [hit for hit in _similar_hits(made) if _main_cause(hit, made) == cause]


def _similar_hits(made: _Rendering) -> list[Hit]:
    return [hit for hit in made.verdict.hits if hit.score >= MIN_CASE_SCORE]


def _main_cause(hit: Hit, made: _Rendering) -> str:
    causes = made.verdict.entries[hit.entry_id].causes
    return causes[0].id if causes else UNKNOWN


def _fixes(cause: Cause, cases: Sequence[Hit], made: _Rendering) -> list[AnswerFix]:
    """The cause's fixes in order of fit, what fixed a case that matches among them."""
    job, entries = made.job, made.verdict.entries
    own = [
        fix
        for hit in cases[:1]
        if hit.score >= CASE_FIX_SCORE and _same_kind(entries[hit.entry_id], job)
        for fix in order_fixes(entries[hit.entry_id].fixes, job)[:1]
        if fix.status == "confirmed" and not elsewhere(fix.applies_to, job.incident)
    ]
    job = replace(job, proven=frozenset(fix.id for fix in own))
    return [
        replace(answer_fix(fix, made.words), commands=job.commands(fix))
        for fix in order_fixes([*own, *cause.fixes], job)
    ]


def _same_kind(case: Entry, job: Job) -> bool:
    """Whether a case is of a framework of the job and fails in no other stage."""
    known = {case.tags.stage, job.incident.stage} - {"unknown"}
    return len(known) < 2 and bool({*case.tags.frameworks} & job.uses - {*COMMON})


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


def answer_check(check: Check, knowledge: Knowledge, words: Words) -> AnswerCheck:
    """A check with what each outcome means, in one language."""
    outcomes: list[str] = []
    for outcome in check.outcomes:
        for label, ids in (
            ("outcome.supports", outcome.supports),
            ("outcome.refutes", outcome.refutes),
        ):
            titles = [knowledge.cause_by_id[cause].title.get(words.language) for cause in ids]
            if titles:
                observation = outcome.observation.get(words.language)
                outcomes.append(words(label, observation=observation, causes=words.listing(titles)))
    return AnswerCheck(
        command=check.command, tells=check.tells.get(words.language), outcomes=tuple(outcomes)
    )


def _best_check(made: _Rendering) -> AnswerCheck | None:
    """The check that tells the leading causes apart; who gets no cause gets a question at least."""
    leading = made.verdict.ranking.causes[:WEIGHED_CAUSES]
    checks = [check for scored in leading[:2] for check in _checks_here(scored.cause, made)]
    best = best_check(checks, {scored.cause: scored.probability for scored in leading})
    if best is None and made.verdict.status == UNKNOWN:
        best = next(iter(_checks_here(UNKNOWN, made)), None)
    return answer_check(best, made.knowledge, made.words) if best else None


def _checks_here(cause: str, made: _Rendering) -> list[Check]:
    known = made.knowledge.cause_by_id.get(cause)
    fitting = fitting_checks(known, made.incident, made.provided) if known else []
    return [check for check in fitting if not elsewhere(check.applies_to, made.incident)]


def _next_steps(made: _Rendering) -> tuple[NextStep, ...]:
    """What to collect: for the leading cause, then what always helps, valid for the version.

    Of several ways to the same evidence the first; nothing the input holds already.
    """
    incident = made.incident
    order = [UNKNOWN] if made.verdict.status != "diagnosed" else [made.leading.cause, UNKNOWN]
    named = (backend for cue, backend in BACKEND_CUES.items() if cue in made.seen)
    backend = incident.backend or next(named, COMMON_BACKEND)
    steps: dict[str, NextStep] = {}
    for identifier in order:
        cause = made.knowledge.cause_by_id.get(identifier)
        for item in cause.collect if cause else ():
            here = not item.backends or backend in item.backends
            due = (not item.when or shows(item.when, made.seen)) and item.gives not in made.provided
            fits = versions_meet(item.versions, incident.versions) is not False
            if here and due and fits:
                step = NextStep(command=item.command, why=item.why.get(made.words.language))
                steps.setdefault(item.gives or item.command, step)
    return tuple(steps.values())[:NEXT_SHOWN]


def _similar_cases(made: _Rendering) -> tuple[SimilarCase, ...]:
    return tuple(_similar_case(hit, made) for hit in _similar_hits(made)[:SIMILAR_SHOWN])


def _similar_case(hit: Hit, made: _Rendering) -> SimilarCase:
    entry, words, incident = made.verdict.entries[hit.entry_id], made.words, made.incident
    cause = _main_cause(hit, made)
    tags = entry.tags
    why = list(hit.why)
    differs: list[str] = []
    if cause == made.leading.cause:
        why.insert(0, words("why.same_cause"))
    elif cause in made.knowledge.cause_by_id:
        title = made.knowledge.cause_by_id[cause].title.get(words.language)
        differs.append(words("differs.cause", title=title))
    hung = {incident.op, *(state.last_op for state in incident.ranks)}
    if shared := [op for op in tags.ops if op in hung]:
        why.append(words("why.same_op", op=words.listing(shared)))
    if "unknown" not in (incident.stage, tags.stage):
        stage = words(f"stage.{tags.stage}")
        if incident.stage == tags.stage:
            why.append(words("why.same_stage", stage=stage))
        else:
            differs.append(words("differs.stage", stage=stage))
    if incident.backend and tags.backend and incident.backend != tags.backend:
        differs.append(words("differs.backend", backend=tags.backend))
    same = sorted(set(incident.frameworks) & set(tags.frameworks))
    if same:
        why.append(words("why.same_framework", frameworks=words.listing(same)))
    # nearly all have the same backend: told where nothing else is
    if len(why) == len(hit.why) and incident.backend and incident.backend == tags.backend:
        why.append(words("why.same_backend", backend=tags.backend))
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
