"""Labels: each one is used, each one used is there, in both languages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from app.render.present import UNDECIDED
from kb.diagnose.wording import BANDS
from kb.errors import DataError
from kb.evidence.flight_recorder.rules import FaultType
from kb.knowledge.labels import Words
from kb.types.knowledge import Bilingual
from kb.types.vocabulary import ClaimStatus, EntryKind, EvidenceKind, Language, Restart, Stage

Labels = dict[str, Bilingual]


def label_patterns(node: ast.AST, groups: set[str]) -> Iterator[str]:
    """What labels a piece of code names: one by a string, several by an f-string or a group."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield re.escape(node.value)
    elif isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else None for part in node.values]
        yield "".join(r"\w+" if part is None else re.escape(str(part)) for part in parts)
    elif isinstance(node, ast.Call):
        term = isinstance(node.func, ast.Attribute) and node.func.attr == "term"
        names = [item.value for item in node.args[:term] if isinstance(item, ast.Constant)]
        names += [
            item.value.value
            for item in node.keywords
            if item.arg == "vocabulary" and isinstance(item.value, ast.Constant)
        ]
        yield from (rf"{name}\.\w+" for name in names if name in groups)


def test_every_label_used_is_there(labels: Labels, root: Path) -> None:
    """Names of labels in the code stand in data/labels, and none there is unused."""
    groups = {name.split(".")[0] for name in labels}
    files = [path for part in ("app", "ingest", "kb") for path in (root / part).rglob("*.py")]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in files]
    patterns = {
        pattern
        for tree in trees
        for node in ast.walk(tree)
        for pattern in label_patterns(node, groups)
        if re.match(rf"({'|'.join(groups)})\\\.(?!yaml$)[\\a-z_+]+$", pattern)
    }
    single = {pattern.replace("\\", "") for pattern in patterns if "+" not in pattern}
    assert single - set(labels) == set()
    several = re.compile("|".join(pattern for pattern in patterns if "+" in pattern))
    assert {name for name in set(labels) - single if not several.fullmatch(name)} == set()


@pytest.mark.parametrize(
    ("group", "vocabulary"),
    [
        ("stage", Stage),
        ("restart", Restart),
        ("claim", ClaimStatus),
        ("kind", EntryKind),
        ("source", EvidenceKind),
        ("fault", FaultType),
    ],
)
def test_closed_vocabularies_have_their_words(
    labels: Labels, group: str, vocabulary: object
) -> None:
    """Each value of a closed vocabulary has a label, and each label there is stands for a value."""
    values = set(get_args(vocabulary)) - ({UNDECIDED} if group == "fault" else set())
    named = {name.partition(".")[2] for name in labels if name.startswith(f"{group}.")}
    assert named == values


def test_bands_have_their_words(labels: Labels) -> None:
    """Each band of probability has a label, and no other."""
    named = {name.partition(".")[2] for name in labels if name.startswith("band.")}
    assert named == {name for name, _ in BANDS}


def test_label_twins_take_the_same_values(labels: Labels) -> None:
    """Both languages of a label have the same braces."""
    braces = re.compile(r"{(\w+)}")
    different = [
        name
        for name, label in labels.items()
        if set(braces.findall(label.zh)) != set(braces.findall(label.en))
    ]
    assert different == []


@pytest.mark.parametrize(
    ("lines", "language", "shown"),
    [
        (1, "en", "1 line in 7 ms"),
        (2, "en", "2 lines in 7 ms"),
        (0, "en", "0 lines in 7 ms"),
        (1, "zh", "1 行，用时 7 毫秒"),
    ],
)
def test_one_is_not_several(labels: Labels, lines: int, language: Language, shown: str) -> None:
    """A label chooses the form of a word by its number."""
    assert Words(labels, language)("word.took", lines=lines, ms=7) == shown


def test_a_missing_label_is_named(labels: Labels) -> None:
    """The error says which label to add."""
    with pytest.raises(DataError, match=r"word\.nowhere"):
        Words(labels, "en")("word.nowhere")
