"""What a failure says to a person: in their language, without the folders of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.render.escape import plain
from kb.errors import InputError, KBError
from kb.knowledge.labels import Words
from kb.text.redact import redact


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorText:
    """What was wrong and the next step, both without secrets and safe to print.

    What was wrong quotes what somebody sent; `todo` may be empty.
    """

    what: str
    todo: str


def error_text(error: KBError, words: Words) -> ErrorText:
    """An expected failure in `words`; its own English where no label stands for its reason."""
    name = plain(error.values.get("name", ""))
    return _text_of(
        error, words, words("word.file", name=name) if name else words("word.the_input")
    )


def error_sentence(error: KBError, words: Words) -> str:
    """The same in one line."""
    return _line(error_text(error, words), words)


def why_refused(reason: str, words: Words, *, code: str, values: Mapping[str, str]) -> str:
    """Why a file was not taken, in one line; its name stands elsewhere."""
    return _line(_text_of(InputError(reason, reason=code, values=values), words, ""), words)


def _text_of(error: KBError, words: Words, name: str) -> ErrorText:
    what, todo = plain(error.what), plain(error.todo)
    if not words.has(f"error.{error.reason}"):
        return _without_secrets(what, todo)
    own = {key: plain(value) for key, value in error.values.items()}
    values = {"what": what, "todo": todo} | own | {"name": name}
    step = todo or error.reason != error.usual_reason  # a kind of failure has none of its own
    return _without_secrets(
        words(f"error.{error.reason}", **values).strip(),
        words(f"todo.{error.reason}", **values) if step else "",
    )


def _without_secrets(what: str, todo: str) -> ErrorText:
    return ErrorText(what=redact(what)[0], todo=redact(todo)[0])


def _line(text: ErrorText, words: Words) -> str:
    return words("word.failure", what=text.what, todo=text.todo) if text.todo else text.what
