"""``/v1/diagnose``: a log in any of four forms in, a Diagnosis as JSON, Markdown or text out."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import msgspec
from fastapi import APIRouter, Query, Request, Response
from starlette.datastructures import FormData, UploadFile

from app.api.bodies import (
    declared_length,
    media_type,
    pieces,
    read_form,
    read_json,
    unsupported,
)
from app.api.lookup import body_of
from app.api.negotiate import JSON, MARKDOWN, TEXT, answer_type
from app.api.parts import Lang, Parts, json_response, parts_of
from app.api.problems import HttpError, problem_of
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
from kb.errors import InputError, KBError
from kb.types import Diagnosis, Language

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
SHORT_BYTES = 256 * 1024  # bodies up to this size are answered in turn, larger ones beside
TEXT_WIDTH = 100  # columns of text/plain answers
MAX_NAME = 100  # characters of an uploaded file's name
_UNSAFE = re.compile(r"[^\w.-]+")

router = APIRouter(tags=["diagnose"])

Top = Annotated[int | None, Query(ge=1, le=MAX_CAUSES, description="How many causes to give.")]
Torch = Annotated[
    str | None, Query(pattern=VERSION, description="torch version, if the log lacks it.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to answer."""

    language: Language | None
    top: int | None
    torch: str | None


_FORM_SCHEMA = {
    "type": "object",
    "properties": {
        "file": {
            "type": "array",
            "items": {"type": "string", "format": "binary"},
            "description": "Logs of one run, plain or compressed.",
        },
        "dump": {
            "type": "array",
            "items": {"type": "string", "format": "binary"},
            "description": "Flight-recorder dumps.",
        },
        "text": {"type": "string", "description": "A description or a pasted log."},
        "lang": {"type": "string", "enum": ["zh", "en"]},
        "top": {"type": "integer", "minimum": 1, "maximum": MAX_CAUSES},
        "torch": {"type": "string", "pattern": VERSION},
    },
}
_RAW_SCHEMA = {"type": "string", "format": "binary"}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            JSON: {"schema": {"$ref": "#/components/schemas/DiagnoseRequest"}},
            "text/plain": {"schema": {"type": "string", "minLength": 1, "pattern": r"\S"}},
            "multipart/form-data": {"schema": _FORM_SCHEMA},
            "application/octet-stream": {"schema": _RAW_SCHEMA},
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
        answer = await _from_form(request, parts, options)
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


async def _from_form(request: Request, parts: Parts, options: Options) -> Diagnosis:
    async with read_form(request, limit=parts.settings.max_body) as fields:
        options = _form_options(fields, options)
        texts = [value for value in fields.getlist("text") if isinstance(value, str)]
        logs = _uploads(fields, "file")
        dumps = _uploads(fields, "dump")
        unknown = sorted(set(fields) - {"file", "dump", "text", "lang", "top", "torch"})
        if unknown:
            raise HttpError(
                422,
                "invalid-body",
                f"unknown fields: {', '.join(unknown)[:200]}",
                todo="name files 'file', dumps 'dump', pasted text 'text'",
            )
        if not (texts or logs or dumps):
            raise InputError("the form holds no log", todo="add a 'file', 'dump' or 'text' field")
        length = declared_length(request)
        long = length is None or length > SHORT_BYTES
        return await parts.run(lambda: _spooled(parts, texts, logs, dumps, options), long=long)


def _form_options(fields: FormData, options: Options) -> Options:
    """The options, those of the form before those of the address."""
    given = {name: fields.get(name) for name in ("lang", "top", "torch")}
    chosen = {name: value for name, value in given.items() if isinstance(value, str) and value}
    try:
        # The same check the JSON body goes through; form values are strings.
        checked = msgspec.convert({"text": "-", **chosen}, DiagnoseRequest, strict=False)
    except msgspec.ValidationError as error:
        raise HttpError(422, "invalid-body", str(error), todo="see /docs") from error
    return Options(
        language=checked.lang or options.language,
        top=checked.top or options.top,
        torch=checked.torch or options.torch,
    )


def _uploads(fields: FormData, name: str) -> list[tuple[str, BinaryIO]]:
    found = []
    for value in fields.getlist(name):
        if not isinstance(value, UploadFile):
            raise HttpError(
                422, "invalid-body", f"field {name!r} is not a file", todo="send it as a file part"
            )
        found.append((value.filename or "", value.file))
    return found


def _spooled(
    parts: Parts,
    texts: Sequence[str],
    logs: Sequence[tuple[str, BinaryIO]],
    dumps: Sequence[tuple[str, BinaryIO]],
    options: Options,
) -> Diagnosis:
    """Diagnose uploads as files of a folder of their own: their names tell ranks."""
    if texts and not logs and not dumps:
        return parts.service.diagnose_text(
            "\n".join(texts), language=options.language, top=options.top, torch=options.torch
        )
    with tempfile.TemporaryDirectory(prefix="timeout-kb-") as name:
        folder = Path(name)
        (folder / "log").mkdir()
        (folder / "dump").mkdir()
        paths = []
        if texts:
            paths.append(folder / "log" / "description.txt")
            paths[0].write_text("\n".join(texts), encoding="utf-8", errors="replace")
        paths += _save(logs, folder / "log")
        saved = _save(dumps, folder / "dump")
        answer = parts.service.diagnose_paths(
            paths,
            dumps=[folder / "dump"] if saved else [],
            language=options.language,
            top=options.top,
            torch=options.torch,
        )
        return _without_folder(answer, folder / "log")


def _save(uploads: Sequence[tuple[str, BinaryIO]], folder: Path) -> list[Path]:
    """Copy uploads into `folder` under their own names, made harmless and unique."""
    paths: list[Path] = []
    for number, (name, stream) in enumerate(uploads):
        base = _UNSAFE.sub("_", name.replace("\\", "/").rsplit("/", 1)[-1]).lstrip(".")
        path = folder / (base[-MAX_NAME:] or f"upload-{number}")
        if path in paths:
            path = path.with_name(f"{number}-{path.name}")
        with path.open("wb") as file:
            shutil.copyfileobj(stream, file)
        paths.append(path)
    return paths


def _without_folder(answer: Diagnosis, folder: Path) -> Diagnosis:
    """Name files as they were uploaded, not where they lay here."""
    first = answer.incident.first_error
    if first is None:
        return answer
    first = replace(first, file=first.file.removeprefix(f"{folder}/"))
    return replace(answer, incident=replace(answer.incident, first_error=first))


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
