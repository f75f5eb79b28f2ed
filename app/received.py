"""Uploaded files, put into a folder of their own where they can be read as files of one run."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from kb.types import LogReading

MAX_NAME = 100  # characters of an uploaded file's name
_UNSAFE = re.compile(r"[^\w.-]+")


def save(uploads: Sequence[tuple[str, BinaryIO]], folder: Path, paths: list[Path]) -> list[Path]:
    """Copy uploads into `folder` under their own names, made harmless and unique.

    The new paths are added to `paths`, which is returned.
    """
    for number, (name, stream) in enumerate(uploads):
        base = _UNSAFE.sub("_", name.replace("\\", "/").rsplit("/", 1)[-1]).lstrip(".")
        path = folder / (base[-MAX_NAME:].lstrip(".") or f"upload-{number}")
        while path in paths:
            path = path.with_name(f"{number}-{path.name}")
        with path.open("wb") as file:
            shutil.copyfileobj(stream, file)
        paths.append(path)
    return paths


def without_folder(reading: LogReading, folder: Path) -> LogReading:
    """Name files as they were uploaded, not where they lay here."""
    prefix = f"{folder}/"
    events = tuple(
        replace(event, file=event.file.removeprefix(prefix)) if event.file else event
        for event in reading.events
    )
    incident, first = reading.incident, reading.incident.first_error
    if first is not None:
        incident = replace(
            incident, first_error=replace(first, file=first.file.removeprefix(prefix))
        )
    return replace(reading, events=events, incident=incident)
