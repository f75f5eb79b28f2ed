"""Many expressions looked for at once, in time linear in the text.

RE2 matches a set of expressions with one automaton, and falls back to a slow one where that grows
beyond its memory, as it does for hundreds of long alternatives. Small groups stay small.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kb.errors import DataError

GROUP = 4  # expressions of one automaton
_MEMORY = 2 << 20  # bytes RE2 may use for one automaton; all of them are kept


class ExpressionSet:
    """Which of many expressions occur in a text, whatever their case; and each of them alone."""

    def __init__(
        self,
        expressions: Sequence[tuple[str, str]],
        *,
        longest_match: bool = False,
        group: int = GROUP,
    ) -> None:
        """Look for `expressions`, pairs of where an expression comes from and itself.

        `group` of them share an automaton: short literal words may all be in one.

        Raises:
            DataError: an expression is none that RE2 takes, or too long; says where it stands.
        """
        import re2

        options = re2.Options()
        options.case_sensitive = False
        options.log_errors = False
        options.longest_match = longest_match
        options.max_mem = _MEMORY
        self._groups: list[Any] = []
        self._single: list[Any] = []
        self._size = group
        for start in range(0, len(expressions), group):
            automaton = re2.Set.SearchSet(options)
            for origin, expression in expressions[start : start + group]:
                try:
                    automaton.Add(expression)
                    self._single.append(re2.compile(expression, options))
                except re2.error as error:
                    raise DataError(
                        f"{origin}: {error}", todo="use shorter RE2 syntax, without look-around"
                    ) from error
            try:
                automaton.Compile()
            except re2.error as error:
                raise DataError(
                    f"{expressions[start][0]} and the next {group - 1}: {error}",
                    todo="shorten these expressions",
                ) from error
            self._groups.append(automaton)

    def __getitem__(self, number: int) -> Any:  # noqa: ANN401 - of RE2
        """The expression of that number, compiled."""
        return self._single[number]

    def matching(self, text: str) -> list[int]:
        """The numbers of the expressions that occur in `text`, in their order."""
        return [
            self._size * base + number
            for base, automaton in enumerate(self._groups)
            for number in sorted(automaton.Match(text) or ())
        ]
