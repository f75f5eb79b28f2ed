"""``/v1/diagnose``: a log in any of four forms in, a Diagnosis as JSON, Markdown or text out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from app.api import bodies
from app.api.answering import (
    Answered,
    Options,
    answer_headers,
    answer_reading,
    answer_response,
    kept_headers,
)
from app.api.answers import Given, answer_key
from app.api.bodies import (
    declared_length,
    decoded_json,
    limited,
    media_type,
    pieces,
    read_json,
    speak,
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
    diagnose_form,
)
from app.schemas import (
    MAX_CAUSES,
    VERSION,
    BatchAnswer,
    BatchRequest,
    BatchResult,
    DiagnoseRequest,
)
from kb.errors import KBError
from kb.logs.source import is_packed
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

router = APIRouter(tags=["diagnose"])

Top = Annotated[int | None, Query(ge=1, le=MAX_CAUSES, description="How many causes to give.")]
Torch = Annotated[
    str | None, Query(pattern=VERSION, description="torch version, if the log lacks it.")
]
Keep = Annotated[
    bool, Query(description="Keep the answer; the headers Location and Link say where it stands.")
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
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": Diagnosis,
        "content": {MARKDOWN: {"schema": {"type": "string"}}, TEXT: {"schema": {"type": "string"}}},
    }
}


@router.post(
    "/v1/diagnose",
    summary="Diagnose a log",
    responses=ANSWERS,
    openapi_extra=_BODY,
    response_class=Response,
)
@router.put(
    "/v1/diagnose",
    summary="Diagnose a log (curl -T)",
    responses=ANSWERS,
    openapi_extra=_BODY,
    response_class=Response,
    operation_id="put_diagnose",
)
async def diagnose(
    request: Request,
    lang: Lang = None,
    top: Top = None,
    torch: Torch = None,
    keep: Keep = False,
) -> Response:
    """Say what happened in a log, why, and what to do.

    JSON and multipart bodies are limited in size; raw ones (``application/octet-stream``,
    ``text/*``, no type at all) stream in constant memory and may be gz, zst or xz. Several files
    of one run and flight-recorder dumps go as multipart fields ``file`` and ``dump``.
    """
    parts = parts_of(request)
    form = answer_type(request.headers.get("accept", ""))
    options = Options(language=parts.language(request, lang), top=top, torch=torch, keep=keep)
    media = media_type(request)
    if media == JSON or (_is_log(media) and _is_short(request)):
        return await _short(request, parts, options, form)
    if media == "multipart/form-data":
        answered = await diagnose_form(request, parts, options)
    elif _is_log(media):
        answered = await _streamed(request, parts, options)
    else:
        raise unsupported(media, OFFERED)
    return _response(answered, form, parts)


def _is_log(media: str) -> bool:
    return media in RAW or media.startswith("text/")


def _is_short(request: Request) -> bool:
    length = declared_length(request)
    return length is not None and length <= SHORT_BYTES


def _response(answered: Answered, form: str, parts: Parts) -> Response:
    answer = answered.diagnosis
    parts.metrics.diagnoses.labels(answer.status, _cause(answer)).inc()
    headers = kept_headers(parts, answered.kept) if answered.kept else None
    return answer_response(answer, form, parts, headers=headers)


def _cause(answer: Diagnosis) -> str:
    return answer.causes[0].id if answer.causes else ""


async def _short(request: Request, parts: Parts, options: Options, form: str) -> Response:
    """Answer a body that is read whole: anew, or as the same one was answered lately."""
    media = media_type(request)
    limit = parts.settings.max_body if media == JSON else SHORT_BYTES
    body = await limited(request, limit).body()

    async def work() -> Answered:
        if media == JSON:
            item = decoded_json(body, DiagnoseRequest)
            speak(request, item.lang)
            return await parts.run(lambda: _one(parts, item, options))
        # An archive may hold far more than its size tells: it must not hold up the others.
        return await parts.run(lambda: _read([body], parts, options), long=is_packed(body))

    if options.keep or "no-cache" in request.headers.get("cache-control", ""):
        return _response(await work(), form, parts)

    async def make() -> Given:
        answered = await work()
        answer = answered.diagnosis
        return Given(
            body=bytes(answer_response(answer, form, parts).body),
            language=answer.language,
            status=answer.status,
            cause=_cause(answer),
        )

    asked = (media == JSON, form, options)
    key = answer_key(body, version=parts.service.version(), asked=asked)
    given, known = await parts.answers.get(key, make)
    parts.metrics.diagnoses.labels(given.status, given.cause).inc()
    headers = answer_headers(given.language)
    headers["Cache-Status"] = f"timeout-kb; {'hit' if known else 'fwd=miss'}"
    return Response(given.body, media_type=form, headers=headers)


def _one(parts: Parts, body: DiagnoseRequest, options: Options) -> Answered:
    """Diagnose one JSON item; what it says itself goes before the request's parameters."""
    wanted = replace(
        options,
        language=body.lang or options.language,
        top=body.top or options.top,
        torch=body.torch or options.torch,
    )
    return answer_reading(parts.service, lambda: parts.service.read_text(body.text), wanted)


def _read(chunks: Iterable[bytes], parts: Parts, options: Options) -> Answered:
    """Diagnose a raw body, in the thread that answers it."""
    service = parts.service
    return answer_reading(
        service, lambda: service.reader.read_stream(chunks, limit_s=bodies.STREAM_S), options
    )


async def _streamed(request: Request, parts: Parts, options: Options) -> Answered:
    return await parts.run(lambda: _read(pieces(request), parts, options), long=True)


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
        speak(request, item.lang)
        try:
            # One thread call an item: other requests get their turn between two.
            answered = await parts.run(lambda item=item: _one(parts, item, options))  # type: ignore[misc]
        except KBError as error:
            answers.append(BatchAnswer(diagnosis=None, problem=problem_of(request, error)))
        else:
            answer = answered.diagnosis
            parts.metrics.diagnoses.labels(answer.status, _cause(answer)).inc()
            answers.append(BatchAnswer(diagnosis=answer, problem=None))
    return json_response(BatchResult(items=tuple(answers)))
