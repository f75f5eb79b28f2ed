"""Forms of answers: JSON, Markdown, text; tags, pages, the place of what is saved."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click
import msgspec
from fastapi import Request, Response

from app.api.requests import JSON, MARKDOWN, SHORT, TEXT
from app.render.forms import render_diagnosis
from kb.types.answer import Diagnosis
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    from app.api.context import ApiContext

ETAG_DIGITS = 32  # of SHA-256 in hex
EVENTS = "text/event-stream"
FORMS = {MARKDOWN: "markdown", TEXT: "text", SHORT: "short"}  # of `render_diagnosis`
TEXT_WIDTH = 100  # columns of text/plain answers
_IN_ADDRESS = ":/?#[]@!$&'()*+,;=%"  # all else must not stand in a header


def json_response(
    value: object, *, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """`value` as JSON in the order of its fields."""
    body = msgspec.json.encode(value)
    return Response(body, status_code=status, media_type=JSON, headers=headers)


def event_form(*names: str) -> dict[str, Any]:
    """The schema of one event of a stream; `data` is the JSON of what it is called."""
    return {
        "type": "object",
        "required": ["event", "data"],
        "properties": {
            "event": {"type": "string", "enum": list(names)},
            "data": {"type": "string", "contentMediaType": JSON},
        },
    }


def event(name: str, value: object) -> bytes:
    """One server-sent event; JSON holds no line break, so its data is one line.

    Format: https://html.spec.whatwg.org/multipage/server-sent-events.html
    """
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(value))


def tagged(request: Request, response: Response) -> Response:
    """`response` with the digest of its body as ETag, or 304 where the caller has that body.

    Of the body itself: what an entry or a list was made of may stay the same where it changes.
    """
    etag = f'"{hashlib.sha256(response.body).hexdigest()[:ETAG_DIGITS]}"'
    response.headers["ETag"] = etag
    response.headers.setdefault("Cache-Control", "no-cache")
    header = request.headers.get("if-none-match", "")
    known = {tag.strip().removeprefix("W/") for tag in header.split(",")}
    if etag not in known and "*" not in known:
        return response
    del response.headers["content-length"], response.headers["content-type"]
    return Response(status_code=304, headers=dict(response.headers))


def next_page(request: Request, offset: int | None) -> dict[str, str]:
    """The header that leads from one page of a list to the next; none on the last one."""
    if offset is None:
        return {}
    url = request.url.include_query_params(offset=offset)
    return {"Link": f'<{url.path}?{url.query}>; rel="next"'}


def saved_headers(context: ApiContext, identifier: str) -> dict[str, str]:
    """Where a saved diagnosis stands: here, and on the page where its address is known."""
    headers = {"Location": f"/v1/diagnoses/{identifier}"}
    if base := context.settings.public_url.rstrip("/"):
        page = f"{quote(base, safe=_IN_ADDRESS)}/?d={identifier}"
        headers["Link"] = f'<{page}>; rel="alternate"; type="text/html"'
    return headers


def answer_headers(language: Language) -> dict[str, str]:
    """What every answer in that language says of itself."""
    return {"Vary": "Accept, Accept-Language", "Content-Language": language}


def answer_response(
    answer: Diagnosis, form: str, context: ApiContext, *, headers: dict[str, str] | None = None
) -> Response:
    """The answer as JSON, Markdown, text or its short form."""
    headers = answer_headers(answer.language) | (headers or {})
    if form == JSON:
        return json_response(answer, headers=headers)
    text = render_diagnosis(
        answer,
        context.service.knowledge.labels,
        FORMS[form],
        width=TEXT_WIDTH,
        more="head.full_markdown",
    )
    if form == TEXT:
        text = click.unstyle(text)
    return Response(text, media_type=form, headers=headers)
