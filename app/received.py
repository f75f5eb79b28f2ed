"""Uploaded files, put into a folder of their own where they can be read as files of one run."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

MAX_NAME = 200  # bytes of an uploaded file's name; file systems take 255
_UNSAFE = re.compile(r"[^\w.-]+")


def save(uploads: Sequence[tuple[str, BinaryIO]], folder: Path, paths: list[Path]) -> list[Path]:
    """Copy uploads into `folder` under their own names, made harmless and unique.

    The new paths are added to `paths`, which is returned.
    """
    for number, (name, stream) in enumerate(uploads):
        path = folder / (safe_name(name) or f"upload-{number}")
        while path in paths:
            path = path.with_name(f"{number}-{path.name}")
        with path.open("wb") as file:
            shutil.copyfileobj(stream, file)
        paths.append(path)
    return paths


def safe_name(name: str) -> str:
    """The end of a name, harmless and short enough for a file; empty where nothing is left."""
    base = _UNSAFE.sub("_", name.replace("\\", "/").rsplit("/", 1)[-1]).lstrip(".")
    return base.encode("utf-8", "replace")[-MAX_NAME:].decode("utf-8", "ignore").lstrip(".")
