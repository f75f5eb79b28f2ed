"""The word lists are sound, and a damaged one is refused by name."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import get_args

import pytest

from ingest.sections import role_of
from ingest.wordlists import WordLists, load_word_lists
from kb.errors import DataError
from kb.knowledge.cases import SECTION_ROLES
from kb.knowledge.load import read_yaml
from kb.types.knowledge import Cause
from kb.types.vocabulary import UNKNOWN, Stage


def test_every_cause_has_cues(words: WordLists, data_dir: Path) -> None:
    """Exactly the causes of causes.yaml, without the unknown, can be claimed by a write-up."""
    causes = {cause.id for cause in read_yaml(data_dir / "causes.yaml", tuple[Cause, ...])}
    assert {cue.cause for cue in words.cues} == causes - {UNKNOWN}


def test_stages_are_those_of_the_values(words: WordLists) -> None:
    """Every stage a text can be given exists, and each existing one can be given."""
    assert {name for name, _ in words.stages} == set(get_args(Stage)) - {"unknown"}


def test_section_titles_of_cases_are_known(words: WordLists) -> None:
    """A write-up that uses the titles of our own cases is read with the same roles."""
    for roles in SECTION_ROLES.values():
        assert {title: role_of(f"## {title}", words) for title in roles} == roles


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "cause_cues.yaml",
            "- {cause: x, strong: ['(']}",
            "cause_cues.yaml line 1: [0].strong: missing )",
        ),
        (
            "sections.yaml",
            "- {role: 5, words: []}",
            "sections.yaml line 1: [0].role: Expected `str`",
        ),
        ("signs.yaml", "[", "signs.yaml line 2 is not YAML"),
        ("furniture.yaml", None, "furniture.yaml: No such file"),
    ],
)
def test_damaged_word_list_is_named(
    name: str, text: str | None, message: str, data_dir: Path, tmp_path: Path
) -> None:
    """A wrong expression, type, syntax or a missing file is refused with the file's name."""
    shutil.copytree(data_dir / "ingest", tmp_path / "ingest")
    shutil.copy(data_dir / "framework_names.yaml", tmp_path)
    path = tmp_path / "ingest" / name
    path.unlink()
    if text is not None:
        path.write_text(text)
    with pytest.raises(DataError) as refused:
        load_word_lists(tmp_path)
    assert message in str(refused.value)
