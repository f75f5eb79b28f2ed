"""How often a language model may be asked, and what asking it cost."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kb.second_reader.answer import NoAnswer, Reason

MINUTE_S, DAY_S = 60.0, 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What this process asked a language model, and what it cost.

    Attributes:
        per_minute: questions allowed in a minute.
        per_day: in 24 hours.
        questions_minute: questions of the last minute.
        questions_day: of the last 24 hours.
        tokens_day: tokens read and written in the last 24 hours, as far as the server tells.
        outcomes: questions since the start by how they ended: `answered`, or why not.
        tokens_in: tokens sent since the start.
        tokens_out: tokens answered since the start.
    """

    per_minute: int
    per_day: int
    questions_minute: int
    questions_day: int
    tokens_day: int
    outcomes: Mapping[str, int]
    tokens_in: int
    tokens_out: int


class Limits:
    """At most so many questions a minute and a day; what they cost is counted."""

    def __init__(self, minute: int, day: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._minute, self._day = minute, day
        self._clock = clock
        self._asked: deque[float] = deque()
        self._spent: deque[tuple[float, int]] = deque()  # when, and how many tokens
        self._outcomes: Counter[str] = Counter()
        self._tokens_in = self._tokens_out = 0
        self._lock = threading.Lock()

    def take(self) -> None:
        """Count one question.

        Raises:
            NoAnswer: there were too many.
        """
        with self._lock:
            minute, day = self._questions()
            limits: tuple[tuple[int, int, Reason], ...] = (
                (minute, self._minute, "limit_minute"),
                (day, self._day, "limit_day"),
            )
            for questions, most, reason in limits:
                if questions >= most:
                    raise NoAnswer(reason, most=str(most))
            self._asked.append(self._clock())

    def count(self, outcome: str, tokens_in: int, tokens_out: int) -> None:
        """Count how a question ended and what it cost, one that no limit was for as well."""
        with self._lock:
            self._outcomes[outcome] += 1
            self._tokens_in += tokens_in
            self._tokens_out += tokens_out
            if tokens_in or tokens_out:
                self._spent.append((self._clock(), tokens_in + tokens_out))

    def usage(self) -> Usage:
        """The counts as they are now."""
        with self._lock:
            minute, day = self._questions()
            return Usage(
                per_minute=self._minute,
                per_day=self._day,
                questions_minute=minute,
                questions_day=day,
                tokens_day=sum(tokens for _, tokens in self._spent),
                outcomes=dict(sorted(self._outcomes.items())),
                tokens_in=self._tokens_in,
                tokens_out=self._tokens_out,
            )

    def _questions(self) -> tuple[int, int]:
        """Questions of the last minute and of the last day; what is older is forgotten."""
        now = self._clock()
        while self._asked and now - self._asked[0] > DAY_S:
            self._asked.popleft()
        while self._spent and now - self._spent[0][0] > DAY_S:
            self._spent.popleft()
        return sum(now - one <= MINUTE_S for one in self._asked), len(self._asked)
