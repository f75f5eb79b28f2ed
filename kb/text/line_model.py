"""Kinds of the lines of a text: signs of each line, weighed and smoothed over the neighbours.

A linear-chain model: each kind of each line has a score, the sum of the fitted weights of the
line's signs and of the signs of the lines before and behind it; from one line to the next each
pair of kinds has a weight, another one where a blank line parts them. The kinds are the best path
(Viterbi). Signs and weights stand in ``data/line_kinds.yaml`` and ``data/line_kinds.json``, fitted
by `kb.train.line_kind`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import yaml
from numpy.typing import NDArray

from kb.errors import DataError
from kb.settings import shipped_data
from kb.text.line_context import FencedBlocks, LineContext, OwnSigns, changes_context

SIGNS, WEIGHTS = "line_kinds.yaml", "line_kinds.json"
FORMAT = "timeout-kb/line-kinds/2"
LINE_CHARS = 400  # of a line that are looked at
LINES_CACHED = 1024  # lines whose signs are kept, about 3 KB each
BEFORE, BEHIND = "<", ">"  # in front of a sign: that of the line before, of the one behind
STAMPS = ("rank", "process", "mpi", "pod", "kernel", "container")  # prefixes nobody writes
MAX_PREFIXES = 4  # of a log, one behind the other
MEMORY = 256 << 20  # bytes RE2 may use for its automata before it falls back to slower ones
WORDS = 24  # of a line that are signs themselves
_QUOTE = re.compile(r"\s{0,20}(?!>>> |>>>>)(?:>\s?){1,8}")  # not a prompt, nor a program's arrow
_GLUE = frozenset(  # articles and prepositions of a sentence; messages of programs are terse
    re.findall(
        r"\w+",
        "the a an is are was were be has have had it its this that with without on in at of to for"
        " from and or but not no using between does do did then all same just as by than there any",
    )
)
_PUNCTUATION = "`\"'()[]*,.:;!?’"
_HAN = re.compile(r"[\u4e00-\u9fff]")
_WORD = re.compile(r"[A-Za-z_]{2,24}|[\u4e00-\u9fff]{1,2}")
_SHAPE = str.maketrans(
    {
        **dict.fromkeys("abcdefghijklmnopqrstuvwxyz", "a"),
        **dict.fromkeys("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "A"),
        **dict.fromkeys("0123456789", "0"),
    }
)
_DIGITS = str.maketrans(dict.fromkeys("123456789", "0"))
_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)  # a class is one piece
_REPEATED = re.compile(r"(.)\1+")


class LineSigns(msgspec.Struct, frozen=True):
    """A line's text without quote marks, whether it had some, and its signs by name.

    `context` is what it stands in; `apart` says that a blank line stands before it.
    """

    text: str
    quoted: bool
    blank: bool
    own: OwnSigns
    context: Sequence[str] = ()
    apart: bool = False


_BLANK = OwnSigns()
_NONE = OwnSigns(looks=("none",))  # before the first line and behind the last
SETTLED = 1e-4  # by which sums may differ that grow by one constant


def named_signs(lines: Sequence[LineSigns]) -> list[list[str]]:
    """The names of all signs that count for each line; none for a blank one."""
    filled = [line for line in lines if not line.blank]
    names = iter(
        [
            *line.own.looks,
            *line.own.measures,
            *line.context,
            *(f"{BEFORE}{sign}" for sign in (before.own.looks if before else ("none",))),
            *(f"{BEHIND}{sign}" for sign in (behind.own.looks if behind else ("none",))),
        ]
        for before, line, behind in zip(
            [None, *filled[:-1]], filled, [*filled[1:], None], strict=True
        )
    )
    return [[] if line.blank else next(names) for line in lines]


class LineModel:
    """Signs and fitted weights; made once, used from any thread."""

    def __init__(self, reader: SignReader, weights: LineWeights) -> None:
        """Use `weights` over the signs of `reader`."""
        self.reader = reader
        self.kinds = weights.kinds
        # The last row is of zeros: a line always has a sign.
        self._table: NDArray[np.float32] = np.asarray(
            [*weights.weights, [0.0] * len(weights.kinds)], dtype=np.float32
        )
        self._own: dict[str, int] = {}
        self._before: dict[str, int] = {}
        self._behind: dict[str, int] = {}
        maps = {BEFORE: self._before, BEHIND: self._behind}
        for row, name in enumerate(weights.signs):
            if name[0] in maps and len(name) > 1:
                maps[name[0]][name[1:]] = row
            else:
                self._own[name] = row
        self._steps: NDArray[np.float32] = np.asarray(
            [weights.steps, weights.apart], dtype=np.float32
        )

    def best_path(self, lines: Sequence[LineSigns]) -> list[int]:
        """The kind of each line as a number into `kinds`; blank lines have those before them."""
        filled = [line for line in lines if not line.blank]
        if not filled:
            return [0] * len(lines)
        scores, numbers = self._scores(filled)
        best = scores[numbers[0]]
        back: list[NDArray[np.intp]] = []
        # Among lines that are alike the way to each kind settles, and sums grow by one constant.
        settled = False
        for before, number, line in zip(numbers, numbers[1:], filled[1:], strict=False):
            alike = number == before and not line.apart
            if alike and settled:
                back.append(back[-1])
                continue
            ways = best[:, None] + self._steps[int(line.apart)]
            back.append(ways.argmax(axis=0))
            after = np.maximum.reduce(ways) + scores[number]
            settled = alike and float(np.ptp(after - best)) < SETTLED
            best = after
        kind = int(best.argmax())
        path = [kind]
        for origin in reversed(back):
            kind = int(origin[kind])
            path.append(kind)
        following = iter(reversed(path))
        kinds: list[int] = []
        for line in lines:
            kinds.append((kinds[-1] if kinds else path[-1]) if line.blank else next(following))
        return kinds

    def _scores(self, lines: Sequence[LineSigns]) -> tuple[NDArray[np.float32], list[int]]:
        """Sums of the rows of all signs that count, and which of these sums is each line's.

        Lines with the same signs beside lines with the same signs share one, as most of a log do.
        """
        own, before, behind = self._own, self._before, self._behind
        beside = [_NONE, *(line.own for line in lines), _NONE]
        rows: list[int] = []
        starts: list[int] = []
        known: dict[tuple[int, int, int, tuple[str, ...]], int] = {}
        numbers: list[int] = []
        for line, ahead, after in zip(lines, beside, beside[2:], strict=False):
            key = (id(line.own), id(ahead), id(after), tuple(line.context))
            number = known.setdefault(key, len(starts))
            numbers.append(number)
            if number < len(starts):
                continue
            starts.append(len(rows))
            rows.append(-1)
            for signs in (line.own.looks, line.own.measures, line.context):
                rows += [own[sign] for sign in signs if sign in own]
            rows += [before[sign] for sign in ahead.looks if sign in before]
            rows += [behind[sign] for sign in after.looks if sign in behind]
        scores: NDArray[np.float32] = np.add.reduceat(self._table[rows], starts, axis=0)
        return scores, numbers


class LineWeights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is fitted: a weight per sign and kind, and per pair of kinds that follow each other.

    `apart` has those of pairs with a blank line between them.
    """

    format: str
    kinds: list[str]
    signs: list[str]
    weights: list[list[float]]
    steps: list[list[float]]
    apart: list[list[float]]


class SignReader:
    """Finds the signs of lines, all expressions at once."""

    def __init__(
        self,
        prefixes: dict[str, str],
        signs: dict[str, str],
        decides: dict[str, str] | None = None,
        blocks: Iterable[str] = (),
    ) -> None:
        """Look for `signs` (RE2, by name) behind `prefixes` of a log; some decide the kind alone.

        Those of `blocks` count for all lines of the block, too.

        Raises:
            DataError: an expression is none that RE2 takes.
        """
        import re2

        self._decides = decides or {}
        self._blocks = frozenset(blocks)
        options = re2.Options()
        options.log_errors = False
        options.max_mem = MEMORY
        # Most begin at the line's start: an automaton of those alone stays small.
        self._anchored, self._free = re2.Set.MatchSet(options), re2.Set.SearchSet(options)
        self._anchored_names: list[str] = []
        self._free_names: list[str] = []
        try:
            for name, expression in signs.items():
                flags = "(?i)" if expression.startswith("(?i)") else ""
                for way in _alternatives(expression.removeprefix(flags)):
                    if way.startswith("^"):
                        self._anchored.Add(flags + way[1:])
                        self._anchored_names.append(name)
                    else:
                        self._free.Add(flags + way)
                        self._free_names.append(name)
            self._prefix: Any = re2.compile(_any_of(prefixes.values()), options)
            stamps = [prefixes[name] for name in STAMPS if name in prefixes]
            self._stamp: Any = re2.compile(_any_of(stamps), options)
        except re2.error as error:
            raise DataError(f"{SIGNS}: {error}", todo="use RE2 syntax") from error
        self._anchored.Compile()
        self._free.Compile()
        # A text is read several times: as a whole, for its language, in parts.
        self._own = lru_cache(LINES_CACHED)(self._own_signs)

    def read(self, lines: Sequence[str]) -> list[LineSigns]:
        """The signs of each line, with those of what it stands in."""
        context, blocks = LineContext(), FencedBlocks()
        shared: dict[str, tuple[OwnSigns, bool]] = {}  # most lines of a log differ in digits alone
        signs: list[LineSigns] = []
        apart = False
        for line in lines:
            quote = _QUOTE.match(line)
            text = line[quote.end() :] if quote else line
            blank = not text.strip()
            if blank:
                own, place = _BLANK, context.blank()
            else:
                key = text[:LINE_CHARS].translate(_DIGITS)
                known = shared.get(key)
                if known is None:
                    known = self._own(text[:LINE_CHARS]), not changes_context(text)
                    shared[key] = known
                own, quiet = known
                # the key says nothing of what stands behind it
                place = context.signs(text, own, quiet=quiet and len(text) <= LINE_CHARS)
                blocks.add(own, place)
            signs.append(LineSigns(text, quote is not None, blank, own, place, apart))
            apart = blank
        blocks.close()
        return signs

    def _own_signs(self, text: str) -> OwnSigns:
        body = text.encode("utf-8", "replace").decode("utf-8")
        content = start = body.lstrip()
        prefixes = 0
        for _ in range(MAX_PREFIXES):
            prefix = self._prefix.match(content)
            if prefix is None or not prefix.end() or not content[prefix.end() :].strip():
                break
            content, prefixes = content[prefix.end() :], prefixes + 1
        indent = len(body) - len(start) + len(content) - len(content.lstrip())
        content = content.strip() or start.strip() or "?"
        looks = [self._anchored_names[number] for number in self._anchored.Match(content) or ()]
        looks += [self._free_names[number] for number in self._free.Match(content) or ()]
        if prefixes:
            looks.append("prefixed")
        return OwnSigns(
            decided=next((self._decides[look] for look in looks if look in self._decides), ""),
            stamped=prefixes > 0 and self._stamp.match(start) is not None,
            looks=looks,
            measures=_measures(content, indent),
            shared=[look for look in looks if look in self._blocks],
        )


def _any_of(expressions: Iterable[str]) -> str:
    return "|".join(f"(?:{expression})" for expression in expressions)


def _alternatives(expression: str) -> Iterator[str]:
    """The alternatives of an expression's top level."""
    depth = start = 0
    for piece in _PIECE.finditer(expression):
        if piece[0] == "(":
            depth += 1
        elif piece[0] == ")":
            depth -= 1
        elif piece[0] == "|" and not depth:
            yield expression[start : piece.start()]
            start = piece.end()
    yield expression[start:]


def _measures(content: str, indent: int) -> list[str]:
    """Signs that are counted, `name=bucket`, and the words."""
    size = len(content)
    shape = content.translate(_SHAPE)
    lower = content.lower()
    words = lower.split()
    letters = shape.count("a") + shape.count("A")
    digits = shape.count("0")
    han = 0 if content.isascii() else len(_HAN.findall(content))
    plain = sum(map(str.isalpha, (word.strip(_PUNCTUATION) for word in words)))
    glue = sum(word in _GLUE for word in words)
    symbols = size - letters - digits - han - len(words) + 1
    front = _REPEATED.sub(r"\1", shape[:24])
    first = words[0][:24]
    return [
        "bias=1",
        f"indent={min(indent, 9) // 2}",
        f"size={min(size // 20, 6)}",
        f"words={min(len(words), 12)}",
        f"plain={5 * plain // len(words)}",
        f"glue={min(glue, 4)}",
        f"han={min(han, 12) // 3}",
        f"symbols={min(10 * symbols // size, 6)}",
        f"digits={min(10 * digits // size, 5)}",
        f"last={shape[-1]}",
        f"shape1={front[:1]}",
        f"shape3={front[:3]}",
        f"shape6={front[:6]}",
        f"first={first.translate(_SHAPE) if han else first}",
        *(f"w={word}" for word in dict.fromkeys(_WORD.findall(lower)[:WORDS])),
    ]


@cache
def shipped_model(folder: Path | None = None) -> LineModel:
    """The model of ``data/``, read once.

    Raises:
        DataError: a file is missing, damaged or of another format.
    """
    folder = folder or shipped_data()
    reader = sign_reader(folder)
    try:
        weights = msgspec.json.decode((folder / WEIGHTS).read_bytes(), type=LineWeights)
    except (OSError, msgspec.DecodeError) as error:
        raise DataError(f"{WEIGHTS}: {error}", todo="python -m kb.train.line_kind") from error
    if weights.format != FORMAT:
        raise DataError(
            f"{WEIGHTS}: format {weights.format!r}, not {FORMAT!r}",
            todo="python -m kb.train.line_kind",
        )
    return LineModel(reader, weights)


def sign_reader(folder: Path) -> SignReader:
    """The signs of ``line_kinds.yaml`` in `folder`.

    Raises:
        DataError: it is missing, or an expression is none that RE2 takes.
    """
    try:
        content = yaml.load((folder / SIGNS).read_text("utf-8"), yaml.CSafeLoader)
        return SignReader(
            content["prefixes"], content["signs"], content["decides"], content["blocks"]
        )
    except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{SIGNS}: {error}", todo="restore it, or reinstall timeout-kb") from error
