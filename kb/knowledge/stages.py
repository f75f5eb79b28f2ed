"""The stages of a job that a question speaks of (data/stages.yaml)."""

from __future__ import annotations

from functools import cache

from kb.knowledge.load import read_yaml
from kb.settings import shipped_data
from kb.text.expression_set import ExpressionSet

FILE = "stages.yaml"  # of data/


def stages_in(text: str) -> frozenset[str]:
    """The stages a text names; none where it says nothing of when."""
    names, expressions = _expressions()
    return frozenset(names[number] for number in expressions.matching(text))


@cache
def _expressions() -> tuple[tuple[str, ...], ExpressionSet]:
    """The stage of every expression, and all expressions in one automaton."""
    words = read_yaml(shipped_data() / FILE, dict[str, tuple[str, ...]])
    pairs = [(stage, one) for stage, some in words.items() for one in some]
    patterns = [(f"{FILE}: {stage}", one) for stage, one in pairs]
    return tuple(stage for stage, _ in pairs), ExpressionSet(patterns, group=len(patterns))
