"""Cues: what a person's description says about a hang, found by the patterns of data/cues.yaml.

All cues are matched at once by an RE2 set, in time linear in the text whatever is pasted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kb.errors import DataError
from kb.types import Pattern

MAX_CUE_TEXT = 16_000  # characters; a description is shorter, the rest is a pasted log
MAX_QUOTE = 160  # characters of the clause shown as evidence
_CLAUSE_ENDS = "\n.!?。！？;；"
_MEMORY = 64 << 20  # bytes RE2 may use for its automata before it falls back to slower ones
# A denial right before the match turns the cue around: "without docker", "不是网络".
_DENIAL = (
    r"(?i)(?:\b(?:no|without|not (?:a|an|the|using|related to|due to|caused by|because of)|isn't|"
    r"is not|it['’]?s not|that['’]?s not|ruled out|excluding|rather than|instead of)\s+"
    r"(?:\w+\s+){0,2}|"
    r"(?:没有使用|没用|没有用|不是|并非|不存在|排除了?|没有)\s*)$"
)
_DENIAL_REACH = 32  # characters before the match in which a denial counts


@dataclass(frozen=True, slots=True, kw_only=True)
class CueHit:
    """A cue found: the clause it stands in, the line of the text, whether it is denied."""

    cue: Pattern
    quote: str
    line: int
    denied: bool


class CueReader:
    """Finds cues in descriptions; made once from the knowledge, then used for every text."""

    def __init__(self, cues: Sequence[Pattern]) -> None:
        import re2

        options = re2.Options()
        options.case_sensitive = False
        options.log_errors = False
        options.max_mem = _MEMORY
        self._cues = tuple(cues)
        self._single: list[object] = []
        self._set = re2.Set.SearchSet(options)
        for cue in self._cues:
            try:
                self._set.Add(cue.regex)
                self._single.append(re2.compile(cue.regex, options))
            except re2.error as error:
                raise DataError(
                    f"cues.yaml: {cue.id}: {error}", todo="use RE2 syntax, without look-around"
                ) from error
        self._set.Compile()
        self._denial = re2.compile(_DENIAL)

    def read(self, text: str) -> tuple[CueHit, ...]:
        """The cues in `text`, each once, in the order of the file."""
        text = text[:MAX_CUE_TEXT].encode("utf-8", "replace").decode("utf-8")
        found = sorted(self._set.Match(text) or ())
        return tuple(self._hit(number, text) for number in found)

    def _hit(self, number: int, text: str) -> CueHit:
        match = self._single[number].search(text)  # type: ignore[attr-defined]
        start, end = match.span()
        left = max((text.rfind(mark, 0, start) for mark in _CLAUSE_ENDS), default=-1) + 1
        right = min((p for m in _CLAUSE_ENDS if (p := text.find(m, end)) >= 0), default=len(text))
        before = text[max(left, start - _DENIAL_REACH) : start]
        return CueHit(
            cue=self._cues[number],
            quote=_shorten(text[left:right].strip(), text[start:end].strip()),
            line=text.count("\n", 0, start) + 1,
            denied=self._denial.search(before) is not None,
        )


def _shorten(clause: str, match: str) -> str:
    """The clause, or the part of it around the match when it is too long to show."""
    if len(clause) <= MAX_QUOTE:
        return clause
    place = max(clause.find(match), 0)
    start = max(0, min(place - 20, len(clause) - MAX_QUOTE))
    return clause[start : start + MAX_QUOTE].strip()
