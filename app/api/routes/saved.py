"""``/v1/diagnoses/{id}``: a saved diagnosis again, in either language and every form."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from app.api.auth import admin_access
from app.api.context import Lang, context_of
from app.api.requests import SHORT, answer_type
from app.api.responses import answer_response, tagged
from app.api.routes.diagnose import ANSWERS, Short
from kb.saved import delete_diagnosis, load_diagnosis
from kb.text.language import answer_language

router = APIRouter(tags=["diagnose"])


@router.get(
    "/v1/diagnoses/{identifier}",
    summary="A saved diagnosis",
    responses=ANSWERS,
    response_class=Response,
)
async def saved_diagnosis(
    request: Request, identifier: str, lang: Lang = None, short: Short = False
) -> Response:
    """The answer as it was when it was saved (``POST /v1/diagnose?keep=true``).

    As JSON, Markdown or text by ``Accept``, in the language asked for, else that of the log. It
    stays for `TIMEOUT_KB_KEPT_DAYS`.
    """
    context = context_of(request)
    form = SHORT if short else answer_type(request)
    requested = context.language(request, lang)
    saved = await context.run(lambda: load_diagnosis(context.service, identifier))
    response = answer_response(
        saved.answer(answer_language(requested, saved.language)), form, context
    )
    response.headers["Cache-Control"] = "private, no-cache"
    return tagged(request, response)


@router.delete(
    "/v1/diagnoses/{identifier}",
    summary="Delete a saved diagnosis",
    status_code=204,
    response_class=Response,
    dependencies=[admin_access],
)
async def delete(request: Request, identifier: str) -> Response:
    """Delete a saved diagnosis; its link leads nowhere from now on."""
    context = context_of(request)
    await context.run(lambda: delete_diagnosis(context.service, identifier))
    return Response(status_code=204)
