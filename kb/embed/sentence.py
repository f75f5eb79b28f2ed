"""Any sentence-transformers model, by name or folder, behind the same promise."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kb.errors import MissingExtraError, SettingsError

HASH_DIGITS = 12  # hex digits of the content hash in a name: 48 bits


class SentenceTransformerEmbedder:
    """A sentence-transformers model such as BAAI/bge-m3 or intfloat/multilingual-e5-small.

    Attributes:
        name: model, hash of weights and prefixes.
        dimension: length of every vector.
    """

    def __init__(
        self,
        model: str,
        *,
        query_prefix: str = "",
        passage_prefix: str = "",
        batch_size: int = 32,
        device: str = "cpu",
    ) -> None:
        """Load `model` (a name of the model hub or a folder).

        The prefixes are put before every question and passage, as the E5 family needs
        (``"query: "``, ``"passage: "``).

        Raises:
            MissingExtraError: sentence-transformers is not installed.
            SettingsError: there is no such model, or it cannot be loaded here.
        """
        self._model = _load(model, device)
        self._query_prefix = query_prefix
        self._passage_prefix = passage_prefix
        self._batch_size = batch_size
        self.dimension: int = int(self._model.get_embedding_dimension())
        content = _content_hash(self._model, query_prefix, passage_prefix)
        self.name = f"{model.rstrip('/').rsplit('/', 1)[-1]}@{content}"

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of questions: shape (n, dimension), rows of length 1."""
        return self._encode(texts, self._query_prefix)

    def encode_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of stored texts: shape (n, dimension), rows of length 1."""
        return self._encode(texts, self._passage_prefix)

    def _encode(self, texts: Sequence[str], prefix: str) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        vectors = self._model.encode(
            [prefix + text for text in texts],
            batch_size=self._batch_size,
            normalize_embeddings=True,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        # an empty text has no direction of its own: a zero row matches nothing
        not_empty = np.array([bool(text.strip()) for text in texts], dtype=np.float32)
        return np.ascontiguousarray(vectors, dtype=np.float32) * not_empty[:, None]


def _load(model: str, device: str) -> Any:  # noqa: ANN401 - sentence-transformers is untyped here
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise MissingExtraError(
            f"the model {model!r} needs sentence-transformers, which is not installed",
            todo="pip install 'timeout-kb[models]', or unset TIMEOUT_KB_MODEL",
        ) from error
    try:
        return SentenceTransformer(model, device=device)
    except (OSError, ValueError, RuntimeError) as error:
        raise SettingsError(
            f"TIMEOUT_KB_MODEL={model!r} cannot be loaded on {device!r}: {error}",
            todo="give a model folder or a name that can be downloaded, and a device that exists",
        ) from error


def _content_hash(model: Any, *prefixes: str) -> str:  # noqa: ANN401
    """Hash of the weights and of everything of ours that changes a vector."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().float().numpy().tobytes())
    for prefix in prefixes:
        digest.update(b"\0" + prefix.encode())
    return digest.hexdigest()[:HASH_DIGITS]
