"""All faces of `timeout-kb up` at work for a long time: memory, errors and waits, by the minute.

Run: ``python -m tests.bench.soak MINUTES [PAUSE_S]``. Logs, forms with dumps, conversations,
additions that go again, mentions in Slack and visits of the page come at once, each of them again
after a pause. Every minute prints a line, so a run that is cut off tells what it saw.
"""

from __future__ import annotations

import contextlib
import json
import math
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from kb.settings import shipped_data
from tests.app.slack.fake.fake_slack import FakeSlack
from tests.app.slack.fake.installation import finished
from tests.app.slack.fake.manifest import read_manifest
from tests.bench.bench_diagnose import percentile
from tests.bench.short_logs import short_logs
from tests.browser.visits import Site, Visit, browser, chromium_path, new_context, running
from tests.fuzz.targets import SEEDS

MINUTE_S = 60.0
VARIANTS = 240
REPEAT_EVERY = 5
ADDED = 30  # entries that stay: the oldest of them go, as the store must not grow
CHECKS = ("", "no, that is not it", "What should I check first?", "第 3 张卡怎么了？")
VIEWS = ("", "cases", "search", "chat", "incidents")
RANKS = 4  # dumps of a form
OWN_MB = 20  # smaller processes are helpers of multiprocessing
TIMEOUT_S = 120.0


@dataclass
class Tally:
    """What happened, by kind of work: seconds each took, and what failed."""

    taken: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        """Count what another saw as well."""
        for kind, taken in other.taken.items():
            self.taken[kind] += taken
        self.errors += other.errors


@dataclass
class Soak:
    """The work on one site until `end`."""

    site: Site
    pause_s: float
    end: threading.Event = field(default_factory=threading.Event)
    now: Tally = field(default_factory=Tally)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def repeat(self, kind: str, works: Iterator[Callable[[], object]]) -> None:
        """Do one work after the other, with a pause between, until the end."""
        for work in works:
            started = time.monotonic()
            error = ""
            try:
                work()
            except Exception as failure:  # noqa: BLE001 - the soak counts whatever fails
                error = f"{kind}: {type(failure).__name__}: {failure}"[:200]
            with self.lock:
                self.now.taken[kind].append(time.monotonic() - started)
                if error:
                    self.now.errors[error] += 1
            if self.end.wait(self.pause_s):
                return

    def minute(self) -> Tally:
        """What happened since the last call."""
        with self.lock:
            last, self.now = self.now, Tally()
        return last

    @contextlib.contextmanager
    def client(self) -> Iterator[httpx.Client]:
        """A client of the API that raises for what is refused."""
        hooks: dict[str, list[Callable[..., Any]]] = {"response": [_raise]}
        with httpx.Client(
            base_url=self.site.api, timeout=TIMEOUT_S, event_hooks=hooks, trust_env=False
        ) as client:
            yield client


def _raise(answer: httpx.Response) -> None:
    answer.read()
    answer.raise_for_status()


# --- what is done, each an endless row ------------------------------------------------------------

Works = Iterator[Callable[[], object]]


def diagnoses(client: httpx.Client, logs: list[str]) -> Works:
    """Logs, most of them new; one in five is a repeat, one in ten is kept."""
    for number in range(sys.maxsize):
        log = logs[number % len(logs)]
        body = log if number % REPEAT_EVERY == 0 else f"{log}run {number}\n"
        query = "?keep=true" if number % 10 == 3 else ""
        headers = {"Content-Type": "text/plain"}
        yield partial(client.post, f"/v1/diagnose{query}", content=body.encode(), headers=headers)


def dumps(client: httpx.Client, logs: list[str]) -> Works:
    """Forms with a log and the dumps of some ranks."""
    seed = SEEDS["recorder-pickle"]()[-1]
    for number in range(sys.maxsize):
        log = f"{logs[number % len(logs)]}form {number}\n".encode()
        files = [("file", ("job.log", log))]
        files += [("dump", (f"nccl_trace_rank_{rank}", seed)) for rank in range(RANKS)]
        yield partial(client.post, "/v1/diagnose", files=files)


def conversations(client: httpx.Client, logs: list[str]) -> Works:
    """A log and what people say next, then another log."""
    identifier = ""

    def say(message: str, *, new: bool) -> None:
        nonlocal identifier
        body = {"message": message, "conversation": "" if new else identifier}
        headers = {"Accept": "application/json"}
        answer = client.post("/v1/chat", json=body, headers=headers)
        identifier = answer.json()["conversation"]

    for number in range(sys.maxsize):
        turn = number % len(CHECKS)
        message = CHECKS[turn] or f"{logs[number % len(logs)]}chat {number}"
        yield partial(say, message, new=turn == 0)


def additions(client: httpx.Client, logs: list[str]) -> Works:
    """Incidents added, resolved, and deleted again."""
    there: list[str] = []

    def add(number: int) -> None:
        text = f"{logs[number % len(logs)]}incident {number}\n"
        answer = client.post("/v1/entries", json={"text": text, "name": f"soak-{number}.log"})
        there.extend(answer.json()["ids"])

    def resolve(identifier: str) -> None:
        body = {"cause": "rank-crash", "fix": "restarted the node"}
        client.post(f"/v1/entries/{identifier}/resolve", json=body)

    for number in range(sys.maxsize):
        yield partial(add, number)
        if there and number % 3 == 0:
            yield partial(resolve, there[-1])
        if len(there) > ADDED:
            oldest = there.pop(0)
            yield partial(client.delete, f"/v1/entries/{oldest}?for_good=true")


def mentions(slack: FakeSlack, logs: list[str]) -> Works:
    """Logs pasted in Slack."""
    space = next(iter(slack.workspaces.values()))
    channel = space.add_channel("soak")
    for number in range(sys.maxsize):
        log = "\n".join(logs[number % len(logs)].splitlines()[-12:])

        def ask(text: str = f"{log}\nmention {number}") -> None:
            asked = slack.say(channel, text, mention=True)
            end = finished(slack, asked)
            if end == "warning":
                raise RuntimeError("the bot failed")

        yield ask


def visits(site: Site) -> Works:
    """Views of the page in a browser of their own."""
    path = chromium_path()
    if path is None:
        print("no Chromium: the page is not visited", flush=True)
        return
    with browser(path) as launched:
        for number in range(sys.maxsize):

            def visit(view: str = VIEWS[number % len(VIEWS)]) -> None:
                context = new_context(launched, language="en")
                try:
                    made = Visit(page=context.new_page(), site=site, screens=site.home)
                    made.open(view)
                    made.settle()
                finally:
                    context.close()

            yield visit


# --- the run --------------------------------------------------------------------------------------


def processes(pid: int) -> dict[int, float]:
    """Resident megabytes of a process and all below it, by pid."""
    found = {}
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        with contextlib.suppress(OSError):
            status = Path(f"/proc/{one}/status").read_text()
            size = next(line for line in status.splitlines() if line.startswith("VmRSS"))
            found[one] = int(size.split()[1]) / 1024
            waiting += map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split())
    return dict(sorted(found.items()))


def line_of(minute: int, tally: Tally, memory: dict[int, float]) -> str:
    """One minute as JSON."""
    waits = {kind: round(percentile(taken, 0.99), 2) for kind, taken in sorted(tally.taken.items())}
    return json.dumps(
        {
            "minute": minute,
            "mb": [round(size) for size in memory.values() if size > OWN_MB],
            "done": {kind: len(taken) for kind, taken in sorted(tally.taken.items())},
            "p99_s": waits,
            "errors": sum(tally.errors.values()),
        }
    )


@contextlib.contextmanager
def slack_and_site(home: Path) -> Iterator[tuple[FakeSlack, Site]]:
    """A Slack on this machine, and the site that answers its requests."""
    slack = FakeSlack(read_manifest(shipped_data() / "slack" / "manifest.yaml"), mode="http")
    slack.start()
    space = slack.workspace("soak")
    variables = {
        "mode": "http",
        "signing_secret": slack.signing_secret,
        "bot_token": space.bot_token,
        "api_url": slack.api_address,
        "files_host": slack.files_host,
    }
    try:
        with running(
            home, **{f"TIMEOUT_KB_SLACK_{name.upper()}": text for name, text in variables.items()}
        ) as site:
            slack.http.address = f"{site.api}/slack/events"
            yield slack, site
    finally:
        slack.stop()


def soak(minutes: int, pause_s: float) -> int:
    """Run all of it and print what changed; 1 where anything failed."""
    logs = short_logs(VARIANTS)
    with contextlib.ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="timeout-kb-soak-")))
        slack, site = stack.enter_context(slack_and_site(home))
        run = Soak(site=site, pause_s=pause_s)
        client = stack.enter_context(run.client())
        works: dict[str, Callable[[], Works]] = {
            "diagnoses": partial(diagnoses, client, logs),
            "dumps": partial(dumps, client, logs),
            "conversations": partial(conversations, client, logs),
            "additions": partial(additions, client, logs),
            "mentions": partial(mentions, slack, logs),
            "visits": partial(visits, site),
        }
        threads = [
            threading.Thread(target=lambda k=kind, w=work: run.repeat(k, w()))
            for kind, work in works.items()
        ]
        for thread in threads:
            thread.start()
        tallies, memories = [], []
        started = time.monotonic()
        for number in range(minutes):
            time.sleep(max(0.0, started + (number + 1) * MINUTE_S - time.monotonic()))
            tallies.append(run.minute())
            memories.append(processes(site.pid))
            print(line_of(number + 1, tallies[-1], memories[-1]), flush=True)
        run.end.set()
        for thread in threads:
            thread.join()
    return report(tallies, memories)


def report(tallies: list[Tally], memories: list[dict[int, float]]) -> int:
    """Print how the first minutes differ from the last; 1 where anything failed."""
    part = max(1, len(tallies) // 5)
    early, late, whole = Tally(), Tally(), Tally()
    for tally in tallies[:part]:
        early.add(tally)
    for tally in tallies[-part:]:
        late.add(tally)
    for tally in tallies:
        whole.add(tally)
    for kind in sorted(whole.taken):
        first, last = (
            percentile(some.taken[kind], 0.99) if some.taken[kind] else math.nan
            for some in (early, late)
        )
        print(f"{kind}: {len(whole.taken[kind])}, p99 {first:.2f} s at first, {last:.2f} s at last")
    middle = memories[min(part, len(memories) - 1)]  # the first minutes load what is kept
    for pid, size in memories[-1].items():
        if size > OWN_MB and pid in middle:
            print(f"process {pid}: {middle[pid]:.0f} MB after {part} min, {size:.0f} MB at last")
    for error, count in whole.errors.most_common():
        print(f"{count} x {error}")
    return int(bool(whole.errors))


if __name__ == "__main__":
    sys.exit(soak(int(sys.argv[1]), float((sys.argv[2:] or ["1"])[0])))
