"""Cues: what a person's description says about a hang, found by the patterns of data/cues.yaml.

All cues are matched at once by an RE2 set, in time linear in the text whatever is pasted.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kb.diagnose.statements import TopicStatement
from kb.text.expression_set import ExpressionSet
from kb.text.polarity import TextPolarity
from kb.text.sentence import OUTCOME, STRONG, Mention
from kb.types.knowledge import Pattern
from kb.types.vocabulary import MarkRole, Polarity, Standing

MAX_QUOTE = 160  # characters of the clause shown as evidence
# The point of 2.5.1 or of transport.cu:153 ends nothing.
_CLAUSE_END = re.compile(r"[\n!?。！？;；]|\.(?=\s|$|[^\x00-\x7f]|[\"')\]](?:\s|$))")
_WORD = re.compile(r"[!-~]*$")  # what stands of a word before a place in it
_MENTIONS = 32  # of one thing in a text that are looked at
_WORD_REACH = 40  # characters of a word that a quote begins with rather than cut
# Words a cue asks for itself: "raising the timeout did not help" is what that cue is about.
_SAYS_ITSELF = OUTCOME | {MarkRole.NEGATION, MarkRole.ABSENCE, MarkRole.GOOD}
_HELPS = "-helps"  # how the ids of cues end that say that a change helped
_IN_VAIN, _HELPED = frozenset({MarkRole.IN_VAIN}), frozenset({MarkRole.HELPED, MarkRole.RUNS})
_STATING = (Standing.SETTING, Standing.TROUBLE, Standing.SOUND)  # names alone are judged as well


@dataclass(frozen=True, slots=True, kw_only=True)
class CueHit:
    """A cue in a text: the clause it stands in, the line, and how the sentence speaks of it.

    `start` and `end` are of the words that it matched. `is_stated`: a statement about the same
    words says so, and weighs in its place.
    """

    cue: Pattern
    quote: str
    line: int
    polarity: Polarity = Polarity.TROUBLE
    start: int = 0
    end: int = 0
    is_stated: bool = False

    @property
    def denied(self) -> bool:
        """Whether it is said not to be so, or that what it names is in order."""
        return self.polarity in (Polarity.DENIED, Polarity.IN_ORDER)

    def overlaps(self, other: CueHit | TopicStatement) -> bool:
        """Whether the words of both have a place in common."""
        return self.start < other.end and other.start < self.end


class CueReader:
    """Finds cues in descriptions; made once from the knowledge, then used for every text."""

    def __init__(self, cues: Sequence[Pattern]) -> None:
        """Find `cues`.

        Raises:
            DataError: an expression is none that RE2 takes.
        """
        self._cues = tuple(cues)
        self._expressions = ExpressionSet([(f"cues.yaml: {c.id}", c.regex) for c in self._cues])

    def read(
        self, remarks: TextPolarity, statements: Sequence[TopicStatement] = ()
    ) -> tuple[CueHit, ...]:
        """The cues in a text, each once, in the order of the file.

        What `statements` of the same text say of a cue's words counts for the cue, too.
        """
        text = remarks.text
        matching = self._expressions.matching(text)
        ends = [mark.start() for mark in _CLAUSE_END.finditer(text)] if matching else []
        hits = {number: self._hit(number, remarks, ends, statements) for number in matching}
        things = [number for number in matching if self._cues[number].sound]
        words = [number for number in things if not self._cues[number].causes]
        weighty = [hits[number] for number in things if number not in words]
        twice = {  # one remark counts once
            number for number in words if any(hits[number].overlaps(other) for other in weighty)
        }
        return tuple(hit for number, hit in hits.items() if number not in twice)

    def _hit(
        self,
        number: int,
        remarks: TextPolarity,
        ends: Sequence[int],
        statements: Sequence[TopicStatement],
    ) -> CueHit:
        """The first mention that is as the cue says; the first one where none is."""
        cue, text = self._cues[number], remarks.text
        mentions = self._mentions(number, remarks)
        others = [
            Mention(start=item.start, end=item.end, standing=item.standing)
            for item in statements
            if item.standing in STRONG
        ]
        hits = [
            CueHit(
                cue=cue,
                quote="",
                line=text.count("\n", 0, mention.start) + 1,
                polarity=polarity or Polarity.TROUBLE,
                start=mention.start,
                end=mention.end,
            )
            for mention, polarity in zip(mentions, remarks.judge(mentions, others), strict=True)
        ]
        hits = [_as_stated(hit, remarks, statements) for hit in hits]
        hit = next((item for item in hits if item.polarity is Polarity.TROUBLE), hits[0])
        before, after = bisect_left(ends, hit.start), bisect_left(ends, hit.end)
        left = ends[before - 1] + 1 if before else 0
        right = ends[after] if after < len(ends) else len(text)
        quote = _shorten(text[left:right].strip(), text[hit.start : hit.end].strip())
        if cue.id.endswith(_HELPS) and hit.polarity is Polarity.TROUBLE:
            vain = remarks.has_marks(left, right, _IN_VAIN)
            if vain and not remarks.has_marks(left, right, _HELPED):
                hit = replace(hit, polarity=Polarity.TRIED_IN_VAIN)
        return replace(hit, quote=quote)

    def _mentions(self, number: int, remarks: TextPolarity) -> list[Mention]:
        """The places a cue matches; the cue of a thing only names it."""
        cue, expression = self._cues[number], self._expressions[number]
        return [
            Mention(
                start=match.start(),
                end=match.end(),
                standing=Standing.NAME if cue.sound else Standing.CIRCUMSTANCE,
                needed=cue.needed,
                turned=remarks.turns(expression, match.start(), match.end()),
            )
            for match in itertools.islice(expression.finditer(remarks.text), _MENTIONS)
        ]


def _as_stated(hit: CueHit, remarks: TextPolarity, statements: Sequence[TopicStatement]) -> CueHit:
    """The hit as a statement about its words means them, unless the cue asks for such words."""
    if hit.polarity is not Polarity.TROUBLE or remarks.has_marks(hit.start, hit.end, _SAYS_ITSELF):
        return hit
    stated = [
        item.polarity for item in statements if item.standing in _STATING and hit.overlaps(item)
    ]
    return replace(hit, polarity=stated[0], is_stated=True) if stated else hit


def _shorten(clause: str, match: str) -> str:
    """The clause, or the part of it around the match when it is too long to show."""
    if len(clause) <= MAX_QUOTE:
        return clause
    place = max(clause.find(match), 0)
    start = max(0, min(place - 20, len(clause) - MAX_QUOTE))
    word = _WORD.search(clause, max(0, start - _WORD_REACH), start)
    start = word.start() if word else start
    return clause[start : start + MAX_QUOTE].strip()
