"""Texts made against an expression from its own parse: what makes backtracking slow, if anything.

A backtracking engine is slow where a repeat is tried again from many places: nested repeats, two
repeats that take the same characters, or one that begins anywhere and never ends. So samples of
every stretch of the expression are repeated, behind what leads to it, and what follows is broken.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

MANY = 40  # a repeat that may go on so long can be made slow
STRETCH = 4  # neighbours that are repeated together
SEPARATORS = ("", " ", "\n")
BROKEN = "\x01"  # in no expression
# What the sets of expressions are asked for first: the same character for all sets that have it.
LETTERS = ("a", "0", " ", "_", ".", "-", "A", ":", "/", ",", "(", '"', "中", "\n", "=", "x", "|")

Node = tuple[Any, Any]


class Sampler:
    """Short texts that parts of an expression match, made of one character where that is allowed.

    `letter` is taken wherever a set allows it; `sparse` texts lack what may be missing.
    """

    def __init__(self, flags: int, letter: str, *, sparse: bool = False) -> None:
        self._sparse = sparse
        self._ignores_newline = not flags & re.DOTALL
        self._letters = (letter, *LETTERS)
        self._groups: dict[int, str] = {}

    def text(self, nodes: Sequence[Node]) -> str:
        """A text that all nodes match, one behind the other."""
        return "".join(map(self._one, nodes))

    def _one(self, node: Node) -> str:
        code, value = node
        if code is codes.LITERAL:
            return chr(value)
        if code in (codes.IN, codes.NOT_LITERAL, codes.ANY):
            return self._character(code, value)
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            least, most, inner = value
            if self._sparse and (least, most) == (0, 1):
                return ""
            return self.text(inner) * max(1, min(int(least), 12))
        if code is codes.SUBPATTERN:
            text = self.text(value[3])
            if value[0] is not None:
                self._groups[value[0]] = text
            return text
        if code is codes.ATOMIC_GROUP:
            return self.text(value)
        if code is codes.BRANCH:
            return self.text(value[1][0])
        if code is codes.GROUPREF:
            return self._groups.get(value, "")
        return ""

    def _character(self, code: object, value: Any) -> str:
        allowed = (c for c in self._letters if _takes(code, value, c))
        is_any = code is codes.ANY and self._ignores_newline
        first = next((c for c in allowed if c != "\n" or not is_any), "")
        return first or (chr(_first_of(value)) if code is codes.IN else "~")


def _takes(code: object, value: Any, character: str) -> bool:
    if code is codes.ANY:
        return True
    if code is codes.NOT_LITERAL:
        return ord(character) != int(value)
    negated = bool(value) and value[0][0] is codes.NEGATE
    return negated != any(_in(item, character) for item in value)


def _in(item: Node, character: str) -> bool:
    code, value = item
    if code is codes.LITERAL:
        return ord(character) == int(value)
    if code is codes.RANGE:
        return bool(value[0] <= ord(character) <= value[1])
    if code is codes.CATEGORY:
        name = str(value).removeprefix("CATEGORY_").removeprefix("UNI_").removeprefix("NOT_")
        has = {
            "DIGIT": character.isdigit(),
            "SPACE": character.isspace(),
            "WORD": character.isalnum() or character == "_",
        }[name]
        return has != ("NOT_" in str(value))
    return False


def _first_of(items: Sequence[Node]) -> int:
    for code, value in items:
        if code is codes.LITERAL:
            return int(value)
        if code is codes.RANGE:
            return int(value[0])
    return ord("~")


def _paths(nodes: Sequence[Node], budget: int = 12) -> list[list[Node]]:
    """The expression as sequences without groups; of alternatives each in turn, bounded."""
    paths: list[list[Node]] = [[]]
    for node in nodes:
        code, value = node
        choices: list[list[Node]] = [[node]]
        if code is codes.SUBPATTERN:
            choices = _paths(value[3], budget)
        elif code is codes.ATOMIC_GROUP:
            choices = _paths(value, budget)
        elif code is codes.BRANCH:
            choices = [path for branch in value[1] for path in _paths(branch, 4)]
        elif code in (codes.ASSERT, codes.ASSERT_NOT, codes.AT):
            choices = [[]]
            if code is codes.ASSERT and value[0] == 1 and _repeats(value[1]):
                choices = _paths(value[1], 2)
        # the first choice goes on with every path, the others once each
        paths = [[*path, *choices[0]] for path in paths[:budget]] + [
            [*paths[0], *choice] for choice in choices[1:]
        ]
    return paths


def _repeats(nodes: Any) -> bool:
    return any(_is_long(node) for node in _all_nodes(nodes))


def _all_nodes(nodes: Any) -> Iterator[Node]:
    for node in nodes:
        code, value = node
        yield node
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            yield from _all_nodes(value[2])
        elif code is codes.SUBPATTERN:
            yield from _all_nodes(value[3])
        elif code is codes.BRANCH:
            for branch in value[1]:
                yield from _all_nodes(branch)
        elif code in (codes.ASSERT, codes.ASSERT_NOT):
            yield from _all_nodes(value[1])
        elif code is codes.ATOMIC_GROUP:
            yield from _all_nodes(value)


def _is_long(node: Node) -> bool:
    code, value = node
    return code in (codes.MAX_REPEAT, codes.MIN_REPEAT) and int(value[1]) >= MANY


def _inner_paths(path: Sequence[Node]) -> Iterator[tuple[list[Node], list[Node]]]:
    """The path itself, and what is inside its repeats behind what leads there."""
    yield [], list(path)
    for place, (code, value) in enumerate(path):
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            for inner in _paths(value[2], 4):
                if len(inner) > 1:  # one turn of a repeat
                    yield list(path[:place]), inner


def hostile_units(pattern: re.Pattern[Any], letters: int = 3) -> Iterator[tuple[str, str, str]]:
    """Heads, the units to repeat behind them, and ends, each triple once; none without repeats.

    They are made of that many `letters`, those that most of its repeats take.
    """
    text = pattern.pattern
    text = text.decode("latin-1") if isinstance(text, bytes) else text
    parse = parser.parse(text, pattern.flags & ~re.DEBUG)
    if not _repeats(parse):
        return
    seen: set[tuple[str, str, str]] = set()
    for letter in _useful_letters(parse)[:letters]:
        full = Sampler(pattern.flags, letter)
        sparse = Sampler(pattern.flags, letter, sparse=True)
        for whole in _paths(parse):
            for number, (before, path) in enumerate(_inner_paths(whole)):
                # What may be missing tells two repeats apart that take the same within a third.
                for sampler in (full, sparse) if number else (full,):
                    lead = sampler.text(before)
                    turn = [(lead, sampler.text(path), BROKEN)] if number else []
                    for triple in (*turn, *_of_path(sampler, lead, path)):
                        if triple[1] and triple not in seen:
                            seen.add(triple)
                            yield triple


def _of_path(sampler: Sampler, lead: str, path: list[Node]) -> Iterator[tuple[str, str, str]]:
    texts = [sampler.text([node]) for node in path]
    for end in range(1, len(path) + 1):
        for start in range(max(0, end - STRETCH), end):
            near = path[max(0, start - 1) : end + 1]
            if not any(map(_is_long, near)):
                continue
            unit = "".join(texts[start:end])
            head = lead + "".join(texts[:start])
            yield head, unit, BROKEN
            for separator in SEPARATORS:
                yield "", f"{head}{unit}{separator}" if head else unit + separator, BROKEN


def _useful_letters(parse: Any) -> list[str]:
    """Characters that the repeats of an expression take: two that most take, and rarer ones."""
    bodies = [node[1][2] for node in _all_nodes(parse) if _is_long(node)]
    counts: dict[str, int] = {}
    for letter in LETTERS:
        taken = 0
        for body in bodies:
            taken += any(
                code in (codes.IN, codes.ANY, codes.NOT_LITERAL) and _takes(code, value, letter)
                for code, value in _all_nodes(body)
            )
        if taken:
            counts[letter] = taken
    best = sorted(counts, key=lambda letter: (-counts[letter], LETTERS.index(letter)))
    return best[:3] or [LETTERS[0]]


def hostile_text(unit: tuple[str, str, str], length: int) -> str:
    """The text of about `length` characters that a head, a unit and an end of these make."""
    head, body, end = unit
    return f"{head[:length]}{body * max(1, (length - len(head)) // len(body))}{end}"[-length - 1 :]
