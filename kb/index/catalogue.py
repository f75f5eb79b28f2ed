"""What chunk belongs to what entry, and what each entry is tagged with, as arrays.

It answers filters for the vector index and counts facets, without a database query.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kb.index.base import Numbers
from kb.index.chunk_index import NO_ENTRY, Selection
from kb.knowledge.facets import day_range, fold, wanted_values
from kb.types.entries import NO_FILTERS, Filters

Mask = NDArray[np.bool_]
FILE = "catalogue.npz"
CACHED_SELECTIONS = 4  # filters: every diagnosis has the same; 8 bytes a chunk each
Rows = tuple[list[tuple[int, str, int]], list[tuple[int, str, str]], NDArray[np.int64]]


@dataclass(frozen=True, kw_only=True, eq=False)
class Catalogue:
    """Entries in ordinal order and chunks in number order.

    Attributes:
        ordinals: int64, ascending, one an entry.
        ids: text, one an entry.
        days: int32 day numbers, one an entry.
        numbers: int64 chunk numbers, ascending.
        owners: int32 position of the chunk's entry, one a chunk.
        tags: (facet, label), sorted.
        tag_of: int32 position in `tags`, ascending; with
        tagged: int32 position of the entry that has the tag.
    """

    ordinals: Numbers
    ids: NDArray[np.str_]
    days: NDArray[np.int32]
    numbers: Numbers
    owners: NDArray[np.int32]
    tags: tuple[tuple[str, str], ...]
    tag_of: NDArray[np.int32]
    tagged: NDArray[np.int32]

    @classmethod
    def of(cls, rows: Rows) -> Catalogue:
        """Made of `Store.catalogue_rows`."""
        entries, tags, chunks = rows
        ordinals = np.array([row[0] for row in entries], dtype=np.int64)
        names = sorted({(facet, label) for _, facet, label in tags})
        position = {name: number for number, name in enumerate(names)}
        return cls._ordered(
            ordinals=ordinals,
            ids=np.array([row[1] for row in entries], dtype=np.str_),
            days=np.array([row[2] for row in entries], dtype=np.int32),
            chunks=chunks[np.isin(chunks[:, 1], ordinals)],
            names=names,
            tag_of=np.array([position[facet, label] for _, facet, label in tags], dtype=np.int64),
            tag_ordinals=np.array([row[0] for row in tags], dtype=np.int64),
        )

    @classmethod
    def _ordered(
        cls,
        *,
        ordinals: Numbers,
        ids: NDArray[np.str_],
        days: NDArray[np.int32],
        chunks: NDArray[np.int64],
        names: list[tuple[str, str]],
        tag_of: Numbers,
        tag_ordinals: Numbers,
    ) -> Catalogue:
        """Sorted, with positions in place of ordinals, without names nobody has."""
        order = np.argsort(ordinals)
        ordinals = ordinals[order]
        chunks = chunks[np.argsort(chunks[:, 0])]
        used, tag_of = np.unique(tag_of, return_inverse=True)
        tagged = np.searchsorted(ordinals, tag_ordinals)
        by_tag = np.lexsort((tagged, tag_of))
        return cls(
            ordinals=ordinals,
            ids=ids[order],
            days=days[order],
            numbers=chunks[:, 0],
            owners=np.searchsorted(ordinals, chunks[:, 1]).astype(np.int32),
            tags=tuple(names[number] for number in used.tolist()),
            tag_of=tag_of[by_tag].astype(np.int32),
            tagged=tagged[by_tag].astype(np.int32),
        )

    @cached_property
    def last_chunks(self) -> Numbers:
        """Number of the last chunk of every entry, -1 where it has none."""
        last = np.full(len(self.ordinals), -1, dtype=np.int64)
        last[self.owners] = self.numbers  # ascending, so the last one stays
        return last

    @cached_property
    def _positions(self) -> dict[tuple[str, str], list[int]]:
        """The spellings of every value."""
        positions: dict[tuple[str, str], list[int]] = {}
        for number, (facet, label) in enumerate(self.tags):
            positions.setdefault((facet, fold(label)), []).append(number)
        return positions

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        return np.searchsorted(self.tag_of, np.arange(len(self.tags) + 1))

    @cached_property
    def _all_facets(self) -> dict[str, dict[str, int]]:
        return self._count(np.ones(len(self.ordinals), dtype=np.bool_))

    @cached_property
    def _selections(self) -> Callable[[Filters], Selection]:
        return lru_cache(CACHED_SELECTIONS)(self._select)

    def select(self, filters: Filters) -> Selection:
        """The entries that pass, with what a search needs of them; the last ones are kept.

        Raises:
            InputError: a date of the filter cannot be read.
        """
        return self._selections(filters)

    def _select(self, filters: Filters) -> Selection:
        mask = self.passing(filters)
        if mask is None or mask.all():
            # No condition is faster than one that all meet, and finds the same.
            size = len(self.numbers)
            return Selection(filters=NO_FILTERS, facets=self._all_facets, size=size)
        chunks, facets = self.chunks_of(mask), self._count(mask)
        return Selection(filters=filters, facets=facets, size=len(chunks), chunks=chunks)

    def passing(self, filters: Filters) -> Mask | None:
        """Which entries pass, one truth value an entry; None when all do.

        Raises:
            InputError: a date of the filter cannot be read.
        """
        if filters == NO_FILTERS:
            return None
        mask = np.ones(len(self.ordinals), dtype=np.bool_)
        for facet, values in wanted_values(filters):
            one = np.zeros(len(mask), dtype=np.bool_)
            for value in values:
                for tag in self._positions.get((facet, value), ()):
                    one[self.tagged[self._ends[tag] : self._ends[tag + 1]]] = True
            mask &= one
        days = day_range(filters)
        if days is not None:
            mask &= (self.days >= days[0]) & (self.days <= days[1])
        if filters.exclude_ids:
            mask &= ~np.isin(self.ids, filters.exclude_ids)
        return mask

    def chunks_of(self, mask: Mask) -> Numbers:
        """Numbers of the chunks of the entries in `mask`, ascending."""
        return self.numbers[mask[self.owners]]

    def owners_of(self, numbers: Numbers) -> NDArray[np.int64]:
        """Positions of the entries the chunks belong to; -1 for unknown numbers."""
        if not len(self.numbers):
            return np.full(len(numbers), -1, dtype=np.int64)
        at = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
        return np.where(self.numbers[at] == numbers, self.owners[at], -1).astype(np.int64)

    def entries_of(self, numbers: Numbers) -> Numbers:
        """Ordinals of the entries the chunks belong to; `NO_ENTRY` for unknown numbers."""
        if not len(self.ordinals):
            return np.full(len(numbers), NO_ENTRY, dtype=np.int64)
        at = self.owners_of(numbers)
        return np.where(at >= 0, self.ordinals[at], NO_ENTRY).astype(np.int64)

    def with_changes(self, removed: Numbers, added: Catalogue) -> Catalogue:
        """This catalogue without the entries `removed` (ordinals), with those of `added`."""
        keep = ~np.isin(self.ordinals, np.concatenate([removed, added.ordinals]))
        mine, tags = keep[self.owners], keep[self.tagged]
        names = sorted({*self.tags, *added.tags})
        position = {name: number for number, name in enumerate(names)}
        renamed = [
            np.array([position[name] for name in one.tags], dtype=np.int64) for one in (self, added)
        ]
        return Catalogue._ordered(
            ordinals=np.concatenate([self.ordinals[keep], added.ordinals]),
            ids=np.concatenate([self.ids[keep], added.ids]),
            days=np.concatenate([self.days[keep], added.days]),
            chunks=np.concatenate([_chunks(self)[mine], _chunks(added)]),
            names=names,
            tag_of=np.concatenate([renamed[0][self.tag_of[tags]], renamed[1][added.tag_of]]),
            tag_ordinals=np.concatenate(
                [self.ordinals[self.tagged[tags]], added.ordinals[added.tagged]]
            ),
        )

    def save(self, folder: Path) -> None:
        """Write it to `folder`."""
        np.savez(
            folder / FILE,
            allow_pickle=False,
            ordinals=self.ordinals,
            ids=self.ids,
            days=self.days,
            numbers=self.numbers,
            owners=self.owners,
            tags=np.frombuffer(json.dumps(self.tags).encode(), dtype=np.uint8),
            tag_of=self.tag_of,
            tagged=self.tagged,
        )

    @classmethod
    def load(cls, folder: Path) -> Catalogue:
        """Read what `save` wrote."""
        with (folder / FILE).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return cls(
                ordinals=arrays["ordinals"],
                ids=arrays["ids"],
                days=arrays["days"],
                numbers=arrays["numbers"],
                owners=arrays["owners"],
                tags=tuple((f, label) for f, label in json.loads(arrays["tags"].tobytes())),
                tag_of=arrays["tag_of"],
                tagged=arrays["tagged"],
            )

    def _count(self, mask: Mask) -> dict[str, dict[str, int]]:
        counted = np.bincount(self.tag_of[mask[self.tagged]], minlength=len(self.tags)).tolist()
        shown: list[tuple[str, int, str, str]] = []
        for (facet, folded), spellings in self._positions.items():
            labels = [self.tags[number][1] for number in spellings if counted[number]]
            if labels:
                total = sum(counted[number] for number in spellings)
                shown.append((facet, -total, folded, min(labels)))
        return _in_order(shown)


def facet_table(counts: Iterable[tuple[str, str, int]]) -> dict[str, dict[str, int]]:
    """How many entries have each value, per facet, the most frequent first.

    Args:
        counts: facet, label and its count; spellings of one value are added up, and shown by the
            first of them.
    """
    values: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for facet, label, count in counts:
        values.setdefault((facet, fold(label)), []).append((label, count))
    return _in_order(
        (facet, -sum(count for _, count in labels), folded, min(labels)[0])
        for (facet, folded), labels in values.items()
    )


def _in_order(values: Iterable[tuple[str, int, str, str]]) -> dict[str, dict[str, int]]:
    """Facet, negative count, folded value and label as a table."""
    facets: dict[str, dict[str, int]] = {}
    for facet, negative, _, label in sorted(values):
        facets.setdefault(facet, {})[label] = -negative
    return facets


def _chunks(catalogue: Catalogue) -> NDArray[np.int64]:
    """Number and entry ordinal of every chunk, shape (n, 2)."""
    return np.column_stack([catalogue.numbers, catalogue.ordinals[catalogue.owners]])
