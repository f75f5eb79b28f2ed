"""Logs as people paste them, kind ones and hostile ones."""

from __future__ import annotations

from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[4] / "data" / "examples"
# Made-up secrets in the forms of real ones.
GITHUB_TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
AWS_KEY = "AKIA" + "QWERTYUIOP234567"
AWS_SECRET = "wJalrXUtnFEMIK7MDENG" + "bPxRfiCYzzTIMEOUTKEY"
SECRETS = (GITHUB_TOKEN, AWS_KEY, AWS_SECRET)
EVIL_HOST = "evil.example.com"
# Each does something where Slack reads markup.
HOSTILE_PIECES = (
    "<!channel>",
    "<@U123>",
    "<http://evil.example|click>",
    "@here",
    "&lt;!channel&gt;",
    "&amp;lt;!everyone&amp;gt;",
    "*bold* _it_ ~no~ `code` ```fence```",
    ":rotating_light: > quote",
    "http://evil.example/x",
)


def english_log() -> str:
    """A rank runs out of memory, the others time out: ``rank-crash``."""
    return (EXAMPLES / "rank-out-of-memory.log").read_text(encoding="utf-8")


def chinese_log() -> str:
    """Saving on rank 0 takes longer than the timeout, told in Chinese: ``checkpoint-io``."""
    return (EXAMPLES / "save-on-rank0.log").read_text(encoding="utf-8")


def undecided_log() -> str:
    """A timeout that nothing explains."""
    return "Watchdog caught collective operation timeout\n"


def hostile_log() -> str:
    """A log whose lines call the channel, plant links and carry secrets.

    The same stands in the line that decides, so that an answer which quotes it has to show it.
    """
    decides = "CUDA out of memory"
    planted_here = (
        f"<!channel> <@U0123ABCD> <http://{EVIL_HOST}/q|click> http://{EVIL_HOST}/r "
        f"*bold* `code` @here :fire: token={GITHUB_TOKEN}"
    )
    lines = english_log().replace(decides, f"{decides} {planted_here}").splitlines()
    planted = [
        "<!channel> <!here> <!everyone> <!subteam^S0123|@oncall> please look",
        "<@U0123ABCD> ping @channel @here",
        f"<http://{EVIL_HOST}/x|click here> and http://{EVIL_HOST}/y and [m](http://{EVIL_HOST}/z)",
        "*bold* _italic_ ~struck~ `code` ```fence``` &lt;!channel&gt; &amp;lt;",
        f"[rank5]: RuntimeError: <!channel> http://{EVIL_HOST}/e token {GITHUB_TOKEN}",
        f"export GITHUB_TOKEN={GITHUB_TOKEN}",
        f"AWS_ACCESS_KEY_ID={AWS_KEY} AWS_SECRET_ACCESS_KEY={AWS_SECRET}",
        f"git clone https://user:{GITHUB_TOKEN}@github.com/owner/private.git",
        f"NCCL_DEBUG=<!channel> NCCL_SOCKET_IFNAME=<http://{EVIL_HOST}|eth0>",
    ]
    return "\n".join([*lines[:3], *planted, *lines[3:], *planted]) + "\n"


def long_log(size: int) -> str:
    """The English log behind so many characters of progress lines."""
    log = english_log()
    line = "2026-03-11 02:41:07,218 - INFO - __main__ - step {n} loss 1.8421 tokens/s 41230\n"
    head: list[str] = []
    length = len(log)
    number = 0
    while length < size:
        number += 1
        head.append(line.format(n=number))
        length += len(head[-1])
    return "".join(head) + log
