"""Kill servers that share a database: ``python -m tests.crash.replicas ROUNDS [SEED] [MINUTES]``.

Three servers on one PostgreSQL database behind haproxy, under load of writers and readers. In each
round up to three of servers, haproxy and database are killed at any moment and started again, and a
server that lost its index is killed while it fetches or builds another. Then every server is asked:
what was acknowledged is there, nothing is half, the answers are as before. A write that was cut off
may be there or not, but at all servers alike.
"""

from __future__ import annotations

import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import psycopg

from kb.settings import shipped_data
from tests.crash.facts import Fact
from tests.crash.operations import CAUSES, CONSONANTS, log_of
from tests.crash.site import Site, is_ready, running_site, until

WRITERS, READERS = 2, 1
PAUSE_S = 0.03  # of a client between two requests: the machine has other work
LOAD_S = 1.2  # at most, before a kill
DOWN_S = 1.5  # at most, until what was killed is started again
AT_ONCE = (1, 1, 2, 2, 3)  # kills of a round
EMPTIED = 0.5  # of killed builders find no shared index either
KINDS = ("replica", "replica", "builder", "builder", "balancer", "database", "database")
WHOLE_EVERY = 10  # rounds: all that was ever acknowledged is asked for, else what is of this round
TOLD_EVERY = 5  # rounds
LOGS = (
    (
        "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
        "[rank0]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=14217, "
        "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 ms\n"
    ),
    (
        "node1: mlx5_0: Got completion with error 12, opcode 0, len 0, vendor err 129\n"
        "[rank2]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, "
        "OpType=ALLGATHER, NumelIn=9, NumelOut=18, Timeout(ms)=600000) ran for 600001 ms\n"
    ),
    "step 100 loss 2.1\nstep 101 loss 2.0\ntraining finished\n",
)
HALF = {  # rows of which there may be none
    "entries without text": "SELECT count(*) FROM entries e WHERE NOT EXISTS"
    " (SELECT 1 FROM chunks c WHERE c.entry = e.ordinal)",
    "sizes that fit nothing": "SELECT abs((SELECT count(*) FROM kept_sizes)"
    " - (SELECT count(*) FROM diagnoses) - (SELECT count(*) FROM conversations))",
}


class Counts:
    """What happened, of all clients together."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.seen: Counter[str] = Counter()
        self.facts: dict[tuple[str, str], str] = {}  # acknowledged
        self.unsure: set[tuple[str, str]] = set()  # a change was cut off or refused
        self.words: list[str] = []  # of additions that were cut off or refused
        self.wrong: list[str] = []


class Refused(Exception):  # noqa: N818 - no failure: what a client has to expect
    """A request without success; the message says of which kind."""


class Client(threading.Thread):
    """Somebody who asks through the balancer as long as the gate is open."""

    def __init__(self, campaign: Campaign, steps: tuple[str, ...], seed: int) -> None:
        """Take a step at random, over and over."""
        super().__init__(daemon=True)
        self._campaign, self._counts, self._steps = campaign, campaign.counts, steps
        self._rng = random.Random(seed)
        self._mine: dict[str, list[str]] = {"entry": [], "chat": []}
        self.idle = threading.Event()

    def run(self) -> None:
        """Until the campaign ends."""
        site = self._campaign.site
        with site.client(site.balancer) as client:
            while not self._campaign.ended:
                if not self._campaign.gate.is_set():
                    self.idle.set()
                    self._campaign.gate.wait(1.0)
                    continue
                self.idle.clear()
                step = self._rng.choice(self._steps)
                try:
                    getattr(self, f"_{step}")(client)
                    self._counts.seen[f"{step} done"] += 1
                except Refused as refused:
                    self._counts.seen[f"{refused}"] += 1
                time.sleep(PAUSE_S)

    def _call(self, client: httpx.Client, method: str, path: str, **options: Any) -> Any:
        """The JSON of an answer.

        Raises:
            Refused: there is none, or it is none of success.
        """
        try:
            answer = client.request(method, path, **options)
        except httpx.HTTPError as error:
            raise Refused("cut off") from error
        if answer.is_success:
            return answer.json() if answer.content else {}
        try:
            problem = answer.json()
        except ValueError:
            raise Refused("refused by the balancer") from None
        if "unexpected" in problem["type"] or not problem.get("todo"):
            self._counts.wrong.append(f"{method} {path}: {answer.status_code} {problem}")
        if answer.status_code == 404:
            self._campaign.missing(path)
        raise Refused("refused with a reason")

    def _change(
        self, touched: tuple[str, str] | None, work: Callable[[], Fact], word: str = ""
    ) -> None:
        """Note what a write changed, or may have."""
        try:
            fact = work()
        except Refused:
            if touched:
                self._counts.unsure.add(touched)
            if word:
                self._counts.words.append(word)
            raise
        self._counts.facts[fact.kind, fact.key] = fact.value
        self._counts.seen["acknowledged"] += 1

    def _add(self, client: httpx.Client) -> None:
        word = "zq" + "".join(self._rng.choice(CONSONANTS) for _ in range(9))

        def work() -> Fact:
            body = {"text": log_of(word), "name": f"{word}.log"}
            identifier = self._call(client, "POST", "/v1/entries", json=body)["ids"][0]
            self._mine["entry"].append(identifier)
            return Fact("entry", identifier, word)

        self._change(None, work, word)

    def _resolve(self, client: httpx.Client) -> None:
        if not self._mine["entry"]:
            return
        identifier, cause = self._rng.choice(self._mine["entry"]), self._rng.choice(CAUSES)

        def work() -> Fact:
            body = {"cause": cause, "fix": f"a fix for {cause}"}
            self._call(client, "POST", f"/v1/entries/{identifier}/resolve", json=body)
            self._counts.unsure.discard(("outcome", identifier))
            return Fact("outcome", identifier, cause)

        self._change(("outcome", identifier), work)

    def _feedback(self, client: httpx.Client) -> None:
        def work() -> Fact:
            body = {"verdict": "wrong", "cause": CAUSES[0], "actual": CAUSES[1]}
            return Fact("feedback", self._call(client, "POST", "/v1/feedback", json=body)["id"], "")

        self._change(None, work)

    def _chat(self, client: httpx.Client) -> None:
        earlier = self._rng.choice([*self._mine["chat"][-3:], ""])

        def work() -> Fact:
            body = {"message": log_of("zqchat"), "conversation": earlier}
            headers = {"Accept": "application/json"}
            reply = self._call(client, "POST", "/v1/chat", json=body, headers=headers)
            if not earlier:
                self._mine["chat"].append(reply["conversation"])
            return Fact("chat", reply["conversation"], str(reply["number"]))

        self._change(None, work)

    def _diagnose(self, client: httpx.Client) -> None:
        at = self._rng.randrange(len(LOGS))
        said = answer_of(self._call(client, "POST", "/v1/diagnose", json={"text": LOGS[at]}))
        if said != self._campaign.answers[at]:
            self._counts.wrong.append(f"diagnosis {at} is {said}")

    def _search(self, client: httpx.Client) -> None:
        self._call(client, "POST", "/v1/search", json={"query": "NCCL aborted", "limit": 3})

    def _get(self, client: httpx.Client) -> None:
        entries = [key for kind, key in list(self._counts.facts) if kind == "entry"]
        if entries:
            self._call(client, "GET", f"/v1/entries/{self._rng.choice(entries)}")


class Campaign:
    """Rounds of kills on a site."""

    def __init__(self, site: Site, seed: int, *, client: type[Client] = Client) -> None:
        """Start the clients, of the class `client`; they wait."""
        self.site, self.counts, self.rng = site, Counts(), random.Random(seed)
        self.ended = False
        self.gate = threading.Event()
        self.kills: Counter[str] = Counter()
        self.recovery_s: dict[str, list[float]] = {}
        self._base_gone = False  # the database is, or was a moment ago
        self.rounds = 0
        self._checked = 0
        with site.client(site.addresses[0]) as asking:
            self.answers = [answer_of(_diagnosis(asking, log)) for log in LOGS]
        writes, reads = ("add", "add", "resolve", "feedback", "chat"), ("diagnose", "search", "get")
        kinds = [writes] * WRITERS + [reads] * READERS
        self._clients = [client(self, steps, seed + at) for at, steps in enumerate(kinds)]
        for each in self._clients:
            each.start()

    def missing(self, path: str) -> None:
        """Somebody did not find what was acknowledged: only a copy may be behind."""
        if self._base_gone:
            self.counts.seen["not found while the database was gone"] += 1
        else:
            self.counts.wrong.append(f"not found: {path}")

    def round(self) -> None:
        """Kill at a moment of load, start again, wait, check."""
        kinds = list(dict.fromkeys(self.rng.sample(KINDS, self.rng.choice(AT_ONCE))))
        # first: a server without an index needs the database
        kinds.sort(key=lambda kind: kind != "builder")
        self.gate.set()
        time.sleep(self.rng.random() * LOAD_S)
        self._base_gone = "database" in kinds
        starts = [self._kill(kind) for kind in kinds]
        time.sleep(self.rng.random() * DOWN_S)
        started = time.monotonic()
        for start in starts:
            start()
        self.site.wait_until_ready()
        done = self.counts.seen["acknowledged"]
        until(lambda: self.counts.seen["acknowledged"] > done, "a write is acknowledged")
        name = " and ".join(sorted(kinds))
        self.recovery_s.setdefault(name, []).append(time.monotonic() - started)
        self._base_gone = False
        self.quiet()
        self.rounds += 1
        self.check(whole=self.rounds % WHOLE_EVERY == 0)

    def quiet(self) -> None:
        """Let the clients end what they do, and wait."""
        self.gate.clear()
        for client in self._clients:
            client.idle.clear()
        for client in self._clients:
            client.idle.wait(90.0)

    def _kill(self, kind: str) -> Callable[[], None]:
        """Kill one of a kind; returns what starts it again."""
        self.kills[kind] += 1
        if kind == "database":
            self.site.server.kill()
            return self.site.server.start
        program = self.site.haproxy
        if kind != "balancer":
            number = self.rng.randrange(len(self.site.replicas))
            program = self.site.replicas[number]
        if kind == "builder":
            self.site.kill_builder(number, shared=self.rng.random() < EMPTIED)
        program.kill()
        return program.start

    def check(self, *, whole: bool) -> None:
        """Ask every server for what was acknowledged, since the last check or ever."""
        facts = dict(self.counts.facts)
        asked = facts if whole else dict(list(facts.items())[self._checked :])
        self._checked = len(facts)
        words, self.counts.words = self.counts.words, []
        for address in self.site.addresses:
            until(lambda address=address: is_ready(address), f"{address} is ready")
        seen: list[dict[str, str]] = []
        for address in self.site.addresses:
            with self.site.client(address) as client:
                look = Look(client)
                seen.append({f"{kind} {key}": look.value(kind, key) for kind, key in asked})
                seen[-1] |= {f"cut off {word}": look.searched(word) for word in words}
                answers = [answer_of(_diagnosis(client, log)) for log in LOGS]
            if answers != self.answers:
                self._note(f"answers of {address}: {answers}")
        for name in seen[0]:
            if len({values[name] for values in seen}) > 1:
                self._note(f"servers differ: {name} is {[values[name] for values in seen]}")
        for (kind, key), value in asked.items():
            now = seen[0][f"{kind} {key}"]
            if not holds(kind, value, now, unsure=(kind, key) in self.counts.unsure):
                self._note(f"lost: {kind} {key} is {now!r}, acknowledged was {value!r}")
        with psycopg.connect(self.site.store) as connection:
            for name, statement in HALF.items():
                (rows,) = connection.execute(statement).fetchone() or (0,)
                if rows:
                    self._note(f"{rows} {name}")

    def _note(self, wrong: str) -> None:
        self.counts.wrong.append(f"round {self.rounds}: {wrong}")

    def close(self) -> None:
        """End the clients."""
        self.ended = True
        self.gate.clear()
        for client in self._clients:
            client.join(90.0)


class Look:
    """Asks one server what holds."""

    def __init__(self, client: httpx.Client) -> None:
        """Ask through `client`."""
        self._client = client
        self._entries: dict[str, Any] = {}

    def value(self, kind: str, key: str) -> str:
        """What holds now in place of a fact; empty where there is nothing."""
        if kind == "feedback":
            return self._feedback(key)
        if kind == "chat":
            answer = self._client.get(f"/v1/chat/{key}")
            turns = answer.json()["turns"] if answer.is_success else []
            return str(len(turns))
        if key not in self._entries:
            answer = self._client.get(f"/v1/entries/{key}")
            self._entries[key] = answer.json() if answer.is_success else {}
        return entry_value(kind, self._entries[key])

    def _feedback(self, key: str) -> str:
        if not hasattr(self, "_ids"):
            self._ids = set[str]()
            path = "/v1/feedback"
            while path:
                answer = self._client.get(path)
                self._ids |= {item["id"] for item in answer.json()["items"]}
                following = answer.json()["next_offset"]
                path = f"/v1/feedback?offset={following}" if following else ""
        return "" if key in self._ids else "gone"

    def searched(self, word: str) -> str:
        """The entry that holds a word, whole or not; empty where there is none."""
        body = {"query": f"{word} hangs", "limit": 3}
        hits = self._client.post("/v1/search", json=body).json()["hits"]
        for hit in hits:
            entry = self._client.get(f"/v1/entries/{hit['entry_id']}").json()
            if word in str(entry):
                return entry_value("entry", entry)
        return ""


def entry_value(kind: str, entry: Mapping[str, Any]) -> str:
    """The word of an entry that is whole, or its cause with which its fix agrees."""
    if not entry:
        return ""
    if kind == "entry":
        word = str(entry["log_name"]).removesuffix(".log")
        texts = [section["text"] for section in entry["sections"] if section["role"] == "input"]
        return word if texts == [log_of(word)] else f"half of {word}"
    cause = str(entry["causes"][0]["id"]) if entry["causes"] else ""
    fixes = [fix["title"]["en"] for fix in entry["fixes"]]
    return cause if fixes == ([f"a fix for {cause}"] if cause else []) else f"half of {cause}"


def holds(kind: str, value: str, now: str, *, unsure: bool) -> bool:
    """Whether what was acknowledged is so.

    A conversation may have gone on. What a change that was cut off may have changed may be
    otherwise, but neither gone nor half.
    """
    if kind == "chat":
        return int(now) >= int(value)
    if unsure:
        return bool(now) and not now.startswith("half")
    return now == value


def answer_of(diagnosis: Mapping[str, Any]) -> str:
    """What may not change by kills: the status, the headline and the first causes."""
    causes = [cause["id"] for cause in diagnosis["causes"]][:1]
    return f"{diagnosis['status']}: {diagnosis['headline']} {causes}"


def _diagnosis(client: httpx.Client, log: str) -> Mapping[str, Any]:
    answer = client.post("/v1/diagnose", json={"text": log})
    answer.raise_for_status()
    found: Mapping[str, Any] = answer.json()
    return found


def table(campaign: Campaign) -> str:
    """What came out, a line each."""
    counts = campaign.counts
    lost = sum("lost:" in line for line in counts.wrong)
    lines = [f"{campaign.rounds:8} rounds"]
    lines += [f"{count:8} kills of a {kind}" for kind, count in sorted(campaign.kills.items())]
    lines += [f"{counts.seen['acknowledged']:8} writes acknowledged", f"{lost:8} lost"]
    lines += [
        f"{count:8} {name}" for name, count in sorted(counts.seen.items()) if name != "acknowledged"
    ]
    lines += [f"{len(counts.wrong) - lost:8} other things wrong"]
    for name, seconds in sorted(campaign.recovery_s.items()):
        ordered = sorted(seconds)
        lines.append(
            f"recovered from the start of {name}: {ordered[len(ordered) // 2]:.1f} s (median),"
            f" {ordered[-1]:.1f} s (longest of {len(ordered)})"
        )
    return "\n".join(lines)


def main(rounds: str = "200", seed: str = "0", minutes: str = "600") -> int:
    """Run the rounds, as many as the minutes allow; 1 where anything is wrong."""
    end = time.monotonic() + 60 * float(minutes)
    example = shipped_data().parent / "deploy" / "haproxy.cfg"
    with (
        tempfile.TemporaryDirectory(prefix="timeout-kb-replicas-") as name,
        running_site(Path(name), example) as site,
    ):
        campaign = Campaign(site, int(seed))
        told = 0
        try:
            while campaign.rounds < int(rounds) and time.monotonic() < end:
                campaign.round()
                for line in campaign.counts.wrong[told:]:
                    print(line[:1000], flush=True)
                told = len(campaign.counts.wrong)
                if campaign.rounds % TOLD_EVERY == 0:
                    print(f"{campaign.rounds} rounds, {told} things wrong", flush=True)
            campaign.gate.clear()
            campaign.check(whole=True)
        finally:
            campaign.close()
            print(table(campaign), flush=True)
    return int(bool(campaign.counts.wrong))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
