"""What is put into a report without telling anything: additions and ways of passing it on.

The texts stand in `additions/*.yaml` (the file's name is the kind) and in `transformations.yaml`;
sizes in them are those of the incident, so that nothing contradicts it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
import yaml

from kb.types.incident import Incident
from tests.quality.invariance.incidents import KnownIncident, Sizes

HERE = Path(__file__).resolve().parent
PLACES = ("front", "middle", "behind")
SPOKEN = ("courtesy", "in_order", "template")  # kinds nobody puts beside a log that is healthy
SHOWN_RANKS = 16  # a line of each rank is repeated so often at most
_PLACEHOLDER = re.compile(r"@([a-z_]+)@")
_CLOCK = re.compile(r"\d\d:\d\d:\d\d")
STACK_LINE = re.compile(r"^\S{0,20}\s{0,8}frame #\d+: |^\s*$")

Pasted = str | bytes | tuple[str, ...]
"""What is handed in: a text, the bytes of a file, or the texts of several files in their order."""


class Addition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text that tells nothing.

    Attributes:
        id: unique among all.
        text: with placeholders between at signs; a line with ``@rank@`` is repeated a rank.
        place: where it may stand.
        needs: what must be so of the incident (`CONDITIONS`).
        against: causes of which it would be untrue: of the incident, or as it is answered without.
    """

    id: str
    text: str
    place: tuple[str, ...] = PLACES
    needs: tuple[str, ...] = ()
    against: tuple[str, ...] = ()


class Wrapping(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A frame around a report or its log, or something in front of each line."""

    id: str
    where: str
    kind: str = "quoting"
    line: str = ""
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Disturbance:
    """One way to change a report; `apply` gives None where it does not fit the incident.

    `against` are those of an addition.
    """

    id: str
    kind: str
    apply: Callable[[KnownIncident, Sizes], Pasted | None]
    against: tuple[str, ...] = ()


def _several_nodes(incident: Incident) -> bool:
    return any(fact.name == "multi_node" for fact in incident.facts)


CONDITIONS: Mapping[str, Callable[[Incident], bool]] = {
    "after_init": lambda incident: bool(incident.op) and (incident.seq or 0) > 1,
    "training": lambda incident: (
        incident.stage not in ("init", "load", "save", "eval") and (incident.seq or 0) > 20
    ),
    "nccl": lambda incident: incident.backend == "nccl",
    "single_node": lambda incident: not _several_nodes(incident),
    "multi_node": _several_nodes,
}


def disturbances() -> tuple[Disturbance, ...]:
    """All additions and transformations, in a fixed order."""
    chosen = [
        Disturbance(
            addition.id,
            path.stem,
            partial(_added, addition, path.stem in SPOKEN),
            addition.against,
        )
        for path in sorted((HERE / "additions").glob("*.yaml"))
        for addition in msgspec.convert(_rows(path), tuple[Addition, ...])
    ]
    chosen += [
        Disturbance(wrapping.id, wrapping.kind, partial(_wrapped, wrapping))
        for wrapping in msgspec.convert(_rows(HERE / "transformations.yaml"), tuple[Wrapping, ...])
    ]
    chosen += [
        Disturbance("crlf", "encoding", lambda incident, _: incident.text.replace("\n", "\r\n")),
        Disturbance("utf-16", "encoding", lambda incident, _: incident.text.encode("utf-16")),
        Disturbance("log-first", "order", _log_first),
        Disturbance("two-files", "order", partial(_files, backwards=False)),
        Disturbance("two-files-backwards", "order", partial(_files, backwards=True)),
        Disturbance("stack-cut-off", "truncation", _without_stack),
    ]
    return tuple(chosen)


def _rows(path: Path) -> object:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _added(
    addition: Addition, spoken: bool, incident: KnownIncident, sizes: Sizes
) -> Pasted | None:
    if set(addition.against) & set(incident.causes) or (spoken and not incident.distributed):
        return None
    if not all(CONDITIONS[name](sizes.incident) for name in addition.needs):
        return None
    text = fill(addition.text.rstrip("\n"), sizes)
    place = addition.place[number(addition.id, incident.id) % len(addition.place)]
    parts = {
        "front": (text, incident.words, incident.log),
        "middle": (incident.words, text, incident.log),
        "behind": (incident.words, incident.log, text),
    }[place]
    return "\n".join(part for part in parts if part)


def number(*names: str) -> int:
    """A number that looks random and is the same every time."""
    return zlib.crc32("\n".join(names).encode())


def fill(text: str, sizes: Sizes) -> str:
    """`text` with the incident's sizes; lines of a rank or a GPU once for each."""
    return "\n".join(line for raw in text.split("\n") for line in _lines(raw, sizes))


def _lines(line: str, sizes: Sizes) -> Iterator[str]:
    counts = {"rank": min(sizes.world, SHOWN_RANKS), "gpu": sizes.per_node}
    each = next((name for name in counts if f"@{name}@" in line), "")
    values = sizes.values()
    for value in range(counts.get(each, 1)):
        yield _PLACEHOLDER.sub(
            lambda match, value=value: str({**values, each: value}.get(match[1], match[0])), line
        )


def _wrapped(wrapping: Wrapping, incident: KnownIncident, _: Sizes) -> Pasted | None:
    if wrapping.where == "log" and not incident.log:
        return None
    if wrapping.kind == "timestamps" and _CLOCK.search(incident.log):
        return None  # the collector's times would be the program's own, which cannot be made up
    body = incident.log if wrapping.where == "log" else incident.text
    lines = [_front(wrapping.line, place) + line for place, line in enumerate(body.split("\n"))]
    parts = (wrapping.before, *lines, wrapping.after)
    changed = "\n".join(part for part in parts if part)
    words = incident.words if wrapping.where == "log" else ""
    return f"{words}\n{changed}".strip("\n")


def _front(line: str, place: int) -> str:
    milliseconds = f"{20 + place // 1000 % 40:02d}.{place % 1000:03d}"
    return line.replace("@clock@", milliseconds).replace("@seconds@", milliseconds[:2])


def _log_first(incident: KnownIncident, _: Sizes) -> Pasted | None:
    if not (incident.words and incident.log):
        return None
    return f"{incident.log}\n{incident.words}"


def _files(incident: KnownIncident, _: Sizes, *, backwards: bool) -> Pasted | None:
    if not (incident.words and incident.log):
        return None
    files = (incident.words, incident.log)
    return files[::-1] if backwards else files


def _without_stack(incident: KnownIncident, _: Sizes) -> Pasted | None:
    lines = incident.log.split("\n")
    end = len(lines)
    while end and STACK_LINE.match(lines[end - 1]):
        end -= 1
    if end == len(lines) or not end:
        return None
    return "\n".join(part for part in (incident.words, *lines[:end]) if part)
