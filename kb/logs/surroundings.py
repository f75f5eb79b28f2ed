"""Backend, frameworks, versions, settings, transport and world size printed in a log."""

from __future__ import annotations

from collections.abc import Sequence

from kb.logs.picture import Surroundings, number
from kb.types import Event

_BACKENDS = ("hccl", "rccl", "nccl", "gloo")
_FRAMEWORKS = frozenset(
    [
        "deepspeed",
        "vllm",
        "sglang",
        "ray",
        "horovod",
        "megatron",
        "lightning",
        "accelerate",
        "transformers",
        "nemo",
        "verl",
        "trl",
        "swift",
        "llamafactory",
        "fairseq",
        "mmengine",
        "paddle",
        "mindspore",
        "fsdp",
        "ddp",
        "torchtitan",
        "torchtune",
        "tgi",
        "colossalai",
        "xtuner",
        "wenet",
        "openrlhf",
        "detectron2",
        "ultralytics",
        "trtllm",
        "dynamo",
        "lmdeploy",
    ]
)
_SOURCES = {
    "LLaMA-Factory": "llamafactory",
    "LlamaFactory": "llamafactory",
    "ms-swift": "swift",
    "Megatron-LM": "megatron",
    "OpenRLHF": "openrlhf",
    "DeepSpeedExamples": "deepspeed",
    "mmdetection": "mmengine",
    "pytorch_lightning": "lightning",
}
_WORLD_NAMES = frozenset({"num_processes", "world_size", "nranks"})
_TRANSPORTS = {"P2P": "p2p", "SHM": "shm", "Socket": "socket"}
MAX_SETTINGS = 200
MAX_WORLD = 1_000_000


def read_surroundings(events: Sequence[Event]) -> Surroundings:
    """Read everything about the job that stands beside the failure."""
    return Surroundings(
        backend=_backend(events),
        frameworks=_frameworks(events),
        versions=_versions(events),
        settings=_settings(events),
        transport=_transport(events),
        world_size=_world_size(events),
        hosts=tuple(sorted({event.host for event in events if event.host})),
    )


def component(event: Event) -> str:
    """The first word of the pattern's id: the backend or framework that printed the line."""
    return event.pattern_id.partition("-")[0]


def _backend(events: Sequence[Event]) -> str:
    """The backend whose failure it is: of timeouts and roots first, then of anything."""
    for kinds in (("timeout",), ("root", "cascade"), ("context", "fact", "teardown")):
        seen = {component(event) for event in events if event.kind in kinds}
        for backend in _BACKENDS:
            if backend in seen:
                return "rccl" if backend == "nccl" and _is_rocm(events) else backend
    return ""


def _is_rocm(events: Sequence[Event]) -> bool:
    return any(component(event) == "rccl" or "rocm" in event.fields for event in events)


def _frameworks(events: Sequence[Event]) -> tuple[str, ...]:
    seen = {component(event) for event in events} & _FRAMEWORKS
    for event in events:
        if event.event == "framework":
            name = event.fields.get("framework") or event.fields.get("source", "")
            seen.add(_SOURCES.get(name, name.lower()))
    return tuple(sorted(seen & _FRAMEWORKS))


def _versions(events: Sequence[Event]) -> dict[str, str]:
    """The first version printed of each thing; fields of version events are name → version."""
    versions: dict[str, str] = {}
    for event in events:
        if event.event == "version":
            for name, value in event.fields.items():
                if name not in ("clock", "name", "what"):
                    versions.setdefault(name, value)
        elif event.event == "package":
            name = event.fields.get("name", "").lower().replace("-", "_")
            if name and event.fields.get("version"):
                versions.setdefault(name, event.fields["version"])
    return dict(sorted(versions.items()))


def _settings(events: Sequence[Event]) -> dict[str, str]:
    """Settings by name, the last value said."""
    settings: dict[str, str] = {}
    for event in events:
        name = event.fields.get("name")
        if event.event == "setting" and name and len(settings) < MAX_SETTINGS:
            settings[name] = event.fields.get("value", "").rstrip(".,;")
    return dict(sorted(settings.items()))


def _transport(events: Sequence[Event]) -> tuple[str, ...]:
    """`p2p`, `shm`, `socket`, `ib`, and chosen interfaces as ``if:<name>``."""
    found: set[str] = set()
    for event in events:
        what = event.fields.get("what", "")
        if event.event in ("channel", "network"):
            last = what.removeprefix("NET/")
            found.add(_TRANSPORTS.get(last, "ib" if last else ""))
        elif event.event == "ib_devices":
            found.add("ib")
        elif event.event == "interface":
            found.add(f"if:{event.fields.get('iface', '')}")
    return tuple(sorted(found - {"", "if:"}))


def _world_size(events: Sequence[Event]) -> int | None:
    sizes = [
        size
        for event in events
        if (size := number(event.fields.get("world_size"))) is not None and 0 < size < MAX_WORLD
    ]
    sizes += [
        size
        for event in events
        if event.event == "parallel_size"
        and event.fields.get("name", "").lower() in _WORLD_NAMES
        and (size := number(event.fields.get("size"))) is not None
        and 1 < size < MAX_WORLD
    ]
    return max(sizes) if sizes else None
