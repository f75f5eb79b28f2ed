"""One generation of the index: what built it, its parts in memory, how the next one is made.

An index is used only by what could have built it. Checksums tell a damaged file from a good one.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

import msgspec
import numpy as np

from kb.embed.base import Embedder
from kb.errors import DamagedIndexError
from kb.files.atomic import link_tree
from kb.index import lexical
from kb.index.base import REPAIR, Numbers, Scores, Tokens, signature_tokens
from kb.index.catalogue import Catalogue
from kb.index.lexical import ChunkWords, LexicalIndex
from kb.index.vector_index import VectorIndex
from kb.knowledge.facets import FACETS, fold
from kb.store import ChunkChanges, Store
from kb.text.tokenizer import JIEBA

FORMAT = 3  # 3: facets are part of the identity
MANIFEST = "manifest.json"
WORDS = "lexical"
BATCH = 2_000  # chunks read, cut or embedded at once: a few megabytes
VECTOR_BATCH = 20_000  # vectors added at once: 20 MB at 256 dimensions
READ_BYTES = 1 << 20
# tokens of this stand in the fingerprint, so a change of the tokenizer's code is noticed
PROBE = (
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=_ALLGATHER_BASE, "
    "NumelIn=8) ran for 600001 milliseconds; ProcessGroupNCCL.cpp:587 NCCL_IB_GID_INDEX=3 "
    "torch.distributed.DistStoreError loaders crashed libraries 0x7f3a 10.0.0.1 zero_stage=3"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What an index has to share with the program that uses it."""

    format: int
    store: str
    model: str
    dimension: int
    tokens: str
    jieba: str
    vectors: str
    tantivy: str
    facets: tuple[str, ...]

    def folder_name(self) -> str:
        """Name of the folder of what programs of this identity build."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()[:16]


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
    """What a search works on; nothing in it ever changes."""

    folder: Path
    manifest: Manifest
    dense: VectorIndex
    lexical: LexicalIndex
    catalogue: Catalogue


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What an index is made from; `fingerprint` is that of the tokenizer."""

    store: Store
    embedder: Embedder
    tokenizer: Tokens
    fingerprint: str
    vectors: type[VectorIndex]

    def identity(self) -> Identity:
        """The identity of what is made from them, library versions included."""
        return Identity(
            format=FORMAT,
            store=self.store.id,
            model=self.embedder.name,
            dimension=self.embedder.dimension,
            tokens=self.fingerprint,
            jieba=JIEBA,
            vectors=self.vectors.library(),
            tantivy=version("tantivy"),
            facets=tuple(sorted(FACETS)),
        )


def fingerprint(tokenizer: Tokens, lexicon: Path | None = None) -> str:
    """Hash of how `tokenizer` cuts, and of the word lists in `lexicon` it works with."""
    digest = hashlib.sha256("\n".join(tokenizer.tokens(PROBE)).encode())
    for path in sorted(lexicon.glob("*")) if lexicon is not None else ():
        if path.is_file():
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


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
    _embed_missing(sources)
    catalogue = Catalogue.of(sources.store.catalogue_rows(everything.entries))
    index = sources.vectors.build(
        lambda: _vectors(sources, catalogue.numbers),
        size=len(catalogue.numbers),
        dimension=sources.embedder.dimension,
    )
    (folder / WORDS).mkdir()
    lexical.write(folder / WORDS, _documents(sources, catalogue))
    base = f"vectors-{folder.name.split('.')[0]}"
    _finish(sources, folder, index, catalogue, seq=everything.last_seq, base=base)


def derive(sources: Sources, folder: Path, last: Snapshot, changes: ChunkChanges) -> None:
    """Write the index `last` with `changes` applied into the empty `folder`.

    Applying changes that are in already changes nothing.
    """
    _embed_missing(sources)
    added = Catalogue.of(sources.store.catalogue_rows(changes.entries))
    removed = np.array(changes.removed_entries, dtype=np.int64)
    gone = np.array(changes.removed_chunks, dtype=np.int64)
    numbers = [np.zeros(0, dtype=np.int64)]
    vectors = [np.zeros((0, sources.embedder.dimension), dtype=np.float32)]
    for some, rows in _vectors(sources, added.numbers):
        numbers.append(some)
        vectors.append(rows)
    index = last.dense.with_changes(gone, np.concatenate(numbers), np.concatenate(vectors))
    link_tree(last.folder / WORDS, folder / WORDS)
    base = last.manifest.base
    (folder / base).hardlink_to(last.folder / base)
    replaced = np.union1d(gone, added.numbers)
    lexical.write(folder / WORDS, _documents(sources, added), replaced.tolist())
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


def _embed_missing(sources: Sources) -> None:
    """Give every chunk of the store a vector of the model.

    It runs after the changes were read, so none of them lacks one. Vectors go into the store
    batch by batch, so an interrupted run goes on where it stopped.
    """
    name = sources.embedder.name
    if not sources.store.vectors.missing(name, limit=1):
        return
    # of several machines on one database one does it, and the others have what it made
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    with sources.store.lock(f"locks/embed-{digest}"):
        _embed_all(sources, name)


def _embed_all(sources: Sources, name: str) -> None:
    after = 0
    while numbers := sources.store.vectors.missing(name, after=after, limit=BATCH):
        rows = sources.store.chunks(numbers)
        vectors = sources.embedder.encode_passages([row.text for row in rows])
        sources.store.vectors.put(name, [row.number for row in rows], vectors)
        after = numbers[-1]


def _vectors(sources: Sources, numbers: Numbers) -> Iterator[tuple[Numbers, Scores]]:
    name, dimension = sources.embedder.name, sources.embedder.dimension
    for batch in _batches(numbers, VECTOR_BATCH):
        yield sources.store.vectors.get(name, batch.tolist(), dimension)


def _documents(sources: Sources, catalogue: Catalogue) -> Iterator[ChunkWords]:
    """The chunks of the catalogue as words, with the tags of their entries."""
    tags: list[list[tuple[str, str]]] = [[] for _ in catalogue.ordinals]
    projects = [""] * len(catalogue.ordinals)
    for tag, entry in zip(catalogue.tag_of.tolist(), catalogue.tagged.tolist(), strict=True):
        facet, label = catalogue.tags[tag]
        tags[entry].append((facet, fold(label)))
        if facet == "project":
            projects[entry] = label
    last = set(catalogue.last_chunks.tolist())
    words: dict[int, dict[str, None]] = {}  # of entries whose last chunk is to come
    signed: set[int] = set()
    for batch in _batches(catalogue.numbers, BATCH):
        rows = sources.store.chunks(batch.tolist())
        heads = sources.store.heads(sorted({row.entry for row in rows} - signed))
        for row in rows:
            entry = int(np.searchsorted(catalogue.ordinals, row.entry))
            # the signature is the entry's, so one of its chunks carries it
            head = None if row.entry in signed else heads.get(row.entry)
            signed.add(row.entry)
            # users name their project, its write-up often does not
            body = sources.tokenizer.tokens(f"{projects[entry]}\n{row.text}")
            words.setdefault(row.entry, {}).update(dict.fromkeys(body))
            yield ChunkWords(
                number=row.number,
                entry_id=str(catalogue.ids[entry]),
                day=int(catalogue.days[entry]),
                body=tuple(body),
                signature=tuple(signature_tokens("\n".join(head.signature))) if head else (),
                tags=tuple(tags[entry]),
                whole=tuple(words.pop(row.entry)) if row.number in last else (),
            )


def _batches(values: Numbers, size: int) -> Iterator[Numbers]:
    for start in range(0, len(values), size):
        yield values[start : start + size]
