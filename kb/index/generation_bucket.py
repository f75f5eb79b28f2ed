"""Generations of the index in an S3-compatible bucket.

Objects are immutable but for `LATEST`. A generation is complete once its manifest is there, the
last of its files: S3 shows an object whole or not at all, and reads after a write see it.
https://docs.aws.amazon.com/AmazonS3/latest/userguide/Welcome.html#ConsistencyModel

Keys, region and endpoint come from the ``AWS_*`` variables that all S3 clients read.
https://developmentseed.org/obstore/latest/api/store/aws/
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from kb.errors import MissingExtraError, SettingsError
from kb.index.generation_places import WriteFile
from kb.index.snapshot import MANIFEST, READ_BYTES

try:
    from obstore.exceptions import BaseError
    from obstore.store import S3Store
except ImportError as import_error:
    raise MissingExtraError(
        f"a bucket needs a package that is not installed ({import_error.name})",
        todo="pip install 'timeout-kb[s3]'",
    ) from import_error

CONNECT_S, READ_S, WHOLE_S = 5, 30, 1_800  # the last: of one file or part of it, however slow
RETRIES = 2
RETRY_S = 20
_DURATION = re.compile(r" in [0-9.]+[a-zµ]+")
PART_BYTES, PARTS = 8 << 20, 4  # of a file, and how many are on the way at once


class GenerationBucket:
    """A prefix of a bucket."""

    def __init__(self, address: str) -> None:
        """Use the prefix that `address` (``s3://bucket/prefix``) names; nothing is read yet.

        Raises:
            SettingsError: the address or an ``AWS_*`` variable cannot be used.
        """
        try:
            self._store = S3Store.from_url(
                address,
                client_options={
                    "allow_http": True,  # for who names an endpoint with it
                    "connect_timeout": timedelta(seconds=CONNECT_S),
                    "read_timeout": timedelta(seconds=READ_S),
                    "timeout": timedelta(seconds=WHOLE_S),
                },
                retry_config={
                    "max_retries": RETRIES,
                    "retry_timeout": timedelta(seconds=RETRY_S),
                },
            )
        except (BaseError, ValueError) as error:
            raise SettingsError(
                f"{address} cannot be used: {_line(error)}",
                todo="write s3://bucket/prefix, and set AWS_REGION or AWS_ENDPOINT_URL",
                reason="setting_bucket",
                values={"text": address},
            ) from error

    def names(self, identity: str) -> list[str]:
        """As promised."""
        files = self._files(identity)
        return [name for name, paths in files.items() if _manifest(identity, name) in paths]

    def pieces(self, path: str) -> Iterator[bytes]:
        """As promised."""
        with _as_os_error():
            yield from map(bytes, self._store.get(path).stream(min_chunk_size=READ_BYTES))

    def put(self, path: str, content: bytes) -> None:
        """As promised."""
        with _as_os_error():
            self._store.put(path, content)

    @contextmanager
    def building(self, path: str) -> Iterator[WriteFile]:
        """As promised."""

        def write(name: str, pieces: Iterable[bytes]) -> None:
            with _as_os_error():
                self._store.put(
                    f"{path}/{name}", iter(pieces), chunk_size=PART_BYTES, max_concurrency=PARTS
                )

        try:
            yield write
        except BaseException:
            self.delete(path)
            raise

    def delete(self, path: str) -> None:
        """As promised; the manifest goes first, so what is left is no generation."""
        identity, _, name = path.partition("/")
        try:
            self._delete(self._files(identity).get(name, set()), f"{path}/{MANIFEST}")
        except OSError:
            return

    def delete_unfinished(self, identity: str) -> None:
        """As promised."""
        for name, paths in self._files(identity).items():
            if name and _manifest(identity, name) not in paths:
                self._delete(paths)

    def _delete(self, paths: set[str], first: str = "") -> None:
        with _as_os_error():
            for group in ({first} & paths, paths - {first}):
                if group:
                    self._store.delete(sorted(group))

    def _files(self, identity: str) -> dict[str, set[str]]:
        """Paths of the objects below `identity` by generation; those of none under ''."""
        files: dict[str, set[str]] = defaultdict(set)
        with _as_os_error():
            for batch in self._store.list(f"{identity}/"):
                for each in batch:
                    name, _, rest = each["path"].removeprefix(f"{identity}/").partition("/")
                    files[name if rest else ""].add(each["path"])
        return files


def _manifest(identity: str, name: str) -> str:
    return f"{identity}/{name}/{MANIFEST}"


@contextmanager
def _as_os_error() -> Iterator[None]:
    """Raise what the client raises as an OSError of one line."""
    try:
        yield
    except BaseError as error:
        raise OSError(_line(error)) from error


def _line(error: Exception) -> str:
    """The first line of an error, without how long it took; the others are for programmers."""
    line = next(iter(str(error).splitlines()), type(error).__name__)
    return _DURATION.sub("", line)
