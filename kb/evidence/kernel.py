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

from kb.evidence.limits import EvidenceLimits
from kb.evidence.reading import EvidenceReading, expression
from kb.knowledge.load import read_yaml
from kb.settings import shipped_data
from kb.types.incident import Fact
from kb.types.knowledge import Bilingual

MAX_LINE = 2_000  # characters of a line that are looked at
MAX_QUOTES = 3  # lines quoted of one fact
BOOT_S = 300  # of uptime: links come up, and are down before that

_XID = re.compile(
    r"\bXid \((?:PCI:)?([0-9a-fA-F:.]{4,20})\)?: ?([0-9]{1,3})\b|\bXID (?:error )?([0-9]{1,3})\b"
)
_SMI_GPU = re.compile(r"^GPU ([0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9])")
_DRIVER = re.compile(
    r"^Driver Version\s*:\s*([0-9]{1,5}\.[0-9]{1,5}(?:\.[0-9]{1,5})?)"
    r"|NVRM version: .{0,200}?\s([0-9]{1,5}\.[0-9]{1,5}\.[0-9]{1,5})\s"
)
_CUDA = re.compile(r"^CUDA Version\s*:\s*([0-9]{1,5}\.[0-9]{1,5})")
_UPTIME = re.compile(r"\[ *([0-9]{1,9})\.[0-9]{6}\]")
KERNEL_LINE = re.compile(
    r"^(?:<[0-9]+>)?\[ *[0-9]+\.[0-9]{6}\]|\bkernel: |\bNVRM: "
    r"|^\[[A-Z][a-z]{2} [A-Z][a-z]{2} +[0-9]+ [0-9:]{8} [0-9]{4}\]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLine:
    """A row of data/kernel_lines.yaml.

    `link` names in its group `link` what went down or, where its group `up` matches, came up; what
    is down while the host boots and comes up below is no fact.
    """

    fact: str
    regex: re.Pattern[str]
    capture: re.Pattern[str] | None = None
    link: re.Pattern[str] | None = None


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
def _rules() -> tuple[KernelLine, ...]:
    path = shipped_data() / "kernel_lines.yaml"
    return read_yaml(path, tuple[KernelLine, ...], decode=expression)


def looks_like_kernel(text: str) -> bool:
    """Whether the text is a kernel log or the output of ``nvidia-smi -q``."""
    lines = text.splitlines()[:200]
    if any("NVSMI LOG" in line for line in lines):
        return True
    hits = sum(bool(KERNEL_LINE.search(line[:MAX_LINE])) for line in lines)
    return hits > 0 and hits * 2 >= sum(bool(line.strip()) for line in lines)


def read_kernel(text: str, limits: EvidenceLimits | None = None) -> EvidenceReading:
    """Facts of one text, the first lines of each kind as quotes.

    Raises:
        SlowInputError: it takes longer than the limits allow.
    """
    seen: dict[str, int] = {}
    facts: list[Fact] = []
    versions: dict[str, str] = {}
    device = ""
    down: dict[str, list[Fact]] = {}  # by link: of links that were down while the host booted
    for number, raw in (limits or EvidenceLimits()).lines(text):
        line = raw[:MAX_LINE]
        link, up = _link(line)
        for fact in down.pop(link, []) if up else []:
            facts.remove(fact)
            seen[fact.name] -= 1
        head = _SMI_GPU.match(line)
        device = head[1] if head else device
        versions |= _versions(line)
        for name, detail in _line_facts(line, device):
            seen[name] = seen.get(name, 0) + 1
            if seen[name] <= MAX_QUOTES:
                quote = line.strip()[:300]
                facts.append(Fact(name=name, line=number, quote=quote, detail=detail))
                if link and _boots(line):
                    down.setdefault(link, []).append(facts[-1])
    return EvidenceReading(kind="kernel", facts=tuple(facts), versions=versions)


def _link(line: str) -> tuple[str, bool]:
    """The network link that the line tells of, and whether it is up; empty where there is none."""
    for row in _rules():
        match = row.link.search(line) if row.link else None
        if match is not None:
            return match["link"], match["up"] is not None
    return "", False


def _boots(line: str) -> bool:
    uptime = _UPTIME.search(line)
    return uptime is not None and int(uptime[1]) < BOOT_S


def _versions(line: str) -> dict[str, str]:
    driver, cuda = _DRIVER.search(line), _CUDA.search(line)
    versions = {"driver": driver[1] or driver[2]} if driver else {}
    return versions | ({"cuda": cuda[1]} if cuda else {})


def _line_facts(line: str, device: str) -> Iterator[tuple[str, str]]:
    xid = _XID.search(line)
    if xid:
        number = int(xid[2] or xid[3])
        known = xid_table().get(number)
        where = f" on {xid[1]}" if xid[1] else ""
        meaning = f": {known.means.en} ({known.level})" if known else ""
        yield _xid_fact(known), f"Xid {number}{where}{meaning}"
    for row in _rules():
        if row.fact.startswith("smi_") and not device and "smi" not in line:
            continue
        if row.regex.search(line):
            match = row.capture.search(line) if row.capture else None
            named = match.groupdict() if match else {}
            detail = ", ".join(f"{key} {value}" for key, value in sorted(named.items()) if value)
            yield row.fact, detail or (f"GPU {device}" if row.fact.startswith("smi_") else "")


def _xid_fact(known: Xid | None) -> str:
    """A device that has failed says more than one that reports errors."""
    if known is None:
        return "xid_unlisted"
    fatal = known.kind == "hardware" and known.level == "fatal"
    return "xid_hardware_fatal" if fatal else f"xid_{known.kind}"
