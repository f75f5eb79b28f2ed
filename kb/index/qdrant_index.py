"""The index on a Qdrant server: one for all servers of a database, for beyond 10^7 chunks.

``collection`` and ``collection-words`` are aliases. A build fills two new collections beside those
in use and moves both aliases at once, so a reader never sees half an index. Changes are written in
place by one server at a time, the number of the last one at the end: whoever is interrupted leaves
changes that are applied again. The collection's metadata say what built it, and anything else is
refused. How often words occur is counted along; after an interruption the counts may be off by
what one batch of changes has, until the next build.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from qdrant_client import models

from kb.errors import SearchIndexError
from kb.index.catalogue import Catalogue
from kb.index.qdrant_connection import WRITE_S, MissingCollectionError, QdrantConnection
from kb.index.qdrant_state import WORDS, QdrantState
from kb.index.qdrant_writer import MANIFEST, STATE, BuildManifest, PointWriter
from kb.index.sources import ChunkSources, Identity
from kb.index.upkeep import IndexUpkeep
from kb.store import ChunkChanges

FORMAT = 1  # of points and counts; raise it with every change
STATE_S = 1.0  # a state is looked up again after so long, or when the store has changed
SAMPLE = 2_000  # chunks by whose words the usual length is told
_log = logging.getLogger(__name__)


class QdrantIndex(IndexUpkeep):
    """The index of a collection (`kb.index.chunk_index.ChunkIndex`)."""

    def __init__(
        self,
        connection: QdrantConnection,
        sources: ChunkSources,
        notify: Callable[[str], None] = _log.warning,
    ) -> None:
        """Nothing is asked or built before it is needed.

        `notify` is told in one line when the index is built.
        """
        super().__init__(sources.store)
        self._connection, self._sources, self._notify = connection, sources, notify
        self._alias = connection.collection
        self._state: QdrantState | None = None
        self._looked_at = 0.0
        self._manifest: BuildManifest | None = None
        digest = hashlib.sha256(self._alias.encode()).hexdigest()[:16]
        self._lock_name = f"locks/qdrant-{digest}"

    @property
    def _identity(self) -> Identity:
        return self._sources.identity_with(format=FORMAT, vectors="qdrant", words="qdrant")

    # --- reading -----------------------------------------------------------------------------

    def snapshot(self) -> QdrantState:
        """The newest state; where the store has changed since, it is brought up beside the search.

        Raises:
            SearchIndexError: there is none, it is another program's, or the server is gone.
        """
        state = self.published()
        self.follow()
        return state

    def published(self) -> QdrantState:
        """The same, and nothing is brought up to date.

        Raises:
            SearchIndexError: as `snapshot`.
        """
        state, old = self._state, time.monotonic() - self._looked_at > STATE_S
        if state is None or old or state.seq != self._store.last_seq():
            state = self._look()
        if state is None:
            raise MissingCollectionError(
                f"there is no search index in the collection {self._alias}",
                todo="run `timeout-kb ingest --rebuild`",
            )
        return state

    def exists(self) -> bool:
        """Whether there is an index of a program like this one."""
        return self._look() is not None

    def has_others(self) -> bool:
        """Never: a collection of another program is refused."""
        return False

    def stamp(self) -> tuple[int, int]:
        """The last change, and how often the server went and came back: answers then differ."""
        return self._last_seq(), self._connection.turns

    def close(self) -> None:
        """Let go of the connections."""
        self._connection.close()

    def _last_seq(self) -> int:
        return self._state.seq if self._state else 0

    def _look(self) -> QdrantState | None:
        """What the server says now; None where it has no index under the name."""
        try:
            with self._connection.asking() as client:
                if self._state is None and not client.collection_exists(self._alias + WORDS):
                    if client.collection_exists(self._alias):
                        raise _not_ours(self._alias)
                    return None
                points = client.retrieve(self._alias + WORDS, [STATE], with_payload=True)
        except MissingCollectionError:
            self._state = None
            return None
        if not points:
            raise SearchIndexError(
                f"the collection {self._alias} has lost the number of its last change",
                todo="run `timeout-kb ingest --rebuild`",
            )
        payload = points[0].payload
        identity = payload["identity"]
        if self._manifest is None or identity != self._manifest.identity.folder_name():
            self._manifest = self._checked_manifest()
        known = self._state
        if known is None or known.seq != payload["seq"]:
            numbers = {name: int(payload[name]) for name in ("seq", "chunks", "entries")}
            self._state = QdrantState(self._connection, **numbers)
        self._looked_at = time.monotonic()
        return self._state

    def _checked_manifest(self) -> BuildManifest:
        """What built the collection, which is a program like this one.

        Raises:
            SearchIndexError: it is not.
        """
        manifest, size = self._read_manifest()
        ours = self._identity
        if manifest is None:
            raise _not_ours(self._alias)
        theirs = manifest.identity
        names = [name for name in ours.__slots__ if getattr(ours, name) != getattr(theirs, name)]
        if names or size != ours.dimension:
            raise SearchIndexError(
                f"the collection {self._alias} was built by another program: "
                f"{_difference(names, theirs, ours)}",
                todo="name another collection in TIMEOUT_KB_INDEX to build beside it, or replace "
                "it with `timeout-kb ingest --rebuild`",
            )
        return manifest

    def _read_manifest(self) -> tuple[BuildManifest | None, int]:
        """What the metadata say, None where they are not ours, and the length of vectors."""
        with self._connection.asking() as client:
            config = client.get_collection(self._alias).config
        vectors = config.params.vectors
        dense = vectors.get("dense") if isinstance(vectors, dict) else None
        try:
            manifest = msgspec.convert((config.metadata or {}).get(MANIFEST), BuildManifest)
        except msgspec.ValidationError:
            return None, 0
        return manifest, dense.size if dense else 0

    # --- bringing it up to date --------------------------------------------------------------

    def _bring_up(self) -> bool:
        """Apply what changed since the last number, or build where there is no index yet."""
        state = self._look()
        if state is not None and state.seq == self._store.last_seq():
            return False
        with self._store.lock(self._lock_name):
            state = self._look()  # another server may have done it while we waited
            if state is None:
                self._build()
                return True
            changes = self._store.chunk_changes_since(state.seq)
            if changes.last_seq == state.seq:
                return False
            if changes.last_seq < state.seq:
                self._build()  # an older state of the database was put back
            else:
                self._apply(changes)
            return True

    def rebuild(self) -> None:
        """Build everything anew beside what is there, which serves meanwhile.

        Raises:
            SearchIndexError: the collection is another knowledge base's, or nobody knows whose.
        """
        with self._store.lock(self._lock_name):
            with self._connection.asking() as client:
                is_there = client.collection_exists(self._alias)
            manifest = self._read_manifest()[0] if is_there else None
            if is_there and (manifest is None or manifest.identity.store != self._store.id):
                raise _not_ours(self._alias)
            self._build()

    def _build(self) -> None:
        self._notify(f"building the search index in the collection {self._alias} of the server")
        everything = self._store.chunk_changes_since(-1)
        self._sources.embed_missing()
        manifest = BuildManifest(self._identity, self._usual_lengths(everything.chunks))
        writer = PointWriter(
            self._connection,
            self._sources,
            f"{self._alias}-{uuid.uuid4().hex[:8]}",
            manifest.lengths,
            fresh=True,
        )
        try:
            writer.make(manifest)
            writer.write(everything.entries, ())
            writer.finish(everything.last_seq, manifest.identity)
            writer.wait_until_indexed()
        except BaseException:
            writer.drop()
            raise
        self._put_in_use(writer.collection)

    def _put_in_use(self, built: str) -> None:
        """Move both aliases at once, then delete what they pointed to."""
        names = {self._alias: built, self._alias + WORDS: built + WORDS}
        with self._connection.asking(WRITE_S) as client:
            former = {
                one.alias_name: one.collection_name
                for one in client.get_aliases().aliases
                if one.alias_name in names
            }
            actions: list[Any] = [
                models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=name))
                for name in former
            ]
            actions += [
                models.CreateAliasOperation(
                    create_alias=models.CreateAlias(collection_name=target, alias_name=name)
                )
                for name, target in names.items()
            ]
            client.update_collection_aliases(actions)
            # what was in use, and what a build that was killed has left
            built_names = re.compile(rf"{re.escape(self._alias)}-[0-9a-f]{{8}}({WORDS})?")
            for one in client.get_collections().collections:
                if built_names.fullmatch(one.name) and one.name not in names.values():
                    client.delete_collection(one.name)
        self._state = self._manifest = None
        self._look()

    def _apply(self, changes: ChunkChanges) -> None:
        self._sources.embed_missing()
        manifest = self._manifest or self._checked_manifest()
        writer = PointWriter(
            self._connection, self._sources, self._alias, manifest.lengths, fresh=False
        )
        writer.write(changes.entries, changes.removed_chunks)
        writer.finish(changes.last_seq, manifest.identity)
        self._look()

    def _usual_lengths(self, chunks: Sequence[int]) -> dict[str, float]:
        """Mean number of words of a chunk by field, of some that are spread over all."""
        step = max(1, len(chunks) // SAMPLE)
        numbers = chunks[::step]
        rows = self._store.chunks(numbers)
        ordinals = sorted({row.entry for row in rows})
        wanted, words = set(numbers), Counter[str]()
        for document in self._sources.documents(Catalogue.of(self._store.catalogue_rows(ordinals))):
            if document.number in wanted:
                words["body"] += len(document.body)
                words["signature"] += len(document.signature)
        return {name: max(1.0, words[name] / max(1, len(rows))) for name in ("body", "signature")}


def _not_ours(name: str) -> SearchIndexError:
    return SearchIndexError(
        f"the collection {name} is no index of this knowledge base",
        todo="name another collection in TIMEOUT_KB_INDEX",
    )


def _difference(names: Sequence[str], theirs: Identity, ours: Identity) -> str:
    shown = [f"{n} {getattr(theirs, n)}, here {getattr(ours, n)}" for n in names]
    return "; ".join(shown) or "its vectors have another length"
