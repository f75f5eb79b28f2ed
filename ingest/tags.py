"""What a text is about: frameworks, backend, ops, stage, hardware, versions, project."""

from __future__ import annotations

import re
from typing import cast, get_args

from ingest.wordlists import WordLists
from kb.types import Incident, Stage, Tags

TITLE_WEIGHT = 3  # mentions in the title count so often: it names the moment of the failure
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
    incident = incident or Incident()
    return Tags(
        frameworks=_merged(incident.frameworks, _found(words.frameworks, both)),
        backend=incident.backend or _backend(words, both),
        ops=_ops(words, both, incident.op),
        stage=_stage(title, text, moment, incident.stage, words),
        hardware=_found(words.hardware, both),
        versions={**versions_of(both, words), **incident.versions},
    )


def _found(names: tuple[tuple[str, re.Pattern[str]], ...], text: str) -> tuple[str, ...]:
    """Names that stand in `text`, in the order of their first mention."""
    places = [(match.start(), name) for name, pattern in names if (match := pattern.search(text))]
    return tuple(name for _, name in sorted(places))


def _merged(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))


def _backend(words: WordLists, text: str) -> str:
    """The backend named most often; ties go to the first of the vocabulary."""
    counts = [(len(pattern.findall(text)), name) for name, pattern in words.backends]
    best = max(count for count, _ in counts)
    return next((name for count, name in counts if count == best), "") if best else ""


def _ops(words: WordLists, text: str, printed: str) -> tuple[str, ...]:
    counts = {name: len(pattern.findall(text)) for name, pattern in words.ops}
    for base, plain in _BASE_FORMS.items():
        # "_ALLGATHER_BASE" also reads as "ALLGATHER": count that one only where it stands alone
        counts[plain] = counts.get(plain, 0) - counts.get(base, 0)
    order = [name for name, _ in words.ops]
    ranked = sorted(
        (name for name in order if counts[name] > 0), key=lambda n: (-counts[n], order.index(n))
    )
    return _merged((printed,) if printed else (), tuple(ranked))[:MAX_OPS]


def _stage(title: str, text: str, moment: str, printed: Stage, words: WordLists) -> Stage:
    said = stage_of(title, moment, words) if moment else "unknown"
    if said not in ("unknown", "train"):
        return said
    if printed != "unknown":
        return printed
    return said if said != "unknown" else stage_of(title, text, words)


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
    found = {}
    for name, pattern in words.versions:
        if match := pattern.search(text):
            found[name] = match["version"].rstrip(".")
    return found


def project_of(title: str, url: str) -> str:
    """``owner/name`` out of a repository's address, else the name a Chinese title starts with."""
    if match := _REPOSITORY.search(url):
        return match[1]
    name = _LEADING_NAME.match(title)
    return name[1] if name else ""
