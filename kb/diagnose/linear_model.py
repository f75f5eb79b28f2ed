"""A fitted linear model as it is stored: a table of nats, one row a feature.

What sentences state, what messages do and what descriptions were are all read with such tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from kb.errors import DataError

FORMAT = "timeout-kb/reader/1"
MANIFEST, TOKENS, ROWS, IDF = "manifest.json", "tokens.txt", "rows.npy", "idf.npy"
REPAIR = "run python -m kb.train.fit, or reinstall the package"
Floats = NDArray[np.float32]


class _Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: str
    causes: list[str]
    fitted_on: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearModel:
    """What is fitted.

    Attributes:
        causes: ids, in the order of the columns of `rows`.
        tokens: the words it knows, in the order of the rows.
        idf: weight of each word, shape (tokens,).
        rows: nats per cause, shape (tokens + dimension of the embedding, causes).
    """

    causes: tuple[str, ...]
    tokens: tuple[str, ...]
    idf: Floats
    rows: Floats
    fitted_on: str = ""

    @classmethod
    def empty(cls, causes: Sequence[str], dimension: int) -> LinearModel:
        """A model that knows nothing and says nothing."""
        rows = np.zeros((dimension, len(causes)), dtype=np.float32)
        return cls(causes=tuple(causes), tokens=(), idf=np.zeros(0, dtype=np.float32), rows=rows)


def load_model(folder: Path) -> LinearModel:
    """Read the model of ``data/reader``.

    Raises:
        DataError: a file is missing, damaged or of another format.
    """
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=_Manifest)
        tokens = tuple((folder / TOKENS).read_text("utf-8").split("\n")[:-1])
        rows = np.load(folder / ROWS, allow_pickle=False).astype(np.float32)
        idf = np.load(folder / IDF, allow_pickle=False).astype(np.float32)
    except (OSError, ValueError, msgspec.DecodeError) as error:
        raise DataError(f"{folder.name}: {error}", todo=REPAIR) from error
    fits = idf.shape == (len(tokens),) and rows.ndim == 2 and rows.shape[0] >= len(tokens)
    if manifest.format != FORMAT or not fits or rows.shape[1] != len(manifest.causes):
        raise DataError(f"{folder.name}: the files do not belong together", todo=REPAIR)
    return LinearModel(
        causes=tuple(manifest.causes),
        tokens=tokens,
        idf=idf,
        rows=rows,
        fitted_on=manifest.fitted_on,
    )


def save_model(folder: Path, model: LinearModel) -> None:
    """Write the model in half precision; the manifest last: half-written ones are refused."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    np.save(folder / ROWS, model.rows.astype(np.float16), allow_pickle=False)
    np.save(folder / IDF, model.idf.astype(np.float16), allow_pickle=False)
    (folder / TOKENS).write_text("".join(f"{token}\n" for token in model.tokens), "utf-8")
    manifest = _Manifest(format=FORMAT, causes=list(model.causes), fitted_on=model.fitted_on)
    (folder / MANIFEST).write_bytes(msgspec.json.encode(manifest) + b"\n")
