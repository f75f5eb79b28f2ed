"""Which frameworks a text names, and what a job of those frameworks uses as well."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import lru_cache

from kb.text.expression_set import ExpressionSet
from kb.types.knowledge import FrameworkName
from kb.types.vocabulary import NameGroup

MAX_CHARS = 100_000  # of a text: who runs what is said early
COMMANDS_CACHED = 2048  # all fixes have 900 commands


def spellings(name: str, words: Sequence[str]) -> tuple[str, ...]:
    """Expressions for a name: its id, dashes and underscores alike, and its other words."""
    return (re.sub(r"\\?[-_]", "[-_]", re.escape(name)), *words)


def name_expression(name: str, words: Sequence[str]) -> re.Pattern[str]:
    """Finds a name whatever its case, bounded by what is not an ASCII letter or digit."""
    either = (rf"(?<![A-Za-z0-9])(?:{word})(?![A-Za-z0-9])" for word in spellings(name, words))
    return re.compile("|".join(f"(?:{word})" for word in either), re.IGNORECASE)


def _linear_expression(name: str, words: Sequence[str]) -> str:
    """What `name_expression` finds, without look-around, for a set of RE2."""
    either = "|".join(spellings(name, words))
    return f"(?:^|[^A-Za-z0-9])(?:{either})(?:[^A-Za-z0-9]|$)"


class FrameworkNames:
    """Finds the names of data/framework_names.yaml."""

    def __init__(self, names: Sequence[FrameworkName]) -> None:
        self._names = {name.id: name for name in names}
        self._logged = {name.logged_as: name.id for name in names if name.logged_as}
        self._found_by = {name.id: name_expression(name.id, name.words) for name in names}
        self._ids = tuple(self._names)
        # All in one automaton: 63 searches one by one took half of the time of a diagnosis.
        self._all = ExpressionSet(
            [(f"framework_names.yaml: {n.id}", _linear_expression(n.id, n.words)) for n in names],
            group=max(1, len(names)),
        )
        self.of_group = lru_cache(maxsize=COMMANDS_CACHED)(self._of_group)
        self._in_command = lru_cache(maxsize=COMMANDS_CACHED)(self.named)

    def named(self, text: str) -> frozenset[str]:
        """The names that stand in a text."""
        return frozenset(self._ids[number] for number in self._all.matching(text[:MAX_CHARS]))

    def is_name(self, text: str) -> bool:
        """Whether a text is one of the names and nothing else."""
        return any(found.fullmatch(text) for found in self._found_by.values())

    def used(self, text: str, logged: Sequence[str] = ()) -> frozenset[str]:
        """What a job uses whose report is `text`, and whose log names `logged`."""
        return self.with_bases({*self.named(text), *(self._logged.get(n, n) for n in logged)})

    def with_bases(self, names: Collection[str]) -> frozenset[str]:
        """`names` and all they are built on."""
        used = {*names}
        waiting = list(used)
        while waiting:
            name = self._names.get(waiting.pop())
            new = {*name.built_on} - used if name else set()
            used |= new
            waiting += new
        return frozenset(used)

    def _of_group(self, names: frozenset[str], group: NameGroup | None) -> frozenset[str]:
        """Those of `names` that are of a group; None: the frameworks proper."""
        return frozenset(
            name
            for name in names
            if (self._names[name].group if name in self._names else None) == group
        )

    def foreign(self, command: str, used: frozenset[str]) -> bool:
        """Whether a command is for another launcher, device or base than those a job uses."""
        named = self._in_command(command)
        if not named:
            return False
        for group in GROUPS_OF_ONE:
            here, there = self.of_group(used, group), self.of_group(named, group)
            if here and there and not here & there:
                return True
        return False


@lru_cache(maxsize=2)
def framework_names(names: tuple[FrameworkName, ...]) -> FrameworkNames:
    """What finds `names`, compiled once."""
    return FrameworkNames(names)


GROUPS_OF_ONE: tuple[NameGroup, ...] = (
    "base",
    "launcher",
    "device",
    "scheduler",
)  # a job uses one of each
