"""Conversations with the real bot in a fake Slack, printed: `python -m tests.slack.transcript`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from kb.settings import shipped_data
from tests.slack import samples
from tests.slack.bot import Bot
from tests.slack.fake_slack import FakeSlack
from tests.slack.harmless import links, mentions
from tests.slack.limits import ADVISED_TEXT, ALL_TEXT, LIMITS, all_text, problems
from tests.slack.manifest import read_manifest
from tests.slack.office import answered, finished
from tests.slack.render import workspace_text
from tests.slack.workspace import Message, Workspace


def chinese_scene(slack: FakeSlack, alpha: Workspace) -> Message:
    """A Chinese log, its answer, a follow-up, and "this was it"."""
    channel = alpha.add_channel("训练")
    root = slack.say(channel, samples.chinese_log(), mention=True, user="小李")
    answer = answered(slack, channel, root)
    for question in ("为什么说是存检查点？", "那重启有用吗？"):
        finished(slack, slack.say(channel, question, thread=root, user="小李"))
    number = len(slack.answers(channel)) + 1
    slack.click(channel, answer, "right", user="小李")
    slack.answer(channel, number=number)
    return answer


def file_scene(slack: FakeSlack, alpha: Workspace) -> Message:
    """An English log as a file, then all fixes."""
    channel = alpha.add_channel("gpu-cluster")
    log = samples.english_log().encode()
    file = alpha.add_file("job-4711.log", log, user=alpha.add_user("ann").id)
    root = slack.say(channel, "why did this die?", mention=True, files=[file])
    answer = answered(slack, channel, root)
    number = len(slack.answers(channel)) + 1
    slack.click(channel, answer, "fixes", user="ben")
    slack.answer(channel, number=number)
    return answer


def hostile_scene(slack: FakeSlack, alpha: Workspace) -> Message:
    """A log that calls the channel, plants links and holds tokens."""
    channel = alpha.add_channel("random")
    root = slack.say(channel, samples.hostile_log(), mention=True, user="mallory")
    return answered(slack, channel, root)


def limits_report(answer: Message) -> str:
    """What one answer measures against Slack's limits."""
    message = {"text": answer.text, "blocks": answer.blocks}
    found = problems(message)
    size = len(json.dumps(answer.blocks, ensure_ascii=False).encode())
    lines = [
        f"blocks            {len(answer.blocks)} of {LIMITS['message', 'blocks'].most}",
        f"text (fallback)   {len(answer.text)} of {ADVISED_TEXT.most} characters",
        f"all texts         {all_text(message)} of {ALL_TEXT.most} characters",
        f"blocks as JSON    {size} bytes",
        f"mentions          {len(mentions(message))}",
        f"links             {len(links(message))}",
        f"problems          {found or 'none'}",
    ]
    return "\n".join(lines)


def play(home: Path) -> str:
    """Play all scenes and give them as text."""
    slack = FakeSlack(read_manifest(shipped_data() / "slack" / "manifest.yaml"))
    slack.start()
    alpha = slack.workspace("alpha")
    bot = Bot(slack, home, log_level="warning").start()
    try:
        shown = chinese_scene(slack, alpha)
        others = [file_scene(slack, alpha), hostile_scene(slack, alpha)]
    finally:
        bot.stop()
        slack.stop()
    parts = [
        workspace_text(alpha),
        "=== Block Kit JSON of the first answer ===",
        json.dumps({"text": shown.text, "blocks": shown.blocks}, ensure_ascii=False, indent=2),
        "=== Slack's limits ===",
        *(limits_report(answer) + "\n" for answer in (shown, *others)),
        f"problems of everything posted: {slack.problems or 'none'}",
    ]
    return "\n".join(parts) + "\n"


def main() -> None:
    """Print the transcript."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, help="state folder to use; default: a new one")
    chosen = parser.parse_args()
    if chosen.home:
        sys.stdout.write(play(chosen.home))
        return
    with tempfile.TemporaryDirectory(prefix="timeout-kb-transcript-") as folder:
        sys.stdout.write(play(Path(folder) / "home"))


if __name__ == "__main__":
    main()
