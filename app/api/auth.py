"""Keys: who may call which route, and how often.

Without keys the server takes everyone, and `check_exposure` keeps it on this machine. With keys
(``timeout-kb keys add NAME``) every route but health and documentation wants one, as
``Authorization: Bearer KEY`` or ``X-API-Key: KEY``. Only hashes of keys are stored.
"""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import structlog
from fastapi import Depends, Request, Security
from fastapi.security import APIKeyHeader, HTTPBearer
from fastapi.security.http import HTTPAuthorizationCredentials

from app.api.problems import HttpError
from app.api.stored_keys import StoredKeys
from app.server.address import is_loopback
from kb.errors import (
    InputError,
    NotFoundError,
    SettingsError,
    StoreError,
    UnreachableStoreError,
)
from kb.files.atomic import write_file
from kb.files.state_folder import locked, make_state_folder
from kb.retry_after import retry_after_header
from kb.settings import Settings
from kb.store.quota import OWNER

if TYPE_CHECKING:
    from kb.store import Store

KeysPlace = Path | StoredKeys
Role = Literal["read", "write", "admin"]
ROLES: tuple[Role, ...] = ("read", "write", "admin")  # each may do what those before it may
KEYS_FILE = "keys.json"
KEYS_FORMAT = 1
PREFIX = "tkb_"  # lets secret scanners and the log redaction recognise a key
KEY_BYTES = 24  # of randomness: 192 bits
DEFAULT_PER_MINUTE = 600  # ten a second: a person or a hook never gets there, a loop does
BURST_S = 10  # a quiet key may send this many seconds' worth at once
SYNCHRONISE_S = 1.0  # how long a removed key is still taken by a server that shares a database
ADD = "timeout-kb keys add NAME --role read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key as stored: SHA-256 of it, what it may do, requests it may make a minute."""

    name: str
    role: Role
    digest: str
    per_minute: int = DEFAULT_PER_MINUTE


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFile:
    """Content of ``keys.json``."""

    format: int = KEYS_FORMAT
    keys: tuple[Key, ...] = ()


def keys_path(settings: Settings) -> Path:
    """Where the keys of this state folder are stored."""
    return settings.home / KEYS_FILE


def keys_place(settings: Settings, store: Store | None = None) -> KeysPlace:
    """Where keys are: a file of this state folder, or the database that several servers share."""
    return StoredKeys(settings, store) if settings.shared_store else keys_path(settings)


def read_keys(path: KeysPlace) -> tuple[Key, ...]:
    """The stored keys, none where there is no file.

    Raises:
        StoreError: the file cannot be read or is of another format.
    """
    try:
        content = msgspec.json.decode(path.read_bytes(), type=KeyFile)
        if content.format != KEYS_FORMAT:
            raise ValueError(f"has format {content.format}, this program reads {KEYS_FORMAT}")
    except (FileNotFoundError, NotADirectoryError):  # a folder that cannot be is told elsewhere
        return ()
    except (OSError, ValueError) as error:  # msgspec's errors are ValueErrors
        raise StoreError(
            f"{path}: {error}",
            todo=f"remove the file and make new keys: {ADD}",
            reason="keys_unreadable",
            values={"path": str(path), "why": str(error), "add": ADD},
        ) from error
    return content.keys


def _write_keys(path: KeysPlace, keys: Sequence[Key]) -> None:
    content = msgspec.json.encode(KeyFile(keys=tuple(keys)))
    if isinstance(path, StoredKeys):
        path.write(content)
        return
    try:
        write_file(path, content, mode=0o600, durable=True)  # a removed key must not come back
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}", todo="check the folder's rights") from error


def add_key(path: KeysPlace, name: str, role: Role, per_minute: int = DEFAULT_PER_MINUTE) -> str:
    """Store a new key and give its text, which is shown this once.

    Raises:
        InputError: there is a key of that name.
    """
    with _changing(path):
        return _add_key(path, name, role, per_minute)


def _add_key(path: KeysPlace, name: str, role: Role, per_minute: int) -> str:
    keys = read_keys(path)
    if any(key.name == name for key in keys):
        raise InputError(
            f"there is a key called {name!r}",
            todo="remove it first, or rename",
            reason="key_exists",
            values={"key": name},
        )
    text = PREFIX + secrets.token_urlsafe(KEY_BYTES)
    new = Key(name=name, role=role, digest=_digest(text), per_minute=per_minute)
    _write_keys(path, (*keys, new))
    return text


def remove_key(path: KeysPlace, name: str) -> None:
    """Forget a key; running servers refuse it from the next request on.

    Raises:
        NotFoundError: there is no key of that name.
    """
    with _changing(path):
        _remove_key(path, name)


@contextmanager
def _changing(path: KeysPlace) -> Iterator[None]:
    """Let one process at a time read, change and write the keys: none is lost.

    Raises:
        StoreError: the folder cannot be made or written.
    """
    if isinstance(path, StoredKeys):
        with path.changing():
            yield
        return
    try:
        make_state_folder(path.parent)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}", todo="check the folder's rights") from error
    with locked(path.with_name(f"{path.name}.lock")):
        yield


def _remove_key(path: KeysPlace, name: str) -> None:
    keys = read_keys(path)
    others = [key for key in keys if key.name != name]
    if len(others) == len(keys):
        raise NotFoundError(
            f"no key is called {name!r}",
            todo="see: timeout-kb keys list",
            reason="key_unknown",
            values={"key": name},
        )
    _write_keys(path, others)


def _digest(text: str) -> str:
    """SHA-256 in hex: keys are random, so a slow password hash would gain nothing."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def check_exposure(settings: Settings) -> None:
    """Refuse to serve other machines without keys.

    Raises:
        SettingsError: the host is not this machine alone and there are no keys.
        StoreError: there are, and they cannot be read.
    """
    keys = read_keys(keys_place(settings))
    if keys or is_loopback(settings.host):
        return
    raise SettingsError(
        f"host {settings.host} would let everyone in: there are no keys",
        todo=f"make one ({ADD}), or serve this machine only (127.0.0.1)",
        reason="exposed",
        values={"host": settings.host, "add": ADD},
    )


def no_keys_notice(settings: Settings) -> str:
    """What to say at the start where everyone on this machine gets in; empty where keys are."""
    if read_keys(keys_place(settings)):
        return ""
    return (
        f"no keys: only this machine gets in ({settings.host}). "
        f"To let others in: {ADD}, then --host 0.0.0.0"
    )


@dataclass(slots=True)
class _Bucket:
    """Requests a key has left; refilled with time."""

    left: float
    at_s: float


@dataclass(slots=True)
class Guard:
    """The keys of a running server; the file is read again when it changes.

    Where there are none everyone gets in, unless `shut`, as it is towards other machines. Who got
    in at the start without a key does so until the server starts anew, so that the first key locks
    nobody out; a key that is sent counts at once. Once the last key is removed everyone gets in
    again; a file that is gone, or damaged, opens nothing.

    Each of several `workers` counts what it gets itself, so each lets its share of a key's limit
    through. With keys in a database `follow` reads them every second, and what other servers let
    through counts as well; while the database is gone the last keys stay in force.
    """

    path: KeysPlace
    shut: bool = False
    workers: int = 1
    clock: Callable[[], float] = time.monotonic
    _keys: dict[str, Key] = field(default_factory=dict)
    _stamp: tuple[int, int] | None = None
    _damaged: bool = False
    _open_at_start: bool = False
    _buckets: dict[str, _Bucket] = field(default_factory=dict)
    _passed: Counter[str] = field(default_factory=Counter)  # since the last look at others
    _everywhere: dict[str, int] | None = None  # requests of all servers, at the last look

    def __post_init__(self) -> None:
        """Read the keys there are at the start."""
        if isinstance(self.path, StoredKeys):
            self._damaged = True  # until they were read
            self.workers = 1  # others' requests are known
            self.synchronise()
        self._refresh()
        self._open_at_start = not (self.shut or self._keys or self._damaged)

    def open_to_all(self) -> bool:
        """Whether requests without a key are answered."""
        self._refresh()
        if self._damaged or self.shut:
            return False
        return self._open_at_start or not self._keys

    def check(self, text: str, role: Role) -> str:
        """Let a request pass, or not.

        Returns:
            The name of its key; empty where there are no keys.

        Raises:
            HttpError: 401 no or a wrong key, 403 not allowed, 429 too many, 503 the keys cannot be
            read.
        """
        if self.open_to_all() and not (text and self._keys):
            return ""
        if self._damaged:
            raise HttpError(503, "keys-damaged", "keys_damaged")
        key = self._keys.get(_digest(text)) if text else None
        if key is None:
            raise HttpError(
                401,
                "wrong-key" if text else "no-key",
                "wrong_key" if text else "no_key",
                headers={"WWW-Authenticate": "Bearer"},
                add=ADD,
            )
        if ROLES.index(key.role) < ROLES.index(role):
            raise HttpError(
                403, "not-allowed", "not_allowed", key=key.name, has=key.role, needs=role
            )
        self._take(key)
        return key.name

    def follow(self) -> None:
        """Look at the keys and at other servers every second, where they lie in a database."""
        if isinstance(self.path, StoredKeys):
            threading.Thread(target=self._follow, name="keys-follower", daemon=True).start()

    def _follow(self) -> None:
        while self.synchronise():
            time.sleep(SYNCHRONISE_S)

    def synchronise(self) -> bool:
        """Take over keys and counts from the database; False where there is none any more."""
        place = self.path
        if not isinstance(place, StoredKeys) or (place.store and place.store.is_closed):
            return False
        passed, self._passed = self._passed, Counter()
        try:
            keys = read_keys(place)
            everywhere = place.add_requests(passed)
        except UnreachableStoreError as error:
            self._passed.update(passed)
            if self._everywhere is None:  # what was read once stays in force, no keys too
                self._refuse_all(error)
        except StoreError as error:
            self._refuse_all(error)
        else:
            self._keys = {key.digest: key for key in keys}
            self._damaged = False
            before, self._everywhere = self._everywhere, everywhere
            for digest, count in everywhere.items():
                others = count - passed[digest] - (before or {}).get(digest, 0)
                if before is not None and others > 0 and (bucket := self._buckets.get(digest)):
                    bucket.left -= others
        return True

    def _refresh(self) -> None:
        if isinstance(self.path, StoredKeys):
            return
        try:
            status = self.path.stat()
        except FileNotFoundError:
            # A removed file opens nothing: keys that were in force stay so.
            return
        except OSError as error:
            self._refuse_all(error)
            return
        stamp = (status.st_mtime_ns, status.st_ino)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._keys = {key.digest: key for key in read_keys(self.path)}
        except StoreError as error:
            self._refuse_all(error)
        else:
            self._damaged = False

    def _refuse_all(self, error: Exception) -> None:
        """Let nobody in until the file can be read; its path is for the operator's log alone."""
        if not self._damaged:
            structlog.get_logger("app.api").error("keys cannot be read", detail=str(error))
        self._damaged = True

    def _take(self, key: Key) -> None:
        """Token bucket (https://en.wikipedia.org/wiki/Token_bucket): refill by time, take one."""
        per_s = key.per_minute / 60 / self.workers
        size = max(1.0, per_s * BURST_S)
        now = self.clock()
        bucket = self._buckets.setdefault(key.digest, _Bucket(size, now))
        bucket.left = min(size, bucket.left + (now - bucket.at_s) * per_s)
        bucket.at_s = now
        if bucket.left < 1:
            raise HttpError(
                429,
                "too-many",
                "too_many_requests" if self.workers == 1 else "too_many_shared",
                headers=retry_after_header((1 - bucket.left) / per_s),
                key=key.name,
                count=str(key.per_minute),
                workers=str(self.workers),
            )
        bucket.left -= 1
        self._passed[key.digest] += 1


_bearer = HTTPBearer(auto_error=False, description="A key made with `timeout-kb keys add`.")
_header = APIKeyHeader(name="X-API-Key", auto_error=False)


def needs(role: Role) -> Callable[..., Coroutine[None, None, None]]:
    """A dependency that lets only keys of `role` or above pass."""

    async def check(
        request: Request,
        bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
        header: Annotated[str | None, Security(_header)],
    ) -> None:
        guard: Guard = request.app.state.guard
        request.state.role = role
        try:
            name = guard.check(bearer.credentials if bearer else header or "", role)
        except HttpError as error:
            request.state.key_name = error.values.get("key", "")
            raise
        request.state.key_name = name
        OWNER.set(name)

    return check


def key_name(request: Request) -> str:
    """The name of the key a request came with; empty where the server has no keys."""
    return str(getattr(request.state, "key_name", ""))


read_access = Depends(needs("read"))
write_access = Depends(needs("write"))
admin_access = Depends(needs("admin"))
