"""What every index is made from: chunks as words and vectors, and what tells two of them apart."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from kb.embed.base import Embedder
from kb.index.base import Numbers, Scores, Tokens, signature_tokens
from kb.index.catalogue import Catalogue
from kb.index.lexical import ChunkWords
from kb.knowledge.facets import FACETS, fold
from kb.store import Store
from kb.text.tokenizer import JIEBA

BATCH = 2_000  # chunks read, cut or embedded at once: a few megabytes
VECTOR_BATCH = 20_000  # vectors added at once: 20 MB at 256 dimensions
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
class ChunkSources:
    """Where an index takes chunks from; `fingerprint` is that of the tokenizer."""

    store: Store
    embedder: Embedder
    tokenizer: Tokens
    fingerprint: str

    def identity_with(self, *, format: int, vectors: str, words: str) -> Identity:
        """The identity of what is made from them, in a format, with those libraries."""
        return Identity(
            format=format,
            store=self.store.id,
            model=self.embedder.name,
            dimension=self.embedder.dimension,
            tokens=self.fingerprint,
            jieba=JIEBA,
            vectors=vectors,
            tantivy=words,
            facets=tuple(sorted(FACETS)),
        )

    def embed_missing(self) -> None:
        """Give every chunk of the store a vector of the model.

        It runs after the changes were read, so none of them lacks one. Vectors go into the store
        batch by batch, so an interrupted run goes on where it stopped.
        """
        name = self.embedder.name
        if not self.store.vectors.missing(name, limit=1):
            return
        # of several machines on one database one does it, and the others have what it made
        digest = hashlib.sha256(name.encode()).hexdigest()[:16]
        with self.store.lock(f"locks/embed-{digest}"):
            self._embed_all(name)

    def _embed_all(self, name: str) -> None:
        after = 0
        while numbers := self.store.vectors.missing(name, after=after, limit=BATCH):
            rows = self.store.chunks(numbers)
            vectors = self.embedder.encode_passages([row.text for row in rows])
            self.store.vectors.put(name, [row.number for row in rows], vectors)
            after = numbers[-1]

    def vectors_of(self, numbers: Numbers) -> Iterator[tuple[Numbers, Scores]]:
        """The stored vectors of chunks, in batches of numbers and rows."""
        name, dimension = self.embedder.name, self.embedder.dimension
        for batch in batches_of(numbers, VECTOR_BATCH):
            yield self.store.vectors.get(name, batch.tolist(), dimension)

    def documents(self, catalogue: Catalogue) -> Iterator[ChunkWords]:
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
        for batch in batches_of(catalogue.numbers, BATCH):
            rows = self.store.chunks(batch.tolist())
            heads = self.store.heads(sorted({row.entry for row in rows} - signed))
            for row in rows:
                entry = int(np.searchsorted(catalogue.ordinals, row.entry))
                # the signature is the entry's, so one of its chunks carries it
                head = None if row.entry in signed else heads.get(row.entry)
                signed.add(row.entry)
                # users name their project, its write-up often does not
                body = self.tokenizer.tokens(f"{projects[entry]}\n{row.text}")
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


def fingerprint(tokenizer: Tokens, lexicon: Path | None = None) -> str:
    """Hash of how `tokenizer` cuts, and of the word lists in `lexicon` it works with."""
    digest = hashlib.sha256("\n".join(tokenizer.tokens(PROBE)).encode())
    for path in sorted(lexicon.glob("*")) if lexicon is not None else ():
        if path.is_file():
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def batches_of(values: Numbers, size: int) -> Iterator[Numbers]:
    """The values in pieces of `size`, the last one shorter."""
    for start in range(0, len(values), size):
        yield values[start : start + size]
