"""What the kernel knows of running processes: states, wait channels, sockets, memory."""

from __future__ import annotations

import os
import re
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.capture.processes import PROC, HostProcess
from kb.text.redact import redact

MAX_THREADS = 64  # shown of one process
_STATES = {
    "01": "ESTABLISHED",
    "02": "SYN_SENT",
    "03": "SYN_RECV",
    "04": "FIN_WAIT1",
    "05": "FIN_WAIT2",
    "06": "TIME_WAIT",
    "07": "CLOSE",
    "08": "CLOSE_WAIT",
    "09": "LAST_ACK",
    "0A": "LISTEN",
    "0B": "CLOSING",
}
# Settings of the libraries a hang may lie in; all else of an environment stays where it is.
_SETTING = re.compile(
    r"^(?:NCCL|RCCL|HCCL|TORCH|PYTORCH|GLOO|UCX|FI|OMPI|CUDA|HIP|ROCR|ASCEND|OMP|MKL|RANK|WORLD"
    r"|LOCAL|GROUP|MASTER|SLURM|VLLM|RAY|TP|PMI|PMIX|DEEPSPEED|ACCELERATE)(?:_[A-Z0-9_]+)?$"
)
_MEMORY = ("memory.max", "memory.current", "memory.events")


def process_states(processes: Sequence[HostProcess], busy: Mapping[int, float]) -> str:
    """One block a process: rank, state, share of a core, memory, and where its threads wait."""
    return "\n".join(_process_state(process, busy.get(process.pid)) for process in processes)


def _process_state(process: HostProcess, busy: float | None) -> str:
    folder = PROC / str(process.pid)
    status = _fields(_text(folder / "status"))
    rank = "" if process.rank is None else f"rank {process.rank} "
    share = "" if busy is None else f" cpu {busy:.0%}"
    head = (
        f"{rank}pid {process.pid} parent {process.parent}: state {status.get('State', '?')}{share}"
        f" rss {status.get('VmRSS', '?')} threads {status.get('Threads', '?')}"
    )
    lines = [head, f"  {process.command}"]
    try:
        threads = sorted((folder / "task").iterdir(), key=lambda path: int(path.name))
    except OSError:
        threads = []
    for thread in threads[:MAX_THREADS]:
        state = _text(thread / "stat").rpartition(")")[2].split()[:1]
        name = _text(thread / "comm").strip()
        where = _text(thread / "wchan").strip() or "?"
        lines.append(f"  thread {thread.name} {name}: {''.join(state)} in {where}")
    return "\n".join(lines) + "\n"


def cpu_seconds(processes: Sequence[HostProcess]) -> dict[int, float]:
    """Seconds of computing so far, by process."""
    ticks = os.sysconf("SC_CLK_TCK")
    seconds: dict[int, float] = {}
    for process in processes:
        fields = _text(PROC / str(process.pid) / "stat").rpartition(")")[2].split()
        if len(fields) > 12:
            seconds[process.pid] = (int(fields[11]) + int(fields[12])) / ticks
    return seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class _Socket:
    local: str
    peer: str
    state: str
    queues: tuple[int, int]  # bytes to be sent, bytes to be read
    inode: str


def open_sockets(processes: Sequence[HostProcess]) -> str:
    """A line each TCP socket of `processes`: whose, to whom of them, and what waits in it."""
    owners: dict[str, HostProcess] = {}
    for process in processes:
        for inode in _socket_inodes(process.pid):
            owners.setdefault(inode, process)
    held = [item for item in _sockets(processes) if item.inode in owners]
    by_local = {item.local: owners[item.inode] for item in held}
    lines = []
    for item in held:
        peer = by_local.get(item.peer)
        whom = f" ({_name(peer)})" if peer is not None else ""
        sent, read = item.queues
        lines.append(
            f"{_name(owners[item.inode])} {item.local} -> {item.peer}{whom} {item.state}"
            f" to send {sent} to read {read}"
        )
    return "\n".join(sorted(lines)) + "\n" if lines else ""


def listening_ports(processes: Sequence[HostProcess]) -> set[int]:
    """Ports at which `processes` listen."""
    inodes = {inode for process in processes for inode in _socket_inodes(process.pid)}
    return {
        int(item.local.rpartition(":")[2])
        for item in _sockets(processes)
        if item.state == "LISTEN" and item.inode in inodes
    }


def _name(process: HostProcess) -> str:
    return f"pid {process.pid}" if process.rank is None else f"rank {process.rank}"


def _socket_inodes(pid: int) -> list[str]:
    inodes = []
    try:
        for link in (PROC / str(pid) / "fd").iterdir():
            target = str(link.readlink())
            if target.startswith("socket:["):
                inodes.append(target[8:-1])
    except OSError:  # closed meanwhile, or another user's
        pass
    return inodes


def _sockets(processes: Sequence[HostProcess]) -> list[_Socket]:
    """TCP sockets of the network the processes live in."""
    result = []
    for process in processes[:1]:
        for name in ("tcp", "tcp6"):
            for line in _text(PROC / str(process.pid) / "net" / name).splitlines()[1:]:
                fields = line.split()
                if len(fields) > 9:
                    sent, _, read = fields[4].partition(":")
                    result.append(
                        _Socket(
                            local=_address(fields[1]),
                            peer=_address(fields[2]),
                            state=_STATES.get(fields[3], fields[3]),
                            queues=(int(sent, 16), int(read, 16)),
                            inode=fields[9],
                        )
                    )
    return result


def _address(text: str) -> str:
    """``0100007F:1F90`` as ``127.0.0.1:8080``: words of the host's byte order."""
    host, _, port = text.partition(":")
    words = [int(host[at : at + 8], 16) for at in range(0, len(host), 8)]
    packed = struct.pack(f"={len(words)}I", *words)
    if len(packed) == 4:
        return f"{socket.inet_ntop(socket.AF_INET, packed)}:{int(port, 16)}"
    shown = socket.inet_ntop(socket.AF_INET6, packed)
    if shown.startswith("::ffff:") and "." in shown:
        return f"{shown[7:]}:{int(port, 16)}"
    return f"[{shown}]:{int(port, 16)}"


def settings_of(ranks: Sequence[HostProcess]) -> str:
    """Settings of communication libraries: those all ranks share, then each rank's own."""
    chosen = [
        {name: value for name, value in rank.environ.items() if _SETTING.match(name)}
        for rank in ranks
    ]
    if not chosen:
        return ""
    shared = {
        pair for pair in chosen[0].items() if all(pair in other.items() for other in chosen[1:])
    }
    lines = [f"{name}={value}" for name, value in sorted(shared)]
    for rank, pairs in zip(ranks, chosen, strict=True):
        own = sorted(pair for pair in pairs.items() if pair not in shared)
        lines += [f"{_name(rank)}: {name}={value}" for name, value in own]
    return redact("\n".join(lines) + "\n")[0]


def memory_of_host() -> str:
    """Memory of the host and of this control group, kills for lack of it included."""
    lines = _text(PROC / "meminfo").splitlines()[:5]
    group = _text(PROC / "self/cgroup").strip().rpartition("::")[2]
    for folder in (Path("/sys/fs/cgroup") / group.lstrip("/"), Path("/sys/fs/cgroup")):
        values = {name: _text(folder / name).split() for name in _MEMORY}
        if values["memory.current"]:
            lines += [f"{name} {' '.join(words)}" for name, words in values.items() if words]
            break
    return "\n".join(lines) + "\n"


def _fields(status: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in status.splitlines())
    return {name: " ".join(value.split()) for name, _, value in pairs}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
