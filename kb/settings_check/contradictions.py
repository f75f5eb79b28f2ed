"""What settings contradict: one another, the machine's own listings, or what the log shows.

One function a relation; data/contradictions.yaml says what each means and weighs. A setting that
is only named makes none of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from kb.knowledge.load import Knowledge
from kb.settings_check.extract import find_settings
from kb.settings_check.job import QUOTE_CHARS, JobReader, JobReading, JobValue, LaunchCommand
from kb.settings_check.rules import milliseconds, number, switch
from kb.types.incident import Event, Fact, Incident, LogReading, TextLine
from kb.types.knowledge import Bilingual, Contradiction
from kb.types.vocabulary import SETTING_EVENT, EventRole, LineKind

LOOPBACK = re.compile(
    r"(?:\w+://)?(?:localhost|127\.[0-9]+\.[0-9]+\.[0-9]+|0\.0\.0\.0|\[?::1\]?)(?::[0-9]+)?/?\Z"
)
LOCAL_INTERFACES = ("lo", "docker0")
MIN_WORK_S = 60  # shorter work is no reason for a timeout, whatever is set
QUOTED_INTERFACES = 8
INTERFACE_ROW, RDMA_ROW = "interface_row", "rdma_row"  # events that list what the machine has
OF_A_NODE = ("node_rank", "own_address")  # another value on every node
# What all ranks have to share, by its id in data/job_settings.yaml.
SHARED = ("master_address", "master_port", "nodes", "world_size", "group_option")
_BRANCH = re.compile(
    r"\s*(?:if|elif|else|case|for|while|function)\b|.*\b(?:then|esac|fi)\s*$|\s*\w+\(\)\s*\{"
)
_CLOCK = re.compile(
    r"\[(?:([0-9]{1,3}):)?([0-9]{1,2}):([0-9]{2})<"
)  # elapsed time of a progress bar
_PURE_ASSIGNMENT = re.compile(
    r"\s*(?:(?:export|ENV|set(?:env)?)\s+)?\w+\s?=\s?\S++(?:\s+\w+=\S++)*+\s*$"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingConflict:
    """Settings that contradict something: which relation, which values, and all of it in short."""

    contradiction: Contradiction
    values: tuple[JobValue, ...]
    detail: str

    @property
    def first(self) -> JobValue:
        """The value that is wrong, or the first of those that cannot all be right."""
        return self.values[0]

    def fact(self) -> Fact:
        """The conflict as an observation of the diagnosis."""
        first = self.first
        return Fact(
            name=self.contradiction.id,
            line=first.line,
            quote=first.quote,
            detail=self.detail,
            file=first.file,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Evidence:
    """What the relations look at: the job in the text, and what the log shows.

    `timeouts` are the settings of the group's timeout with their seconds, `shared` the names of
    settings that all ranks have to share, `work` the events of work that others may wait for.
    """

    job: JobReading
    incident: Incident
    events: tuple[Event, ...] = ()
    lines: tuple[TextLine, ...] = ()
    timeouts: tuple[tuple[JobValue, float], ...] = ()
    shared: frozenset[str] = frozenset()
    work: tuple[Event, ...] = ()


_Hit = tuple[str, Sequence[JobValue], str]  # id, values, what else belongs to the detail


class ContradictionFinder:
    """Finds contradictions; made once from the knowledge."""

    def __init__(self, knowledge: Knowledge) -> None:
        known = knowledge.job_settings
        self._reader = JobReader(known)
        self._contradictions = {item.id: item for item in knowledge.contradictions}
        self._timeouts = {
            item.id.rpartition(".")[2]: item for item in knowledge.advice if item.sets_group_timeout
        }
        self._shared = frozenset(
            name for item in known if item.id in SHARED for name in item.names if name.isupper()
        )
        self._work = frozenset(
            item.id for item in knowledge.events if EventRole.AWAITED_WORK in item.roles
        )

    def of_text(self, text: str) -> tuple[SettingConflict, ...]:
        """Those of a script, a configuration or an environment alone."""
        lines = [
            TextLine(number=number, text=line, kind=LineKind.SCRIPT)
            for number, line in enumerate(text.split("\n"), start=1)
        ]
        return self._conflicts(lines, Incident(), ())

    def of_reading(self, reading: LogReading) -> tuple[SettingConflict, ...]:
        """Those of a paste, against what its log shows."""
        return self._conflicts(setting_lines(reading), reading.incident, reading.events)

    def job_of(self, reading: LogReading) -> JobReading:
        """The shape of the job that a paste describes."""
        return self._reader.read(setting_lines(reading))

    def _conflicts(
        self,
        lines: Sequence[TextLine],
        incident: Incident,
        events: Sequence[Event],
    ) -> tuple[SettingConflict, ...]:
        evidence = _Evidence(
            job=self._reader.read(lines),
            incident=incident,
            events=tuple(events),
            lines=tuple(lines),
            timeouts=tuple(self._group_timeouts(lines)),
            shared=self._shared,
            work=tuple(event for event in events if event.event in self._work),
        )
        conflicts: dict[tuple[str, str], SettingConflict] = {}
        for relation in RELATIONS:
            for identifier, values, more in relation(evidence):
                shown = [value.shown for value in values]
                conflict = SettingConflict(
                    contradiction=self._contradictions[identifier],
                    values=tuple(values),
                    detail=", ".join([*dict.fromkeys(shown), *filter(None, [more])]),
                )
                conflicts.setdefault((identifier, values[0].name), conflict)
        return tuple(conflicts.values())

    def _group_timeouts(self, lines: Sequence[TextLine]) -> Iterator[tuple[JobValue, float]]:
        for item in find_settings("\n".join(line.text for line in lines), self._timeouts):
            advice = self._timeouts.get(item.name)
            value_ms = milliseconds(item, advice) if advice else None
            if value_ms is not None:
                line = lines[item.line - 1]
                value = JobValue(
                    setting="timeout",
                    name=item.name,
                    value=item.value,
                    line=line.number,
                    file=line.file,
                    quote=line.text.strip()[:QUOTE_CHARS],
                    is_option=item.is_option,
                )
                yield value, value_ms / 1000


def setting_lines(reading: LogReading) -> list[TextLine]:
    """The lines of a paste that may hold settings, in the order of the input.

    A person's words are among them: people write settings into sentences. Their numbers are 0
    where they are not known any more.
    """
    words = reading.words.split("\n") if reading.words else []
    known = len(reading.word_places) == len(words)
    places = reading.word_places if known else (("", 0),) * len(words)
    lines = [
        TextLine(number=number, text=text, kind=LineKind.PROSE, file=file)
        for (file, number), text in zip(places, words, strict=True)
    ]
    return sorted((*lines, *reading.lines), key=lambda line: (line.file, line.number))


def explanation(conflict: SettingConflict) -> Bilingual:
    """What a conflict means, with its settings."""
    means = conflict.contradiction.means
    return Bilingual(
        zh=means.zh.replace("{detail}", conflict.detail),
        en=means.en.replace("{detail}", conflict.detail),
    )


# --- where to meet, and how many -----------------------------------------------------------------


def _several_nodes(launch: LaunchCommand) -> JobValue | None:
    nodes = launch.get("nodes")
    return nodes if nodes and (nodes.count or 0) > 1 else None


def loopback_master(evidence: _Evidence) -> Iterator[_Hit]:
    """A loopback address to meet at, with several nodes; another address in the text is in use."""
    addresses = evidence.job.of("master_address")
    if any(not LOOPBACK.match(item.value) for item in addresses):
        return
    for launch in evidence.job.launches:
        address, nodes = launch.get("master_address"), _several_nodes(launch)
        if address and nodes and LOOPBACK.match(address.value):
            yield "setting_loopback_master", (address, nodes), ""


def world_of_one_node(evidence: _Evidence) -> Iterator[_Hit]:
    """Several nodes are asked for, and the log shows a group of the size of one."""
    world = evidence.incident.world_size
    highest = max((event.rank for event in evidence.events if event.rank is not None), default=0)
    for launch in evidence.job.launches:
        nodes = _several_nodes(launch)
        each = launch.processes_per_node or launch.count("devices_per_node")
        stands_in_script = any(v.count == world for v in evidence.job.of("processes", "world_size"))
        if nodes and each and world == each and highest < each and not stands_in_script:
            yield "setting_world_of_one_node", (nodes,), f"world size {world}"


def world_size_differs(evidence: _Evidence) -> Iterator[_Hit]:
    """WORLD_SIZE against nodes times processes; some launchers count nodes with it."""
    for launch in evidence.job.launches:
        world, nodes = launch.get("world_size"), launch.get("nodes")
        each = launch.processes_per_node
        if world is None or nodes is None or not each or not world.count or not nodes.count:
            continue
        if world.count == each and nodes.count > 1 and world.count != nodes.count:
            yield "setting_world_of_one_node", (nodes, world), ""
        elif world.count not in (nodes.count, nodes.count * each):
            yield "setting_world_size_differs", (world, nodes), f"{nodes.count} × {each}"


def node_rank_outside(evidence: _Evidence) -> Iterator[_Hit]:
    """A node's rank that is not below the number of nodes."""
    for launch in evidence.job.launches:
        rank, nodes = launch.get("node_rank"), launch.get("nodes")
        if rank is None or nodes is None or rank.count is None or not nodes.count:
            continue
        if ":" not in nodes.value and rank.count >= nodes.count:
            yield "setting_node_rank_outside", (rank, nodes), ""


# --- interfaces and devices ----------------------------------------------------------------------


def loopback_interface(evidence: _Evidence) -> Iterator[_Hit]:
    """An interface that leads nowhere else, unless the job has one node."""
    launches = evidence.job.launches
    if launches and all(launch.count("nodes") == 1 for launch in launches):
        return
    for value in evidence.job.of("socket_interface"):
        if value.value.lstrip("=") in LOCAL_INTERFACES and not value.is_default:
            yield "setting_loopback_interface", (value,), ""


def interface_absent(evidence: _Evidence) -> Iterator[_Hit]:
    """An interface that the machine's listing does not show, or shows as down."""
    rows = [event for event in evidence.events if event.event == INTERFACE_ROW]
    cards = [event for event in evidence.events if event.event == RDMA_ROW]
    listing = {event.fields.get("name", "") for event in rows}
    over_rdma = {event.fields["iface"] for event in cards if event.fields.get("iface")}
    down = {
        event.fields.get("iface") or event.fields.get("name", "")
        for event in (*rows, *cards)
        if event.fields.get("status", "").upper() == "DOWN"
    }
    for value in evidence.job.of("socket_interface"):
        wanted = _names(value)
        shown = ", ".join(sorted(listing - {"lo"} or over_rdma)[:QUOTED_INTERFACES])
        if not wanted:
            continue
        wanted_here = {item for name in wanted for item in _only(name, listing | over_rdma)}
        absent = bool(listing) and not wanted_here
        if not listing and over_rdma:
            absent = all(_absent_ib(name, over_rdma) for name in wanted)
        if absent:
            yield "setting_interface_absent", (value,), f"ip: {shown}"
        elif wanted_here and wanted_here <= down:
            yield "setting_interface_down", (value,), ""


def rdma_device_absent(evidence: _Evidence) -> Iterator[_Hit]:
    """An RDMA card that no listing shows."""
    cards = (event for event in evidence.events if event.event == RDMA_ROW)
    listing = {event.fields.get("name", "") for event in cards}
    for value in evidence.job.of("rdma_device"):
        wanted = _names(value)
        if listing and wanted and not any(_matches(name, listing) for name in wanted):
            shown = ", ".join(sorted(listing)[:QUOTED_INTERFACES])
            yield "setting_rdma_device_absent", (value,), f"RDMA: {shown}"


def _names(value: JobValue) -> list[str]:
    """The names a list of interfaces or cards asks for; of an exclusion none."""
    if value.value.startswith("^") or value.is_default:
        return []
    exact = "=" if value.value.startswith("=") else ""
    parts = value.value.lstrip("=").split(",")
    return [f"{exact}{name.partition(':')[0]}" for name in parts if name]


def _only(name: str, listing: Iterable[str]) -> set[str]:
    """What of a listing a name means: a prefix, or after ``=`` the whole."""
    if name.startswith("="):
        return {item for item in listing if item == name[1:]}
    return {item for item in listing if item.startswith(name)}


def _matches(name: str, listing: Iterable[str]) -> bool:
    return bool(_only(name, listing))


def _absent_ib(name: str, listing: Iterable[str]) -> bool:
    """Whether a name of InfiniBand's form is missing where only RDMA interfaces are listed."""
    return name.lstrip("=").startswith("ib") and not _matches(name, listing)


def fewer_devices(evidence: _Evidence) -> Iterator[_Hit]:
    """A node with more processes than devices it may use."""
    for launch in evidence.job.launches:
        each = launch.processes_per_node
        source = launch.get("processes_per_node") or launch.get("processes")
        visible, given = launch.get("visible_devices"), launch.get("devices_per_node")
        if not each or source is None:
            continue
        if visible is not None and 0 < _devices(visible) < each:
            yield "setting_fewer_devices", (visible, source), ""
        elif given is not None and given.count and given.count < each:
            yield "setting_fewer_devices", (given, source), ""


def _devices(visible: JobValue) -> int:
    """How many devices a list names; 0 where it is no list of numbers."""
    parts = [part.strip() for part in visible.value.split(",")]
    return len(set(parts)) if all(part.isdecimal() for part in parts) else 0


# --- two values ----------------------------------------------------------------------------------


def two_values(evidence: _Evidence) -> Iterator[_Hit]:
    """A variable that a script without branches sets twice before it starts anything."""
    if any(_BRANCH.match(line.text) for line in evidence.lines if line.kind is LineKind.SCRIPT):
        return
    starts = {v.statement for v in evidence.job.values if v.is_option}
    last: dict[str, JobValue] = {}
    for value in evidence.job.values:
        if value.setting in OF_A_NODE:
            continue
        plain = value.name.isupper() and not value.is_option and value.name and not value.is_default
        if not plain or not _PURE_ASSIGNMENT.match(value.quote):
            continue
        first = last.get(value.name)
        if first and first.section != value.section:
            first = None
        between = first and any(first.statement < s <= value.statement for s in starts)
        if first and not between and first.value != value.value:
            yield "setting_two_values", (first, value), ""
        last[value.name] = value


def not_in_process(evidence: _Evidence) -> Iterator[_Hit]:
    """A script's value against the one NCCL says it read."""
    printed = {
        event.fields.get("name", ""): event
        for event in evidence.events
        if event.event == SETTING_EVENT and "set by environment to" in event.text
    }
    for value in evidence.job.values:
        event = printed.get(value.name)
        if event is None or value.is_default or not _PURE_ASSIGNMENT.match(value.quote):
            continue
        seen = event.fields.get("value", "").rstrip(".,;")
        if not _same(seen, value.value):
            yield "setting_not_in_process", (value,), f"NCCL: {seen}"


def differs_between_ranks(evidence: _Evidence) -> Iterator[_Hit]:
    """Values that ranks have to share, of launches of two nodes or as two ranks print them."""
    by_node: dict[int, LaunchCommand] = {}
    for launch in evidence.job.launches:
        rank = launch.count("node_rank")
        if rank is not None:
            by_node.setdefault(rank, launch)
    launches = [by_node[rank] for rank in sorted(by_node)]
    for setting in SHARED:
        values = [value for launch in launches if (value := launch.get(setting))]
        for first, other in _with_first(values):
            if _contradict(first, other):
                yield "setting_differs_between_ranks", (first, other), ""
    yield from _under_headings(evidence)
    yield from _printed_differently(evidence)


def _with_first(values: Sequence[JobValue]) -> Iterator[tuple[JobValue, JobValue]]:
    """Each value with the first of its name."""
    firsts: dict[str, JobValue] = {}
    for value in values:
        first = firsts.setdefault(value.name.strip("-"), value)
        if first is not value:
            yield first, value


def _contradict(first: JobValue, other: JobValue) -> bool:
    """Whether two ranks cannot both be right; the first node may call itself by loopback."""
    if first.setting == "master_address" and LOOPBACK.match(first.value):
        return False
    return not _same(first.value, other.value)


def _under_headings(evidence: _Evidence) -> Iterator[_Hit]:
    values = [value for value in evidence.job.of(*SHARED) if value.section and not value.is_default]
    for first, other in _with_first(values):
        if first.section != other.section and _contradict(first, other):
            detail = f"{first.section}, {other.section}"
            yield "setting_differs_between_ranks", (first, other), detail


def _printed_differently(evidence: _Evidence) -> Iterator[_Hit]:
    names = {value.name: value for value in evidence.job.of("group_option")}
    first: dict[str, Event] = {}
    for event in evidence.events:
        if event.event != SETTING_EVENT or (event.rank is None and not event.host):
            continue
        name = event.fields.get("name", "")
        other = first.setdefault(name, event)
        if (other.rank, other.host) == (event.rank, event.host) or name not in evidence.shared:
            continue
        here, there = (item.fields.get("value", "").rstrip(".,;") for item in (event, other))
        if not _same(here, there) and not LOOPBACK.match(there):
            value = names.get(name) or _of_event(other)
            yield "setting_differs_between_ranks", (value, _of_event(event)), ""


def _of_event(event: Event) -> JobValue:
    name, value = event.fields.get("name", ""), event.fields.get("value", "").rstrip(".,;")
    return JobValue(
        setting="group_option",
        name=name,
        value=value,
        line=event.line,
        file=event.file,
        quote=event.text,
    )


def _same(one: str, other: str) -> bool:
    """Whether two values mean the same: switches by their state."""
    if one.strip().lower() == other.strip().lower():
        return True
    states = switch(one), switch(other)
    return states[0] is not None and states[0] == states[1] and not one.isdecimal()


# --- time ----------------------------------------------------------------------------------------


def timeout_below_work(evidence: _Evidence) -> Iterator[_Hit]:
    """Work that lasts longer than the timeout set, or than the one the log shows."""
    lasted = [(seconds, event) for event in evidence.work if (seconds := _seconds(event))]
    if not lasted:
        return
    seconds, longest = max(lasted, key=lambda item: (item[0], -item[1].line))
    limits = list(evidence.timeouts)
    if not limits and evidence.incident.timeout_ms:
        limit_s = evidence.incident.timeout_ms / 1000
        value = JobValue(
            setting="timeout",
            name="timeout",
            value=f"{limit_s:g} s",
            line=longest.line,
            file=longest.file,
            quote=longest.text,
        )
        limits = [(value, limit_s)]
    for value, limit_s in limits:
        if max(limit_s, MIN_WORK_S) < seconds:
            yield "setting_timeout_below_work", (value,), f"{seconds:g} s: {longest.text[:80]}"


def _seconds(event: Event) -> float:
    """How long a line says that work has taken; 0 where it does not."""
    if match := _CLOCK.search(event.text):
        hours, minutes, seconds = (int(part or 0) for part in match.groups())
        return hours * 3600 + minutes * 60 + seconds
    factor = {"s": 1, "m": 60, "h": 3600}.get(event.fields.get("unit", "s")[:1].lower(), 1)
    return (number(event.fields.get("duration", "")) or 0.0) * factor


RELATIONS: tuple[Callable[[_Evidence], Iterator[_Hit]], ...] = (
    loopback_master,
    world_of_one_node,
    world_size_differs,
    node_rank_outside,
    loopback_interface,
    interface_absent,
    rdma_device_absent,
    fewer_devices,
    two_values,
    not_in_process,
    differs_between_ranks,
    timeout_below_work,
)
