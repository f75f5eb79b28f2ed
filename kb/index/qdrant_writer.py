"""Writes chunks as points of a Qdrant collection, and how often words occur as those of another."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from qdrant_client import models

from kb.errors import SearchIndexError
from kb.index.base import Numbers
from kb.index.catalogue import Catalogue
from kb.index.lexical import ChunkWords
from kb.index.qdrant_connection import WRITE_S, QdrantConnection
from kb.index.qdrant_state import SEPARATOR, WORDS, places_of, places_text, sparse_vector
from kb.index.sources import ChunkSources, Identity, batches_of
from kb.index.sparse_words import chunk_row, word_index

MANIFEST = "timeout_kb"  # in the collection's metadata
STATE = 1 << 32  # number of the point that tells the last change: behind the places of all words
ENTRIES = 500  # whose chunks are read and counted at once
POINTS = 200  # written with one request: 1.5 MB
PLACES = 1_000  # words whose counts are written with one request
INDEXING_S = 5.0  # between two looks at whether the server has made the graph
FIELDS = {
    "tags": models.PayloadSchemaType.KEYWORD,
    "labels": models.PayloadSchemaType.KEYWORD,
    "id": models.PayloadSchemaType.KEYWORD,
    "day": models.PayloadSchemaType.INTEGER,
    "last_of": models.PayloadSchemaType.INTEGER,
}
_log = logging.getLogger(__name__)


class BuildManifest(msgspec.Struct, frozen=True):
    """What built a collection.

    Attributes:
        identity: program, model, database.
        lengths: usual number of words of a chunk, by field: BM25 compares with it.
    """

    identity: Identity
    lengths: dict[str, float]


@dataclass(slots=True)
class WordCounts:
    """How many chunks and entries more have a word, by its place."""

    fields: dict[str, Counter[int]] = field(
        default_factory=lambda: {name: Counter() for name in ("body", "signature", "entries")}
    )

    def add(self, places: Mapping[str, Sequence[int]], times: int) -> None:
        """Count what a point has; -1 times where it goes."""
        for name, some in places.items():
            counter = self.fields[name]
            for place in some:
                counter[place] += times


class PointWriter:
    """Writes chunks and counts of words into a collection and that of its words."""

    def __init__(
        self,
        connection: QdrantConnection,
        sources: ChunkSources,
        collection: str,
        lengths: dict[str, float],
        *,
        fresh: bool,
    ) -> None:
        """Write into `collection`; a `fresh` one holds nothing that could be replaced."""
        self.collection = collection
        self._connection, self._sources = connection, sources
        self._lengths, self._fresh = lengths, fresh
        self._counts = WordCounts()

    def make(self, manifest: BuildManifest) -> None:
        """Make both collections."""
        vectors = models.VectorParams(
            size=manifest.identity.dimension,
            distance=models.Distance.COSINE,
            datatype=models.Datatype.FLOAT16,  # as the store has them
            on_disk=True,
        )
        small = models.ScalarQuantizationConfig(type=models.ScalarType.INT8, always_ram=True)
        with self._connection.asking(WRITE_S) as client:
            client.create_collection(
                self.collection,
                vectors_config={"dense": vectors},
                sparse_vectors_config={
                    name: models.SparseVectorParams() for name in ("body", "signature")
                },
                quantization_config=models.ScalarQuantization(scalar=small),
                on_disk_payload=True,
                metadata={MANIFEST: msgspec.to_builtins(manifest)},
            )
            client.create_collection(
                self.collection + WORDS, vectors_config={}, on_disk_payload=True
            )
            for name, schema in FIELDS.items():
                client.create_payload_index(self.collection, name, field_schema=schema)

    def write(self, entries: Sequence[int], removed: Sequence[int]) -> None:
        """Write the chunks of `entries` (ordinals) anew and delete the chunks `removed`."""
        store = self._sources.store
        for ordinals in batches_of(np.array(entries, dtype=np.int64), ENTRIES):
            catalogue = Catalogue.of(store.catalogue_rows(ordinals.tolist()))
            self._discount(catalogue.numbers)
            for points in self._points(catalogue):
                with self._connection.asking(WRITE_S) as client:
                    client.upsert(self.collection, points, wait=True)
            if not self._fresh:
                self._write_counts()
        for numbers in batches_of(np.array(removed, dtype=np.int64), ENTRIES):
            self._discount(numbers)
            with self._connection.asking(WRITE_S) as client:
                selector = models.PointIdsList(points=numbers.tolist())
                client.delete(self.collection, selector, wait=True)
        self._write_counts()

    def finish(self, seq: int, identity: Identity) -> None:
        """Write the number of the last change, and how many chunks and entries there are."""
        last = models.FieldCondition(key="last_of", range=models.Range(gte=0))
        with self._connection.asking(WRITE_S) as client:
            count = client.count(self.collection, exact=True).count
            entries = client.count(
                self.collection, count_filter=models.Filter(must=[last]), exact=True
            ).count
            payload = {"seq": seq, "chunks": count, "entries": entries}
            payload |= {"identity": identity.folder_name()}
            state = models.PointStruct(id=STATE, vector={}, payload=payload)
            client.upsert(self.collection + WORDS, [state], wait=True)

    def wait_until_indexed(self) -> None:
        """Return when the server has made its graph: until then a search reads all vectors."""
        while True:
            with self._connection.asking(WRITE_S) as client:
                status = client.get_collection(self.collection).status
            if status != models.CollectionStatus.YELLOW:
                return
            time.sleep(INDEXING_S)

    def drop(self) -> None:
        """Delete both collections; where that fails they are left, and nothing points to them."""
        try:
            with self._connection.asking(WRITE_S) as client:
                client.delete_collection(self.collection)
                client.delete_collection(self.collection + WORDS)
        except SearchIndexError:
            _log.warning("collection_left: %s", self.collection)

    def _points(self, catalogue: Catalogue) -> Iterator[list[models.PointStruct]]:
        labels: dict[int, list[str]] = {}
        for tag, position in zip(catalogue.tag_of.tolist(), catalogue.tagged.tolist(), strict=True):
            ordinal = int(catalogue.ordinals[position])
            labels.setdefault(ordinal, []).append(SEPARATOR.join(catalogue.tags[tag]))
        vectors: dict[int, list[float]] = {}
        for numbers, rows in self._sources.vectors_of(catalogue.numbers):
            vectors.update(zip(numbers.tolist(), rows.tolist(), strict=True))
        last = set(catalogue.last_chunks.tolist())
        owners = dict(
            zip(
                catalogue.numbers.tolist(),
                catalogue.entries_of(catalogue.numbers).tolist(),
                strict=True,
            )
        )
        points: list[models.PointStruct] = []
        for document in self._sources.documents(catalogue):
            ordinal = owners[document.number]
            ending = labels.get(ordinal, []) if document.number in last else None
            points.append(self._point(document, ordinal, vectors.get(document.number), ending))
            if len(points) == POINTS:
                yield points
                points = []
        if points:
            yield points

    def _point(
        self,
        document: ChunkWords,
        ordinal: int,
        vector: list[float] | None,
        labels: list[str] | None,
    ) -> models.PointStruct:
        """A chunk as a point; `labels` are its entry's where it is the last chunk of it."""
        body = chunk_row(document.body, self._lengths["body"])
        signature = chunk_row(document.signature, self._lengths["signature"])
        whole = sorted(set(map(word_index, document.whole)))
        counted = {"body": body[0], "signature": signature[0], "entries": whole}
        self._counts.add(counted, 1)
        payload: dict[str, Any] = {
            "entry": ordinal,
            "id": document.entry_id,
            "day": document.day,
            "tags": [SEPARATOR.join(tag) for tag in document.tags],
        }
        if labels is not None:
            payload |= {"last_of": ordinal, "labels": labels, "words": places_text(whole)}
        named: dict[str, Any] = {"body": body, "signature": signature}
        named = {name: sparse_vector(row) for name, row in named.items() if row[0]}
        if vector is not None:
            named["dense"] = vector
        return models.PointStruct(id=document.number, vector=named, payload=payload)

    def _discount(self, numbers: Numbers) -> None:
        """Count off the words of chunks that are replaced or removed."""
        if self._fresh or not len(numbers):
            return
        with self._connection.asking(WRITE_S) as client:
            points = client.retrieve(
                self.collection,
                numbers.tolist(),
                with_payload=["words"],
                with_vectors=["body", "signature"],
            )
        for point in points:
            rows = {name: row.indices for name, row in (point.vector or {}).items()}
            words = (point.payload or {}).get("words")
            rows["entries"] = places_of(words).tolist() if words else []
            self._counts.add(rows, -1)

    def _write_counts(self) -> None:
        """Add what was counted since to the counts that are there."""
        fields, self._counts = self._counts.fields, WordCounts()
        places = sorted({place for counter in fields.values() for place in counter})
        for start in range(0, len(places), PLACES):
            some = places[start : start + PLACES]
            with self._connection.asking(WRITE_S) as client:
                former: dict[int, dict[str, int]] = {}
                if not self._fresh:
                    found = client.retrieve(self.collection + WORDS, some, with_payload=True)
                    former = {point.id: point.payload for point in found}
                points = [
                    models.PointStruct(
                        id=place,
                        vector={},
                        payload={
                            name: max(0, former.get(place, {}).get(name, 0) + counter[place])
                            for name, counter in fields.items()
                        },
                    )
                    for place in some
                ]
                client.upsert(self.collection + WORDS, points, wait=True)
