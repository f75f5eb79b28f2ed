"""Cues: what a person's description says about a hang, found by the patterns of data/cues.yaml.

All cues are matched at once by an RE2 set, in time linear in the text whatever is pasted.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kb.errors import DataError
from kb.types import Pattern

MAX_CUE_TEXT = 16_000  # characters; a description is shorter, the rest is a pasted log
MAX_QUOTE = 160  # characters of the clause shown as evidence
# The point of 2.5.1 or of transport.cu:153 ends nothing.
_CLAUSE_END = re.compile(r"[\n!?。！？;；]|\.(?=\s|$|[^\x00-\x7f]|[\"')\]](?:\s|$))")
_MEMORY = 64 << 20  # bytes RE2 may use for its automata before it falls back to slower ones
_CONTRAST = re.compile(r"\b(?:but|yet|however)\b|但|不过|却", re.IGNORECASE)
_JOINED = re.compile(  # "no Xid or ECC": what a list denies first it denies to its end
    r"\s*(?:(?:errors?|events?|messages?|issues?|problems?|报错|错误)\s*)?"
    r"(?:[/,、，]|\bn?or\b|\band\b|或者?|和)\s*(?:any )?",
    re.IGNORECASE,
)
_WORD = re.compile(r"[!-~]*$")  # what stands of a word before a place in it
POLARITY = (
    "denial",
    "absence",
    "trouble",
    "negation",
    "sound-before",
    "sound-after",
    "unsound",
)
"""Events of the patterns that tell whether a thing is named as the trouble or as in order."""
_REACH = 64  # characters around a mention in which it can be denied or said to be in order
_DENIAL_REACH = 32
_MENTIONS = 32  # of one thing in a text that are looked at
_WORD_REACH = 40  # characters of a word that a quote begins with rather than cut


@dataclass(frozen=True, slots=True, kw_only=True)
class CueHit:
    """A cue found: the clause it stands in, the line of the text, whether it is denied."""

    cue: Pattern
    quote: str
    line: int
    denied: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mention:
    """A place where a cue's thing is named, and the sentence it stands in."""

    start: int
    end: int
    left: int
    right: int
    denied: bool

    def overlaps(self, other: _Mention) -> bool:
        return self.start < other.end and other.start < self.end


class CueReader:
    """Finds cues in descriptions; made once from the knowledge, then used for every text."""

    def __init__(self, cues: Sequence[Pattern], polarity: Sequence[Pattern] = ()) -> None:
        """Find `cues`; `polarity` are the patterns whose events are `POLARITY`.

        Raises:
            DataError: an expression is none that RE2 takes.
        """
        import re2

        options = re2.Options()
        options.case_sensitive = False
        options.log_errors = False
        options.max_mem = _MEMORY
        self._cues = tuple(cues)
        self._single: list[Any] = []
        self._set = re2.Set.SearchSet(options)
        self._polarity: dict[str, list[Any]] = {event: [] for event in POLARITY}
        try:
            for cue in self._cues:
                self._set.Add(cue.regex)
                self._single.append(re2.compile(cue.regex, options))
            for cue in polarity:
                self._polarity[cue.event].append(re2.compile(cue.regex, options))
        except re2.error as error:
            raise DataError(
                f"cues.yaml: {cue.id}: {error}", todo="use RE2 syntax, without look-around"
            ) from error
        self._set.Compile()

    def read(self, text: str) -> tuple[CueHit, ...]:
        """The cues in `text`, each once, in the order of the file."""
        text = text[:MAX_CUE_TEXT].encode("utf-8", "replace").decode("utf-8")
        found = sorted(self._set.Match(text) or ())
        ends = [mark.start() for mark in _CLAUSE_END.finditer(text)] if found else []
        mentions = {number: self._mention(number, text, ends) for number in found}
        things = [number for number in found if self._cues[number].sound]
        words = [number for number in things if not self._cues[number].causes]
        weighty = [mentions[number] for number in things if number not in words]
        twice = {  # one remark counts once
            number for number in words if any(mentions[number].overlaps(other) for other in weighty)
        }
        return tuple(
            self._hit(number, mention, text)
            for number, mention in mentions.items()
            if number not in twice
        )

    def _hit(self, number: int, mention: _Mention, text: str) -> CueHit:
        return CueHit(
            cue=self._cues[number],
            quote=_shorten(
                text[mention.left : mention.right].strip(),
                text[mention.start : mention.end].strip(),
            ),
            line=text.count("\n", 0, mention.start) + 1,
            denied=mention.denied,
        )

    def _mention(self, number: int, text: str, ends: Sequence[int]) -> _Mention:
        """The first mention that is not denied; the first one where all of them are."""
        mentions = self._mentions(number, text, ends)
        first = next(mentions)
        if not first.denied:
            return first
        return next((mention for mention in mentions if not mention.denied), first)

    def _mentions(self, number: int, text: str, ends: Sequence[int]) -> Iterator[_Mention]:
        denied_end = -1  # of the last mention that is denied
        for found in itertools.islice(self._single[number].finditer(text), _MENTIONS):
            start, end = found.span()
            before, after = bisect_left(ends, start), bisect_left(ends, end)
            left = ends[before - 1] + 1 if before else 0
            right = ends[after] if after < len(ends) else len(text)
            denied = (
                (denied_end >= left and _JOINED.fullmatch(text, denied_end, start) is not None)
                or self._denied(number, text, start, end, left)
                or self._turned(number, text[start:end])
                or self._sound(number, text, start, end, left, right)
            )
            denied_end = end if denied else -1
            yield _Mention(start=start, end=end, left=left, right=right, denied=denied)

    def _turned(self, number: int, match: str) -> bool:
        """Whether a negation stands inside a match that its cue does not ask for."""
        for expression in self._polarity["negation"]:
            found = expression.search(match)
            if found is None or not found.start():
                continue
            without = f"{match[: found.start()]}{found.group(1)}"
            same = self._single[number].search(without)
            if same is not None and same.span() == (0, len(without)):
                return True
        return False

    def _denied(self, number: int, text: str, start: int, end: int, left: int) -> bool:
        """Whether the thing is denied where it is named; no denial: to lack what is needed."""
        before = _CONTRAST.split(text[max(left, start - _DENIAL_REACH) : start])[-1]
        if not self._says("denial", before):
            return False
        if not self._cues[number].needed:
            return True
        lack = next((hit for e in self._polarity["absence"] if (hit := e.search(before))), None)
        return lack is None or self._says("trouble", lack.group() + text[start : end + _REACH])

    def _sound(self, number: int, text: str, start: int, end: int, left: int, right: int) -> bool:
        """Whether the thing a cue names is said to be in order where it is named."""
        if not self._cues[number].sound:
            return False
        found = self._says("sound-before", text[max(left, start - _REACH) : start]) or self._says(
            "sound-after", text[end : min(right + 1, end + _REACH)]
        )
        return found and not self._says("unsound", text[left : right + 1])

    def _says(self, event: str, text: str) -> bool:
        return any(expression.search(text) for expression in self._polarity[event])


def _shorten(clause: str, match: str) -> str:
    """The clause, or the part of it around the match when it is too long to show."""
    if len(clause) <= MAX_QUOTE:
        return clause
    place = max(clause.find(match), 0)
    start = max(0, min(place - 20, len(clause) - MAX_QUOTE))
    word = _WORD.search(clause, max(0, start - _WORD_REACH), start)
    start = word.start() if word else start
    return clause[start : start + MAX_QUOTE].strip()
