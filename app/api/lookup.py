"""``/v1/search``, ``/v1/cases``, ``/v1/entries`` (reading), ``/v1/causes`` and ``/v1/lint``."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import Field

from app.api.bodies import read_json
from app.api.negotiate import JSON
from app.api.parts import Lang, Parts, cached, has_version, json_response, next_page, parts_of
from app.schemas import (
    MAX_LIMIT,
    MAX_QUERY,
    EntryDetail,
    EntryPage,
    LintRequest,
    SearchRequest,
    entry_detail,
    entry_summary,
)
from kb.errors import NotFoundError
from kb.types import Cause, Filters, Language, SearchResult, SettingWarning

LINT_BYTES = 512 * 1024  # a launch script has kilobytes; so much takes half a second
SHORT_TEXT = 64 * 1024  # characters checked in turn; longer ones beside, not to hold others up
MAX_OFFSET = 10_000_000  # far above the entries one machine holds
STORE_DIGITS = 12  # of the store's identity in a tag
DATE = r"^([0-9]{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?)?)?$"

router = APIRouter(tags=["knowledge"])

Name = Annotated[str, Field(max_length=200)]
Names = Annotated[list[Name], Query(default_factory=list, description="May be given repeatedly.")]
Date = Annotated[str, Query(pattern=DATE, description="Date, such as 2024-06-18.")]
Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT)]
Offset = Annotated[int, Query(ge=0, le=MAX_OFFSET)]


def _filters(
    cause: Names,
    framework: Names,
    backend: Names,
    op: Names,
    stage: Names,
    kind: Names,
    status: Names,
    project: Names,
    hardware: Names,
    language: Names,
    exclude: Names,
    since: Date = "",
    until: Date = "",
) -> Filters:
    return Filters(
        causes=tuple(cause),
        frameworks=tuple(framework),
        backends=tuple(backend),
        ops=tuple(op),
        stages=tuple(stage),
        kinds=tuple(kind),
        statuses=tuple(status),
        projects=tuple(project),
        hardware=tuple(hardware),
        languages=tuple(language),
        exclude_ids=tuple(exclude),
        since=since,
        until=until,
    )


FilterQuery = Annotated[Filters, Depends(_filters)]


def body_of(name: str) -> dict[str, object]:
    """OpenAPI's description of a JSON body that is the schema called `name`."""
    schema = {"$ref": f"#/components/schemas/{name}"}
    return {"requestBody": {"required": True, "content": {JSON: {"schema": schema}}}}


async def _search(parts: Parts, wanted: SearchRequest, language: Language | None) -> Response:
    result = await parts.run(
        lambda: parts.service.search(
            wanted.query, filters=wanted.filters, limit=wanted.limit, language=language
        )
    )
    return json_response(result)


@router.get("/v1/search", summary="Search", response_model=SearchResult)
async def search(
    request: Request,
    filters: FilterQuery,
    q: Annotated[str, Query(min_length=1, max_length=MAX_QUERY, pattern=r"\S")],
    limit: Limit = 10,
    lang: Lang = None,
) -> Response:
    """Find the `limit` entries most like `q`: words, a question, or a line of a log."""
    parts = parts_of(request)
    wanted = SearchRequest(query=q, filters=filters, limit=limit)
    return await _search(parts, wanted, parts.language(request, lang))


@router.post(
    "/v1/search",
    summary="Search with a long query",
    response_model=SearchResult,
    openapi_extra=body_of("SearchRequest"),
    operation_id="post_search",
)
async def post_search(request: Request, lang: Lang = None) -> Response:
    """The same as GET, for queries and filters too long for an address."""
    parts = parts_of(request)
    wanted = await read_json(request, SearchRequest, limit=parts.settings.max_body)
    return await _search(parts, wanted, wanted.lang or parts.language(request, lang))


async def _page(request: Request, filters: Filters, limit: int, offset: int) -> Response:
    """One page; an entry more than asked for is read to know whether there is a next one.

    Its tag is the store's last change: who has the page of that state gets 304 without a read.
    """
    parts = parts_of(request)
    store = parts.service.store
    etag = f'"{store.id[:STORE_DIGITS]}-{store.last_seq()}"'
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    if has_version(request, etag):
        return Response(status_code=304, headers=headers)
    found = await parts.run(
        lambda: parts.service.entries(filters=filters, limit=limit + 1, offset=offset)
    )
    following = offset + limit if len(found) > limit else None
    headers |= next_page(request, following)
    items = tuple(entry_summary(entry) for entry in found[:limit])
    return json_response(
        EntryPage(items=items, offset=offset, next_offset=following), headers=headers
    )


@router.get("/v1/entries", summary="List entries", response_model=EntryPage)
async def entries(
    request: Request, filters: FilterQuery, limit: Limit = 50, offset: Offset = 0
) -> Response:
    """Entries of all kinds that pass the filters; the header Link leads to the next page."""
    return await _page(request, filters, limit, offset)


@router.get("/v1/cases", summary="List reviewed cases", response_model=EntryPage)
async def cases(
    request: Request, filters: FilterQuery, limit: Limit = 50, offset: Offset = 0
) -> Response:
    """Reviewed cases that pass the filters (`kind` is set to `case`), page by page."""
    import dataclasses

    only_cases = dataclasses.replace(filters, kinds=("case",))
    return await _page(request, only_cases, limit, offset)


async def _entry(request: Request, identifier: str, *, kinds: tuple[str, ...] = ()) -> Response:
    parts = parts_of(request)
    entry = await parts.run(lambda: parts.service.entry(identifier))
    if kinds and entry.kind not in kinds:
        raise NotFoundError(
            f"{identifier!r} is a {entry.kind}, not a case",
            todo=f"see /v1/entries/{identifier}",
            reason="not_a_case",
            values={"id": identifier},
        )
    return cached(request, lambda: entry_detail(entry), tag=entry.digest)


@router.get("/v1/entries/{identifier}", summary="One entry", response_model=EntryDetail)
async def entry(request: Request, identifier: str) -> Response:
    """All of an entry, in both languages where it has both."""
    return await _entry(request, identifier)


@router.get("/v1/cases/{identifier}", summary="One case", response_model=EntryDetail)
async def case(request: Request, identifier: str) -> Response:
    """All of a reviewed case, in both languages."""
    return await _entry(request, identifier, kinds=("case",))


@router.get("/v1/causes", summary="All root causes", response_model=tuple[Cause, ...])
async def causes(request: Request) -> Response:
    """The root causes answers name: how each shows, what confirms it, fixes, checks."""
    parts = parts_of(request)
    return cached(request, parts.service.causes, tag=parts.service.knowledge.digest)


@router.get("/v1/causes/{identifier}", summary="One root cause", response_model=Cause)
async def cause(request: Request, identifier: str) -> Response:
    """One root cause by its id."""
    knowledge = parts_of(request).service.knowledge
    found = knowledge.cause_by_id.get(identifier)
    if found is None:
        raise NotFoundError(
            f"no cause is called {identifier!r}",
            todo="see /v1/causes",
            reason="no_cause",
            values={"id": identifier},
        )
    return cached(request, lambda: found, tag=knowledge.digest)


@router.post(
    "/v1/lint",
    summary="Check settings",
    response_model=tuple[SettingWarning, ...],
    openapi_extra=body_of("LintRequest"),
)
async def lint(request: Request, lang: Lang = None) -> Response:
    """What is wrong with the settings in a script, a configuration or an environment.

    Of at most 512 KiB: it is no place for logs.
    """
    parts = parts_of(request)
    body = await read_json(
        request,
        LintRequest,
        limit=LINT_BYTES,
        too_large="settings_too_large",
    )
    language = body.lang or parts.language(request, lang)
    warnings = await parts.run(
        lambda: parts.service.lint(body.text, language=language, torch=body.torch),
        long=len(body.text) > SHORT_TEXT,
    )
    return json_response(warnings)
