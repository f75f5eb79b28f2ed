"""Which way imports point, and what stays out of the start-up path."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ALLOWED = {"kb": {"kb"}, "ingest": {"kb", "ingest"}, "app": {"kb", "ingest", "app"}}
PACKAGES = set(ALLOWED)
# Inside kb: what each part may import, the part itself aside. A part that is not named is refused.
VALUES = {"types", "errors", "settings"}
TEXT = VALUES | {"files", "text", "knowledge"}
SEARCH = TEXT | {"embed", "store", "index", "search"}
ANSWER = TEXT | {"diagnose", "settings_check"}
SERVICE = SEARCH | ANSWER | {"evidence", "incidents", "log_lines", "logs", "second_reader"}
OFFLINE = {"train", "evaluation"}  # command lines that fit and measure; the product does without
INSIDE = {
    "types": set(),
    "errors": set(),
    "settings": {"errors"},
    "retry_after": set(),
    "files": {"errors"},
    "text": VALUES | {"files"},
    "knowledge": VALUES | {"files", "text"},
    "log_lines": TEXT,
    "evidence": TEXT,
    "logs": TEXT | {"evidence"},
    "embed": TEXT,
    "store": TEXT,
    "index": TEXT | {"store", "embed"},
    "incidents": TEXT,
    "search": SEARCH,
    "diagnose": TEXT | {"settings_check"},
    "settings_check": TEXT,
    "second_reader": ANSWER | {"retry_after", "log_lines"},
    "saved": TEXT,
    "components": SERVICE,
    "service": SERVICE | {"components"},
    "bootstrap": SERVICE | {"components", "service"},
    "chat": ANSWER | {"store", "logs", "embed", "second_reader"},
    "train": SERVICE | {"service", "bootstrap", "saved", "chat"} | OFFLINE,
    "evaluation": SERVICE | {"service", "bootstrap"} | OFFLINE,
}


def imports_of(path: Path) -> Iterator[str]:
    """Dotted names a file imports, inside functions too, type checking aside."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {
        id(node)
        for test in ast.walk(tree)
        if isinstance(test, ast.If) and "TYPE_CHECKING" in ast.unparse(test.test)
        for node in ast.walk(test)
    }
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_packages_import_in_one_direction(package: str, root: Path) -> None:
    """The arrows are app → ingest → kb, never back."""
    wrong = [
        f"{path.relative_to(root)} imports {name}"
        for path in sorted((root / package).rglob("*.py"))
        for name in imports_of(path)
        if name.split(".")[0] in PACKAGES - ALLOWED[package]
    ]
    assert wrong == []


def test_every_part_has_a_level(root: Path) -> None:
    """A folder or module of kb that has no level is refused: someone has to place it."""
    parts = {path.stem for path in (root / "kb").iterdir() if path.suffix == ".py"}
    parts |= {path.parent.name for path in (root / "kb").glob("*/__init__.py")}
    assert parts - {"__init__"} == set(INSIDE)


@pytest.mark.parametrize("part", sorted(INSIDE))
def test_the_core_is_layered(part: str, root: Path) -> None:
    """Inside kb values come first, then text and logs, store and index, search, diagnosis."""
    folder = root / "kb" / part
    files = sorted(folder.rglob("*.py")) if folder.is_dir() else [root / "kb" / f"{part}.py"]
    wrong = [
        f"{path.relative_to(root)} imports {name}"
        for path in files
        for name in imports_of(path)
        if name.startswith("kb.") and name.split(".")[1] not in INSIDE[part] | {part}
    ]
    assert wrong == []


def test_only_two_verbs_measure(root: Path) -> None:
    """Of the faces `evaluate`, `learn` and the quality page alone know what measuring gives."""
    users = {
        str(path.relative_to(root))
        for package in ("app", "ingest")
        for path in (root / package).rglob("*.py")
        for name in imports_of(path)
        if name.startswith(tuple(f"kb.{part}" for part in OFFLINE))
    }
    assert users <= {
        "app/cli/evaluate.py",
        "app/cli/evaluate_search.py",
        "app/cli/learn.py",
        "app/web/views/quality.py",
    }


def modules_after(code: str, tmp_path: Path) -> set[str]:
    """Names of the modules a fresh interpreter has after running `code`."""
    script = f"{code}\nimport json, sys\nprint('\\n' + json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"TIMEOUT_KB_HOME": str(tmp_path / "home"), "PATH": ""},
    )
    return set(json.loads(done.stdout.strip().splitlines()[-1]))


def test_a_diagnosis_imports_nothing_heavy(tmp_path: Path) -> None:
    """A whole diagnosis loads no torch, sentence-transformers, web framework or page."""
    log = tmp_path / "run.log"
    log.write_text("[rank0]: training hangs at step 10, NCCL watchdog timeout\n")
    code = (
        "from app.cli.main import main\n"
        "try:\n"
        f"    main(['diagnose', {str(log)!r}])\n"
        "except SystemExit as done:\n"
        "    assert done.code in (0, 3), done.code\n"
    )
    loaded = modules_after(code, tmp_path)
    assert "kb.diagnose.verdict" in loaded
    heavy = {"torch", "sentence_transformers", "transformers", "sklearn", "scipy"}
    assert loaded & (heavy | {"fastapi", "uvicorn", "streamlit", "slack_bolt"}) == set()


def test_help_loads_no_index(tmp_path: Path) -> None:
    """`timeout-kb --help` imports neither FAISS nor tantivy nor numpy."""
    code = (
        "from app.cli.main import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
    )
    loaded = modules_after(code, tmp_path)
    assert loaded & {"faiss", "tantivy", "numpy", "hyperscan", "jieba", "rjieba"} == set()


def test_importing_kb_costs_nothing(tmp_path: Path) -> None:
    """`import kb` loads its own module only; API names load on first use."""
    loaded = modules_after("import kb", tmp_path)
    assert {name for name in loaded if name.startswith("kb.")} == set()
    used = modules_after("import kb\nkb.Settings", tmp_path)
    assert {name for name in used if name.startswith("kb.")} == {"kb.settings", "kb.errors"}
