"""Kill a process that changes a state folder: ``python -m tests.crash ROUNDS [SEED]``.

In each round a process opens the folder and imports, adds, resolves, deletes, chats, keeps answers,
rebuilds the index, makes backups, keys and learned weights; in some its disk is full, does not
confirm what was written, or the folder is one of an older program, which opening migrates. It is
killed at any moment. Then another process opens the folder: what was acknowledged is there, nothing
is half, store and index agree. Failing waits for the disk need a C compiler to reach SQLite.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path


def disk_faults(folder: Path) -> Mapping[str, str]:
    """What lets waits for the disk fail, as environment; nothing without a compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return {}
    library, source = folder / "disk_faults.so", Path(__file__).with_name("disk_faults.c")
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return {"LD_PRELOAD": str(library)}


def main(rounds: str = "100", seed: str = "0") -> int:
    """Run the campaign in a process whose disk can be made to fail."""
    with tempfile.TemporaryDirectory(prefix="timeout-kb-faults-") as place:
        environment = os.environ | disk_faults(Path(place))
        words = [sys.executable, "-m", "tests.crash.campaign", rounds, seed]
        return subprocess.run(words, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
