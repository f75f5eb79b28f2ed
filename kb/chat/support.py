"""Whether a sentence says no more than the evidence it cites.

A sentence is cut into clauses; each must be carried by one cited statement: its figures and names
stand there, most of its words do, and neither a negation nor an opposite turns it round. What a
log says (a quote) lends names and figures, but a clause needs words of the engine beside it: a log
is written by anyone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from kb.chat.figures import PERCENT, TYPED, Figure, FigureReader
from kb.chat.overlap import Bag, meets, reach_of
from kb.chat.types import Citation, CitationKind, Statement
from kb.chat.wordlists import WordLists
from kb.text import normalise, tokens

MIN_COVERAGE = 0.6  # share of a clause's words that the evidence has; see test_grounding.py
BORROWED = 0.6  # worth of a word that only a quote has
MIN_WORDS = 2  # a clause of fewer words of fact is judged with its neighbour
OF_SUBJECTS = frozenset({PERCENT, "rank"})  # kinds a statement often gives of several subjects
ONE_LETTER_OPTION = 2  # characters of "-9"; "-based" is prose
MIN_SAID = 0.6  # of a part of the evidence, to count as said again
MIN_ALIKE = 0.5  # of a part of the evidence, to compare negations with

Lack = Literal[
    "", "command", "url", "name", "figure", "words", "negation", "supposition", "opposite"
]

# Kinds of citations that quote what anybody may have written; the others quote shipped knowledge,
# and so do cases, imported entries aside, whose ids end in a digest.
FOREIGN: frozenset[CitationKind] = frozenset({"line", "text", "rank"})
_IMPORTED = re.compile(r"-[0-9a-f]{16}$")

_MARKED = re.compile(r"[“\"「]([^”\"」]*)[”\"」]")
_URL = re.compile(r"(?:https?://|www\.)[^\s<>\"'，。；、）)\]]+", re.IGNORECASE)
_CODE = re.compile(r"`+([^`]+)`+")
_NAME = re.compile(
    r"(?<![\w./-])(?:[~.]{0,2}/[\w.+-]+(?:/[\w.+-]+)*|--?[A-Za-z][\w-]*(?:=[\w./:,-]+)?"
    r"|[A-Za-z_][\w+]*(?:(?:\.|::|/|-|=|:)[\w+]+)*)",
    re.ASCII,
)
_LINK = re.compile(r"[_=/]|::|\w\.\w|--|\d")
_CAMEL = re.compile(r"[a-z][A-Z]|^[A-Z]{2,}s?$|^[A-Z]+[a-z]+[A-Z]")
_SPOKEN = frozenset({"e.g", "i.e", "vs", "etc", "and/or"})
_SHELL = re.compile(r"&&|\|\||\$\(|\$\{|\|\s*(?:ba)?sh\b|>\s*/|;\s*rm\b|^\s*[$#>]\s")
_CLAUSE = re.compile(
    r"[,:](?!\d)\s*|[;!?。、—]+\s*|\.\s+|\s+(?:and|but|so|because|while|whereas|which|since|as)\s+"
    r"|(?<![不而])而(?!且|是)|但是?|因为|所以|因此|导致|同时|并且"
)
_SEGMENT = re.compile(
    r",(?!\d)\s*|[;!?。、\n]+\s*|\.\s+|:(?!\d)\s*|\s[-–—]\s|\s+(?:and|but|because|while)\s+"
    r"|但是?|而(?!且|是)"
)
_THOUGHT = re.compile(r"[!?。\n]+|\.\s")
_NUMERIC = re.compile(r"[\d.]+")


@dataclass(frozen=True, kw_only=True)
class Source:
    """A statement of the engine as evidence; texts are normalised.

    Attributes:
        own: its text without what it quotes of others, and what it quotes of the knowledge.
        quoted: what it quotes of logs, messages and imported pages.
        command: its command.
        names: ids and addresses of its citations.
    """

    own: str
    quoted: str
    command: str
    names: str

    @cached_property
    def everything(self) -> str:
        """All of it, for names and figures, in lower case."""
        return "\n".join((self.own, self.quoted, self.command, self.names)).lower()

    @cached_property
    def segments(self) -> tuple[str, ...]:
        """The engine's text in parts, each of one thought."""
        parts = (part.strip() for part in _SEGMENT.split(self.own))
        return tuple(part for part in parts if part)


def source_of(statement: Statement, words: WordLists) -> Source:
    """The evidence a statement gives; a quote that talks to its reader gives none."""
    foreign = foreign_quotes(statement)
    known = [
        citation.quote
        for citation in statement.citations
        if not _is_foreign(citation) and citation.quote not in statement.text
    ]
    reports = [quote for quote in foreign if not words.talks_to_reader.search(quote)]
    names = [part for citation in statement.citations for part in (citation.id, citation.url)]
    own = "\n".join((without(statement.text, foreign, " "), *known))
    return Source(
        own=normalise(own),
        quoted=normalise("\n".join(reports)),
        command=normalise(statement.command),
        names=normalise("\n".join(filter(None, names))),
    )


def foreign_quotes(statement: Statement) -> tuple[str, ...]:
    """What a statement quotes of logs, messages and imported pages, which are written by anyone."""
    quotes = (citation.quote for citation in statement.citations if _is_foreign(citation))
    return tuple(dict.fromkeys(filter(None, quotes)))


def _is_foreign(citation: Citation) -> bool:
    return citation.kind in FOREIGN or (
        citation.kind == "case" and _IMPORTED.search(citation.id) is not None
    )


def without(text: str, quotes: Sequence[str], instead: str) -> str:
    """`text` with `instead` for each of `quotes`, also for one cut short in quotation marks."""
    for quote in quotes:
        text = text.replace(quote, instead)

    def cut(span: re.Match[str]) -> str:
        inner = span[1].rstrip("….").strip()
        return instead if inner and any(inner in quote for quote in quotes) else span[0]

    return _MARKED.sub(cut, text)


class SupportCheck:
    """Checks sentences against cited statements."""

    def __init__(self, words: WordLists) -> None:
        self._words = words
        self._figures = FigureReader(words)
        self._acronyms = frozenset(name.lower() for name in words.acronyms)
        programs = "|".join(sorted(map(re.escape, words.programs), key=len, reverse=True))
        self._command = re.compile(
            rf"(?:^|[\s:：“\"'(])(?:{programs})\s+(?:-|/|~|\d|\$|https?:|[A-Za-z_]+[=./_]|install\b)"
        )

    def lack(self, sentence: str, cited: Sequence[Source], question: str = "") -> Lack:
        """What the sentence says beyond `cited`, empty where it says nothing more.

        `question` may lend names, and figures without a kind: they are the person's own.
        """
        said = _without_quotations(normalise(sentence), cited)
        asked = normalise(question)
        if self._commands(said, cited):
            return "command"
        given = "\n".join(source.everything for source in cited)
        if any(url.rstrip(".").lower() not in given for url in _URL.findall(said)):
            return "url"
        said = _URL.sub(" ", said)
        if not self._named(said, f"{given}\n{asked.lower()}"):
            return "name"
        lacks: set[Lack] = set()
        for clause in self._clauses(said):
            reasons = [self._clause(clause, source, asked, said) for source in cited]
            if "" not in reasons:
                lacks.update(reasons)
        order: tuple[Lack, ...] = ("figure", "words", "negation", "supposition", "opposite")
        return next((reason for reason in order if reason in lacks), "")

    def _commands(self, said: str, cited: Sequence[Source]) -> bool:
        """Whether there is a command in it that the engine does not say itself."""
        engine = "\n".join(f"{source.own}\n{source.command}" for source in cited).lower()
        spans = [span.strip() for span in _CODE.findall(said)]
        if any(" " in span and span.lower() not in engine for span in spans):
            return True
        bare = _CODE.sub(" ", said)
        return bool(self._command.search(bare) or _SHELL.search(bare))

    def _named(self, said: str, given: str) -> bool:
        """Whether every name (identifier, path, option, variable, case) stands in the evidence."""
        known: frozenset[str] | None = None
        for written in _NAME.findall(said):
            name = written.rstrip(".")
            lowered = name.lower()
            if lowered in self._acronyms or lowered in _SPOKEN or not _is_name(name):
                continue
            if re.search(rf"(?<![\w-]){re.escape(lowered)}(?![\w-])", given):
                continue
            if _LINK.search(name):
                return False
            known = frozenset(tokens(given)) if known is None else known
            if not set(tokens(name)) & known:
                return False
        return True

    def _clauses(self, said: str) -> list[list[str]]:
        """The sentence's clauses in pieces; one with hardly a word of fact joins its neighbour."""
        found: list[list[str]] = []
        for piece in filter(None, map(str.strip, _CLAUSE.split(said))):
            if found and min(self._weight(piece), self._weight(" ".join(found[-1]))) < MIN_WORDS:
                found[-1].append(piece)
            else:
                found.append([piece])
        return found

    def _weight(self, part: str) -> int:
        return len(self._content(part))

    def _content(self, text: str) -> list[str]:
        """The distinct words of fact; numbers are figures and checked as such."""
        silent = self._words.silent
        words = [
            word for word in tokens(text) if word not in silent and not _NUMERIC.fullmatch(word)
        ]
        return list(dict.fromkeys(words))

    def _clause(self, pieces: Sequence[str], source: Source, asked: str, said: str) -> Lack:
        """What a clause of the sentence `said` says beyond one statement."""
        clause = ", ".join(pieces)
        figures = self._figures.read(clause)
        if not self._counted(figures, source, asked):
            return "figure"
        content = self._content(clause)
        lent = frozenset(
            token for name in _NAME.findall(asked) if _is_name(name) for token in tokens(name)
        )
        if not (content or figures) or not self._covered(content, figures, source, lent):
            return "words"
        if self._strange(clause, source):
            return "words"
        for piece in pieces:
            if self._misattributed(piece, source):
                return "figure"
            near = self._nearest(piece, source)
            if self._turned(piece, near):
                return "negation"
            if self._affirmed(said, near, source):
                return "supposition"
            if self._opposed(piece, source.own) or self._opposed(piece, "\n".join(near)):
                return "opposite"
        return ""

    def _counted(self, figures: Iterable[Figure], source: Source, asked: str) -> bool:
        given = self._figures.read(f"{source.own}\n{source.quoted}")
        loose = {figure.value for figure in given}
        loose |= {figure.value for figure in self._figures.read(f"{asked}\n{source.command}")}
        return all(
            figure in given if figure.kind in TYPED else figure.value in loose for figure in figures
        )

    def _covered(
        self,
        content: Sequence[str],
        figures: frozenset[Figure],
        source: Source,
        lent: frozenset[str],
    ) -> bool:
        """Whether enough words stand in the evidence, at least one of them in the engine's own.

        Words of names the person used (`lent`) are not held against a clause.
        """
        own, quoted = reach_of(source.own), reach_of(source.quoted)
        own |= reach_of(source.names)
        worth = 0.0
        anchors = 0
        free = 0
        for word in content:
            if meets(word, own):
                worth += 1
                anchors += 1
            elif meets(word, quoted):
                worth += BORROWED
            else:
                free += word in lent
        own_figures = self._figures.read(source.own)
        counted = sum(figure in own_figures for figure in figures)
        found, sought = worth + counted, len(content) + len(figures) - free
        return anchors + counted > 0 and found >= MIN_COVERAGE * sought

    def _misattributed(self, piece: str, source: Source) -> bool:
        """Whether the evidence gives another figure of the same kind for what the piece speaks of.

        "A has 12 %, B has 46 %" does not carry "A has 46 %".
        """
        content = self._content(piece)
        figures = [figure for figure in self._figures.read(piece) if figure.kind in OF_SUBJECTS]
        parts = [(self._figures.read(part), reach_of(part)) for part in source.segments]
        for figure in figures:
            own, other = 0, 0
            for counted, reach in parts:
                common = sum(meets(word, reach) for word in content)
                if figure in counted:
                    own = max(own, common)
                elif any(another.kind == figure.kind for another in counted):
                    other = max(other, common)
            if other > own:
                return True
        return False

    def _nearest(self, piece: str, source: Source) -> list[str]:
        """The parts of the evidence that a piece words anew; none where it is spread out.

        These are the parts that the piece says all but whole, else the one most like it.
        """
        content, figures = self._content(piece), self._figures.read(piece)
        whole: list[str] = []
        best, nearest = 0.0, ""
        for part in source.segments:
            if _is_heading(part):
                continue
            own, counted = self._content(part), self._figures.read(part)
            reach = reach_of(part)
            common = sum(meets(word, reach) for word in content) + len(figures & counted)
            size = len(own) + len(counted)
            if common >= max(1.0, MIN_SAID * size):
                whole.append(part)
            alike = 2 * common / max(1, size + len(content) + len(figures))
            if alike > best:
                best, nearest = alike, part
        return whole or ([nearest] if best >= MIN_ALIKE else [])

    def _turned(self, piece: str, near: Sequence[str]) -> bool:
        """Whether the piece denies what the parts say, or says what they deny."""
        facts = [part for part in near if not self._words.condition.search(part)]
        return bool(facts) and self._negated(piece) != any(self._negated(part) for part in facts)

    def _affirmed(self, said: str, near: Sequence[str], source: Source) -> bool:
        """Whether the sentence says as a fact what the evidence only supposes."""
        if not near or self._words.supposition.search(said) or self._negated(said):
            return False
        thoughts = _THOUGHT.split(source.own)
        return all(
            any(part in thought and self._words.supposition.search(thought) for thought in thoughts)
            for part in near
        )

    def _strange(self, clause: str, source: Source) -> bool:
        """Whether the clause is about something that the evidence is not about."""
        said, given = Bag(clause), Bag(source.everything)
        return any(
            said.has(group, ()) and not given.has(group, ()) for group in self._words.subjects
        )

    def _negated(self, part: str) -> bool:
        return bool(self._words.negation.search(self._words.no_negation.sub(" ", part)))

    def _opposed(self, piece: str, evidence: str) -> bool:
        """Whether the piece has a word where the evidence only has its opposite."""
        said, given = Bag(piece), Bag(evidence)
        for pair in self._words.opposites:
            for mine, its in (pair, pair[::-1]):
                if (
                    said.has(mine, its)
                    and not said.has(its, mine)
                    and given.has(its, mine)
                    and not given.has(mine, its)
                ):
                    return True
        return False


def _without_quotations(said: str, cited: Sequence[Source]) -> str:
    """The sentence without what it quotes, in quotation marks and literally, of a cited log."""
    quoted = _squashed("\n".join(source.quoted for source in cited))

    def cut(span: re.Match[str]) -> str:
        inner = _squashed(span[1].rstrip("….。 "))
        return " " if inner and inner in quoted else span[0]

    return _MARKED.sub(cut, said)


def _squashed(text: str) -> str:
    """`text` without spaces and bracketed numbers, which a model takes for its own markers."""
    return re.sub(r"\s|\[\d+\]", "", text)


def _is_heading(part: str) -> bool:
    """Whether a part of the evidence only names what it is about: ``NCCL_TIMEOUT``."""
    return " " not in part and _is_name(part)


def _is_name(word: str) -> bool:
    """Whether a word names something of a program instead of being plain prose."""
    if word.startswith("-") and not word.startswith("--"):
        return len(word) == ONE_LETTER_OPTION
    if _LINK.search(word) or _CAMEL.search(word):
        return True
    return word.count("-") > 1
