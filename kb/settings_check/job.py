"""The shape of a job: what scripts, environments and configurations say of nodes and processes.

A launch command is read with what is in force for it: its own options, the variables set before
it, and the header or configuration around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kb.settings_check.extract import all_mentions, one_text, plain_value, without_comment
from kb.types.incident import TextLine
from kb.types.knowledge import JobSetting

LINE_CHARS = 1000  # a launch command on one line is shorter; what follows is data
QUOTE_CHARS = 300
MAX_LINES = 2000
HEADING = "rank_heading"
SUMMED = "replicas"  # of Kubernetes: those of the master and of the workers are nodes together
COUNTS = ("nodes", "processes_per_node", "processes")  # options that make a line a launch command
_VALUE = r"""(?:"[^"\n]*"|'[^'\n]*'|\$\{[^}\n]{0,200}\}[^\s"'`;|&)\]]{0,80}|[^\s"'`;|&)\]]+)"""
_REFERENCE = re.compile(r"\$\{?(\w+)(?::?[-=]([^}]*))?\}?\Z")
_HEADER = re.compile(r"\s*#(?:SBATCH|PBS|BSUB)\b")
_LIST_ITEM = re.compile(r"[\s\[\"',-]*-[a-z]")  # an argument on a line of its own
_ASSIGNMENT = re.compile(r"\s*(?:export\s+|ENV\s+|set\s+)?[A-Z]\w*=")
_INTEGER = re.compile(r"[0-9]{1,7}\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobValue:
    """A value that stands in a text for one property of the job.

    `setting` is an id of data/job_settings.yaml, `name` as written. `is_option` says that it is an
    argument of a command, `is_default` that it holds only where the variable is not set outside.
    `section` is the node, rank or file the value is of, empty where there is one.
    `text` is the piece of the line where a form that has no name gave the value.
    `statement` counts commands and lines of the text, a command over several lines once.
    """

    setting: str
    name: str
    value: str
    line: int
    quote: str
    statement: int = 0
    is_option: bool = False
    is_default: bool = False
    text: str = ""
    section: str = ""
    file: str = ""

    @property
    def shown(self) -> str:
        """Name and value as a person reads them."""
        if self.text:
            return self.text
        separator = "=" if self.name.isupper() or not self.is_option else " "
        return f"{self.name}{separator}{self.value}"

    @property
    def count(self) -> int | None:
        """The value as a number; of a range (``1:4``) the least."""
        least = self.value.partition(":")[0]
        return int(least) if _INTEGER.match(least) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchCommand:
    """What is in force for one launch: the value of each property, by the property's id."""

    values: Mapping[str, JobValue]

    def get(self, setting: str) -> JobValue | None:
        """The value of a property that stands in the text and is no mere default."""
        value = self.values.get(setting)
        return None if value is None or value.is_default else value

    def count(self, setting: str) -> int | None:
        """A property as a number."""
        value = self.get(setting)
        return value.count if value else None

    @property
    def processes_per_node(self) -> int | None:
        """How many processes a node starts, where the text says it; tasks of Slurm last."""
        if own := self.count("processes_per_node"):
            return own
        total, nodes = self.count("processes"), self.count("nodes") or 1
        if total:
            return None if total % nodes else total // nodes
        tasks = self.count("tasks_per_node") or 0
        return tasks if tasks > 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReading:
    """All values of a text in the order of its lines, and the launches they belong to."""

    values: tuple[JobValue, ...] = ()
    launches: tuple[LaunchCommand, ...] = ()

    def of(self, *settings: str) -> list[JobValue]:
        """The values of some properties, in the order of their lines."""
        return [value for value in self.values if value.setting in settings]


class JobReader:
    """Reads the shape of a job; made once from data/job_settings.yaml."""

    def __init__(self, known: Sequence[JobSetting]) -> None:
        self._setting_of = {_plain(name): item.id for item in known for name in item.names}
        names = sorted(self._setting_of, key=lambda name: (-len(name), name))
        either = "|".join(name.replace("_", "[-_]") for name in names)
        self._named = re.compile(
            rf"(?<![\w$.{{-])(?P<dash>--?)?(?P<name>{either})(?![\w-])[\"']?"
            rf"(?:\s?(?:=(?!=)|:(?=\s))\s?|\s+|,\s?)(?P<value>{_VALUE})"
        )
        self._forms = [(item.id, re.compile(form)) for item in known for form in item.forms]
        self._switches = [
            (item.id, re.compile(rf"(?<![\w-]){re.escape(flag)}(?![\w=-])"), flag, value)
            for item in known
            for flag, value in item.switches.items()
        ]

    def read(self, lines: Sequence[TextLine]) -> JobReading:
        """The shape of the job in `lines`."""
        lines = [replace(line, text=line.text[:LINE_CHARS]) for line in lines[:MAX_LINES]]
        statements = _statements(lines)
        values: list[JobValue] = []
        for line, statement in zip(lines, statements, strict=True):
            values += self._of_line(line, statement)
        values += self._of_pods(lines, statements)
        values.sort(key=lambda value: (value.statement, value.line))
        resolved = _resolved(_with_sections(values))
        return JobReading(values=tuple(resolved), launches=tuple(_launches(resolved)))

    def _of_line(self, line: TextLine, statement: int) -> Iterator[JobValue]:
        text = without_comment(line.text)

        def value(setting: str, name: str, text_value: str, *, option: bool) -> JobValue:
            default = _REFERENCE.match(text_value.strip("\"'"))
            return JobValue(
                setting=setting,
                name=name,
                value=plain_value(text_value),
                line=line.number,
                file=line.file,
                quote=text.strip()[:QUOTE_CHARS],
                statement=statement,
                is_option=option,
                is_default=bool(default and default[2] is not None),
            )

        is_header = _HEADER.match(text) is not None
        for match in self._named.finditer(text):
            separated = text[match.end("name") : match.start("value")].strip("\"' ")
            dashed = match["dash"] == "--" or bool(match["dash"] and match["name"] == "npernode")
            if separated in ("=", ":") or dashed:
                setting = self._setting_of[_plain(match["name"])]
                name = f"{match['dash'] or ''}{match['name']}"
                yield value(setting, name, match["value"], option=dashed and not is_header)
        for setting, form in self._forms:
            for match in form.finditer(line.text if setting == HEADING else text):
                item = value(setting, "", match["value"], option=False)
                yield replace(item, text=match[0].strip())
        for setting, form, flag, stands_for in self._switches:
            if form.search(text):
                yield replace(value(setting, flag, stands_for, option=True), text=flag)

    def _of_pods(self, lines: Sequence[TextLine], statements: Sequence[int]) -> Iterator[JobValue]:
        """Variables written in ways that only `kb.settings_check.extract` knows."""
        for item in all_mentions(one_text(line.text for line in lines)):
            setting = self._setting_of.get(_plain(item.name))
            line = lines[item.line - 1]
            text = line.text
            if setting and not any(m["name"] == item.name for m in self._named.finditer(text)):
                below = lines[item.line].text if item.line < len(lines) else ""
                quote = " ".join(f"{text.strip()} {below.strip()}".split())
                yield JobValue(
                    setting=setting,
                    name=item.name,
                    value=item.value,
                    line=line.number,
                    file=line.file,
                    quote=(text.strip() if item.value in text else quote)[:QUOTE_CHARS],
                    statement=statements[item.line - 1],
                    is_default=item.is_default,
                )


def _plain(name: str) -> str:
    return name.replace("-", "_")


def _statements(lines: Sequence[TextLine]) -> list[int]:
    """The number of the statement of each line: a backslash or a list of arguments goes on."""
    numbers: list[int] = []
    statement = 0
    goes_on = False
    was_item = False
    file = ""
    for line in lines:
        is_item = _LIST_ITEM.match(line.text) is not None
        if line.file != file or not (goes_on or (is_item and was_item)):
            statement += 1
        numbers.append(statement)
        goes_on, was_item, file = line.text.rstrip().endswith("\\"), is_item, line.file
    return numbers


def _with_sections(values: Sequence[JobValue]) -> list[JobValue]:
    """The values, each with the heading above it, or with its file where there are several."""
    section = file = ""
    several = len({value.file for value in values}) > 1
    placed: list[JobValue] = []
    for value in values:
        if several and value.file != file:
            section = file = value.file
        if value.setting == HEADING:
            section = value.value
        placed.append(replace(value, section=section))
    return placed


def _resolved(values: Sequence[JobValue]) -> list[JobValue]:
    """Values with references to variables of the text filled in; others with one are left out."""
    known: dict[str, JobValue] = {}
    resolved: list[JobValue] = []
    for value in values:
        match = _REFERENCE.match(value.value)
        item = value
        if match:
            source = known.get(match[1])
            if source is None:
                continue
            item = replace(
                source, setting=value.setting, statement=value.statement, is_option=value.is_option
            )
        elif "$" in value.value:
            continue
        if item.name == SUMMED and (other := known.get(SUMMED)):
            item = replace(item, value=str((item.count or 0) + (other.count or 0)))
        known[value.name] = item
        resolved.append(item)
    return resolved


def _launches(values: Sequence[JobValue]) -> Iterator[LaunchCommand]:
    """The launch commands, each with what is in force; without any, all of the text as one."""
    own: dict[int, dict[str, JobValue]] = {}
    for value in values:
        if value.setting in COUNTS and value.is_option:
            own.setdefault(value.statement, {})
    for value in values:
        if value.statement in own:
            own[value.statement][value.setting] = value
    around = [value for value in values if value.statement not in own]
    for statement, launch in own.items():
        before = {v.setting: v for v in around if v.statement < statement}
        after = {v.setting: v for v in reversed(around) if v.statement > statement}
        yield LaunchCommand(values={**after, **before, **launch})
    if not own and around:
        yield LaunchCommand(values={v.setting: v for v in around})
