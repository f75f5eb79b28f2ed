"""Statements: what a person says of a topic, and how: trouble, in order, tried in vain, asked.

Topics are named by the expressions of data/topics.yaml, all matched at once by an RE2 set in time
linear in the text; `kb.text.polarity` decides how the sentence speaks of what it names. Where the
fitted models of `kb.diagnose.statement_model` are at hand they decide, by these and by the words.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kb.diagnose.statement_model import NOTHING, Naming, StatementModel
from kb.text.expression_set import ExpressionSet
from kb.text.polarity import TextPolarity
from kb.text.sentence import Mention
from kb.types.knowledge import Topic
from kb.types.vocabulary import Polarity, Standing

MAX_QUOTE = 160  # characters of the sentence shown as evidence
MAX_SENTENCES = 120  # of a text; what follows is a pasted log
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

    def __init__(self, topics: Sequence[Topic], model: StatementModel | None = None) -> None:
        """Find `topics`, by the rules alone where there is no `model`.

        Raises:
            DataError: an expression is none that RE2 takes.
        """
        self._model = model
        self._topics = {topic.id: topic for topic in topics}
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
        sentences = remarks.sentences
        named = self._named(remarks)
        judged = remarks.judge([mention for _, mention in named])
        if self._model is not None:
            return tuple(self._decided(self._model, remarks, named, judged))
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
            statements.append(_statement(remarks, number, topic, polarity, mention))
        return tuple(statements)

    def _decided(
        self,
        model: StatementModel,
        remarks: TextPolarity,
        named: Sequence[tuple[Topic, Mention]],
        judged: Sequence[Polarity | None],
    ) -> Iterator[TopicStatement]:
        """What `model` decides of every sentence, one statement a place that names the topic.

        Where no words of it are known, the place is the empty one before the sentence.
        """
        numbers, texts = sentences_of(remarks)
        places: dict[int, dict[str, list[Mention]]] = {}
        namings = namings_of(remarks, named, judged)
        for topic, mention in named:
            own = places.setdefault(remarks.sentences.number(mention.start), {})
            own.setdefault(topic.id, []).append(mention)
        stated = model.read(texts, [namings.get(number, {}) for number in numbers])
        for number, by_topic in zip(numbers, stated, strict=True):
            left = remarks.sentences.span(number)[0]
            nowhere = [Mention(start=left, end=left, standing=Standing.NAME)]
            for topic_id, polarity in by_topic.items():
                for mention in places.get(number, {}).get(topic_id, nowhere):
                    yield _statement(remarks, number, self._topics[topic_id], polarity, mention)

    def namings(self, remarks: TextPolarity) -> dict[int, dict[str, Naming]]:
        """What the expressions and rules find, by the number of the sentence and by topic."""
        named = self._named(remarks)
        return namings_of(remarks, named, remarks.judge([mention for _, mention in named]))

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


def namings_of(
    remarks: TextPolarity,
    named: Sequence[tuple[Topic, Mention]],
    judged: Sequence[Polarity | None],
) -> dict[int, dict[str, Naming]]:
    """The first place of each topic in a sentence that says something of it, else the first."""
    namings: dict[int, dict[str, Naming]] = {}
    for is_stated in (True, False):
        for (topic, mention), polarity in zip(named, judged, strict=True):
            if (polarity is not None) is not is_stated:
                continue
            number = remarks.sentences.number(mention.start)
            left = remarks.sentences.span(number)[0]
            namings.setdefault(number, {}).setdefault(
                topic.id,
                Naming(
                    start=mention.start - left,
                    end=mention.end - left,
                    standing=str(mention.standing),
                    polarity=str(polarity or NOTHING),
                ),
            )
    return namings


def sentences_of(remarks: TextPolarity) -> tuple[list[int], list[str]]:
    """Numbers and texts of the sentences that are read."""
    spans = ((number, remarks.sentences.span(number)) for number in range(len(remarks.sentences)))
    texts = ((number, remarks.text[left:right]) for number, (left, right) in spans)
    whole = [(number, text) for number, text in texts if text.strip()][:MAX_SENTENCES]
    return [number for number, _ in whole], [text for _, text in whole]


def _statement(
    remarks: TextPolarity, number: int, topic: Topic, polarity: Polarity, mention: Mention
) -> TopicStatement:
    left, right = remarks.sentences.span(number)
    return TopicStatement(
        topic=topic,
        polarity=polarity,
        quote=remarks.text[left:right].strip()[:MAX_QUOTE],
        line=remarks.text.count("\n", 0, mention.start) + 1,
        start=mention.start,
        end=mention.end,
        left=left,
        right=right,
        standing=mention.standing,
    )


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
