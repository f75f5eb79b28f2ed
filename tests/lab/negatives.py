"""Make logs in which nothing timed out or hung: real runs, healthy or failed for other reasons.

``python -m tests.lab.negatives [NAMES...] [--out DIR]`` runs the recipes of negatives.yaml one
after the other and leaves a log each, what a person would paste: merged output, no more than
`LIMIT` bytes, without this machine's names and paths. Runs are real, so sizes, times and addresses
differ from one to the next.
"""

from __future__ import annotations

import argparse
import getpass
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SAMPLES = ROOT / "tests" / "samples" / "negatives"
RUN_LIMIT_S = 120  # a recipe that does not end by itself by then is broken
LIMIT = 8 * 1024  # bytes kept of a log: its head and its tail
HEAD_SHARE = 0.4
CUT = "[... lines left out ...]"
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One run: shell lines in an empty folder that holds `files`; `exit` is its exit code.

    `uses` names a set of files shared by several recipes.
    """

    id: str
    run: str
    files: dict[str, str] = field(default_factory=dict)
    uses: str = ""
    exit: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cookbook:
    """negatives.yaml: sets of files by name, and the recipes."""

    shared: dict[str, dict[str, str]]
    recipes: tuple[Recipe, ...]


def load_cookbook() -> Cookbook:
    """All recipes in the order of the file."""
    raw = yaml.safe_load((HERE / "negatives.yaml").read_text(encoding="utf-8"))
    return msgspec.convert(raw, Cookbook)


def cook(recipe: Recipe, shared: dict[str, dict[str, str]]) -> str:
    """The output of a recipe, scrubbed and cut.

    Raises:
        RuntimeError: it ended with another exit code than it should, or not at all.
    """
    with tempfile.TemporaryDirectory(prefix="negative-") as name:
        folder = Path(name).resolve()
        for path, text in {**shared.get(recipe.uses, {}), **recipe.files}.items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        output, code = _run(recipe.run, folder)
        if code != recipe.exit:
            raise RuntimeError(f"{recipe.id} ended with {code}, not {recipe.exit}:\n{output}")
        return cut(scrub(output, folder))


def _run(command: str, folder: Path) -> tuple[str, int]:
    process = subprocess.Popen(
        ["bash", "-c", command],
        cwd=folder,
        env=_environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output = process.communicate(timeout=RUN_LIMIT_S)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output = process.communicate()[0]
        raise RuntimeError(f"no end after {RUN_LIMIT_S} s:\n{output.decode()}") from None
    return output.decode("utf-8", "replace"), process.returncode


def _environment(folder: Path) -> dict[str, str]:
    """A plain environment: the recipe's folder as home, this interpreter's tools in front."""
    cargo = Path(os.path.expanduser("~/.cargo/bin"))  # noqa: PTH111 - HOME itself is replaced
    return {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), str(cargo), os.environ["PATH"]]),
        "HOME": str(folder),
        "ROOT": str(ROOT),
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", str(cargo.parent.parent / ".rustup")),
        "TERM": "dumb",
    }


def scrub(text: str, folder: Path) -> str:
    """`text` without escape codes and without the names and paths of the machine it ran on."""
    text = _ESCAPES.sub("", text).replace("\r\n", "\n")
    home = os.path.expanduser("~")  # noqa: PTH111 - a string to replace
    paths = {
        str(folder): "/job",
        folder.name: "job",
        str(Path(sys.executable).parent.parent): "/venv",
        sys.base_prefix: "/usr",
        str(ROOT): "/src",
        str(ROOT.parent): "/home/user",
        home: "/home/user",
    }
    for path in sorted(paths, key=len, reverse=True):
        if len(path) > 1:
            text = text.replace(path, paths[path])
    for name in {socket.gethostname(), socket.getfqdn()}:
        text = re.sub(rf"\b{re.escape(name)}\b", "node0", text)
    return re.sub(rf"\b{re.escape(getpass.getuser())}\b", "user", text)


def cut(text: str, limit: int = LIMIT) -> str:
    """The head and the tail of `text` in whole lines, at most `limit` bytes in UTF-8."""
    if len(text.encode()) <= limit:
        return text
    room = limit - len(CUT) - 2
    lines = text.splitlines(keepends=True)
    head = _within(lines, int(room * HEAD_SHARE))
    tail = _within(lines[::-1], room - sum(len(line.encode()) for line in head))
    return "".join([*head, CUT, "\n", *tail[::-1]])


def _within(lines: list[str], size: int) -> list[str]:
    kept = []
    for line in lines:
        size -= len(line.encode())
        if size < 0:
            break
        kept.append(line)
    return kept


def main() -> int:
    """Run the recipes named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path, default=SAMPLES)
    options = parser.parse_args()
    book = load_cookbook()
    options.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for recipe in book.recipes:
        if options.names and recipe.id not in options.names:
            continue
        try:
            text = cook(recipe, book.shared)
        except RuntimeError as error:
            failed += 1
            print(f"FAILED {error}", file=sys.stderr)  # noqa: T201 - a command line
            continue
        (options.out / f"{recipe.id}.log").write_text(text, encoding="utf-8")
        print(f"{recipe.id}: {len(text)} characters")  # noqa: T201 - a command line
    return 1 if failed else 0


if __name__ == "__main__":
    shutil.which("bash") or sys.exit("bash is needed")
    sys.exit(main())
