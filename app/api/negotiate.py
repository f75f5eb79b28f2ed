"""What the caller wants to read: media type and language out of request headers (RFC 9110 §12)."""

from __future__ import annotations

from collections.abc import Sequence

from app.api.problems import HttpError
from kb.types import Language

JSON = "application/json"
MARKDOWN = "text/markdown"
TEXT = "text/plain"
ANSWER_TYPES = (JSON, MARKDOWN, TEXT)


def _weighted(header: str) -> list[tuple[float, str]]:
    """The values of a header with their weights, heaviest first, order kept among equals."""
    found = []
    for part in header.split(","):
        value, *parameters = (piece.strip() for piece in part.split(";"))
        weight = 1.0
        for parameter in parameters:
            name, _, number = parameter.partition("=")
            if name.strip().lower() == "q":
                try:
                    weight = float(number)
                except ValueError:
                    weight = 0.0
        if value:
            found.append((weight, value.lower()))
    return sorted(found, key=lambda pair: -pair[0])


def answer_type(accept: str, offered: Sequence[str] = ANSWER_TYPES) -> str:
    """The offered media type the caller likes best; the first one where all are the same to it.

    Raises:
        HttpError: 406, none of them is acceptable.
    """
    if not accept.strip():
        return offered[0]
    wanted = _weighted(accept)
    refused = {value for weight, value in wanted if weight <= 0}
    for weight, value in wanted:
        if weight <= 0:
            continue
        for media in offered:
            kind = media.split("/")[0]
            if media not in refused and value in (media, f"{kind}/*", "*/*"):
                return media
    raise HttpError(
        406,
        "not-acceptable",
        f"cannot answer as {accept[:100]!r}",
        todo=f"accept one of: {', '.join(offered)}",
        reason="not_acceptable",
        values={"accept": accept[:100], "offered": ", ".join(offered)},
    )


def accepted_language(header: str) -> Language | None:
    """The language of an Accept-Language header, None where it asks for neither of ours."""
    for weight, value in _weighted(header):
        if weight <= 0:
            continue
        primary = value.split("-")[0]
        if primary == "zh":
            return "zh"
        if primary == "en":
            return "en"
    return None
