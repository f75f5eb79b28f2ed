"""``/v1/search``, ``/v1/cases``, ``/v1/entries`` (reading), causes, notes and ``/v1/lint``."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic import Field

from app.api.context import ApiContext, Lang, context_of
from app.api.requests import body_of, read_json
from app.api.responses import json_response, next_page, tagged
from app.api.schemas import (
    MAX_LIMIT,
    MAX_QUERY,
    EntryDetail,
    EntryPage,
    LintRequest,
    NoteSummary,
    SearchRequest,
    entry_detail,
    entry_summary,
    note_summary,
)
from kb.errors import NotFoundError
from kb.knowledge.facets import FACETS, filters_of
from kb.types.answer import SettingWarning
from kb.types.entries import Filters, SearchResult
from kb.types.knowledge import Cause, Note
from kb.types.vocabulary import Language

LINT_BYTES = 512 * 1024  # a launch script has kilobytes; so much takes half a second
SHORT_TEXT = 64 * 1024  # characters checked in turn; longer ones beside, not to hold others up
MAX_OFFSET = 10_000_000  # far above the entries one machine holds
DATE = r"^([0-9]{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?)?)?$"

router = APIRouter(tags=["knowledge"])

Name = Annotated[str, Field(max_length=200)]
Names = Annotated[list[Name], Query(default_factory=list, description="May be given repeatedly.")]
Date = Annotated[str, Query(pattern=DATE, description="Date, such as 2024-06-18.")]
Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT)]
Offset = Annotated[int, Query(ge=0, le=MAX_OFFSET)]


def _filters(exclude: Names, since: Date = "", until: Date = "", **requested: list[str]) -> Filters:
    return filters_of(requested, since=since, until=until, exclude=exclude)


# FastAPI reads the parameters of a query from the signature: one a facet, and the others
_filters.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        *(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=Names)
            for name in FACETS
        ),
        *(
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in inspect.signature(_filters, eval_str=True).parameters.values()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ),
    ]
)
FilterQuery = Annotated[Filters, Depends(_filters)]


async def _search(
    context: ApiContext, wanted: SearchRequest, language: Language | None
) -> Response:
    result = await context.run(
        lambda: context.service.search(
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
    context = context_of(request)
    wanted = SearchRequest(query=q, filters=filters, limit=limit)
    return await _search(context, wanted, context.language(request, lang))


@router.post(
    "/v1/search",
    summary="Search with a long query",
    response_model=SearchResult,
    openapi_extra=body_of("SearchRequest"),
    operation_id="post_search",
)
async def post_search(request: Request, lang: Lang = None) -> Response:
    """The same as GET, for queries and filters too long for an address."""
    context = context_of(request)
    wanted = await read_json(request, SearchRequest, limit=context.settings.max_body)
    return await _search(context, wanted, wanted.lang or context.language(request, lang))


async def _page(request: Request, filters: Filters, limit: int, offset: int) -> Response:
    """One page; an entry more than asked for is read to know whether there is a next one."""
    context = context_of(request)
    listed = await context.run(
        lambda: context.service.entries(filters=filters, limit=limit + 1, offset=offset)
    )
    following = offset + limit if len(listed) > limit else None
    items = tuple(entry_summary(entry) for entry in listed[:limit])
    page = EntryPage(items=items, offset=offset, next_offset=following)
    return tagged(request, json_response(page, headers=next_page(request, following)))


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
    only_cases = replace(filters, kinds=("case",))
    return await _page(request, only_cases, limit, offset)


async def _entry(request: Request, identifier: str, *, kinds: tuple[str, ...] = ()) -> Response:
    context = context_of(request)
    entry = await context.run(lambda: context.service.entry(identifier))
    if kinds and entry.kind not in kinds:
        raise NotFoundError(
            f"{identifier!r} is a {entry.kind}, not a case",
            todo=f"see /v1/entries/{identifier}",
            reason="not_a_case",
            values={"id": identifier},
        )
    return tagged(request, json_response(entry_detail(entry)))


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
    return tagged(request, json_response(context_of(request).service.knowledge.causes))


@router.get("/v1/causes/{identifier}", summary="One root cause", response_model=Cause)
async def cause(request: Request, identifier: str) -> Response:
    """One root cause by its id."""
    knowledge = context_of(request).service.knowledge
    if identifier not in knowledge.cause_by_id:
        raise NotFoundError(
            f"no cause is called {identifier!r}",
            todo="see /v1/causes",
            reason="no_cause",
            values={"id": identifier},
        )
    return tagged(request, json_response(knowledge.cause_by_id[identifier]))


@router.get("/v1/notes", summary="All notes", response_model=tuple[NoteSummary, ...])
async def notes(request: Request) -> Response:
    """Short answers to what people ask around a hang; /v1/search finds those of a question."""
    knowledge = context_of(request).service.knowledge
    return tagged(request, json_response([note_summary(note) for note in knowledge.notes]))


@router.get("/v1/notes/{identifier}", summary="One note", response_model=Note)
async def note(request: Request, identifier: str) -> Response:
    """All of a note, in both languages; its body is Markdown."""
    return tagged(request, json_response(context_of(request).service.note(identifier)))


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
    context = context_of(request)
    body = await read_json(request, LintRequest, limit=LINT_BYTES, too_large="settings_too_large")
    language = body.lang or context.language(request, lang)
    warnings = await context.run(
        lambda: context.service.lint(body.text, language=language, torch=body.torch),
        long=len(body.text) > SHORT_TEXT,
    )
    return json_response(warnings)
