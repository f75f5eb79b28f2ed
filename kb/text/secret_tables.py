"""Secrets in a table whose first row names them: of Markdown, of a database, of commas."""

from __future__ import annotations

import re

from kb.text.secret_rule import CHOSEN, KEYS_OF_SECRETS, MARK, PLAIN_VALUE, RANDOM

MAX_CHARS = 4000  # of a table below its first row: the rules see a long text in pieces
_NAME = (
    rf"(?:[\w.-]{{0,32}}?(?:{KEYS_OF_SECRETS}|pwd|passphrase|psk)|(?:root|登录|初始|默认|管理员|bmc|ipmi)?"
    r" ?(?:密码|口令|密钥|秘钥)|pass|token|令牌)"
)
_HEAD = re.compile(rf"(?i){_NAME}")
_MAX_NAME = 64  # characters of a column's name
_RULE = " \t\r|+:=─━┼│┃-"  # of what the line below a first row is made
MIN_RULE = 3
# Words of a language stand below "token", too.
_VALUE = re.compile(
    rf"(?!(?i:{PLAIN_VALUE})|<redacted)(?!(?-i:[a-z]+[0-9]{{0,2}}|[\w./-]+/[\w./-]+)\Z)"
    rf"(?:{CHOSEN}|{RANDOM})"
)
_BLANKS = " \t\r`*\"'"
_SIGNS = ("|", "│", "┃", "\t", ",", ";")
# Columns that stand beside one of secrets, where only blanks part them.
_BESIDE = re.compile(
    "host|hostname|node|ip|address|user|username|name|account|login|port|id|email|role|env"
    "|主机名?|节点|机器|用户名?|[账帐]号|地址|端口"
)


def _cells(line: str, sign: str) -> list[str]:
    """The cells of a line, with what blanks they have."""
    return re.split(r"(?<=\S)[ \t]+(?=\S)", line) if sign == " " else line.split(sign)


def _head(line: str) -> tuple[str, list[int], int] | None:
    """Of a first row: what parts its cells, which of them name secrets, and how many there are."""
    for sign in (*(sign for sign in _SIGNS if sign in line), " "):
        cells = _cells(line, sign)
        if any(cell.strip().isdigit() for cell in cells):  # a row of values
            continue
        columns = [
            n for n, cell in enumerate(cells) if _HEAD.fullmatch(cell.strip(_BLANKS)[:_MAX_NAME])
        ]
        names = {cell.strip().lower() for cell in cells}
        if columns and len(cells) > 1 and (sign != " " or any(map(_BESIDE.fullmatch, names))):
            return sign, columns, len(cells)
    return None


class SecretTable:
    """The cells below a name of secrets, as far as the rows have as many cells as the first."""

    kind = "secret"
    triggers = ("pass", "pw", "secret", "key", "token", "cred", "psk", "密", "口令", "令牌")
    gate = rf"{KEYS_OF_SECRETS}|pwd|psk|密码|口令|密钥|秘钥|令牌|(?:pass|token)[`*\"' \t]*[|│┃,;]"
    closer = (
        rf"(?:{KEYS_OF_SECRETS}|pwd|psk|pass|token|密码|口令|密钥|秘钥|令牌)[`*\"']*(?:[|│┃,;]|\s)"
    )

    def apply(self, text: str) -> tuple[str, int]:
        """The text with marks for the values below such a name, and how many these are."""
        lines = text.split("\n")
        count = 0
        head: tuple[str, list[int], int] | None = None
        left = 0
        for n, line in enumerate(lines):
            left -= len(line) + 1
            if head and left > 0 and len(_cells(line, head[0])) == head[2]:
                lines[n], marks = _marked(line, head[0], head[1])
                count += marks
                continue
            if head and left > 0 and len(line) - len(line.rstrip(_RULE)) >= MIN_RULE:
                continue
            named = len(line) < MAX_CHARS and any(word in line.lower() for word in self.triggers)
            head = _head(line) if named else None
            left = MAX_CHARS
        return "\n".join(lines), count


def _marked(line: str, sign: str, columns: list[int]) -> tuple[str, int]:
    """A row with marks in these columns, and how many."""
    count = 0
    start = 0
    for n, cell in enumerate(_cells(line, sign)):
        at = line.index(cell, start)
        start = at + len(cell)
        value = cell.strip(_BLANKS)
        if n in columns and _VALUE.fullmatch(value):
            inner = line.index(value, at)
            mark = MARK.format(SecretTable.kind)
            line = line[:inner] + mark + line[inner + len(value) :]
            start += len(mark) - len(value)
            count += 1
    return line, count
