"""Telling a person's words from program output, line by line."""

from __future__ import annotations

import re

DESCRIPTION_CHARS = 8000
_CJK = re.compile(r"[\u4e00-\u9fff]")
_WORD = re.compile(r"[A-Za-z][a-z']*(?![\w(=./\\])|[AI](?= )")
_MACHINE = re.compile(
    r"""^\s{0,200}(?:
      \[\s?[\w.:|,\- ]{1,60}\]              # [rank0], [2024-01-01 12:00:00], [W socket.cpp]
    | \(\w+[ _]?\w*\ pid=                   # (Worker pid=
    | (?:[IWEF]|INFO|WARN(?:ING)?|ERROR|DEBUG|CRITICAL|FATAL)\b[\ :\d]
    | (?:19|20)\d\d[-/]\d\d                 # a date
    | \d{1,2}:\d\d:\d\d                     # a clock
    | [A-Z][a-z]{2}\ {1,2}\d{1,2}\ \d\d:    # syslog
    | (?:Traceback|Exception\ raised|During\ handling|The\ above\ exception)\b
    | (?:File\ ".{1,300}",\ line|frame\ \#|\#\d+\ )
    | [\w.]{1,80}(?:Error|Exception|Warning|Exit)\b(?::|$)
    | \d{1,3}%\s?\||.{0,80}\d{1,3}%\|       # a bar
    | (?:export|set|setenv|ulimit|python3?|torchrun|accelerate|deepspeed|srun|mpirun|pip|docker|sudo|cd|nvidia-smi|CUDA_VISIBLE_DEVICES=\S*|[A-Z_]{3,40}=\S*)\s
    | [A-Z][A-Z0-9_]{2,60}\s?=              # a setting
    | [$>\#]\ ?\w+\ |[{}()\[\]<>|+*~^=-]+\s*$
    | ['"{]
    | -{3,}|\*{3,}|={3,}
    | [\w./-]{1,80}:\d+(?::\d+)?[:\ ]       # host:pid, file:line
    )""",
    re.VERBOSE,
)
_CODE = re.compile(r"^\s*(?:import |from \w+ import|def |class |if .*:$|for .*:$|with .*:$|return\b|@|\w+(?:\.\w+)*\(.*\)$|\w+(?:\.\w+)* ?= ?\S+$)")
_SYMBOLS = re.compile(r"[^\w\s\u3000-\u303f\uff00-\uffef\u4e00-\u9fff,.!?;:'\"`()-]")
MIN_WORDS = 4  # fewer words are a heading or a stray value
MIN_CJK = 4
MAX_SYMBOL_SHARE = 0.12
MIN_LETTER_SHARE = 0.55


def is_prose(line: str) -> bool:
    """Whether a person wrote the line rather than a program."""
    text = line.strip()
    if len(text) < 6:
        return bool(len(_CJK.findall(text)) >= MIN_CJK)
    if _MACHINE.match(line) or _CODE.match(line):
        return bool(len(_CJK.findall(text)) >= 2 * MIN_CJK and not text.startswith(("[", "(", "20")))
    if len(_CJK.findall(text)) >= MIN_CJK:
        return True
    words = _WORD.findall(text)
    if len(words) < MIN_WORDS:
        return False
    symbols = len(_SYMBOLS.findall(text))
    letters = sum(len(word) for word in words)
    return symbols <= MAX_SYMBOL_SHARE * len(text) and letters >= MIN_LETTER_SHARE * len(
        text.replace(" ", "")
    )


def description(text: str, *, skip: frozenset[int] = frozenset()) -> str:
    """The lines of `text` a person wrote, joined, of bounded length.

    `skip` holds numbers of lines (from 1) known to be program output.
    """
    kept: list[str] = []
    size = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if number in skip or not is_prose(line):
            continue
        stripped = " ".join(line.split())
        size += len(stripped) + 1
        if size > DESCRIPTION_CHARS:
            kept.append(stripped[: max(0, DESCRIPTION_CHARS - size)])
            break
        kept.append(stripped)
    return "\n".join(line for line in kept if line)
