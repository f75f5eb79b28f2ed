"""A session of a coding agent with `timeout-kb mcp`, as Markdown: what it asks and what it gets.

Run: ``python -m tests.app.mcp.record > tests/app/mcp/session.md``. The SDK's client starts the
server as agents do, over standard streams, with a new state folder and the logs of one run.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters

ROOT = Path(__file__).resolve().parents[3]
SHOWN_LINES = 24  # of an answer's text
WATCHDOG = (
    "[rank{rank}]:[E ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum=1204, OpType=ALLREDUCE, NumelIn=7340032, NumelOut=7340032, "
    "Timeout(ms)=600000) ran for 600029 milliseconds before timing out.\n"
)
LOGS = {
    "launch.sh": "#SBATCH --nodes=1\nexport NCCL_DEBUG=INFO\n"
    "srun torchrun --nproc_per_node 4 train.py\n",
    "rank0.log": WATCHDOG.format(rank=0),
    "rank1.log": WATCHDOG.format(rank=1),
    "rank2.log": "[rank2]: Traceback (most recent call last):\n"
    '[rank2]:   File "/app/train.py", line 88, in save\n'
    "[rank2]:     torch.save(state, path)\n"
    "[rank2]: OSError: [Errno 28] No space left on device: '/scratch/ckpt-1200'\n",
    "rank3.log": WATCHDOG.format(rank=3),
}
Call = Callable[[str, dict[str, Any]], Awaitable[Any]]


async def session(call: Call) -> None:
    """Diagnose a run, look further, keep it, say what it was, meet it again."""
    await call("diagnose", {"paths": ["run"], "lang": "en"})
    await call("search", {"query": "disk full while saving a checkpoint", "limit": 3})
    await call("show", {"id": "checkpoint-io"})
    await call("notes", {"question": "how do I raise the timeout of one process group"})
    await call("lint_settings", {"text": "export NCCL_TIMEOUT=3600\nexport NCCL_IB_TIMEOUT=22"})
    text = "".join(LOGS.values())
    added = await call("add_incident", {"text": text, "name": "job-4711.log"})
    identifier = added.structured_content["ids"][0]
    fix = "freed /scratch on node7; checkpoints go to the shared disk"
    await call("resolve_incident", {"id": identifier, "cause": "checkpoint-io", "fix": fix})
    await call("incidents", {"resolved": True})
    await call("diagnose", {"text": text.replace("1204", "2208"), "lang": "en"})


async def record(folder: Path) -> None:
    """Print the session with a server that may read `folder`."""
    run = folder / "run"
    run.mkdir()
    for name, text in LOGS.items():
        (run / name).write_text(text)
    server = StdioServerParameters(
        command=sys.executable,
        args=["-c", "from app.cli.main import main; main()", "mcp", "--root", str(folder)],
        env={
            "PATH": os.environ["PATH"],
            "TIMEOUT_KB_HOME": str(folder / "home"),
            "PYTHONPATH": str(ROOT),
        },
        cwd=str(ROOT),
    )
    async with Client(server) as client:

        async def call(name: str, arguments: dict[str, Any]) -> Any:
            result = await client.call_tool(name, arguments)
            print(f"\n## {name}\n\n```json\n{json.dumps(arguments, ensure_ascii=False)}\n```\n")
            lines = result.content[0].text.replace(str(folder), "").split("\n")
            more = len(lines) - SHOWN_LINES
            print("\n".join(["```text", *lines[:SHOWN_LINES], *["…"] * (more > 0), "```"]))
            keys = ", ".join(
                f"`{key}`" for key, value in result.structured_content.items() if value
            )
            print(f"\nStructured: {keys}")
            return result

        tools = (await client.list_tools()).tools
        print("# A session over MCP\n\nMade by `python -m tests.app.mcp.record`.\n")
        print("\n".join(f"- `{tool.name}`: {tool.description}" for tool in tools))
        await session(call)


def main() -> int:
    """Record into a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(record, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
