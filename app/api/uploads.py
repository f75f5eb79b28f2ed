"""Multipart bodies of ``/v1/diagnose``: files and dumps of one run, text, and options."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

import msgspec
from fastapi import Request
from starlette.datastructures import FormData, UploadFile

from app.api import bodies
from app.api.answering import Answered, Options, answer_reading
from app.api.bodies import declared_length, invalid_body, read_form, speak
from app.api.parts import Parts
from app.received import save
from app.schemas import MAX_CAUSES, VERSION, DiagnoseRequest
from kb.errors import InputError
from kb.logs.source import HEAD_BYTES, is_packed
from kb.types import LogReading

SHORT_BYTES = 256 * 1024  # bodies up to this size are answered in turn, larger ones beside
FIELDS = ("file", "dump", "text", "lang", "top", "torch")

FILE_SCHEMA = {"type": "string", "format": "binary", "minLength": 1}
TEXT_SCHEMA = {"type": "string", "minLength": 1, "pattern": r"\S"}
_EMPTY = {"type": "string", "maxLength": 0}
# A browser sends fields left empty as empty text: that is the same as not sending them.
FORM_SCHEMA = {
    "type": "object",
    "anyOf": [
        {"required": ["file"], "properties": {"file": {"minItems": 1}}},
        {"required": ["dump"], "properties": {"dump": {"minItems": 1}}},
        {"required": ["text"], "properties": {"text": TEXT_SCHEMA}},
    ],
    "additionalProperties": False,
    "properties": {
        "file": {
            "type": "array",
            "items": FILE_SCHEMA,
            "description": "Logs of one run, plain or compressed.",
        },
        "dump": {
            "type": "array",
            "items": FILE_SCHEMA,
            "description": "Flight-recorder dumps.",
        },
        "text": {"type": "string", "description": "A description or a pasted log."},
        "lang": {"type": "string", "enum": ["zh", "en", ""]},
        "top": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": MAX_CAUSES}, _EMPTY]},
        "torch": {"anyOf": [{"type": "string", "pattern": VERSION}, _EMPTY]},
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploads:
    """What a form holds: texts, and files as (name, content)."""

    texts: tuple[str, ...]
    logs: tuple[tuple[str, BinaryIO], ...]
    dumps: tuple[tuple[str, BinaryIO], ...]


async def diagnose_form(request: Request, parts: Parts, options: Options) -> Answered:
    """Diagnose the files, dumps and texts of a multipart body as one run.

    Raises:
        HttpError: 413, 408, or 422 for a field that is wrong.
        InputError: nothing to read, or a file that is no log.
    """
    async with read_form(request, limit=parts.settings.max_body) as fields:
        unknown = sorted(set(fields) - set(FIELDS))
        if unknown:
            names = ", ".join(unknown)[:200]
            raise invalid_body(
                f"unknown fields: {names}",
                todo="name files 'file', dumps 'dump', pasted text 'text'",
                reason="unknown_fields",
                names=names,
            )
        options = _options(fields, options)
        texts = [value for value in fields.getlist("text") if isinstance(value, str)]
        uploads = Uploads(
            texts=tuple(text for text in texts if text.strip()),
            logs=uploaded_files(fields, "file"),
            dumps=uploaded_files(fields, "dump"),
        )
        if not (uploads.texts or uploads.logs or uploads.dumps):
            raise InputError(
                "the form holds no log",
                todo="add a 'file', 'dump' or 'text' field",
                reason="no_log_field",
            )
        length = declared_length(request)
        long = length is None or length > SHORT_BYTES or any(map(_packed, uploads.logs))
        speak(request, options.language)
        return await parts.run(lambda: _diagnose(parts, uploads, options), long=long)


def _options(fields: FormData, options: Options) -> Options:
    """The options, those of the form before those of the address."""
    chosen: dict[str, str | int] = {}
    for name in ("lang", "top", "torch"):
        values = fields.getlist(name)
        if len(values) > 1 or not all(isinstance(value, str) for value in values):
            raise invalid_body(
                f"field {name!r} must be one text",
                todo="send it once",
                reason="field_twice",
                field=name,
            )
        if values and values[0]:
            chosen[name] = str(values[0])
    if "top" in chosen:
        chosen["top"] = _number("top", str(chosen["top"]))
    try:
        # The same check the JSON body goes through.
        checked = msgspec.convert({"text": "-", **chosen}, DiagnoseRequest)
    except msgspec.ValidationError as error:
        raise invalid_body(str(error)) from error
    return replace(
        options,
        language=checked.lang or options.language,
        top=checked.top or options.top,
        torch=checked.torch or options.torch,
    )


def _number(name: str, text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,9}", text):
        raise invalid_body(
            f"field {name!r} must be a whole number, not {text[:50]!r}",
            reason="no_number",
            field=name,
            text=text[:50],
        )
    return int(text)


def uploaded_files(fields: FormData, name: str) -> tuple[tuple[str, BinaryIO], ...]:
    """The file parts called `name`, as (file name, content).

    Raises:
        HttpError: 422, a part of that name is not a file.
    """
    found = []
    for value in fields.getlist(name):
        if not isinstance(value, UploadFile):
            raise invalid_body(
                f"field {name!r} is not a file",
                todo="send it as a file part",
                reason="no_file",
                field=name,
            )
        found.append((value.filename or "", value.file))
    return tuple(found)


def _packed(upload: tuple[str, BinaryIO]) -> bool:
    """Whether a file is an archive, which may take long whatever its size."""
    head = upload[1].read(HEAD_BYTES)
    upload[1].seek(0)
    return is_packed(head)


def _diagnose(parts: Parts, uploads: Uploads, options: Options) -> Answered:
    """Diagnose uploads as files of a folder of their own: their names tell ranks."""
    service = parts.service
    text = "\n".join(uploads.texts)
    if not uploads.logs and not uploads.dumps:
        return answer_reading(service, lambda: service.read_text(text), options)
    with tempfile.TemporaryDirectory(prefix="timeout-kb-") as name:
        logs, dumps = Path(name, "log"), Path(name, "dump")
        logs.mkdir()
        dumps.mkdir()
        paths = []
        if text:
            paths.append(logs / "description.txt")
            paths[0].write_text(text, encoding="utf-8", errors="replace")
        save(uploads.logs, logs, paths)
        saved = save(uploads.dumps, dumps, [])

        def read() -> LogReading:
            folder = [dumps] if saved else []
            return service.read_paths(paths, dumps=folder, limit_s=bodies.STREAM_S)

        return answer_reading(service, read, options)
