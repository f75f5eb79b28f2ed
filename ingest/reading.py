"""Reading files as text: any usual encoding, compressed too, never more than a bound."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from kb.errors import InputError
from kb.logs.source import decoded, from_path

MIB = 1024 * 1024
HEAD_BYTES = 64 * 1024  # enough to tell an article from a log
MAX_PAGE_BYTES = 8 * MIB  # saved pages hold tens of kilobytes; more is a dump of something else
MAX_LINE = 20_000  # characters; a longer line of an article is cut, no paragraph is as long
MAX_BROKEN = 8  # bytes that are no UTF-8 in a short text, or one in a hundred; more is another code
MIN_HAN = 4  # characters; fewer can come about by chance
COMMON_SHARE = 0.9  # of the Han characters; the 3,755 common ones make up 99 % of written Chinese
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\x00")


def head_text(path: Path) -> str:
    """The first `HEAD_BYTES` of a file as text.

    Raises:
        InputError: it cannot be read, is binary, empty, or a damaged archive.
    """
    return _to_text(_joined(_chunks(path), HEAD_BYTES, whole=False))[0]


def read_page(path: Path) -> tuple[str, str]:
    """A whole file as text, and the encoding's name where it is not UTF-8.

    Lone surrogates and bytes that are no characters become U+FFFD; lines are cut at `MAX_LINE`.

    Raises:
        InputError: it cannot be read, is binary, empty, a damaged archive or too large.
    """
    text, encoding = _to_text(_joined(_chunks(path), MAX_PAGE_BYTES, whole=True))
    if not text.strip("\ufeff \t\r\n\0"):
        raise InputError(
            "holds nothing but white space", todo="save the page again", reason="no_text"
        )
    lines = text.splitlines()
    if any(len(line) > MAX_LINE for line in lines):
        text = "\n".join(line[:MAX_LINE] for line in lines)
    return clean_text(text), encoding


def clean_text(text: str) -> str:
    """`text` with everything a database or a terminal cannot take replaced or removed."""
    if not text.isascii():
        # joins surrogate pairs that JSON escapes spelt, and replaces the lone ones
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return "".join(char for char in text if char >= " " or char in "\n\t") if _dirty(text) else text


def _dirty(text: str) -> bool:
    return any(char < " " and char not in "\n\t" for char in text)


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, read in constant memory.

    Raises:
        InputError: it cannot be read.
    """
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(error) from error


def unreadable(error: OSError) -> InputError:
    """That the system does not let a file be read; the report names the file."""
    why = error.strerror or ""
    return InputError(
        f"cannot be read: {why}",
        todo="check the path and its rights",
        reason="unreadable",
        values={"why": why},
    )


def _chunks(path: Path) -> Iterator[bytes]:
    """Bytes of a file: as they are where it is plain, unpacked and as UTF-8 where it is packed.

    The reader of logs tells binaries from text; it also guesses encodings, from the first bytes
    only, which is too little for a page whose head is ASCII.
    """
    try:
        with path.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
            if not head.startswith(_COMPRESSED):
                next(iter(decoded([head], name=path.name)))
                yield from chain([head], iter(lambda: stream.read(MIB), b""))
                return
    except OSError as error:
        raise unreadable(error) from error
    yield from (bytes(chunk) for chunk in from_path(path).chunks())


def _joined(chunks: Iterator[bytes], limit: int, *, whole: bool) -> bytes:
    parts: list[bytes] = []
    size = 0
    for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        if size > limit:
            if whole:
                raise InputError(
                    f"is larger than {limit // MIB} MiB, too much for a page or write-up",
                    todo="name it .log if it is one",
                    reason="large_page",
                    values={"size": str(limit // MIB)},
                )
            break
    return b"".join(parts)[:limit]


def _to_text(data: bytes) -> tuple[str, str]:
    try:
        return data.decode("utf-8-sig"), ""
    except UnicodeDecodeError:
        replaced = data.decode("utf-8-sig", "replace")
    if replaced.count("\ufffd") <= max(MAX_BROKEN, len(replaced) // 100):
        return replaced, ""
    telling = data
    if b"\0" not in data and not data.startswith(_UTF16):
        # lines of ASCII say nothing about the encoding, and enough of them hide the others
        telling = b"\n".join(line for line in data.splitlines() if not line.isascii())
    found = "gb18030" if _is_chinese(telling) else _guessed(telling)
    return data.decode(found, "replace"), found


def _is_chinese(data: bytes) -> bool:
    """Whether `data` is GB18030: decoded so, its characters are the common ones of Chinese."""
    try:
        han = [char for char in data.decode("gb18030") if "\u4e00" <= char <= "\u9fff"]
    except UnicodeDecodeError:
        return False
    common = sum(1 for char in han if b"\xb0" <= char.encode("gb18030")[:1] <= b"\xd7")
    return len(han) >= MIN_HAN and common >= COMMON_SHARE * len(han)


def _guessed(data: bytes) -> str:
    import charset_normalizer

    best = charset_normalizer.from_bytes(data).best()
    if best is None:
        raise InputError(
            "is binary, or in an unknown encoding", todo="save it as UTF-8 text", reason="encoding"
        )
    return best.encoding
