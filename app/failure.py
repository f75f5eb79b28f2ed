"""What a failure says to a person: in their language, without the folders of this machine."""

from __future__ import annotations

from dataclasses import dataclass

from app.labels import Words
from app.quoting import plain
from kb.errors import KBError


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What was wrong and the next step; both safe to print, `todo` may be empty."""

    what: str
    todo: str


def told(error: KBError, words: Words) -> Told:
    """An expected failure in `words`; its own English where no label stands for its reason."""
    if not words.has(f"error.{error.reason}"):
        return Told(what=plain(error.what), todo=plain(error.todo))
    values = {key: plain(value) for key, value in error.values.items()}
    name = values.get("name", "")
    values["name"] = words("word.file", name=name) if name else words("word.the_input")
    what = words(f"error.{error.reason}", **values)
    return Told(what=what, todo=words(f"todo.{error.reason}"))
