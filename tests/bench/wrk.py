"""Load by wrk: many connections, a new request as soon as the answer is there."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_SCRIPT = """
local bodies = {}
local file = io.open("%(bodies)s", "rb")
for size in io.lines("%(sizes)s") do bodies[#bodies + 1] = file:read(tonumber(size)) end
file:close()
local unique, turn, number = %(unique)s, 0, 0
local stamp = tostring(os.time())
local threads = 0
function setup(thread) thread:set("place", threads); threads = threads + 1 end
function init()
  wrk.headers["Content-Type"] = "text/plain; charset=utf-8"
  turn = place * 7
end
function request()
  turn = turn %% #bodies + 1
  local body = bodies[turn]
  if unique then
    number = number + 1
    body = body .. "run " .. stamp .. "-" .. place .. "-" .. number .. "\\n"
  end
  return wrk.format("POST", "/v1/diagnose", wrk.headers, body)
end
function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    'RESULT {"requests": %%d, "micros": %%d, "p50": %%f, "p90": %%f, "p99": %%f, "most": %%f, '
    .. '"errors": %%d}\\n',
    summary.requests, summary.duration, latency:percentile(50) / 1000,
    latency:percentile(90) / 1000, latency:percentile(99) / 1000, latency.max / 1000,
    e.connect + e.read + e.write + e.status + e.timeout))
end
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What wrk measured; times in milliseconds."""

    requests: int
    rate: float
    p50: float
    p90: float
    p99: float
    most: float
    errors: int

    def __str__(self) -> str:
        return (
            f"{self.rate:7.1f} req/s   p50 {self.p50:7.1f} ms   p90 {self.p90:7.1f} ms   "
            f"p99 {self.p99:7.1f} ms   errors {self.errors}"
        )


def load(
    address: str, bodies: Sequence[str], *, seconds: int, connections: int, unique: bool
) -> Load:
    """Post the bodies in turn; `unique` gives each a line of its own: none is sent twice."""
    with tempfile.TemporaryDirectory() as folder:
        script, data, sizes = (Path(folder, name) for name in ("load.lua", "bodies", "sizes"))
        encoded = [body.encode() for body in bodies]
        data.write_bytes(b"".join(encoded))
        sizes.write_text("".join(f"{len(body)}\n" for body in encoded))
        words = {"bodies": data, "sizes": sizes, "unique": "true" if unique else "false"}
        script.write_text(_SCRIPT % words)
        command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s"]
        done = subprocess.run(
            [*command, "-s", str(script), address], capture_output=True, text=True, check=True
        )
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))
    found = json.loads(line.removeprefix("RESULT "))
    return Load(rate=found["requests"] / (found.pop("micros") / 1e6), **found)
