"""Which fixes to show first: those that fit the incident, then the cheap and safe ones."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from kb.diagnose.evidence_provided import seen_any
from kb.knowledge.framework_names import FrameworkNames
from kb.knowledge.versions import versions_meet
from kb.types.incident import Incident
from kb.types.knowledge import AppliesTo, Fix

COST = {"low": 0.0, "medium": 0.25, "high": 0.5}
RISK = {"low": 0.0, "medium": 0.25, "high": 0.5}
STANDING = {"confirmed": 0.25, "reported": 0.125, "unverified": 0.0, "contradicted": -10.0}
FITS = 2.0  # the framework or stage was seen: worth more than any difference in cost
GENERAL = 1.0  # applies everywhere
NAMED = 2.5  # made for the very error that came first
SIGNED = 2.5  # made for a sign that was seen, an error or a person's words
PROVEN = 3.0  # helped in a case that matches: a report likes it as well as others, and it is first
ASSUMED = 0.9  # for what nearly every job runs on, though nothing names it
UNSEEN = -1.0  # for a framework the input does not name
UNSTAGED = -0.25  # for a stage, and nothing says where the job was
UNSIGNED = -1.0  # made for signs none of which was seen
EXCLUDED = -10.0  # for another backend or version than the one seen
COMMON = ("pytorch", "ddp")  # frameworks hardly a log names, for nearly every job runs on them
COMMON_BACKEND = "nccl"  # what a log that names no backend is about
_WORDS = re.compile(r"[a-z0-9]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What fixes are held against.

    Attributes:
        incident: what was read.
        seen: names of what was seen, the person's words included.
        uses: what the job uses, as data/framework_names.yaml names it.
        likeness: points of likeness to what was reported, by the id of the fix.
        proven: ids of fixes that helped in a case that matches.
        names: finds such names in commands; None: no command is for something else.
    """

    incident: Incident
    seen: Collection[str] = ()
    uses: frozenset[str] = frozenset()
    likeness: Mapping[str, float] = field(default_factory=dict)
    proven: frozenset[str] = frozenset()
    names: FrameworkNames | None = None

    def foreign(self, fix: Fix) -> bool:
        """Whether a fix is for another framework, launcher or device than those named."""
        if fix.commands and not self.commands(fix):
            return True
        made_for = frozenset(fix.applies_to.frameworks)
        if self.names is None or not made_for or made_for & self.uses:
            return False
        bases = self.names.of_group(self.uses, "base") - {COMMON[0]}
        engines = self.names.of_group(self.uses, "engine")
        if made_for & {*COMMON} and (not bases or COMMON[0] in self.uses):
            return False
        if self.names.of_group(made_for, "engine") and not engines and not bases:
            return False  # nobody says what it runs on
        return bool(bases or engines or self.names.of_group(self.uses, None))

    def commands(self, fix: Fix) -> tuple[str, ...]:
        """The commands of a fix that are for the job's framework, launcher and device."""
        names = self.names
        if names is None:
            return fix.commands
        return tuple(item for item in fix.commands if not names.foreign(item, self.uses))


def order_fixes(fixes: Sequence[Fix], job: Job) -> list[Fix]:
    """The fixes that can apply to a job, best fitting first, ties by id."""
    scored = [(fix_score(fix, job), fix) for fix in fixes if not job.foreign(fix)]
    fitting = [(score, fix) for score, fix in scored if score > EXCLUDED / 2]
    fitting.sort(key=lambda pair: (-pair[0], pair[1].id))
    return here_first([fix for _, fix in fitting], job)


def here_first(fixes: Sequence[Fix], job: Job) -> list[Fix]:
    """The fixes in their order, those made for what nothing here speaks of behind the others."""
    return sorted(fixes, key=lambda fix: _for_other(fix, job))


def _for_other(fix: Fix, job: Job) -> bool:
    made_for = frozenset(fix.applies_to.frameworks)
    if job.names and job.names.of_group(made_for, "engine") and seen_any(fix.signs, job.seen):
        return False  # what it runs on is not said, what it is about is
    return elsewhere(fix.applies_to, job.incident)


def fix_score(fix: Fix, job: Job) -> float:
    """How well a fix fits: higher is better; below EXCLUDED / 2 it cannot apply."""
    signed = (SIGNED if seen_any(fix.signs, job.seen) else UNSIGNED) if fix.signs else 0.0
    named = max(NAMED * _names_error(fix, job.incident), signed) or signed
    easy = STANDING[fix.status] - COST[fix.cost] - RISK[fix.risk]
    proven = PROVEN if fix.id in job.proven else 0.0
    like = job.likeness.get(fix.id, 0.0)
    return fit(fix.applies_to, job.incident) + named + proven + easy + like


def _names_error(fix: Fix, incident: Incident) -> float:
    """Share of the first error's words in the fix's id (``cuda_oom`` in ``…/cuda-oom``); or 0.

    Half of the words is no match: ``host-oom`` is another error than ``cuda_oom``.
    """
    if incident.first_error is None:
        return 0.0
    seen = {word for word in _WORDS.findall(incident.first_error.kind.lower()) if word != "error"}
    share = len(seen & set(_WORDS.findall(fix.id.partition("/")[2]))) / max(len(seen), 1)
    return share if share > 0.5 else 0.0


def fit(applies: AppliesTo, incident: Incident) -> float:
    """How well a scope fits the incident."""
    if applies.backends and incident.backend and incident.backend not in applies.backends:
        return EXCLUDED
    if versions_meet(applies.versions, incident.versions) is False:
        return EXCLUDED
    score = 0.0
    if applies.frameworks:
        score += _named_here(applies.frameworks, incident.frameworks)
    else:
        score += GENERAL
    if applies.stages and incident.stage == "unknown":
        score += UNSTAGED
    elif applies.stages:
        score += FITS / 4 if incident.stage in applies.stages else UNSEEN
    return score


def _named_here(made_for: Collection[str], seen: Collection[str]) -> float:
    if {*made_for} & {*seen} - {*COMMON}:
        return FITS
    return ASSUMED if {*made_for} & {*COMMON} else UNSEEN


def elsewhere(applies: AppliesTo, incident: Incident) -> bool:
    """Whether something is made for a framework or backend that nothing here speaks of.

    `fit` lets such things pass where the log does not say what it ran on; a person should not be
    asked about HCCL's heartbeat on a machine nobody called an Ascend.
    """
    frameworks, backends = set(applies.frameworks), set(applies.backends)
    seen = {*incident.frameworks, *COMMON}
    wrong_backend = bool(backends) and not backends & {incident.backend or COMMON_BACKEND}
    return wrong_backend or (bool(frameworks) and not frameworks & seen)
