"""Files to import: paths walked, files checked, pages read whole and within bounds."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from ingest.types import Refusal, refusal
from kb.errors import InputError
from kb.files.archives import peek, unpacked
from kb.files.decode import clean_text, decode_page, decoded
from kb.files.log_source import file_chunks

MIB = 1024 * 1024
MAX_FILES = 100_000  # more than that is a mistake in the path, not a collection of write-ups
HEAD_BYTES = 64 * 1024  # enough to tell an article from a log
MAX_PAGE_BYTES = 8 * MIB  # saved pages hold tens of kilobytes; more is a dump of something else


def find_sources(
    paths: Sequence[Path], *, refused: list[Refusal], notes: list[Refusal]
) -> list[Path]:
    """Files named by `paths` in a fixed order; what cannot be read goes to `refused`.

    Folders are walked in name order, each file taken once.

    Hidden files are left out, and links that lead out of a folder: what is there was not named.
    A README found on the way describes its folder and is left out too, unless it was named itself.
    """
    sources: dict[str, Path] = {}
    for path in paths:
        for item in _walk(path, refused):
            if item != path and item.stem.lower() == "readme":
                what = "describes its folder; name it to import it"
                notes.append(Refusal(str(item), what, "readme"))
                continue
            try:
                _check_file(item)
            except InputError as error:
                refused.append(refusal(str(item), error, item))
                continue
            sources.setdefault(source_key(item), item)
            if len(sources) > MAX_FILES:
                raise InputError(
                    f"more than {MAX_FILES} files",
                    todo="name a smaller folder",
                    reason="many_sources",
                    values={"count": f"{MAX_FILES:,}"},
                )
    return list(sources.values())


def source_key(path: Path) -> str:
    """What names a file in the store, and stays when its content changes."""
    return str(path.resolve())


def _walk(path: Path, refused: list[Refusal]) -> Iterator[Path]:
    """Files under `path`, or itself; a folder met twice, by a link to it, is walked once.

    A link that leads out of `path` is refused.
    """
    if not path.is_dir():
        yield path
        return

    def failed(error: OSError) -> None:
        why = error.strerror or ""
        what = f"cannot be listed: {why}"
        refused.append(Refusal(str(error.filename), what, "unreadable", {"why": why}))

    root = path.resolve()

    def leads_out(item: Path) -> bool:
        out = item.is_symlink() and item.exists() and not item.resolve().is_relative_to(root)
        if out:
            what = f"is a link to {item.resolve()}, outside of the folder"
            refused.append(Refusal(str(item), what, "outside_link", {"path": str(item.resolve())}))
        return out

    seen: set[tuple[int, int]] = set()
    for folder, names, files in os.walk(path, followlinks=True, onerror=failed):
        state = Path(folder).stat()
        if (state.st_dev, state.st_ino) in seen:
            names[:] = []
            continue
        seen.add((state.st_dev, state.st_ino))
        names[:] = sorted(name for name in names if not name.startswith("."))
        names[:] = [name for name in names if not leads_out(Path(folder) / name)]
        for name in sorted(files):
            if not name.startswith(".") and not leads_out(Path(folder) / name):
                yield Path(folder) / name


def _check_file(path: Path) -> None:
    try:
        state = path.stat()
    except FileNotFoundError as error:
        link = path.is_symlink()
        what = "is a link to a file that is gone" if link else "does not exist"
        reason = "dead_link" if link else "missing"
        raise InputError(what, todo="check the path", reason=reason) from error
    except OSError as error:
        raise unreadable(error) from error
    if not stat.S_ISREG(state.st_mode):
        raise InputError(
            "is not a file (a pipe, socket or device)",
            todo="copy it to a file",
            reason="special_file",
        )
    try:
        path.open("rb").close()
    except OSError as error:
        raise unreadable(error) from error
    if not state.st_size:
        raise InputError("is empty (0 bytes)", todo="save it again", reason="no_text")


def head_text(path: Path) -> str:
    """The first `HEAD_BYTES` of a file as text.

    Raises:
        InputError: it cannot be read, is binary, empty, or a damaged archive.
    """
    return decode_page(_bytes(path, HEAD_BYTES))[0]


def read_page(path: Path, notes: list[Refusal]) -> str:
    """A whole file as text; an encoding that is not UTF-8 is noted.

    Lone surrogates and bytes that are no characters become U+FFFD.

    Raises:
        InputError: it cannot be read, is binary, empty, a damaged archive or too large.
    """
    data = _bytes(path, MAX_PAGE_BYTES + 1)
    if len(data) > MAX_PAGE_BYTES:
        size = str(MAX_PAGE_BYTES // MIB)
        raise InputError(
            f"is larger than {size} MiB, too much for a page or write-up",
            todo="name it .log if it is one",
            reason="large_page",
            values={"size": size},
        )
    text, encoding = decode_page(data)
    if not text.strip("\ufeff \t\r\n\0"):
        raise InputError(
            "holds nothing but white space", todo="save the page again", reason="no_text"
        )
    if encoding:
        values = {"encoding": encoding}
        notes.append(Refusal(str(path), f"read as {encoding}", "encoding", values))
    return clean_text(text)


def _bytes(path: Path, limit: int) -> bytes:
    """The first bytes of a file, unpacked, at most `limit`.

    They are decoded later: the head of a page is ASCII in any encoding.
    """
    head, content = peek(unpacked(file_chunks(path), name=path.name))
    next(iter(decoded([head], name=path.name)))  # refuses what is binary or empty
    return peek(content, limit)[0]


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, read in constant memory.

    Raises:
        InputError: it cannot be read.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise unreadable(error) from error
    return _digest(path, status.st_ino, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=64)  # of the files being imported, each of which is asked for thrice
def _digest(path: Path, _inode: int, _size: int, _mtime_ns: int) -> str:
    digest = hashlib.sha256()
    for chunk in file_chunks(path):
        digest.update(chunk)
    return digest.hexdigest()


def unreadable(error: OSError) -> InputError:
    """That the system does not let a file be read; the report names the file."""
    why = error.strerror or ""
    return InputError(
        f"cannot be read: {why}",
        todo="check the path and its rights",
        reason="unreadable",
        values={"why": why},
    )
