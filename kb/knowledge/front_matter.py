"""Markdown files with YAML front matter: the form of cases and notes."""

from __future__ import annotations

import re
from pathlib import Path

from kb.errors import DataError

FRONT_LINE = 2  # of the file: the first line of the YAML, below the first ---
_FRONT = re.compile(r"\A---\r?\n(.*?)\r?\n---\r?\n(.*)\Z", re.DOTALL)
_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\Z")


def read_markdown(path: Path) -> str:
    """The text of a file.

    Raises:
        DataError: the file is missing or not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: {error}", todo="save the file as readable UTF-8") from error


def split_front_matter(text: str, name: str) -> tuple[str, str]:
    """The YAML and the body; `name` is the file's, for messages.

    Raises:
        DataError: there is no front matter.
    """
    match = _FRONT.match(text)
    if match is None:
        raise DataError(f"{name}: no front matter", todo="start the file with --- lines and YAML")
    return match[1], match[2]


def check_id(identifier: str, name: str) -> None:
    """Check that an id is the file's name and has its form.

    Raises:
        DataError: it is not.
    """
    if f"{identifier}.md" != name or not _SLUG.match(identifier):
        raise DataError(
            f"{name}: id {identifier!r} is not the file's name",
            todo="use lower-case words joined by '-' for both",
        )
