"""The routes an ablation compares, on small indexes with known answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kb.evaluation.ablation import (
    SHIPPED,
    Question,
    Remembering,
    ask,
    in_one_language,
    searchable,
    thread_entries,
)
from kb.evaluation.metrics import Judged
from kb.evaluation.retrieval import Benchmark, Query
from kb.types import Chunk, Entry, Language, Section
from tests.kb.fakes import SplitTokenizer, WordEmbedder, make_entry


def twin(entry_id: str, zh: str, en: str) -> Entry:
    """An entry with one chunk and one section a language."""
    texts: tuple[tuple[Language, str], ...] = (("zh", zh), ("en", en))
    return replace(
        make_entry(entry_id),
        language="both",
        sections=tuple(
            Section(role="symptoms", title="t", text=text, language=language)
            for language, text in texts
        ),
        chunks=tuple(
            Chunk(
                id=f"{entry_id}#{number}",
                entry_id=entry_id,
                role="symptoms",
                language=language,
                text=text,
            )
            for number, (language, text) in enumerate(texts)
        ),
    )


def test_each_route_finds_what_it_can() -> None:
    """Words find words, translations find the other language, the model finds its neighbours."""
    entries = [make_entry("zh", "超时"), make_entry("en", "timeout"), make_entry("no", "salad")]
    with searchable(entries, WordEmbedder(), SplitTokenizer({"timeout": "超时"})) as rankers:
        found = {name: rank("timeout") for name, rank in rankers.items()}
    assert list(found) == ["lexical", "lexical + expansion", "dense", SHIPPED]
    assert found["lexical"] == ["en"]
    assert found["lexical + expansion"] == ["en", "zh"]
    assert found["dense"][0] == "en"
    assert sorted(found["dense"]) == ["en", "no", "zh"]
    assert found[SHIPPED][:2] == ["en", "zh"]


def test_an_entry_counts_once_by_its_best_chunk() -> None:
    """Chunks become entries in the order of their first chunk."""
    entries = [make_entry("a", "red", "red green"), make_entry("b", "green green", "blue")]
    with searchable(entries, WordEmbedder(), SplitTokenizer()) as rankers:
        assert rankers["lexical"]("green") == ["b", "a"]
        assert rankers["lexical"]("red") == ["a"]


def test_a_question_of_unknown_words_finds_nothing() -> None:
    """Without words and without a vector there is no ranking."""
    with searchable([make_entry("a", "red")], WordEmbedder(), SplitTokenizer()) as rankers:
        assert rankers["lexical"]("...") == rankers["dense"]("...") == []


def test_one_language_of_an_entry() -> None:
    """The other language's sections and chunks are gone, and nothing else."""
    entry = twin("a", "超时", "timeout")
    english = in_one_language(entry, "en")
    assert [chunk.text for chunk in english.chunks] == ["timeout"]
    assert {section.language for section in english.sections} == {"en"}
    same = replace(english, language="both", sections=entry.sections, chunks=entry.chunks)
    assert same == entry
    with searchable([english], WordEmbedder(), SplitTokenizer()) as rankers:
        assert rankers["lexical"]("超时") == []
        assert rankers["lexical"]("timeout") == ["a"]


def test_texts_are_encoded_once() -> None:
    """Vectors are those of the model, in the order asked, each text encoded a single time."""
    model = WordEmbedder()
    remembering = Remembering(model)
    first = remembering.encode_passages(["a", "b", "a"])
    second = remembering.encode_passages(["b", "c"])
    assert model.encoded == 3
    assert np.array_equal(first, WordEmbedder().encode_passages(["a", "b", "a"]))
    assert np.array_equal(second, WordEmbedder().encode_passages(["b", "c"]))
    assert remembering.encode_queries([]).shape == (0, model.dimension)
    assert (remembering.name, remembering.dimension) == (model.name, model.dimension)


def test_answers_carry_grades() -> None:
    """Every route's ranking becomes grades, questions in their order."""
    rankers = {"up": lambda _: ["a", "b"], "down": lambda _: ["b"]}
    questions = [Question(text="x", grades={"a": 2}), Question(text="y", grades={"b": 1})]
    answers = ask(rankers, questions)
    assert answers["up"] == [Judged(found=(2, 0), ideal=(2,)), Judged(found=(0, 1), ideal=(1,))]
    assert answers["down"] == [Judged(found=(0,), ideal=(2,)), Judged(found=(1,), ideal=(1,))]


def test_threads_become_entries() -> None:
    """A thread's document is the one chunk of the entry under its query's id."""
    benchmark = Benchmark(
        queries=tuple(
            Query(id=name, text=name, group="en→en", relevant=number)
            for name, number in (("t1", 1), ("t0", 0))
        ),
        documents=("zero", "one"),
    )
    entries = thread_entries(benchmark)
    assert [(entry.id, entry.chunks[0].text) for entry in entries] == [
        ("t1", "one"),
        ("t0", "zero"),
    ]
    with searchable(entries, WordEmbedder(), SplitTokenizer()) as rankers:
        assert rankers["lexical"]("one") == ["t1"]
