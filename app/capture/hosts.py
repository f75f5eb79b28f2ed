"""Captures of several hosts, taken by the command line a person names: ssh, srun, kubectl exec."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from app.capture.archive import captures_in
from app.capture.budget import CAPTURE_S, Budget
from app.capture.take import HostCapture
from kb.errors import InputError
from kb.evidence.capture import CapturedHost, CaptureGap
from kb.text.redact import redact

CONNECT_S = 15.0  # for reaching a host, beside the time its capture takes
AT_ONCE = 16
MAX_ARCHIVE = 128 * 1024 * 1024  # bytes one host may send
_HOST = "{host}"
# What stands for a longer command line; every other --via is taken as it is.
_SHORT = {
    "ssh": "ssh -o BatchMode=yes {host}",
    "srun": "srun --overlap --ntasks=1 --nodes=1 --nodelist={host}",
    "kubectl exec": "kubectl exec {host} --",
}


def remote_command(via: str, host: str, arguments: Sequence[str]) -> list[str]:
    """The command line that runs `arguments` on `host`; ``{host}`` in `via` is where it stands."""
    words = shlex.split(_SHORT.get(via.strip(), via))
    if not any(_HOST in word for word in words):
        words.append(_HOST)
    return [word.replace(_HOST, host) for word in words] + [*arguments]


def take_from_hosts(
    hosts: Sequence[str], via: str, arguments: Sequence[str], budget: Budget
) -> list[HostCapture]:
    """What each host gave, in the order of `hosts`; one that fails says why."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        parts = pool.map(lambda host: _take_from(host, via, arguments, budget), hosts)
        return [capture for part in parts for capture in part]


def _take_from(host: str, via: str, arguments: Sequence[str], budget: Budget) -> list[HostCapture]:
    command = remote_command(via, host, arguments)
    done = budget.run(command, CAPTURE_S + CONNECT_S, most=MAX_ARCHIVE)
    why = done.failure
    if not why:
        try:
            return captures_in(done.output, host)
        except InputError as error:
            why = error.what
    gap = CaptureGap("capture.host_failed", {"host": host, "why": _last_line(why)})
    return [HostCapture(host=CapturedHost(name=host, gaps=(gap,)), files=())]


def _last_line(text: str) -> str:
    """The last line of what a program said: where it says what went wrong."""
    lines = [line for line in text.splitlines() if line.strip()]
    return redact(lines[-1])[0][:200] if lines else ""
