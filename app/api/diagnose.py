"""``/v1/diagnose``: a log in any of four forms in, a Diagnosis as JSON, Markdown or text out."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from app.api.bodies import (
    declared_length,
    media_type,
    pieces,
    read_json,
    unsupported,
)
from app.api.lookup import body_of
from app.api.negotiate import JSON, MARKDOWN, TEXT, answer_type
from app.api.parts import Lang, Parts, json_response, parts_of
from app.api.problems import problem_of
from app.api.uploads import (
    FILE_SCHEMA,
    FORM_SCHEMA,
    SHORT_BYTES,
    TEXT_SCHEMA,
    Options,
    diagnose_form,
)
from app.labels import Words
from app.present import present
from app.schemas import (
    MAX_CAUSES,
    VERSION,
    BatchAnswer,
    BatchRequest,
    BatchResult,
    DiagnoseRequest,
)
from kb.errors import KBError
from kb.types import Diagnosis

RAW = frozenset(
    {
        "",  # curl -T sends no type
        "application/octet-stream",
        "application/gzip",
        "application/x-gzip",
        "application/zstd",
        "application/x-xz",
        "application/x-www-form-urlencoded",  # what curl --data-binary @job.log says
    }
)
OFFERED = (JSON, "text/plain", "multipart/form-data", "application/octet-stream")
TEXT_WIDTH = 100  # columns of text/plain answers

router = APIRouter(tags=["diagnose"])

Top = Annotated[int | None, Query(ge=1, le=MAX_CAUSES, description="How many causes to give.")]
Torch = Annotated[
    str | None, Query(pattern=VERSION, description="torch version, if the log lacks it.")
]


_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            JSON: {"schema": {"$ref": "#/components/schemas/DiagnoseRequest"}},
            "text/plain": {"schema": TEXT_SCHEMA},
            "multipart/form-data": {"schema": FORM_SCHEMA},
            "application/octet-stream": {"schema": FILE_SCHEMA},
        },
    }
}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": Diagnosis,
        "content": {MARKDOWN: {"schema": {"type": "string"}}, TEXT: {"schema": {"type": "string"}}},
    }
}


@router.post(
    "/v1/diagnose",
    summary="Diagnose a log",
    responses=_ANSWERS,
    openapi_extra=_BODY,
    response_class=Response,
)
@router.put(
    "/v1/diagnose",
    summary="Diagnose a log (curl -T)",
    responses=_ANSWERS,
    openapi_extra=_BODY,
    response_class=Response,
    operation_id="put_diagnose",
)
async def diagnose(
    request: Request, lang: Lang = None, top: Top = None, torch: Torch = None
) -> Response:
    """Say what happened in a log, why, and what to do.

    JSON and multipart bodies are limited in size; raw ones (``application/octet-stream``,
    ``text/*``, no type at all) stream in constant memory and may be gz, zst or xz. Several files
    of one run and flight-recorder dumps go as multipart fields ``file`` and ``dump``.
    """
    parts = parts_of(request)
    form = answer_type(request.headers.get("accept", ""))
    options = Options(language=parts.language(request, lang), top=top, torch=torch)
    media = media_type(request)
    if media == JSON:
        answer = await _from_json(request, parts, options)
    elif media == "multipart/form-data":
        answer = await diagnose_form(request, parts, options)
    elif media in RAW or media.startswith("text/"):
        answer = await _from_raw(request, parts, options)
    else:
        raise unsupported(media, OFFERED)
    cause = answer.causes[0].id if answer.causes else ""
    parts.metrics.diagnoses.labels(answer.status, cause).inc()
    return _answer(answer, form, parts)


async def _from_json(request: Request, parts: Parts, options: Options) -> Diagnosis:
    body = await read_json(request, DiagnoseRequest, limit=parts.settings.max_body)
    return await parts.run(lambda: _one(parts, body, options))


def _one(parts: Parts, body: DiagnoseRequest, options: Options) -> Diagnosis:
    """Diagnose one JSON item; what it says itself goes before the request's parameters."""
    return parts.service.diagnose_text(
        body.text,
        language=body.lang or options.language,
        top=body.top or options.top,
        torch=body.torch or options.torch,
    )


async def _from_raw(request: Request, parts: Parts, options: Options) -> Diagnosis:
    length = declared_length(request)
    service = parts.service
    if length is not None and length <= SHORT_BYTES:
        body = await request.body()
        return await parts.run(
            lambda: service.diagnose_stream(
                [body], language=options.language, top=options.top, torch=options.torch
            )
        )
    return await parts.run(
        lambda: service.diagnose_stream(
            pieces(request), language=options.language, top=options.top, torch=options.torch
        ),
        long=True,
    )


def _answer(answer: Diagnosis, form: str, parts: Parts) -> Response:
    headers = {"Vary": "Accept, Accept-Language", "Content-Language": answer.language}
    if form == JSON:
        return json_response(answer, headers=headers)
    labels = parts.service.knowledge.labels
    view = present(answer, labels)
    words = Words(labels, view.language)
    if form == MARKDOWN:
        from app.markdown import render_markdown

        text = render_markdown(view, words)
    else:
        import click

        from app.terminal import render_text

        text = click.unstyle(render_text(view, words, width=TEXT_WIDTH))
    return Response(text, media_type=form, headers=headers)


@router.post(
    "/v1/diagnose/batch",
    summary="Diagnose several logs",
    response_model=BatchResult,
    openapi_extra=body_of("BatchRequest"),
)
async def diagnose_batch(request: Request, lang: Lang = None) -> Response:
    """Diagnose independent logs; one that cannot be read does not stop the others."""
    parts = parts_of(request)
    body = await read_json(request, BatchRequest, limit=parts.settings.max_body)
    options = Options(language=parts.language(request, lang), top=None, torch=None)
    answers = []
    for item in body.items:
        try:
            # One thread call an item: other requests get their turn between two.
            answer = await parts.run(lambda item=item: _one(parts, item, options))  # type: ignore[misc]
        except KBError as error:
            answers.append(BatchAnswer(diagnosis=None, problem=problem_of(request, error)))
        else:
            parts.metrics.diagnoses.labels(
                answer.status, answer.causes[0].id if answer.causes else ""
            ).inc()
            answers.append(BatchAnswer(diagnosis=answer, problem=None))
    return json_response(BatchResult(items=tuple(answers)))
