"""In which part of a run it happened, from the neighbourhood of the failure."""

from __future__ import annotations

from collections.abc import Sequence

from kb.logs.picture import Report
from kb.types import Event, Stage

NEAR_LINES = 400  # lines before the failure that tell its stage
EARLY_SEQ = 5  # collectives of a group's first moments: id exchange, first barrier
_BY_EVENT: dict[str, Stage] = {
    "preprocessing": "data",
    "data_loading": "data",
    "saving": "save",
    "loading": "load",
    "evaluating": "eval",
    "train_step": "train",
    "train_start": "train",
    "inference": "inference",
    "frame_generate": "inference",
    "frame_backward": "train",
    "frame_optimizer": "train",
    "frame_init": "init",
    "main_process_first": "data",
    "load_barrier": "load",
    "cuda_graph": "init",
    "init_start": "init",
    "rendezvous_failed": "init",
    "store_connect": "init",
    "port_in_use": "init",
    "gloo_full_mesh": "init",
    "duplicate_gpu": "init",
    "store_timeout": "init",
    "no_interface": "init",
}
# Failures that belong to the setting up of communicators where nothing else is told.
_INIT_FAILURES = frozenset(
    [
        "shm_full",
        "nccl_connect_failed",
        "nvls_failed",
        "wrong_magic",
        "nccl_version_mismatch",
        "bootstrap_failed",
        "ofi_error",
        "gloo_loopback",
        "gloo_hostname",
        "gloo_interface",
        "bad_address",
        "topology",
        "hccl_socket_timeout",
        "hccl_transport",
        "hccl_topology",
        "hccp_init",
        "invalid_device",
        "store_barrier_waiting",
        "ib_connect_failed",
        "nccl_invalid_usage",
        "memlock",
        "fabric_manager",
        "version_conflict",
    ]
)


def find_stage(events: Sequence[Event], failure: Event | None, main: Report | None) -> Stage:
    """The stage of the failure, or `unknown`."""
    if failure is None:  # a hang that printed nothing: the last stage told is where it stands
        return _elsewhere(events)
    near = [
        event
        for event in events
        if event.file == failure.file
        and failure.line - NEAR_LINES <= event.line <= failure.line + 2
    ]
    told = [event for event in near if event.event in _BY_EVENT]
    early = main is not None and main.seq is not None and main.seq <= EARLY_SEQ
    if told:
        last = max(told, key=lambda event: (event.line, event.pattern_id))
        return _BY_EVENT[last.event]
    if any(event.event == "bar" for event in near) and not early:
        return "train"
    if early or any(event.event == "init_complete" for event in near):
        return "init"
    if main is not None and main.seq is not None:
        return "train"
    elsewhere = _elsewhere(events)
    return "init" if elsewhere == "unknown" and failure.event in _INIT_FAILURES else elsewhere


def _elsewhere(events: Sequence[Event]) -> Stage:
    """The last stage told anywhere, for logs whose failure has no neighbourhood."""
    told = [event for event in events if event.event in _BY_EVENT]
    return _BY_EVENT[told[-1].event] if told else "unknown"
