"""Writing: add, resolve and delete entries; give and read feedback."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response

from app.api.access import admin_access, write_access
from app.api.bodies import media_type, read_form, read_json, unsupported
from app.api.lookup import Limit, Offset
from app.api.negotiate import JSON
from app.api.parts import (
    Parts,
    has_version,
    json_response,
    known_parameters,
    next_page,
    parts_of,
)
from app.api.problems import words_of
from app.api.uploads import FILE_SCHEMA, uploaded_files
from app.contribute import (
    Feedback,
    Resolution,
    StoredFeedback,
    add_feedback,
    add_files,
    add_text,
    delete,
    read_feedback,
    resolve,
)
from app.failure import why_refused
from app.received import save
from app.schemas import (
    AddedEntries,
    EntryDetail,
    FeedbackPage,
    FeedbackRequest,
    NewEntry,
    RefusedFile,
    ResolveRequest,
    entry_detail,
)
from kb.errors import InputError

if TYPE_CHECKING:
    from app.labels import Words
    from ingest.types import Report

router = APIRouter(tags=["writing"])

_FORM = {
    "type": "object",
    "required": ["file"],
    "additionalProperties": False,
    "properties": {"file": {"type": "array", "minItems": 1, "items": FILE_SCHEMA}},
}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            JSON: {"schema": {"$ref": "#/components/schemas/NewEntry"}},
            "multipart/form-data": {"schema": _FORM},
        },
    }
}


def _json_body(name: str) -> dict[str, object]:
    schema = {"$ref": f"#/components/schemas/{name}"}
    return {"requestBody": {"required": True, "content": {JSON: {"schema": schema}}}}


@router.post(
    "/v1/entries",
    summary="Add logs or write-ups",
    status_code=201,
    response_model=AddedEntries,
    openapi_extra=_BODY,
    dependencies=[write_access, known_parameters],
)
async def add(request: Request) -> Response:
    """Add a log, a write-up or a thread: redacted, tagged, and searchable on return."""
    parts = parts_of(request)
    media = media_type(request)
    if media == JSON:
        body = await read_json(request, NewEntry, limit=parts.settings.max_body)
        report = await parts.run(
            lambda: add_text(parts.service, body.text, name=body.name), long=True
        )
    elif media == "multipart/form-data":
        report = await _add_form(request, parts)
    else:
        raise unsupported(media, (JSON, "multipart/form-data"))
    response = json_response(_added(report, words_of(request)))
    response.status_code = 201
    if len(report.entries) == 1:
        response.headers["Location"] = f"/v1/entries/{report.entries[0]}"
    return response


async def _add_form(request: Request, parts: Parts) -> Report:
    async with read_form(request, limit=parts.settings.max_body) as fields:
        uploads = uploaded_files(fields, "file")
        if not uploads or set(fields) != {"file"}:
            raise InputError(
                "the form holds no 'file'",
                todo="send the files as parts 'file'",
                reason="no_file_field",
            )

        def work() -> Report:
            with tempfile.TemporaryDirectory(prefix="timeout-kb-") as folder:
                return add_files(parts.service, save(uploads, Path(folder), []))

        return await parts.run(work, long=True)


def _added(report: Report, words: Words) -> AddedEntries:
    return AddedEntries(
        added=report.added,
        updated=report.updated,
        unchanged=report.unchanged,
        ids=tuple(report.entries),
        refused=tuple(
            RefusedFile(
                name=Path(item.path).name,
                reason=why_refused(item.reason, words, code=item.code, values=item.values),
            )
            for item in report.refused
        ),
        near_duplicates=tuple(report.near_duplicates),
    )


@router.post(
    "/v1/entries/{identifier}/resolve",
    summary="Say how an incident ended",
    response_model=EntryDetail,
    openapi_extra=_json_body("ResolveRequest"),
    dependencies=[write_access, known_parameters],
)
async def resolve_entry(request: Request, identifier: str) -> Response:
    """Write down the cause and the fix; the entry counts as confirmed from now on."""
    parts = parts_of(request)
    body = await read_json(request, ResolveRequest, limit=parts.settings.max_body)
    resolution = Resolution(cause=body.cause, fix=body.fix, commands=body.commands, url=body.url)
    entry = await parts.run(lambda: resolve(parts.service, identifier, resolution), long=True)
    return json_response(entry_detail(entry))


@router.delete(
    "/v1/entries/{identifier}",
    summary="Delete an entry",
    status_code=204,
    response_class=Response,
    dependencies=[admin_access, known_parameters],
)
async def delete_entry(request: Request, identifier: str) -> Response:
    """Delete an imported entry; reviewed cases cannot be deleted here."""
    parts = parts_of(request)
    await parts.run(lambda: delete(parts.service, identifier), long=True)
    return Response(status_code=204)


@router.post(
    "/v1/feedback",
    summary="Was the answer right?",
    status_code=201,
    response_model=StoredFeedback,
    openapi_extra=_json_body("FeedbackRequest"),
    dependencies=[write_access, known_parameters],
)
async def give_feedback(request: Request) -> Response:
    """Keep what a person says of an answer; it is on the disk on return."""
    parts = parts_of(request)
    body = await read_json(request, FeedbackRequest, limit=parts.settings.max_body)
    feedback = Feedback(
        verdict=body.verdict,
        cause=body.cause,
        actual=body.actual,
        comment=body.comment,
        entry=body.entry,
        diagnosis=body.diagnosis,
    )
    stored = await parts.run(lambda: add_feedback(parts.service, feedback, source="api"), long=True)
    response = json_response(stored)
    response.status_code = 201
    return response


@router.get(
    "/v1/feedback",
    summary="Feedback so far",
    response_model=FeedbackPage,
    dependencies=[admin_access, known_parameters],
)
async def all_feedback(request: Request, limit: Limit = 50, offset: Offset = 0) -> Response:
    """Feedback, oldest first; the header Link leads to the next page."""
    parts = parts_of(request)
    stored = await parts.run(lambda: read_feedback(parts.service), long=True)
    # None is ever changed: what was said last tells the version.
    etag = f'"{len(stored)}-{stored[-1].id if stored else ""}"'
    headers = {"ETag": etag, "Cache-Control": "no-cache"}
    if has_version(request, etag):
        return Response(status_code=304, headers=headers)
    following = offset + limit if len(stored) > offset + limit else None
    page = FeedbackPage(items=stored[offset : offset + limit], offset=offset, next_offset=following)
    return json_response(page, headers=headers | next_page(request, following))
