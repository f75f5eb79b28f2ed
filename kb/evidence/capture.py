"""A capture: what was taken of a hanging job, in one compressed tar archive with a manifest.

The manifest says of every file what it is: a log, evidence of a known kind, or what only people
read. Archives of anything else are taken as the folder they were made of.
"""

from __future__ import annotations

import io
import re
import tarfile
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Literal, cast

import msgspec

from kb.errors import InputError
from kb.files.archives import CHUNK_BYTES, ChunkReader, is_compressed, peek, unpacked
from kb.files.log_source import file_chunks
from kb.files.paths import MAX_FILES, legible

SCHEMA = "timeout-kb/capture/1"
MANIFEST = "manifest.json"
MAX_UNPACKED = 1 << 30  # bytes of all files of an archive
COMPRESSED_HEAD = 160 * 1024  # a zst block, of which nothing shows before its end
_TAR_MAGIC = b"ustar"
_TAR_MAGIC_AT = 257
_UNSAFE = re.compile(r"[^\w.=@+:-]+")

CaptureFileKind = Literal["log", "evidence", "context"]


class CaptureFile(msgspec.Struct, frozen=True):
    """A file of an archive and what it is."""

    name: str
    kind: CaptureFileKind


class CaptureGap(msgspec.Struct, frozen=True):
    """What could not be taken: a label of data/labels/capture.yaml and the values it names."""

    label: str
    values: dict[str, str] = {}


class CapturedHost(msgspec.Struct, frozen=True):
    """What one host gave: its folder in the archive is `name`."""

    name: str
    ranks: tuple[int, ...] = ()
    processes: int = 0
    took_s: float = 0.0
    gaps: tuple[CaptureGap, ...] = ()


class CaptureManifest(msgspec.Struct, frozen=True):
    """What an archive holds; `taken_at` is UTC, ISO 8601."""

    schema: str
    taken_at: str
    job: str
    hosts: tuple[CapturedHost, ...]
    files: tuple[CaptureFile, ...]


def write_capture(manifest: CaptureManifest, contents: Sequence[bytes]) -> bytes:
    """The archive, a tar of zst, of `contents` under the names of the manifest, in their order."""
    from kb.files.zstd import compress

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        _add(tar, MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1))
        for file, content in zip(manifest.files, contents, strict=True):
            _add(tar, file.name, content)
    return compress(packed.getvalue())


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    member.mode = 0o600
    tar.addfile(member, io.BytesIO(content))


def read_capture(archive: bytes) -> tuple[CaptureManifest, tuple[bytes, ...]]:
    """A capture's manifest and its files in the manifest's order.

    Raises:
        InputError: it is no capture, or a damaged one.
    """
    with tempfile.TemporaryDirectory(prefix="timeout-kb-") as folder:
        unpack([archive], Path(folder), name="")
        manifest = manifest_in(Path(folder))
        if manifest is None:
            raise _no_capture()
        try:
            contents = tuple((Path(folder) / _safe(f.name)).read_bytes() for f in manifest.files)
        except OSError as error:
            raise _no_capture() from error
    return manifest, contents


def _no_capture() -> InputError:
    return InputError(
        "this is no capture of timeout-kb collect",
        todo="run timeout-kb collect again",
        reason="damaged",
        values={"name": "", "kind": "tar"},
    )


def is_archive_head(head: bytes) -> bool:
    """Whether the first bytes of a file, at least `COMPRESSED_HEAD`, are those of an archive."""
    if is_compressed(head):
        try:
            head, _ = peek(unpacked([head]), _TAR_MAGIC_AT + len(_TAR_MAGIC))
        except InputError:
            return False
    return head[_TAR_MAGIC_AT:].startswith(_TAR_MAGIC)


def archive_in_stream(chunks: Iterable[bytes]) -> tuple[bool, Iterable[bytes]]:
    """Whether a stream is an archive, and all of the stream."""
    head, stream = peek(chunks)
    if is_compressed(head):
        head, stream = peek(stream, COMPRESSED_HEAD)
    return is_archive_head(head), stream


def unpacked_archives(paths: Sequence[Path], stack: ExitStack) -> list[Path]:
    """`paths` with what is in them in place of archives; it is gone when `stack` is closed.

    Raises:
        InputError: an archive is damaged, or holds too much.
    """
    result: list[Path] = []
    for path in paths:
        if not (path.is_file() and archive_in_stream(file_chunks(path))[0]):
            result.append(path)
            continue
        scratch = tempfile.TemporaryDirectory(prefix="timeout-kb-")
        folder = Path(stack.enter_context(scratch))
        unpack(file_chunks(path), folder, name=legible(path.name))
        result += readable_files(folder)
    return result


def readable_files(folder: Path) -> list[Path]:
    """The files of an unpacked archive that are read: of a capture its logs and its evidence."""
    manifest = manifest_in(folder)
    if manifest is None:
        return [folder]
    named = (folder / _safe(file.name) for file in manifest.files if file.kind != "context")
    return [path for path in named if path.is_file()]


def manifest_in(folder: Path) -> CaptureManifest | None:
    """The manifest of an unpacked capture; None where it is another archive."""
    try:
        data = (folder / MANIFEST).read_bytes()
        manifest = msgspec.json.decode(data, type=CaptureManifest)
    except (OSError, msgspec.DecodeError):
        return None
    return manifest if manifest.schema == SCHEMA else None


def unpack(chunks: Iterable[bytes], folder: Path, *, name: str) -> None:
    """Write an archive's regular files below `folder`, under harmless names.

    Raises:
        InputError: it is damaged, or holds more than `MAX_UNPACKED` bytes or `MAX_FILES` files.
    """
    reader = cast("BinaryIO", io.BufferedReader(ChunkReader(iter(unpacked(chunks)))))
    size = count = 0
    try:
        with tarfile.open(fileobj=reader, mode="r|") as tar:
            for member in tar:
                content = tar.extractfile(member) if member.isreg() else None
                if content is None:
                    continue
                size, count = size + member.size, count + 1
                if size > MAX_UNPACKED or count > MAX_FILES:
                    raise InputError(
                        f"{name} holds more than {MAX_UNPACKED >> 20} MiB or {MAX_FILES} files",
                        todo="pass the files of one run",
                        reason="too_large",
                        values={"name": name, "size": str(MAX_UNPACKED >> 20)},
                    )
                path = folder / _safe(member.name)
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("wb") as file:
                    for piece in iter(lambda: content.read(CHUNK_BYTES), b""):  # noqa: B023
                        file.write(piece)
    except (tarfile.TarError, OSError) as error:
        if not count:
            raise InputError(
                f"{name}: damaged tar archive: {error}",
                todo="unpack it and pass the files",
                reason="damaged",
                values={"name": name, "kind": "tar"},
            ) from error


def _safe(name: str) -> PurePosixPath:
    """A path below the folder it is put into, whatever the archive calls it."""
    parts = [_UNSAFE.sub("_", part).lstrip(".") for part in PurePosixPath(name).parts]
    names = [part[-200:] for part in parts if part and part != "_"]
    return PurePosixPath(*names or ["file"])
