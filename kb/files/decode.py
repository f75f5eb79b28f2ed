"""Bytes to UTF-8: encodings told from a stream's first bytes, or from a whole page."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from itertools import chain

from kb.errors import InputError
from kb.files.archives import peek, unpacked
from kb.files.paths import refused

BLANK_BYTES = 256 * 1024 * 1024  # blanks and NULs passed over at a log's start; an archive of
# nothing else would unpack for hours
MAX_NUL_SHARE = 0.02  # logs cut off by a crash hold a few NULs; binaries hold many
MAX_CONTROL_SHARE = 0.05  # other control characters; terminals print few, binaries a tenth
_UTF16_NUL_SHARE = 0.25  # Latin text in UTF-16 is half NULs, mixed with Chinese still a quarter

MAX_BROKEN = 8  # bytes that are no UTF-8 in a short text, or one in a hundred; more is another code
MIN_HAN = 4  # characters; fewer can come about by chance
COMMON_SHARE = 0.9  # of the Han characters; the 3,755 common ones make up 99 % of written Chinese
_UTF16_BOMS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_BINARY = (
    (b"\x7fELF", "a program", "binary"),
    (b"\x89PNG", "an image", "picture"),
    (b"\xff\xd8\xff", "an image", "picture"),
    (b"GIF8", "an image", "picture"),
    (b"%PDF", "a PDF", "document"),
    (b"PK\x03\x04", "a zip archive", "archive"),
    (b"BZh9", "a bzip2 archive", "archive"),
    (b"SQLite format 3", "a database", "binary"),
    (b"\x80\x02", "a pickle (flight-recorder dump?)", "pickle"),
    (b"\x80\x04", "a pickle (flight-recorder dump?)", "pickle"),
    (b"\x80\x05", "a pickle (flight-recorder dump?)", "pickle"),
)
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROL_CHARS = re.compile("[\x00-\x08\x0b-\x1f]")  # all but tab and line feed
_CONTROLS = bytes(sorted(set(range(32)) - set(b"\0\t\n\r\x08\x0c\x1b")))
_TODO = "pass a text log (.log .out .txt, also .gz .zst .xz); dumps go to --dump"


def decoded(chunks: Iterable[bytes], *, name: str = "") -> Iterator[bytes]:
    """Uncompress and recode a byte stream to UTF-8, chunk by chunk.

    Bytes that are no UTF-8 in a stream that begins as UTF-8 stay as they are.

    Raises:
        InputError: the stream is empty, binary, or a damaged archive.
    """
    head, rest = peek(unpacked(chunks, name=name))
    if not head.strip(b" \t\r\n\0"):
        head = _first_filled(rest)
        if not head:
            raise refused("empty", name, "is empty", todo="name the log of the failed run")
        rest = chain([head], rest)
    encoding = _encoding(head, name)
    yield from rest if encoding is None else _recode(rest, encoding)


def _first_filled(chunks: Iterator[bytes]) -> bytes:
    """The first chunk with anything but blanks; empty where there is none within reason."""
    skipped = 0
    for chunk in chunks:
        if chunk.strip(b" \t\r\n\0"):
            return chunk
        skipped += len(chunk)
        if skipped > BLANK_BYTES:
            break
    return b""


def _encoding(head: bytes, name: str) -> str | None:
    """The encoding to recode from, or None when the bytes can stay as they are.

    Raises:
        InputError: the head is that of a binary file.
    """
    for bom, encoding in _BOMS:
        if head.startswith(bom):
            return encoding
    for magic, what, reason in _BINARY:
        if head.startswith(magic):
            raise refused(reason, name, f"is {what}, not a log", todo=_TODO)
    nuls = head.count(0)
    if nuls >= _UTF16_NUL_SHARE * len(head):
        even, odd = head[::2].count(0), head[1::2].count(0)
        if max(even, odd) > 4 * min(even, odd):
            return "utf-16-be" if even > odd else "utf-16-le"
    if nuls > MAX_NUL_SHARE * len(head):
        raise refused("binary", name, f"is binary ({nuls} NULs at its start)", todo=_TODO)
    controls = len(head) - len(head.translate(None, _CONTROLS))
    if controls > MAX_CONTROL_SHARE * len(head):
        raise refused("binary", name, f"is binary ({controls} control characters)", todo=_TODO)
    if _decodes(head, "utf-8"):
        return None
    return "gb18030" if _decodes(head, "gb18030") else None


def _decodes(head: bytes, encoding: str) -> bool:
    try:
        codecs.getincrementaldecoder(encoding)("strict").decode(head, final=False)
    except UnicodeDecodeError:
        return False
    return True


def _recode(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for chunk in chunks:
        if text := decoder.decode(bytes(chunk)):
            yield text.encode("utf-8", "replace")
    if text := decoder.decode(b"", final=True):
        yield text.encode("utf-8", "replace")


def decode_page(data: bytes) -> tuple[str, str]:
    """A page as text, and the name of its encoding where that is not UTF-8.

    All of it is looked at: the head of a page is ASCII in any encoding.

    Raises:
        InputError: it is binary, or in an unknown encoding.
    """
    try:
        return data.decode("utf-8-sig"), ""
    except UnicodeDecodeError:
        replaced = data.decode("utf-8-sig", "replace")
    if replaced.count("\ufffd") <= max(MAX_BROKEN, len(replaced) // 100):
        return replaced, ""
    deciding = data
    if b"\0" not in data and not data.startswith(_UTF16_BOMS):
        # lines of ASCII say nothing about the encoding, and enough of them hide the others
        deciding = b"\n".join(line for line in data.splitlines() if not line.isascii())
    encoding = "gb18030" if _is_chinese(deciding) else _guessed(deciding)
    return data.decode(encoding, "replace"), encoding


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


def clean_text(text: str) -> str:
    """`text` with everything a database or a terminal cannot take replaced or removed."""
    if not text.isascii():
        # joins surrogate pairs that JSON escapes spelt, and replaces the lone ones
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _CONTROL_CHARS.sub("", text)
