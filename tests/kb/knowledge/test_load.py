"""Knowledge: checked files, kept once they were checked, rebuilt when a file changes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kb.errors import DataError
from kb.knowledge.load import knowledge_digest, load_knowledge


@pytest.fixture
def data(data_dir: Path, tmp_path: Path) -> Path:
    """A copy of the knowledge with two cases."""
    copy = tmp_path / "data"
    copy.mkdir()
    for path in data_dir.glob("*.yaml"):
        shutil.copy(path, copy)
    shutil.copytree(data_dir / "labels", copy / "labels")
    (copy / "cases").mkdir()
    for path in sorted((data_dir / "cases").glob("*.md"))[:2]:
        shutil.copy(path, copy / "cases")
    return copy


def test_what_was_kept_equals_what_was_read(data: Path, tmp_path: Path) -> None:
    """The kept copy decodes to the same values, and is used: its file stays as it is."""
    cache = tmp_path / "cache"
    first = load_knowledge(data, cache=cache)
    (kept,) = cache.iterdir()
    before = kept.stat().st_mtime_ns
    assert load_knowledge(data, cache=cache) == first
    assert kept.stat().st_mtime_ns == before


def test_a_changed_file_is_read_anew(data: Path, tmp_path: Path) -> None:
    """Another digest, other values, and only the new copy is kept."""
    cache = tmp_path / "cache"
    first = load_knowledge(data, cache=cache)
    next((data / "cases").glob("*.md")).unlink()
    second = load_knowledge(data, cache=cache)
    assert second.digest != first.digest
    assert len(second.cases) == 1
    assert [path.name for path in cache.iterdir()] == [f"knowledge-{second.digest[:16]}.json"]


def test_a_damaged_copy_is_made_anew(data: Path, tmp_path: Path) -> None:
    """A cut-off cache, a letter that became another or none cost time, never the answer."""
    cache = tmp_path / "cache"
    first = load_knowledge(data, cache=cache)
    (kept,) = cache.iterdir()
    content = kept.read_bytes()
    middle = content.index(b"timeout")
    for damaged in (
        content[:1000],
        content[:middle] + b"T" + content[middle + 1 :],
        content[:middle] + b"\xff" + content[middle + 1 :],
        b"",
    ):
        kept.write_bytes(damaged)
        assert load_knowledge(data, cache=cache) == first
        assert kept.read_bytes() == content


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        ("causes.yaml", "id: rank-crash", "idd: rank-crash", "causes.yaml"),
        ("facts.yaml", "collective-mismatch:", "collectiv-mismatch:", "is no cause"),
        ("cues.yaml", "cue-docker", "cue-gloo", "stands twice"),
        ("patterns.yaml", "kind: timeout", "kind: timeouts", "patterns.yaml"),
    ],
    ids=["field", "unknown-cause", "twice", "enum"],
)
def test_broken_files_are_named(data: Path, file: str, old: str, new: str, says: str) -> None:
    """The message names the file and what is wrong in it."""
    path = data / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(DataError, match=says):
        load_knowledge(data)


def test_a_missing_file_says_what_to_do(data: Path) -> None:
    """Without a file the digest cannot be taken; the message points at the setting."""
    (data / "advice.yaml").unlink()
    with pytest.raises(DataError) as caught:
        knowledge_digest(data)
    assert "TIMEOUT_KB_DATA" in caught.value.todo
