"""The quick look before the rules: a text may pass it to them for nothing, never the reverse."""

from __future__ import annotations

import re
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from kb.logs.reader import LogReader
from kb.text.redact import is_clean, redact
from tests.kb.text.test_redact import FACTS, SECRETS

RULES = sys.modules["kb.text.redact"]._RULES
PIECES = sorted(
    {piece for text, _ in SECRETS.values() for piece in re.split(r"([\s=:/@.\"'_-])", text)}
    | {trigger for rule in RULES for trigger in rule.triggers}
    | {fact[:30] for fact in FACTS}
)


def by_all_rules(text: str) -> tuple[str, int]:
    """The rules one after the other, whatever the text."""
    total = 0
    done = sys.modules["kb.text.redact"]._plain(text)
    for rule in RULES:
        done, count = rule.apply(done)
        total += count
    return (done, total) if total else (text, 0)


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


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=8), st.data())
def test_no_part_of_a_clean_text_holds_a_secret(pieces: list[str], data: st.DataObject) -> None:
    """What is said of many lines at once holds for each of them."""
    text = "".join(pieces)
    start = data.draw(st.integers(0, len(text)))
    part = text[start : data.draw(st.integers(start, len(text)))]
    if is_clean(text):
        assert by_all_rules(part) == (part, 0)


def test_a_line_of_another_encoding_hides_no_secret(reader: LogReader) -> None:
    """Where not all lines are UTF-8, each is looked at as it is shown."""
    lines = [
        "[rank0]: ValueError: 第一行，编码是 UTF-8".encode(),
        "[rank1]: ValueError: 密码：hunter22".encode("gb18030"),
        b"[rank2]: ValueError: no encoding has this: \xff\xff",
    ]
    reading = reader.read_stream([b"\n".join(lines)])
    shown = [event.text for event in reading.events if event.rank == 1]
    assert shown == ["[rank1]: ValueError: 密码：<redacted:secret>"]
    assert reading.redactions >= 1
