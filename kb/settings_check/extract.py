"""Find settings in free text: shell, Dockerfile, YAML, Kubernetes, Python, NCCL's own log, prose.

Only what is in force counts: comments, comparisons, a default of another variable and the hints
software prints ("consider passing CUDA_LAUNCH_BLOCKING=1") are not settings.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

# Repeats are bounded where a match can begin anywhere: a line without an end costs linear time.
_ALONE = r"(?<![A-Za-z0-9_$.])"  # no letter before it; a Chinese character may stand there
_NAME = r"[A-Z][A-Z0-9]{0,40}_[A-Z0-9_]{0,80}[A-Z0-9]"
_VALUE = (
    r"""(?:"[^"\n]{0,400}"|'[^'\n]{0,400}'|str\([0-9]{1,18}\)|\$\{[^}\n]{0,200}\}"""
    r"""|[^\s"'`;|&)}\]，。；）、]+)"""
)

# NAME=value of a shell, `docker -e`, `mpirun -x`, `ENV` and of Python keyword arguments. A
# comparison (`NAME == 1`) is none, while `NCCL_SOCKET_IFNAME==eth0` is.
_ASSIGNED = re.compile(rf"{_ALONE}({_NAME}) ?=(?!= ) ?({_VALUE})")
_SUBSCRIPT = re.compile(rf"\[\s*[\"']({_NAME})[\"']\s*\]\s*=(?!=)\s*({_VALUE})")
_CALL = re.compile(
    rf"(?:setdefault|putenv|setenv)\(\s*[\"']({_NAME})[\"']\s*,\s*({_VALUE})", re.IGNORECASE
)
_QUOTED_KEY = re.compile(rf"[\"']({_NAME})[\"']\s*:\s*({_VALUE})")
_YAML_KEY = re.compile(rf"^\s*(?:-\s+)?({_NAME}):\s+({_VALUE})")
_SPACED = re.compile(rf"^\s*(?:ENV|setenv)\s+({_NAME})\s+(?!=)({_VALUE})")
_POWERSHELL = re.compile(rf"\$env:({_NAME})\s*=\s*({_VALUE})", re.IGNORECASE)
_NCCL_ECHO = re.compile(rf"(?<!\w)({_NAME}) set by environment to ({_VALUE})")
# "I set NAME to 7200", "把 NAME 设置成 0": only values that are plainly some.
_PROSE = re.compile(
    rf"{_ALONE}({_NAME})[`'\"”]?\s?(?:(?:is |was )?(?:set )?(?:to|as) "
    r"|(?:都|已经?)?(?:设置|设定|设|改|调整|调大|调|配置)(?:成|为|到|了)\s?)[`'\"“]?"
    r"(-?[0-9][\w.]{0,40}|(?:[Tt]rue|[Ff]alse|on|off|INFO|WARN|TRACE|DETAIL)\b)"
)
# Each with a piece that stands in any match: looking for that is ten times as fast.
_LINE_FORMS = (
    ("=", _ASSIGNED),
    ("[", _SUBSCRIPT),
    ("(", _CALL),
    (":", _QUOTED_KEY),
    (":", _YAML_KEY),
    ("", _SPACED),
    ("$", _POWERSHELL),
    ("set by", _NCCL_ECHO),
    ("_", _PROSE),
)
_POD_ENTRY = re.compile(
    rf"[\"']?name[\"']?\s*:\s*[\"']?({_NAME})[\"']?"
    rf"\s{{0,80}},?\s{{0,80}}[\"']?value[\"']?\s*:\s*({_VALUE})"
)

# Options and configuration keys: `--ddp_timeout 7200`, `a.b=7200`, `key: 7200`.
_FLAG = re.compile(rf"(?<![\w-])--([a-z][\w.-]{{0,80}}?)(?:=|\s+)({_VALUE})")
_KEY = re.compile(r"(?<![\w.-])[\"']?((?:[a-z_]\w*\.)*[a-z]\w*)[\"']?\s*[=:]\s*([0-9][0-9_.]*)")
OPTIONS_CACHED = 4  # sets of option names; the knowledge has two
DELTA_OPTION = "timeout"  # so common a word that it counts only where a timedelta is given
_TIMEDELTA = re.compile(r"(?<!\w)timeout\s*=\s*(?:\w+\.)?timedelta\(([^()\n]*)\)")
_DELTA_PART = re.compile(
    r"(?:(?<!\w)(\w{1,20})\s{0,8}=\s{0,8})?"
    r"([0-9_.]{1,20}(?:\s{0,8}\*\s{0,8}[0-9_.]{1,20}){0,8})\s{0,8}(?:,|$)"
)
_SECONDS = {
    "weeks": 604_800.0,
    "days": 86_400.0,
    "hours": 3_600.0,
    "minutes": 60.0,
    "seconds": 1.0,
    "milliseconds": 0.001,
}

_COMMENT = re.compile(r"(?:^|\s)#(?!SBATCH|PBS|BSUB|COBALT)")
_SHELL_DEFAULT = re.compile(r"\$\{\w{1,80}:?[-=]([^}]{0,400})\}\Z")
_WRAPPED_NUMBER = re.compile(r"str\(([0-9]{1,18})\)\Z")
# What programs print about settings nobody set: error hints of torch, NCCL, Accelerate, tokenizers.
_HINTS = re.compile(
    r"For debugging consider|(?:[Rr]un|[Rr]erun) with NCCL_DEBUG|Explicitly set the environment"
    r"|Please set `|ProcessGroupNCCL\.[ch]pp|you believe this is a false positive"
)
_PRINTED_OPTIONS = re.compile(r"initialized with following options|initialization options")


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingMention:
    """A setting that stands in a text.

    `name` is an environment variable as written, or an option in lower case with ``_``; `value`
    is without quotes, a timedelta in seconds; `line` counts from 1 in `file` (empty: the only
    one) and is 0 where it is not known. `is_default` says that the value holds only where
    the variable is not set outside (``${NAME:-value}``).
    """

    name: str
    value: str
    line: int
    is_option: bool = False
    file: str = ""
    is_default: bool = False


def find_settings(text: str, options: Collection[str] = ()) -> tuple[SettingMention, ...]:
    """The settings of `text` in the order of their lines, each name with one value once.

    `options` are the known option names (lower case, dotted or not); environment variables are
    found by their form alone.
    """
    mentions: dict[tuple[str, str], SettingMention] = {}
    for setting in all_mentions(text, options):
        mentions.setdefault((setting.name, setting.value), setting)
    return tuple(mentions.values())


def all_mentions(text: str, options: Collection[str] = ()) -> list[SettingMention]:
    """As `find_settings`, with the repeats of a name and value."""
    mentions = (*_by_line(text, _with_last_parts(frozenset(options))), *_pod_entries(text))
    return sorted(mentions, key=lambda item: (item.line, item.name))


@lru_cache(OPTIONS_CACHED)
def _with_last_parts(names: frozenset[str]) -> frozenset[str]:
    """Names of options, and the last part of dotted ones."""
    return names | {name.rpartition(".")[2] for name in names}


def one_text(lines: Iterable[str]) -> str:
    """Lines as one text: a line that holds breaks of other kinds (U+2028) stays one."""
    return "\n".join(" ".join(line.splitlines()) for line in lines)


def without_comment(line: str) -> str:
    """What of a line is in force: all before a comment."""
    comment = _COMMENT.search(line)
    return line[: comment.start()] if comment else line


def _by_line(text: str, options: frozenset[str]) -> Iterator[SettingMention]:
    printed = False
    for number, line in enumerate(text.splitlines(), start=1):
        printed = _PRINTED_OPTIONS.search(line) is not None or (
            printed and _YAML_KEY.match(line) is not None
        )
        if printed or _HINTS.search(line):
            continue
        code = without_comment(line)
        yield from _variables(code, number)
        yield from _options(code, number, options)


def _variables(code: str, number: int) -> Iterator[SettingMention]:
    for piece, form in _LINE_FORMS:
        for match in form.finditer(code) if piece in code else ():
            yield SettingMention(
                name=match[1].upper(),
                value=plain_value(match[2]),
                line=number,
                is_default=_SHELL_DEFAULT.match(match[2].strip("\"'")) is not None,
            )


def _pod_entries(text: str) -> Iterator[SettingMention]:
    number, start, force_end = 0, 0, 0  # of the line a match begins in; what follows is a comment
    end = -1
    for match in _POD_ENTRY.finditer(text):
        while match.start() > end:
            number, start = number + 1, end + 1
            end = text.find("\n", start)
            end = len(text) if end < 0 else end
            force_end = -1
        if force_end < 0:
            force_end = start + len(without_comment(text[start:end]))
        if match.start() <= force_end:
            yield SettingMention(name=match[1], value=plain_value(match[2]), line=number)


def _options(code: str, number: int, options: frozenset[str]) -> Iterator[SettingMention]:
    for piece, form in (("--", _FLAG), ("", _KEY)):
        for match in form.finditer(code) if piece in code else ():
            name = match[1].replace("-", "_")
            for candidate in (name, name.rpartition(".")[2]):
                if candidate in options and candidate != DELTA_OPTION:
                    yield SettingMention(
                        name=candidate, value=plain_value(match[2]), line=number, is_option=True
                    )
                    break
    if DELTA_OPTION in options and "timedelta(" in code:
        for match in _TIMEDELTA.finditer(code):
            seconds = _seconds(match[1])
            if seconds is not None:
                yield SettingMention(
                    name=DELTA_OPTION, value=f"{seconds:.10g}", line=number, is_option=True
                )


def _seconds(arguments: str) -> float | None:
    """Seconds of the arguments of timedelta; None where they are not plain numbers."""
    total = 0.0
    seen = False
    for match in _DELTA_PART.finditer(arguments):
        unit = match[1] or "days"  # the first positional argument of timedelta
        if unit not in _SECONDS:
            return None
        factors = (factor.strip().replace("_", "") for factor in match[2].split("*"))
        try:
            total += _SECONDS[unit] * math.prod(float(factor) for factor in factors)
        except ValueError:
            return None
        seen = True
    return total if seen else None


def plain_value(value: str) -> str:
    """The value without quotes, ``str()``, ``${NAME:-default}`` and the end of a sentence."""
    value = value.strip()
    quoted = len(value) > 1 and value[0] in "\"'" and value[-1] == value[0]
    value = value[1:-1] if quoted else value.rstrip(",.:\\")
    for form in (_WRAPPED_NUMBER, _SHELL_DEFAULT):
        match = form.match(value)
        if match:
            value = match[1]
    return value.strip()
