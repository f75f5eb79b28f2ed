"""Chunk vectors per model, so that an index is rebuilt without the model."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kb.errors import InputError, StoreError
from kb.store.connection import Connection, Database
from kb.store.statements import select_in

# float16 halves the file; a unit vector's inner products move by less than 0.001
STORED = np.dtype("<f2")


class Vectors:
    """Vectors by chunk number, kept per model name."""

    def __init__(self, database: Database) -> None:
        """Read and write in `database`."""
        self._database = database

    def put(self, model: str, numbers: Sequence[int], vectors: NDArray[np.float32]) -> int:
        """Store the vectors of chunks; those whose chunk is gone by now are passed over.

        Args:
            model: name of the model that made them.
            numbers: chunk numbers.
            vectors: one row a number.

        Returns:
            How many were stored.

        Raises:
            InputError: there are not as many rows as numbers.
        """
        if vectors.ndim != 2 or len(vectors) != len(numbers):
            raise InputError(f"{len(numbers)} chunks do not fit vectors of shape {vectors.shape}")
        with self._database.write() as connection:
            connection.execute(
                "INSERT INTO models SELECT coalesce(max(number), 0) + 1, CAST(? AS TEXT) "
                "FROM models WHERE 1 = 1 ON CONFLICT (name) DO NOTHING",
                (model,),
            )
            key = _model(connection, model)
            return connection.executemany(
                "INSERT INTO vectors SELECT ?, number, ? FROM chunks WHERE number = ? "
                "ON CONFLICT (model, chunk) DO UPDATE SET vector = excluded.vector",
                [
                    (key, row.tobytes(), number)
                    for number, row in zip(numbers, vectors.astype(STORED), strict=True)
                ],
            ).rowcount

    def get(
        self, model: str, numbers: Sequence[int], dimension: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Vectors of those chunks that have one, scaled to length 1 again.

        Returns:
            Their numbers, ascending, and one row each.

        Raises:
            StoreError: a vector does not have `dimension` numbers.
        """
        query = "SELECT chunk, vector FROM vectors WHERE model = ? AND chunk IN ({}) ORDER BY chunk"
        with self._database.read() as connection:
            rows = list(select_in(connection, query, numbers, _model(connection, model)))
        joined = b"".join([row[1] for row in rows])
        if len(joined) != len(rows) * dimension * STORED.itemsize:
            raise StoreError(
                f"the vectors of model {model} do not all have {dimension} numbers",
                todo="run `timeout-kb ingest --rebuild`",
            )
        vectors = np.frombuffer(joined, dtype=STORED).reshape(-1, dimension).astype(np.float32)
        lengths = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))
        vectors /= np.where(lengths > 0, lengths, 1)[:, None]  # rounding moved them off 1
        return np.array([row[0] for row in rows], dtype=np.int64), vectors

    def missing(self, model: str, *, after: int = 0, limit: int = 1000) -> list[int]:
        """Numbers of chunks without a vector of that model, ascending from above `after`."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT number FROM chunks WHERE number > ? AND NOT EXISTS "
                "(SELECT 1 FROM vectors WHERE model = ? AND chunk = chunks.number) "
                "ORDER BY number LIMIT ?",
                (after, _model(connection, model), limit),
            )
            return [row[0] for row in rows]


def _model(connection: Connection, name: str) -> int:
    row = connection.execute("SELECT number FROM models WHERE name = ?", (name,)).fetchone()
    return int(row[0]) if row else 0
