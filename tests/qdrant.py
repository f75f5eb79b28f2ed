"""Qdrant without a server: its engine as a library, and the client's own copy in memory.

`EdgeClient` has the methods of the client that the product calls, on Qdrant Edge (a beta: pinned).
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import qdrant_edge as edge
from qdrant_client import models

NOTHING = "unused"  # Edge wants a vector in every collection


class EdgeClient:
    """Collections below a folder, each one shard of the engine that a server runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shards: dict[str, edge.EdgeShard] = {}
        self._configs: dict[str, Any] = {}
        self._aliases: dict[str, str] = {}

    def create_collection(
        self,
        name: str,
        *,
        vectors_config: dict[str, models.VectorParams],
        sparse_vectors_config: dict[str, models.SparseVectorParams] | None = None,
        quantization_config: models.ScalarQuantization | None = None,
        on_disk_payload: bool = True,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        """A shard of its own, with the same vectors and the same quantisation."""
        dense = {
            key: edge.EdgeVectorParams(
                size=one.size,
                distance=edge.Distance.Cosine,
                on_disk=one.on_disk,
                datatype=edge.VectorStorageDatatype.Float16,
            )
            for key, one in vectors_config.items()
        }
        sparse = {key: edge.EdgeSparseVectorParams() for key in sparse_vectors_config or [NOTHING]}
        folder = self._folder / name
        folder.mkdir()
        small = edge.ScalarQuantizationConfig(type=edge.ScalarType.Int8, always_ram=True)
        self._shards[name] = edge.EdgeShard.create(
            str(folder),
            edge.EdgeConfig(
                vectors=dense or None,
                sparse_vectors=sparse,
                quantization_config=small if quantization_config else None,
                on_disk_payload=on_disk_payload,
            ),
        )
        self._configs[name] = SimpleNamespace(
            metadata=metadata, params=SimpleNamespace(vectors=vectors_config)
        )

    def collection_exists(self, name: str) -> bool:
        """Also under an alias."""
        return self._aliases.get(name, name) in self._shards

    def get_collection(self, name: str) -> Any:
        """Its configuration; the graph is made before it answers."""
        name = self._aliases.get(name, name)
        self._shards[name].optimize()
        return SimpleNamespace(config=self._configs[name], status=models.CollectionStatus.GREEN)

    def delete_collection(self, name: str) -> None:
        """The folder stays."""
        self._shards.pop(name).close()

    def get_aliases(self) -> models.CollectionsAliasesResponse:
        """All of them."""
        return models.CollectionsAliasesResponse(
            aliases=[
                models.AliasDescription(alias_name=alias, collection_name=name)
                for alias, name in self._aliases.items()
            ]
        )

    def update_collection_aliases(self, actions: list[Any]) -> None:
        """Deletions and creations in their order."""
        for action in actions:
            if isinstance(action, models.DeleteAliasOperation):
                del self._aliases[action.delete_alias.alias_name]
            else:
                made = action.create_alias
                self._aliases[made.alias_name] = made.collection_name

    def create_payload_index(
        self, name: str, field: str, *, field_schema: models.PayloadSchemaType
    ) -> None:
        """An index on a field."""
        kind = getattr(edge.PayloadSchemaType, field_schema.value.capitalize())
        self._shard(name).update(edge.UpdateOperation.create_field_index(field, kind))

    def upsert(self, name: str, points: list[models.PointStruct], *, wait: bool) -> None:
        """Write points."""
        assert wait
        made = [edge.Point(one.id, _vectors(one.vector), one.payload) for one in points]
        self._shard(name).update(edge.UpdateOperation.upsert_points(made))

    def delete(self, name: str, selector: models.PointIdsList, *, wait: bool) -> None:
        """Delete points."""
        assert wait
        self._shard(name).update(edge.UpdateOperation.delete_points(selector.points))

    def retrieve(
        self,
        name: str,
        ids: list[int],
        *,
        with_payload: bool | list[str] = False,
        with_vectors: list[str] | None = None,
    ) -> list[Any]:
        """Points by number."""
        return self._shard(name).retrieve(ids, with_payload, with_vectors)

    def query_points(
        self,
        name: str,
        *,
        query: list[float] | models.SparseVector,
        using: str,
        query_filter: models.Filter | None,
        search_params: models.SearchParams | None,
        limit: int,
        with_payload: list[str],
    ) -> Any:
        """The nearest points."""
        vector = _vectors({using: query})[using]
        params = search_params and edge.SearchParams(
            hnsw_ef=search_params.hnsw_ef, quantization=edge.QuantizationSearchParams(rescore=True)
        )
        request = edge.QueryRequest(
            query=edge.Query.Nearest(vector, using=using),
            filter=_filter(query_filter),
            params=params,
            limit=limit,
            with_payload=with_payload,
        )
        return SimpleNamespace(points=self._shard(name).query(request))

    def scroll(
        self, name: str, only: models.Filter, *, limit: int, with_payload: list[str]
    ) -> tuple[list[Any], Any]:
        """Points that pass."""
        request = edge.ScrollRequest(filter=_filter(only), limit=limit, with_payload=with_payload)
        return self._shard(name).scroll(request)

    def count(
        self, name: str, *, exact: bool, count_filter: models.Filter | None = None
    ) -> models.CountResult:
        """How many pass."""
        request = edge.CountRequest(filter=_filter(count_filter), exact=exact)
        return models.CountResult(count=self._shard(name).count(request))

    def facet(
        self, name: str, key: str, *, facet_filter: models.Filter | None, limit: int, exact: bool
    ) -> Any:
        """How often each value occurs."""
        request = edge.FacetRequest(key, limit=limit, exact=exact, filter=_filter(facet_filter))
        return self._shard(name).facet(request)

    def close(self) -> None:
        """Close all shards."""
        for shard in self._shards.values():
            shard.close()

    def _shard(self, name: str) -> edge.EdgeShard:
        return self._shards[self._aliases.get(name, name)]


def _vectors(named: dict[str, Any]) -> dict[str, Any]:
    return {
        name: edge.SparseVector(row.indices, row.values)
        if isinstance(row, models.SparseVector)
        else row
        for name, row in named.items()
    }


def _filter(wanted: models.Filter | None) -> edge.Filter | None:
    if wanted is None:
        return None
    parts = {
        name: [_condition(one) for one in getattr(wanted, name) or ()]
        for name in ("must", "must_not")
    }
    return edge.Filter(**{name: some or None for name, some in parts.items()})


def _condition(wanted: Any) -> Any:
    if isinstance(wanted, models.HasIdCondition):
        return edge.HasIdCondition(set(wanted.has_id))
    if wanted.range is not None:
        limits = edge.RangeFloat(gte=wanted.range.gte, lte=wanted.range.lte)
        return edge.FieldCondition(wanted.key, range=limits)
    if isinstance(wanted.match, models.MatchAny):
        return edge.FieldCondition(wanted.key, match=edge.MatchAny(wanted.match.any))
    return edge.FieldCondition(wanted.key, match=edge.MatchValue(wanted.match.value))
