"""A sentence in parts: how it speaks of each thing it names.

It is cut at its commas, its conjunctions and at words such as "but". The marks in the parts
(negations, words of state, changes and what came of them, questions, guesses, the past) decide for
each place that names something. A list shares what is said at its head or behind its last item.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kb.types.vocabulary import MarkRole, Polarity, Standing

BARE_CHARS = 16  # beside what it names, in a part that only continues a list
LOOK_CHARS = 22  # the same, in a part that says that somebody looked: "we also ... on node 3"
PREDICATE_CHARS = 32  # of a part that only says how the things before it stand
NEGATION_REACH = 40  # characters between a negation and what it negates
CLOSE_REACH = 24  # the same of a circumstance, which nobody lists
STATE_GAP = 14  # the same between a negation and a word of state
LIST_GAP = 4  # characters before an item of a list
QUESTION_MARKS = ("?", "？")

STATE = frozenset({MarkRole.GOOD, MarkRole.BAD})
OUTCOME = frozenset({MarkRole.HELPED, MarkRole.RUNS, MarkRole.IN_VAIN})
TELLING = STATE | OUTCOME | {MarkRole.NEGATION, MarkRole.ABSENCE, MarkRole.RULED_OUT}
OWN = TELLING | {MarkRole.FAILS}
_WRONG = (MarkRole.BAD, MarkRole.FAILS)
_NONE = (MarkRole.ABSENCE, MarkRole.RULED_OUT)
BOUNDARY = frozenset({MarkRole.CONTRAST, MarkRole.JOINT, MarkRole.REASON})
STRONG = frozenset({Standing.TROUBLE, Standing.SOUND})

_CARRYING = frozenset({"or", "/", "、", "和", "或", "或者", "以及", "及"})
_LISTING = _CARRYING | {",", "，", "and", "nor", "plus", "as well as"}
_SCALE = re.compile(
    r"[0-9]\s?(?:x\s?)?(?:gpus?|nodes?|cards?|ranks?|machines?|[张块台个]?(?:卡|机|节点|机器))|[单双两四八多][卡机]",
    re.IGNORECASE,
)
_NEITHER = re.compile(r"\bneither\b|既", re.IGNORECASE)
_IS_NOT = re.compile(r"not|n['’]t|不是|并非|rule", re.IGNORECASE)
_REPORTED = re.compile(  # the words right before an error that somebody met
    r"(?:\b(?:says?|said|prints?|printed|reports?|reported|gets?|got|raise[sd]?|throws?|threw"
    r"|(?:end|ended|ends|quits?|dies?|died|fails?|failed|away|aborts?) (?:in|with))"
    r"|报(?:出|了)?|打印(?:出|了)?|抛出?|以)\s{0,2}(?:`[^`\n]{0,60})?$",
    re.IGNORECASE,
)
_FOUND = re.compile(  # words by which somebody tells what they saw
    r"\b(?:is|are|was|were|has|have|had|saw|seen|found|shows?|showed|uses?|using|picks?|picked|says?)\b"
    r"|是|走|选|用|发现|显示|指|变|跑",
    re.IGNORECASE,
)
_JOB = re.compile(
    r"\b(?:it|this|training|job|run|everything|script|we|all ranks?)\b|训练|任务|程序|作业|我",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A place that names something.

    `needed`: to have none of it is the trouble. `turned`: a negation stands inside, without which
    the words would name the same.
    """

    start: int
    end: int
    standing: Standing
    needed: bool = False
    turned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A place with words that decide polarity."""

    start: int
    end: int
    role: MarkRole


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A stretch between two boundaries; `opener` are the words of the one before it."""

    start: int
    end: int
    marks: tuple[Mark, ...]
    opener: str = ""
    opposed: bool = False

    def having(self, *roles: MarkRole) -> list[Mark]:
        return [mark for mark in self.marks if mark.role in roles]

    def holds(self, item: Mention) -> bool:
        return self.start <= item.start < self.end


class Sentence:
    """One sentence with its marks, and all that is named in it."""

    def __init__(
        self, text: str, start: int, end: int, marks: Sequence[Mark], mentions: Sequence[Mention]
    ) -> None:
        """Read ``text[start:end]``; `marks` and `mentions` stand in the order of the text."""
        self._text = text
        self._end = end
        self._mentions = mentions
        self._marks = [
            mark
            for mark in marks
            if mark.role is not MarkRole.IDIOM and not self._is_part_of_name(mark)
        ]
        self._parts = list(self._cut(start, end))

    def polarity(self, mention: Mention) -> Polarity | None:
        """How the sentence speaks of one of its mentions; None where it says nothing of it."""
        at = self._part_of(mention.start)
        if mention.standing is Standing.CIRCUMSTANCE:
            denied = self._negated(self._parts[at], mention, CLOSE_REACH)
            return Polarity.DENIED if denied else Polarity.TROUBLE
        if mention.standing is Standing.GENERIC and self._is_in_phrase(mention):
            return None
        if self._is_past(at):
            return Polarity.BEFORE
        if self._is_asked(at):
            return Polarity.ASKED
        state = self._state(at, mention)
        if self._is_guessed(at):
            return state if state in (Polarity.IN_ORDER, Polarity.DENIED) else Polarity.GUESSED
        if state in (Polarity.TROUBLE, None) and self._is_only_looked_at(at):
            return Polarity.LOOKED_AT
        return self._outcome(at, mention) or state

    # --- parts ---

    def _is_part_of_name(self, mark: Mark) -> bool:
        """Whether the mark belongs to words that name something and say how it stands."""
        if mark.role not in OWN:
            return False
        for item in self._mentions:
            strong = item.standing in STRONG
            if item.start <= mark.start and mark.end <= item.end:
                if strong or mark.role in STATE:
                    return True
                continue
            apart = mark.end <= item.start or item.end <= mark.start
            around = mark.start <= item.start and item.end <= mark.end
            if strong and not apart and not around:
                return True
        return False

    def _is_in_phrase(self, mention: Mention) -> bool:
        """Whether a mark holds the mention: "made the timeout vanish"."""
        return any(
            mark.role in OUTCOME | STATE and mark.start <= mention.start and mention.end <= mark.end
            for mark in self._marks
        )

    def _cut(self, start: int, end: int) -> Iterator[_Part]:
        begin, opener, opposed = start, "", False
        ends = [
            mark
            for mark in self._marks
            if mark.role in BOUNDARY
            and not any(
                item.start <= mark.start and mark.end < item.end for item in self._mentions
            )  # a comma inside of what is named
        ]
        for mark in [*ends, Mark(start=end, end=end, role=MarkRole.JOINT)]:
            inside = [
                other
                for other in self._marks
                if begin <= other.start < mark.start and other.role not in BOUNDARY
            ]
            yield _Part(
                start=begin, end=mark.start, marks=tuple(inside), opener=opener, opposed=opposed
            )
            begin = mark.end
            opener = self._text[mark.start : mark.end].strip().lower()
            opposed = mark.role is MarkRole.CONTRAST

    def _part_of(self, place: int) -> int:
        numbers = (number for number, part in enumerate(self._parts) if place < part.end)
        return next(numbers, len(self._parts) - 1)

    def _named(self, part: _Part) -> list[Mention]:
        return [item for item in self._mentions if part.holds(item)]

    def _is_bare(self, part: _Part) -> bool:
        """Whether the part only continues a list: it names something and says nothing of it."""
        named = self._named(part)
        if not named or part.having(*TELLING):
            return False
        rest = self._text[part.start : part.end]
        size = len(rest.strip()) - sum(min(item.end, part.end) - item.start for item in named)
        return size <= _chars(rest, BARE_CHARS)

    def _heads_list(self, part: _Part) -> bool:
        """Whether a list can begin with the part: it ends with what it names, or names nothing."""
        named = self._named(part)
        rest = self._text[named[-1].end : part.end].strip() if named else ""
        return len(rest) <= (BARE_CHARS if rest.isascii() else LIST_GAP // 2)

    def _is_closed(self, number: int) -> bool:
        """Whether the part tells how a smaller or larger job goes: "8 cards are fine"."""
        part = self._parts[number]
        states = part.having(*STATE)
        return bool(states) and bool(_SCALE.search(self._text, part.start, states[0].start))

    def _is_predicate(self, part: _Part) -> bool:
        """Whether the part is short enough to speak of what stands before it: ", all in order"."""
        rest = self._text[part.start : part.end]
        return len(rest.strip()) <= _chars(rest, PREDICATE_CHARS)

    # --- the frame of a sentence ---

    def _is_past(self, at: int) -> bool:
        """Whether the part tells of another occasion: all do until the present is named."""
        past = [n for n, part in enumerate(self._parts) if part.having(MarkRole.PAST)]
        now = [n for n, part in enumerate(self._parts) if part.having(MarkRole.PRESENT)]
        if not past or at in now:
            return False
        return at <= past[0] or not any(past[0] < number <= at for number in now)

    def _is_asked(self, at: int) -> bool:
        """Whether the part is asked or announced: from the question on, and what leads to it."""
        if any(part.having(MarkRole.WHY) for part in self._parts):
            return False
        frames = [
            number
            for number, part in enumerate(self._parts)
            if part.having(MarkRole.QUESTION, MarkRole.PLAN)
        ]
        if not frames:
            return self._text[self._end : self._end + 1] in QUESTION_MARKS
        first = frames[0]
        while first and not self._parts[first - 1].having(*TELLING):
            first -= 1
        return at >= first

    def _is_guessed(self, at: int) -> bool:
        """Whether a guess stands in the part, leads to it, or is thrown in behind it."""
        for number in range(at, -1, -1):
            if self._parts[number].having(MarkRole.GUESS):
                return True
            if self._parts[number].opposed:
                break
            if number < at and self._parts[number].having(*TELLING):
                break
        return at + 1 < len(self._parts) and self._is_only_guess(self._parts[at + 1])

    def _is_only_guess(self, part: _Part) -> bool:
        marks = part.having(MarkRole.GUESS)
        rest = len(self._text[part.start : part.end].strip())
        return bool(marks) and rest - (marks[0].end - marks[0].start) <= BARE_CHARS // 2

    def _is_only_looked_at(self, at: int) -> bool:
        """Whether the part says that somebody looked, and neither it nor the next what they saw."""
        part, following = self._parts[at], self._parts[at + 1 : at + 2]
        looks = part.having(MarkRole.LOOK)
        if not looks or part.having(*OWN):
            return False
        if any(self._tells_wrong(one) for one in following) or _FOUND.search(
            self._text, looks[0].end, part.end
        ):
            return False
        rest = self._text[part.start : part.end]
        said: list[Mark | Mention] = [*looks, *self._named(part)]
        size = len(rest.strip()) - sum(min(one.end, part.end) - one.start for one in said)
        return size <= _chars(rest, LOOK_CHARS)

    def _tells_wrong(self, part: _Part) -> bool:
        wrong = part.having(*_WRONG) and not part.having(MarkRole.NEGATION)
        return bool(wrong) and self._is_predicate(part)

    # --- changes and what came of them ---

    def _outcome(self, at: int, mention: Mention) -> Polarity | None:
        if self._is_reported(at, mention):
            return None
        for number, part in enumerate(self._parts):
            for mark in part.having(*OUTCOME):
                if self._is_about(number, mark, at, mention):
                    failed = mark.role is MarkRole.IN_VAIN or self._negated(part, mark, STATE_GAP)
                    return Polarity.TRIED_IN_VAIN if failed else Polarity.HELPED
        return None

    def _is_about(self, number: int, mark: Mark, at: int, mention: Mention) -> bool:
        """Whether what came of a change, told in part `number`, is about a mention in part `at`."""
        first, last = self._reach_back(number), number
        if not any(first <= self._part_of(item.start) <= number for item in self._mentions):
            last = len(self._parts) - 1  # "it did not help to …, to … or to …"
        if not first <= at <= last:
            return False
        if mention.standing in STRONG:
            return bool(self._parts[at].having(MarkRole.CHANGE))
        around = mark.start <= mention.start and mention.end <= mark.end
        return (
            around
            or mention.standing is Standing.SETTING
            or any(part.having(MarkRole.CHANGE) for part in self._parts[first : last + 1])
        )

    def _reach_back(self, number: int) -> int:
        """The first part that an outcome told in part `number` is about."""
        first = number
        while first:
            before = self._parts[first - 1]
            if self._parts[first].opposed and first != number:
                break
            if before.having(*OUTCOME):
                break
            if before.having(*TELLING) and not before.having(MarkRole.CHANGE):
                break
            first -= 1
        return first

    # --- states ---

    def _state(self, at: int, mention: Mention) -> Polarity | None:
        own = self._own_state(at, mention)
        continues = mention.standing is Standing.TROUBLE and self._is_bare(self._parts[at])
        continues = continues and not self._is_reported(at, mention)
        if own is not None and not continues:
            return own
        return self._shared_state(at, mention) or own

    def _is_reported(self, at: int, mention: Mention) -> bool:
        """Whether the mention is what a program said: "and prints `X`".

        It continues no list, and no change is told by it.
        """
        part = self._parts[at]
        if mention.standing is not Standing.TROUBLE or part.opener in _CARRYING:
            return False  # "never connects or prints `X`"
        return bool(_REPORTED.search(self._text[part.start : mention.start]))

    def _own_state(self, at: int, mention: Mention) -> Polarity | None:
        """What the mention's own part says of it."""
        part = self._parts[at]
        negated = self._negated(part, mention, NEGATION_REACH)
        if mention.standing is Standing.TROUBLE:
            absent = negated or self._is_absent(part, mention, MarkRole.ABSENCE)
            absent = absent and not self._taken_back(at)
            return Polarity.DENIED if absent else Polarity.TROUBLE
        if mention.standing is Standing.SOUND:
            wrong = negated or self._taken_back(at)
            return Polarity.TROUBLE if wrong else Polarity.IN_ORDER
        state = self._nearest_state(part, mention)
        if state is not None:
            turned = self._negated(part, state, STATE_GAP)
            said = _state_of(state, turned=turned or (negated and state.start > mention.end))
            return Polarity.TROUBLE if self._taken_back(at) else said
        if self._says_more(part, mention):
            return None
        return self._told_without_state(part, mention, negated=negated)

    def _told_without_state(
        self, part: _Part, mention: Mention, *, negated: bool
    ) -> Polarity | None:
        """What is said of a name by other words than those of state."""
        runs = [mark for mark in part.having(MarkRole.RUNS) if mark.start >= mention.end]
        if runs:
            return (
                Polarity.TROUBLE if self._negated(part, runs[0], STATE_GAP) else Polarity.IN_ORDER
            )
        if self._fails(part, mention):
            return Polarity.DENIED if negated else Polarity.TROUBLE
        if self._is_absent(part, mention):
            return Polarity.DENIED
        if not negated or _NEITHER.search(self._text, part.start, mention.start):
            return None  # what "neither" denies stands behind the last item of its list
        lacks = mention.needed and not self._is_not(part, mention)
        return Polarity.TROUBLE if lacks else Polarity.DENIED

    def _shared_state(self, at: int, mention: Mention) -> Polarity | None:
        """What the list that the part belongs to says: at its head, or behind its last item."""
        parts = self._parts
        head = at
        while head and self._is_bare(parts[head]) and not parts[head].opposed:
            head -= 1
        if head < at and self._heads_list(parts[head]) and not self._is_closed(head):
            shared = self._said_by(head, mention)
            if shared is not None:
                return shared
        if self._says_more(parts[at], mention):
            return None
        return self._said_behind(at, mention)

    def _said_behind(self, at: int, mention: Mention) -> Polarity | None:
        head = self._parts[at]
        lists = self._is_bare(head) or _NEITHER.search(self._text, head.start, head.end)
        for number in range(at + 1, len(self._parts)):
            part = self._parts[number]
            named = self._named(part)
            if named and not lists:
                return None
            if part.opposed or part.having(*OUTCOME):
                return None
            if part.opener not in _LISTING and named:
                return None
            if not named and not self._is_predicate(part):
                return None
            shared = self._said_by(number, mention)
            if mention.standing is Standing.TROUBLE and named and not part.having(*_NONE):
                shared = None  # "Xid 79, no ECC errors"
            if shared is not None:
                return shared
            if named and not self._is_bare(part) and part.having(*OWN):
                return None
        return None

    def _said_by(self, number: int, mention: Mention) -> Polarity | None:
        """What a part says of the items of its list."""
        part = self._parts[number]
        states = part.having(*STATE)
        if states:
            state = states[-1]
            turned = self._negated(part, state, NEGATION_REACH)
            said = _state_of(state, turned=turned)
            if mention.standing is Standing.TROUBLE and said is Polarity.IN_ORDER:
                return Polarity.DENIED
            return said
        if part.having(*_NONE):
            return Polarity.DENIED
        if part.having(MarkRole.NEGATION):
            return Polarity.TROUBLE if mention.needed else Polarity.DENIED
        troubles = [item for item in self._named(part) if item.standing is Standing.TROUBLE]
        return self._own_state(number, troubles[0]) if troubles else None

    def _taken_back(self, at: int) -> bool:
        """Whether the next part says the contrary of the same thing: "not full but very slow"."""
        if at + 1 >= len(self._parts):
            return False
        part = self._parts[at + 1]
        if self._named(part) or not self._is_predicate(part):
            return False
        bad = [
            mark for mark in part.having(MarkRole.BAD) if not self._negated(part, mark, STATE_GAP)
        ]
        if not bad or _JOB.search(self._text, part.start, bad[0].start):
            return False
        return part.opposed or part.opener == "and" or bad[0].start - part.start <= LIST_GAP

    def _says_more(self, part: _Part, mention: Mention) -> bool:
        """Whether other words of the part say by themselves how things stand."""
        return any(item.standing in STRONG and item != mention for item in self._named(part))

    def _nearest_state(self, part: _Part, mention: Mention) -> Mark | None:
        """The word of state about the mention: the first behind it, the last before, or around."""
        states = part.having(*STATE)
        after = [mark for mark in states if mark.start >= mention.end]
        before = [mark for mark in states if mark.end <= mention.start]
        around = [mark for mark in states if mark not in after and mark not in before]
        return next(iter((*after[:1], *before[-1:], *around[:1])), None)

    def _negated(self, part: _Part, thing: Mark | Mention, reach: int) -> bool:
        """Whether an odd number of negations stands before `thing` in its part, near enough."""
        near = [
            mark
            for mark in part.having(MarkRole.NEGATION)
            if (mark.end <= thing.start and thing.start - mark.end <= reach)
            or (mark.start <= thing.start and thing.end <= mark.end)
        ]
        listed = part.opener == "nor" or (not near and self._carries(part, thing))
        inside = isinstance(thing, Mention) and thing.turned
        return (len(near) + listed + inside) % 2 == 1

    def _carries(self, part: _Part, thing: Mark | Mention) -> bool:
        """Whether the part goes on with a list that began with a negation: "no A or B"."""
        number = self._parts.index(part)
        if not number or part.opener not in _CARRYING or thing.start - part.start > LIST_GAP:
            return False
        before = self._parts[number - 1]
        named = self._named(before)
        return bool(named) and self._negated(before, named[-1], NEGATION_REACH)

    def _fails(self, part: _Part, mention: Mention) -> bool:
        """Whether the mention itself hangs or dies, rather than the job."""
        return any(
            mark.start >= mention.end
            and not _JOB.search(self._text, mention.end, mark.start)
            and "就" not in self._text[mention.end : mark.start]  # "…, then the job hangs"
            for mark in part.having(MarkRole.FAILS)
        )

    def _is_absent(self, part: _Part, mention: Mention, *roles: MarkRole) -> bool:
        return any(mark.start >= mention.end for mark in part.having(MarkRole.RULED_OUT, *roles))

    def _is_not(self, part: _Part, mention: Mention) -> bool:
        """Whether it is said that the mention is not it, rather than that there is none."""
        marks = part.having(MarkRole.NEGATION)
        if any(m.start <= mention.start and mention.end <= m.end for m in marks):
            return True  # "跟网络没关系"
        near = [m for m in marks if m.end <= mention.start]
        return bool(near) and bool(_IS_NOT.search(self._text[near[-1].start : near[-1].end + 4]))


def _state_of(mark: Mark, *, turned: bool) -> Polarity:
    if mark.role is MarkRole.GOOD:
        return Polarity.TROUBLE if turned else Polarity.IN_ORDER
    return Polarity.DENIED if turned else Polarity.TROUBLE


def _chars(text: str, limit: int) -> int:
    """The limit for `text`: a Chinese word has half as many characters."""
    return limit if text.isascii() else limit // 2
