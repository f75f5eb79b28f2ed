"""The embedded model: equal to its sentence-transformers twin, and honest about its files."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import unicodedata
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.embed.static import (
    IDF,
    MANIFEST,
    NORMALISER,
    PIECES,
    QUESTION_ROWS,
    QUESTION_SCALES,
    QUESTIONS,
    ROWS,
    SCALES,
    StaticEmbedder,
    content_hash,
)
from kb.errors import DataError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

ROOT = Path(__file__).resolve().parents[3]
MODEL = ROOT / "data" / "model"
MAX_BYTES = 18_000_000  # of the model's files together
WORDS = st.sampled_from(
    [
        "超时",
        "卡死",
        "集合通信",
        "rank",
        "NCCL_IB_GID_INDEX",
        "timeout",
        "0x7f00",
        "the",
        "🙂",
        "逾時",
    ]
)
TEXTS = st.lists(st.lists(WORDS, max_size=8).map(" ".join), max_size=6)


def of_known_characters(text: str) -> str:
    """Without characters that Unicode got later: each library has its own tables of those."""
    return "".join(char for char in text if unicodedata.ucd_3_2_0.category(char) != "Cn")


@lru_cache
def shipped() -> StaticEmbedder:
    """The shipped model, one for all tests."""
    return StaticEmbedder.load(MODEL)


@lru_cache
def tokenizer() -> Tokenizer:
    """The shipped normaliser and pieces as one tokenizer of another library."""
    from sentencepiece import SentencePieceProcessor
    from tokenizers import Tokenizer, models

    pieces = SentencePieceProcessor(model_file=str(MODEL / PIECES))
    numbers = range(pieces.get_piece_size())
    scored = [(pieces.id_to_piece(number), pieces.get_score(number)) for number in numbers]
    whole = Tokenizer.from_file(str(MODEL / NORMALISER))
    whole.model = models.Unigram(scored, unk_id=0)
    return whole


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the model to damage."""
    return Path(shutil.copytree(MODEL, tmp_path / "model"))


def repeats_no_token(text: str) -> bool:
    """Whether every token of the text stands there once."""
    ids = shipped().token_ids([text])[0]
    return len(ids) == len(set(ids))


def many_texts() -> list[str]:
    """Paragraphs of the cases and terms of the glossary, both languages."""
    glossary = (ROOT / "data" / "lexicon" / "glossary.tsv").read_text("utf-8").splitlines()
    texts = [side for line in glossary if line[:1] != "#" for side in line.split("\t")]
    for path in sorted((ROOT / "data" / "cases").glob("*.md")):
        texts += [part for part in path.read_text("utf-8").split("\n\n") if part.strip()]
    return list(dict.fromkeys(texts))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_without_idf_it_is_sentence_transformers_mean() -> None:
    """Of texts that repeat no token a StaticEmbedding gives the same vectors, cosine ≥ .999."""
    sentence_transformers = pytest.importorskip("sentence_transformers")
    from sentence_transformers.models import StaticEmbedding

    from kb.text.tokenizer import default_tokenizer

    rows = np.load(MODEL / ROWS).astype(np.float32)
    weights = rows * np.load(MODEL / SCALES).astype(np.float32)[:, None]
    twin = sentence_transformers.SentenceTransformer(
        modules=[StaticEmbedding(tokenizer(), weights)],
        device="cpu",
    )
    texts = [text for text in many_texts() if repeats_no_token(text)]
    ours = StaticEmbedder(MODEL, idf=np.ones(len(rows), np.float32)).encode_passages(texts)
    theirs = twin.encode(
        [default_tokenizer().normalise(text) for text in texts], normalize_embeddings=True
    )
    assert len(texts) >= 500
    known = np.linalg.norm(theirs, axis=1) > 0
    assert known.mean() > 0.99
    assert (np.einsum("nd,nd->n", ours, theirs)[known] >= 0.999).all()
    assert not ours[~known].any()


@settings(deadline=None)
@given(TEXTS)
def test_rows_have_length_one_or_zero(texts: list[str]) -> None:
    """A row is a unit vector, or zero where no token is known."""
    model = shipped()
    vectors = model.encode_queries(texts)
    assert vectors.shape == (len(texts), model.dimension)
    assert vectors.dtype == np.float32
    known = [any(ids) for ids in model.token_ids(texts)]
    assert np.allclose(np.linalg.norm(vectors, axis=1), np.array(known, dtype=float), atol=1e-5)


@settings(deadline=None)
@given(TEXTS, st.integers(min_value=1, max_value=700))
def test_a_vector_does_not_depend_on_its_neighbours(texts: list[str], others: int) -> None:
    """Encoded alone or in any batch, a text has bit for bit the same vector."""
    model = shipped()
    crowd = model.encode_passages([*["rank 3 hangs in 集合通信"] * others, *texts])
    alone = [model.encode_passages([text])[0] for text in texts]
    assert all((a == b).all() for a, b in zip(crowd[others:], alone, strict=True))


@settings(deadline=None)
@given(st.lists(st.text().map(of_known_characters), max_size=4), TEXTS)
def test_token_ids_are_those_of_the_tokenizer(anything: list[str], words: list[str]) -> None:
    """Taken step by step, with words remembered, the ids are those of encoding the whole text."""
    from kb.text.tokenizer import default_tokenizer

    texts = [*anything, *words, "\u3000".join(anything)]
    expected = tokenizer().encode_batch(
        [default_tokenizer().normalise(one) for one in texts], add_special_tokens=False
    )
    assert shipped().token_ids(texts) == [encoding.ids for encoding in expected]


def test_weight_is_root_frequency_times_root_idf() -> None:
    """The vector is Σ sqrt(tf) · sqrt(idf) · row over the distinct tokens, scaled to length 1."""
    model = shipped()
    text = "timeout timeout timeout rank 超时 the the gradient"
    idf = np.linspace(0.1, 9, len(np.load(MODEL / ROWS)), dtype=np.float32)
    rows = np.load(MODEL / ROWS).astype(np.float64)
    rows *= np.load(MODEL / SCALES).astype(np.float64)[:, None]
    ids, counts = np.unique(model.token_ids([text])[0], return_counts=True)
    expected = (np.sqrt(counts * idf[ids])[:, None] * rows[ids])[ids != 0].sum(axis=0)
    expected /= np.linalg.norm(expected)
    found = StaticEmbedder(MODEL, idf=idf).encode_passages([text])[0]
    assert np.allclose(found, expected, atol=1e-5)


def test_questions_have_rows_of_their_own() -> None:
    """A token people ask with has another row in a question; every other token keeps its own."""
    model = shipped()
    own = np.load(MODEL / QUESTIONS)
    ids = {word: model.token_ids([word])[0][0] for word in ("timeout", "cards")}
    assert all(number in own for number in ids.values())
    rows = np.load(MODEL / QUESTION_ROWS).astype(np.float64)
    rows *= np.load(MODEL / QUESTION_SCALES).astype(np.float64)[:, None]
    idf = np.load(MODEL / IDF).astype(np.float64)
    expected = sum(
        np.sqrt(idf[number]) * rows[np.searchsorted(own, number)] for number in ids.values()
    )
    found = model.encode_queries(["timeout cards"])[0]
    assert np.allclose(found, expected / np.linalg.norm(expected), atol=1e-5)
    rest = np.setdiff1d(np.arange(1, len(np.load(MODEL / ROWS))), own)
    texts = [
        text
        for text in ("xylophone", "brioche", "quokka")
        if {*model.token_ids([text])[0]} <= {*rest.tolist()}
    ]
    assert texts
    assert np.array_equal(model.encode_queries(texts), model.encode_passages(texts))


def test_idf_counts_documents() -> None:
    """The idf is ln(1 + (n - df + ½) / (df + ½ + n/4)), df the number of texts with the token."""
    model = shipped()
    idf = model.fit_idf(["timeout timeout", "timeout rank", "gradient"])
    number = {word: model.token_ids([word])[0][0] for word in ("timeout", "rank", "loss")}
    assert idf[number["timeout"]] == pytest.approx(np.log1p(1.5 / 3.25))
    assert idf[number["rank"]] == pytest.approx(np.log1p(2.5 / 2.25))
    assert idf[number["loss"]] == pytest.approx(np.log1p(3.5 / 1.25))


@pytest.mark.parametrize(
    ("chinese", "english", "other"),
    [
        ("训练卡死", "training hangs", "download the image"),
        ("端口被占用", "port already in use", "out of memory"),
        ("显存不足", "out of GPU memory", "connection refused"),
        ("梯度同步超时", "gradient synchronization timed out", "tokenizer vocabulary"),
        ("網路斷線", "network disconnected", "learning rate schedule"),
    ],
)
def test_translations_are_nearer_than_other_texts(chinese: str, english: str, other: str) -> None:
    """One meaning in two languages is nearer than two meanings."""
    query, same, different = shipped().encode_queries([chinese, english, other])
    assert query @ same > query @ different + 0.2


def test_another_idf_is_another_model() -> None:
    """Vectors that differ never share a name, and loading twice gives the same."""
    model = shipped()
    idf = model.fit_idf(["timeout"])
    assert StaticEmbedder.load(MODEL).name == model.name
    assert StaticEmbedder(MODEL, idf=idf).name == StaticEmbedder(MODEL, idf=idf).name
    assert StaticEmbedder(MODEL, idf=idf).name != model.name


def test_loading_writes_nothing(copy: Path) -> None:
    """Loading and encoding leaves every byte of the folder as it was."""
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    StaticEmbedder.load(copy).encode_queries(["超时"])
    assert {path.name: path.read_bytes() for path in copy.iterdir()} == before


def test_manifest_states_the_content() -> None:
    """The shipped files are those the manifest was written for, within the size promised."""
    manifest = json.loads((MODEL / MANIFEST).read_text("utf-8"))
    assert manifest["content"] == content_hash(MODEL)
    assert manifest["content"].startswith(shipped().name.rsplit("@", 1)[1])
    assert sum(path.stat().st_size for path in MODEL.iterdir()) <= MAX_BYTES


@pytest.mark.parametrize("name", [ROWS, NORMALISER, PIECES, MANIFEST])
def test_missing_file_is_named(copy: Path, name: str) -> None:
    """The error names the file that lacks and how to get it back."""
    (copy / name).unlink()
    with pytest.raises(DataError, match=name) as caught:
        StaticEmbedder.load(copy)
    assert "kb.train.embedding.train" in caught.value.todo


def test_cut_off_file_is_refused(copy: Path) -> None:
    """A copy that broke off is seen by its size."""
    (copy / ROWS).write_bytes((copy / ROWS).read_bytes()[:-1])
    with pytest.raises(DataError, match=ROWS):
        StaticEmbedder.load(copy)


@pytest.mark.parametrize(
    ("manifest", "message"),
    [("{", "cannot be read"), ("{}", "cannot be read"), ("[]", "cannot be read")],
)
def test_unreadable_manifest_is_refused(copy: Path, manifest: str, message: str) -> None:
    """A manifest that is no manifest is an error with its path, not a traceback."""
    (copy / MANIFEST).write_text(manifest, "utf-8")
    with pytest.raises(DataError, match=message):
        StaticEmbedder.load(copy)


def test_other_format_is_refused(copy: Path) -> None:
    """A model of a later format is not read as if it were of this one."""
    manifest = json.loads((copy / MANIFEST).read_text("utf-8"))
    (copy / MANIFEST).write_text(json.dumps(manifest | {"format": 99}), "utf-8")
    with pytest.raises(DataError, match="format 99"):
        StaticEmbedder.load(copy)


def test_idf_of_another_vocabulary_is_refused() -> None:
    """An idf of the wrong length would weigh the wrong tokens."""
    with pytest.raises(DataError, match="does not fit"):
        StaticEmbedder(MODEL, idf=np.ones(3, dtype=np.float32))


def test_query_path_imports_no_torch() -> None:
    """Encoding works without torch, sentence-transformers and faiss in the process."""
    program = (
        "import sys; from pathlib import Path; from kb.embed.static import StaticEmbedder\n"
        f"StaticEmbedder.load(Path({str(MODEL)!r})).encode_queries(['超时 timeout'])\n"
        "print(sorted({'torch', 'sentence_transformers', 'faiss', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
