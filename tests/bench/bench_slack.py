"""Two hundred questions in ten seconds for the Slack bot, its connection cut five times meanwhile.

Run: ``python -m tests.bench.bench_slack``. The bot is the real process, Slack the fake of
tests/app/slack/fake over real HTTP and WebSockets on this machine. Every question is a mention
with a log of its own, so Slack sends two events for each. Acknowledgements are timed twice: from
the moment an envelope went out on a connection (what Slack's three seconds are about), and from
the moment the event came to be, waiting for a connection included.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from kb.bootstrap import open_service
from kb.settings import Settings, shipped_data
from tests.app.slack.fake.fake_slack import FakeSlack
from tests.app.slack.fake.installation import DONE, BotProcess
from tests.app.slack.fake.manifest import read_manifest
from tests.app.slack.fake.workspace import Channel, Message
from tests.bench.bench_diagnose import percentile
from tests.bench.short_logs import short_logs

QUESTIONS = 200
SECONDS = 10.0
CUTS = 5
CHANNELS = 8
ACK_LIMIT_S = 3.0
ANSWER_LIMIT_S = 300.0  # until an answer counts as lost


def ask(slack: FakeSlack, channels: list[Channel]) -> tuple[list[tuple[Channel, Message]], int]:
    """Ask evenly over the time, and cut the connection now and then; also how often it was cut."""
    asked = []
    cuts = 0
    cut_at = [SECONDS * (number + 0.5) / CUTS for number in range(CUTS)]
    started = time.monotonic()
    for number, log in enumerate(short_logs(QUESTIONS)):
        due = started + SECONDS * number / QUESTIONS
        while time.monotonic() < due:
            time.sleep(max(0.0, min(0.01, due - time.monotonic())))
        channel = channels[number % len(channels)]
        asked.append((channel, slack.say(channel, log, mention=True)))
        # At once, with that question on its way; it counts where there was a connection to cut.
        if cut_at and time.monotonic() - started >= cut_at[0] and slack.run(slack.sockets.cut()):
            cut_at.pop(0)
            cuts += 1
    took_s = time.monotonic() - started
    print(f"asked {len(asked)} questions in {took_s:.1f} s, the connection cut {cuts} times")
    return asked, cuts


def wait(asked: list[tuple[Channel, Message]]) -> float:
    """Wait until every question is done with or the time is over; gives the time it took."""
    started = time.monotonic()
    while time.monotonic() - started < ANSWER_LIMIT_S:
        if all(DONE & set(message.reacted) for _, message in asked):
            break
        time.sleep(0.05)
    return time.monotonic() - started


def report(slack: FakeSlack, asked: list[tuple[Channel, Message]], waited_s: float) -> bool:
    """Print the figures; whether every law held."""
    events = [item for item in slack.deliveries if item.kind == "events_api"]
    ours = {message.ts for _, message in asked}
    events = [item for item in events if item.payload["event"].get("ts") in ours]
    acks = [item.took_s for item in events if item.took_s is not None]
    whole = [item.waited_s for item in events if item.waited_s is not None]
    counts = [len(slack.answers(channel, message)) for channel, message in asked]
    lost, twice = counts.count(0), sum(count > 1 for count in counts)
    silent = [item for item in events if not item.acked]
    again = sum(len(item.attempts) - 1 for item in events if item.attempts)
    print(f"connections               {slack.sockets.opened}")
    print(f"events                    {len(events)}, sent again {again}, never taken {len(silent)}")
    for name, values in (("acknowledged after sending", acks), ("... after the event", whole)):
        p50, p99, most = percentile(values, 0.5), percentile(values, 0.99), max(values)
        print(
            f"{name:25} p50 {p50 * 1000:.0f} ms, p99 {p99 * 1000:.0f} ms, max {most * 1000:.0f} ms"
        )
    print(f"answers                   {sum(counts)}, lost {lost}, twice {twice}")
    print(f"last answer               {waited_s:.1f} s after the last question")
    print(f"calls before Retry-After  {len(slack.api.too_soon)}")
    print(f"problems of messages      {len(slack.problems)}")
    held = max(acks) < ACK_LIMIT_S and not silent and not lost and not twice
    print("all acknowledged in time, none lost, none twice" if held else "FAILED")
    return held


def main() -> int:
    """Run it once; 0 when every law held."""
    manifest = read_manifest(shipped_data() / "slack" / "manifest.yaml")
    with tempfile.TemporaryDirectory(prefix="timeout-kb-bench-") as folder:
        home = Path(folder) / "home"
        open_service(Settings(home=home)).close()
        slack = FakeSlack(manifest)
        slack.start()
        team = slack.workspace("bench")
        channels = [team.add_channel(f"channel-{number}") for number in range(CHANNELS)]
        bot = BotProcess(slack, home, log_level="warning").start()
        try:
            asked, cuts = ask(slack, channels)
            held = report(slack, asked, wait(asked)) and cuts == CUTS
        finally:
            bot.stop()
            slack.stop()
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
