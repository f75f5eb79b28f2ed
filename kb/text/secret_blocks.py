"""Secrets that only the lines around them tell: a manifest of Kubernetes, a value that goes on."""

from __future__ import annotations

import re
from itertools import accumulate, pairwise

from kb.text.secret_rule import MARK, RANDOM

_KIND = re.compile(r"\bkind[\"']?:[ \t]{0,4}[\"']?Secret\b")
_NEXT = re.compile(r"(?:^|[ \t])---[ \t]{0,16}$")
_DATA = re.compile(r"(?:^|(?<=[ \t:>]))(?:data|stringData):[ \t]{0,16}$")
_ENTRY = re.compile(
    r"([ \t]{1,16}[\w.-]{1,253}:[ \t]{1,16}[\"']?)(?!<redacted|[|>][+-]?[ \t]*$)[^\s\"']{4,4096}"
)
_JSON_DATA = re.compile(r"(?<=[\"']data[\"']:)[ \t]{0,4}\{[^{}]{1,65536}\}")
_JSON_ENTRY = re.compile(
    r"([\"'][\w.-]{1,253}[\"'][ \t]{0,4}:\s{0,8}[\"'])(?!<redacted)[^\"'\n]{4,4096}"
)
_BROKEN = re.compile(r"<redacted:(?:token|secret|cookie)>['\"]?(\\?)[ \t]{0,4}$")
_REST = re.compile(
    rf"([ \t]{{0,16}}['\"]?)({RANDOM}|[A-Za-z0-9_+/=-]{{8,4096}})(['\"]?\\?[ \t]{{0,4}}$)?"
)


def _is_drawn(text: str) -> bool:
    """Whether letters are drawn by chance: figures among them, or their case changes all the time.

    In a name of joined words it changes twice a word.
    """
    changes = sum(a.islower() != b.islower() for a, b in pairwise(text))
    return re.fullmatch(RANDOM, text) is not None or (text.isalpha() and 3 * changes >= len(text))


class SecretManifest:
    """The values of a Kubernetes manifest whose kind is Secret, whatever their names."""

    kind = "secret"
    triggers = ("kind",)
    gate = closer = r"\bkind[\"']?:[ \t]*[\"']?secret\b"

    def apply(self, text: str) -> tuple[str, int]:
        """The text with marks for the values below ``data:``, and how many these are."""
        if not _KIND.search(text):
            return text, 0
        mark = MARK.format(self.kind)
        marks = text.count(mark)
        text = _JSON_DATA.sub(lambda data: _JSON_ENTRY.sub(rf"\g<1>{mark}", data[0]), text)
        count = text.count(mark) - marks
        lines = text.split("\n")
        documents = list(accumulate(_NEXT.search(line) is not None for line in lines))
        secret = {documents[n] for n, line in enumerate(lines) if _KIND.search(line)}
        column = -1
        for n, line in enumerate(lines):
            head = _DATA.search(line)
            if head:
                column = head.start() if documents[n] in secret else -1
            elif column >= 0:
                entry = _ENTRY.match(line, column)
                if entry:
                    lines[n] = f"{line[:column]}{entry[1]}{mark}{line[entry.end() :]}"
                    count += 1
                elif not line[column : column + 1].isspace():
                    column = -1
        return "\n".join(lines), count


class ContinuedSecret:
    """What follows a removed value on the next line: behind a backslash, or cut for width."""

    kind = "secret"
    triggers = ("\n",)
    gate = closer = r"<redacted:(?:token|secret|cookie)>['\"]?\\?[ \t]*\n"

    def apply(self, text: str) -> tuple[str, int]:
        """The text with marks for what goes on, line after line, and how many these are."""
        lines = text.split("\n")
        count = 0
        for n in range(1, len(lines)):
            before = _BROKEN.search(lines[n - 1][-64:])
            rest = _REST.match(lines[n]) if before else None
            if before is None or rest is None:
                continue
            whole = rest[3] is not None  # the line is one value
            drawn = whole and len(rest[2]) >= 16 and _is_drawn(rest[2])
            if before[1] or drawn:
                lines[n] = rest[1] + MARK.format(self.kind) + lines[n][rest.end(2) :]
                count += 1
        return "\n".join(lines), count
