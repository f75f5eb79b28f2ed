"""Passages: the sentences of the knowledge that answer a free question."""

from __future__ import annotations

import math

import pytest

from kb.chat.passages import Passage, PassageFinder
from kb.chat.phrases import load_phrases
from kb.embed import embedded_model
from kb.service import Service
from kb.text.tokenizer import default_tokenizer
from kb.types.vocabulary import Language


@pytest.fixture(scope="module")
def finder(service: Service) -> PassageFinder:
    """Finds the passages of the whole knowledge."""
    phrases = load_phrases(service.settings.data, service.knowledge)
    embedder = embedded_model(service.settings.data)
    return PassageFinder(service.knowledge, embedder, default_tokenizer(), phrases.is_filler)


def alike(_: Passage) -> float:
    """All sources count the same."""
    return 0.0


@pytest.mark.parametrize(
    ("question", "language", "source"),
    [
        ("is a prompt longer than max_model_len filtered or truncated?", "en", "trl-grpo-vllm"),
        ("单卡先分词并缓存，再多卡加载", "zh", "tokenize"),
    ],
)
def test_the_sentence_that_speaks_of_it_is_found(
    finder: PassageFinder, question: str, language: Language, source: str
) -> None:
    """By its words and its meaning, in the language asked for."""
    best = finder.find(question, language, alike)[0].passage
    assert source in best.source


@pytest.mark.parametrize("question", ["how do I fix it?", "what did I tell you so far?", ""])
def test_words_of_no_subject_find_nothing(finder: PassageFinder, question: str) -> None:
    """A passage shares what a question is about, not how it asks."""
    assert finder.find(question, "en", alike) == []


def test_a_source_that_is_like_the_incident_comes_first(finder: PassageFinder) -> None:
    """The bonus is added to the score; minus infinity shuts a source out."""
    question = "is a prompt longer than max_model_len filtered or truncated?"
    plain = finder.find(question, "en", alike)
    last = plain[-1].passage
    raised = finder.find(question, "en", lambda one: 1.0 if one == last else 0.0)
    assert raised[0].passage == last
    assert raised[0].score == pytest.approx(plain[-1].score + 1.0)
    shut = finder.find(question, "en", lambda one: -math.inf if one == last else 0.0)
    assert shut[-1].passage == last
