"""Cues: each finds its examples, denials turn around, text of any size is read in linear time."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.diagnose.cues import MAX_CUE_TEXT, MAX_QUOTE, CueReader
from kb.diagnose.signals import DENIED_SHARE, cue_signals
from kb.knowledge import read_yaml
from kb.settings import shipped_data
from kb.types import Pattern

CUES = read_yaml(shipped_data() / "cues.yaml", tuple[Pattern, ...])
READER = CueReader(CUES)


@pytest.mark.parametrize("cue", CUES, ids=lambda cue: cue.id)
def test_a_cue_finds_its_examples_and_not_its_negatives(cue: Pattern) -> None:
    """Every example is found by its cue, no negative is."""
    reader = CueReader([cue])
    assert [text for text in cue.examples if not reader.read(text)] == []
    assert [text for text in cue.negatives if reader.read(text)] == []


@pytest.mark.parametrize("cue", CUES, ids=lambda cue: cue.id)
def test_re2_reads_a_cue_as_re_does(cue: Pattern) -> None:
    """RE2 and `re` agree on all examples of all cues."""
    expression = re.compile(cue.regex, re.IGNORECASE | re.ASCII)
    reader = CueReader([cue])
    for other in CUES:
        for text in (*other.examples, *other.negatives):
            assert bool(reader.read(text)) == bool(expression.search(text)), text


@pytest.mark.parametrize(
    ("text", "denied"),
    [
        ("it runs inside docker", False),
        ("it runs without docker", True),
        ("the hang is not related to the network interface", True),
        ("不是网卡的问题", True),
        ("换了网卡也一样", False),
    ],
    ids=["plain", "without", "not-related", "zh-not", "zh-plain"],
)
def test_a_denial_turns_a_cue_around(text: str, denied: bool) -> None:
    """What is denied right before the match counts the other way, weakly."""
    hits = [h for h in READER.read(text) if h.cue.id in ("cue-docker", "cue-interface")]
    assert [hit.denied for hit in hits] == [denied]
    signal = cue_signals(hits)[0]
    factor = DENIED_SHARE if denied else 1.0
    assert signal.weights == {c: w * factor for c, w in hits[0].cue.causes.items()}


def test_a_quote_is_a_literal_piece_of_the_text() -> None:
    """The quote stands in the text, on the line named, and is short enough to show."""
    text = "title\n" + "word " * 80 + "the DistributedSampler is used here " + "word " * 80
    hit = next(h for h in READER.read(text) if h.cue.id == "cue-sampler")
    assert hit.quote in text
    assert "Sampler" in hit.quote
    assert len(hit.quote) <= MAX_QUOTE
    assert hit.line == 2


@given(st.text(max_size=400))
def test_any_text_is_read(text: str) -> None:
    """No text breaks the reader, lone surrogates included, and quotes come out of it."""
    cleaned = text[:MAX_CUE_TEXT].encode("utf-8", "replace").decode()
    assert all(hit.quote in cleaned for hit in READER.read(text + "\ud800"))


def test_every_cue_speaks_both_languages_or_names_a_technical_term() -> None:
    """Meanings stand in both languages, and the Chinese one is Chinese."""
    han = re.compile(r"[\u4e00-\u9fff]")
    assert [cue.id for cue in CUES if not han.search(cue.means.zh)] == []
    assert [cue.id for cue in CUES if han.search(cue.means.en)] == []


def test_cues_live_in_data(data_dir: Path) -> None:
    """Each id stands once and begins with the name of its kind."""
    cues = read_yaml(data_dir / "cues.yaml", tuple[Pattern, ...])
    assert len({cue.id for cue in cues}) == len(cues)
    assert all(cue.id.startswith("cue-") and cue.scope == "text" for cue in cues)
