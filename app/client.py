"""A typed client of the HTTP API: the values of `kb.types` back, errors with the next step.

    from app.client import Client

    with Client("http://127.0.0.1:8000") as client:
        print(client.diagnose(Path("train.log")).summary)

Needs httpx: ``pip install 'timeout-kb[client]'``. Files are sent in constant memory. A server that
is busy (429, 503) is asked again as its Retry-After says. Every method raises `KBError`:
`InputError` and `NotFoundError` as the server means them, `ApiError` for the rest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import msgspec

from app.api.schemas import (
    AddedEntries,
    EntryDetail,
    EntryPage,
    EntrySummary,
    NoteSummary,
    Problem,
)
from app.client_http import ApiError, Exchange, opened, problem_error, shown
from app.inputs.feedback import Feedback, StoredFeedback
from kb.chat.types import Change, Question, Reply, Statement
from kb.errors import InputError
from kb.knowledge.facets import PARAMETERS
from kb.types.answer import Diagnosis, SettingWarning
from kb.types.entries import NO_FILTERS, Filters, SearchResult
from kb.types.knowledge import Cause, Note
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    import httpx

    from app.inputs.contributions import Resolution

__all__ = ["ApiError", "ChatEvent", "Client", "SavedAnswer"]

TIMEOUT_S = 120.0  # without a byte from the server; it reads a gigabyte in seconds
PAGE = 100  # entries a request of a listing
JSON_BODY = {"Content-Type": "application/json"}
RAW_BODY = {"Content-Type": "application/octet-stream"}
# What the events of a chat reply carry; those of other names are passed over.
CHAT_EVENTS: dict[str, Any] = {
    "conversation": dict[str, str],
    "statement": Statement,
    "question": Question,
    "changes": tuple[Change, ...],
    "diagnosis": Diagnosis,
    "error": Problem,
    "done": Reply,
}

Source = str | Path | Iterable[bytes]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedAnswer:
    """A diagnosis the server saved: its id, and its page where the server knows the address."""

    diagnosis: Diagnosis
    id: str
    page: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatEvent:
    """A piece of a chat reply; `value` is of the type `CHAT_EVENTS` has for its name."""

    name: str
    value: Any


class Client:
    """A connection to a server: a context manager, for one thread at a time."""

    def __init__(
        self,
        base_url: str,
        key: str | None = None,
        *,
        timeout_s: float = TIMEOUT_S,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Talk to the server at `base_url`, with an API key where it wants one.

        Raises:
            MissingExtraError: httpx is not installed.
            InputError: `base_url` is no http address.
        """
        self._exchange = Exchange(base_url, key, timeout_s=timeout_s, sleep=sleep)

    def __enter__(self) -> Client:
        """The client itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._exchange.close()

    # --- diagnosis -----------------------------------------------------------------------------

    def diagnose(
        self,
        source: Source,
        *,
        dumps: Sequence[Path] = (),
        language: Language | None = None,
        top: int | None = None,
        torch: str | None = None,
    ) -> Diagnosis:
        """Diagnose a text, a file, or bytes that arrive in pieces and are sent as they come.

        `dumps` are flight-recorder files to go with a text or a file.
        """
        options = {"lang": language, "top": top, "torch": torch}
        return _decode(self._diagnose(source, dumps, options), Diagnosis)

    def keep(
        self,
        source: Source,
        *,
        dumps: Sequence[Path] = (),
        language: Language | None = None,
        top: int | None = None,
        torch: str | None = None,
    ) -> SavedAnswer:
        """Like `diagnose`, and the server saves the answer under a link."""
        options = {"lang": language, "top": top, "torch": torch, "keep": "true"}
        response = self._diagnose(source, dumps, options)
        return SavedAnswer(
            diagnosis=_decode(response, Diagnosis),
            id=response.headers.get("location", "").rpartition("/")[2],
            page=response.links.get("alternate", {}).get("url", ""),
        )

    def saved(self, identifier: str, *, language: Language | None = None) -> Diagnosis:
        """A saved diagnosis."""
        return self._get(f"/v1/diagnoses/{quote(identifier, safe='')}", Diagnosis, lang=language)

    def _diagnose(
        self, source: Source, dumps: Sequence[Path], options: Mapping[str, object]
    ) -> httpx.Response:
        params = _without_none(options)
        if dumps:
            return self._send_form(source, dumps, params)
        send = self._exchange.request
        if isinstance(source, str):
            content = msgspec.json.encode({"text": source})
            return send("POST", "/v1/diagnose", params=params, content=content, headers=JSON_BODY)
        if not isinstance(source, Path):
            # What was sent of a stream cannot be sent again.
            return send(
                "PUT", "/v1/diagnose", once=True, params=params, content=source, headers=RAW_BODY
            )
        with opened([source]) as (file,):

            def body() -> dict[str, Any]:
                file.seek(0)
                return {"content": file}

            return send("PUT", "/v1/diagnose", body=body, params=params, headers=RAW_BODY)

    def _send_form(
        self, source: Source, dumps: Sequence[Path], params: Mapping[str, object]
    ) -> httpx.Response:
        if not isinstance(source, str | Path):
            raise InputError(
                "a stream cannot go together with dumps", todo="give the log as a file"
            )
        logs = [source] if isinstance(source, Path) else []
        data = {"text": source} if isinstance(source, str) and source.strip() else {}
        names = ["file"] * len(logs) + ["dump"] * len(dumps)
        return self._upload("/v1/diagnose", names, [*logs, *dumps], data=data, params=params)

    def _upload(
        self,
        path: str,
        names: Sequence[str],
        paths: Sequence[Path],
        **options: Any,  # noqa: ANN401 - passed on to httpx
    ) -> httpx.Response:
        """Send files as the parts `names` of a form."""
        with opened(paths) as files:

            def body() -> dict[str, Any]:
                parts = []
                for name, place, file in zip(names, paths, files, strict=True):
                    file.seek(0)
                    parts.append((name, (place.name, file)))
                return {"files": parts}

            return self._exchange.request("POST", path, body=body, **options)

    # --- the knowledge base --------------------------------------------------------------------

    def search(
        self,
        query: str,
        *,
        filters: Filters = NO_FILTERS,
        limit: int = 10,
        language: Language | None = None,
    ) -> SearchResult:
        """Entries like `query`, best first."""
        return self._post(
            "/v1/search", SearchResult, query=query, filters=filters, limit=limit, lang=language
        )

    def case(self, identifier: str) -> EntryDetail:
        """A reviewed case."""
        return self._get(f"/v1/cases/{quote(identifier, safe='')}", EntryDetail)

    def entry(self, identifier: str) -> EntryDetail:
        """An entry of any kind."""
        return self._get(f"/v1/entries/{quote(identifier, safe='')}", EntryDetail)

    def cases(self, filters: Filters = NO_FILTERS) -> Iterator[EntrySummary]:
        """All reviewed cases that pass the filters, in the order of their ids."""
        return self._pages("/v1/cases", filters)

    def entries(self, filters: Filters = NO_FILTERS) -> Iterator[EntrySummary]:
        """All entries that pass the filters, in the order of their ids."""
        return self._pages("/v1/entries", filters)

    def _pages(self, path: str, filters: Filters) -> Iterator[EntrySummary]:
        """The items of a listing, page after page as they are asked for."""
        wanted = {
            PARAMETERS.get(name, name): value for name, value in asdict(filters).items() if value
        }
        offset: int | None = 0
        while offset is not None:
            page = self._get(path, EntryPage, **wanted, limit=PAGE, offset=offset)
            yield from page.items
            offset = page.next_offset

    def causes(self) -> tuple[Cause, ...]:
        """All root causes."""
        return self._get("/v1/causes", tuple[Cause, ...])

    def notes(self) -> tuple[NoteSummary, ...]:
        """All notes; `search` finds those that answer a question."""
        return self._get("/v1/notes", tuple[NoteSummary, ...])

    def note(self, identifier: str) -> Note:
        """A note with its body and sources."""
        return self._get(f"/v1/notes/{quote(identifier, safe='')}", Note)

    def lint(
        self, text: str, *, language: Language | None = None, torch: str | None = None
    ) -> tuple[SettingWarning, ...]:
        """What is wrong with the settings in `text`."""
        return self._post(
            "/v1/lint", tuple[SettingWarning, ...], text=text, lang=language, torch=torch
        )

    # --- writing -------------------------------------------------------------------------------

    def add(self, source: str | Sequence[Path], *, name: str = "pasted.txt") -> AddedEntries:
        """Add a text (`name` is a file name that tells its kind) or files."""
        if isinstance(source, str):
            return self._post("/v1/entries", AddedEntries, text=source, name=name)
        response = self._upload("/v1/entries", ["file"] * len(source), source)
        return _decode(response, AddedEntries)

    def resolve(self, identifier: str, resolution: Resolution) -> EntryDetail:
        """Write down how an incident ended."""
        path = f"/v1/entries/{quote(identifier, safe='')}/resolve"
        return self._post(path, EntryDetail, **asdict(resolution))

    def delete(self, identifier: str) -> None:
        """Delete an imported entry."""
        self._exchange.request("DELETE", f"/v1/entries/{quote(identifier, safe='')}")

    def restore(self, identifier: str) -> EntryDetail:
        """Bring a deleted entry back."""
        return self._post(f"/v1/entries/{quote(identifier, safe='')}/restore", EntryDetail)

    def feedback(self, feedback: Feedback) -> StoredFeedback:
        """Say whether an answer was right."""
        return self._post("/v1/feedback", StoredFeedback, **asdict(feedback))

    def change_feedback(self, identifier: str, feedback: Feedback) -> StoredFeedback:
        """Say something else in place of feedback; `identifier` is its id."""
        path = f"/v1/feedback/{quote(identifier, safe='')}"
        content = msgspec.json.encode(asdict(feedback))
        response = self._exchange.request("PUT", path, content=content, headers=JSON_BODY)
        return _decode(response, StoredFeedback)

    def delete_feedback(self, identifier: str) -> None:
        """Take feedback back."""
        self._exchange.request("DELETE", f"/v1/feedback/{quote(identifier, safe='')}")

    # --- chat ----------------------------------------------------------------------------------

    def chat(
        self,
        message: str,
        conversation: str = "",
        *,
        diagnosis: str = "",
        language: Language | None = None,
    ) -> Iterator[ChatEvent]:
        """Say something and read the reply as it comes; the event ``done`` has all of it.

        An empty `conversation` begins one, whose id the first event gives; `diagnosis` is the id
        of a saved diagnosis to talk about.
        """
        body = {
            "message": message,
            "conversation": conversation,
            "diagnosis": diagnosis,
            "lang": language,
        }
        for event in self._exchange.events("/v1/chat", msgspec.json.encode(_without_none(body))):
            kind = CHAT_EVENTS.get(event.event)
            if kind is not None:
                value = _decoded(event.data, kind, where="the server")
                if isinstance(value, Problem):
                    raise problem_error(value)
                yield ChatEvent(name=event.event, value=value)

    # --- the exchange --------------------------------------------------------------------------

    def _get(self, path: str, kind: type[T], **parameters: object) -> T:
        return _decode(self._exchange.request("GET", path, params=_without_none(parameters)), kind)

    def _post(self, path: str, kind: type[T], **fields: object) -> T:
        content = msgspec.json.encode(_without_none(fields))
        response = self._exchange.request("POST", path, content=content, headers=JSON_BODY)
        return _decode(response, kind)


def _without_none(values: Mapping[str, object]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _decode(response: httpx.Response, kind: type[T]) -> T:
    return _decoded(
        response.content, kind, where=shown(str(response.url)), status=response.status_code
    )


def _decoded(data: bytes | str, kind: type[T], *, where: str, status: int = 200) -> T:
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError as error:
        raise ApiError(
            f"{where} answered something else than expected: {error}",
            todo="check that server and client are of the same version",
            status=status,
        ) from error
