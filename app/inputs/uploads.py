"""Files that people hand in, put into a folder of their own to be read as the files of one run."""

from __future__ import annotations

import io
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from kb.text.redact import redact_name

DESCRIPTION = "description.txt"  # pasted words beside uploaded files
MAX_NAME = 200  # bytes of an uploaded file's name; file systems take 255
_UNSAFE = re.compile(r"[^\w.-]+")


class UploadFolder:
    """A folder that files are put into under their own names: names tell ranks and kinds.

    Attributes:
        paths: the files, in the order they came.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.paths: list[Path] = []

    def new_path(self, name: str) -> Path:
        """A path for a file called `name`, made harmless and unique; whoever asks writes it."""
        number = len(self.paths)
        path = self.folder / (safe_name(name) or f"upload-{number}")
        while path in self.paths:
            path = path.with_name(f"{number}-{path.name}")
        self.paths.append(path)
        return path

    def add(self, name: str, content: BinaryIO) -> Path:
        """Write a file called `name`, piece by piece."""
        path = self.new_path(name)
        with path.open("wb") as file:
            shutil.copyfileobj(content, file)
        return path

    def add_text(self, text: str, *, name: str = DESCRIPTION) -> Path:
        """Write a text, by default as what a person says beside the files."""
        return self.add(name, io.BytesIO(text.encode("utf-8", "replace")))


@contextmanager
def upload_folder() -> Iterator[UploadFolder]:
    """An empty folder of this machine's temporary files, gone at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="timeout-kb-") as folder:
        yield UploadFolder(Path(folder))


def safe_name(name: str) -> str:
    """The end of a name, harmless, without secrets and short enough for a file; may be empty."""
    last = redact_name(name.replace("\\", "/").rsplit("/", 1)[-1])
    base = _UNSAFE.sub("_", last).lstrip(".")
    return base.encode("utf-8", "replace")[-MAX_NAME:].decode("utf-8", "ignore").lstrip(".")
