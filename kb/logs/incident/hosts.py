"""On which host and GPU each rank runs, as far as any line of the log shows it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kb.logs.event_log import EventLog
from kb.logs.scan import prefix
from kb.text.gpu_names import bus_id, gpu_name, gpu_parts
from kb.types.entries import RankPlace
from kb.types.incident import Event, LogReading
from kb.types.vocabulary import EventRole

GPU_BACKENDS = frozenset({"nccl", "rccl", "hccl"})
NO_HOSTS = re.compile(r"(?:localhost(?:\..*)?|127\.[0-9]+\.[0-9]+\.[0-9]+|::1|\(?null\)?|<N/A>)\Z")
MAX_CULPRITS = 16  # a rack that lost power says no more with each further place
_RANKS = re.compile(r"[0-9]{1,6}")


@dataclass(frozen=True, slots=True)
class _Sign:
    """What one line says of a rank's place; the lowest `order` is the surest."""

    order: int
    rank: int
    host: str = ""
    number: str = ""
    bus: str = ""


def rank_places(log: EventLog, backend: str) -> dict[int, RankPlace]:
    """Host and GPU of the ranks of which a line shows either.

    The communicator of the whole job is the surest, then what launchers list, then the front of a
    rank's own lines. A place on the node counts as the GPU's number where the job uses GPUs and
    nothing else names it.
    """
    signs = sorted(_signs(log, backend in GPU_BACKENDS), key=lambda sign: sign.order)
    by_rank: dict[int, list[_Sign]] = defaultdict(list)
    for sign in signs:
        by_rank[sign.rank].append(sign)
    return {rank: _place(rank, by_rank[rank]) for rank in sorted(by_rank)}


def _place(rank: int, signs: Sequence[_Sign]) -> RankPlace:
    host = next((sign.host for sign in signs if sign.host), "")
    own = [sign for sign in signs if sign.host in ("", host)]  # after a restart it may be elsewhere
    number = next((sign.number for sign in own if sign.number), "")
    bus = next((sign.bus for sign in own if sign.bus), "")
    return RankPlace(rank=rank, host=host, gpu=gpu_name(number, bus))


def _signs(log: EventLog, has_gpus: bool) -> Iterator[_Sign]:
    sizes = [int(size) for e in log.events if (size := e.fields.get("world_size", "")).isdecimal()]
    listing = log.vocabulary.players(EventRole.RANK_PLACE)
    for event in log.events:
        get = event.fields.get
        host = _host(event)
        if event.event in listing and get("ranks"):
            for at, rank in enumerate(_RANKS.findall(get("ranks", ""))):
                name = get("name", "")
                yield _Sign(1, int(rank), host_name(name), str(at) if has_gpus else "")
        elif event.rank is None:
            continue
        elif event.event in listing and "device" in event.fields:
            # a rank of a communicator is one of the job's where it is the largest
            if int(get("world_size") or 0) == max(sizes, default=0):
                yield _Sign(0, event.rank, host, get("nvml") or get("device", ""), _bus(event))
        else:
            front = prefix.device(event.text)
            local = get("local_rank", "") if has_gpus else ""
            if get("host"):
                yield _Sign(1, event.rank, host)
            elif host or front:
                yield _Sign(2, event.rank, host, front)
            if local:
                yield _Sign(3, event.rank, "", local)


def _bus(event: Event) -> str:
    """The PCI bus id a line names; drivers call it the device."""
    device = event.fields.get("device", "")
    return bus_id(event.fields.get("bus", "") or (device if ":" in device else ""))


def _host(event: Event) -> str:
    return host_name(event.fields.get("host") or event.host)


def host_name(text: str) -> str:
    """A host's name, or nothing where it is one that every machine has."""
    name = text.strip().rstrip(".,:;")
    return "" if NO_HOSTS.match(name) else name


def culprit_places(reading: LogReading) -> tuple[RankPlace, ...]:
    """The ranks an incident points to with their places, and places that failed without a rank.

    Those are what a driver or a scheduler names: a GPU with an Xid, a node that was lost.
    """
    states = {state.rank: state for state in reading.incident.ranks}
    places: list[RankPlace] = []
    for culprit in reading.incident.culprit_ranks:
        state = states.get(culprit.rank)
        host, gpu = (state.host, state.gpu) if state else ("", "")
        places.append(RankPlace(rank=culprit.rank, host=host, gpu=gpu))
    known = [RankPlace(rank=s.rank, host=s.host, gpu=s.gpu) for s in states.values()]
    for event in reading.events:
        place = _failed_place(event, known) if event.kind == "root" and event.rank is None else None
        if place is not None:
            places.append(place)
    return distinct_places(places)[:MAX_CULPRITS]


def distinct_places(places: Iterable[RankPlace]) -> tuple[RankPlace, ...]:
    """The places in their order, each once, without those of which another says more."""
    unique = dict.fromkeys(places)
    return tuple(
        place
        for place in unique
        if not any(other != place and _covers(other, place) for other in unique)
    )


def _failed_place(event: Event, known: Sequence[RankPlace]) -> RankPlace | None:
    """Where a machine failed, if the event names a GPU or a node, with its rank if it has one."""
    bus, node = _bus(event), event.fields.get("host", "")
    if not bus and not node:
        return None
    host = _host(event)
    if bus:
        there = [
            place
            for place in known
            if gpu_parts(place.gpu)[1] == bus and (not host or place.host in ("", host))
        ]
        if len(there) == 1:
            return replace(there[0], host=there[0].host or host)
    return RankPlace(rank=None, host=host, gpu=bus)


def _covers(place: RankPlace, other: RankPlace) -> bool:
    """Whether `place` says all that `other` does."""
    return (
        other.rank in (None, place.rank)
        and other.host in ("", place.host)
        and (not other.gpu or gpu_parts(other.gpu)[1] == gpu_parts(place.gpu)[1])
    )
