"""Incidents whose answers are compared: threads, lab runs, shipped reports, healthy logs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kb.service import Service
from kb.train.samples import relate
from kb.train.threads import load_threads
from kb.types.incident import Incident

ROOT = Path(__file__).resolve().parents[3]
NODE_GPUS = 8
DEFAULT_TORCH, DEFAULT_NCCL, DEFAULT_TIMEOUT_MS = "2.3.1", "2.20.5", 600_000
INTERFACE = re.compile(r"^[a-z]\w{1,14}$")  # one name: no list, no exclusion
VERSION = re.compile(r"^\d+\.\d+\.\d+(?!\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownIncident:
    """A report: a person's words and a log, either may be empty.

    Attributes:
        causes: those that are true of it; none where it is no incident.
        exclude: cases that stand on it and must not vote.
        distributed: a timeout or hang of several processes.
    """

    id: str
    words: str
    log: str
    causes: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    distributed: bool = True

    @property
    def text(self) -> str:
        """The report as one paste."""
        return "\n".join(part for part in (self.words, self.log) if part)


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large a job is, as far as its report tells, so that additions agree with it."""

    incident: Incident
    text: str = field(repr=False)

    @property
    def world(self) -> int:
        """Processes."""
        seen = [state.rank for state in self.incident.ranks]
        known = self.incident.world_size or max([*seen, 0]) + 1
        if known > 1:
            return known if known <= NODE_GPUS else -(-known // NODE_GPUS) * NODE_GPUS
        return 2 * NODE_GPUS if self._several else NODE_GPUS

    @property
    def nodes(self) -> int:
        """Machines."""
        if self.world > NODE_GPUS:
            return self.world // NODE_GPUS
        return 2 if self._several and self.world % 2 == 0 else 1

    @property
    def per_node(self) -> int:
        """Processes of a machine."""
        return self.world // self.nodes

    @property
    def _several(self) -> bool:
        named = re.search(
            r"\b(?:two|2|three|3|four|4|multi|several)[ -]?(?:nodes?|machines|hosts)\b"
            r"|多机|[两二三四多2-9]\s?[台个]?(?:机|节点|服务器)",
            self.text,
            re.IGNORECASE,
        )
        return bool(named) or any(fact.name == "multi_node" for fact in self.incident.facts)

    def values(self) -> dict[str, str | int]:
        """What placeholders stand for."""
        incident = self.incident
        timeout_ms = incident.timeout_ms or DEFAULT_TIMEOUT_MS
        interface = incident.settings.get("NCCL_SOCKET_IFNAME", "")
        torch, nccl = (incident.versions.get(name, "") for name in ("torch", "nccl"))
        return {
            "world": self.world,
            "nodes": self.nodes,
            "per_node": self.per_node,
            "devices": ",".join(map(str, range(self.per_node))),
            "ifname": interface if INTERFACE.match(interface) else "eth0",
            "torch": _release(torch, DEFAULT_TORCH),
            "nccl": _release(nccl, DEFAULT_NCCL),
            "timeout_ms": timeout_ms,
            "timeout_s": timeout_ms // 1000,
            "timeout_min": timeout_ms // 60_000,
        }


def _release(version: str, default: str) -> str:
    match = VERSION.match(version)
    return match[0] if match else default


def known_incidents(service: Service) -> tuple[KnownIncident, ...]:
    """All there are: without the shared material those that ship with the project."""
    return (*_threads(service), *_lab_runs(), *shipped_reports(), *_healthy_logs())


def _threads(service: Service) -> Iterator[KnownIncident]:
    path = ROOT.parent / "shared" / "threads" / "threads.jsonl"
    if not path.is_file():
        return
    threads = load_threads(path)
    excluded = relate(threads, service).excluded
    for thread in threads:
        words = thread.text.removesuffix(thread.log).rstrip("\n") if thread.log else thread.text
        yield KnownIncident(
            id=thread.id,
            words=words,
            log=thread.log,
            causes=(thread.cause, *thread.also),
            exclude=excluded[thread.id],
        )


def _lab_runs() -> Iterator[KnownIncident]:
    for path in sorted((ROOT / "tests" / "lab" / "samples").glob("*/truth.json")):
        truth = json.loads(path.read_text(encoding="utf-8"))
        log = (path.parent / "combined.log").read_text(encoding="utf-8").rstrip("\n")
        causes = (truth["cause"], *truth["also"])
        yield KnownIncident(id=f"lab-{truth['id']}", words="", log=log, causes=causes)


def shipped_reports() -> Iterator[KnownIncident]:
    """Reports in the project's own words, at hand in every clone."""
    path = ROOT / "data" / "golden" / "reports.jsonl"
    for line in path.read_text(encoding="utf-8").splitlines():
        report = json.loads(line)
        yield KnownIncident(
            id=f"report-{report['id']}",
            words=report["text"],
            log=report["log"],
            causes=(report["cause"], *report["also"]),
        )


def _healthy_logs() -> Iterator[KnownIncident]:
    for path in sorted((ROOT / "tests" / "samples" / "negatives").glob("*.log")):
        log = path.read_text(encoding="utf-8").rstrip("\n")
        yield KnownIncident(id=f"healthy-{path.stem}", words="", log=log, distributed=False)
