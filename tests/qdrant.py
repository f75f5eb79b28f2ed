"""Qdrant without a server: its engine as a library, and the client's own copy in memory.

`EdgeClient` has the methods of the client that the product calls, on Qdrant Edge (a beta: pinned).
`qdrant_server` answers those requests over HTTP, as a server does, so the real client asks it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
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

    def get_collections(self) -> models.CollectionsResponse:
        """All of them."""
        names = [models.CollectionDescription(name=name) for name in self._shards]
        return models.CollectionsResponse(collections=names)

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


# --- over HTTP -----------------------------------------------------------------------------------


@dataclass
class QdrantServer:
    """What a running server is told and asked: `refuse` is a status to answer everything with."""

    client: EdgeClient
    key: str = ""
    port: int = 0
    refuse: int = 0
    requests: list[str] = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Listen on 127.0.0.1, on the port of the last time."""
        server = ThreadingHTTPServer(("127.0.0.1", self.port), _handler(self))
        server.daemon_threads = True
        self.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def answer(self, method: str, path: str, body: Any) -> Any:
        """The result of a request."""
        parts = path.strip("/").split("/")
        if parts == ["collections"]:
            return self.client.get_collections()
        if parts == ["aliases"]:
            return self.client.get_aliases()
        if parts == ["collections", "aliases"]:
            made = models.ChangeAliasesOperation(**body)
            self.client.update_collection_aliases(made.actions)
            return True
        name, verb = parts[1], "/".join(parts[2:])
        if verb != "exists" and method != "PUT" and not self.client.collection_exists(name):
            raise LookupError(name)
        return _VERBS[method, verb](self.client, name, body)


def _query(client: EdgeClient, name: str, body: Any) -> Any:
    made = models.QueryRequest(**body)
    return client.query_points(
        name,
        query=made.query.nearest if isinstance(made.query, models.NearestQuery) else made.query,
        using=made.using,
        query_filter=made.filter,
        search_params=made.params,
        limit=made.limit,
        with_payload=made.with_payload,
    )


def _create(client: EdgeClient, name: str, body: Any) -> bool:
    made = models.CreateCollection(**body)
    client.create_collection(
        name,
        vectors_config=made.vectors,
        sparse_vectors_config=made.sparse_vectors,
        quantization_config=made.quantization_config,
        metadata=made.metadata,
    )
    return True


def _retrieve(client: EdgeClient, name: str, body: Any) -> Any:
    payload, vectors = body.get("with_payload"), body.get("with_vector")
    return client.retrieve(name, body["ids"], with_payload=payload, with_vectors=vectors or None)


def _points(client: EdgeClient, name: str, body: Any) -> Any:
    client.upsert(name, models.PointsList(**body).points, wait=True)
    return {"status": "completed"}


def _delete(client: EdgeClient, name: str, body: Any) -> Any:
    client.delete(name, models.PointIdsList(**body), wait=True)
    return {"status": "completed"}


def _facet(client: EdgeClient, name: str, body: Any) -> Any:
    made = models.FacetRequest(**body)
    found = client.facet(
        name, made.key, facet_filter=made.filter, limit=made.limit, exact=made.exact
    )
    return {"hits": [{"value": hit.value, "count": hit.count} for hit in found.hits]}


def _count(client: EdgeClient, name: str, body: Any) -> Any:
    made = models.CountRequest(**body)
    return client.count(name, exact=made.exact, count_filter=made.filter)


def _scroll(client: EdgeClient, name: str, body: Any) -> Any:
    made = models.ScrollRequest(**body)
    points, _ = client.scroll(name, made.filter, limit=made.limit, with_payload=made.with_payload)
    return {"points": points}


def _info(client: EdgeClient, name: str, _body: Any) -> Any:
    config = client.get_collection(name).config
    vectors = {key: one.model_dump(mode="json") for key, one in config.params.vectors.items()}
    return {
        "status": "green",
        "optimizer_status": "ok",
        "segments_count": 1,
        "payload_schema": {},
        "config": {
            "params": {"vectors": vectors},
            "metadata": config.metadata,
            "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000},
            "optimizer_config": {
                "deleted_threshold": 0.2,
                "vacuum_min_vector_number": 1000,
                "default_segment_number": 0,
                "flush_interval_sec": 5,
            },
        },
    }


def _index(client: EdgeClient, name: str, body: Any) -> Any:
    kind = models.PayloadSchemaType(body["field_schema"])
    client.create_payload_index(name, body["field_name"], field_schema=kind)
    return {"status": "completed"}


_VERBS: dict[tuple[str, str], Callable[[EdgeClient, str, Any], Any]] = {
    ("PUT", ""): _create,
    ("GET", ""): _info,
    ("DELETE", ""): lambda client, name, _: client.delete_collection(name) or True,
    ("GET", "exists"): lambda client, name, _: {"exists": client.collection_exists(name)},
    ("PUT", "index"): _index,
    ("PUT", "points"): _points,
    ("POST", "points"): _retrieve,
    ("POST", "points/query"): _query,
    ("POST", "points/scroll"): _scroll,
    ("POST", "points/count"): _count,
    ("POST", "points/delete"): _delete,
    ("POST", "facet"): _facet,
}


def _handler(state: QdrantServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _do(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            path = self.path.partition("?")[0]
            state.requests.append(f"{self.command} {path}")
            status, result = 200, None
            if state.key and self.headers.get("api-key") != state.key:
                status, result = 401, f"wrong key {self.headers.get('api-key')}"
            elif state.refuse:
                status, result = state.refuse, "refused"
            else:
                try:
                    result = state.answer(self.command, path, json.loads(body) if body else None)
                except LookupError:
                    status = 404
            said = json.dumps({"result": result, "status": "ok", "time": 0}, default=_plain)
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(said.encode())))
            self.end_headers()
            self.wfile.write(said.encode())

        do_GET = do_PUT = do_POST = do_DELETE = _do  # noqa: N815 - names of the library

        def log_message(self, *_: object) -> None:
            """Nothing."""

    return Handler


def _plain(value: Any) -> Any:
    """Points and models of either library as JSON."""
    if isinstance(value, edge.SparseVector):
        return {"indices": value.indices, "values": value.values}
    if isinstance(value, edge.ScoredPoint | edge.Record):
        point = {"id": value.id, "payload": value.payload, "vector": value.vector}
        if isinstance(value, edge.ScoredPoint):
            point |= {"score": value.score, "version": value.version}
        return point
    return vars(value) if isinstance(value, SimpleNamespace) else value.model_dump(mode="json")
