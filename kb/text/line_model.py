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
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import yaml
from numpy.typing import NDArray

from kb.errors import DataError
from kb.settings import shipped_data

SIGNS, WEIGHTS = "line_kinds.yaml", "line_kinds.json"
FORMAT = "timeout-kb/line-kinds/2"
LINE_CHARS = 400  # of a line that are looked at
LINES_CACHED = 1024  # lines whose signs are kept, about 3 KB each
BEFORE, BEHIND = "<", ">"  # in front of a sign: that of the line before, of the one behind
STAMPS = ("rank", "process", "mpi", "pod", "kernel", "container")  # prefixes nobody writes
MAX_PREFIXES = 4  # of a log, one behind the other
MEMORY = 256 << 20  # bytes RE2 may use for its automata before it falls back to slower ones
WORDS = 24  # of a line that are signs themselves
HEADING_LINES = 80  # below a heading that it still speaks of

_QUOTE = re.compile(r"\s{0,20}(?!>>> )(?:>\s?){1,8}")
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
_FENCE = re.compile(r"\s{0,8}(?:```|~~~)\s?(\w{0,20})")
_TRACEBACK = re.compile(r"Traceback \(most recent")
_LAST_OF_TRACEBACK = re.compile(r"[\w.]{1,120}(?::|$)")
_HEADING = re.compile(r"#{1,6}\s+\S|\*\*[^*]{2,80}\*\*\s*:?$")
_SECTIONS = {
    "environment": re.compile(
        r"environment|version|system|hardware|环境|版本|系统|配置", re.IGNORECASE
    ),
    "log": re.compile(r"\blogs?\b|output|error|traceback|message|日志|报错|输出", re.IGNORECASE),
    "code": re.compile(r"code|script|reproduc|command|config|代码|脚本|复现|命令", re.IGNORECASE),
    "words": re.compile(
        r"describe|bug|question|problem|expect|happen|问题|描述|期望", re.IGNORECASE
    ),
}
_COLLECT = re.compile(r"(?:PyTorch version|Collecting environment information)\b")
_SCRIPT = re.compile(r"#!|#(?:SBATCH|PBS|BSUB)\b")
_OPENS = re.compile(r"[{\[(]\s*$")
_CLOSES = re.compile(r"\s*[}\])]+[,;]?\s*$")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSigns:
    """The signs of a line alone; lines that differ in digits alone share them.

    `stamped` says that a launcher or logger put a rank or a process in front, as nobody writes;
    `decided` is the kind of a line whose looks leave no doubt.
    `looks` are the expressions that match it; they count for the lines beside it, too. `measures`
    are what is counted, and its words; `context` is what it stands in.
    """

    stamped: bool = False
    decided: str = ""
    looks: Sequence[str] = ()
    measures: Sequence[str] = ()


class LineSigns(msgspec.Struct, frozen=True):
    """A line's text without quote marks, whether it had some, and its signs by name.

    `apart` says that a blank line stands before it.
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
    ) -> None:
        """Look for `signs` (RE2, by name) behind `prefixes` of a log; some decide the kind alone.

        Raises:
            DataError: an expression is none that RE2 takes.
        """
        import re2

        self._decides = decides or {}
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
        context = _Context()
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
                    known = self._own(text[:LINE_CHARS]), not _changes_context(text)
                    shared[key] = known
                own, quiet = known
                # the key says nothing of what stands behind it
                place = context.signs(text, own, quiet=quiet and len(text) <= LINE_CHARS)
            signs.append(LineSigns(text, quote is not None, blank, own, place, apart))
            apart = blank
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


class _Context:
    """What the next line stands in: a fence, a traceback, a script, brackets, a form's section."""

    def __init__(self) -> None:
        self._fence = self._section = ""
        self._section_age = self._depth = 0
        self._after_blank = True
        self._continued = self._traceback = self._script = self._collect = False

    def blank(self) -> Sequence[str]:
        """A blank line has no signs; the brackets before it count as closed."""
        self._after_blank, self._depth = True, 0
        return ()

    def signs(self, text: str, own: OwnSigns, *, quiet: bool) -> Sequence[str]:
        """The signs of the line's place; the line then is the one before.

        `quiet` says that `_changes_context` is false of it: most lines need no second look.
        """
        if quiet and not self._traceback and not self._fence:
            signs = self._state_signs()
            self._after_blank = self._continued = False
            self._section_age += 1
            return signs
        content = text.strip()
        mark = _FENCE.match(text)
        signs = self._fence_signs(mark)
        signs += self._traceback_signs(content, own)
        signs += self._state_signs()
        self._go_on(content, mark)
        return signs

    def _state_signs(self) -> list[str]:
        if not (
            self._script
            or self._collect
            or self._section
            or self._depth
            or self._continued
            or self._after_blank
        ):
            return []
        states = {
            "in-script": self._script,
            "in-collect": self._collect,
            f"below-{self._section}": self._section and self._section_age < HEADING_LINES,
            "in-brackets": self._depth,
            "continued": self._continued,
            "after-blank": self._after_blank,
        }
        return [name for name, holds in states.items() if holds]

    def _fence_signs(self, mark: re.Match[str] | None) -> list[str]:
        inside = bool(self._fence) and mark is None
        return ["in-fence", f"in-fence-{self._fence}"] if inside else []

    def _traceback_signs(self, content: str, own: OwnSigns) -> list[str]:
        if _TRACEBACK.search(content):
            self._traceback = True
            return []
        if not self._traceback:
            return []
        at_margin = "indent=0" in own.measures
        self._traceback = "python-frame" in own.looks or not at_margin or not _is_last(content)
        return ["in-traceback"] if self._traceback else ["in-traceback", "ends-traceback"]

    def _go_on(self, content: str, mark: re.Match[str] | None) -> None:
        self._after_blank, self._continued = False, content.endswith("\\")
        self._section_age += 1
        self._script = (self._script or bool(_SCRIPT.match(content))) and mark is None
        self._collect = (self._collect or bool(_COLLECT.match(content))) and mark is None
        if _OPENS.search(content):
            self._depth += 1
        elif self._depth and _CLOSES.match(content):
            self._depth -= 1
        if mark:
            self._fence = "" if self._fence else (mark[1].lower() or "plain")
            self._traceback = False
        elif not self._fence and _HEADING.match(content):
            self._section = next((n for n, e in _SECTIONS.items() if e.search(content)), "")
            self._section_age = 0


def _changes_context(text: str) -> bool:
    """Whether a line may open or close something that lines below it stand in."""
    content = text.strip()
    return (
        content.endswith("\\")
        or (
            _FENCE.match(content)
            or _COLLECT.match(content)
            or _SCRIPT.match(content)
            or _CLOSES.match(content)
            or _HEADING.match(content)
            or _TRACEBACK.search(content)
            or _OPENS.search(content)
        )
        is not None
    )


def _is_last(content: str) -> bool:
    return _LAST_OF_TRACEBACK.match(content) is not None and not content.startswith("File ")


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
        return SignReader(content["prefixes"], content["signs"], content["decides"])
    except (OSError, yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{SIGNS}: {error}", todo="restore it, or reinstall timeout-kb") from error
