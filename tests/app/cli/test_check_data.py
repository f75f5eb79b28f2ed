"""`timeout-kb check-data`: one line a problem, exit code 1; all parts of the folder are read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from app.cli.common import State
from app.cli.main import run
from kb.settings import Settings


@pytest.fixture(scope="module")
def copied(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the data folder without what is large and not checked."""
    folder = tmp_path_factory.mktemp("copy") / "data"
    shutil.copytree(data_dir, folder, ignore=shutil.ignore_patterns("model", "golden", "examples"))
    return folder


def test_right_files_are_counted(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0, and how many files that is."""
    assert run(["check-data", str(copied)]) == 0
    count = sum(1 for path in copied.rglob("*") if path.suffix in (".yaml", ".md", ".json"))
    assert capsys.readouterr().out == f"{count} files in {copied}: nothing wrong.\n"


def test_without_a_folder_the_data_in_use_are_checked(
    capsys: pytest.CaptureFixture[str], data_dir: Path, settings: Settings
) -> None:
    """As it is typed in CONTRIBUTING: no argument, the folder of the settings."""
    assert run(["check-data"], state=State(settings_source=lambda: settings)) == 0
    assert f"files in {data_dir}: nothing wrong." in capsys.readouterr().out


SLIPS = (  # file, what stands in it, what stands there by mistake, what the line says
    ("stack_places.yaml", "frame:", "fame:", "stack_places.yaml line "),
    ("ingest/phrases.yaml", "comment:", "coment:", "phrases.yaml line "),
    ("lexicon/glossary.tsv", "\t", " ", "glossary.tsv"),
    ("weights.json", '"format":', '"formal":', "weights.json: "),
    ("chat.yaml", "causes: [rank-crash", "causes: [rank-crush", "'rank-crush' is not a cause"),
)


def test_each_part_is_read(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A slip in any file is one line that names it, however many there are, and exit code 1."""
    texts = {file: (copied / file).read_text(encoding="utf-8") for file, *_ in SLIPS}
    for file, old, new, _ in SLIPS:
        assert old in texts[file]
        (copied / file).write_text(texts[file].replace(old, new, 1), encoding="utf-8")
    try:
        assert run(["check-data", str(copied)]) == 1
    finally:
        for file, text in texts.items():
            (copied / file).write_text(text, encoding="utf-8")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(SLIPS)
    for *_, says in SLIPS:
        assert sum(says in line for line in lines) == 1, says
