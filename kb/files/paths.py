"""Paths of input files: folders walked, names made legible, refusals worded."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from kb.errors import InputError

MAX_FILES = 20_000  # a folder with more is a dataset, not a run's logs
THE_INPUT = "the input"  # a paste or a stream has no name


def short_names(names: Sequence[str]) -> list[str]:
    """What tells the files of one input apart: their paths below the folder all share.

    A single one needs no name.
    """
    if len(names) < 2:
        return [""] * len(names)
    names = [legible(name) for name in names]
    try:
        shared = os.path.commonpath([Path(name).parent for name in names])
        return [str(Path(name).relative_to(shared)) for name in names]
    except ValueError:  # some absolute, some not; `//`, a root of its own
        return names


def legible(name: str) -> str:
    """A file's name as text: bytes of it that are no UTF-8 become U+FFFD."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def files_under(paths: Sequence[Path], *, most: int = MAX_FILES, empty: bool = False) -> list[Path]:
    """The files named by `paths`, folders walked, in a fixed order; hidden files are left out.

    Raises:
        InputError: a path does not exist, may not be read, or holds no file, which `empty` allows;
            there are more than `most` files.
    """
    files: list[Path] = []
    for path in paths:
        try:
            if path.is_dir():
                inside = sorted(
                    item
                    for item in path.rglob("*")
                    if item.is_file() and not item.name.startswith(".")
                )
                if not (inside or empty):
                    next(iter(path.iterdir()), None)  # tells a folder without rights from an empty
                    what = "holds no files"
                    raise refused("no_files", path, what, todo="name the folder of the logs")
                files += inside
            elif path.exists():
                files.append(path)
            else:
                raise refused("missing", path, "does not exist", todo="check the path")
        except OSError as error:
            raise not_readable(path, error, todo="check its permissions") from error
    if len(files) > most:
        raise InputError(
            f"{len(files)} files are too many",
            todo="name the folder of one run",
            reason="too_many",
            values={"count": str(len(files))},
        )
    return list(dict.fromkeys(files))


def refused(reason: str, path: Path | str, what: str, *, todo: str) -> InputError:
    """That an input cannot be used; its last name alone is shown by faces."""
    values = {"name": legible(Path(path).name)}
    return InputError(f"{path or THE_INPUT} {what}", todo=todo, reason=reason, values=values)


def not_readable(path: Path, error: OSError, *, todo: str) -> InputError:
    """That a file or folder is there and cannot be read."""
    values = {"name": legible(path.name), "why": error.strerror or ""}
    return InputError(f"{path}: {error.strerror}", todo=todo, reason="unreadable", values=values)
