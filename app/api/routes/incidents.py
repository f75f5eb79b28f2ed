"""``/v1/incidents``: the team's incidents by cause, place and tag, and the board over them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from app.api.context import context_of
from app.api.responses import json_response, next_page, tagged
from app.api.routes.lookup import Date, Limit, Names, Offset
from app.api.schemas import IncidentPage
from kb.incidents.board import Board, board_of
from kb.incidents.records import IncidentFilters, IncidentRecord, selected

router = APIRouter(tags=["incidents"])

MAX_RANK = 10_000_000  # far above the ranks of any job
Rank = Annotated[int, Query(ge=0, le=MAX_RANK)]


def _filters(
    cause: Names,
    host: Names,
    gpu: Names,
    project: Names,
    label: Names,
    rank: Annotated[list[Rank], Query(default_factory=list, description="Of a culprit.")],
    resolved: Annotated[bool | None, Query(description="Default: open and resolved ones.")] = None,
    since: Date = "",
    until: Date = "",
) -> IncidentFilters:
    return IncidentFilters(
        cause=tuple(cause),
        host=tuple(host),
        gpu=tuple(gpu),
        rank=tuple(map(str, rank)),
        project=tuple(project),
        label=tuple(label),
        resolved=resolved,
        since=since,
        until=until,
    )


FilterQuery = Annotated[IncidentFilters, Depends(_filters)]


async def _selected(request: Request, filters: IncidentFilters) -> tuple[IncidentRecord, ...]:
    context = context_of(request)
    return await context.run(lambda: selected(context.service.incidents(), filters))


@router.get("/v1/incidents", summary="List incidents", response_model=IncidentPage)
async def incidents(
    request: Request, filters: FilterQuery, limit: Limit = 50, offset: Offset = 0
) -> Response:
    """Incidents that pass the filters, the latest first; the header Link leads to the next page.

    A filter given repeatedly takes any of its values; one that no incident has is refused. A GPU is
    asked for by its number on the host or by its PCI bus id.
    """
    found = await _selected(request, filters)
    following = offset + limit if len(found) > offset + limit else None
    page = IncidentPage(
        items=found[offset : offset + limit],
        total=len(found),
        offset=offset,
        next_offset=following,
    )
    return tagged(request, json_response(page, headers=next_page(request, following)))


@router.get("/v1/incidents/board", summary="The incident board", response_model=Board)
async def incident_board(request: Request, filters: FilterQuery) -> Response:
    """Incidents by week, cause, host, GPU, rank, project and tag; what recurs and what fixed it."""
    return tagged(request, json_response(board_of(await _selected(request, filters))))
