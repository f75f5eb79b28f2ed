"""`timeout-kb lint` over files: places, exit codes, and what other programs run of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import yaml

from app.cli.common import State
from app.cli.lint import command as lint_command
from app.cli.main import run
from kb.service import Service
from tests.checkers import checker

SCRIPT = "#!/bin/sh\nexport NCCL_TIMEOUT=7200\n"
NOTED = "export CUDA_LAUNCH_BLOCKING=1\n"
Lint = Callable[..., tuple[int, str]]


@pytest.fixture
def lint(real: Service, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Lint:
    """Runs `lint` with the real knowledge in a folder of its own."""

    def go(*words: str) -> tuple[int, str]:
        state = State(
            open_service=lambda *_, **__: _Open(real), settings_source=lambda: real.settings
        )
        code = run(["lint", "--lang", "en", *words], state=state)
        return code, capfd.readouterr().out

    return go


class _Open:
    """The service of all tests, which a command does not close."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def __getattr__(self, name: str) -> object:
        return (lambda: None) if name == "close" else getattr(self._service, name)


def places(output: str) -> list[tuple[str, int, str]]:
    """File, line and setting of each warning."""
    return [
        (Path(item["file"]).name, item["line"], item["setting"].partition("=")[0])
        for item in json.loads(output)
    ]


def test_each_file_is_read_by_itself(lint: Lint, tmp_path: Path) -> None:
    """Warnings name the file and the line in it, whatever line ends it has."""
    (tmp_path / "a.sh").write_text("# fine\n" + SCRIPT)
    (tmp_path / "b.sh").write_bytes(b"#!/bin/sh\r\nx=1\x0b\r\nexport NCCL_TIMEOUT=7200\r\n")
    code, output = lint("--format", "json", str(tmp_path / "a.sh"), str(tmp_path / "b.sh"))
    assert code == 1
    assert places(output) == [("a.sh", 3, "NCCL_TIMEOUT"), ("b.sh", 3, "NCCL_TIMEOUT")]


def test_files_of_one_job_are_compared(lint: Lint, tmp_path: Path) -> None:
    """What contradicts only another file's setting is told with --together alone."""
    (tmp_path / "env.sh").write_text("export MASTER_ADDR=127.0.0.1\n")
    (tmp_path / "run.sh").write_text("cd\nexport NCCL_TIMEOUT=9\ntorchrun --nnodes 2 t.py\n")
    files = [str(tmp_path / name) for name in ("env.sh", "run.sh")]
    alone = places(lint("--format", "json", *files)[1])
    together = places(lint("--format", "json", "--together", *files)[1])
    assert alone == [("run.sh", 2, "NCCL_TIMEOUT")]
    assert together == [("env.sh", 1, "MASTER_ADDR"), *alone]


@pytest.mark.parametrize(
    ("text", "fail_on", "code"),
    [
        (SCRIPT, "note", 1),
        (SCRIPT, "warning", 1),
        (SCRIPT, "never", 0),
        (NOTED, "note", 1),
        (NOTED, "warning", 0),
        ("export OMP_NUM_THREADS=1\n", "note", 0),
    ],
)
def test_the_exit_code_is_a_linters(
    lint: Lint, tmp_path: Path, text: str, fail_on: str, code: int
) -> None:
    """1 for what is as bad as asked for, else 0."""
    (tmp_path / "a.sh").write_text(text)
    assert lint("--fail-on", fail_on, str(tmp_path / "a.sh"))[0] == code


@pytest.mark.parametrize("words", [("/nowhere/x.sh",), ("--format", "xml"), ("--fail-on", "bad")])
def test_bad_input_is_no_finding(lint: Lint, words: Sequence[str]) -> None:
    """2, as for every wrong command line."""
    assert lint(*words)[0] == 2


# --- what runs it -------------------------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path: Path, root: Path, real: Service) -> Path:
    """A repository with a launch script, and the program on a search path of its own."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "timeout-kb"
    python = f"{sys.executable} -c 'from app.cli.main import main; main()'"
    program.write_text(f'#!/bin/sh\nPYTHONPATH={root} exec {python} "$@"\n')
    program.chmod(0o755)
    work = tmp_path / "work"
    (work / "jobs").mkdir(parents=True)
    (work / "jobs" / "-run it.sh").write_text(SCRIPT)
    (work / "notes.md").write_text(SCRIPT)
    for words in (("init", "-q"), ("add", "-A")):
        subprocess.run(["git", *words], cwd=work, check=True)
    (work / "untracked.sh").write_text(SCRIPT)
    return work


def test_the_action_annotates_tracked_scripts(checkout: Path, root: Path, real: Service) -> None:
    """One annotation and a SARIF file of the tracked script; exit code 1 fails the workflow."""
    done = subprocess.run(
        ["bash", str(root / "deploy" / "action" / "lint.sh")],
        cwd=checkout,
        env={
            "PATH": f"{checkout.parent / 'bin'}:{os.environ['PATH']}",
            "TIMEOUT_KB_HOME": str(real.settings.home),
            "LINT_FILES": "*.sh\n\n$(touch owned)\n",
            "LINT_SARIF": "out.sarif",
            "LINT_FAIL_ON": "warning",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    (line,) = done.stdout.splitlines()
    assert line.startswith("::warning file=jobs/-run it.sh,line=2,title=NCCL_TIMEOUT=7200::")
    (run_,) = json.loads((checkout / "out.sarif").read_text())["runs"]
    assert [item["ruleId"] for item in run_["results"]] == ["no_effect"]
    assert not (checkout / "owned").exists()


def test_the_action_is_as_github_wants_it(root: Path) -> None:
    """Its inputs reach the script as variables alone, and each variable is read there."""
    path = root / "deploy" / "action" / "action.yml"
    action = yaml.safe_load(path.read_text())
    script = (root / "deploy" / "action" / "lint.sh").read_text()
    (check,) = [step for step in action["runs"]["steps"] if "env" in step]
    assert all("${{" not in step["run"] for step in action["runs"]["steps"])
    named = {
        re.fullmatch(r"\$\{\{ inputs\.([a-z-]+) \}\}", value) for value in check["env"].values()
    }
    assert {match[1] for match in named if match} == set(action["inputs"])
    assert set(check["env"]) == set(re.findall(r"LINT_[A-Z_]+", script))
    levels = next(item for item in lint_command.params if item.name == "fail_on")
    assert action["inputs"]["fail-on"]["default"] in levels.type.choices  # type: ignore[attr-defined]
    words = [checker("check-jsonschema"), "--builtin-schema", "vendor.github-actions", str(path)]
    subprocess.run(words, check=True, capture_output=True)


def test_the_pre_commit_hook_reads_launch_scripts(root: Path) -> None:
    """pre-commit takes the manifest; the hook's command line exists and its files are scripts."""
    path = root / ".pre-commit-hooks.yaml"
    (hook,) = yaml.safe_load(path.read_text())
    matched = [
        name
        for name in ("a.sh", "jobs/b.sbatch", ".env", "c/prod.env", "README.md", "x.sh.md")
        if re.search(hook["files"], name)
    ]
    assert matched == ["a.sh", "jobs/b.sbatch", ".env", "c/prod.env"]
    program, verb, *options = hook["entry"].split()
    assert (program, verb) == ("timeout-kb", "lint")
    lint_command.make_context("lint", [*options, "a.sh"])
    subprocess.run([checker("pre-commit"), "validate-manifest", str(path)], check=True)
