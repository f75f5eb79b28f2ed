"""What the tools take and give: arguments checked by msgspec, answers as frozen values.

What the HTTP API has a schema for is that schema; a tool's schemas are made from these types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from app.api.schemas import (
    MAX_LIMIT,
    MAX_QUERY,
    EntryDetail,
    NewEntry,
    NoteSummary,
    ResolveRequest,
    Top,
    Torch,
)
from kb.types.answer import SettingWarning
from kb.types.knowledge import Advice, Cause, Note
from kb.types.vocabulary import Language

MAX_PATHS = 256  # of one call; a folder holds as many files as it likes
MAX_WAIT_S = 120

Identifier = Annotated[str, Meta(min_length=1, max_length=200)]
Paths = Annotated[
    tuple[Annotated[str, Meta(min_length=1, max_length=4096)], ...],
    Meta(max_length=MAX_PATHS),
]
Limit = Annotated[int, Meta(ge=1, le=MAX_LIMIT)]
Offset = Annotated[int, Meta(ge=0, description="The `next_offset` of the page before.")]
Detail = Annotated[
    Literal["short", "full"],
    Meta(description="short: long lists (ranks, moments, fixes) are cut; full: all."),
]


class DiagnoseArguments(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Arguments of `diagnose`; `text`, `paths` and `dumps` belong to one run of one job."""

    text: Annotated[str, Meta(description="The log, a description of what happened, or both.")] = ""
    paths: Annotated[
        Paths, Meta(description="Log files or folders of the run on the server's machine.")
    ] = ()
    dumps: Annotated[
        Paths, Meta(description="Flight-recorder dumps, or folders of them, on that machine.")
    ] = ()
    lang: Language | None = None
    top: Top | None = None
    torch: Torch | None = None
    detail: Detail = "short"
    wait: Annotated[
        int,
        Meta(
            ge=0,
            le=MAX_WAIT_S,
            description="Seconds for the second language model, where one is set.",
        ),
    ] = 0


class ShowArguments(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Arguments of `show`."""

    id: Annotated[Identifier, Meta(description="Of a cause, case, note, incident, or a setting.")]
    lang: Language | None = None


class LintArguments(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Arguments of `lint_settings`."""

    text: Annotated[str, Meta(description="A launch script, configuration or environment.")] = ""
    paths: Annotated[Paths, Meta(description="Such files on the server's machine.")] = ()
    lang: Language | None = None
    torch: Torch | None = None


class NotesArguments(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Arguments of `notes`."""

    question: Annotated[
        str, Meta(max_length=MAX_QUERY, description="A question; empty: all notes, page by page.")
    ] = ""
    limit: Limit = 50
    offset: Offset = 0
    lang: Language | None = None


class IncidentsArguments(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Arguments of `incidents`."""

    resolved: bool | None = None
    cause: Annotated[str, Meta(max_length=200)] = ""
    host: Annotated[str, Meta(max_length=200)] = ""
    limit: Limit = 20
    offset: Offset = 0
    lang: Language | None = None


class AddArguments(NewEntry, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Arguments of `add_incident`: `text`, called `name`, or a log file."""

    text: Annotated[str, Meta(description="The log or the write-up.")] = ""
    path: Annotated[str, Meta(max_length=4096, description="A log on the server's machine.")] = ""
    lang: Language | None = None


class ResolveArguments(ResolveRequest, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Arguments of `resolve_incident`."""

    id: Annotated[Identifier, Meta(description="Of the incident, as `add_incident` gave it.")]
    lang: Language | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemAnswer:
    """What stands under an id: one of these, the others are null."""

    cause: Cause | None = None
    setting: Advice | None = None
    note: Note | None = None
    entry: EntryDetail | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LintAnswer:
    """What is wrong with the settings; empty where nothing is."""

    warnings: tuple[SettingWarning, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotePage:
    """Notes, of `total`; `next_offset` is None on the last page."""

    items: tuple[NoteSummary, ...]
    total: int
    offset: int
    next_offset: int | None


def object_schema(kind: type) -> dict[str, Any]:
    """The JSON schema of `kind` with an object at its root, as the protocol asks for."""
    (reference,), components = msgspec.json.schema_components(
        (kind,), ref_template="#/$defs/{name}"
    )
    name = str(reference["$ref"]).rpartition("/")[2]
    root = dict(components.pop(name))
    return root | ({"$defs": dict(components)} if components else {})
