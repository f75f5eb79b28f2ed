"""Keys: who may call which route, and how often.

Without keys the server takes everyone, and `check_exposure` keeps it on this machine. With keys
(``timeout-kb keys add NAME``) every route but health and documentation wants one, as
``Authorization: Bearer KEY`` or ``X-API-Key: KEY``. Only hashes of keys are stored.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from fastapi import Depends, Request, Security
from fastapi.security import APIKeyHeader, HTTPBearer
from fastapi.security.http import HTTPAuthorizationCredentials

from app.api.problems import HttpError
from app.server.address import is_loopback
from kb.errors import InputError, NotFoundError, SettingsError, StoreError
from kb.files.atomic import write_file
from kb.files.state_folder import make_state_folder
from kb.retry_after import retry_after_header
from kb.settings import Settings

Role = Literal["read", "write", "admin"]
ROLES: tuple[Role, ...] = ("read", "write", "admin")  # each may do what those before it may
KEYS_FORMAT = 1
PREFIX = "tkb_"  # lets secret scanners and the log redaction recognise a key
KEY_BYTES = 24  # of randomness: 192 bits
DEFAULT_PER_MINUTE = 600  # ten a second: a person or a hook never gets there, a loop does
BURST_S = 10  # a quiet key may send this many seconds' worth at once
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
    return settings.home / "keys.json"


def read_keys(path: Path) -> tuple[Key, ...]:
    """The stored keys, none where there is no file.

    Raises:
        StoreError: the file cannot be read or is of another format.
    """
    try:
        content = msgspec.json.decode(path.read_bytes(), type=KeyFile)
        if content.format != KEYS_FORMAT:
            raise ValueError(f"has format {content.format}, this program reads {KEYS_FORMAT}")
    except FileNotFoundError:
        return ()
    except (OSError, ValueError) as error:  # msgspec's errors are ValueErrors
        raise StoreError(
            f"{path}: {error}",
            todo=f"remove the file and make new keys: {ADD}",
            reason="keys_unreadable",
            values={"path": str(path), "why": str(error), "add": ADD},
        ) from error
    return content.keys


def _write_keys(path: Path, keys: Sequence[Key]) -> None:
    try:
        make_state_folder(path.parent)
        write_file(path, msgspec.json.encode(KeyFile(keys=tuple(keys))), mode=0o600)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror}", todo="check the folder's rights") from error


def add_key(path: Path, name: str, role: Role, per_minute: int = DEFAULT_PER_MINUTE) -> str:
    """Store a new key and give its text, which is shown this once.

    Raises:
        InputError: there is a key of that name.
    """
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


def remove_key(path: Path, name: str) -> None:
    """Forget a key; running servers refuse it from the next request on.

    Raises:
        NotFoundError: there is no key of that name.
    """
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
    """
    if is_loopback(settings.host) or read_keys(keys_path(settings)):
        return
    raise SettingsError(
        f"host {settings.host} would let everyone in: there are no keys",
        todo=f"make one ({ADD}), or serve this machine only (127.0.0.1)",
        reason="exposed",
        values={"host": settings.host, "add": ADD},
    )


def no_keys_notice(settings: Settings) -> str:
    """What to say at the start where everyone on this machine gets in; empty where keys are."""
    if read_keys(keys_path(settings)):
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

    Where there are none everyone gets in, unless `shut`: towards other machines it always is, and
    once there were keys it stays so when the last one is removed. Each of several
    `workers` counts what it gets itself, so each lets its share of a key's limit through.
    """

    path: Path
    shut: bool = False
    workers: int = 1
    clock: Callable[[], float] = time.monotonic
    _keys: dict[str, Key] = field(default_factory=dict)
    _stamp: tuple[int, int] | None = None
    _buckets: dict[str, _Bucket] = field(default_factory=dict)

    def check(self, text: str, role: Role) -> str:
        """Let a request pass, or not.

        Returns:
            The name of its key; empty where there are no keys.

        Raises:
            HttpError: 401 no or a wrong key, 403 not allowed, 429 too many.
        """
        self._refresh()
        if not self._keys and not self.shut:
            return ""
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

    def _refresh(self) -> None:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            # A removed file opens nothing: keys that were in force stay so.
            return
        stamp = (status.st_mtime_ns, status.st_ino)
        if stamp != self._stamp:
            self._keys = {key.digest: key for key in read_keys(self.path)}
            self._stamp = stamp
            self.shut = self.shut or bool(self._keys)

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
        request.state.key_name = guard.check(bearer.credentials if bearer else header or "", role)

    return check


def key_name(request: Request) -> str:
    """The name of the key a request came with; empty where the server has no keys."""
    return str(getattr(request.state, "key_name", ""))


read_access = Depends(needs("read"))
write_access = Depends(needs("write"))
admin_access = Depends(needs("admin"))
