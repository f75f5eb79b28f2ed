"""Expressions that read what others wrote: linear in the text, and of ASCII digits alone.

RE2 and hyperscan are linear by construction. The others are measured: on texts made against each
from its own parse, at `SHORT` characters here, at 10,000 and 100,000 in `make fuzz`.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import pytest

from tests.fuzz.expressions import Expression, in_code, in_data
from tests.fuzz.hostile_text import hostile_text, hostile_units

LONG = int(os.environ.get("GROWTH_CHARS", "10000"))  # 100,000 in `make fuzz`
LETTERS = 1 if LONG <= 10_000 else 3  # texts against an expression are made of
SHORT = 400 if LONG <= 10_000 else 1000
SUSPICIOUS_S = 0.0002  # of 400 characters; a linear expression takes a tenth of that
S_A_CHARACTER = 2.5e-6  # 0.25 s for 100 kB; slower ones must at least be linear
GROWTH = 8  # for four times the text; 4 is linear, 16 quadratic
HOPELESS = 8  # times as slow as allowed: however it grows
HANG_S = 0.5
LOOKS = 3  # all must find a text slow: beside other work one of them may be, whatever the text

# Expressions that are given short texts only: how long these are at most, and who sees to it.
SHORT_TEXTS = {
    "kb/diagnose/cues.py:_WORD": 40,  # _WORD_REACH
    "kb/diagnose/launchers.py:_LAUNCH": 400,  # LINE_CHARS
    "kb/evidence/detect.py:_EVIDENCE_NAME": 255,  # MAX_NAME
    "kb/knowledge/hardware.py:_FORM": 64,  # MAX_NAME
    "data/stack_places.yaml": 300,  # MAX_FRAME
}
# Expressions that read only files of `data/` or of the page, which came with the product.
OWN_FILES = {
    "kb/chat/answers/notes.py:_BLOCK",
    "kb/knowledge/notes.py",
    "app/server/browser_guard.py:_SCRIPT",
}


class HangError(Exception):
    """An expression did not end in time."""


@cache
def _all() -> tuple[Expression, ...]:
    found, _ = in_code()
    return (*found, *in_data())


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """End the work by an exception; `re` looks at signals while it matches."""

    def end(_number: int, _frame: object) -> None:
        raise HangError

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _seconds(
    expression: Expression, text: str, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Time for one text, the shortest of three tries when it is long.

    The wall clock for short ones, as the processor's counts in steps of milliseconds on some
    machines; the processor's for long ones, which others interrupt.
    """
    times: list[float] = []
    while not times or (len(times) < 3 and min(times) > SUSPICIOUS_S):
        start = clock()
        try:
            with _time_limit(HANG_S):
                expression.run(text)
        except HangError:
            return HANG_S
        times.append(clock() - start)
    return min(times)


def slow_text(expression: Expression, short: int, long: int) -> str | None:
    """A text that takes the expression too long, or None; quick texts are not tried at length."""
    names = (expression.where, expression.where.split(":")[0])
    limit = min(SHORT_TEXTS.get(name, long) for name in names)
    for unit in hostile_units(expression.pattern, LETTERS):
        text = hostile_text(unit, min(short, limit))
        if _seconds(expression, text) < SUSPICIOUS_S * (short / 400) ** 2:
            continue
        if all(_is_slow(expression, unit, limit) for _ in range(LOOKS)):
            return hostile_text(unit, limit)
    return None


def _is_slow(expression: Expression, unit: str, limit: int) -> bool:
    """Whether one look at a long text finds it slow, and slower than in proportion to a quarter."""
    text = hostile_text(unit, limit)
    seconds = _seconds(expression, text, time.process_time)
    allowed = max(S_A_CHARACTER * len(text), 0.002)
    if seconds <= allowed or seconds > HOPELESS * allowed:
        return seconds > allowed
    quarter = hostile_text(unit, limit // 4)
    return seconds > GROWTH * _seconds(expression, quarter, time.process_time)


def test_the_hostile_texts_find_a_quadratic_expression() -> None:
    """What was slow once is found: the test below cannot pass for want of bad texts."""
    frames = r"^ {3,6}(?P<f>\S.*?) \((?P<file>.+?)(?::(?P<line>\d+))?\)\s*$"
    device = r"mlx[45]_\w+.{0,80}[Ll]ink Down"
    counts = r"\d(?:\s{0,4}[·|,]?\s{0,4}\d{1,99} views?)*"  # where it has to fit all of a text
    old = (frames, device, r"(\d+)(?:\.[A-Za-z]+)*\Z", r"\s*(?:#|//).*$", r"(?:a+)+b", counts)
    for text in old:
        expression = Expression("a test", re.compile(text))
        assert slow_text(expression, SHORT, LONG) is not None, text


def test_every_expression_is_linear_in_a_text_made_against_it() -> None:
    """No expression over foreign text takes more than linear time for what is made against it."""
    seen: set[tuple[object, int, bool]] = set()
    slow: list[str] = []
    for expression in _all():
        key = (expression.pattern.pattern, expression.pattern.flags, expression.from_start)
        own = expression.where in OWN_FILES or expression.where.split(":")[0] in OWN_FILES
        if key in seen or own:
            continue
        seen.add(key)
        text = slow_text(expression, SHORT, LONG)
        if text is not None:
            slow.append(f"{expression.where}: {text[:60]!r}")
    assert slow == []
    assert len(seen) > 900  # the expressions were there


@pytest.mark.parametrize("where", sorted([*SHORT_TEXTS, *OWN_FILES]))
def test_exceptions_name_expressions_that_exist(where: str) -> None:
    """An exception ends with the expression it was made for."""
    assert any(e.where == where or e.where.startswith(f"{where}:") for e in _all())


def test_numbers_are_ascii() -> None:
    """A digit of another script is none: `int` and `Version` would refuse or misread it."""
    wrong = [
        expression.where
        for expression in _all()
        if isinstance(expression.pattern.pattern, str)
        and re.search(r"(?<!\\)(?:\\\\)*\\d", expression.pattern.pattern)
        and not expression.pattern.flags & re.ASCII
        and not expression.where.startswith("data/")
    ]
    assert wrong == []
