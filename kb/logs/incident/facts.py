"""Facts: statements derived from the observations that speak for or against a cause.

Names are stable; data/facts.yaml says what each means and what it weighs. Every fact that a line
shows carries that line.
"""

from __future__ import annotations

import builtins
import re
from collections import defaultdict
from collections.abc import Callable, Iterator

from kb.logs.incident.at_work import at_work
from kb.logs.incident.culprits import (
    PAIRED,
    hanging_places,
    odd_fingerprint,
    odd_reports,
    work,
)
from kb.logs.incident.endings import (
    alive_at_the_end,
    came_late,
    ended_from_outside,
    job_ranks,
    lost_by_all,
)
from kb.logs.incident.environment import component
from kb.logs.incident.joining import awaited, not_joined
from kb.logs.incident.observations import Observations, WorkReport
from kb.logs.incident.progress import (
    behind_in_steps,
    finished_early,
    slowing_steps,
    uneven_epochs,
)
from kb.logs.incident.ranks import behind, exit_code
from kb.types.incident import Event, Fact
from kb.types.vocabulary import NETWORK_EVENT, EventRole

TINY_NUMEL = 16  # a barrier, a flag, a handful of metrics
LARGE_NUMEL = 1 << 20  # four megabytes in fp32: bandwidth may matter from here
EARLY_SEQ = 5  # barriers and id exchange of the first moments
MID_SEQ = 100  # set-up is long over
LARGE_SEQ = 10_000  # hours of training
GAP_WORKS = 10  # the host ran well ahead of the device
PROGRAM_ERRORS = (  # classes of Python whose members a fault of the program or its data raises
    ArithmeticError,
    AssertionError,
    AttributeError,
    FileNotFoundError,
    ImportError,
    IsADirectoryError,
    LookupError,
    NameError,
    NotADirectoryError,
    TypeError,
    ValueError,
)
SHORT_TIMEOUT_MS = 120_000
UNIT_SLIP_MS = 100_000  # with "ran for" a thousand times longer
NEAR_LINES = 200
NODE_RANKS = 8  # accelerators of a usual node
BAR_SPREAD = 0.25  # of the wait, by which a bar's time may differ from it
PLACES_SHOWN = 8  # in the words of a fact
AGREE_RANKS = 3  # fewer ranks agreeing excludes little

_NETWORK = re.compile(r"NET/(?!Socket)")  # a channel's transport: adapters alone join no machines
_WRONG_INTERFACE = re.compile(
    r"^if:(?:lo|docker|veth|virbr|br-|ip6tnl|tunl|cni|flannel|cali|tap)\w*"
)


def find_facts(observations: Observations) -> tuple[Fact, ...]:
    """All facts, by name; each name once, on the first line that shows it."""
    facts: dict[str, Fact] = {}
    for source in _SOURCES:
        for fact in source(observations):
            facts.setdefault(fact.name, fact)
    return tuple(facts[name] for name in sorted(facts))


def _fact(name: str, event: Event | None = None, detail: str = "") -> Fact:
    if event is None:
        return Fact(name=name, detail=detail)
    return Fact(name=name, line=event.line, quote=event.text, detail=detail, file=event.file)


def _progress(observations: Observations) -> Iterator[Fact]:
    slow = behind(observations)
    if slow:
        rank = min(slow)
        yield _fact("rank_behind", slow[rank], ",".join(map(str, sorted(slow))))
    for item in observations.progress:
        if item.enqueued is None or item.completed is None:
            continue
        detail = f"enqueued {item.enqueued}, completed {item.completed}"
        if item.completed <= 0:
            yield _fact("none_completed", item.event, detail)
        if item.enqueued - item.completed >= GAP_WORKS:
            yield _fact("gap_enqueued_completed", item.event, detail)
        seq = item.seq if item.seq is not None else item.completed + 1
        if item.enqueued > seq:
            yield _fact("enqueued_beyond_timeout", item.event, detail)
        elif item.enqueued == seq:
            yield _fact("nothing_beyond_timeout", item.event, detail)
        if item.enqueued == item.completed + 1:
            yield _fact("enqueued_equals_completed_plus_one", item.event, detail)


def _agreement(observations: Observations) -> Iterator[Fact]:
    odd = odd_reports(observations)
    if odd:
        yield _fact("mismatch_proven", odd[0][0].event, _sides(observations, odd[0][0]))
    sized = next((pair[0].event for pair in odd if pair[0].op == pair[1].op), None)
    if sized is not None:
        yield _fact("mismatch_of_sizes", sized)
    named = ",".join(str(culprit.rank) for culprit in odd_fingerprint(observations))
    for event in observations.log.of(EventRole.MISMATCH):
        yield _fact("mismatch_proven", event, f"rank {named}" if named else "")
        get = event.fields.get
        if get("op") and get("op") == get("peer_op") and get("shape") != get("peer_shape"):
            yield _fact("mismatch_of_sizes", event)
    main = observations.main
    if main is None or main.seq is None or odd:
        return
    same = [r for r in observations.first_reports if (r.seq, r.op) == (main.seq, main.op)]
    ranks = {r.rank for r in same if r.rank is not None}
    places = hanging_places(observations)
    ops = {report.op for report, _ in places}
    if len(ops) > 1 and not ops <= PAIRED:
        shown = (
            f"rank {','.join(map(str, there[:16]))}: {work(r)} {r.seq}"
            for r, there in places[:PLACES_SHOWN]
        )
        yield _fact("different_ops_hang", places[-1][0].event, "; ".join(shown))
    groups = {r.process_group for r in observations.first_reports if r.process_group}
    agree = len(ranks) >= AGREE_RANKS and len({r.numel_in for r in same}) == 1
    if agree and len(places) == 1 and not behind(observations):
        yield _fact("mismatch_excluded", main.event, f"{len(ranks)} ranks agree")
        if not observations.incident.ranks_silent:
            yield _fact("all_ranks_same_op_none_completed", main.event)
    if len(groups) > 1:
        yield _fact("different_groups_hang", main.event, ",".join(sorted(groups)[:8]))


def _sides(observations: Observations, odd: WorkReport) -> str:
    """Who runs what at one number of a group: ``rank 0: ALLREDUCE(8); rank 1: ALLREDUCE(1)``."""
    sides: dict[str, list[int]] = defaultdict(list)
    for report in observations.first_reports:
        here = (report.process_group, report.seq) == (odd.process_group, odd.seq)
        if here and report.op and report.rank is not None:
            sides[work(report)].append(report.rank)
    named = sorted((sorted(set(ranks)), side) for side, ranks in sides.items())[:PLACES_SHOWN]
    return "; ".join(f"rank {','.join(map(str, ranks[:16]))}: {side}" for ranks, side in named)


def _standing(observations: Observations) -> Iterator[Fact]:
    places = observations.places
    yield from places.facts
    waited = set(observations.incident.ranks_reporting)
    spots = {(stack.place, stack.spot, stack.own) for stack in places.stacks}
    ranks = {stack.rank for stack in places.stacks if stack.waits}
    if len(spots) == 1 and len(ranks) >= AGREE_RANKS and waited >= ranks >= job_ranks(observations):
        call = places.stacks[0]
        yield _fact("same_call_hangs", places.events[0], f"{call.call}() {call.spot}".strip())
        if any("group=" in event.fields.get("code", "").split("\n")[0] for event in places.events):
            yield _fact("call_in_group", places.events[0], call.spot)


def _compared(observations: Observations) -> Iterator[Fact]:
    """Ranks whose progress is unlike the others', and steps that take ever longer."""
    for name, unequal in (
        ("uneven_epoch_steps", uneven_epochs(observations)),
        ("finished_early", finished_early(observations)),
        ("behind_in_steps", behind_in_steps(observations)),
    ):
        if unequal:
            yield _fact(name, next(iter(unequal.ranks.values()), None), unequal.words)
    if slowing := slowing_steps(observations.log):
        yield _fact("steps_slow_down", *slowing)


def _joining(observations: Observations) -> Iterator[Fact]:
    late = not_joined(observations.log) or awaited(observations.log)
    if late:
        shown = "rank " + ",".join(map(str, sorted(late)[:16]))
        yield _fact("rank_not_joined", late[min(late)], shown)


def _ended(observations: Observations) -> Iterator[Fact]:
    """How ranks ended, compared."""
    alive = alive_at_the_end(observations)
    if alive:
        shown = "rank " + ",".join(map(str, sorted(alive)[:16]))
        yield _fact("silent_rank_alive", alive[min(alive)], shown)
        if 0 not in alive and len(alive) < len(observations.incident.ranks_reporting):
            yield _fact("other_rank_silent", alive[min(alive)], shown)
    for name, ranks in (
        ("ended_from_outside", ended_from_outside(observations)),
        ("rank_lost_by_all", lost_by_all(observations)),
        ("rank_came_late", came_late(observations)),
    ):
        for rank, event in ranks.items():
            yield _fact(name, event, f"rank {rank}")


def _who(observations: Observations) -> Iterator[Fact]:
    main = observations.main
    event = main.event if main else None
    shown = ",".join(map(str, observations.incident.ranks_silent[:16]))
    if observations.incident.ranks_silent:
        yield _fact("ranks_missing", event, shown)
        error = observations.first_error
        if observations.incident.ranks_silent == (0,) and (error is None or error.rank != 0):
            yield _fact("rank0_missing", event)
    for rank, (line, stage) in at_work(observations).items():
        yield _fact(f"at_work_{stage}", line, f"rank {rank}")
    if len(observations.incident.ranks_reporting) == 1:
        yield _fact("single_rank_reports", event, str(observations.incident.ranks_reporting[0]))
        if observations.incident.ranks_reporting == (0,):
            yield _fact("rank0_only", event)
    world = observations.incident.world_size
    if world is not None and len(observations.incident.ranks_reporting) >= world > 1:
        yield _fact("all_ranks_report", event, str(world))


def _size(observations: Observations) -> Iterator[Fact]:
    main = observations.main
    if main is None:
        return
    if main.op:
        yield _fact(f"op_{main.op.strip('_').lower()}", main.event)
    if main.numel_in is not None:
        if main.numel_in <= TINY_NUMEL:
            yield _fact("tiny_numel", main.event, str(main.numel_in))
        if main.numel_in == 1 and main.op == "ALLREDUCE":
            yield _fact("scalar_allreduce", main.event)
        if main.numel_in >= LARGE_NUMEL:
            yield _fact("large_numel", main.event, str(main.numel_in))
    yield from _position(main)


def _position(main: WorkReport) -> Iterator[Fact]:
    if main.seq is None:
        return
    if main.seq <= 1:
        yield _fact("first_collective", main.event, str(main.seq))
    elif main.seq <= EARLY_SEQ:
        yield _fact("early_seq", main.event, str(main.seq))
    if main.seq >= MID_SEQ:
        yield _fact("mid_training_seq", main.event, str(main.seq))
    if main.seq >= LARGE_SEQ:
        yield _fact("large_seq", main.event, str(main.seq))


def _clock(observations: Observations) -> Iterator[Fact]:
    report = next((r for r in observations.first_reports if r.timeout_ms), None)
    if len(observations.incident.waves) > 1:
        later = observations.incident.waves[1]
        detail = str(len(observations.incident.waves))
        yield Fact(name="several_waves", line=later.first_line, detail=detail, file=later.file)
    if report is None or report.timeout_ms is None:
        return
    limit = report.timeout_ms
    names = {600_000: "default_timeout_600s", 1_800_000: "default_timeout_1800s"}
    yield _fact(names.get(limit, "custom_timeout"), report.event, f"{limit} ms")
    if limit <= SHORT_TIMEOUT_MS:
        yield _fact("short_timeout", report.event, f"{limit} ms")
    if limit < UNIT_SLIP_MS and report.ran_ms and report.ran_ms > 100 * limit:
        yield _fact("timeout_in_wrong_unit", report.event, f"{limit} ms, ran {report.ran_ms} ms")
    configured = observations.incident.settings.get("NCCL_TIMEOUT", "")
    if configured.isdecimal() and limit not in (int(configured) * 1000, int(configured)):
        detail = f"NCCL_TIMEOUT={configured}, limit {limit} ms"
        yield _fact("nccl_timeout_ignored", report.event, detail)


def _errors(observations: Observations) -> Iterator[Fact]:
    timeouts = observations.log.of_kind("timeout")
    error = observations.first_error
    if error is not None:
        if observations.log.plays(error, EventRole.SHARED_ERROR):  # no rank broke by itself
            return
        here = [t for t in timeouts if t.file == error.file]
        if timeouts and (not here or error.line <= here[0].line):
            yield _fact("first_error_before_timeout", error, error.event)
            if _is_of_program(error):
                yield _fact("program_error_before_timeout", error, error.event)
        elif timeouts:
            yield _fact("error_after_timeout", error, error.event)
        else:
            yield _fact("no_timeout_line", error, error.event)
        follow = {e.rank for e in observations.log.of_kind("cascade") if e.rank is not None}
        others = (set(observations.incident.ranks_reporting) | follow) - {error.rank}
        if error.rank is not None and others:
            yield _fact("single_rank_error", error, str(error.rank))
        return
    if timeouts:
        yield _fact("only_timeout_lines", timeouts[0])
        return
    cascades = observations.log.of_kind("cascade")
    if cascades:
        yield _fact("cascade_only", cascades[0])


def _is_of_program(error: Event) -> bool:
    """Whether Python raised it for a fault of the program or its data, as KeyError or IndexError.

    RuntimeError, OSError and their kin are also how communication fails.
    """
    *_, raised = error.fields.get("exception", "").split(".")
    python_class = getattr(builtins, raised, None)
    return isinstance(python_class, type) and issubclass(python_class, PROGRAM_ERRORS)


def _hosts(observations: Observations) -> set[str]:
    """Hosts named by prefixes and by the addresses of failed peers; loopback is no other host."""
    hosts = {event.host for event in observations.log.events if event.host}
    for event in observations.log.of(EventRole.PEER_ADDRESS):
        match = re.match(r"(?!127\.)[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+", event.fields.get("addr", ""))
        if match:
            hosts.add(match[0])
    return hosts


def _place(observations: Observations) -> Iterator[Fact]:
    incident, log = observations.incident, observations.log
    hosts = _hosts(observations)
    between = [e for e in log.of(EventRole.TRANSPORT) if _NETWORK.match(e.fields.get("what", ""))]
    placed = {event.rank for event in log.events if event.host} - {None}
    if len(hosts) > 1 or between:
        yield _fact("multi_node", between[0] if between else None, ",".join(sorted(hosts)[:8]))
    elif len(hosts) == 1 and 1 < (incident.world_size or 0) <= min(len(placed), NODE_RANKS):
        yield _fact("single_node", detail=next(iter(hosts)))
    for name in incident.transport:
        if _WRONG_INTERFACE.match(name):
            yield _fact("transport_wrong_interface", log.of(EventRole.INTERFACE)[0], name)
        elif not name.startswith("if:"):
            events = log.of(EventRole.TRANSPORT, EventRole.IB_DEVICES)
            yield _fact(f"transport_{name}", events[0] if events else None)


def _differences(observations: Observations) -> Iterator[Fact]:
    """What has to be the same everywhere and is not: NCCL's version, the network it uses."""
    log = observations.log
    networks = [e for e in log.of(EventRole.TRANSPORT) if e.event == NETWORK_EVENT]
    for name, events, key in (
        ("nccl_versions_differ", log.of(EventRole.VERSION), "nccl"),
        ("networks_differ", networks, "what"),
    ):
        values: dict[str, set[str]] = defaultdict(set)
        for event in events:
            printer = event.host if event.rank is None else f"rank {event.rank}"
            if printer and event.fields.get(key):
                values[event.fields[key]].add(printer)
        first, *others = values.values() or (set(),)
        if others and not first.intersection(*others):
            shown = (f"{value}: {', '.join(sorted(who)[:4])}" for value, who in values.items())
            yield _fact(name, events[0], "; ".join(shown))


def _running_bar(observations: Observations) -> Iterator[Fact]:
    """A bar that is not full and runs for as long as the others have waited.

    Whoever draws it is at work, and began when they began to wait.
    """
    report = next((r for r in observations.first_reports if r.timeout_ms), None)
    if report is None or report.timeout_ms is None:
        return
    bars = observations.log.of(EventRole.TRAINING_BAR)
    before = [e for e in bars if e.file == report.event.file and e.line < report.event.line]
    for bar in before[-1:]:
        elapsed = _seconds(bar.fields.get("elapsed", "")) * 1000 / report.timeout_ms
        if bar.fields.get("percent") != "100" and 1 - BAR_SPREAD <= elapsed <= 1 + BAR_SPREAD:
            yield _fact("bar_as_long_as_the_wait", bar)


def _seconds(clock: str) -> int:
    """Seconds of ``9:58`` or ``1:09:58``; 0 of anything else."""
    parts = clock.split(":")
    if not all(part.isdecimal() for part in parts):
        return 0
    return sum(int(part) * 60**place for place, part in enumerate(reversed(parts[-3:])))


def _printers(observations: Observations) -> Iterator[Fact]:
    """Who printed: backend and frameworks."""
    incident = observations.incident
    if incident.backend:
        yield Fact(name=f"backend_{incident.backend}")
    for name in incident.frameworks:
        event = next((e for e in observations.log.events if component(e) == name), None)
        yield _fact(f"framework_{name}", event)
        if observations.log.vocabulary.frameworks[name].server:
            yield _fact("inference_server", event, name)
        if name == "vllm":
            yield _fact("vllm_engine", event)


def _neighbours(observations: Observations) -> Iterator[Fact]:
    """What stands in the log beside the failure."""
    log = observations.log
    main = observations.main
    failure = main.event if main else next(iter(log.of_kind("timeout", "root")), None)
    if observations.incident.stage != "unknown":
        yield _fact(f"stage_{observations.incident.stage}", failure)
    for event in log.events:
        near = failure is None or (
            event.file == failure.file and abs(failure.line - event.line) <= NEAR_LINES
        )
        kind = log.vocabulary.type_of(event)
        if kind is not None and kind.fact and (near or not kind.nearby):
            yield _fact(kind.fact, event)
    inits = log.of(EventRole.INIT_COMPLETE)
    main_seq = main.seq if main is not None else None
    past = main_seq is not None and main_seq > EARLY_SEQ
    if (
        inits
        and not past
        and not any(e.line > inits[-1].line for e in log.of(EventRole.AFTER_INIT))
    ):
        yield _fact("init_complete_last", inits[-1])


def _ends(observations: Observations) -> Iterator[Fact]:
    """How processes ended, and what came to NCCL's port."""
    for event in observations.log.of(EventRole.WRONG_MAGIC):
        if _is_http(event.fields.get("magic", "")):
            yield _fact("magic_number_http", event)
    for event in observations.log.events:
        code = exit_code(event)
        if code is not None:
            yield _fact(f"exit_code_{code}" if code >= 0 else f"signal_{-code}", event)


def _is_http(magic: str) -> bool:
    """Whether the eight bytes, little-endian, start an HTTP request (``GET /met``)."""
    try:
        text = bytes.fromhex(magic.rjust(16, "0"))[::-1]
    except ValueError:
        return False
    return text.startswith((b"GET ", b"POST", b"HEAD", b"OPTI", b"PUT "))


_SOURCES: tuple[Callable[[Observations], Iterator[Fact]], ...] = (
    _progress,
    _agreement,
    _standing,
    _compared,
    _joining,
    _ended,
    _who,
    _size,
    _clock,
    _errors,
    _place,
    _differences,
    _running_bar,
    _printers,
    _neighbours,
    _ends,
)
