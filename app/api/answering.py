"""From a reading to the response: the diagnosis, kept under a link where that is asked for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from fastapi import Response

from app.api.negotiate import JSON, MARKDOWN
from app.api.parts import Parts, json_response
from app.labels import Words
from app.present import present
from kb.types import Diagnosis, Language, LogReading

if TYPE_CHECKING:
    from kb.service import Service

_IN_ADDRESS = ":/?#[]@!$&'()*+,;=%"  # all else must not stand in a header
TEXT_WIDTH = 100  # columns of text/plain answers


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to answer; `keep` stores the diagnosis under an id of its own."""

    language: Language | None
    top: int | None
    torch: str | None
    keep: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer and the id it is kept under; empty where it is not kept."""

    diagnosis: Diagnosis
    kept: str = ""


def answer_reading(service: Service, read: Callable[[], LogReading], options: Options) -> Answered:
    """Diagnose what `read` reads, and keep it where `options` say so.

    Raises:
        InputError: there is nothing to read.
    """
    started = time.perf_counter()
    reading = read()
    diagnosis = service.answer(
        reading,
        started=started,
        language=options.language,
        top=options.top,
        torch=options.torch,
    )
    if not options.keep:
        return Answered(diagnosis=diagnosis)
    from kb.kept import keep

    return Answered(diagnosis=diagnosis, kept=keep(service, reading, torch=options.torch).id)


def kept_headers(parts: Parts, identifier: str) -> dict[str, str]:
    """Where a kept diagnosis stands: here, and on the page where its address is known."""
    headers = {"Location": f"/v1/diagnoses/{identifier}"}
    if parts.settings.public_url:
        page = f"{quote(parts.settings.public_url.rstrip('/'), safe=_IN_ADDRESS)}/?d={identifier}"
        headers["Link"] = f'<{page}>; rel="alternate"; type="text/html"'
    return headers


def answer_headers(language: Language) -> dict[str, str]:
    """What every answer in that language says of itself."""
    return {"Vary": "Accept, Accept-Language", "Content-Language": language}


def answer_response(
    answer: Diagnosis, form: str, parts: Parts, *, headers: dict[str, str] | None = None
) -> Response:
    """The answer as JSON, Markdown or text."""
    headers = answer_headers(answer.language) | (headers or {})
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

        text = click.unstyle(render_text(view, words, width=TEXT_WIDTH, more="word.more_markdown"))
    return Response(text, media_type=form, headers=headers)
