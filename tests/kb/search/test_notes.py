"""Notes are found by what they are asked, in both languages, or not at all."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from kb.knowledge.load import Knowledge
from kb.knowledge.notes import parse_note
from kb.search.notes import MIN_SCORE, MUCH, NEAR, TOLD, UNKNOWN, NoteFinder, question_of
from kb.service import Service
from kb.types.knowledge import Bilingual, Note, NoteQuestions
from tests.kb.fakes import SplitTokenizer, WordEmbedder
from tests.kb.knowledge.test_notes import NOTE


def toy(identifier: str, asked: str, told: str = "", *settings: str) -> Note:
    """A note with one way of asking, in letters both languages share."""
    note = parse_note(NOTE, name="toy-note.md")
    same = Bilingual(zh=asked, en=asked)
    return replace(
        note,
        id=identifier,
        title=same,
        questions=NoteQuestions(zh=(), en=()),
        body=Bilingual(zh=told, en=told),
        frameworks=(),
        settings=settings,
    )


NOTES = (toy("a", "alpha beta", "gamma"), toy("b", "beta delta"), toy("c", "epsilon", "", "ZETA"))


def finder(translations: dict[str, str] | None = None) -> NoteFinder:
    """A finder over the toy notes."""
    return NoteFinder(NOTES, WordEmbedder(), SplitTokenizer(translations))


def rarity(notes: int) -> float:
    """Of a word that so many of the three toy notes have."""
    return float(np.log(1 + (3 - notes + 0.5) / (notes + 0.5)))


@pytest.mark.parametrize(
    ("question", "note", "common", "whole"),
    [
        pytest.param("alpha", "a", rarity(1), rarity(1), id="asked"),
        pytest.param("gamma", "a", TOLD * rarity(1), rarity(1), id="told in the body"),
        pytest.param("zeta", "c", rarity(1), rarity(1), id="name of a setting"),
        pytest.param("beta", "b", rarity(2), rarity(2), id="common word"),
        pytest.param("alpha omega", "a", rarity(1), rarity(1) + UNKNOWN, id="unknown word"),
        pytest.param("alpha 600", "a", rarity(1), rarity(1), id="number of no note"),
        pytest.param("ein", "a", rarity(1), rarity(1), id="translation"),
        pytest.param("omega", "a", 0.0, UNKNOWN, id="nothing"),
    ],
)
def test_a_score_is_the_mean_of_meaning_and_wording(
    question: str, note: str, common: float, whole: float
) -> None:
    """Wording is the mean of the share of the words and of how much they are in all."""
    ranked = {found.id: score for found, score in finder({"ein": "alpha"}).rank(question)}
    vectors = WordEmbedder().encode_queries(
        [question, next(n for n in NOTES if n.id == note).title.en]
    )
    meaning = max(0.0, float(vectors[0] @ vectors[1]))
    wording = (common / whole + 1 - np.exp(-common / MUCH)) / 2
    assert ranked[note] == pytest.approx((meaning + wording) / 2, abs=1e-6)


def test_equals_stand_in_the_order_of_their_ids() -> None:
    """What nothing tells apart is ordered by id."""
    notes = [toy(name, "alpha") for name in "zxy"]
    twins = NoteFinder([*notes, *NOTES[1:]], WordEmbedder(), SplitTokenizer())
    assert [hit.note.id for hit in twins.find("alpha", language="en")] == ["x", "y", "z"]


def test_none_is_found_below_the_least_score() -> None:
    """An empty question, and one of words no note has, find nothing."""
    for question in ("", "   ", "unheard words"):
        assert finder().find(question, language="en") == ()


def test_others_are_shown_where_they_come_near() -> None:
    """What is shown beside the best has three quarters of its score, and its limit holds."""
    ranked = finder().rank("beta")
    assert [note.id for note, _ in ranked[:2]] in (["a", "b"], ["b", "a"])
    (_, best), (_, second), (_, last) = ranked
    assert best >= MIN_SCORE
    shown = finder().find("beta", language="zh")
    assert len(shown) == 1 + (second >= NEAR * best) + (last >= NEAR * best)
    assert len(finder().find("beta", language="zh", limit=1)) == 1
    assert [hit.score for hit in shown] == [score for _, score in ranked[: len(shown)]]


def test_no_notes_answer_nothing() -> None:
    """Knowledge without notes finds none."""
    assert NoteFinder((), WordEmbedder(), SplitTokenizer()).find("alpha", language="en") == ()


def test_of_several_lines_the_words_of_a_person_are_asked() -> None:
    """A log beside a question does not count."""
    log = (
        "[rank0]:[E ProcessGroupNCCL.cpp:563] [Rank 0] Watchdog caught collective operation timeout"
    )
    assert question_of(f"How do I set the timeout of DDP?\n{log}\n{log}") == (
        "How do I set the timeout of DDP?"
    )
    assert question_of(log) == log


@pytest.mark.parametrize(
    ("zh", "en", "note"),
    [
        ("怎么给 deepspeed 设超时", "how to set the deepspeed timeout", "timeout-deepspeed"),
        ("SeqNum 是什么意思", "what does SeqNum mean", "meaning-seqnum"),
        ("docker 里共享内存不够", "shared memory too small in docker", "shm-docker"),
    ],
)
def test_both_languages_find_the_same_note(shipped: Service, zh: str, en: str, note: str) -> None:
    """A question finds its note in either language; its title is in the reader's."""
    found = [shipped.find_notes(question)[0] for question in (zh, en)]
    assert [hit.note.id for hit in found] == [note, note]
    title = shipped.note(note).title
    assert [hit.title for hit in found] == [title.zh, title.en]
    assert shipped.find_notes(en, "zh")[0].title == title.zh


@pytest.mark.parametrize("question", ["北京明天天气怎么样", "my laptop battery drains fast"])
def test_questions_of_other_fields_find_none(shipped: Service, question: str) -> None:
    """What is about something else has no note."""
    assert shipped.find_notes(question) == ()


def test_every_note_is_found_by_its_own_questions(shipped: Service, knowledge: Knowledge) -> None:
    """Each way of asking finds its note among three."""
    lost = [
        (note.id, question)
        for note in knowledge.notes
        for question in (*note.questions.zh, *note.questions.en)
        if note.id not in [hit.note.id for hit in shipped.find_notes(question)]
    ]
    assert lost == []


def test_finding_takes_milliseconds(shipped: Service) -> None:
    """A question of twenty words is answered in well under a hundredth of a second."""
    shipped.find_notes("warm up")
    question = "run hangs in the first all_reduce on two nodes, how do I find which rank is slow"
    took = []
    for _ in range(5):
        started = time.perf_counter()
        shipped.find_notes(question)
        took.append(time.perf_counter() - started)
    assert min(took) < 0.01
