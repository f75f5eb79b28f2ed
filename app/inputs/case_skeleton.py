"""A case file to fill in: what a text or an incident tells stands there, the rest is to do."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from kb.errors import DataError, InputError
from kb.knowledge.cases import TODO
from kb.text.redact import redact
from kb.types.entries import Entry

if TYPE_CHECKING:
    from kb.knowledge.labels import Words

FOLDER = "templates"  # of data/
SIGNATURE_LINES = 3  # proposed: more is no signature
_REPOSITORY = re.compile(r"https?://(?:github|gitee|gitlab)\.com/([\w.-]+/[\w.-]+)")
_NOT_OF_AN_ID = re.compile(r"[^a-z0-9]+")


def case_skeleton(
    data: Path, incident: Entry | None, words: Words, *, url: str = "", case_id: str = ""
) -> tuple[str, str]:
    """The id and the text of a case file in one language.

    Args:
        data: folder of the knowledge, which has the template.
        incident: what is known of the failure; its cause is proposed.
        words: of the language that the case will be written in.
        url: page that tells of it.
        case_id: its id; by default made of project and cause.

    Raises:
        DataError: the template cannot be read.
        InputError: the address is none of the web.
    """
    if url and not url.startswith(("https://", "http://")):
        raise InputError(
            f"{url} is no address",
            todo="begin it with https://",
            reason="no_web_address",
            values={"url": url},
        )
    project = _project(url) or (incident.project if incident else "")
    cause = incident.causes[0].id if incident and incident.causes else ""
    parts = filter(None, (project.rpartition("/")[2], cause or "what-went-wrong"))
    case_id = _id(case_id or "-".join(parts))
    tags = incident.tags if incident else None
    template = data / FOLDER / f"case.{words.language}.md"
    try:
        text = Template(template.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{template}: {error}", todo="reinstall the package") from error
    filled = text.substitute(
        id=case_id,
        title=TODO,
        project=_value(project) if project else TODO,
        cause=cause or TODO,
        proposal=words("new.proposal") if cause else "",
        date=(incident.date if incident else "") or datetime.now(UTC).date().isoformat(),
        frameworks=_value(list(tags.frameworks) if tags else []),
        backend=tags.backend if tags else "other",
        ops=_value(list(tags.ops) if tags else []),
        stage=tags.stage if tags else "unknown",
        versions=_value(tags.versions if tags else {}),
        signature=_value(list(incident.signature[:SIGNATURE_LINES]) if incident else []),
        url=_value(url) if url else TODO,
    )
    return case_id, redact(filled)[0]


def _value(value: object) -> str:
    """A value as YAML reads it, on one line."""
    return json.dumps(value, ensure_ascii=False)


def _project(url: str) -> str:
    found = _REPOSITORY.match(url)
    return found[1] if found else ""


def _id(text: str) -> str:
    return _NOT_OF_AN_ID.sub("-", text.lower()).strip("-")
