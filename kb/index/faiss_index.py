"""Nearest vectors with FAISS: exact while that is fast, then inverted lists of 8-bit vectors.

An index is a large part that never changes and a small exact one with what came later; removed
numbers are masked out. So a change costs the size of the change, and readers are never disturbed.

Source: https://github.com/facebookresearch/faiss/wiki/Guidelines-to-choose-an-index
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import faiss as stubbed_faiss
import numpy as np

from kb.errors import DamagedIndexError, SearchIndexError
from kb.index.base import DISK, REPAIR, Batches, Numbers, Ranking, Scores
from kb.index.vector_index import VectorIndex

faiss: Any = stubbed_faiss  # its stubs lack what its Python wrappers take

EXACT_LIMIT = 100_000  # vectors: 256-d exact search takes 5 ms there; beyond, lists win
LISTS_PER_ROOT = (
    2  # lists = 2 * sqrt(vectors): half of what FAISS's guide begins with, built 4 times faster
)
SCANNED = 24_000  # vectors a question is compared with, 0.7 ms; so many lists are looked into
TRAIN_PER_LIST = 40  # vectors a list is trained on; FAISS warns below 39
SEED = 1234  # of the training sample: the same vectors give the same index
DELTA = "dense-delta.npz"
ONE_THREAD = 1  # two threads on a busy machine wait for each other: 63 ms become 150 ms


@dataclass(frozen=True, eq=False)
class FaissIndex:
    """A FAISS index and what changed since.

    Attributes:
        base: index of the large part, with ids; never changed once here.
        dimension: length of a vector.
        removed: numbers of `base` that are gone, ascending.
        numbers: numbers of the vectors added since, with
        vectors: the vectors, one row each.
    """

    base: Any
    dimension: int
    removed: Numbers
    numbers: Numbers
    vectors: Scores

    @classmethod
    def library(cls) -> str:
        """FAISS and its version."""
        return f"faiss {version('faiss-cpu')}"

    @classmethod
    def build(
        cls, batches: Batches, *, size: int, dimension: int, exact_limit: int = EXACT_LIMIT
    ) -> FaissIndex:
        """An index of the `size` vectors (rows of length 1) that `batches` gives.

        Beyond `exact_limit` vectors it has `lists_for` lists of 8-bit vectors.
        """
        faiss.omp_set_num_threads(ONE_THREAD)
        if size <= exact_limit:
            base = faiss.IndexIDMap2(faiss.IndexFlatIP(dimension))
        else:
            base = _lists(batches, size, dimension)
        for numbers, vectors in batches():
            base.add_with_ids(np.ascontiguousarray(vectors), np.ascontiguousarray(numbers))
        return cls(
            base=base,
            dimension=dimension,
            removed=np.zeros(0, dtype=np.int64),
            numbers=np.zeros(0, dtype=np.int64),
            vectors=np.zeros((0, dimension), dtype=np.float32),
        )

    @classmethod
    def load(cls, folder: Path, base: str, *, known: VectorIndex | None = None) -> FaissIndex:
        """Read an index; `known` lends its large part instead of reading the file.

        Raises:
            SearchIndexError: a file cannot be read as an index.
        """
        try:
            lent = known.base if isinstance(known, FaissIndex) else None
            large = faiss.read_index(str(folder / base)) if lent is None else lent
            with (folder / DELTA).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
                return cls(
                    base=large,
                    dimension=int(large.d),
                    removed=arrays["removed"],
                    numbers=arrays["numbers"],
                    vectors=arrays["vectors"],
                )
        except (RuntimeError, ValueError, KeyError, EOFError, BadZipFile) as error:
            raise DamagedIndexError(
                f"{folder}: the vectors cannot be read: {error}", todo=REPAIR
            ) from error

    @property
    def kind(self) -> str:
        """``exact`` or ``ivf<lists>,sq8``."""
        return f"ivf{self.base.nlist},sq8" if hasattr(self.base, "nlist") else "exact"

    @property
    def size(self) -> int:
        """Number of vectors that can be found."""
        return int(self.base.ntotal) - len(self.removed) + len(self.numbers)

    @property
    def changes(self) -> int:
        """How many vectors were added or removed since the large part was built."""
        return len(self.removed) + len(self.numbers)

    def search(self, query: Scores, limit: int, allowed: Numbers | None = None) -> Ranking:
        """The `limit` nearest, with their cosine in [-1, 1]; that of SQ8 is within 0.01."""
        faiss.omp_set_num_threads(ONE_THREAD)  # holds for the calling thread only
        row = np.ascontiguousarray(query, dtype=np.float32).reshape(1, -1)
        numbers, scores = self._search_base(row, limit, allowed)
        late, values = self.numbers, self.vectors @ row[0]
        if allowed is not None:
            passed = np.isin(late, allowed)
            late, values = late[passed], values[passed]
        numbers = np.concatenate([numbers, late])
        scores = np.clip(np.concatenate([scores, values]), -1, 1)
        order = np.lexsort((numbers, -scores))[:limit]
        return numbers[order], scores[order]

    def vectors_of(self, numbers: Numbers) -> tuple[Numbers, Scores] | None:
        """The vectors of those numbers (ascending) that are here, as they were put in.

        Returns:
            Their numbers, ascending, and one row each; None where lists keep them rounded.
        """
        if self._flat is None:
            return None
        held, rows = self._flat
        here = numbers[np.isin(numbers, held, assume_unique=True)]
        return here, rows[np.searchsorted(held, here)]

    @cached_property
    def _flat(self) -> tuple[Numbers, Scores] | None:
        """Numbers, ascending, and vectors of an exact index; None where there are lists.

        Without changes since, the vectors are FAISS's own memory, which `base` keeps alive.
        """
        if not hasattr(self.base, "id_map"):
            return None
        numbers = self._base_numbers()
        flat = faiss.downcast_index(self.base.index)
        size = int(flat.ntotal)
        rows = faiss.rev_swig_ptr(flat.get_xb(), size * self.dimension) if size else np.zeros(0)
        vectors = np.asarray(rows, dtype=np.float32).reshape(size, self.dimension)
        if self.changes or np.any(numbers[1:] < numbers[:-1]):
            keep = ~np.isin(numbers, self.removed)
            numbers = np.concatenate([numbers[keep], self.numbers])
            order = np.argsort(numbers)
            return numbers[order], np.concatenate([vectors[keep], self.vectors])[order]
        return numbers, vectors

    def with_changes(self, removed: Numbers, numbers: Numbers, vectors: Scores) -> FaissIndex:
        """This index without `removed` and with `vectors` (rows of length 1) under `numbers`."""
        gone = np.union1d(removed, numbers)
        keep = ~np.isin(self.numbers, gone)
        # a number that is not in the large part is masked to no effect, but miscounts the size
        in_base = gone[np.isin(gone, self._base_numbers(), assume_unique=True)]
        return FaissIndex(
            base=self.base,
            dimension=self.dimension,
            removed=np.union1d(self.removed, in_base),
            numbers=np.concatenate([self.numbers[keep], numbers]).astype(np.int64),
            vectors=np.concatenate([self.vectors[keep], vectors]).astype(np.float32),
        )

    def save(self, folder: Path, base: str) -> None:
        """Write the large part to `folder/base` unless it is there, and the changes beside it.

        Raises:
            SearchIndexError: the large part cannot be written.
        """
        if not (folder / base).exists():
            try:
                faiss.write_index(self.base, str(folder / base))
            except RuntimeError as error:
                raise SearchIndexError(
                    f"{folder / base} cannot be written: {error}", todo=DISK
                ) from error
        np.savez(
            folder / DELTA,
            allow_pickle=False,
            removed=self.removed,
            numbers=self.numbers,
            vectors=self.vectors,
        )

    def _search_base(self, row: Scores, limit: int, allowed: Numbers | None) -> Ranking:
        limit = min(limit, int(self.base.ntotal))
        if limit == 0 or (allowed is not None and not len(allowed)):
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
        scores, numbers = self.base.search(row, limit, params=self._parameters(allowed))
        hits = numbers[0] >= 0  # FAISS fills up with -1
        return numbers[0][hits], scores[0][hits]

    def _parameters(self, allowed: Numbers | None) -> Any:  # noqa: ANN401 - FAISS is untyped
        selector = None
        share = 1.0
        if allowed is not None:
            selector = faiss.IDSelectorBitmap(_bitmap(allowed, self.removed))
            share = len(allowed) / int(self.base.ntotal)
        elif len(self.removed):
            nothing = np.zeros(0, dtype=np.int64)
            selector = faiss.IDSelectorNot(faiss.IDSelectorBitmap(_bitmap(self.removed, nothing)))
        if not hasattr(self.base, "nlist"):
            return faiss.SearchParameters(sel=selector) if selector is not None else None
        # few allowed vectors are spread over all lists: look into more of them
        probes = probes_for(self.base.nlist, int(self.base.ntotal))
        probes = min(self.base.nlist, int(probes / max(share, 1e-9)) + 1)
        return faiss.SearchParametersIVF(sel=selector, nprobe=probes)

    def _base_numbers(self) -> Numbers:
        if hasattr(self.base, "id_map"):
            return np.asarray(faiss.vector_to_array(self.base.id_map), dtype=np.int64)
        lists = self.base.invlists
        parts = [
            faiss.rev_swig_ptr(lists.get_ids(number), lists.list_size(number)).copy()
            for number in range(self.base.nlist)
        ]
        return np.concatenate(parts).astype(np.int64)


def lists_for(size: int) -> int:
    """Number of inverted lists for that many vectors."""
    return int(LISTS_PER_ROOT * size**0.5)


def probes_for(lists: int, size: int) -> int:
    """Number of lists looked into for a question."""
    return min(lists, max(1, round(lists * SCANNED / max(1, size))))


def _lists(batches: Batches, size: int, dimension: int) -> Any:  # noqa: ANN401
    lists = lists_for(size)
    quantizer = faiss.IndexFlatIP(dimension)
    base = faiss.IndexIVFScalarQuantizer(
        quantizer,
        dimension,
        lists,
        faiss.ScalarQuantizer.QT_8bit,
        faiss.METRIC_INNER_PRODUCT,
    )
    base.cp.seed = SEED
    base.train(_sample(batches, size, lists * TRAIN_PER_LIST))
    return base


def _sample(batches: Batches, size: int, wanted: int) -> Scores:
    """Evenly spread rows of the batches, about `wanted` of them."""
    step = max(1, size // wanted)
    seen = 0
    rows: list[Scores] = []
    for _, vectors in batches():
        rows.append(vectors[-seen % step :: step])
        seen += len(vectors)
    return np.ascontiguousarray(np.concatenate(rows), dtype=np.float32)


def _bitmap(numbers: Numbers, but: Numbers) -> Any:  # noqa: ANN401
    """One bit a number up to the largest of `numbers` (ascending), without those of `but`."""
    size = int(numbers[-1]) + 1 if len(numbers) else 1
    bits = np.zeros(size, dtype=np.bool_)
    bits[numbers] = True
    bits[but[but < size]] = False
    return np.packbits(bits, bitorder="little")
