"""The wheel carries the knowledge and works where the checkout is not."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

LOG = (
    "[rank2]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 336.00 MiB.\n"
    "[rank0]:[E ProcessGroupNCCL.cpp:563] [Rank 0] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=812, OpType=ALLREDUCE, NumelIn=25165824, NumelOut=25165824, "
    "Timeout(ms)=600000) ran for 600068 milliseconds before timing out.\n"
)


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel built from the checkout."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder)]
    subprocess.run([*command, str(root)], check=True, capture_output=True)
    return next(folder.glob("timeout_kb-*.whl"))


def test_the_wheel_holds_packages_and_knowledge_only(wheel: Path, root: Path) -> None:
    """Every knowledge file is in it but the rows that models are fitted on; tests are not."""
    names = set(zipfile.ZipFile(wheel).namelist())
    rows = {*root.glob("data/chat/*.jsonl"), *root.glob("data/statements/*.jsonl")}
    rows.add(root / "data/line_kinds_posts.txt")
    data = {
        f"kb/data/{path.relative_to(root / 'data')}"
        for path in set((root / "data").rglob("*")) - rows
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert data == {name for name in names if name.startswith("kb/data/")}
    assert "kb/data/notes/timeout-ddp.md" in names
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"kb", "ingest", "app"}


@pytest.mark.slow
def test_a_clean_environment_diagnoses(wheel: Path, tmp_path: Path) -> None:
    """Installed into an empty environment, the command names the cause and needs no torch."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=True)
    pip = [str(home / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, str(wheel)], check=True, cwd=tmp_path)
    (tmp_path / "run.log").write_text(LOG)
    done = subprocess.run(
        [str(home / "bin" / "timeout-kb"), "diagnose", "run.log", "--format", "json"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"TIMEOUT_KB_HOME": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"},
        check=True,
    )
    answer = json.loads(done.stdout)
    assert (answer["status"], answer["causes"][0]["id"]) == ("diagnosed", "rank-crash")
    assert not list(home.glob("lib/python*/site-packages/torch"))
