"""Polarity: how the sentences of a text speak of the things they name.

The marks of data/polarity.yaml are found in every sentence that names something, by RE2 in time
linear in it. Of two that overlap the one that begins first counts, then the longer one: an idiom
hides the negation inside it. `kb.text.sentence` decides by them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from kb.text.expression_set import ExpressionSet
from kb.text.sentence import OUTCOME, QUESTION_MARKS, Mark, Mention, Sentence
from kb.types.knowledge import PolarityMark
from kb.types.vocabulary import MarkRole, Polarity

# The point of 2.5.1 or of transport.cu:153 ends nothing.
_SENTENCE_END = re.compile(r"[\n!?。！？]|\.(?=\s|$|[^\x00-\x7f]|[\"')\]](?:\s|$))")
_NEGATION = frozenset({MarkRole.NEGATION})
_CLOSING = " ,.;:，。；：！？?!"
MAX_TEXT = 16_000  # characters; a description is shorter, the rest is a pasted log
MAX_SENTENCE = 600  # characters looked at; a longer one is no sentence of a person
MAX_OUTCOME = 150  # the same, of a sentence that only says what came of a change
LAST_WORDS = 14  # bytes behind a negation that stands inside of what is named
MAX_MARKS = 64  # of one sentence


class Sentences:
    """Where the sentences of a text begin and end."""

    def __init__(self, text: str) -> None:
        self._ends = [*(mark.start() for mark in _SENTENCE_END.finditer(text)), len(text)]

    def __len__(self) -> int:
        return len(self._ends)

    def number(self, place: int) -> int:
        """The sentence that a place of the text is in, from 0."""
        return bisect_left(self._ends, place)

    def span(self, number: int) -> tuple[int, int]:
        """Where a sentence begins, and where it ends without its closing mark."""
        return (self._ends[number - 1] + 1 if number else 0), self._ends[number]


class PolarityReader:
    """Decides the polarity of mentions; made once, then used for every text."""

    def __init__(self, marks: Sequence[PolarityMark]) -> None:
        """Read with `marks`.

        Raises:
            DataError: an expression is none that RE2 takes.
        """
        by_role = [(role, [mark.regex for mark in marks if mark.role is role]) for role in MarkRole]
        self._roles = [role for role, own in by_role if own]
        self._expressions = ExpressionSet(
            [
                (f"polarity.yaml: {role}", "|".join(f"(?:{expression})" for expression in own))
                for role, own in by_role
                if own
            ],
            longest_match=True,
        )

    def read(self, text: str) -> TextPolarity:
        """What is needed to judge mentions of `text`, of which `MAX_TEXT` characters count."""
        return TextPolarity(self, text[:MAX_TEXT].encode("utf-8", "replace").decode("utf-8"))

    def turns(self, expression: Any, words: str) -> bool:  # noqa: ANN401 - of RE2
        """Whether a negation at the end of `words` turns what `expression` finds there.

        It does where the expression does not ask for it: without the negation it finds the same.
        """
        negations = [
            mark
            for mark in self.find_marks(words, 0, len(words))
            if mark.role is MarkRole.NEGATION and 0 < mark.start < mark.end < len(words)
        ]
        if not negations or len(words[negations[-1].end :].encode()) > LAST_WORDS:
            return False
        without = f"{words[: negations[-1].start]}{words[negations[-1].end :].lstrip()}"
        same = expression.search(without)
        return same is not None and same.end() - same.start() >= len(without.rstrip())

    def find_marks(self, text: str, start: int, end: int) -> list[Mark]:
        """The marks of a sentence in their order."""
        asks = text[end : end + 1] in QUESTION_MARKS
        sentence = text[start : min(end + asks, start + MAX_SENTENCE)]
        found = [
            Mark(start=start + match.start(), end=start + _end(match), role=self._roles[number])
            for number in self._expressions.matching(sentence)
            for match in self._expressions[number].finditer(sentence)
            if match.end() > match.start()
        ]
        found.sort(key=lambda mark: (mark.start, -mark.end, mark.role))
        apart: list[Mark] = []
        for mark in found:
            if not apart or mark.start >= apart[-1].end:
                apart.append(mark)
        return apart[:MAX_MARKS]


def _end(match: Any) -> int:  # noqa: ANN401 - of RE2
    """Where the words of a match end: what closes them parts a sentence by itself."""
    whole: str = match.group()
    start: int = match.start()
    return start + (len(whole.rstrip(_CLOSING)) or len(whole))


class TextPolarity:
    """A person's words, whose sentences are looked at once however much is asked of them."""

    def __init__(self, reader: PolarityReader, text: str) -> None:
        """Judge with the words of `reader`."""
        self.text = text
        self.reader = reader
        self.sentences = Sentences(text)
        self._marks: dict[int, list[Mark]] = {}

    def judge(
        self, mentions: Sequence[Mention], others: Sequence[Mention] = ()
    ) -> list[Polarity | None]:
        """The polarity of each mention; None where its sentence says nothing of it.

        `others` are named beside them.
        """
        groups: dict[int, list[Mention]] = {}
        for mention in mentions:
            number = self.sentences.number(mention.start)
            if mention.start - self.sentences.span(number)[0] < MAX_SENTENCE:
                groups.setdefault(number, []).append(mention)
        judged: dict[Mention, Polarity | None] = {}
        for number, group in groups.items():
            start, end = self.sentences.span(number)
            marks = self._marks_of(number)
            if number + 1 < len(self.sentences) and number + 1 not in groups:
                outcome = self._outcome_behind(number)
                marks = [*marks, *outcome]
                end = self.sentences.span(number + 1)[1] if outcome else end
            beside = [item for item in others if start <= item.start < end]
            everything = sorted({*group, *beside}, key=lambda item: (item.start, item.end))
            sentence = Sentence(self.text, start, end, marks, everything)
            judged |= {mention: sentence.polarity(mention) for mention in group}
        return [judged.get(mention) for mention in mentions]

    def turns(self, expression: Any, start: int, end: int) -> bool:  # noqa: ANN401 - of RE2
        """Whether a negation inside ``text[start:end]`` turns what `expression` finds there."""
        if not self.has_marks(start, end, _NEGATION):
            return False
        return self.reader.turns(expression, self.text[start:end])

    def has_marks(self, start: int, end: int, roles: frozenset[MarkRole]) -> bool:
        """Whether a mark of one of `roles` begins in ``text[start:end]``."""
        marks = self._marks_of(self.sentences.number(start))
        return any(mark.role in roles and start <= mark.start < end for mark in marks)

    def _marks_of(self, number: int) -> list[Mark]:
        if number not in self._marks:
            self._marks[number] = self.reader.find_marks(self.text, *self.sentences.span(number))
        return self._marks[number]

    def _outcome_behind(self, number: int) -> list[Mark]:
        """The marks of the next sentence, where that only says what came of a change in this."""
        end, after = self.sentences.span(number)[1], self.sentences.span(number + 1)[1]
        if self.text[end] in QUESTION_MARKS or after - end > MAX_OUTCOME:
            return []
        roles = {mark.role for mark in self._marks_of(number)}
        if MarkRole.CHANGE not in roles or roles & OUTCOME:
            return []
        marks = self._marks_of(number + 1)
        roles = {mark.role for mark in marks}
        other = {MarkRole.CHANGE, MarkRole.QUESTION, MarkRole.PLAN}
        is_outcome = roles & {MarkRole.HELPED, MarkRole.IN_VAIN} and not roles & other
        return marks if is_outcome else []
