"""The embedded bilingual model, read without torch: ready in a blink.

A text's vector is the weighted sum of one int8 row per distinct token, scaled to length 1. The rows
were trained with mean pooling, that is weight tf; the weight here is sqrt(tf) * sqrt(idf), idf
that of the knowledge base, so that common words and repeated log lines count less. Questions have
rows of their own for the tokens that people ask with (`kb.train.embedding.questions`).

Source of the model kind: https://sbert.net/docs/package_reference/sentence_transformer/models.html
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from kb.embed.normaliser import Normaliser
from kb.errors import DataError
from kb.text.language import HAN
from kb.text.tokenizer import default_tokenizer

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

FORMAT = 3  # 3: rows of questions
ROWS = "rows.npy"  # int8, shape (tokens, dimension)
SCALES = "scales.npy"  # float16, shape (tokens,): row * scale is the trained vector
IDF = "idf.npy"  # float16, shape (tokens,): the default idf
QUESTIONS = "questions.npy"  # int64, ascending: tokens that have another row in a question
QUESTION_ROWS = "question-rows.npy"  # int8, shape (these tokens, dimension)
QUESTION_SCALES = "question-scales.npy"  # float16, as `SCALES`
NORMALISER = "normaliser.json"  # a tokenizer of tokenizers with the unknown token alone
PIECES = "pieces.model"  # sentencepiece: 32 MB less than tokenizers needs for the same unigrams
CONFIG = "config.json"
MANIFEST = "manifest.json"
QUESTION_FILES = (QUESTIONS, QUESTION_ROWS, QUESTION_SCALES)
FILES = (ROWS, SCALES, IDF, *QUESTION_FILES, NORMALISER, PIECES, CONFIG)
HASH_DIGITS = 12  # hex digits of the content hash in a name: 48 bits
SMOOTHING = 0.25  # share of the texts; without it MRR falls by .02, .1 to .4 are alike
TEXTS_AT_ONCE = 256  # encoded together; bounds the memory of one step
CACHED_WORDS = 8192  # words whose token ids are remembered, about 200 bytes each
UNKNOWN = 0  # token id of everything the vocabulary lacks; its row is zero
REPAIR = "restore data/model, or rebuild it with `python -m kb.train.embedding.train`"

_WORD = re.compile(rf"[{HAN}]+|[^ {HAN}]+")  # what the pre-tokenizer splits into


class StaticEmbedder:
    """The embedded model: one vector per token, pooled.

    Attributes:
        name: model name, content hash, and a hash of the idf when another one is given.
        dimension: length of every vector.
    """

    def __init__(self, folder: Path, *, idf: NDArray[np.float32] | None = None) -> None:
        """Read the model of `folder`.

        Args:
            folder: rows, scales, default idf, normaliser, pieces, config and manifest.
            idf: weight per token id, shape (tokens,), as `fit_idf` makes it; default: the
                model's own.

        Raises:
            DataError: a file is missing or damaged, the format is another one, or `idf` does
                not fit the vocabulary.
        """
        manifest = _read_manifest(folder)
        # Mapped, not read: a question needs few rows, and processes share them.
        self._rows = np.load(folder / ROWS, mmap_mode="r").view(np.ndarray)
        self._scales = np.load(folder / SCALES).astype(np.float32)
        self._questions = np.load(folder / QUESTIONS)
        self._question_rows = np.load(folder / QUESTION_ROWS, mmap_mode="r").view(np.ndarray)
        self._question_scales = np.load(folder / QUESTION_SCALES).astype(np.float32)
        self._normaliser = Normaliser(folder / NORMALISER)
        self._pieces = _read_pieces(folder / PIECES)
        self.dimension: int = int(self._rows.shape[1])
        self.name = f"{manifest.name}@{manifest.content[:HASH_DIGITS]}"
        if idf is None:
            idf = np.load(folder / IDF).astype(np.float32)
        else:
            self.name += f"+idf-{hashlib.sha256(idf.tobytes()).hexdigest()[:HASH_DIGITS]}"
        if idf.shape != self._scales.shape or len(self._rows) != len(self._scales):
            raise DataError(
                f"idf of shape {idf.shape} does not fit the {len(self._rows)} tokens of {folder}",
                todo="make it with StaticEmbedder.fit_idf of the same model",
            )
        self._root_idf = np.sqrt(idf.astype(np.float32))

    @classmethod
    def load(cls, folder: Path) -> StaticEmbedder:
        """The model of `folder` with its own idf."""
        return cls(folder)

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of questions: shape (n, dimension), rows of length 1, zero without a token."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for number, (ids, weights) in enumerate(self.weighed_tokens(texts)):
            own, places = self._rows_of_questions(ids)
            scales = self._scales[ids]
            rows = self._rows[ids].astype(np.float32)
            scales[own] = self._question_scales[places]
            rows[own] = self._question_rows[places]
            vectors[number] = (weights * scales) @ rows
        return _unit(vectors)

    def _rows_of_questions(
        self, ids: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Which tokens have a row for questions, and where it is."""
        if not len(self._questions):
            return np.zeros(len(ids), dtype=np.bool_), np.zeros(0, dtype=np.int64)
        places = np.minimum(np.searchsorted(self._questions, ids), len(self._questions) - 1)
        own = self._questions[places] == ids
        return own, places[own]

    def weighed_tokens(
        self, texts: Sequence[str]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """The distinct known token ids of every text, ascending, and their weights."""
        for ids, counts, ends in self._counts(texts):
            weights = np.sqrt(counts.astype(np.float32)) * self._root_idf[ids]
            begin = 0
            for end in ends.tolist():
                yield ids[begin:end], weights[begin:end]
                begin = end

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of stored texts: shape (n, dimension), rows of length 1, zero without a token."""
        vectors = np.zeros((len(texts), self.dimension), dtype=np.float32)
        start = 0
        for ids, counts, ends in self._counts(texts):
            weights = np.sqrt(counts.astype(np.float32)) * self._root_idf[ids] * self._scales[ids]
            begin = 0
            for number, end in enumerate(ends.tolist(), start=start):
                if end > begin:
                    vectors[number] = weights[begin:end] @ self._rows[ids[begin:end]]
                begin = end
            start += len(ends)
        return _unit(vectors)

    def fit_idf(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Inverse document frequency of every token over `texts`, shape (tokens,).

        idf = ln(1 + (n - df + ½) / (df + ½ + n · `SMOOTHING`)): that of BM25, never negative, but
        flat for rare words, whose rows are long already.
        Source: https://doi.org/10.1561/1500000019
        """
        document_frequency = np.zeros(len(self._rows), dtype=np.int64)
        for ids, _, _ in self._counts(texts):
            document_frequency += np.bincount(ids, minlength=len(self._rows))
        count = len(texts)
        odds = (count - document_frequency + 0.5) / (document_frequency + 0.5 + count * SMOOTHING)
        return np.log1p(odds).astype(np.float32)

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of every text, in order: those of its words, cut once as long as remembered."""
        prepared = [default_tokenizer().normalise(text) for text in texts]
        plain = map(self._normaliser, prepared)
        known = self._word_ids
        return [list(chain.from_iterable(map(known, _WORD.findall(text)))) for text in plain]

    @cached_property
    def _word_ids(self) -> Callable[[str], tuple[int, ...]]:
        """Token ids of one word, cached: logs say the same words again and again."""
        return lru_cache(CACHED_WORDS)(lambda word: tuple(self._pieces.encode(word)))

    def _counts(
        self, texts: Sequence[str]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        """Batches of texts as (distinct known ids of each in order, their counts, ends)."""
        size = len(self._rows)
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            lists = self.token_ids(texts[start : start + TEXTS_AT_ONCE])
            lengths = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
            flat = np.fromiter(chain.from_iterable(lists), np.int64, int(lengths.sum()))
            keys = np.repeat(np.arange(len(lists)) * size, lengths) + flat
            keys, counts = np.unique(keys[flat != UNKNOWN], return_counts=True)
            ends = np.searchsorted(keys, np.arange(1, len(lists) + 1) * size)
            yield keys % size, counts, ends


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows scaled to length 1; a zero row stays zero."""
    lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
    return (vectors / np.where(lengths > 0, lengths, 1)[:, None]).astype(np.float32, copy=False)


class ModelManifest(msgspec.Struct):
    """What a model folder says of itself; `bytes` are the sizes of its files."""

    format: int
    name: str
    content: str
    bytes: dict[str, int]


def _read_manifest(folder: Path) -> ModelManifest:
    missing = [name for name in (*FILES, MANIFEST) if not (folder / name).is_file()]
    if missing:
        raise DataError(f"the model in {folder} lacks {', '.join(missing)}", todo=REPAIR)
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=ModelManifest)
    except msgspec.DecodeError as error:
        raise DataError(f"{folder / MANIFEST} cannot be read: {error}", todo=REPAIR) from error
    if manifest.format != FORMAT:
        raise DataError(
            f"the model in {folder} has format {manifest.format}, this version reads {FORMAT}",
            todo=REPAIR,
        )
    # sizes catch a cut-off copy at no cost; the manifest's hash is that of the content
    for name, size in manifest.bytes.items():
        if (folder / name).stat().st_size != size:
            raise DataError(f"{folder / name} does not have {size} bytes", todo=REPAIR)
    return manifest


def _read_pieces(path: Path) -> SentencePieceProcessor:
    from sentencepiece import SentencePieceProcessor

    return SentencePieceProcessor(model_file=str(path))


def content_hash(folder: Path) -> str:
    """SHA-256 over name and bytes of every file of the model, as the manifest states it."""
    digest = hashlib.sha256()
    for name in FILES:
        digest.update(name.encode() + b"\0")
        digest.update((folder / name).read_bytes())
    return digest.hexdigest()
