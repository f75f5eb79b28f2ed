"""What a failure says to a person: in their language, without the folders of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.labels import Words
from app.quoting import plain
from kb.errors import InputError, KBError


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What was wrong and the next step; both safe to print, `todo` may be empty."""

    what: str
    todo: str


def told(error: KBError, words: Words) -> Told:
    """An expected failure in `words`; its own English where no label stands for its reason."""
    name = plain(error.values.get("name", ""))
    return _told(error, words, words("word.file", name=name) if name else words("word.the_input"))


def sentence(error: KBError, words: Words) -> str:
    """The same in one line."""
    return _line(told(error, words), words)


def why_refused(reason: str, words: Words, *, code: str, values: Mapping[str, str]) -> str:
    """Why a file was not taken, in one line; its name stands elsewhere."""
    return _line(_told(InputError(reason, reason=code, values=values), words, ""), words)


def _told(error: KBError, words: Words, name: str) -> Told:
    what, todo = plain(error.what), plain(error.todo)
    if not words.has(f"error.{error.reason}"):
        return Told(what=what, todo=todo)
    own = {key: plain(value) for key, value in error.values.items()}
    values = {"what": what, "todo": todo} | own | {"name": name}
    step = todo or error.reason != error.usual_reason  # a kind of failure has none of its own
    return Told(
        what=words(f"error.{error.reason}", **values).strip(),
        todo=words(f"todo.{error.reason}", **values) if step else "",
    )


def _line(found: Told, words: Words) -> str:
    return words("word.failure", what=found.what, todo=found.todo) if found.todo else found.what
