"""Backend, frameworks, versions, settings, transport and world size printed in a log."""

from __future__ import annotations

from collections.abc import Sequence

from kb.logs.event_log import EventLog
from kb.logs.incident.observations import number
from kb.types.incident import Event, Incident
from kb.types.vocabulary import EventRole, PatternKind

BACKENDS = ("hccl", "rccl", "nccl", "gloo")
_WORLD_NAMES = frozenset({"num_processes", "world_size", "nranks"})
TRANSPORTS = {"P2P": "p2p", "SHM": "shm", "Socket": "socket"}
MAX_SETTINGS = 200
MAX_WORLD = 1_000_000


def read_environment(log: EventLog) -> Incident:
    """An incident of which only machine and job are known."""
    return Incident(
        backend=_backend(log),
        frameworks=_frameworks(log),
        versions=_versions(log),
        settings=_settings(log),
        transport=_transport(log),
        world_size=_world_size(log),
    )


def component(event: Event) -> str:
    """The first word of the pattern's id: the backend or framework that printed the line."""
    return event.pattern_id.partition("-")[0]


def _backend(log: EventLog) -> str:
    """The backend whose failure it is: of timeouts and roots first, then of anything."""
    order: tuple[tuple[PatternKind, ...], ...]
    order = (("timeout",), ("root", "cascade"), ("context", "fact", "teardown"))
    for kinds in order:
        seen = {component(event) for event in log.of_kind(*kinds)}
        for backend in BACKENDS:
            if backend in seen:
                return "rccl" if backend == "nccl" and _is_rocm(log.events) else backend
    return ""


def _is_rocm(events: Sequence[Event]) -> bool:
    return any(component(event) == "rccl" or "rocm" in event.fields for event in events)


def _frameworks(log: EventLog) -> tuple[str, ...]:
    known = log.vocabulary.frameworks
    projects = {project: item.id for item in known.values() for project in item.projects}
    seen = {component(event) for event in log.events}
    for event in log.of(EventRole.FRAMEWORK):
        name = event.fields.get("framework") or event.fields.get("source", "")
        seen.add(projects.get(name, name.lower()))
    return tuple(sorted(seen & known.keys()))


def _versions(log: EventLog) -> dict[str, str]:
    """The first version printed of each thing; fields of version events are name → version."""
    versions: dict[str, str] = {}
    for event in log.of(EventRole.VERSION, EventRole.PACKAGE):
        if log.plays(event, EventRole.VERSION):
            for name, value in event.fields.items():
                if name not in ("clock", "name", "what"):
                    versions.setdefault(name, value)
            continue
        name = event.fields.get("name", "").lower().replace("-", "_")
        if name and event.fields.get("version"):
            versions.setdefault(name, event.fields["version"])
    return dict(sorted(versions.items()))


def _settings(log: EventLog) -> dict[str, str]:
    """Settings by name, each with its last value."""
    settings: dict[str, str] = {}
    for event in log.of(EventRole.SETTING):
        name = event.fields.get("name")
        if name and len(settings) < MAX_SETTINGS:
            settings[name] = event.fields.get("value", "").rstrip(".,;")
    return dict(sorted(settings.items()))


def _transport(log: EventLog) -> tuple[str, ...]:
    """`p2p`, `shm`, `socket`, `ib`, and chosen interfaces as ``if:<name>``."""
    networks = [e.fields.get("what", "").removeprefix("NET/") for e in log.of(EventRole.TRANSPORT)]
    names = {TRANSPORTS.get(name, "ib") for name in networks if name}
    names |= {"ib"} if log.of(EventRole.IB_DEVICES) else set()
    names |= {f"if:{event.fields.get('iface', '')}" for event in log.of(EventRole.INTERFACE)}
    return tuple(sorted(names - {"if:"}))


def _world_size(log: EventLog) -> int | None:
    sizes = [
        size
        for event in log.events
        if (size := number(event.fields.get("world_size"))) is not None and 0 < size < MAX_WORLD
    ]
    sizes += [
        size
        for event in log.of(EventRole.PARALLEL_SIZE)
        if event.fields.get("name", "").lower() in _WORLD_NAMES
        and (size := number(event.fields.get("size"))) is not None
        and 1 < size < MAX_WORLD
    ]
    return max(sizes) if sizes else None
