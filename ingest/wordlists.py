"""The word lists of `data/ingest/`: checked on loading, their expressions compiled once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

from kb.errors import DataError
from kb.knowledge.framework_names import name_expression, spellings
from kb.knowledge.load import read_yaml
from kb.text.expression_filter import ExpressionFilter
from kb.text.linear_expression import linear_expression
from kb.types.knowledge import Bilingual, FrameworkName

FOLDER = "ingest"


Expression = re.Pattern[str]  # in YAML a list of expressions, any of which may match


@dataclass(frozen=True, slots=True, kw_only=True)
class Furniture:
    """`furniture.yaml`: what sites put around an article, in lower case."""

    ends: tuple[str, ...]
    lines: frozenset[str]
    patterns: tuple[str, ...]
    languages: frozenset[str]
    attributes: frozenset[str]
    containers: frozenset[str]
    title_suffixes: Expression

    def __post_init__(self) -> None:
        """Refuse expressions that do not compile."""
        try:
            self.fits("")
        except DataError as error:
            raise ValueError(error.what) from error

    def fits(self, line: str) -> bool:
        """Whether a whole line is one of `patterns`; `re` may try all ways to reach its end."""
        words = "|".join(f"(?:{word})" for word in self.patterns)
        return linear_expression(words, ignore_case=True).fullmatch(line) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionTitles:
    """One item of `sections.yaml`: a role and what names it in a title."""

    role: str
    words: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class TagWords:
    """A tag of `vocabulary.yaml` and the expressions that stand for it; its id always does."""

    id: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VocabularyWords:
    """`vocabulary.yaml`: the names behind the tags."""

    backends: tuple[TagWords, ...]
    hardware: tuple[TagWords, ...]
    ops: tuple[TagWords, ...]
    stages: tuple[TagWords, ...]
    versions: tuple[TagWords, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseCues:
    """One item of `cause_cues.yaml`: how write-ups name a cause."""

    cause: str
    strong: Expression
    weak: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """`signs.yaml`: how bylines, contents and comments that solve a problem look."""

    bylines: tuple[str, ...]
    contents: frozenset[str]
    solved: Expression
    unsolved: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPhrases:
    """`phrases.yaml`: titles of what has none; ``{what}`` and ``{name}`` are filled in."""

    incident_timeout: Bilingual
    incident_error: Bilingual
    log: Bilingual
    input: Bilingual
    comment: Bilingual


Vocabulary = tuple[tuple[str, Expression], ...]  # tags with what finds them, in the file's order


@dataclass(frozen=True, slots=True, kw_only=True)
class WordLists:
    """All word lists, ready to match. Names keep the order of their files."""

    furniture: Furniture
    sections: tuple[SectionTitles, ...]
    signs: Signs
    phrases: ImportPhrases
    cues: tuple[CauseCues, ...]
    frameworks: Vocabulary
    backends: Vocabulary
    hardware: Vocabulary
    ops: Vocabulary
    stages: Vocabulary
    versions: Vocabulary
    filter: ExpressionFilter | None = None

    def within(self, *texts: str) -> WordLists:
        """The lists with those tags and cues alone that may stand in one of `texts`."""
        if self.filter is None:
            return self
        expressions = self.tag_expressions()
        numbers = self.filter.possible(*texts)
        possible = {id(expressions[number]) for number in numbers}

        def narrow(vocabulary: Vocabulary) -> Vocabulary:
            return tuple(item for item in vocabulary if id(item[1]) in possible)

        return replace(
            self,
            cues=tuple(
                cue for cue in self.cues if id(cue.strong) in possible or id(cue.weak) in possible
            ),
            frameworks=narrow(self.frameworks),
            backends=narrow(self.backends),
            hardware=narrow(self.hardware),
            ops=narrow(self.ops),
            stages=narrow(self.stages),
            versions=narrow(self.versions),
            filter=None,
        )

    def tag_expressions(self) -> list[Expression]:
        """What finds tags and causes, in a fixed order."""
        named = (
            self.frameworks,
            self.backends,
            self.hardware,
            self.ops,
            self.stages,
            self.versions,
        )
        cues = [one for cue in self.cues for one in (cue.strong, cue.weak) if one is not None]
        return [expression for vocabulary in named for _, expression in vocabulary] + cues


@lru_cache(maxsize=1)
def with_filter(words: WordLists, cache: Path) -> WordLists:
    """The same lists, faster on many texts; `cache` is a folder for what is compiled."""
    expressions = [expression.pattern for expression in words.tag_expressions()]
    return replace(words, filter=ExpressionFilter(expressions, cache=cache))


def word_lists(data: Path) -> WordLists:
    """The word lists of `data`, compiled once a process for as long as the files stay the same.

    Compiling takes half a second, adding a log a tenth of that.

    Raises:
        DataError: see `load_word_lists`.
    """
    files = [*sorted((data / FOLDER).glob("*.yaml")), data / "framework_names.yaml"]
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
    tags = read_yaml(folder / "vocabulary.yaml", VocabularyWords)
    frameworks = read_yaml(data / "framework_names.yaml", tuple[FrameworkName, ...])
    read = partial(read_yaml, decode=_compiled)
    return WordLists(
        furniture=read(folder / "furniture.yaml", Furniture),
        sections=read(folder / "sections.yaml", tuple[SectionTitles, ...]),
        signs=read(folder / "signs.yaml", Signs),
        phrases=read(folder / "phrases.yaml", ImportPhrases),
        cues=read(folder / "cause_cues.yaml", tuple[CauseCues, ...]),
        frameworks=_names(name for name in frameworks if name.tag),
        backends=_names(tags.backends),
        hardware=_names(tags.hardware),
        ops=_names(tags.ops),
        stages=_names(tags.stages),
        versions=_versions(tags.versions),
    )


def _compiled(_kind: type, words: Iterable[str]) -> Expression:
    try:
        return _any(words)
    except re.error as error:
        raise ValueError(error) from error


def _any(words: Iterable[str]) -> Expression:
    """One expression that finds any of `words`, whatever their case."""
    return re.compile("|".join(f"(?:{word})" for word in words), re.IGNORECASE)


def _names(tags: Iterable[TagWords | FrameworkName]) -> Vocabulary:
    """Each tag's expression, bounded by what is not an ASCII letter or digit."""
    return tuple((tag.id, name_expression(tag.id, tag.words)) for tag in tags)


def _versions(names: Iterable[TagWords]) -> Vocabulary:
    """Each package's expression with the version number after its name as group ``version``."""
    compiled = []
    for name in names:
        either = "|".join(spellings(name.id, name.words))
        expression = (
            rf"(?<![A-Za-z0-9_.+-])(?:{either})(?:[ _-]?(?:version|ver|版本))?(?: is|为|[::=])?"
            r"\s{0,3}[=::~v]{0,2}\s?[vV]?(?P<version>[0-9]{1,4}(?:\.[0-9]{1,4}){1,3}"
            r"(?:[-+._]?(?:post|rc|dev|cu|rocm|a|b)[0-9][\w.]{0,12})?)"
        )
        compiled.append((name.id, _any((expression,))))
    return tuple(compiled)
