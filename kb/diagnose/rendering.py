"""The answer: a verdict put into words, with fixes, checks, warnings and similar cases."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from kb.diagnose import wording
from kb.diagnose.checks import LEADING, best_check, fitting_checks
from kb.diagnose.evidence_model import ScoredCause
from kb.diagnose.evidence_provided import evidence_provided, shows
from kb.diagnose.first_step import first_step
from kb.diagnose.fixes import (
    COMMON,
    COMMON_BACKEND,
    Job,
    elsewhere,
    order_fixes,
)
from kb.diagnose.headline import headline
from kb.diagnose.launchers import JobCommands, job_commands
from kb.diagnose.learned import TERM
from kb.diagnose.likeness import ALIKE, compare, likeness
from kb.diagnose.met_before import met_before, stands_out, what_helped
from kb.diagnose.notices import notices_of
from kb.diagnose.same_project import SAME_PROJECT
from kb.diagnose.signals import Signal
from kb.diagnose.verdict import SIMILAR_SHOWN, Verdict
from kb.knowledge.framework_names import framework_names
from kb.knowledge.labels import Words
from kb.knowledge.load import Knowledge
from kb.knowledge.site import is_of_site
from kb.knowledge.versions import versions_meet
from kb.settings_check import report_settings
from kb.types.answer import (
    AnswerCheck,
    AnswerCulprit,
    AnswerFix,
    AnswerIncident,
    AnswerMoment,
    AnswerRunbook,
    Diagnosis,
    Evidence,
    LikelyCause,
    MetBefore,
    NextStep,
    RankedCause,
    ReaderOpinion,
    SecondReading,
    SimilarCase,
)
from kb.types.entries import Entry, Hit
from kb.types.incident import Incident
from kb.types.knowledge import Cause, Check, Collect, Fix
from kb.types.vocabulary import DIAGNOSIS_SCHEMA, UNKNOWN, Language, Origin, Polarity, ReaderName

EVIDENCE_SHOWN = 6
MIN_WEIGHT = 0.1  # nats; weaker evidence explains nothing
CHECKS_SHOWN = 3
NEXT_SHOWN = 3
MISSING_SHOWN = 2  # of these, so that the leading cause has one
CASES_A_CAUSE = 3
READER_CAUSES = 3  # of what each reader alone would say
CASE_FIX_SCORE = 0.5  # above this the case's own fix is listed
HELPED = ("confirmed", "reported")  # somebody says that a fix did
# Words that name what a job runs on, where no log does.
BACKEND_CUES = {"cue:cue-ascend": "hccl", "cue:cue-rccl": "rccl"}
LIKELY_VERDICT = "verdict:likely"  # a name of `when`, beside those of what was seen
_OUTCOME_LABELS = {  # by whether it supports causes, and whether it speaks against some
    (True, False): "outcome.supports",
    (False, True): "outcome.refutes",
    (True, True): "outcome.both",
}
_RANKS = re.compile(r"(?<=\brank )[0-9]+(?:,[0-9]+){2,}\b")  # of a fact's detail: ``0,1,2,3``
_DETAIL = re.compile(r" ?[(（]\{detail\}[)）]")


@dataclass(frozen=True, kw_only=True)
class _Rendering:
    """What the parts of one answer are made of.

    `provided` are the ids of data/input_evidence.yaml for the evidence the input holds, `commands`
    how it is got, and how checks are done, with what started the job, `probabilities` those of all
    causes, `job` what fixes are held against, `met` the same incident met before.
    """

    verdict: Verdict
    knowledge: Knowledge
    words: Words
    provided: frozenset[str]
    commands: JobCommands
    probabilities: Mapping[str, float]
    job: Job
    met: MetBefore | None = None

    @property
    def incident(self) -> Incident:
        """The verdict's incident."""
        return self.verdict.reading.incident

    @cached_property
    def seen(self) -> frozenset[str]:
        """The names of all that was seen, and whether the verdict is a likely cause."""
        likely = self.verdict.status == "diagnosed" and wording.is_likely(self.leading.probability)
        return self.verdict.seen | ({LIKELY_VERDICT} if likely else set())

    @property
    def leading(self) -> ScoredCause:
        """The likeliest cause."""
        return self.verdict.ranking.causes[0]

    @cached_property
    def similar(self) -> list[tuple[Hit, float]]:
        """The hits that are likely enough to be alike, most alike first, ties by id."""
        scored = [(hit, self._likeness(hit)) for hit in self.verdict.hits]
        alike = [(hit, score) for hit, score in scored if score >= ALIKE]
        return sorted(alike, key=lambda pair: (-pair[1], pair[0].entry_id))

    def _likeness(self, hit: Hit) -> float:
        return likeness(hit.score, self.probabilities.get(self.main_cause(hit), 0.0))

    def main_cause(self, hit: Hit) -> str:
        """The first cause of a hit's entry."""
        causes = self.verdict.entries[hit.entry_id].causes
        return causes[0].id if causes else UNKNOWN


def render(
    verdict: Verdict,
    knowledge: Knowledge,
    *,
    language: Language,
    top: int,
    today: dt.date | None = None,
) -> Diagnosis:
    """The verdict as a Diagnosis with the `top` likeliest causes, in one language.

    `today` chooses the team's notices; without it only those that are always shown are.
    """
    reading, words = verdict.reading, Words(knowledge.labels, language)
    made = _Rendering(
        verdict=verdict,
        knowledge=knowledge,
        words=words,
        provided=evidence_provided(reading, knowledge.input_evidence),
        commands=job_commands(knowledge.launchers, reading, verdict.seen),
        probabilities={scored.cause: scored.probability for scored in verdict.ranking.causes},
        job=_job(verdict, knowledge, verdict.seen),
        met=met_before(
            verdict,
            knowledge.event_by_id,
            {cause.id: cause.title.get(language) for cause in knowledge.causes},
            words,
        ),
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
        cases=_similar_cases(made),
        warnings=settings.warnings,
        next=steps,
        best_check=check,
        took_ms=0.0,
        redactions=reading.redactions,
        setting_notes=settings.notes,
        settings_in_order=settings.in_order,
        second_reader=_second_reading(made),
        readers=_readers(made) if says else (),
        headline=headline(verdict, knowledge, words),
        first_fix=first_step(verdict.status, next(iter(causes), None), check, steps, made.met),
        met_before=made.met,
        notices=notices_of(
            reading,
            [cause.id for cause in causes],
            knowledge,
            words,
            today,
            is_searched=verdict.is_searched,
        ),
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
    is_likely = wording.is_likely(scored.probability)
    return RankedCause(
        id=cause.id,
        title=cause.title.get(words.language),
        probability=round(scored.probability, 4),
        band=wording.band(scored.probability),
        evidence=_evidence(scored, cases, made),
        fixes=tuple(_fixes(cause, cases, made)),
        checks=tuple(
            answer_check(check, made.knowledge, words)
            for check in _open_checks(cause, made)[:CHECKS_SHOWN]
        ),
        restart=cause.restart if is_likely else "unknown",
        restart_reason=cause.restart_reason.get(words.language) if is_likely else "",
        cases=tuple(hit.entry_id for hit in cases[:CASES_A_CAUSE]),
        runbooks=answer_runbooks(cause, words),
    )


def answer_runbooks(cause: Cause, words: Words) -> tuple[AnswerRunbook, ...]:
    """The team's pages about a cause, in one language."""
    return tuple(
        AnswerRunbook(title=page.title.get(words.language), url=page.url) for page in cause.runbooks
    )


def _evidence(scored: ScoredCause, cases: Sequence[Hit], made: _Rendering) -> tuple[Evidence, ...]:
    contributions = [
        item
        for item in scored.contributions
        if abs(item.weight) >= MIN_WEIGHT
        # a case speaks for its own cause; what else was learned of it would not be true of it
        and (item.signal.kind != "case" or scored.cause in item.signal.weights)
    ]
    strongest = sorted(contributions, key=lambda item: (-abs(item.weight), item.signal.name))
    evidence = [
        Evidence(
            kind=item.signal.kind,
            quote=_quote(item.signal, made),
            line=item.signal.line,
            weight=round(item.weight, 3),
            source=item.signal.source,
            reason=_reason(item.signal, made),
            file=item.signal.file,
            origin=_origin(item.signal, made.knowledge),
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
            reason=_case_reason("evidence.case", "evidence.own", hit.entry_id, made),
        )
        for hit in cases[:1]
    ]
    return tuple(evidence)


def _origin(signal: Signal, knowledge: Knowledge) -> Origin:
    """Whose pattern or word saw it."""
    if signal.name.startswith(TERM):
        return "site"
    pattern = knowledge.pattern_by_id.get(signal.reason_id) if signal.kind == "log" else None
    return pattern.origin if pattern is not None else ""


def _quote(signal: Signal, made: _Rendering) -> str:
    """The literal quote; a case is quoted by its title in the language of the answer."""
    if signal.kind == "case":
        return made.verdict.entries[signal.source].title.get(made.words.language)
    return signal.quote


def _case_reason(label: str, own: str, entry_id: str, made: _Rendering) -> str:
    """Why an entry speaks for a cause; a team's own incident is called so."""
    is_own = made.verdict.entries[entry_id].kind == "incident"
    return made.words(own if is_own else label, case=entry_id)


def _reason(signal: Signal, made: _Rendering) -> str:
    words = made.words
    if signal.kind == "reader":
        return words("evidence.reader" if signal.quote else "evidence.reader_rest")
    if signal.means is None:
        label = "evidence.near_case" if signal.name == SAME_PROJECT else "evidence.same_project"
        return _case_reason(label, "evidence.own_error", signal.source, made)
    means = signal.means.get(words.language)
    shown = means if signal.detail else _DETAIL.sub("", means)
    detail = _RANKS.sub(lambda ranks: _span(ranks[0]), signal.detail)
    means = shown.replace("{detail}", detail)
    if signal.polarity is Polarity.TROUBLE:
        return means
    return words(f"evidence.{signal.polarity}", means=means)


def _span(ranks: str) -> str:
    return wording.rank_span(int(rank) for rank in ranks.split(","))


def _cases_of(cause: str, made: _Rendering) -> list[Hit]:
    return [hit for hit, _ in made.similar if made.main_cause(hit) == cause]


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
    ordered = order_fixes([*own, *cause.fixes], job)
    ordered.sort(key=lambda fix: not fix.origin)  # the team's own first
    if helped := _helped_then(cause, made):
        ordered = [helped, *(fix for fix in ordered if fix.id != helped.id)]
    return [answer_fix(fix, made.words, job.commands(fix)) for fix in ordered]


def _helped_then(cause: Cause, made: _Rendering) -> Fix | None:
    """What ended the same incident, unless it names another framework than the job's.

    Of an entry that is not the team's only where its text stands far out, its framework is named
    and somebody says that it helped: else what often helps is likelier to.
    """
    met, job = made.met, made.job
    if met is None or met.cause != cause.id:
        return None
    hits = made.verdict.hits
    if met.kind != "incident" and not any(
        hit.entry_id == met.entry and stands_out(hit, hits) for hit in hits
    ):
        return None
    entry = made.verdict.entries[met.entry]
    fix = what_helped(entry, made.incident)
    if fix is None or not order_fixes([fix], job):
        return None
    is_same_kind = fix.status in HELPED and _same_kind(entry, job)
    if met.kind != "incident" and not is_same_kind:
        return None
    own_framework = {*entry.tags.frameworks} & job.uses - {*COMMON}
    return fix if own_framework or not _names_another_framework(fix, job) else None


def _names_another_framework(fix: Fix, job: Job) -> bool:
    """Whether the words or commands of a fix name frameworks, and none that the job names."""
    if job.names is None:
        return False
    named = job.names.named("\n".join((fix.title.zh, fix.title.en, *fix.commands)))
    there, here = (
        job.names.of_group(names - {*COMMON}, "engine") | job.names.of_group(names, None)
        for names in (named, job.uses)
    )
    return bool(there and here and not there & here)


def _same_kind(case: Entry, job: Job) -> bool:
    """Whether a case is of a framework of the job and fails in no other stage."""
    known = {case.tags.stage, job.incident.stage} - {"unknown"}
    return len(known) < 2 and bool({*case.tags.frameworks} & job.uses - {*COMMON})


def answer_fix(fix: Fix, words: Words, commands: tuple[str, ...] | None = None) -> AnswerFix:
    """A fix in one language, with where it applies in words; `commands` are those of a job."""
    return AnswerFix(
        id=fix.id,
        title=fix.title.get(words.language),
        steps=tuple(step.get(words.language) for step in fix.steps),
        commands=fix.commands if commands is None else commands,
        status=fix.status,
        applies_to=wording.scope(words, fix.applies_to),
        caution=fix.caution.get(words.language) if fix.caution else "",
        sources=fix.sources,
        origin=fix.origin,
    )


def answer_check(check: Check, knowledge: Knowledge, words: Words) -> AnswerCheck:
    """A check with what each outcome means, in one language."""

    def titles(ids: Sequence[str]) -> str:
        return words.listing(
            knowledge.cause_by_id[cause].title.get(words.language) for cause in ids
        )

    outcomes = tuple(
        words(
            _OUTCOME_LABELS[bool(outcome.supports), bool(outcome.refutes)],
            observation=outcome.observation.get(words.language),
            causes=titles(outcome.supports or outcome.refutes),
            others=titles(outcome.refutes),
        )
        for outcome in check.outcomes
        if outcome.supports or outcome.refutes
    )
    return AnswerCheck(
        command=check.command, tells=check.tells.get(words.language), outcomes=outcomes
    )


def _best_check(made: _Rendering) -> AnswerCheck | None:
    """The check that tells the leading causes apart; who gets no cause gets a question at least."""
    ranked = made.verdict.ranking.causes
    checks = [check for scored in ranked[:LEADING] for check in _checks_here(scored.cause, made)]
    best = best_check(checks, {scored.cause: scored.probability for scored in ranked})
    if best is None and made.verdict.status == UNKNOWN:
        best = next(iter(_checks_here(UNKNOWN, made)), None)
    return answer_check(best, made.knowledge, made.words) if best else None


def _checks_here(cause: str, made: _Rendering) -> list[Check]:
    known = made.knowledge.cause_by_id.get(cause)
    fitting = _open_checks(known, made) if known else []
    return [check for check in fitting if not elsewhere(check.applies_to, made.incident)]


def _open_checks(cause: Cause, made: _Rendering) -> list[Check]:
    """The checks of a cause that nothing answers yet, with the commands of the job's launcher."""
    fitting = fitting_checks(cause, made.incident, made.provided, made.seen)
    return made.commands.checks(fitting)


def _next_steps(made: _Rendering) -> tuple[NextStep, ...]:
    """What to collect: what is missing in this input, then what the leading cause needs.

    What always helps comes last, and only where no cause is likely. Of several ways to the same
    evidence the first that is valid for the version; nothing the input holds already.
    """
    missing = [item for item in made.knowledge.missing_evidence if _is_due(item, made)]
    order = [made.leading.cause] if made.verdict.status == "diagnosed" else []
    if LIKELY_VERDICT not in made.seen:
        order.append(UNKNOWN)
    known = filter(None, map(made.knowledge.cause_by_id.get, order))
    needed = [item for cause in known for item in cause.collect if _is_due(item, made)]
    steps: dict[str, NextStep] = {}
    for item in [*missing[:MISSING_SHOWN], *needed]:
        command = made.commands.get(item.gives, item.command)
        why = wording.fill_ranks(item.why.get(made.words.language), made.incident)
        if command and all(step.command != command for step in steps.values()):
            steps.setdefault(item.gives or command, NextStep(command=command, why=why))
    return tuple(steps.values())[:NEXT_SHOWN]


def _is_due(item: Collect, made: _Rendering) -> bool:
    """Whether evidence is wanted here, can be had on this backend and version, and is not given."""
    incident = made.incident
    named = (backend for cue, backend in BACKEND_CUES.items() if cue in made.seen)
    backend = incident.backend or next(named, COMMON_BACKEND)
    here = not item.backends or backend in item.backends
    wanted = not item.when or shows(item.when, made.seen)
    fits = versions_meet(item.versions, incident.versions) is not False
    return here and wanted and fits and item.gives not in made.provided


def _similar_cases(made: _Rendering) -> tuple[SimilarCase, ...]:
    return tuple(_similar_case(hit, score, made) for hit, score in made.similar[:SIMILAR_SHOWN])


def _similar_case(hit: Hit, score: float, made: _Rendering) -> SimilarCase:
    entry, words, incident = made.verdict.entries[hit.entry_id], made.words, made.incident
    cause = made.main_cause(hit)
    why, differs = compare(incident, entry, words)
    why = [*hit.why, *why]
    if made.verdict.status == "no_timeout":
        pass  # no cause is named to compare with
    elif cause == made.leading.cause:
        why.insert(0, words("why.same_cause"))
    elif cause in made.knowledge.cause_by_id:
        title = made.knowledge.cause_by_id[cause].title.get(words.language)
        differs.insert(0, words("differs.cause", title=title))
    # nearly all have the same backend: told where nothing else is
    if len(why) == len(hit.why) and incident.backend and incident.backend == entry.tags.backend:
        why.append(words("why.same_backend", backend=entry.tags.backend))
    return SimilarCase(
        id=entry.id,
        project=entry.project,
        title=entry.title.get(words.language),
        score=round(score, 3),
        cause=cause,
        url=entry.url,
        status=entry.status,
        why=tuple(why),
        differs=tuple(differs),
        kind=entry.kind,
        origin="site" if is_of_site(entry) else "",
    )
