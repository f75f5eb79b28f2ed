"""The score and the reasons shown: tables of inputs and exact outputs."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.search.similarity import (
    SNIPPET_CHARACTERS,
    WHY_TERMS,
    QuestionWords,
    names_of,
    signature_strength,
    similarity,
    snippet,
    snippet_for_reader,
    text_similarity,
    why,
)
from kb.store import EntryHead
from kb.types.entries import Chunk, Hit, Section, Tags
from kb.types.knowledge import Bilingual
from kb.types.vocabulary import Language
from tests.kb.fakes import make_entry

# --- the score -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cosine", "words", "likeness"),
    [
        (0.3, 0.0, 0.0),
        (-1.0, 0.0, 0.0),
        (1.0, 0.0, 0.5),
        (0.65, 0.0, 0.25),
        (0.3, 0.2, 0.31606),
        (0.3, 0.4, 0.432332),
        (0.65, 0.1, 0.446735),
        (1.0, 100.0, 1.0),
        (1.5, 0.0, 0.5),
    ],
    ids=[
        "the median of the field",
        "opposite",
        "the same meaning",
        "half way up",
        "the median of words",
        "twice as many words",
        "both",
        "everything",
        "rounding above 1",
    ],
)
def test_the_likeness_of_texts(cosine: float, words: float, likeness: float) -> None:
    """Half is meaning, from .3 to 1; half is wording, 1 - exp(-words / .2)."""
    found = text_similarity(np.array([cosine], np.float32), np.array([words], np.float32))
    assert found.dtype == np.float32
    assert found.tolist() == pytest.approx([likeness], abs=1e-6)


def test_every_chunk_has_its_own_likeness() -> None:
    """Arrays are compared place by place."""
    found = text_similarity(np.array([0.3, 1.0, 0.65]), np.array([0.2, 0.0, 0.1]))
    assert found.tolist() == pytest.approx([0.31606, 0.5, 0.446735], abs=1e-6)


@pytest.mark.parametrize(
    ("text", "signature", "score"),
    [
        (0.0, 0.0, 0.0),
        (0.4, 0.0, 0.4),
        (0.0, 0.4, 0.4),
        (0.5, 0.5, 0.75),
        (0.2, 0.75, 0.8),
        (1.0, 0.3, 1.0),
    ],
)
def test_a_log_line_closes_part_of_what_the_text_leaves(
    text: float, signature: float, score: float
) -> None:
    """1 - (1 - text) (1 - signature)."""
    assert similarity(text, signature) == pytest.approx(score, abs=1e-12)


@given(
    cosine=st.floats(-1, 1),
    words=st.floats(0, 3),
    signature=st.floats(0, 1),
    more=st.floats(0, 1),
)
def test_more_likeness_is_never_a_lower_score(
    cosine: float, words: float, signature: float, more: float
) -> None:
    """The score stays in [0, 1] and grows with each of its three parts."""

    def score(c: float, w: float, s: float) -> float:
        text = text_similarity(np.array([c], np.float32), np.array([w], np.float32))
        return similarity(float(text[0]), s)

    base = score(cosine, words, signature)
    assert 0 <= base <= 1
    assert score(min(1, cosine + more), words, signature) >= base - 1e-6
    assert score(cosine, words + more, signature) >= base - 1e-6
    assert score(cosine, words, min(1, signature + more)) >= base - 1e-6


# --- log lines -----------------------------------------------------------------------------------

# Above the common (3): aaa and bbb 2 each, ccc 1; ddd is as common, eee more common, fff unknown.
IDF = defaultdict(float, {"aaa": 5.0, "bbb": 5.0, "ccc": 4.0, "ddd": 3.0, "eee": 1.0})


@pytest.mark.parametrize(
    ("lines", "names", "strength", "matched"),
    [
        (["aaa bbb ccc"], "aaa bbb ccc", 5 / 7, ("aaa", "bbb", "ccc")),
        (["aaa bbb ccc"], "aaa bbb", 0.0, ()),
        (["aaa bbb ccc ddd"], "aaa bbb ddd", 4 / 5 * 4 / 6, ("aaa", "bbb", "ddd")),
        (["aaa bbb ccc eee"], "aaa ccc eee", 3 / 5 * 3 / 5, ("aaa", "ccc", "eee")),
        (["aaa bbb ccc fff"], "aaa bbb ccc fff", 5 / 7, ("aaa", "bbb", "ccc", "fff")),
        (["ddd eee fff"], "ddd eee fff", 0.0, ()),
        (["ddd eee fff", "aaa ddd eee"], "aaa ddd eee fff", 2 / 4, ("aaa", "ddd", "eee")),
        (["aaa ddd eee", "bbb ccc ddd"], "aaa bbb ccc ddd eee", 3 / 5, ("bbb", "ccc", "ddd")),
        (["bbb ccc ddd", "aaa ddd eee"], "aaa bbb ccc ddd eee", 3 / 5, ("bbb", "ccc", "ddd")),
        (["bbb ddd eee", "aaa ddd eee"], "aaa bbb ddd eee", 2 / 4, ("bbb", "ddd", "eee")),
        ([], "aaa bbb ccc", 0.0, ()),
        (["aaa bbb", "aaa bbb ccc"], "aaa bbb ccc", 5 / 7, ("aaa", "bbb", "ccc")),
    ],
    ids=[
        "a whole line",
        "two names are no line",
        "in part, with a common name",
        "in part, with a very common name",
        "an unknown name adds nothing",
        "common names only",
        "a common line before a rare one",
        "the second is better",
        "the first is better",
        "of equals the first",
        "no lines",
        "a short line before a long one",
    ],
)
def test_the_strength_of_a_log_line(
    lines: list[str], names: str, strength: float, matched: tuple[str, ...]
) -> None:
    """Share of the line's weight that was asked × weight / (weight + 2); the best line counts."""
    found = signature_strength(lines, frozenset(names.split()), IDF)
    assert found == (pytest.approx(strength, abs=1e-12), matched)


def test_names_of_a_line_are_the_signature_s() -> None:
    """File with line, setting and operation; numbers and addresses are left out."""
    assert names_of("ProcessGroupNCCL.cpp:587 rank 3 at 10.0.0.1") == {
        "processgroupnccl.cpp",
        "processgroupnccl.cpp:587",
        "rank",
    }


# --- reasons -------------------------------------------------------------------------------------

HEAD = EntryHead(
    id="e",
    kind="thread",
    title=Bilingual(zh="", en=""),
    project="Owner/big_trainer",
    url="",
    status="reported",
    date="",
    causes=(),
    tags=Tags(ops=("ALLREDUCE", "BROADCAST")),
    signature=(),
)
PLAIN = QuestionWords(names=frozenset(), weights={}, own=frozenset(), language="en")


def weighted(*tokens: str) -> dict[str, float]:
    """Tokens with falling weights."""
    return {token: 9.0 - number for number, token in enumerate(tokens)}


def reasons(
    question: QuestionWords, *, matched: tuple[str, ...] = (), words: str = "", dull: str = ""
) -> tuple[str, ...]:
    """The reasons for an English chunk of `words`, where the `dull` ones are not worth showing."""

    def salient(token: str) -> str:
        return "" if token in dull.split() else token.upper()

    return why(question, HEAD, "en", matched, frozenset(words.split()), salient=salient)


def test_nothing_shared_but_the_language() -> None:
    """The language is always stated."""
    assert reasons(PLAIN) == ("language:same",)
    assert reasons(replace(PLAIN, language="zh")) == ("language:cross",)


def test_lines_operations_and_one_name_come_first() -> None:
    """All lines of source, all operations asked for, and the rarest name worth showing."""
    question = replace(PLAIN, names=frozenset({"allreduce", "proxy.cc:12"}))
    matched = ("dull", "first", "proxy.cc:12", "second", "other.cc:3")
    assert reasons(question, matched=matched, dull="dull") == (
        "line:proxy.cc:12",
        "line:other.cc:3",
        "op:ALLREDUCE",
        "signature:FIRST",
        "language:same",
    )


@pytest.mark.parametrize(
    ("tokens", "own", "words", "dull", "expected"),
    [
        (("a", "b"), "a b", "b a", "", ("term:A", "term:B")),
        (("a", "b"), "a b", "b", "", ("term:B",)),
        (("a", "b"), "b", "a b", "", ("translation:A", "term:B")),
        (("a", "b"), "a b", "a b", "a", ("term:B",)),
        (("xy", "x", "z"), "xy x z", "xy x z", "", ("term:XY", "term:X", "term:Z")),
        (("big", "a"), "big a", "big a", "big a", ("term:big",)),
        (("owner", "a"), "owner a", "owner a", "owner", ("term:A",)),
        (
            ("a", "b", "c", "d", "e", "f", "g", "h"),
            "a b c d e f g h",
            "a b c d e f g h",
            "b",
            ("term:A", "term:C", "term:D", "term:E", "term:F"),
        ),
    ],
    ids=[
        "in the order of the weights",
        "only what the chunk has",
        "a translation is called one",
        "a dull word is passed over",
        "shown forms differ in case",
        "a word of the project's name as it is",
        "the owner's name is none",
        "five at most",
    ],
)
def test_shared_words(
    tokens: tuple[str, ...], own: str, words: str, dull: str, expected: tuple[str, ...]
) -> None:
    """The heaviest words both have, worth showing, `WHY_TERMS` of them."""
    question = replace(PLAIN, weights=weighted(*tokens), own=frozenset(own.split()))
    assert reasons(question, words=words, dull=dull) == (*expected, "language:same")
    assert WHY_TERMS == 5


def test_a_part_of_a_shown_identifier_is_not_shown_again() -> None:
    """An identifier says all its parts say; of equal reasons one is given."""
    question = replace(
        PLAIN, weights=weighted("nccl_timeout", "nccl", "timeout", "time", "rank"), own=frozenset()
    )
    words = frozenset(question.weights)
    assert why(question, HEAD, "en", (), words) == (
        "translation:nccl_timeout",
        "translation:rank",
        "language:same",
    )
    same = replace(PLAIN, weights=weighted("a", "b"), own=frozenset("ab"))
    assert why(same, HEAD, "en", (), frozenset("ab"), salient=lambda _: "one") == (
        "term:one",
        "language:same",
    )


# --- snippets ------------------------------------------------------------------------------------


def split(line: str) -> frozenset[str]:
    """Tokens of a line."""
    return frozenset(line.split())


@pytest.mark.parametrize(
    ("text", "weights", "shown"),
    [
        ("one\ntwo three\nfour", {"two": 1.0}, "two three four"),
        ("  one  \n\n  two ", {"one": 1.0}, "one two"),
        ("a b\nc d", {"a": 1.0, "c": 0.6, "d": 0.6}, "c d"),
        ("a\na", {"a": 1.0}, "a a"),
        ("x a\ny a\nz", {"a": 1.0}, "x a y a z"),
        ("x\ny", {}, "x y"),
        ("a a a\nb", {"a": 1.0, "b": 1.5}, "b"),
    ],
    ids=[
        "from the heaviest line on",
        "empty lines are left out",
        "the sum of a line counts",
        "equal lines",
        "the first of equals",
        "no weight: from the start",
        "a word counts once a line",
    ],
)
def test_a_snippet_begins_with_the_heaviest_line(
    text: str, weights: dict[str, float], shown: str
) -> None:
    """The rest follows, on one line; the tokens are those of all lines."""
    assert snippet(text, weights, split) == (shown, split(text))


@pytest.mark.parametrize(
    ("length", "end"), [(280, "xx"), (281, "x…"), (1000, "x…")], ids=["fits", "one more", "long"]
)
def test_a_long_snippet_is_cut(length: int, end: str) -> None:
    """At 280 characters, the dots among them; no blank stands before the dots."""
    shown, _ = snippet("x" * length, {}, split)
    assert (len(shown), shown[-2:]) == (SNIPPET_CHARACTERS, end)
    spaced, _ = snippet("x" * 278 + " " + "y" * 9, {}, split)
    assert spaced == "x" * 278 + "…"


def test_nothing_has_no_snippet() -> None:
    """Blank text gives no tokens."""
    assert snippet(" \n ", {"a": 1.0}, split) == ("", frozenset())


def test_sums_do_not_depend_on_the_order_of_tokens() -> None:
    """Weights that round differently in another order are summed exactly."""
    values = [0.1] * 10 + [1e16, -1e16]
    weights = {f"w{number}": value for number, value in enumerate(values)}
    assert math.fsum(values) > 0.5
    text = "start 1\n" + " ".join(weights)
    assert snippet(text, weights | {"start": 0.5}, split)[0] == " ".join(weights)


HIT = Hit(
    entry_id="a",
    kind="case",
    title=Bilingual(zh="标题", en="title"),
    project="",
    url="",
    status="confirmed",
    cause="",
    score=0.5,
    chunk_id="a#1",
    snippet="没有空间了",
    role="causes",
    snippet_language="zh",
)


@pytest.mark.parametrize(
    ("sections", "language", "shown"),
    [
        (
            [("symptoms", "it hung", "en"), ("causes", "no  space\nleft", "en")],
            "en",
            "no space left",
        ),
        ([("symptoms", "it hung", "en")], "en", "it hung"),
        ([("causes", "没有空间", "zh")], "en", "没有空间了"),
        ([("causes", " ", "en")], "en", "没有空间了"),
        ([("causes", "no space left", "en"), ("causes", "没有空间", "zh")], "zh", "没有空间了"),
    ],
)
def test_a_reader_gets_the_section_in_their_language(
    sections: list[tuple[str, str, Language]], language: Language, shown: str
) -> None:
    """The same section, else the first; what matched where the entry has no other language."""
    parts = tuple(Section(role=r, title="", text=t, language=own) for r, t, own in sections)
    entry = replace(make_entry("a"), sections=parts)
    assert snippet_for_reader(HIT, entry, language).snippet == shown


def test_claims_are_shown_in_the_readers_language() -> None:
    """They are no section, so the passage of that language is shown."""
    sections = (Section(role="symptoms", title="", text="it hung", language="en"),)
    chunks = tuple(
        Chunk(id=f"a#{number}", entry_id="a", role="claims", language=language, text=text)
        for number, (language, text) in enumerate([("zh", "已被否定"), ("en", "Contradicted: x")])
    )
    entry = replace(make_entry("a"), sections=sections, chunks=chunks)
    shown = snippet_for_reader(replace(HIT, role="claims"), entry, "en")
    assert (shown.snippet, shown.role, shown.snippet_language) == (
        "Contradicted: x",
        "claims",
        "en",
    )


def test_without_its_entry_a_hit_stays() -> None:
    """It was deleted since the search."""
    assert snippet_for_reader(HIT, None, "en") is HIT
