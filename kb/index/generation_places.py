"""Where servers share generations of the index: a folder that all of them reach, or a bucket."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

from kb.errors import DamagedIndexError
from kb.files.atomic import publish_folder, write_file
from kb.index.base import REPAIR
from kb.index.snapshot import READ_BYTES
from kb.settings import BUCKET

WriteFile = Callable[[str, Iterable[bytes]], None]
_UNFINISHED = ".building"


class GenerationPlace(Protocol):
    """Keeps files by path (``identity/generation/name``); several servers may use it at once.

    Every verb raises OSError where the place is gone or refuses; one that raises FileNotFoundError
    found the place without the file.
    """

    def names(self, identity: str) -> list[str]:
        """What is complete below `identity`, in no order; whatever else lies there may be named."""
        ...

    def pieces(self, path: str) -> Iterator[bytes]:
        """Content of a file, piece by piece."""
        ...

    def put(self, path: str, content: bytes) -> None:
        """Put a small file there, in place of one that is there, in one step."""
        ...

    def building(self, path: str) -> AbstractContextManager[WriteFile]:
        """Write the files of the generation at `path`, which is complete after the block.

        The last file is the one that makes it complete. After an error nothing is left.
        """
        ...

    def delete(self, path: str) -> None:
        """Delete the generation at `path`; what cannot be deleted stays."""
        ...

    def delete_unfinished(self, identity: str) -> None:
        """Delete what a publisher that died has left; nobody may be publishing."""
        ...


def generation_place(where: str) -> GenerationPlace:
    """The place that a setting names: ``s3://bucket/prefix`` or a folder.

    Raises:
        MissingExtraError: a bucket needs the extra ``s3``.
        SettingsError: the address of the bucket cannot be used.
    """
    if where.startswith(BUCKET):
        from kb.index.generation_bucket import GenerationBucket

        return GenerationBucket(where)
    return GenerationFolder(Path(where))


class GenerationFolder:
    """A folder with rename and fsync, as NFS has them; never made, for it may not be mounted."""

    def __init__(self, folder: Path) -> None:
        """Use `folder`; nothing is read yet."""
        self._folder = folder

    def names(self, identity: str) -> list[str]:
        """As promised."""
        self._folder.stat()  # gone is another thing than empty
        try:
            names = [path.name for path in (self._folder / identity).iterdir()]
        except FileNotFoundError:
            return []
        return [name for name in names if not name.endswith(_UNFINISHED)]

    def pieces(self, path: str) -> Iterator[bytes]:
        """As promised."""
        with open_regular(self._folder / path) as file:
            yield from file_pieces(file)

    def put(self, path: str, content: bytes) -> None:
        """As promised."""
        write_file(self._folder / path, content, durable=True)

    @contextmanager
    def building(self, path: str) -> Iterator[WriteFile]:
        """As promised: written aside, then renamed."""
        final = self._folder / path
        final.parent.mkdir(exist_ok=True)
        built = final.with_name(final.name + _UNFINISHED)

        def write(name: str, pieces: Iterable[bytes]) -> None:
            copy = built / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            with copy.open("xb") as file:
                file.writelines(pieces)

        try:
            built.mkdir()
            yield write
            publish_folder(built, final)
        finally:
            shutil.rmtree(built, ignore_errors=True)

    def delete(self, path: str) -> None:
        """As promised."""
        shutil.rmtree(self._folder / path, ignore_errors=True)

    def delete_unfinished(self, identity: str) -> None:
        """As promised."""
        for path in (self._folder / identity).glob(f"*{_UNFINISHED}"):
            shutil.rmtree(path, ignore_errors=True)


def open_regular(path: Path) -> BinaryIO:
    """A file to read; no link, pipe or device.

    Raises:
        OSError: it cannot be opened.
        DamagedIndexError: it is something else.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DamagedIndexError(f"{path} is no file", todo=REPAIR)
    return os.fdopen(descriptor, "rb")


def file_pieces(file: BinaryIO) -> Iterator[bytes]:
    """Content of an open file, piece by piece."""
    while piece := file.read(READ_BYTES):
        yield piece
