"""Which fixes to show first: those that fit the incident, then the cheap and safe ones."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from kb.diagnose.evidence_provided import seen_any
from kb.knowledge.versions import versions_meet
from kb.types.incident import Incident
from kb.types.knowledge import AppliesTo, Fix

COST = {"low": 0.0, "medium": 0.5, "high": 1.0}
RISK = {"low": 0.0, "medium": 0.5, "high": 1.0}
STANDING = {"confirmed": 0.5, "reported": 0.25, "unverified": 0.0, "contradicted": -10.0}
FITS = 2.0  # the framework or stage was seen: worth more than any difference in cost
GENERAL = 1.0  # applies everywhere
NAMED = 2.5  # made for the very error that came first
SIGNED = 2.5  # made for a sign that was seen, an error or a person's words
UNSEEN = -1.0  # for a framework the input does not name
EXCLUDED = -10.0  # for another backend or version than the one seen
COMMON = ("pytorch", "ddp")  # frameworks hardly a log names, for nearly every job runs on them
COMMON_BACKEND = "nccl"  # what a log that names no backend is about
_WORDS = re.compile(r"[a-z0-9]+")


def order_fixes(fixes: Sequence[Fix], incident: Incident, seen: Collection[str] = ()) -> list[Fix]:
    """The fixes that can apply to `incident`, best fitting first, ties by id.

    `seen` are the names of what was seen, against which the signs of fixes are held.
    """
    scored = [(fix_score(fix, incident, seen), fix) for fix in fixes]
    fitting = [(score, fix) for score, fix in scored if score > EXCLUDED / 2]
    fitting.sort(key=lambda pair: (-pair[0], pair[1].id))
    return here_first([fix for _, fix in fitting], incident, seen)


def here_first(fixes: Sequence[Fix], incident: Incident, seen: Collection[str] = ()) -> list[Fix]:
    """The fixes in their order, those made for what nothing here speaks of behind the others."""
    return sorted(fixes, key=lambda fix: _made_for_other(fix, incident, seen))


def _made_for_other(fix: Fix, incident: Incident, seen: Collection[str]) -> bool:
    if fix.signs:
        return not seen_any(fix.signs, seen)
    return elsewhere(fix.applies_to, incident)


def fix_score(fix: Fix, incident: Incident, seen: Collection[str] = ()) -> float:
    """How well a fix fits: higher is better; below EXCLUDED / 2 it cannot apply."""
    signed = SIGNED if seen_any(fix.signs, seen) else 0.0
    named = max(NAMED * _names_error(fix, incident), signed)
    easy = STANDING[fix.status] - COST[fix.cost] - RISK[fix.risk]
    return fit(fix.applies_to, incident) + named + easy


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
        score += FITS if set(applies.frameworks) & set(incident.frameworks) else UNSEEN
    else:
        score += GENERAL
    if applies.stages and incident.stage != "unknown":
        score += FITS / 2 if incident.stage in applies.stages else UNSEEN
    return score


def elsewhere(applies: AppliesTo, incident: Incident) -> bool:
    """Whether something is made for a framework or backend that nothing here speaks of.

    `fit` lets such things pass where the log does not say what it ran on; a person should not be
    asked about HCCL's heartbeat on a machine nobody called an Ascend.
    """
    frameworks, backends = set(applies.frameworks), set(applies.backends)
    seen = {*incident.frameworks, *COMMON}
    wrong_backend = bool(backends) and not backends & {incident.backend or COMMON_BACKEND}
    return wrong_backend or (bool(frameworks) and not frameworks & seen)
