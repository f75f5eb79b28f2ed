"""What a reading knows of its input, as text again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kb.logs import transcript as module
from kb.logs.transcript import transcript, transcript_digest
from kb.types.incident import Event, Incident, LogReading, TextLine
from kb.types.vocabulary import LineKind


def event(line: int, text: str, *, kind: str = "timeout", file: str = "") -> Event:
    """An event of a log."""
    return Event(pattern_id="p", kind=kind, event="e", line=line, text=text, file=file)  # type: ignore[arg-type]


READING = LogReading(
    incident=Incident(lines=9),
    events=(event(7, "watchdog timeout", file="b"), event(2, "CUDA error in full", file="a")),
    excerpt="",
    words="It hangs.\nWhy?",
    word_places=(("a", 1), ("a", 8)),
    lines=(
        TextLine(number=5, text="export A=1", kind=LineKind.SCRIPT, file="a"),
        TextLine(number=2, text="CUDA error", kind=LineKind.CONFIG, file="a"),
    ),
)


def test_lines_stand_in_their_order() -> None:
    """By file and number; of a line known twice the longer text stands."""
    assert transcript(READING) == (
        "It hangs.\nCUDA error in full\nexport A=1\nWhy?\n\nwatchdog timeout"
    )


def test_words_without_places_come_first() -> None:
    """Places of words are not known any more where a conversation changed them."""
    text = transcript(replace(READING, word_places=(), events=(event(3, "timeout"),), lines=()))
    assert text == "It hangs.\nWhy?\ntimeout"


def test_the_first_error_stays_where_room_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Roots go before timeouts, timeouts before the rest."""
    events = (event(1, "c" * 9, kind="cascade"), event(2, "t" * 9), event(3, "r" * 9, kind="root"))
    reading = LogReading(incident=Incident(), events=events, excerpt="")
    monkeypatch.setattr(module, "TRANSCRIPT_CHARS", 20)
    assert transcript(reading) == "t" * 9 + "\n" + "r" * 9


def test_a_digest_tells_inputs_apart() -> None:
    """By what was read and by how long it was, not by how long reading took."""
    digest = transcript_digest(READING)
    assert digest == transcript_digest(replace(READING, took_ms=5.0))
    assert digest != transcript_digest(replace(READING, words="It hangs.\nWhen?"))
    assert digest != transcript_digest(replace(READING, incident=Incident(lines=10)))
