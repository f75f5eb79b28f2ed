"""Lists of hits on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import click
import pytest

from app.render.listing import LISTED_NOTES, entry_rows, note_list, place_text, render_search
from kb.knowledge.labels import Words
from kb.knowledge.notes import load_note
from kb.settings import shipped_data
from kb.types.entries import Hit, RankPlace, SearchResult
from kb.types.knowledge import Bilingual
from kb.types.vocabulary import Language
from tests.app.samples import make_entry

HIT = Hit(
    entry_id="one",
    kind="case",
    title=Bilingual(zh="标题", en="Title"),
    project="",
    url="",
    status="confirmed",
    cause="",
    score=0.5,
    chunk_id="one#0",
    snippet="",
)
MANY = {"e": 1, "d": 1, "c": 4, "b": 2, "a": 1, "f": 1}
TWO = {"thread": 1, "case": 2}


@pytest.mark.parametrize(
    ("facets", "language", "expected"),
    [
        pytest.param({"cause": MANY}, "en", ["  cause: c 4, b 2, a 1, d 1, e 1"], id="five"),
        pytest.param(
            {"kind": TWO, "cause": {"b": 1, "a": 1}},
            "en",
            ["  cause: a 1, b 1", "  kind: case 2, thread 1"],
            id="order",
        ),
        pytest.param({"kind": TWO}, "zh", ["  kind: case 2, thread 1"], id="zh"),
        pytest.param({"backend": {"nccl": 3}}, "en", [], id="one-value"),
        pytest.param({"op": MANY}, "en", [], id="not-listed"),
        pytest.param({}, "en", [], id="none"),
    ],
)
def test_hits_end_with_what_narrows_them_down(
    labels: dict[str, Bilingual],
    facets: Mapping[str, dict[str, int]],
    language: Language,
    expected: list[str],
) -> None:
    """Values with counts, the most frequent first, ties by name, five at most; one is no choice."""
    result = SearchResult(
        query="x", hits=(HIT,), similar_enough=True, facets=dict(facets), took_ms=1.0
    )
    text = click.unstyle(render_search(result, Words(labels, language), width=80))
    heading = {"en": "Narrow down", "zh": "可筛选"}[language]
    _, _, below = text.partition(f"{heading}\n")
    assert below.splitlines() == expected
    assert (heading in text) == bool(expected)


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (RankPlace(rank=5, gpu="5"), "rank 5 @ GPU 5"),
        (RankPlace(rank=0, host="gpu-07", gpu="3 (1b:00)"), "rank 0 @ gpu-07 GPU 3 (1b:00)"),
        (RankPlace(rank=5), "rank 5"),
        (RankPlace(rank=None, host="gpu-07"), "gpu-07"),
    ],
)
def test_a_place_says_what_its_numbers_are(
    labels: Mapping[str, Bilingual], place: RankPlace, text: str
) -> None:
    """Rank and GPU are told apart, and a rank nobody knows is not named."""
    assert place_text(place) == text
    entry = replace(make_entry("incident-1", "rank-crash", kind="incident"), culprits=(place,))
    assert dict(entry_rows(entry, Words(labels, "en")))["row.culprit"] == text


def test_the_first_notes_about_something_are_listed(labels: dict[str, Bilingual]) -> None:
    """Eight titles with their ids under one heading, and nothing where there are none."""
    notes = [
        replace(load_note(shipped_data() / "notes" / "timeout-ddp.md"), id=f"note-{number}")
        for number in range(LISTED_NOTES + 1)
    ]
    words = Words(labels, "en")
    heading, *lines = [click.unstyle(line) for line in note_list(notes, words, 80)]
    assert heading == "Notes about it"
    assert lines == [
        f"  - How to set the timeout of DDP  [note-{number}]" for number in range(LISTED_NOTES)
    ]
    assert note_list([], words, 80) == []
