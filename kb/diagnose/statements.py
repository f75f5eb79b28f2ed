"""Statements: what a person says of a topic, and how: trouble, in order, tried in vain, asked.

Topics are named by the expressions of data/topics.yaml, all matched at once by an RE2 set in time
linear in the text; `kb.text.polarity` decides how the sentence speaks of what it names.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kb.text.expression_set import ExpressionSet
from kb.text.polarity import TextPolarity
from kb.text.sentence import Mention
from kb.types.knowledge import Topic
from kb.types.vocabulary import Polarity, Standing

MAX_QUOTE = 160  # characters of the sentence shown as evidence
MENTIONS = 32  # of one expression in a text that are looked at
COMPACT = 24  # characters of a term: an "oom-killer" is no GPU out of memory
# Of two places that begin and end alike the one that says more counts.
_ORDER = (Standing.TROUBLE, Standing.SOUND, Standing.SETTING, Standing.NAME, Standing.GENERIC)
_NAMES = (Standing.NAME, Standing.GENERIC)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStatement:
    """What a sentence says of a topic.

    `line` counts from 1, `start` and `end` are of the words that name the topic, `left` and `right`
    of their sentence.
    """

    topic: Topic
    polarity: Polarity
    quote: str
    line: int
    start: int
    end: int
    left: int
    right: int
    standing: Standing = Standing.NAME


class StatementReader:
    """Finds statements in a person's words; made once from the knowledge, used for every text."""

    def __init__(self, topics: Sequence[Topic]) -> None:
        """Find `topics`.

        Raises:
            DataError: an expression is none that RE2 takes.
        """
        self._named_by = [
            (topic, standing) for topic in topics for standing, _ in _expressions(topic)
        ]
        self._expressions = ExpressionSet(
            [
                (f"topics.yaml: {standing} of {topic.id}", joined)
                for topic in topics
                for standing, joined in _expressions(topic)
            ]
        )

    def read(self, remarks: TextPolarity) -> tuple[TopicStatement, ...]:
        """The statements of a text, one a place that names a topic, in its order."""
        text, sentences = remarks.text, remarks.sentences
        named = self._named(remarks)
        judged = remarks.judge([mention for _, mention in named])
        specific = {
            sentences.number(mention.start)
            for (_, mention), polarity in zip(named, judged, strict=True)
            if polarity is not None and mention.standing is not Standing.GENERIC
        }
        statements: list[TopicStatement] = []
        for (topic, mention), polarity in zip(named, judged, strict=True):
            number = sentences.number(mention.start)
            general = mention.standing is Standing.GENERIC and number in specific
            if polarity is None or general:
                continue
            left, right = sentences.span(number)
            statements.append(
                TopicStatement(
                    topic=topic,
                    polarity=polarity,
                    quote=text[left:right].strip()[:MAX_QUOTE],
                    line=text.count("\n", 0, mention.start) + 1,
                    start=mention.start,
                    end=mention.end,
                    left=left,
                    right=right,
                    standing=mention.standing,
                )
            )
        return tuple(statements)

    def topics_in(self, remarks: TextPolarity) -> frozenset[str]:
        """The ids of the topics a text names, whatever it says of them."""
        return frozenset(topic.id for topic, _ in self._named(remarks))

    def _named(self, remarks: TextPolarity) -> list[tuple[Topic, Mention]]:
        """The places that name a topic, in their order; of two that overlap the longer one."""
        text = remarks.text
        found = [
            (
                topic,
                Mention(
                    start=match.start(),
                    end=match.end(),
                    standing=standing,
                    needed=topic.needed,
                    turned=standing is Standing.TROUBLE
                    and remarks.turns(expression, match.start(), match.end()),
                ),
            )
            for number in self._expressions.matching(text)
            for topic, standing in [self._named_by[number]]
            for expression in [self._expressions[number]]
            for match in itertools.islice(expression.finditer(text), MENTIONS)
            if match.end() > match.start()
        ]
        found.sort(
            key=lambda item: (
                item[1].standing in _NAMES,
                item[1].start - item[1].end,
                _ORDER.index(item[1].standing),
                item[1].start,
                item[0].id,
            )
        )
        apart: list[tuple[Topic, Mention]] = []
        for topic, mention in found:
            if not any(_hides(other, mention, same is topic) for same, other in apart):
                apart.append((topic, mention))
        return sorted(apart, key=lambda item: (item[1].start, item[0].id))


def distinct(statements: Iterable[TopicStatement]) -> tuple[TopicStatement, ...]:
    """Of what a sentence says of a topic each thing once: "no Xid, and DCGM passes" is one."""
    firsts: dict[tuple[int, str, Polarity], TopicStatement] = {}
    for item in statements:
        sense = Polarity.IN_ORDER if item.polarity is Polarity.DENIED else item.polarity
        firsts.setdefault((item.left, item.topic.id, sense), item)
    return tuple(firsts.values())


def _hides(other: Mention, mention: Mention, same_topic: bool) -> bool:
    """Whether `mention` is no mention of its own beside `other`, which overlaps it.

    A longer term hides the shorter one it begins or ends with: "oom-killed" is no "killed".
    """
    if mention.end <= other.start or other.end <= mention.start:
        return False
    if same_topic or mention.standing in _NAMES:
        return True
    inside = other.start <= mention.start and mention.end <= other.end
    ends_alike = (mention.start == other.start) != (mention.end == other.end)
    return inside and (ends_alike or _is_term(mention, other))


def _is_term(mention: Mention, other: Mention) -> bool:
    return mention.end - mention.start < other.end - other.start <= COMPACT


def _expressions(topic: Topic) -> list[tuple[Standing, str]]:
    by_standing = (
        (Standing.NAME, topic.names),
        (Standing.GENERIC, topic.generic),
        (Standing.SETTING, topic.settings),
        (Standing.TROUBLE, topic.troubles),
        (Standing.SOUND, topic.sounds),
    )
    return [
        (standing, "|".join(f"(?:{expression})" for expression in expressions))
        for standing, expressions in by_standing
        if expressions
    ]
