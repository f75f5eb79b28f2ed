"""The way to a Qdrant server: its address, its client, and what its failures mean.

Neither the key nor the address stands in a message: the key is a secret, and messages are shown to
everybody who asks.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from kb.errors import MissingExtraError, SearchIndexError, SettingsError, UnreachableIndexError
from kb.text.redact import redact

try:
    from qdrant_client import QdrantClient
    from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
    from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse
except ImportError as import_error:
    raise MissingExtraError(
        f"an index on Qdrant needs a package that is not installed ({import_error.name})",
        todo="pip install 'timeout-kb[qdrant]'",
    ) from import_error

KEY = "TIMEOUT_KB_INDEX"
PORT = 6333
COLLECTION = "timeout_kb"
LIMIT_S = 10  # of a request that somebody waits for
WRITE_S = 120  # of one that writes or counts: a busy server must not end a build of hours
RETRY_S = 2.0  # a server that is gone is not asked again before, and keeps nobody waiting
SHOWN_CHARS = 200  # of what the server says
GONE = "start the Qdrant server or check TIMEOUT_KB_INDEX; all goes on by itself when it is back"
OWN_HOSTS = ("localhost", "127.0.0.1", "::1")
REFUSED = (401, 403)
NOT_FOUND = 404
TOO_MANY = 429
SERVER_ERROR = 500
_log = logging.getLogger(__name__)


class MissingCollectionError(SearchIndexError):
    """The collection is not there (any more)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QdrantAddress:
    """Where the collection is; `key` is a secret."""

    host: str
    port: int = PORT
    tls: bool = False
    collection: str = COLLECTION
    key: str = field(default="", repr=False)

    @property
    def name(self) -> str:
        """The address as people read it, without the key."""
        return f"qdrant{'s' * self.tls}://{self.host}:{self.port}/{self.collection}"


def read_address(text: str, key: str = "") -> QdrantAddress:
    """``qdrant://[KEY@]host[:port][/collection]``; ``qdrants://`` over TLS; `key` unless in it.

    Raises:
        SettingsError: it is none; the text is not repeated, for it may hold a key.
    """
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port or PORT
    except ValueError:
        host, port = "", PORT
    collection = parts.path.strip("/") if host else ""
    name = collection.replace("_", "").replace("-", "")
    wrong = parts.query or parts.fragment or (name and not name.isalnum()) if host else True
    if wrong or parts.scheme not in ("qdrant", "qdrants"):
        raise SettingsError(
            f"{KEY} is not the address of a Qdrant server",
            todo="write qdrant://host:6333/collection, or unset it",
            reason="setting_index",
            values={"key": KEY},
        )
    own = unquote(parts.password or parts.username or "")
    return QdrantAddress(
        host=host,
        port=port,
        tls=parts.scheme == "qdrants",
        collection=collection or COLLECTION,
        key=own or key,
    )


class QdrantConnection:
    """The client, asked through `asking`; safe to use from many threads.

    Attributes:
        collection: name of the alias that points to the collection in use.
        turns: grows whenever the server goes or comes back.
    """

    def __init__(self, address: QdrantAddress, client: Any = None) -> None:  # noqa: ANN401
        """Nothing is asked yet; `client` is another engine with the client's methods."""
        self.collection = address.collection
        self.turns = 0
        self._key = address.key
        self._engine = client
        self._clients: dict[int, Any] = {}  # by their limit, seconds
        self._address = address
        self._gone: tuple[float, str] | None = None  # until when it is not asked again, why

    @contextmanager
    def asking(self, limit_s: int | None = None) -> Iterator[Any]:
        """The client; what goes wrong with it is an expected failure.

        Args:
            limit_s: how long a request may take, by default `LIMIT_S`; one with a limit of its own
                is tried also just after another failed.

        Raises:
            UnreachableIndexError: the server cannot be reached or is overloaded.
            MissingCollectionError: a collection is not there.
            SearchIndexError: the server refuses the key or the request.
        """
        if limit_s is None and self._gone and time.monotonic() < self._gone[0]:
            raise _unreachable(self._gone[1])
        try:
            yield self._engine or self._opened(limit_s or LIMIT_S)
        except UnexpectedResponse as error:
            raise self._meaning(error) from error
        except (ResponseHandlingException, ResourceExhaustedResponse) as error:
            raise self._is_gone(str(getattr(error, "source", error))) from error
        except AssertionError as error:  # the client's, where an answer has no result
            raise self._is_gone("what answers is no Qdrant server") from error
        if self._gone:
            self._gone = None
            self.turns += 1
            _log.warning("index_server_back")

    def close(self) -> None:
        """Let go of the connections."""
        for client in filter(None, (self._engine, *self._clients.values())):
            client.close()

    def _opened(self, limit_s: int) -> Any:  # noqa: ANN401
        if limit_s not in self._clients:
            address = self._address
            if address.key and not address.tls and address.host not in OWN_HOSTS:
                _log.warning("index_key_in_clear: write qdrants:// to send it over TLS")
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Api key is used with an insecure connection")
                self._clients[limit_s] = QdrantClient(
                    host=address.host,
                    port=address.port,
                    https=address.tls,
                    api_key=address.key or None,
                    timeout=limit_s,
                    check_compatibility=False,  # asks at once, and warns where nobody answers
                )
        return self._clients[limit_s]

    def _meaning(self, error: UnexpectedResponse) -> SearchIndexError:
        status = error.status_code or SERVER_ERROR
        said = self._shown(error.content.decode("utf-8", "replace"))
        if status in REFUSED:
            return SearchIndexError(
                f"the Qdrant server refuses the key ({status})",
                todo="set TIMEOUT_KB_INDEX_KEY to a key that may read and write the collection",
            )
        if status == NOT_FOUND:
            return MissingCollectionError(
                "the Qdrant server has no such collection", todo="run `timeout-kb ingest --rebuild`"
            )
        if status >= SERVER_ERROR or status == TOO_MANY:
            return self._is_gone(f"{status} {said}")
        return SearchIndexError(
            f"the Qdrant server refuses a request ({status} {said})",
            todo="look into its log; it has to be version 1.16 or newer",
        )

    def _is_gone(self, why: str) -> UnreachableIndexError:
        why = self._shown(why)
        if self._gone is None:
            self.turns += 1
            _log.warning("index_server_gone: %s", why)
        self._gone = (time.monotonic() + RETRY_S, why)
        return _unreachable(why)

    def _shown(self, text: str) -> str:
        """What may be said of an answer of the server: short, in one line, without secrets."""
        if self._key:
            text = text.replace(self._key, "…")
        return redact(" ".join(text.split()))[0][:SHOWN_CHARS]


def _unreachable(why: str) -> UnreachableIndexError:
    return UnreachableIndexError(
        f"the Qdrant server with the search index cannot be reached ({why})",
        todo=GONE,
        reason="index_unreachable",
        values={"why": why},
    )
