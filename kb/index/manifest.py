"""The page in front of an index: what built it, from what, and which files it has.

An index is used only by what could have built it. Checksums tell a damaged file from a good one.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

import msgspec

from kb.errors import SearchIndexError
from kb.index.base import REPAIR

FORMAT = 1
FILE = "manifest.json"
READ_BYTES = 1 << 20
# tokens of this stand in the fingerprint, so a change of the tokenizer's code is noticed
PROBE = (
    "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=_ALLGATHER_BASE, "
    "NumelIn=8) ran for 600001 milliseconds; ProcessGroupNCCL.cpp:587 NCCL_IB_GID_INDEX=3 "
    "torch.distributed.DistStoreError loaders crashed libraries 0x7f3a 10.0.0.1 zero_stage=3"
)


class Tokens(Protocol):
    """What the index and the search need of a tokenizer."""

    def tokens(self, text: str) -> list[str]:
        """Tokens in order of the text."""

    def expand(self, tokens: Sequence[str]) -> list[tuple[str, float]]:
        """The distinct tokens with weight 1, then their translations with weights below 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What an index has to share with the program that uses it."""

    format: int
    store: str
    model: str
    dimension: int
    tokens: str
    jieba: str
    faiss: str
    tantivy: str


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
    """

    identity: Identity
    seq: int
    entries: int
    chunks: int
    kind: str
    base: str
    files: dict[str, tuple[int, int]]


def fingerprint(tokenizer: Tokens, lexicon: Path | None = None) -> str:
    """Hash of how `tokenizer` cuts, and of the word lists in `lexicon` it works with."""
    digest = hashlib.sha256("\n".join(tokenizer.tokens(PROBE)).encode())
    for path in sorted(lexicon.glob("*")) if lexicon is not None else ():
        if path.is_file():
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def identity(*, store: str, model: str, dimension: int, tokens: str) -> Identity:
    """The identity of what this program builds, library versions included."""
    return Identity(
        format=FORMAT,
        store=store,
        model=model,
        dimension=dimension,
        tokens=tokens,
        jieba=version("jieba"),
        faiss=version("faiss-cpu"),
        tantivy=version("tantivy"),
    )


_NAMES = {
    "format": "index format",
    "store": "database",
    "model": "embedding model",
    "dimension": "vector length",
    "tokens": "tokenizer or word lists",
    "jieba": "jieba",
    "faiss": "FAISS",
    "tantivy": "tantivy",
}


def check(found: Identity, expected: Identity, folder: Path) -> None:
    """Refuse an index that something else built.

    Raises:
        SearchIndexError: what differs, with both values.
    """
    differs = [
        f"{_NAMES[field.name]} is {getattr(found, field.name)!r} there and "
        f"{getattr(expected, field.name)!r} here"
        for field in fields(Identity)
        if getattr(found, field.name) != getattr(expected, field.name)
    ]
    if differs:
        raise SearchIndexError(
            f"the index in {folder} is of another kind: {'; '.join(differs)}", todo=REPAIR
        )


def read(folder: Path) -> Manifest:
    """The manifest in `folder`.

    Raises:
        FileNotFoundError: there is none.
        SearchIndexError: it cannot be read.
    """
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SearchIndexError(f"{folder / FILE} cannot be read: {error}", todo=REPAIR) from error


def write(folder: Path, manifest: Manifest) -> None:
    """Write the manifest into `folder`."""
    (folder / FILE).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))


def checksums(folder: Path, known: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """Size and CRC-32 of every file below `folder`; those in `known` are not read again."""
    found: dict[str, tuple[int, int]] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name != FILE:
            found[name] = known[name] if name in known else (path.stat().st_size, crc32(path))
    return found


def verify(folder: Path, manifest: Manifest, *, skip: frozenset[str] = frozenset()) -> None:
    """Compare every file of the manifest with its size and CRC-32.

    Raises:
        FileNotFoundError: a file is missing.
        SearchIndexError: a file is damaged.
    """
    for name, (size, checksum) in sorted(manifest.files.items()):
        path = folder / name
        if path.stat().st_size != size or (name not in skip and crc32(path) != checksum):
            raise SearchIndexError(f"{path} is damaged", todo=REPAIR)


def crc32(path: Path) -> int:
    """CRC-32 of a file's content."""
    checksum = 0
    with path.open("rb") as file:
        while piece := file.read(READ_BYTES):
            checksum = zlib.crc32(piece, checksum)
    return checksum
