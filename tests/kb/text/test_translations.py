"""Translations of words: which ones, how heavy, and in which order they come."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.settings import shipped_data
from kb.text.translations import Translations
from tests.kb.text.tiny_lexicon import tiny_lexicon


@lru_cache(maxsize=1)
def shipped() -> Translations:
    """The shipped translations, read once."""
    return Translations(shipped_data() / "lexicon")


def test_expansion_crosses_languages() -> None:
    """A Chinese term brings its English words and the other way round, with less weight."""
    text = shipped()
    to_english = dict(text.expand(["超时"]))
    assert to_english["超时"] == 1
    assert 0 < to_english["timeout"] < 1
    to_chinese = dict(text.expand(["timeout"]))
    assert 0 < to_chinese["超时"] < 1


@given(st.lists(st.sampled_from(["超时", "timeout", "卡死", "hang", "rank", "nosuchword"])))
def test_expansion_keeps_the_words_first_and_once(words: list[str]) -> None:
    """The distinct words come first in their order with weight 1; no term comes twice."""
    expanded = shipped().expand(words)
    own = list(dict.fromkeys(words))
    assert expanded[: len(own)] == [(word, 1.0) for word in own]
    terms = [term for term, _ in expanded]
    assert len(set(terms)) == len(terms)
    rest = [(-weight, term) for term, weight in expanded[len(own) :]]
    assert rest == sorted(rest)
    assert all(0 < -weight < 1 for weight, _ in rest)


@given(
    st.lists(
        st.sampled_from(["超时", "卡死", "挂起", "hang", "stall", "stuck", "死锁"]), unique=True
    )
)
def test_a_translation_reached_twice_keeps_its_largest_weight(words: list[str]) -> None:
    """Neither the last nor the first word that leads there decides."""
    best: dict[str, float] = {}
    for word in words:
        for term, weight in shipped().expand([word])[1:]:
            if term not in words:
                best[term] = max(weight, best.get(term, 0.0))
    assert dict(shipped().expand(words)[len(words) :]) == best


@pytest.mark.parametrize(
    ("files", "word", "expected"),
    [
        # a glossary's term: every English word leads to it, the first one with the full weight
        ({"glossary": "网卡\tnetwork card"}, "网卡", [("card", 0.5), ("network", 0.5)]),
        ({"glossary": "网卡\tnetwork card"}, "network", [("网卡", 0.5)]),
        ({"glossary": "网卡\tnetwork card"}, "card", [("网卡", 0.25)]),
        ({"everyday": "网卡\tlarge network cards"}, "card", [("网卡", 0.5 / 3)]),
        # of two translations the larger weight counts, in either order
        ({"glossary": "甲\tx y\n甲\ty"}, "y", [("甲", 0.5)]),
        ({"glossary": "甲\ty\n甲\tx y"}, "y", [("甲", 0.5)]),
        # mined words: half the mean of both probabilities, both ways
        ({"mined": "甲\tranks\t0.64\t0.25"}, "甲", [("rank", 0.2)]),
        ({"mined": "甲\tranks\t0.64\t0.25"}, "rank", [("甲", 0.2)]),
        ({"mined_knowledge": "甲\tx\t1\t1", "glossary": "甲\tx y"}, "x", [("甲", 0.5)]),
        # six at most, the heaviest first, ties by spelling
        (
            {"glossary": "甲\tg f e d c b a"},
            "甲",
            [(word, 0.5) for word in "abcdef"],
        ),
        ({"glossary": "# 甲\tx\n\n甲\ty"}, "甲", [("y", 0.5)]),
    ],
)
def test_weights_of_translations(
    tmp_path: Path, files: dict[str, str], word: str, expected: list[tuple[str, float]]
) -> None:
    """Exactly which translations a word has, and how much each weighs."""
    _, *translations = Translations(tiny_lexicon(tmp_path, **files)).expand([word])
    assert [name for name, _ in translations] == [name for name, _ in expected]
    assert [weight for _, weight in translations] == pytest.approx([w for _, w in expected])


def test_expansion_keeps_the_largest_weight(tmp_path: Path) -> None:
    """A translation of two words counts once, and none of a word that stands there itself."""
    text = Translations(tiny_lexicon(tmp_path, glossary="甲\tx y\n乙\ty\n乙\tx z"))
    assert text.expand(["x", "y"]) == [("x", 1), ("y", 1), ("乙", 0.5), ("甲", 0.5)]
    assert text.expand(["z", "y"]) == [("z", 1), ("y", 1), ("乙", 0.5), ("甲", 0.25)]
    assert text.expand(["甲", "x"]) == [("甲", 1), ("x", 1), ("y", 0.5), ("乙", 0.5)]
