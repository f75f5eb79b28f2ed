"""From paths to sources: folders walked, each file's kind told by its name and first lines."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ingest.reading import HEAD_BYTES, head_text, unreadable
from ingest.sections import role_of
from ingest.types import Refusal, SourceKind, refusal
from ingest.wordlists import WordLists
from kb.errors import InputError

SUFFIXES: dict[str, SourceKind] = {
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".md": "markdown",
    ".markdown": "markdown",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".log": "log",
    ".out": "log",
    ".err": "log",
    ".stdout": "log",
    ".stderr": "log",
}
COMPRESSED = (".gz", ".zst", ".xz")
LOG_SHARE = 0.2  # of the lines that are not empty; below it output is quoted inside an article
PAGE_ROLES = 2  # section titles of so many roles make a page, however much output it quotes
MAX_FILES = 100_000  # more than that is a mistake in the path, not a collection of write-ups


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file to import; `key` names it in the store and stays when the content changes."""

    path: Path
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What the paths hold: files to import in a fixed order, what cannot be read, what is left."""

    sources: tuple[Source, ...]
    refused: tuple[Refusal, ...]
    skipped: tuple[Refusal, ...]


def find_sources(paths: Sequence[Path]) -> Found:
    """Files named by `paths`; folders are walked in name order, each file taken once.

    Hidden files are left out. A README found on the way describes its folder and is left out too,
    unless it was named itself.
    """
    sources: dict[str, Source] = {}
    refused: list[Refusal] = []
    skipped: list[Refusal] = []
    for path in paths:
        for item in _walk(path, refused):
            if item != path and item.stem.lower() == "readme":
                what = "describes its folder; name it to import it"
                skipped.append(Refusal(str(item), what, "readme"))
                continue
            try:
                _check_file(item)
            except InputError as error:
                refused.append(refusal(str(item), error, item))
                continue
            key = str(item.resolve())
            sources.setdefault(key, Source(path=item, key=key))
            if len(sources) > MAX_FILES:
                raise InputError(
                    f"more than {MAX_FILES} files",
                    todo="name a smaller folder",
                    reason="many_sources",
                    values={"count": f"{MAX_FILES:,}"},
                )
    return Found(sources=tuple(sources.values()), refused=tuple(refused), skipped=tuple(skipped))


def _walk(path: Path, refused: list[Refusal]) -> Iterator[Path]:
    """Files under `path`, or itself; a folder met twice, by a link to it, is walked once."""
    if not path.is_dir():
        yield path
        return

    def failed(error: OSError) -> None:
        why = error.strerror or ""
        what = f"cannot be listed: {why}"
        refused.append(Refusal(str(error.filename), what, "unreadable", {"why": why}))

    seen: set[tuple[int, int]] = set()
    for folder, names, files in os.walk(path, followlinks=True, onerror=failed):
        state = Path(folder).stat()
        if (state.st_dev, state.st_ino) in seen:
            names[:] = []
            continue
        seen.add((state.st_dev, state.st_ino))
        names[:] = sorted(name for name in names if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith("."):
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
    if not state.st_size:
        raise InputError("is empty (0 bytes)", todo="save it again", reason="no_text")


def kind_of(path: Path, words: WordLists) -> SourceKind:
    """What kind of source `path` is.

    Raises:
        InputError: it cannot be read, is binary or empty.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    kind = SUFFIXES.get(suffixes[-1]) if suffixes else None
    if kind is not None and kind != "markdown":
        return kind
    return sniff(head_text(path), words, markdown=kind == "markdown")


def sniff(text: str, words: WordLists, *, markdown: bool = False) -> SourceKind:
    """What kind of source starts with `text`, of which at most `HEAD_BYTES` need be there."""
    start = text[:2048].lstrip("\ufeff \t\r\n")
    if markdown:
        return "case" if _is_case(start) else "markdown"
    lowered = start[:512].lower()
    if lowered.startswith(("<!doctype html", "<html")) or "<body" in lowered or "<head>" in lowered:
        return "html"
    if start.startswith("{") and '"' in start[:64]:
        return "jsonl"
    lines = [line for line in text[:HEAD_BYTES].splitlines() if line.strip()]
    if _looks_like_page(lines, words):
        return "page"
    output = sum(1 for line in lines if words.log_line.search(line[:400]))
    return "log" if lines and output >= LOG_SHARE * len(lines) else "page"


def _is_case(start: str) -> bool:
    """Front matter with an id and a cause: the shape of `data/cases`."""
    if not start.startswith("---"):
        return False
    names = {line.split(":", 1)[0] for line in start.splitlines() if ":" in line}
    return {"id", "cause", "project"} <= names


def _looks_like_page(lines: Sequence[str], words: WordLists) -> bool:
    roles = {role_of(line, words) for line in lines if not words.log_line.search(line[:400])}
    if len(roles - {""}) >= PAGE_ROLES:
        return True
    return any(line.strip().lower().startswith(words.furniture.ends) for line in lines)
