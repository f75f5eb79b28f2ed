"""``/v1/diagnoses/{id}``: a kept diagnosis again, in either language and every form."""

from __future__ import annotations

import hashlib

from fastapi import APIRouter, Request, Response

from app.api.access import admin_access
from app.api.answering import answer_response
from app.api.diagnose import ANSWERS
from app.api.negotiate import answer_type
from app.api.parts import Lang, has_version, parts_of
from kb.kept import drop, kept

TAG_DIGITS = 32

router = APIRouter(tags=["diagnose"])


@router.get(
    "/v1/diagnoses/{identifier}",
    summary="A kept diagnosis",
    responses=ANSWERS,
    response_class=Response,
)
async def kept_diagnosis(request: Request, identifier: str, lang: Lang = None) -> Response:
    """The answer as it was given when it was kept (``POST /v1/diagnose?keep=true``).

    As JSON, Markdown or text by ``Accept``, in the language asked for, else that of the log. It
    stays for `TIMEOUT_KB_KEPT_DAYS`.
    """
    parts = parts_of(request)
    form = answer_type(request.headers.get("accept", ""))
    asked = parts.language(request, lang)
    found = await parts.run(lambda: kept(parts.service, identifier))
    response = answer_response(found.answer(asked or found.language), form, parts)
    etag = f'"{hashlib.sha256(response.body).hexdigest()[:TAG_DIGITS]}"'
    response.headers["ETag"] = etag
    response.headers["Cache-Control"] = "private, no-cache"
    if has_version(request, etag):
        del response.headers["content-length"], response.headers["content-type"]
        return Response(status_code=304, headers=dict(response.headers))
    return response


@router.delete(
    "/v1/diagnoses/{identifier}",
    summary="Delete a kept diagnosis",
    status_code=204,
    response_class=Response,
    dependencies=[admin_access],
)
async def delete_diagnosis(request: Request, identifier: str) -> Response:
    """Delete a kept diagnosis; its link leads nowhere from now on."""
    parts = parts_of(request)
    await parts.run(lambda: drop(parts.service, identifier))
    return Response(status_code=204)
