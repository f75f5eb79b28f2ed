"""One generation in memory, and how the next one is made: out of the store, or out of the last."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kb.embed.base import Embedder
from kb.index import dense, lexical, manifest
from kb.index.base import DenseIndex, Document, LexicalIndex, Numbers, Scores
from kb.index.catalogue import Catalogue
from kb.index.generations import link_tree
from kb.index.manifest import Identity, Manifest, Tokens
from kb.index.signature import signature_tokens
from kb.store import ChunkChanges, Store
from kb.store.facets import fold

WORDS = "lexical"
BATCH = 2_000  # chunks read, cut or embedded at once: a few megabytes
VECTOR_BATCH = 20_000  # vectors added at once: 20 MB at 256 dimensions
Progress = Callable[[str, int, int], None]
"""Called with the stage (``embed``, ``vectors``, ``words``), how many are done, and of how many."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Snapshot:
    """What a search works on; nothing in it ever changes."""

    folder: Path
    manifest: Manifest
    dense: DenseIndex
    lexical: LexicalIndex
    catalogue: Catalogue
    inodes: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What an index is made from."""

    store: Store
    embedder: Embedder
    tokenizer: Tokens
    identity: Identity
    progress: Progress
    exact_limit: int = dense.EXACT_LIMIT


def load(folder: Path, expected: Identity, *, known: Snapshot | None = None) -> Snapshot:
    """Open a generation; what it shares with `known` is not read again.

    Raises:
        FileNotFoundError: the folder is being deleted, for a newer generation is there.
        SearchIndexError: it was built by something else, or is damaged.
    """
    page = manifest.read(folder)
    manifest.check(page.identity, expected, folder)
    inodes = {name: (folder / name).stat().st_ino for name in page.files}
    same: frozenset[str] = frozenset()
    if known is not None:
        same = frozenset(name for name, inode in inodes.items() if known.inodes.get(name) == inode)
    manifest.verify(folder, page, skip=same)
    return Snapshot(
        folder=folder,
        manifest=page,
        dense=dense.load(
            folder, page.base, known=known.dense if known and page.base in same else None
        ),
        lexical=lexical.load(folder / WORDS),
        catalogue=Catalogue.load(folder),
        inodes=inodes,
    )


def _embed_missing(sources: Sources) -> None:
    """Give every chunk of the store a vector of the model.

    It runs after the changes were read, so none of them lacks one. Vectors go into the store
    batch by batch, so an interrupted run goes on where it stopped.
    """
    name = sources.embedder.name
    done, after = 0, 0
    while numbers := sources.store.vectors.missing(name, after=after, limit=BATCH):
        rows = sources.store.chunks(numbers)
        vectors = sources.embedder.encode_passages([row.text for row in rows])
        sources.store.vectors.put(name, [row.number for row in rows], vectors)
        after = numbers[-1]
        done += len(rows)
        sources.progress("embed", done, 0)


def build(sources: Sources, folder: Path) -> None:
    """Write an index of everything in the store into the empty `folder`."""
    everything = sources.store.chunk_changes_since(-1)
    _embed_missing(sources)
    catalogue = Catalogue.of(sources.store.catalogue_rows(everything.entries))
    index = dense.build(
        lambda: _vectors(sources, catalogue.numbers),
        size=len(catalogue.numbers),
        dimension=sources.embedder.dimension,
        exact_limit=sources.exact_limit,
    )
    (folder / WORDS).mkdir()
    lexical.build(folder / WORDS, _documents(sources, catalogue))
    base = f"dense-{folder.name.split('.')[0]}.faiss"
    _finish(sources, folder, index, catalogue, seq=everything.last_seq, base=base, known={})


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
    lexical.change(folder / WORDS, changes.removed_chunks, _documents(sources, added))
    _finish(
        sources,
        folder,
        index,
        last.catalogue.with_changes(removed, added),
        seq=changes.last_seq,
        base=base,
        known={
            name: last.manifest.files[name]
            for name, inode in last.inodes.items()
            if (folder / name).exists() and (folder / name).stat().st_ino == inode
        },
    )


def _finish(
    sources: Sources,
    folder: Path,
    index: DenseIndex,
    catalogue: Catalogue,
    *,
    seq: int,
    base: str,
    known: dict[str, tuple[int, int]],
) -> None:
    index.save(folder, base)
    catalogue.save(folder)
    manifest.write(
        folder,
        Manifest(
            identity=sources.identity,
            seq=seq,
            entries=len(catalogue.ordinals),
            chunks=len(catalogue.numbers),
            kind=index.kind,
            base=base,
            files=manifest.checksums(folder, known),
        ),
    )


def _vectors(sources: Sources, numbers: Numbers) -> Iterator[tuple[Numbers, Scores]]:
    name, dimension = sources.embedder.name, sources.embedder.dimension
    for part in _batches(numbers, VECTOR_BATCH):
        found, vectors = sources.store.vectors.get(name, part.tolist(), dimension)
        sources.progress("vectors", len(found), len(numbers))
        yield found, vectors


def _documents(sources: Sources, catalogue: Catalogue) -> Iterator[Document]:
    """The chunks of the catalogue as documents, with the tags of their entries."""
    tags: list[list[tuple[str, str]]] = [[] for _ in catalogue.ordinals]
    projects = [""] * len(catalogue.ordinals)
    for tag, entry in zip(catalogue.tag_of.tolist(), catalogue.tagged.tolist(), strict=True):
        facet, label = catalogue.tags[tag]
        tags[entry].append((facet, fold(label)))
        if facet == "project":
            projects[entry] = label
    signed: set[int] = set()
    done = 0
    for part in _batches(catalogue.numbers, BATCH):
        rows = sources.store.chunks(part.tolist())
        heads = sources.store.heads(sorted({row.entry for row in rows} - signed))
        for row in rows:
            entry = int(np.searchsorted(catalogue.ordinals, row.entry))
            # the signature is the entry's, so one of its chunks carries it
            head = None if row.entry in signed else heads.get(row.entry)
            signed.add(row.entry)
            yield Document(
                number=row.number,
                entry_id=str(catalogue.ids[entry]),
                day=int(catalogue.days[entry]),
                # users name their project, its write-up often does not
                body=tuple(sources.tokenizer.tokens(f"{projects[entry]}\n{row.text}")),
                signature=tuple(signature_tokens("\n".join(head.signature))) if head else (),
                tags=tuple(tags[entry]),
            )
        done += len(part)
        sources.progress("words", done, len(catalogue.numbers))


def _batches(values: Numbers, size: int) -> Iterator[Numbers]:
    for start in range(0, len(values), size):
        yield values[start : start + size]
