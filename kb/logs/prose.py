"""Telling a person's words from program output, line by line."""

from __future__ import annotations

import re

DESCRIPTION_CHARS = 8000
_CJK = re.compile(r"[\u4e00-\u9fff]")
_MACHINE = re.compile(
    r"""^\s{0,200}(?:
      \[\s?[\w.:|,\- ]{1,60}\]              # [rank0], [2024-01-01 12:00:00], [W socket.cpp]
    | \(\w+[ _]?\w*\ pid=                   # (Worker pid=
    | [IWEF]\d{3}|(?:INFO|WARN(?:ING)?|ERROR|DEBUG|CRITICAL|FATAL)\b[\ :\d]
    | (?:19|20)\d\d[-/]\d\d                 # a date
    | \d{1,2}:\d\d:\d\d                     # a clock
    | [A-Z][a-z]{2}\ {1,2}\d{1,2}\ \d\d:    # syslog
    | (?:Traceback|Exception\ raised|During\ handling|The\ above\ exception)\b
    | (?:File\ ".{1,300}",\ line|frame\ \#|\#\d+\ )
    | [\w.]{1,80}(?:Error|Exception|Warning|Exit)\b(?::|$)
    | (?:set|setenv|ulimit|sudo|cd|nvidia-smi|CUDA_VISIBLE_DEVICES=\S*|[A-Z_]{3,40}=\S*)\s
    | [A-Z][A-Z0-9_]{2,60}\s?=              # a setting
    | [$>\#]\ ?\w+\ |[{}()\[\]<>|+*~^=-]+\s*$
    | ['"{]
    | -{3,}|\*{3,}|={3,}
    | [\w./-]{1,80}:\d+(?::\d+)?[:\ ]       # host:pid, file:line
    | \d{1,3}%\s?\||(?=[^%]{0,83}%).{0,80}\d{1,3}%\|    # a bar
    )""",
    re.VERBOSE,
)
_CODE = re.compile(
    r"^\s*(?:import |from \w+ import|def |class |(?:if|for|with|while|elif|try|else)\b.*:$"
    r"|return\b|@\w+$|[\w.]+\(.*\)(?:\s*#.*)?$|[\w.]+(?:, ?[\w.]+)* ?= ?\S.*$|```"
    r"|.*\\$|[\w-]+: \S+$)"
)
_TAGGED = re.compile(r"^\s*\[(?:[A-Za-z][A-Za-z /-]{2,30})\]:? ")
_PLAIN = re.compile(r"^[`\"'(\[*]{0,3}[A-Za-z][A-Za-z'’/+.-]*[`\"')\],.:;!?*]{0,4}$")
_NUMBER = re.compile(r"^[(~<>=x×]{0,2}\d[\d.,]*(?:[kKMGTx%]?[A-Za-z]{0,3})?[).,:;]{0,2}$")
_GLUE = re.compile(
    r"\b(?:the|an?|is|are|was|were|be|has|have|had|i|we|my|our|it|its|this|that|when|while|with"
    r"|without|on|in|at|of|to|for|from|and|or|but|if|not|no|after|before|using|use|between|can"
    r"|cannot|could|does|do|did|how|why|what|then|only|all|same|always|sometimes|just|get|gets|got"
    r"|as|by|than|will|would|might|may|there|any|every)\b",
    re.IGNORECASE,
)
_COMMAND = re.compile(
    r"^\s*(?:\d\. ?)?(?:[$>#] ?)?`?(?:[A-Z][A-Z0-9_]+=\S+ +)*"
    r"(?:(?:export|torchrun|python3?|accelerate|deepspeed|srun|mpirun|docker|swift|llamafactory-cli"
    r"|bash|vllm|xtuner|pip) +\S|\./\S|--\w)"
)
_HANG = re.compile(r"\b(?:hangs?|hanging|hung|stuck|freez\w+|frozen|deadlock\w*)\b", re.IGNORECASE)
_PERSON = re.compile(
    r"\b(?:I|[Ww]e|[Mm]y|[Oo]ur|I'm|I've)\b"
    r"|\b(?:hangs?|hanging|hung|stuck|freez\w+|frozen|deadlock\w*)\b",
)
MIN_TOKENS = 3  # fewer words are a heading or a stray value
MIN_CJK = 4
MIN_GLUE = 4  # articles and prepositions of a sentence; messages of programs are terse
MIN_PLAIN_SHARE = 0.6  # of the words that are no numbers


def is_prose(line: str) -> bool:
    """Whether a person wrote the line rather than a program; commands typed count as written."""
    text = line.strip()
    han = 0 if text.isascii() else len(_CJK.findall(text))
    if _COMMAND.match(text):
        return True
    if _MACHINE.match(line) and not _TAGGED.match(line):
        return han >= 2 * MIN_CJK and not text.startswith(("[", "(", "20"))
    if han >= MIN_CJK or (han >= 2 and len(text) < 6 * han):
        return True
    if _CODE.match(line):
        return False
    if _HANG.search(text):
        return True
    words = [token for token in text.split() if not _NUMBER.match(token)]
    plain = sum(1 for token in words if _PLAIN.match(token))
    if plain < MIN_TOKENS or plain < MIN_PLAIN_SHARE * len(words):
        return False
    return bool(_GLUE.search(text) or _PERSON.search(text))


def is_personal(line: str) -> bool:
    """Whether a line that quotes program output is still a person's sentence."""
    return (
        len(_CJK.findall(line)) >= MIN_CJK
        or bool(_PERSON.search(line))
        or len(_GLUE.findall(line)) >= MIN_GLUE
    )


def description(text: str, *, output: frozenset[int] = frozenset()) -> str:
    """The lines of `text` a person wrote, joined, of bounded length.

    `output` holds numbers of lines (from 1) that hold program output; of those only sentences
    of a person that quote it are kept.
    """
    kept: list[str] = []
    size = 0
    for number, line in enumerate(text.split("\n"), start=1):
        line = line.rpartition("\r")[2] or line[:1000]  # noqa: PLW2901 - what a terminal shows
        if not is_prose(line[:1000]) or (number in output and not is_personal(line)):
            continue
        stripped = " ".join(line.split())
        size += len(stripped) + 1
        if size > DESCRIPTION_CHARS:
            kept.append(stripped[: max(0, DESCRIPTION_CHARS - size)])
            break
        kept.append(stripped)
    return "\n".join(line for line in kept if line)
