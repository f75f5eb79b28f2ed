"""Facts: statements derived from the picture that can speak for or against a cause.

Names are stable; the evidence model weighs them. Every fact carries the line it stands on.

=============================== ================================================================
name                            meaning
=============================== ================================================================
progress, ranks
rank_behind                     a rank's last enqueued work or timed-out number is below others'
enqueued_beyond_timeout         work was enqueued beyond the timed-out number: the host ran on
nothing_beyond_timeout          the timed-out work is the last one enqueued: the host waits for it
enqueued_equals_completed_plus_one  exactly one work is under way
gap_enqueued_completed          ten or more works lie between last completed and last enqueued
none_completed                  a group's first work never completed (last completed -1 or 0)
all_ranks_same_op_none_completed  several ranks, one op and number, none completed, none missing
mismatch_proven                 one group and number, different op or size across ranks
mismatch_excluded               three or more ranks agree on op, number and size, none differs
different_ops_hang              ranks of one group time out in different operations
ranks_missing                   some ranks of the world report nothing
all_ranks_report                every rank of a known world reports
single_rank_reports             one rank reports, others are unknown
rank0_missing, rank0_only       rank 0 is the only silent, or the only reporting one
different_groups_hang           ranks time out in different process groups
collective
op_<name>                       op of the incident: allreduce, allgather_base, broadcast, ...
tiny_numel                      at most 16 elements: no bandwidth is involved
scalar_allreduce                an ALLREDUCE of one element: a barrier, a flag or a metric
large_numel                     at least 2^20 elements
first_collective                number 1: the group never worked
early_seq                       number 2 to 5
mid_training_seq                number 100 or more
large_seq                       number 10,000 or more
clock
default_timeout_600s            the NCCL default since torch 2.2
default_timeout_1800s           the default before, and Gloo's
custom_timeout, short_timeout   another value; at most 120 s
timeout_in_wrong_unit           a value such as 1800 ms: seconds passed as milliseconds
nccl_timeout_ignored            NCCL_TIMEOUT is set and the log shows another limit
several_waves                   more than one burst of timeouts
first errors
first_error_before_timeout      an error stands before the first timeout (detail: its kind)
error_after_timeout             the only error stands after a timeout (detail: its kind)
only_timeout_lines              timeouts and their consequences, nothing else
cascade_only                    only consequences: what broke first is not in this log
no_timeout_line                 a communication failure without any timeout
single_rank_error               the first error is on one known rank, others time out or follow
surroundings
single_node, multi_node         by addresses, hosts, or device numbers
transport_<kind>                ib, socket, p2p, shm
transport_wrong_interface       NCCL chose loopback, a bridge, a tunnel or a container's interface
backend_<name>                  nccl, gloo, hccl, rccl
framework_<name>                who printed: deepspeed, vllm, ...
inference_server                vLLM, SGLang, TGI, ...
vllm_engine                     vLLM lines
stage_<name>                    init, data, train, eval, save, load, inference
init_complete_last              communicators came up and nothing followed
at_<what>, in_<what>             what runs next to the failure: at_eval, at_save, in_backward, ...
tokenizer_or_map_progress_nearby  preprocessing bars beside the failure
bar_of_bytes                    a data or download bar beside the failure
exit_code_<n>, signal_<n>       how processes ended
magic_number_http               the wrong magic spells an HTTP request: a scraper on NCCL's port
heartbeat_monitor               the watchdog itself was stuck
fr_dump_failed                  the flight recorder could not write
setting_<name>                  a telling setting is present (p2p_disable, ib_disable, ...)
<event>                         the event itself for kinds in `DIRECT`
=============================== ================================================================
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator

from kb.logs.culprits import (
    PAIRED,
    SHARED,
    hanging_places,
    odd_fingerprint,
    odd_reports,
    work,
)
from kb.logs.picture import Picture, Report
from kb.logs.ranks import behind, exit_code
from kb.logs.surroundings import component
from kb.types import Event, Fact

TINY_NUMEL = 16  # a barrier, a flag, a handful of metrics
LARGE_NUMEL = 1 << 20  # four megabytes in fp32: bandwidth may matter from here
EARLY_SEQ = 5  # barriers and id exchange of the first moments
MID_SEQ = 100  # set-up is long over
LARGE_SEQ = 10_000  # hours of training
GAP_WORKS = 10  # the host ran well ahead of the device
SHORT_TIMEOUT_MS = 120_000
UNIT_SLIP_MS = 100_000  # with "ran for" a thousand times longer
NEAR_LINES = 200
NODE_RANKS = 8  # accelerators of a usual node
PLACES_SHOWN = 8  # in the words of a fact
AGREE_RANKS = 3  # fewer ranks agreeing excludes little

_SERVERS = frozenset({"vllm", "sglang", "tgi", "lmdeploy", "trtllm", "dynamo"})
_WRONG_INTERFACE = re.compile(
    r"^if:(?:lo|docker|veth|virbr|br-|ip6tnl|tunl|cni|flannel|cali|tap)\w*"
)
_TELLING = {
    "NCCL_P2P_DISABLE": "p2p_disable",
    "NCCL_IB_DISABLE": "ib_disable",
    "NCCL_SHM_DISABLE": "shm_disable",
    "NCCL_BLOCKING_WAIT": "blocking_wait",
    "TORCH_NCCL_BLOCKING_WAIT": "blocking_wait",
    "NCCL_SOCKET_IFNAME": "socket_ifname",
    "GLOO_SOCKET_IFNAME": "gloo_ifname",
    "NCCL_IB_GID_INDEX": "gid_index",
    "CUDA_LAUNCH_BLOCKING": "launch_blocking",
}
# Events that are facts as they stand, under the name given here.
DIRECT = {
    "invalidate_trace_cache": "invalidate_trace_cache",
    "gloo_loopback": "gloo_full_mesh_loopback",
    "gloo_full_mesh": "gloo_full_mesh",
    "heartbeat_monitor": "heartbeat_monitor",
    "fr_dump_failed": "fr_dump_failed",
    "uneven_join": "uneven_join",
    "unused_parameters": "unused_parameters",
    "barrier_without_device": "barrier_without_device",
    "horovod_stall": "horovod_stall",
    "epoch_end": "at_epoch_end",
    "evaluating": "at_eval",
    "saving": "at_save",
    "loading": "at_load",
    "frame_backward": "in_backward",
    "frame_generate": "in_generate",
    "frame_optimizer": "in_optimizer_step",
    "frame_barrier": "in_barrier",
    "frame_dataloader": "in_dataloader",
    "frame_object_collective": "in_object_collective",
    "frame_init": "in_init_process_group",
    "frame_fsdp_unshard": "in_fsdp_unshard",
    "cuda_graph": "cuda_graph_capture",
    "hang_sign": "hang_sign",
    "rpc_timeout": "rpc_timeout",
    "monitored_barrier": "monitored_barrier",
    "store_timeout": "store_timeout",
    "download_bar": "bar_of_bytes",
}
_NEARBY_ONLY = frozenset(
    {"evaluating", "saving", "loading", "epoch_end", "download_bar", "cuda_graph"}
)


def find_facts(picture: Picture) -> tuple[Fact, ...]:
    """All facts, by name; each name once, on the first line that shows it."""
    found: dict[str, Fact] = {}
    for source in _SOURCES:
        for fact in source(picture):
            found.setdefault(fact.name, fact)
    return tuple(found[name] for name in sorted(found))


def _fact(name: str, event: Event | None = None, detail: str = "") -> Fact:
    if event is None:
        return Fact(name=name, detail=detail)
    return Fact(name=name, line=event.line, quote=event.text, detail=detail, file=event.file)


def _progress(picture: Picture) -> Iterator[Fact]:
    slow = behind(picture)
    if slow:
        rank = min(slow)
        yield _fact("rank_behind", slow[rank], ",".join(map(str, sorted(slow))))
    for item in picture.progress:
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


def _agreement(picture: Picture) -> Iterator[Fact]:
    odd = odd_reports(picture)
    if odd:
        yield _fact("mismatch_proven", odd[0][0].event, _sides(picture, odd[0][0]))
    named = ",".join(str(culprit.rank) for culprit in odd_fingerprint(picture))
    for event in picture.of("mismatch_detected"):
        yield _fact("mismatch_proven", event, f"rank {named}" if named else "")
    main = picture.main
    if main is None or main.seq is None or odd:
        return
    same = [r for r in picture.opening if (r.seq, r.op) == (main.seq, main.op)]
    ranks = {r.rank for r in same if r.rank is not None}
    places = hanging_places(picture)
    ops = {report.op for report, _ in places}
    if len(ops) > 1 and not ops <= PAIRED:
        shown = (
            f"rank {','.join(map(str, there[:16]))}: {work(r)} {r.seq}"
            for r, there in places[:PLACES_SHOWN]
        )
        yield _fact("different_ops_hang", places[-1][0].event, "; ".join(shown))
    groups = {r.process_group for r in picture.opening if r.process_group}
    agree = len(ranks) >= AGREE_RANKS and len({r.numel_in for r in same}) == 1
    if agree and len(places) == 1 and not behind(picture):
        yield _fact("mismatch_excluded", main.event, f"{len(ranks)} ranks agree")
        if not picture.silent:
            yield _fact("all_ranks_same_op_none_completed", main.event)
    if len(groups) > 1:
        yield _fact("different_groups_hang", main.event, ",".join(sorted(groups)[:8]))


def _sides(picture: Picture, odd: Report) -> str:
    """Who runs what at one number of a group: ``rank 0: ALLREDUCE(8); rank 1: ALLREDUCE(1)``."""
    sides: dict[str, list[int]] = defaultdict(list)
    for report in picture.opening:
        here = (report.process_group, report.seq) == (odd.process_group, odd.seq)
        if here and report.op and report.rank is not None:
            sides[work(report)].append(report.rank)
    named = sorted((sorted(set(ranks)), side) for side, ranks in sides.items())[:PLACES_SHOWN]
    return "; ".join(f"rank {','.join(map(str, ranks[:16]))}: {side}" for ranks, side in named)


def _who(picture: Picture) -> Iterator[Fact]:
    main = picture.main
    event = main.event if main else None
    shown = ",".join(map(str, picture.silent[:16]))
    if picture.silent:
        yield _fact("ranks_missing", event, shown)
        if picture.silent == (0,):
            yield _fact("rank0_missing", event)
    if len(picture.reporting) == 1:
        yield _fact("single_rank_reports", event, str(picture.reporting[0]))
        if picture.reporting == (0,):
            yield _fact("rank0_only", event)
    world = picture.around.world_size
    if world is not None and len(picture.reporting) >= world > 1:
        yield _fact("all_ranks_report", event, str(world))


def _size(picture: Picture) -> Iterator[Fact]:
    main = picture.main
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


def _position(main: Report) -> Iterator[Fact]:
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


def _clock(picture: Picture) -> Iterator[Fact]:
    report = next((r for r in picture.opening if r.timeout_ms), None)
    if len(picture.waves) > 1:
        later = picture.waves[1]
        detail = str(len(picture.waves))
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
    asked = picture.around.settings.get("NCCL_TIMEOUT", "")
    if asked.isdigit() and int(asked) * 1000 != limit and int(asked) != limit:
        yield _fact("nccl_timeout_ignored", report.event, f"NCCL_TIMEOUT={asked}, limit {limit} ms")


def _errors(picture: Picture) -> Iterator[Fact]:
    timeouts = picture.timeouts()
    error = picture.first_error_event
    if error is not None:
        if error.event in SHARED:  # proves a difference between ranks; no rank broke by itself
            return
        here = [t for t in timeouts if t.file == error.file]
        if timeouts and (not here or error.line <= here[0].line):
            yield _fact("first_error_before_timeout", error, error.event)
        elif timeouts:
            yield _fact("error_after_timeout", error, error.event)
        else:
            yield _fact("no_timeout_line", error, error.event)
        follow = {e.rank for e in picture.events if e.kind == "cascade" and e.rank is not None}
        others = (set(picture.reporting) | follow) - {error.rank}
        if error.rank is not None and others:
            yield _fact("single_rank_error", error, str(error.rank))
        return
    if timeouts:
        yield _fact("only_timeout_lines", timeouts[0])
        return
    cascades = [event for event in picture.events if event.kind == "cascade"]
    if cascades:
        yield _fact("cascade_only", cascades[0])


def _hosts(picture: Picture) -> set[str]:
    """Hosts named by prefixes and by the addresses of failed peers."""
    hosts = set(picture.around.hosts)
    for event in picture.of("peer_closed", "ib_completion_error", "nccl_connect_failed"):
        if match := re.match(r"\d+\.\d+\.\d+\.\d+", event.fields.get("addr", "")):
            hosts.add(match[0])
    return hosts


def _place(picture: Picture) -> Iterator[Fact]:
    around = picture.around
    hosts = _hosts(picture)
    if len(hosts) > 1 or "ib" in around.transport:
        yield _fact("multi_node", detail=",".join(sorted(hosts)[:8]))
    elif len(hosts) == 1 and around.world_size and around.world_size <= NODE_RANKS:
        yield _fact("single_node", detail=next(iter(hosts)))
    for name in around.transport:
        if _WRONG_INTERFACE.match(name):
            yield _fact("transport_wrong_interface", picture.of("interface")[0], name)
        elif not name.startswith("if:"):
            events = picture.of("channel", "network", "ib_devices")
            yield _fact(f"transport_{name}", events[0] if events else None)
    for name, short in _TELLING.items():
        if name in around.settings:
            yield Fact(name=f"setting_{short}", detail=f"{name}={around.settings[name]}")


def _printers(picture: Picture) -> Iterator[Fact]:
    """Who printed: backend and frameworks."""
    around = picture.around
    if around.backend:
        yield Fact(name=f"backend_{around.backend}")
    for name in around.frameworks:
        event = next((e for e in picture.events if component(e) == name), None)
        yield _fact(f"framework_{name}", event)
        if name in _SERVERS:
            yield _fact("inference_server", event, name)
        if name == "vllm":
            yield _fact("vllm_engine", event)


def _neighbours(picture: Picture) -> Iterator[Fact]:
    failures = [event for event in picture.events if event.kind in ("timeout", "root")]
    main = picture.main
    failure = main.event if main else (failures[0] if failures else None)
    if picture.stage != "unknown":
        yield _fact(f"stage_{picture.stage}", failure)
    for event in picture.events:
        near = failure is None or (
            event.file == failure.file and abs(failure.line - event.line) <= NEAR_LINES
        )
        if event.event == "preprocessing" and near:
            yield _fact("tokenizer_or_map_progress_nearby", event)
        name = DIRECT.get(event.event)
        if name and (near or event.event not in _NEARBY_ONLY):
            yield _fact(name, event)
    inits = picture.of("init_complete")
    if inits:
        last = inits[-1]
        later = [
            e
            for e in picture.events
            if e.line > last.line and e.event in ("train_step", "bar", "train_start", "evaluating")
        ]
        if not later:
            yield _fact("init_complete_last", last)


def _ends(picture: Picture) -> Iterator[Fact]:
    for event in picture.events:
        code = exit_code(event)
        if code is not None:
            yield _fact(f"exit_code_{code}" if code >= 0 else f"signal_{-code}", event)
        if event.event == "wrong_magic" and _is_http(event.fields.get("magic", "")):
            yield _fact("magic_number_http", event)


def _is_http(magic: str) -> bool:
    """Whether the eight bytes, little-endian, start an HTTP request (``GET /met``)."""
    try:
        text = bytes.fromhex(magic.rjust(16, "0"))[::-1]
    except ValueError:
        return False
    return text.startswith((b"GET ", b"POST", b"HEAD", b"OPTI", b"PUT "))


_SOURCES: tuple[Callable[[Picture], Iterator[Fact]], ...] = (
    _progress,
    _agreement,
    _who,
    _size,
    _clock,
    _errors,
    _place,
    _printers,
    _neighbours,
    _ends,
)
