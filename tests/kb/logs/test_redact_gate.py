"""The quick look before the rules: a text may pass it to them for nothing, never the reverse."""

from __future__ import annotations

import re
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from kb.logs.redact import MARK, redact
from tests.kb.logs.test_redact import FACTS, SECRETS

RULES = sys.modules["kb.logs.redact"]._RULES
PIECES = sorted(
    {piece for text, _ in SECRETS.values() for piece in re.split(r"([\s=:/@.\"'_-])", text)}
    | {trigger for rule in RULES for trigger in rule.triggers}
    | {fact[:30] for fact in FACTS}
)


def by_all_rules(text: str) -> tuple[str, int]:
    """The rules one after the other, whatever the text."""
    total = 0
    for rule in RULES:
        text, count = rule.expression.subn(rule.replace or MARK.format(rule.kind), text)
        total += count
    return text, total


@settings(max_examples=1500, deadline=None)
@given(
    st.lists(
        st.sampled_from(PIECES) | st.sampled_from(PIECES).map(str.upper) | st.text(max_size=3),
        max_size=8,
    )
)
def test_the_gate_changes_nothing(pieces: list[str]) -> None:
    """Any mixture of pieces of secrets, in any case, is redacted as without the gate."""
    text = "".join(pieces)
    assert redact(text) == by_all_rules(text)
