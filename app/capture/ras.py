"""NCCL's RAS service asked over and over: ranks that stay behind hang before any watchdog says so.

The service of a job (NCCL 2.24 and later) answers text on a TCP port of each node,
https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/ras.html. One report is a
sample of a moving target: a rank may be behind at any moment. One that is behind with the same
count in report after report does not move.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.capture import state
from app.capture.budget import Budget
from app.capture.polling import Polling
from app.capture.processes import HostProcess
from kb.errors import InputError
from kb.evidence.ras import RankStandings, looks_like_ras, rank_standings

PORT = 28028  # NCCL's default
COMMAND = b"verbose status\n"
ANSWER_S = 5.0  # for one report
MAX_REPORT = 2 * 1024 * 1024
MIN_REPORTS = 3  # that agree, however far apart
REPORTS = 4  # asked for within the time a rank may stay behind
MAX_PAUSE_S = 30.0  # between two reports
DEAD = -1  # the count of a rank that is gone


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckRanks:
    """Ranks that did not move, and for how long."""

    ranks: tuple[int, ...]
    seconds: float


@dataclass(slots=True)
class _Standing:
    """Since when a rank is behind with the same count, and in how many reports."""

    count: int
    since_s: float
    reports: int = 1


class RasReports:
    """Reports that follow each other: who has not moved for `after_s`, and that it moved again."""

    def __init__(self, after_s: float) -> None:
        self._after_s = after_s
        self._behind: dict[tuple[int, str], _Standing] = {}  # rank and kind of operation
        self._stuck: dict[tuple[int, str], _Standing] = {}  # that were told

    def take(self, standings: RankStandings, now_s: float) -> StuckRanks | None:
        """The ranks that are found stuck by this report; None where that is nothing new."""
        counts = {(item.rank, item.op): item.own for item in standings.late}
        counts |= {(rank, ""): DEAD for rank in standings.dead}
        self._behind = {key: self._standing(key, count, now_s) for key, count in counts.items()}
        stuck = {
            key: item
            for key, item in self._behind.items()
            if item.reports >= MIN_REPORTS and now_s - item.since_s >= self._after_s
        }
        if not stuck or self._stuck:
            return None
        self._stuck = stuck
        return _stuck_ranks(stuck, now_s)

    def went_on(self, now_s: float) -> StuckRanks | None:
        """The ranks that were told to be stuck, where all of them have moved since."""
        if not self._stuck or any(
            self._behind.get(key) is item for key, item in self._stuck.items()
        ):
            return None
        stuck, self._stuck = self._stuck, {}
        return _stuck_ranks(stuck, now_s)

    def _standing(self, key: tuple[int, str], count: int, now_s: float) -> _Standing:
        known = self._behind.get(key)
        if known is None or known.count != count:
            return _Standing(count, now_s)
        known.reports += 1
        return known


def _stuck_ranks(stuck: dict[tuple[int, str], _Standing], now_s: float) -> StuckRanks:
    return StuckRanks(
        ranks=tuple(sorted({rank for rank, _ in stuck})),
        seconds=now_s - min(item.since_s for item in stuck.values()),
    )


def ras_report(ranks: Sequence[HostProcess], budget: Budget) -> tuple[str, bool]:
    """The report of the service where a process of the job listens for it, and whether it is whole.

    Empty where nobody listens.
    """
    ports = state.listening_ports(ranks)
    for address in sorted({rank.environ.get("NCCL_RAS_ADDR", "") for rank in ranks}):
        host, _, port = (address or f"localhost:{PORT}").rpartition(":")
        if port.isdigit() and int(port) in ports:
            report, whole = _ask_service(host.strip("[]"), int(port), budget)
            return report.decode("utf-8", "replace"), whole
    return "", True


def _ask_service(host: str, port: int, budget: Budget) -> tuple[bytes, bool]:
    """What the service answers; it ends by closing the connection."""
    report = b""
    limit_s = min(ANSWER_S, budget.left_s)
    try:
        with socket.create_connection((host, port), timeout=limit_s) as peer:
            peer.sendall(COMMAND)
            while budget.left_s and len(report) < MAX_REPORT:
                piece = peer.recv(65536)
                if not piece:
                    return report, True
                report += piece
    except OSError:
        pass
    return report, False


class RasWatch(Polling):
    """Asks the RAS service of the job whose ranks on this host `ranks` gives, until `stop`.

    `act` is called once ranks have not moved for `after_s`, `went_on` once they have.
    """

    def __init__(
        self,
        ranks: Callable[[], Sequence[HostProcess]],
        after_s: float,
        act: Callable[[StuckRanks], None],
        went_on: Callable[[StuckRanks], None],
    ) -> None:
        self._ranks = ranks
        self._reports = RasReports(after_s)
        self._act, self._went_on = act, went_on
        super().__init__(self._ask, min(after_s / REPORTS, MAX_PAUSE_S))

    def _ask(self, stop: threading.Event) -> None:
        try:
            report, whole = ras_report(self._ranks(), Budget(ANSWER_S, stop))
            if not whole or not looks_like_ras(report):
                return
            standings = rank_standings(report)
        except (OSError, InputError):  # the job begins or ends, or says nonsense
            return
        now_s = time.monotonic()
        if stuck := self._reports.take(standings, now_s):
            self._act(stuck)
        elif moved := self._reports.went_on(now_s):
            self._went_on(moved)
