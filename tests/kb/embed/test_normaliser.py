"""The normaliser does what the library does that wrote its file."""

from __future__ import annotations

import json
import unicodedata
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from kb.embed.normaliser import Normaliser
from kb.errors import DataError
from kb.settings import shipped_data

FILE = shipped_data() / "model" / "normaliser.json"
CHUNK = 512  # code points in one text
LINE = (
    "all reduce time out_OUT timeOut NCCL_IB_GID_INDEX=3 0x7f3a 10.0.0.1:29500 2024-06-18 "
    "12:00:01,123 600001 seq14217 https://a.b/c?d=1 ΌΣΣ ΟΔΟΣ. İstanbul ﬁne ｎｃｃｌ 超时 check "
    "point data dead lock １２３ ② 1d2f-3 550e8400-e29b-41d4-a716-446655440000 é e\u0301 rendez"
)
PIECES = st.sampled_from([*LINE.split(), "vous", "\t", "\n", "_"])


@lru_cache
def ours() -> Normaliser:
    """The shipped steps, read here."""
    return Normaliser(FILE)


@lru_cache
def theirs() -> Tokenizer:
    """The same file, read by the library."""
    return Tokenizer.from_file(str(FILE))


def assert_same(text: str) -> None:
    """Both make the same of a text."""
    assert ours()(text) == theirs().normalizer.normalize_str(text)


def test_every_character_of_unicode_3_2_is_normalised_alike() -> None:
    """Alone and between letters; later ones depend on the tables each library was built with."""
    old = unicodedata.ucd_3_2_0
    known = [
        chr(code)
        for code in range(0x110000)
        if not 0xD800 <= code < 0xE000 and old.category(chr(code)) != "Cn"
    ]
    assert len(known) > 90_000
    for start in range(0, len(known), CHUNK):
        assert_same(" ".join(f"a{char}B {char}" for char in known[start : start + CHUNK]))


def test_the_cases_are_normalised_alike(data_dir: Path) -> None:
    """Chinese and English, logs and prose, as the index was built from."""
    for path in sorted((data_dir / "cases").glob("*.md"))[::7]:
        assert_same(path.read_text(encoding="utf-8"))


@given(st.lists(PIECES, max_size=12), st.sampled_from([" ", "", "-"]))
def test_pieces_of_logs_are_normalised_alike(pieces: list[str], joint: str) -> None:
    """Numbers, addresses, names and compounds, in any order, glued or apart."""
    assert_same(joint.join(pieces))


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([{"type": "NFD"}], id="another step"),
        pytest.param([{"type": "Replace", "pattern": {"Regex": "("}, "content": ""}], id="pattern"),
        pytest.param([{"type": "Replace", "pattern": {"String": "a"}, "content": ""}], id="form"),
    ],
)
def test_a_step_that_is_not_known_is_refused(tmp_path: Path, steps: list[object]) -> None:
    """A model of another making would be searched with the wrong words."""
    path = tmp_path / "normaliser.json"
    path.write_text(json.dumps({"normalizer": {"type": "Sequence", "normalizers": steps}}))
    with pytest.raises(DataError, match="cannot be read"):
        Normaliser(path)
    path.write_text("{")
    with pytest.raises(DataError, match="cannot be read"):
        Normaliser(path)
