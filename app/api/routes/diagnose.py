"""``/v1/diagnose``: a log in any of four forms in, a Diagnosis as JSON, Markdown or text out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from app.api import requests
from app.api.answer_cache import CachedAnswer, answer_key
from app.api.context import SHORT_BYTES, ApiContext, Lang, Wait, context_of
from app.api.diagnose_form import FORM_SCHEMA, TEXT_SCHEMA, DiagnoseOptions, parse_form
from app.api.problems import problem_of
from app.api.requests import (
    FILE_SCHEMA,
    FORM,
    JSON,
    MARKDOWN,
    SHORT,
    TEXT,
    answer_type,
    body_forms,
    body_of,
    declared_length,
    decoded_json,
    limited,
    media_type,
    pieces,
    read_form,
    read_json,
    set_language,
    unsupported,
)
from app.api.responses import (
    EVENTS,
    answer_headers,
    answer_response,
    event,
    event_form,
    json_response,
    saved_headers,
)
from app.api.schemas import (
    MAX_CAUSES,
    VERSION,
    BatchAnswer,
    BatchRequest,
    BatchResult,
    DiagnoseRequest,
)
from kb.diagnose.verdict import Verdict
from kb.errors import KBError
from kb.files.archives import is_compressed
from kb.types.answer import Diagnosis
from kb.types.incident import LogReading

OCTETS = "application/octet-stream"
RAW = frozenset(
    {
        "",  # curl -T sends no type
        OCTETS,
        "application/gzip",
        "application/x-gzip",
        "application/zstd",
        "application/x-xz",
        "application/x-www-form-urlencoded",  # what curl --data-binary @job.log says
    }
)
BODIES = {
    JSON: {"$ref": "#/components/schemas/DiagnoseRequest"},
    TEXT: TEXT_SCHEMA,
    FORM: FORM_SCHEMA,
    OCTETS: FILE_SCHEMA,
}
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": Diagnosis,
        "description": "For `Accept: text/event-stream` events: `diagnosis` at once; `better`, "
        "where a language model reads along and answered; at last `done`, the better of both.",
        "content": {
            MARKDOWN: {"schema": {"type": "string"}},
            TEXT: {"schema": {"type": "string"}},
            EVENTS: {"schema": event_form("diagnosis", "better", "done")},
        },
    }
}

router = APIRouter(tags=["diagnose"])

Top = Annotated[int | None, Query(ge=1, le=MAX_CAUSES, description="How many causes to give.")]
Torch = Annotated[
    str | None, Query(pattern=VERSION, description="torch version, if the log lacks it.")
]
Keep = Annotated[
    bool, Query(description="Keep the answer; the headers Location and Link say where it stands.")
]
Short = Annotated[
    bool, Query(description="The answer in ten lines of plain text, whatever Accept says.")
]
Read = Callable[[], LogReading]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    """A verdict, the diagnosis made of it, and the id it is kept under, empty where it is not."""

    verdict: Verdict
    diagnosis: Diagnosis
    saved_id: str = ""


@router.post(
    "/v1/diagnose",
    summary="Diagnose a log",
    responses=ANSWERS,
    openapi_extra=body_forms(BODIES),
    response_class=Response,
)
@router.put(
    "/v1/diagnose",
    summary="Diagnose a log (curl -T)",
    responses=ANSWERS,
    openapi_extra=body_forms(BODIES),
    response_class=Response,
    operation_id="put_diagnose",
)
async def diagnose(
    request: Request,
    lang: Lang = None,
    top: Top = None,
    torch: Torch = None,
    keep: Keep = False,
    wait: Wait = 0,
    short: Short = False,
) -> Response:
    """Say what happened in a log, why, and what to do.

    JSON and multipart bodies are limited in size; raw ones (``application/octet-stream``,
    ``text/*``, no type at all) stream in constant memory and may be gz, zst or xz. Several files
    of one run and flight-recorder dumps go as multipart fields ``file`` and ``dump``.
    """
    context = context_of(request)
    form = SHORT if short else answer_type(request, (JSON, MARKDOWN, TEXT, EVENTS))
    language = context.language(request, lang)
    options = DiagnoseOptions(language=language, top=top, torch=torch, keep=keep, wait=wait)
    if form == EVENTS:
        options = replace(options, wait=0)  # the first answer comes at once, the better one later
    media = media_type(request)
    length = declared_length(request)
    long = not _is_short(length)
    if media == FORM:
        answer = await _of_form(request, context, options, long=long)
    elif media == JSON or (_is_log(media) and not long):
        return await _of_short_body(request, context, options, form)
    elif _is_log(media):
        answer = await _diagnose_stream(context, pieces(request), options, long=True)
    else:
        raise unsupported(media, tuple(BODIES))
    return _response(context, form, answer, options)


def _is_short(length: int | None) -> bool:
    return length is not None and length <= SHORT_BYTES


def _is_log(media: str) -> bool:
    return media in RAW or media.startswith("text/")


async def _diagnose(
    context: ApiContext, read: Read, options: DiagnoseOptions, *, long: bool = False
) -> _Answer:
    """Diagnose what `read` reads, in a thread.

    Raises:
        InputError: there is nothing to read.
    """
    service = context.service

    def judge() -> Verdict:
        return service.judge(read(), torch=options.torch)

    def answer(verdict: Verdict, better: Verdict) -> _Answer:
        diagnosis = service.render(better, language=options.language, top=options.top)
        if not options.keep:
            return _Answer(verdict=verdict, diagnosis=diagnosis)
        from kb.saved import save_diagnosis

        saved_id = save_diagnosis(service, verdict).id
        return _Answer(verdict=verdict, diagnosis=diagnosis, saved_id=saved_id)

    def work() -> _Answer:
        verdict = judge()
        return answer(verdict, verdict)

    if not options.wait:
        return await context.run(work, long=long)
    verdict = await context.run(judge, long=long)
    better = await context.second_reading(verdict, wait_s=options.wait)
    return await context.run(partial(answer, verdict, better))


async def _diagnose_stream(
    context: ApiContext, chunks: Iterable[bytes], options: DiagnoseOptions, *, long: bool
) -> _Answer:
    def read() -> LogReading:
        return context.service.read_stream(chunks, limit_s=requests.STREAM_S)

    return await _diagnose(context, read, options, long=long)


async def _of_form(
    request: Request, context: ApiContext, options: DiagnoseOptions, *, long: bool
) -> _Answer:
    async with read_form(request, limit=context.settings.max_body) as fields:
        form = parse_form(fields, options)
        set_language(request, form.options.language)
        long = long or form.may_take_long
        return await _diagnose(context, lambda: form.read(context.service), form.options, long=long)


async def _of_short_body(
    request: Request, context: ApiContext, options: DiagnoseOptions, form: str
) -> Response:
    """Answer a body that is read whole: anew, or as the same one was answered lately."""
    is_json = media_type(request) == JSON
    body = await limited(request, context.settings.max_body if is_json else SHORT_BYTES).body()

    async def work() -> _Answer:
        if is_json:
            item = decoded_json(body, DiagnoseRequest)
            return await _of_item(request, context, item, options)
        # An archive may hold far more than its size tells: it must not hold up the others.
        return await _diagnose_stream(context, [body], options, long=is_compressed(body))

    anew = "no-cache" in request.headers.get("cache-control", "")
    if options.keep or options.wait or form == EVENTS or anew:
        return _response(context, form, await work(), options)

    async def make() -> CachedAnswer:
        diagnosis = (await work()).diagnosis
        return CachedAnswer(
            body=bytes(answer_response(diagnosis, form, context).body),
            language=diagnosis.language,
            status=diagnosis.status,
            cause=_first_cause(diagnosis),
        )

    key = answer_key(body, version=context.service.version(), options=(is_json, form, options))
    answer, known = await context.answer_cache.get(key, make)
    context.metrics.diagnoses.labels(answer.status, answer.cause).inc()
    headers = answer_headers(answer.language)
    headers["Cache-Status"] = f"timeout-kb; {'hit' if known else 'fwd=miss'}"
    return Response(answer.body, media_type=form, headers=headers)


async def _of_item(
    request: Request, context: ApiContext, item: DiagnoseRequest, options: DiagnoseOptions
) -> _Answer:
    """Diagnose a JSON body or one of a batch."""
    set_language(request, item.lang)
    read = partial(context.service.read_text, item.text)
    long = len(item.text) > SHORT_BYTES
    return await _diagnose(context, read, options.overridden(item), long=long)


def _response(
    context: ApiContext, form: str, answer: _Answer, options: DiagnoseOptions
) -> Response:
    diagnosis = answer.diagnosis
    context.metrics.diagnoses.labels(diagnosis.status, _first_cause(diagnosis)).inc()
    headers = saved_headers(context, answer.saved_id) if answer.saved_id else {}
    if form != EVENTS:
        return answer_response(diagnosis, form, context, headers=headers)
    headers |= answer_headers(diagnosis.language) | {"Cache-Control": "no-store"}
    events = _events(context, answer, options)
    return StreamingResponse(events, media_type=EVENTS, headers=headers)


async def _events(
    context: ApiContext, answer: _Answer, options: DiagnoseOptions
) -> AsyncIterator[bytes]:
    """The first answer, then the one with the language model's reading where there is one."""
    diagnosis = answer.diagnosis
    yield event("diagnosis", diagnosis)
    better = await context.second_reading(answer.verdict)
    if better is not answer.verdict:
        language = diagnosis.language
        diagnosis = await context.run(
            lambda: context.service.render(better, language=language, top=options.top)
        )
        yield event("better", diagnosis)
    yield event("done", diagnosis)


def _first_cause(diagnosis: Diagnosis) -> str:
    return diagnosis.causes[0].id if diagnosis.causes else ""


@router.post(
    "/v1/diagnose/batch",
    summary="Diagnose several logs",
    response_model=BatchResult,
    openapi_extra=body_of("BatchRequest"),
)
async def diagnose_batch(request: Request, lang: Lang = None) -> Response:
    """Diagnose independent logs; one that cannot be read does not stop the others."""
    context = context_of(request)
    body = await read_json(request, BatchRequest, limit=context.settings.max_body)
    options = DiagnoseOptions(language=context.language(request, lang))
    answers = []
    for item in body.items:  # one thread call each: other requests get their turn between two
        try:
            diagnosis = (await _of_item(request, context, item, options)).diagnosis
        except KBError as error:
            answers.append(BatchAnswer(diagnosis=None, problem=problem_of(request, error)))
        else:
            context.metrics.diagnoses.labels(diagnosis.status, _first_cause(diagnosis)).inc()
            answers.append(BatchAnswer(diagnosis=diagnosis, problem=None))
    return json_response(BatchResult(items=tuple(answers)))
