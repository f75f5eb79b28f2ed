"""Numbers of a text with what they count: ranks, lines, shares, durations, versions.

``rank 3`` and ``line 3`` are different figures, ``10 min`` and ``600 s`` are the same one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from kb.chat.wordlists import WordLists

MAX_RANGE = 4096  # ranks a range is written out to; more are compared by their ends
PLAIN = "number"
PERCENT = "percent"
DURATION = "duration"
CLOCK = "clock"
# Kinds that must be the evidence's own: a person may ask about rank 5 where it says rank 3.
TYPED = frozenset({"rank", "line", "step", "seq", "node", "device", "epoch", "port"}) | {
    PERCENT,
    DURATION,
    CLOCK,
}

_SLUG = re.compile(r"[A-Za-z]\w*(?:[-_/.]\w+){2,}")  # a name of parts; its digits count nothing
_NUMBER = r"\d{1,3}(?:,\d{3})+(?![\d.])|\d+(?:\.\d+)*"
_JOINT = r"\s*(?:,\s*(?:and|or)\b|[,、&]|\band\b|\bor\b|\bto\b|[-–—~]|和|与|及|或|到|至)\s*"
_LIST = re.compile(rf"(?<![\w.])(?:{_NUMBER})(?:{_JOINT}(?:{_NUMBER})(?![\w]))*")
_ONE = re.compile(_NUMBER)
_RANGE = re.compile(r"\s*(?:[-–—~]|\bto\b|到|至)\s*")
_CLOCK = re.compile(r"(?<![\d:.])\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?![\d:])")
_MILLISECONDS = re.compile(r"\(ms\)\s*[=:]\s*(\d+)", re.IGNORECASE)
_PERCENT = re.compile(r"\s*(?:%|percent\b)")


@dataclass(frozen=True, slots=True)
class Figure:
    """A number and what it counts; durations are in milliseconds."""

    kind: str
    value: str


class FigureReader:
    """Reads figures with the nouns and units of the word lists."""

    def __init__(self, words: WordLists) -> None:
        self._words = words
        self._kind_of = {noun: kind for kind, nouns in words.numbered.items() for noun in nouns}

    @cached_property
    def _before(self) -> re.Pattern[str]:
        nouns = "|".join(sorted(map(re.escape, self._kind_of), key=len, reverse=True))
        return re.compile(
            rf"(?:(?<![A-Za-z])({nouns})|(第))\s*(?:[#:=\[(]|是|为)?\s*$", re.IGNORECASE
        )

    @cached_property
    def _glued(self) -> re.Pattern[str]:
        nouns = "|".join(noun for noun in self._kind_of if noun.isascii())
        return re.compile(rf"(?<![A-Za-z_])({nouns})[_\[]?(\d+)\b", re.IGNORECASE)

    @cached_property
    def _after(self) -> re.Pattern[str]:
        nouns = "|".join(sorted(map(re.escape, self._kind_of), key=len, reverse=True))
        return re.compile(rf"\s*(号)?\s*({nouns})(?![A-Za-z])", re.IGNORECASE)

    @cached_property
    def _unit(self) -> re.Pattern[str]:
        units = sorted(map(re.escape, self._words.durations_ms), key=len, reverse=True)
        return re.compile(rf"\s*({'|'.join(units)})(?![A-Za-z])", re.IGNORECASE)

    @cached_property
    def _spelt(self) -> re.Pattern[str]:
        latin = [word for word in self._words.number_words if word.isascii()]
        han = [word for word in self._words.number_words if not word.isascii()]
        return re.compile(
            rf"\b({'|'.join(latin)})\b|([{''.join(han)}])(?=\s*(?:号|个|张|台|次|卡|倍|成|rank|节点|小时|分钟|秒))"
            rf"|(?:(?<=rank)|(?<=rank\s)|(?<=第))([{''.join(han)}])",
            re.IGNORECASE,
        )

    def read(self, text: str) -> frozenset[Figure]:
        """All figures of a normalised text."""
        text = _SLUG.sub(" ", text)
        text = _MILLISECONDS.sub(r" \1 ms", text)
        text = self._glued.sub(r"\1 \2", text)
        text = self._spelt.sub(lambda found: self._digits(found[0]), text)
        found = {Figure(CLOCK, clock) for clock in _CLOCK.findall(text)}
        text = _CLOCK.sub(" ; ", text)  # or "rank 0 to 12:31" would be thirteen ranks
        for match in _LIST.finditer(text):
            found.update(self._list(match[0], text[: match.start()], text[match.end() :]))
        return frozenset(found)

    def _digits(self, word: str) -> str:
        return f" {self._words.number_words[word.lower()]} "

    def _list(self, numbers: str, before: str, after: str) -> Iterator[Figure]:
        """The figures of a run such as ``1, 2 and 4-6``; a unit belongs to its last number."""
        ones = list(_ONE.finditer(numbers))
        last = ones[-1][0].replace(",", "")
        unit = self._own_unit(last, after)
        if unit:
            yield unit
            ones.pop()
        kind = self._kind(before, after, unit)
        for place, one in enumerate(ones):
            value = one[0].replace(",", "")
            yield Figure(kind, value)
            following = ones[place + 1] if place + 1 < len(ones) else None
            if following and _RANGE.fullmatch(numbers[one.end() : following.start()]):
                yield from _between(kind, value, following[0])

    def _own_unit(self, number: str, after: str) -> Figure | None:
        if _PERCENT.match(after):
            return Figure(PERCENT, f"{float_of(number):.12g}")
        unit = self._unit.match(after)
        if unit:
            factor = self._words.durations_ms[unit[1].lower()]
            return Figure(DURATION, f"{float_of(number) * factor:.12g}")
        return None

    def _kind(self, before: str, after: str, unit: Figure | None) -> str:
        lead = self._before.search(before[-24:])
        if lead and lead[1]:
            return self._kind_of[lead[1].lower()]
        follow = None if unit else self._after.match(after)
        if follow and (lead or follow[1]):  # 第 3 行, 3 号 rank; "8 ranks" is a count
            return self._kind_of[follow[2].lower()]
        return PLAIN


def float_of(number: str) -> float:
    """The number's value; one with several dots is read up to the second."""
    return float(".".join(number.split(".")[:2]))


def _between(kind: str, first: str, last: str) -> Iterator[Figure]:
    """The whole numbers between two ends."""
    if first.isdigit() and last.isdigit() and int(first) < int(last) <= int(first) + MAX_RANGE:
        for number in range(int(first) + 1, int(last)):
            yield Figure(kind, str(number))
