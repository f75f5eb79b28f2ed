"""Cues: what a person's description says about a hang, found by the patterns of data/cues.yaml.

All cues are matched at once by an RE2 set, in time linear in the text whatever is pasted.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kb.errors import DataError
from kb.types import Pattern

MAX_CUE_TEXT = 16_000  # characters; a description is shorter, the rest is a pasted log
MAX_QUOTE = 160  # characters of the clause shown as evidence
_CLAUSE_END = re.compile(r"[\n!?。！？;；]|\.(?!\d)")  # the point of 2.5.1 ends nothing
_MEMORY = 64 << 20  # bytes RE2 may use for its automata before it falls back to slower ones
POLARITY = ("denial", "negation", "sound-before", "sound-after", "unsound")
"""Events of the patterns that tell whether a thing is named as the trouble or as in order."""
_REACH = 64  # characters around a mention in which it can be denied or said to be in order
_DENIAL_REACH = 32
_MENTIONS = 4  # of one thing in a sentence that are looked at


@dataclass(frozen=True, slots=True, kw_only=True)
class CueHit:
    """A cue found: the clause it stands in, the line of the text, whether it is denied."""

    cue: Pattern
    quote: str
    line: int
    denied: bool


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
        return tuple(self._hit(number, text, ends) for number in found)

    def _hit(self, number: int, text: str, ends: Sequence[int]) -> CueHit:
        start, end = self._single[number].search(text).span()
        before, after = bisect_left(ends, start), bisect_left(ends, end)
        left = ends[before - 1] + 1 if before else 0
        right = ends[after] if after < len(ends) else len(text)
        return CueHit(
            cue=self._cues[number],
            quote=_shorten(text[left:right].strip(), text[start:end].strip()),
            line=text.count("\n", 0, start) + 1,
            denied=self._says("denial", text[max(left, start - _DENIAL_REACH) : start])
            or self._turned(number, text[start:end])
            or (bool(self._cues[number].sound) and self._sound(number, text[left : right + 1])),
        )

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

    def _sound(self, number: int, sentence: str) -> bool:
        """Whether the thing a cue names is said to be in order, or denied, where it is named."""
        if self._says("unsound", sentence):
            return False
        for mention in itertools.islice(self._single[number].finditer(sentence), _MENTIONS):
            before = sentence[max(0, mention.start() - _REACH) : mention.start()]
            after = sentence[mention.end() : mention.end() + _REACH]
            if (
                self._says("denial", before[-_DENIAL_REACH:])
                or self._says("sound-before", before)
                or self._says("sound-after", after)
            ):
                return True
        return False

    def _says(self, event: str, text: str) -> bool:
        return any(expression.search(text) for expression in self._polarity[event])


def _shorten(clause: str, match: str) -> str:
    """The clause, or the part of it around the match when it is too long to show."""
    if len(clause) <= MAX_QUOTE:
        return clause
    place = max(clause.find(match), 0)
    start = max(0, min(place - 20, len(clause) - MAX_QUOTE))
    return clause[start : start + MAX_QUOTE].strip()
