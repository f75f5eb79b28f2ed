"""Labelled threads: what a person posted, with the cause a reader of the whole thread saw.

Also near-duplicates among them. The Jaccard index of whole posts is blind here: two posts with the
same watchdog lines share half their words. So runs of words that stand in more than two posts are
boilerplate and do not count; the rest is compared by containment in the shorter post.
Source of shingles and containment: Broder 1997, On the resemblance and containment of documents,
https://doi.org/10.1109/SEQUEN.1997.666900
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from kb.errors import InputError

MIN_QUERY_CHARS = 120  # shorter reports say too little to measure a diagnosis on
SHINGLE = 5  # words; three of them repeat by chance
BOILERPLATE = 3  # posts with the same shingle: then software or habit wrote it
CONTAINED = 0.5  # share of the shorter post: reposts have .55 to .92, the nearest others .36
MIN_SHARED = 5  # shingles: a post of one line repeats by chance
_WORDS = re.compile(r"[a-z_]+|[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledThread:
    """One thread.

    Attributes:
        language: of the post: ``zh``, ``en`` or ``mixed``.
        text: what the user posted: title, words, log.
        measurable: the post says enough and does not tell the cause.
        answer: what the thread ended with: root cause and fix.
        p: an expert's probabilities on reading the post alone, where the thread confirms nothing.
        batch: the first-sight batch it was drawn for, whatever its cause; empty for others.
    """

    id: str
    url: str
    repo: str
    language: str
    text: str
    log: str
    cause: str
    also: tuple[str, ...]
    measurable: bool
    answer: str = ""
    p: Mapping[str, float] = field(default_factory=dict)
    batch: str = ""


class _ThreadLine(msgspec.Struct):
    id: str
    url: str
    repo: str
    title: str
    lang: str
    cause: str
    also: list[str]
    query_text: str | None = ""
    query_log: str | None = ""
    text_leaks_cause: bool | None = False
    root_cause: str = ""
    fix: str = ""
    p: dict[str, float] = {}
    batch: str = ""


def load_threads(path: Path) -> tuple[LabelledThread, ...]:
    """Read labelled threads, one JSON object a line.

    Raises:
        InputError: the file is missing or a line is no such object.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror}", todo="give the path of a threads.jsonl"
        ) from error
    threads = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            threads.append(_thread(msgspec.json.decode(line, type=_ThreadLine)))
        except msgspec.DecodeError as error:
            raise InputError(f"{path}, line {number}: {error}", todo="correct the line") from error
    return tuple(threads)


def _thread(line: _ThreadLine) -> LabelledThread:
    words, log = line.query_text or "", line.query_log or ""
    title = "" if line.title.startswith("[title not") else line.title
    return LabelledThread(
        id=line.id,
        url=line.url,
        repo=line.repo,
        language=line.lang,
        text="\n".join(part for part in (title, words, log) if part),
        log=log,
        cause=line.cause,
        also=tuple(line.also),
        measurable=len(words) + len(log) >= MIN_QUERY_CHARS and not line.text_leaks_cause,
        answer=f"{line.root_cause} {line.fix}",
        p=line.p,
        batch=line.batch,
    )


def near_duplicates(threads: Sequence[LabelledThread]) -> dict[str, tuple[str, ...]]:
    """Ids of the threads that tell the same story, by thread id; only where there are any."""
    holders: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, thread in enumerate(threads):
        for shingle in _shingles(thread.text):
            holders[shingle].append(number)
    rare = Counter[int]()
    shared = Counter[tuple[int, int]]()
    for numbers in holders.values():
        if len(numbers) < BOILERPLATE:
            rare.update(numbers)
            shared.update([(numbers[0], numbers[1])] if len(numbers) > 1 else [])
    alike: dict[str, list[str]] = defaultdict(list)
    for (one, other), count in shared.items():
        if count >= MIN_SHARED and count >= CONTAINED * min(rare[one], rare[other]):
            alike[threads[one].id].append(threads[other].id)
            alike[threads[other].id].append(threads[one].id)
    return {identifier: tuple(sorted(others)) for identifier, others in sorted(alike.items())}


def _shingles(text: str) -> set[tuple[str, ...]]:
    words = _WORDS.findall(text.lower())
    return {tuple(words[at : at + SHINGLE]) for at in range(len(words) - SHINGLE + 1)}


def linked(pairs: Iterable[tuple[str, str]]) -> Mapping[str, str]:
    """The group of every name: names joined by pairs, directly or not, share the smallest."""
    group: dict[str, str] = {}

    def root(name: str) -> str:
        while group.setdefault(name, name) != name:
            name = group[name]
        return name

    for one, other in pairs:
        low, high = sorted((root(one), root(other)))
        group[high] = low
    return {name: root(name) for name in sorted(group)}
