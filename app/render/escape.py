"""Making untrusted text harmless: for a terminal, and for Markdown.

Logs are written by anyone. A line may carry escape sequences that move the cursor or set the
window's title, characters that reverse the reading order, or Markdown and HTML. What passes
`plain` or `plain_block` is safe to print; the `md_*` functions make it safe inside Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

Value = TypeVar("Value")

# CSI, OSC/DCS/SOS/PM/APC strings up to their end, two-byte escapes; 7-bit and 8-bit forms.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_MARKUP = re.compile(r"[\\`*\[\]<&|~$]|(?<![^\W_])_|_(?![^\W_])")
_LINE_START = re.compile(r"^([-+=:#>]|[0-9]{1,9}(?=[.)]))")
_AUTOLINK = re.compile(r"(?i)(://|www\.|mailto:)")
_URL = re.compile(r"https?://[^\s<>\\\"'`()\[\]{}|^\x00-\x20\x7f]+\Z", re.IGNORECASE)
_TICKS = re.compile(r"`+")
TAB = "    "
OF_LINES = frozenset({"command", "commands"})  # fields whose text keeps its lines


def plain(text: str) -> str:
    """`text` as one line of printable characters: no escapes, controls or reordering marks."""
    clean = _ESCAPES.sub("", text)
    if not clean.isprintable():
        clean = "".join(char for char in clean if char.isprintable() or char.isspace())
    return " ".join(clean.split())


def plain_block(text: str) -> str:
    """`text` as printable lines: breaks and indentation stay, tabs become spaces."""
    lines = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\t", TAB).split("\n")
    return "\n".join(_printable(line).rstrip() for line in lines).strip("\n")


def _printable(line: str) -> str:
    """Drop what is not printable: controls, surrogates, bidirectional and zero-width marks."""
    return line if line.isprintable() else "".join(char for char in line if char.isprintable())


def printable(value: Value) -> Value:
    """The same value with every text in it printable: commands as blocks, all else on one line."""
    made: Value = _cleaned(value, plain)
    return made


def _cleaned(value: Any, clean: Callable[[str], str]) -> Any:  # noqa: ANN401 - any value
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, tuple):
        return tuple(_cleaned(item, clean) for item in value)
    if isinstance(value, dict):
        return {plain(key): _cleaned(item, clean) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        texts = {
            field.name: _cleaned(
                getattr(value, field.name), plain_block if field.name in OF_LINES else plain
            )
            for field in fields(value)
        }
        return replace(value, **texts)
    return value


def safe_url(url: str) -> str:
    """The address if it is a plain http(s) one, else an empty string."""
    return url if _URL.match(url) else ""


def md_text(text: str) -> str:
    """`text` as Markdown prose that renders as these characters and nothing else."""
    escaped = _MARKUP.sub(r"\\\g<0>", plain(text))
    escaped = _AUTOLINK.sub(lambda match: _break_autolink(match[0]), escaped)
    return _LINE_START.sub(_escape_line_start, escaped)


def _break_autolink(text: str) -> str:
    """Escape a sign of ``://``, ``www.`` or ``mailto:`` so that no renderer links it by itself."""
    return text.replace(":", "\\:").replace(".", "\\.")


def _escape_line_start(match: re.Match[str]) -> str:
    """Escape a list, heading or numbering sign at the start, such as ``-`` or ``1.``."""
    return f"{match[1]}\\" if match[1].isdigit() else f"\\{match[1]}"


def md_code(text: str) -> str:
    """`text` as an inline code span longer than any run of backticks in it; empty stays empty."""
    line = plain(text)
    if not line:
        return ""
    ticks = "`" * _free_run(line, shortest=1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{pad}{line}{pad}{ticks}"


def md_fence(text: str, *, info: str = "", indent: str = "") -> str:
    """`text` as a fenced block whose fence is longer than any run of backticks in it.

    `indent` is put before every line, for a block inside a list item.
    """
    block = plain_block(text)
    fence = "`" * _free_run(block, shortest=3)
    lines = [fence + info, *block.split("\n"), fence]
    return "\n".join((indent + line).rstrip() for line in lines)


def _free_run(text: str, *, shortest: int) -> int:
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    return max(shortest, longest + 1)


def md_link(text: str, url: str) -> str:
    """A Markdown link; where the address is not plain http(s), the text and the address as code."""
    if safe_url(url):
        return f"[{md_text(text)}](<{url}>)"
    return " ".join(part for part in (md_text(text), md_code(url)) if part)
