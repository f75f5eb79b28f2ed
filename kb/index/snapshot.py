"""One generation of the index: what built it, its parts in memory, how the next one is made.

An index is used only by what could have built it. Checksums tell a damaged file from a good one.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import msgspec
import numpy as np

from kb.errors import DamagedIndexError
from kb.files.atomic import link_tree
from kb.index import lexical
from kb.index.base import REPAIR, Numbers, Ranking, Scores, Term
from kb.index.catalogue import Catalogue
from kb.index.chunk_index import Proposal, Selection, WordField
from kb.index.lexical import LexicalIndex
from kb.index.sources import ChunkSources, Identity
from kb.index.vector_index import VectorIndex
from kb.store import ChunkChanges
from kb.types.entries import Filters

FORMAT = 3  # 3: facets are part of the identity
MANIFEST = "manifest.json"
WORDS = "lexical"
READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The manifest of one generation.

    Attributes:
        identity: what built it.
        seq: number of the last change of the store that is in it.
        entries, chunks: how many.
        kind: method of the vector index.
        base: name of the file with the large part of the vectors.
        files: size in bytes and CRC-32 by path below the generation's folder.
        checksum: CRC-32 of the manifest with this field at 0; 0 where an older program wrote it.
    """

    identity: Identity
    seq: int
    entries: int
    chunks: int
    kind: str
    base: str
    files: dict[str, tuple[int, int]]
    checksum: int = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Snapshot:
    """What a search works on (`kb.index.chunk_index.IndexReader`); nothing in it ever changes."""

    folder: Path
    manifest: Manifest
    dense: VectorIndex
    lexical: LexicalIndex
    catalogue: Catalogue

    @property
    def chunks(self) -> int:
        """How many chunks it has."""
        return self.lexical.size

    @property
    def entries(self) -> int:
        """How many entries it has."""
        return len(self.catalogue.ids)

    def select(self, filters: Filters) -> Selection:
        """The entries that pass, with their facets."""
        return self.catalogue.select(filters)

    def propose_dense(self, vector: Scores, limit: int, selected: Selection) -> Proposal:
        """The nearest chunks."""
        return self._proposal(self.dense.search(vector, limit, selected.chunks))

    def vectors_of(self, numbers: Numbers) -> tuple[Numbers, Scores] | None:
        """The vectors of those numbers, where they are in memory unrounded."""
        return self.dense.vectors_of(numbers)

    def propose_words(
        self, terms: Sequence[Term], limit: int, selected: Selection, *, field: WordField = "body"
    ) -> Proposal:
        """The best chunks by BM25."""
        found = self.lexical.search(terms, limit, field=field, filters=selected.filters)
        return self._proposal(found)

    def score_words(self, terms: Sequence[Term], numbers: Sequence[int]) -> dict[int, float]:
        """BM25 of the given chunks."""
        return self.lexical.scores(terms, numbers)

    def cover_words(
        self, choices: Sequence[Sequence[Term]], entries: Sequence[int]
    ) -> dict[int, float]:
        """What entries have of each choice; the words of an entry stand on its last chunk."""
        ordinals = np.array(entries, dtype=np.int64)
        ordinals = ordinals[np.isin(ordinals, self.catalogue.ordinals)]
        last = self.catalogue.last_chunks[np.searchsorted(self.catalogue.ordinals, ordinals)]
        covered = self.lexical.coverage(choices, last.tolist())
        pairs = zip(ordinals.tolist(), last.tolist(), strict=True)
        return {entry: covered[number] for entry, number in pairs if number in covered}

    def idf(self, tokens: Iterable[str], *, field: WordField = "body") -> dict[str, float]:
        """Rarity of every token."""
        rarity = self.lexical.rarity
        return {token: rarity(token, field=field) for token in tokens}

    def entries_with(self, words: Iterable[str]) -> dict[str, int]:
        """How many entries have each token."""
        return {word: self.lexical.entries_with(word) for word in words}

    def _proposal(self, ranking: Ranking) -> Proposal:
        numbers, scores = ranking
        return Proposal(numbers, scores, self.catalogue.entries_of(numbers))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources(ChunkSources):
    """What an index of files is made from, and the kind of its vector index."""

    vectors: type[VectorIndex]

    def identity(self) -> Identity:
        """The identity of what is made from them, library versions included."""
        return self.identity_with(
            format=FORMAT, vectors=self.vectors.library(), words=version("tantivy")
        )


# --- reading a generation ------------------------------------------------------------------------


def load(sources: Sources, folder: Path, *, known: Snapshot | None = None) -> Snapshot:
    """Open a generation; what it shares with `known` is not read again.

    Raises:
        FileNotFoundError: the folder is being deleted, for a newer generation is there.
        DamagedIndexError: a file is damaged, or was built by something else.
    """
    manifest = read_manifest(folder)
    if manifest.identity != sources.identity():
        raise DamagedIndexError(f"{folder} was built by another program", todo=REPAIR)
    shared = dict(manifest.files.items() & known.manifest.files.items()) if known else {}
    for name, (size, checksum) in sorted(manifest.files.items()):
        path = folder / name
        if path.stat().st_size != size or (name not in shared and _crc32(path) != checksum):
            raise DamagedIndexError(f"{path} is damaged", todo=REPAIR)
    return Snapshot(
        folder=folder,
        manifest=manifest,
        dense=sources.vectors.load(
            folder,
            manifest.base,
            known=known.dense if known and manifest.base in shared else None,
        ),
        lexical=lexical.load(folder / WORDS),
        catalogue=Catalogue.load(folder),
    )


def read_manifest(folder: Path) -> Manifest:
    """The manifest in `folder`.

    Raises:
        FileNotFoundError: there is none.
        DamagedIndexError: it cannot be read, or is not as it was written.
    """
    path = folder / MANIFEST
    try:
        content = path.read_bytes()
    except IsADirectoryError as error:
        raise DamagedIndexError(f"{path} cannot be read: {error}", todo=REPAIR) from error
    return decode_manifest(content, str(path))


def decode_manifest(content: bytes, path: str) -> Manifest:
    """The manifest that `encode_manifest` wrote; `path` is named in errors.

    Raises:
        DamagedIndexError: it cannot be read, or is not as it was written.
    """
    try:
        manifest = msgspec.json.decode(content, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DamagedIndexError(f"{path} cannot be read: {error}", todo=REPAIR) from error
    if manifest.checksum and manifest.checksum != _checksum(manifest):
        raise DamagedIndexError(f"{path} is damaged", todo=REPAIR)
    return manifest


def _checksum(manifest: Manifest) -> int:
    return zlib.crc32(msgspec.json.encode(replace(manifest, checksum=0)))


def _crc32(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while piece := file.read(READ_BYTES):
            checksum = zlib.crc32(piece, checksum)
    return checksum


# --- writing a generation ------------------------------------------------------------------------


def build(sources: Sources, folder: Path) -> None:
    """Write an index of everything in the store into the empty `folder`."""
    everything = sources.store.chunk_changes_since(-1)
    sources.embed_missing()
    catalogue = Catalogue.of(sources.store.catalogue_rows(everything.entries))
    index = sources.vectors.build(
        lambda: sources.vectors_of(catalogue.numbers),
        size=len(catalogue.numbers),
        dimension=sources.embedder.dimension,
    )
    (folder / WORDS).mkdir()
    lexical.write(folder / WORDS, sources.documents(catalogue))
    base = f"vectors-{folder.name.split('.')[0]}"
    _finish(sources, folder, index, catalogue, seq=everything.last_seq, base=base)


def derive(sources: Sources, folder: Path, last: Snapshot, changes: ChunkChanges) -> None:
    """Write the index `last` with `changes` applied into the empty `folder`.

    Applying changes that are in already changes nothing.
    """
    sources.embed_missing()
    added = Catalogue.of(sources.store.catalogue_rows(changes.entries))
    removed = np.array(changes.removed_entries, dtype=np.int64)
    gone = np.array(changes.removed_chunks, dtype=np.int64)
    numbers = [np.zeros(0, dtype=np.int64)]
    vectors = [np.zeros((0, sources.embedder.dimension), dtype=np.float32)]
    for some, rows in sources.vectors_of(added.numbers):
        numbers.append(some)
        vectors.append(rows)
    index = last.dense.with_changes(gone, np.concatenate(numbers), np.concatenate(vectors))
    link_tree(last.folder / WORDS, folder / WORDS)
    base = last.manifest.base
    (folder / base).hardlink_to(last.folder / base)
    replaced = np.union1d(gone, added.numbers)
    lexical.write(folder / WORDS, sources.documents(added), replaced.tolist())
    catalogue = last.catalogue.with_changes(removed, added)
    _finish(sources, folder, index, catalogue, seq=changes.last_seq, base=base, last=last)


def _finish(
    sources: Sources,
    folder: Path,
    index: VectorIndex,
    catalogue: Catalogue,
    *,
    seq: int,
    base: str,
    last: Snapshot | None = None,
) -> None:
    """Write what is not written yet, the manifest at the end.

    Checksums of files that are linked to those of `last` are taken over.
    """
    index.save(folder, base)
    catalogue.save(folder)
    files: dict[str, tuple[int, int]] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if last and name in last.manifest.files and (last.folder / name).samefile(path):
            files[name] = last.manifest.files[name]
        else:
            files[name] = (path.stat().st_size, _crc32(path))
    manifest = Manifest(
        identity=sources.identity(),
        seq=seq,
        entries=len(catalogue.ordinals),
        chunks=len(catalogue.numbers),
        kind=index.kind,
        base=base,
        files=files,
    )
    write_manifest(folder, manifest)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest into `folder`."""
    (folder / MANIFEST).write_bytes(encode_manifest(manifest))


def encode_manifest(manifest: Manifest) -> bytes:
    """The manifest as it is written, with its checksum."""
    manifest = replace(manifest, checksum=_checksum(manifest))
    return msgspec.json.format(msgspec.json.encode(manifest))
