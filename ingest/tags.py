"""What a text is about: its tags (frameworks, backend, ops, ...) and the causes it claims."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import cast, get_args

from ingest.wordlists import WordLists
from kb.types.entries import Tags
from kb.types.incident import Incident
from kb.types.vocabulary import Stage

TITLE_WEIGHT = 3  # mentions in the title count so often: it names the moment of the failure
MAX_CAUSES = 5  # a page that names more has listed everything there is
MAX_LOOSE_CAUSES = 2  # without a section on causes only what is named most often is taken
MAX_OPS = 4  # ops kept, in the order of their number of mentions
_STAGES = cast("tuple[Stage, ...]", get_args(Stage))
_REPOSITORY = re.compile(
    r"(?:github|gitee|gitcode|atomgit)\.com/([\w.-]+/[\w.-]+?)(?:\.git)?(?:[/#?]|$)"
)
_LEADING_NAME = re.compile(
    r"^([A-Za-z][A-Za-z0-9_.+-]*[A-Za-z0-9])\s*(?:项目|框架|中|的|分布式|训练|多|在)"
)
_BASE_FORMS = {"_ALLGATHER_BASE": "ALLGATHER", "_REDUCE_SCATTER_BASE": "REDUCE_SCATTER"}


def tags_of(
    title: str,
    text: str,
    words: WordLists,
    incident: Incident | None = None,
    *,
    moment: str = "",
) -> Tags:
    """Tags of a text; what its log says (`incident`) goes before what its words say.

    `moment` is what a person says about when it failed: it goes before the log for the stage.
    """
    both = f"{title}\n{text}"
    words = words.within(both, title, text, moment)
    incident = incident or Incident()
    return Tags(
        frameworks=_merged(incident.frameworks, _named(words.frameworks, both)),
        backend=incident.backend or _backend(words, both),
        ops=_ops(words, both, incident.op),
        stage=_stage(title, text, moment, incident.stage, words),
        hardware=_named(words.hardware, both),
        versions={**versions_of(both, words), **incident.versions},
    )


def _named(names: Iterable[tuple[str, re.Pattern[str]]], text: str) -> tuple[str, ...]:
    """Names that stand in `text`, in the order of their first mention."""
    places = [(match.start(), name) for name, pattern in names if (match := pattern.search(text))]
    return tuple(name for _, name in sorted(places))


def _merged(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))


def _backend(words: WordLists, text: str) -> str:
    """The backend named most often; ties go to the first of the vocabulary."""
    counts = [(len(pattern.findall(text)), name) for name, pattern in words.backends]
    best = max((count for count, _ in counts), default=0)
    return next((name for count, name in counts if count == best), "") if best else ""


def _ops(words: WordLists, text: str, printed: str) -> tuple[str, ...]:
    counts = {name: len(pattern.findall(text)) for name, pattern in words.ops}
    for base, plain in _BASE_FORMS.items():
        # "_ALLGATHER_BASE" also reads as "ALLGATHER": count that one only where it stands alone
        if plain in counts:
            counts[plain] -= counts.get(base, 0)
    order = [name for name, _ in words.ops]
    ranked = sorted(
        (name for name in order if counts[name] > 0), key=lambda n: (-counts[n], order.index(n))
    )
    return _merged((printed,) if printed else (), tuple(ranked))[:MAX_OPS]


def _stage(title: str, text: str, moment: str, printed: Stage, words: WordLists) -> Stage:
    described = stage_of(title, moment, words) if moment else "unknown"
    if described not in ("unknown", "train"):
        return described
    if printed != "unknown":
        return printed
    return described if described != "unknown" else stage_of(title, text, words)


def stage_of(title: str, text: str, words: WordLists) -> Stage:
    """The stage in which it failed, by weighted mentions; ``unknown`` where none is named."""
    best, chosen = 0, "unknown"
    for name, pattern in words.stages:
        score = TITLE_WEIGHT * len(pattern.findall(title)) + len(pattern.findall(text))
        if name == "train":
            score = min(score, 1)  # everything here happens in training; it decides nothing
        if score > best:
            best, chosen = score, name
    return chosen if chosen in _STAGES else "unknown"


def versions_of(text: str, words: WordLists) -> dict[str, str]:
    """Version numbers by package, the first one named of each."""
    versions = {}
    for name, pattern in words.versions:
        if match := pattern.search(text):
            versions[name] = match["version"].rstrip(".")
    return versions


def project_of(title: str, url: str) -> str:
    """``owner/name`` out of a repository's address, else the name a Chinese title starts with."""
    if match := _REPOSITORY.search(url):
        return match[1]
    name = _LEADING_NAME.match(title)
    return name[1] if name else ""


def causes_in(units: Sequence[str], words: WordLists) -> tuple[str, ...]:
    """Cause ids the points of a section on causes name, in the order in which they do.

    A unit's strong cues are taken; its weak ones only when it has no strong one.
    """
    causes: dict[str, None] = {}
    for unit in units:
        cues = words.within(unit).cues
        strong = _named([(cue.cause, cue.strong) for cue in cues], unit)
        weak = _named([(cue.cause, cue.weak) for cue in cues if cue.weak], unit)
        # one weak word is thin ground, so one cause
        causes |= dict.fromkeys(strong or weak[:1])
    return tuple(causes)[:MAX_CAUSES]


def causes_anywhere(text: str, words: WordLists) -> tuple[str, ...]:
    """Cause ids that strong cues name in a text without such a section, most mentions first."""
    counts = {cue.cause: len(cue.strong.findall(text)) for cue in words.within(text).cues}
    named = [cause for cause, count in counts.items() if count]
    return tuple(sorted(named, key=lambda cause: (-counts[cause], cause))[:MAX_LOOSE_CAUSES])
