"""What the kernel and the GPU driver say: Xid, ECC, NVLink, links that went down, OOM kills.

Reads `dmesg`, syslog, journal and ``nvidia-smi -q`` text. Which lines matter stands in
data/kernel_lines.yaml, what an Xid means in data/xid.yaml. These files know devices and processes,
not ranks, so no culprit rank comes from here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from kb.knowledge import read_yaml
from kb.logs.reading import Reading
from kb.settings import shipped_data
from kb.types import Bilingual, Fact

MAX_LINE = 2_000  # characters of a line that are looked at
KEPT_EACH = 3  # lines kept of one fact; the rest is counted
CONTEXT_GPU = 200  # lines above an nvidia-smi value in which its GPU's head stands, at most

_XID = re.compile(
    r"\bXid \((?:PCI:)?([0-9a-fA-F:.]{4,20})\)?: ?(\d{1,3})\b|\bXID (?:error )?(\d{1,3})\b"
)
_SMI_GPU = re.compile(r"^GPU ([0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)")
_DRIVER = re.compile(
    r"^Driver Version\s*:\s*(\d+\.\d+(?:\.\d+)?)|NVRM version: .*?\s(\d+\.\d+\.\d+)\s"
)
_CUDA = re.compile(r"^CUDA Version\s*:\s*(\d+\.\d+)")
_KERNEL_LINE = re.compile(
    r"^(?:<\d+>)?\[ *\d+\.\d{6}\]|\bkernel: |\bNVRM: "
    r"|^\[[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ [\d:]{8} \d{4}\]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLine:
    """A row of data/kernel_lines.yaml."""

    fact: str
    regex: str
    capture: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Xid:
    """A row of data/xid.yaml."""

    xid: int
    kind: Literal["hardware", "link", "program", "recorded", "consequence"]
    level: Literal["fatal", "error", "notice"]
    means: Bilingual


@dataclass(frozen=True, slots=True, kw_only=True)
class XidTable:
    """The file data/xid.yaml."""

    source: str
    xids: tuple[Xid, ...]


@cache
def xid_table() -> dict[int, Xid]:
    """What each known Xid means."""
    return {row.xid: row for row in read_yaml(shipped_data() / "xid.yaml", XidTable).xids}


@cache
def _rules() -> tuple[tuple[KernelLine, re.Pattern[str], re.Pattern[str] | None], ...]:
    rows = read_yaml(shipped_data() / "kernel_lines.yaml", tuple[KernelLine, ...])
    return tuple(
        (row, re.compile(row.regex), re.compile(row.capture) if row.capture else None)
        for row in rows
    )


def looks_like_kernel(text: str) -> bool:
    """Whether the text is a kernel log or the output of ``nvidia-smi -q``."""
    lines = text.splitlines()[:200]
    if any("NVSMI LOG" in line for line in lines):
        return True
    hits = sum(bool(_KERNEL_LINE.search(line[:MAX_LINE])) for line in lines)
    return hits > 0 and hits * 2 >= sum(bool(line.strip()) for line in lines)


def read_kernel(text: str) -> Reading:
    """Facts of one text, the first lines of each kind as quotes."""
    seen: dict[str, int] = {}
    facts: list[Fact] = []
    versions: dict[str, str] = {}
    device = ""
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw[:MAX_LINE]
        head = _SMI_GPU.match(line)
        device = head[1] if head else device
        versions |= _versions(line)
        for name, detail in _line_facts(line, device):
            seen[name] = seen.get(name, 0) + 1
            if seen[name] <= KEPT_EACH:
                quote = line.strip()[:300]
                facts.append(Fact(name=name, line=number, quote=quote, detail=detail))
    return Reading(kind="kernel", facts=tuple(facts), versions=versions)


def _versions(line: str) -> dict[str, str]:
    driver, cuda = _DRIVER.search(line), _CUDA.search(line)
    found = {"driver": driver[1] or driver[2]} if driver else {}
    return found | ({"cuda": cuda[1]} if cuda else {})


def _line_facts(line: str, device: str) -> Iterator[tuple[str, str]]:
    xid = _XID.search(line)
    if xid:
        number = int(xid[2] or xid[3])
        known = xid_table().get(number)
        where = f" on {xid[1]}" if xid[1] else ""
        meaning = f": {known.means.en} ({known.level})" if known else ""
        yield f"xid_{known.kind if known else 'unlisted'}", f"Xid {number}{where}{meaning}"
    for row, expression, capture in _rules():
        if row.fact.startswith("smi_") and not device and "smi" not in line:
            continue
        if expression.search(line):
            match = capture.search(line) if capture else None
            named = match.groupdict() if match else {}
            detail = ", ".join(f"{key} {value}" for key, value in sorted(named.items()) if value)
            yield row.fact, detail or (f"GPU {device}" if row.fact.startswith("smi_") else "")
