"""Text of two languages and of machines: its normal form and its tokens.

Words come from the segmenter with the words of ``data/lexicon`` added; identifiers stay whole
and are also cut into parts: ``_ALLGATHER_BASE`` matches itself, ``allgather`` and ``base``.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from kb.errors import DataError
from kb.settings import shipped_data
from kb.text.language import HAN, has_han

if TYPE_CHECKING:
    from kb.text.translations import Translations

Cut = Callable[[str], list[str]]
_CUTTERS = itertools.count()

MAX_IDENTIFIER_PARTS = 12  # a path of more parts is cut into its parts only
KNOWN_IDENTIFIERS = 20_000  # cached with their tokens, about 5 MB
RECENT_TEXTS = 32  # cached with their tokens, about 8 kB each
LONG_NUMBER = 7  # digits: sizes, ids and clocks; error codes have six, ports five
MIN_STEM = 4  # letters that -ing and -ed leave; shorter words only lose their plural

_NOISE = re.compile(
    r"""(?=[0-9a-fA-Fh]) (?:          # how each of them begins: skips most characters at once
      https?://\S+
    | \b0x[0-9a-fA-F]+\b
    | \b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b
    | \b[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?::[0-9]+)?\b
    | \b[0-9]{4}[-/][0-9][0-9]?[-/][0-9][0-9]?
      (?:[T\s_-]*[0-9][0-9]?:[0-9][0-9](?::[0-9][0-9])?(?:[.,][0-9]+)?(?:Z|[+-][0-9][0-9]:?[0-9][0-9])?)?
    | \b[0-9][0-9]?:[0-9][0-9]:[0-9][0-9](?:[.,][0-9]+)?
    | \b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{12,}\b
    )""",
    re.VERBOSE,
)
_TOKEN = re.compile(
    rf"(?P<han>[{HAN}]+)"
    r"|(?P<word>[A-Za-z_][A-Za-z0-9_]*(?:(?:\.|::|-|/)[A-Za-z_][A-Za-z0-9_]*)*)"
    r"|(?P<number>[0-9]+(?:\.[0-9]+)*)"
)
_SEPARATOR = re.compile(r"\.|::|-|/")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_VOWEL = re.compile(r"[aeiouy]")
_DOUBLED = re.compile(r"([^aeioulsz])\1$")  # stopped, setting


class Tokenizer:
    """Normal form, tokens and translations, with the words of one lexicon folder.

    Attributes:
        words: the words added to the segmenter, with their frequencies.
        compounds: one-word spellings with the spellings in parts.
    """

    def __init__(self, lexicon: Path) -> None:
        """Read `lexicon` (``data/lexicon``).

        Args:
            lexicon: folder with words.tsv, glossary.tsv, everyday.tsv, mined.tsv,
                mined-knowledge.tsv, traditional.tsv, regional.tsv, compounds.txt and stopwords.txt.

        Raises:
            DataError: a file is missing or a line does not have its columns.
        """
        self._lexicon = lexicon
        pairs = read_rows(lexicon / "traditional.tsv", 2)
        self._simplified = {ord(old): new for old, new in pairs}
        self._regional = dict(read_rows(lexicon / "regional.tsv", 2))
        longest_first = sorted(self._regional, key=lambda word: (-len(word), word))
        self._regional_pattern = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
        self.words = {word: int(count) for word, count in read_rows(lexicon / "words.tsv", 2)}
        self._stop = frozenset(row[0] for row in read_rows(lexicon / "stopwords.txt", 1))
        self.compounds = read_compounds(lexicon)
        # logs say the same words again and again: the cache makes them twice as fast
        self._identifier = lru_cache(KNOWN_IDENTIFIERS)(self._identifier_tokens)
        # a question is searched with, and compared with notes and fixes
        self._recent = lru_cache(RECENT_TEXTS)(self._tokens)

    @cached_property
    def cut(self) -> Cut:
        """The segmenter, for a run of Han characters; made on first use, it costs 0.1 s."""
        return rust_cutter(self.words)

    @cached_property
    def _translations(self) -> Translations:
        from kb.text.translations import Translations  # reads with this module's functions

        return Translations(self._lexicon)

    def normalise(self, text: str) -> str:
        """NFKC, simplified characters, and the mainland's word where regions differ."""
        if text.isascii():
            return text
        text = unicodedata.normalize("NFKC", text)
        if not has_han(text):
            return text
        text = text.translate(self._simplified)
        return self._regional_pattern.sub(lambda match: self._regional[match[0]], text)

    def tokens(self, text: str) -> list[str]:
        """Tokens in order of the text, lower case, noise and stop words left out.

        Noise: addresses, hex, dates and times, URLs, numbers of seven and more digits. An
        identifier yields itself and then its parts. English words lose plural -s, -ing and -ed.
        """
        return list(self._recent(text))

    def _tokens(self, text: str) -> list[str]:
        result: list[str] = []
        for match in _TOKEN.finditer(_NOISE.sub(" ", self.normalise(text))):
            kind, token = match.lastgroup, match[0]
            if kind == "han":
                result += [word for word in self.cut(token) if word not in self._stop]
            elif kind == "word":
                result += self._identifier(token)
            elif len(token.split(".")[0]) < LONG_NUMBER:
                result.append(token)
        return result

    def expand(self, tokens: Iterable[str]) -> list[tuple[str, float]]:
        """`Translations.expand` with the translations of this lexicon, read on first use."""
        return self._translations.expand(tokens)

    def _identifier_tokens(self, identifier: str) -> list[str]:
        """The identifier, its parts, and the compounds that two or three parts make."""
        parts = identifier_parts(identifier)
        names = list(parts)
        for size in (2, 3):
            for start in range(1, len(parts) - size + 1):
                joined = "".join(parts[start : start + size])
                if joined in self.compounds and joined not in parts:
                    names.append(joined)
        return [stem(token) for token in names if token not in self._stop]


def identifier_parts(identifier: str) -> list[str]:
    """An identifier whole and by part, lower case, each once, the whole first.

    >>> identifier_parts("torch.distributed.DistStoreError")[:3]
    ['torch.distributed.diststoreerror', 'torch', 'distributed']
    """
    parts = [identifier.lower()]
    names = _SEPARATOR.split(identifier)
    if len(names) > MAX_IDENTIFIER_PARTS:
        parts = []
    for name in names:
        parts.append(name.lower())
        for piece in name.split("_"):
            if piece:
                parts.append(piece.lower())
                parts.extend(part.lower() for part in _CAMEL.findall(piece))
    return [part for part in dict.fromkeys(parts) if part.strip("_")]


def stem(word: str) -> str:
    """An English word without plural -s, -ing or -ed; other words as they are.

    Light on purpose: it raised the MRR of English posts by .02, heavier stemmers no further.
    """
    if len(word) < MIN_STEM or not (word.isascii() and word.isalpha()):
        return word
    if word.endswith("ies"):
        word = word[:-3] + "y"
    elif word.endswith(("ses", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("pus") or (word[-1] == "s" and not word.endswith(("ss", "us", "is"))):
        word = word[:-1]
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= MIN_STEM and _VOWEL.search(rest):
            return rest[:-1] if _DOUBLED.search(rest) else rest
    return word


def read_compounds(lexicon: Path) -> dict[str, str]:
    """The one-word spelling of ``compounds.txt`` with the spelling in parts."""
    lines = [row[0] for row in read_rows(lexicon / "compounds.txt", 1)]
    return {line.replace(" ", ""): line for line in lines}


JIEBA = "0.42.1"  # the version that the Rust port cuts like; cuts are stored in the index


def rust_cutter(words: dict[str, int]) -> Cut:
    """The segmenter of the hot path: jieba's Rust port, ready in 0.09 s."""
    import rjieba

    # The module makes a segmenter of its own on import, 25 MB: the first cutter takes that one.
    segmenter = rjieba if next(_CUTTERS) == 0 else rjieba.Jieba()
    for word, frequency in words.items():
        segmenter.add_word(word, frequency, "n")
    cut: Cut = segmenter.cut
    return cut


@lru_cache(maxsize=1)
def default_tokenizer() -> Tokenizer:
    """The tokenizer with the shipped lexicon, read on first use."""
    return Tokenizer(shipped_data() / "lexicon")


def read_rows(path: Path, columns: int) -> Iterator[list[str]]:
    """Tab-separated rows; empty lines and lines that start with ``#`` are comments."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}", todo="restore data/lexicon") from error
    for number, line in enumerate(lines, start=1):
        if not line or line.startswith("#"):
            continue
        row = line.split("\t")
        if len(row) != columns:
            raise DataError(
                f"{path}:{number} has {len(row)} columns, not {columns}: {line!r}",
                todo="separate the columns with one tab each",
            )
        yield row
