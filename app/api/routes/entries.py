"""Writing: add, resolve and delete entries; give and read feedback."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import msgspec
from fastapi import APIRouter, Query, Request, Response

from app.api.auth import admin_access, key_name, read_access, write_access
from app.api.context import ApiContext, Lang, context_of, known_parameters
from app.api.problems import words_of
from app.api.requests import (
    FILE_SCHEMA,
    FORM,
    JSON,
    body_forms,
    body_of,
    media_type,
    read_form,
    read_json,
    unsupported,
    uploaded_files,
)
from app.api.responses import json_response, next_page, tagged
from app.api.routes.lookup import Limit, Offset
from app.api.schemas import (
    AddedEntries,
    EditRequest,
    EntryDetail,
    FeedbackPage,
    FeedbackRequest,
    MergeRequest,
    NewEntry,
    ResolveRequest,
    added_entries,
    entry_detail,
)
from app.inputs.contributions import (
    Changes,
    Feedback,
    Resolution,
    StoredFeedback,
    add_feedback,
    add_files,
    add_text,
    change_feedback,
    delete,
    delete_feedback,
    edit,
    merge,
    read_feedback,
    resolve,
    restore,
)
from app.inputs.uploads import upload_folder
from app.render.incident_markdown import render_incidents
from kb.errors import InputError
from kb.knowledge.labels import Words

if TYPE_CHECKING:
    from ingest.types import ImportReport

router = APIRouter(tags=["writing"])

ForGood = Annotated[bool, Query(description="Whether it cannot be restored.")]

_FORM = {
    "type": "object",
    "required": ["file"],
    "additionalProperties": False,
    "properties": {"file": {"type": "array", "minItems": 1, "items": FILE_SCHEMA}},
}
_BODIES = {JSON: {"$ref": "#/components/schemas/NewEntry"}, FORM: _FORM}


@router.post(
    "/v1/entries",
    summary="Add logs or write-ups",
    status_code=201,
    response_model=AddedEntries,
    openapi_extra=body_forms(_BODIES),
    dependencies=[write_access, known_parameters],
)
async def add(request: Request) -> Response:
    """Add a log, a write-up or a thread: redacted, tagged, and searchable on return."""
    context = context_of(request)
    media = media_type(request)
    if media == JSON:
        body = await read_json(request, NewEntry, limit=context.settings.max_body)
        report = await context.run(
            lambda: add_text(context.service, body.text, name=body.name), write=True
        )
    elif media == FORM:
        report = await _add_form(request, context)
    else:
        raise unsupported(media, tuple(_BODIES))
    single = len(report.entries) == 1
    headers = {"Location": f"/v1/entries/{report.entries[0]}"} if single else None
    return json_response(added_entries(report, words_of(request)), status=201, headers=headers)


async def _add_form(request: Request, context: ApiContext) -> ImportReport:
    async with read_form(request, limit=context.settings.max_body) as fields:
        uploads = uploaded_files(fields, "file")
        if not uploads or set(fields) != {"file"}:
            raise InputError(
                "the form holds no 'file'",
                todo="send the files as context 'file'",
                reason="no_file_field",
            )

        def work() -> ImportReport:
            with upload_folder() as folder:
                for name, content in uploads:
                    folder.add(name, content)
                return add_files(context.service, folder.paths)

        return await context.run(work, write=True)


@router.post(
    "/v1/entries/{identifier}/resolve",
    summary="Say how an incident ended",
    response_model=EntryDetail,
    openapi_extra=body_of("ResolveRequest"),
    dependencies=[write_access, known_parameters],
)
async def resolve_entry(request: Request, identifier: str) -> Response:
    """Write down the cause and the fix; the entry counts as confirmed from now on."""
    context = context_of(request)
    body = await read_json(request, ResolveRequest, limit=context.settings.max_body)
    resolution, by = Resolution(**msgspec.structs.asdict(body)), key_name(request)
    entry = await context.run(
        lambda: resolve(context.service, identifier, resolution, by=by), write=True
    )
    return json_response(entry_detail(entry))


@router.patch(
    "/v1/entries/{identifier}",
    summary="Change an entry",
    response_model=EntryDetail,
    openapi_extra=body_of("EditRequest"),
    dependencies=[write_access, known_parameters],
)
async def edit_entry(request: Request, identifier: str) -> Response:
    """Change title, labels, cause or fix of an imported entry; who and when are noted."""
    context = context_of(request)
    body = await read_json(request, EditRequest, limit=context.settings.max_body)
    changes, by = Changes(**msgspec.structs.asdict(body)), key_name(request)
    entry = await context.run(lambda: edit(context.service, identifier, changes, by=by), write=True)
    return json_response(entry_detail(entry))


@router.post(
    "/v1/entries/{identifier}/merge",
    summary="Merge incidents that were the same",
    response_model=EntryDetail,
    openapi_extra=body_of("MergeRequest"),
    dependencies=[write_access, known_parameters],
)
async def merge_entries(request: Request, identifier: str) -> Response:
    """Merge others into this incident; their ids lead to it from now on."""
    context = context_of(request)
    body = await read_json(request, MergeRequest, limit=context.settings.max_body)
    entry = await context.run(lambda: merge(context.service, identifier, body.ids), write=True)
    return json_response(entry_detail(entry))


@router.get(
    "/v1/entries/{identifier}/export",
    summary="An entry as Markdown",
    response_class=Response,
    dependencies=[read_access, known_parameters],
)
async def export_entry(request: Request, identifier: str, lang: Lang = None) -> Response:
    """The entry with its outcome and its log, for a wiki page or a review."""
    context = context_of(request)
    entry = await context.run(lambda: context.service.entry(identifier))
    words = Words(context.service.knowledge.labels, context.language(request, lang) or "en")
    text = render_incidents([entry], words)
    return Response(text.encode(), media_type="text/markdown; charset=utf-8")


@router.delete(
    "/v1/entries/{identifier}",
    summary="Delete an entry",
    status_code=204,
    response_class=Response,
    dependencies=[admin_access, known_parameters],
)
async def delete_entry(request: Request, identifier: str, for_good: ForGood = False) -> Response:
    """Delete an imported entry; reviewed cases cannot be deleted here.

    For 30 days ``POST /v1/entries/{identifier}/restore`` brings it back, unless it is deleted with
    `for_good=true`, at once or later.
    """
    context = context_of(request)
    await context.run(lambda: delete(context.service, identifier, for_good=for_good), write=True)
    if for_good:
        return Response(status_code=204)
    path = f"/v1/entries/{quote(identifier, safe='')}/restore"
    return Response(status_code=204, headers={"Link": f'<{path}>; rel="restore"'})


@router.post(
    "/v1/entries/{identifier}/restore",
    summary="Restore a deleted entry",
    response_model=EntryDetail,
    dependencies=[admin_access, known_parameters],
)
async def restore_entry(request: Request, identifier: str) -> Response:
    """Bring an entry back as it was before it was deleted, in the last 30 days."""
    context = context_of(request)
    entry = await context.run(lambda: restore(context.service, identifier), write=True)
    return json_response(entry_detail(entry))


@router.post(
    "/v1/feedback",
    summary="Was the answer right?",
    status_code=201,
    response_model=StoredFeedback,
    openapi_extra=body_of("FeedbackRequest"),
    dependencies=[write_access, known_parameters],
)
async def give_feedback(request: Request) -> Response:
    """Keep what a person says of an answer; it is on the disk on return.

    Of what one key says of the same diagnosis or entry the last word counts, once.
    """
    context = context_of(request)
    feedback, name = await _feedback(request), key_name(request)
    about = feedback.diagnosis or feedback.entry
    by = f"api:{name}:{about}" if name and about else ""
    stored = await context.run(
        lambda: add_feedback(context.service, feedback, source="api", by=by), write=True
    )
    return json_response(stored, status=201)


async def _feedback(request: Request) -> Feedback:
    limit = context_of(request).settings.max_body
    body = await read_json(request, FeedbackRequest, limit=limit)
    return Feedback(**msgspec.structs.asdict(body))


@router.put(
    "/v1/feedback/{identifier}",
    summary="Change feedback",
    response_model=StoredFeedback,
    openapi_extra=body_of("FeedbackRequest"),
    dependencies=[write_access, known_parameters],
)
async def put_feedback(request: Request, identifier: str) -> Response:
    """Replace the feedback of that id, which the answer to ``POST /v1/feedback`` gave."""
    context = context_of(request)
    feedback = await _feedback(request)
    stored = await context.run(
        lambda: change_feedback(context.service, identifier, feedback), write=True
    )
    return json_response(stored)


@router.delete(
    "/v1/feedback/{identifier}",
    summary="Take feedback back",
    status_code=204,
    response_class=Response,
    dependencies=[write_access, known_parameters],
)
async def take_back_feedback(request: Request, identifier: str) -> Response:
    """Delete the feedback of that id: it counts nowhere from now on."""
    context = context_of(request)
    await context.run(lambda: delete_feedback(context.service, identifier), write=True)
    return Response(status_code=204)


@router.get(
    "/v1/feedback",
    summary="Feedback so far",
    response_model=FeedbackPage,
    dependencies=[admin_access, known_parameters],
)
async def all_feedback(request: Request, limit: Limit = 50, offset: Offset = 0) -> Response:
    """Feedback, oldest first; the header Link leads to the next page."""
    context = context_of(request)
    stored = await context.run(lambda: read_feedback(context.service), write=True)
    following = offset + limit if len(stored) > offset + limit else None
    page = FeedbackPage(items=stored[offset : offset + limit], offset=offset, next_offset=following)
    return tagged(request, json_response(page, headers=next_page(request, following)))
