"""The word lists of `data/ingest/`: checked on loading, their expressions compiled once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kb.errors import DataError
from kb.knowledge import read_yaml

FOLDER = "ingest"


@dataclass(frozen=True, slots=True, kw_only=True)
class FurnitureWords:
    """`furniture.yaml`: what sites put around an article."""

    ends: tuple[str, ...]
    lines: tuple[str, ...]
    patterns: tuple[str, ...]
    languages: tuple[str, ...]
    attributes: tuple[str, ...]
    containers: tuple[str, ...]
    title_suffixes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionWords:
    """One item of `sections.yaml`: a role and the expressions that find it in a title."""

    role: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """A tag and the expressions that stand for it; its id always does."""

    id: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VocabularyWords:
    """`vocabulary.yaml`: the names behind the tags."""

    frameworks: tuple[Name, ...]
    backends: tuple[Name, ...]
    hardware: tuple[Name, ...]
    ops: tuple[Name, ...]
    stages: tuple[Name, ...]
    versions: tuple[Name, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CueWords:
    """One item of `cause_cues.yaml`: how write-ups name a cause."""

    cause: str
    strong: tuple[str, ...]
    weak: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SignWords:
    """`signs.yaml`: how lines of output, code and bylines look."""

    log_lines: tuple[str, ...]
    code_lines: tuple[str, ...]
    bylines: tuple[str, ...]
    contents: tuple[str, ...]
    solved: tuple[str, ...]
    unsolved: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cue:
    """Compiled cues of a cause; `weak` is None where there are none."""

    cause: str
    strong: re.Pattern[str]
    weak: re.Pattern[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Furniture:
    """Compiled `furniture.yaml`; words are lower case."""

    ends: tuple[str, ...]
    lines: frozenset[str]
    pattern: re.Pattern[str]
    languages: frozenset[str]
    card_tail: re.Pattern[str]
    attributes: frozenset[str]
    containers: frozenset[str]
    title_suffix: re.Pattern[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class WordLists:
    """All word lists, ready to match. Names keep the order of their files."""

    furniture: Furniture
    roles: tuple[tuple[str, re.Pattern[str]], ...]
    frameworks: tuple[tuple[str, re.Pattern[str]], ...]
    backends: tuple[tuple[str, re.Pattern[str]], ...]
    hardware: tuple[tuple[str, re.Pattern[str]], ...]
    ops: tuple[tuple[str, re.Pattern[str]], ...]
    stages: tuple[tuple[str, re.Pattern[str]], ...]
    versions: tuple[tuple[str, re.Pattern[str]], ...]
    cues: tuple[Cue, ...]
    log_line: re.Pattern[str]
    code_line: re.Pattern[str]
    bylines: tuple[re.Pattern[str], ...]
    contents: frozenset[str]
    solved: re.Pattern[str]
    unsolved: re.Pattern[str]


def word_lists(data: Path) -> WordLists:
    """The word lists of `data`, compiled once a process for as long as the files stay the same.

    Compiling takes half a second, adding a log a tenth of that.

    Raises:
        DataError: see `load_word_lists`.
    """
    files = sorted((data / FOLDER).glob("*.yaml"))
    stamps = tuple((status.st_mtime_ns, status.st_size) for status in map(Path.stat, files))
    return _loaded(data, stamps)


@lru_cache(maxsize=1)
def _loaded(data: Path, _stamps: tuple[tuple[int, int], ...]) -> WordLists:
    return load_word_lists(data)


def load_word_lists(data: Path) -> WordLists:
    """Read and compile `data/ingest/*.yaml`.

    Raises:
        DataError: a file is missing, breaks its schema, or an expression does not compile.
    """
    folder = data / FOLDER
    vocabulary = read_yaml(folder / "vocabulary.yaml", VocabularyWords)
    signs = read_yaml(folder / "signs.yaml", SignWords)
    return WordLists(
        furniture=_furniture(read_yaml(folder / "furniture.yaml", FurnitureWords)),
        roles=tuple(
            (item.role, _any(item.words, "sections.yaml"))
            for item in read_yaml(folder / "sections.yaml", tuple[SectionWords, ...])
        ),
        frameworks=_names(vocabulary.frameworks),
        backends=_names(vocabulary.backends),
        hardware=_names(vocabulary.hardware),
        ops=_names(vocabulary.ops),
        stages=_names(vocabulary.stages),
        versions=_versions(vocabulary.versions),
        cues=tuple(
            Cue(
                cause=item.cause,
                strong=_any(item.strong, "cause_cues.yaml"),
                weak=_any(item.weak, "cause_cues.yaml") if item.weak else None,
            )
            for item in read_yaml(folder / "cause_cues.yaml", tuple[CueWords, ...])
        ),
        log_line=_any(signs.log_lines, "signs.yaml", flags=0),
        code_line=_any(signs.code_lines, "signs.yaml", flags=0),
        bylines=tuple(_any((word,), "signs.yaml", flags=0) for word in signs.bylines),
        contents=frozenset(signs.contents),
        solved=_any(signs.solved, "signs.yaml"),
        unsolved=_any(signs.unsolved, "signs.yaml"),
    )


def _any(words: Iterable[str], name: str, *, flags: int = re.IGNORECASE) -> re.Pattern[str]:
    """One expression that finds any of `words`."""
    try:
        return re.compile("|".join(f"(?:{word})" for word in words), flags)
    except re.error as error:
        raise DataError(f"data/{FOLDER}/{name}: {error}", todo="correct the expression") from error


def _names(names: Iterable[Name]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Each name's expression, bounded by what is not an ASCII letter or digit."""
    return tuple(
        (
            name.id,
            _any(
                (rf"(?<![A-Za-z0-9])(?:{word})(?![A-Za-z0-9])" for word in _spellings(name)),
                "vocabulary.yaml",
            ),
        )
        for name in names
    )


def _versions(names: Iterable[Name]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Each package's expression with the version number after its name as group ``version``."""
    compiled = []
    for name in names:
        either = "|".join(_spellings(name))
        expression = (
            rf"(?<![A-Za-z0-9_.+-])(?:{either})(?:[ _-]?(?:version|ver|版本))?(?: is|为|[::=])?"
            r"\s{0,3}[=::~v]{0,2}\s?[vV]?(?P<version>\d{1,4}(?:\.\d{1,4}){1,3}"
            r"(?:[-+._]?(?:post|rc|dev|cu|rocm|a|b)\d[\w.]{0,12})?)"
        )
        compiled.append((name.id, _any((expression,), "vocabulary.yaml")))
    return tuple(compiled)


def _spellings(name: Name) -> tuple[str, ...]:
    return (re.sub(r"\\?[-_]", "[-_]", re.escape(name.id)), *name.words)


def _furniture(words: FurnitureWords) -> Furniture:
    named = sorted(words.languages, key=lambda word: (-len(word), word))
    languages = "|".join(re.escape(word) for word in named)
    return Furniture(
        ends=tuple(word.lower() for word in words.ends),
        lines=frozenset(word.lower() for word in words.lines),
        pattern=_any(words.patterns, "furniture.yaml"),
        languages=frozenset(words.languages),
        # "…description.Python012": a card whose parts a flattened page ran together
        card_tail=re.compile(
            rf".{{4,}}(?:(?<![A-Za-z0-9_ =/-])(?:{languages})\d{{2,4}}"
            r"|(?:[。!?)]|暂无简介)\d{2,3})$"
        ),
        attributes=frozenset(words.attributes),
        containers=frozenset(words.containers),
        title_suffix=_any(words.title_suffixes, "furniture.yaml"),
    )
