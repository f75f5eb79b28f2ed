"""Multipart bodies of ``/v1/diagnose``: files and dumps of one run, text, and options."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, BinaryIO

import msgspec
from starlette.datastructures import FormData

from app.api import requests
from app.api.requests import FILE_SCHEMA, invalid_body, uploaded_files
from app.api.schemas import MAX_CAUSES, VERSION, DiagnoseRequest
from app.inputs.uploads import upload_folder
from kb.errors import InputError
from kb.evidence.flight_recorder.dump_file import looks_like_dump
from kb.files.archives import HEAD_BYTES, is_compressed
from kb.types.incident import LogReading
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    from kb.service import Service

FIELDS = ("file", "dump", "text", "lang", "top", "torch")

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
class DiagnoseOptions:
    """How to answer; `keep` saves the diagnosis under an id of its own.

    `wait` is how many seconds to wait for the language model, where one is set.
    """

    language: Language | None
    top: int | None = None
    torch: str | None = None
    keep: bool = False
    wait: int = 0

    def overridden(self, item: DiagnoseRequest) -> DiagnoseOptions:
        """What a body says itself goes before the request's parameters."""
        return replace(
            self,
            language=item.lang or self.language,
            top=item.top or self.top,
            torch=item.torch or self.torch,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnoseForm:
    """What a form holds: text, files as (name, content), and options."""

    text: str
    logs: tuple[tuple[str, BinaryIO], ...]
    dumps: tuple[tuple[str, BinaryIO], ...]
    options: DiagnoseOptions

    @property
    def may_take_long(self) -> bool:
        """Whether a file may hold far more than its size tells: an archive, or a dump."""
        heads = []
        for _, file in self.logs:
            heads.append(file.read(HEAD_BYTES))
            file.seek(0)
        return bool(self.dumps) or any(
            is_compressed(head) or looks_like_dump(head) for head in heads
        )

    def read(self, service: Service) -> LogReading:
        """Everything as the files of one run, in a folder of their own: their names tell ranks."""
        if not self.logs and not self.dumps:
            return service.read_text(self.text)
        with upload_folder() as logs, upload_folder() as dumps:
            if self.text:
                logs.add_text(self.text)
            for name, content in self.logs:
                logs.add(name, content)
            for name, content in self.dumps:
                dumps.add(name, content)
            return service.read_paths(logs.paths, dumps=dumps.paths, limit_s=requests.STREAM_S)


def parse_form(fields: FormData, options: DiagnoseOptions) -> DiagnoseForm:
    """The checked fields of a form.

    Raises:
        HttpError: 422 for a field that is wrong.
        InputError: nothing to read.
    """
    if unknown := sorted(set(fields) - set(FIELDS)):
        raise invalid_body("unknown_fields", names=", ".join(unknown)[:200])
    texts = [text for text in fields.getlist("text") if isinstance(text, str) and text.strip()]
    form = DiagnoseForm(
        text="\n".join(texts),
        logs=uploaded_files(fields, "file"),
        dumps=uploaded_files(fields, "dump"),
        options=_options(fields, options),
    )
    if not (form.text or form.logs or form.dumps):
        raise InputError(
            "the form holds no log",
            todo="add a 'file', 'dump' or 'text' field",
            reason="no_log_field",
        )
    return form


def _options(fields: FormData, options: DiagnoseOptions) -> DiagnoseOptions:
    """The options, those of the form before those of the address."""
    chosen: dict[str, str | int] = {}
    for name in ("lang", "top", "torch"):
        values = fields.getlist(name)
        if len(values) > 1 or not all(isinstance(value, str) for value in values):
            raise invalid_body("field_twice", field=name)
        if values and values[0]:
            chosen[name] = str(values[0])
    if "top" in chosen:
        chosen["top"] = _number("top", str(chosen["top"]))
    try:
        # The same check the JSON body goes through.
        return options.overridden(msgspec.convert({"text": "-", **chosen}, DiagnoseRequest))
    except msgspec.ValidationError as error:
        raise invalid_body(why=str(error)) from error


def _number(name: str, text: str) -> int:
    if not re.fullmatch(r"-?[0-9]{1,9}", text):
        raise invalid_body("no_number", field=name, text=text[:50])
    return int(text)
