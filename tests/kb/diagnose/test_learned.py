"""Learned weights: kept with a checksum, passed over where damaged or made for something else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kb.diagnose.evidence_model import load_weights
from kb.diagnose.learned import (
    LearnedWeights,
    TermReader,
    base_digest,
    decoded,
    encoded,
    keep_learned,
    load_learned,
    undo_learned,
)
from kb.errors import DataError
from kb.knowledge.load import Knowledge
from kb.text.tokenizer import Tokenizer
from kb.types.incident import Incident, LogReading

LEARNED = LearnedWeights(base="b", corrections={"term:quobyte": {"checkpoint-io": 1.5}}, outcomes=6)


def test_what_is_kept_comes_back(tmp_path: Path, data_dir: Path) -> None:
    """The newest is in use; undo goes back one by one, to nothing."""
    first = replace(LEARNED, base=base_digest(data_dir))
    second = replace(first, outcomes=7)
    assert load_learned(tmp_path, data_dir) is None
    paths = [keep_learned(tmp_path, item) for item in (first, second)]
    assert [path.name for path in paths] == ["0001.json", "0002.json"]
    for path, value in zip(reversed(paths), (second, first), strict=True):
        used = load_learned(tmp_path, data_dir)
        assert used is not None
        assert replace(used, checksum="") == value
        assert undo_learned(tmp_path) == path
    assert load_learned(tmp_path, data_dir) is None
    assert undo_learned(tmp_path) is None


def test_corrections_are_added_to_the_shipped_ones(data_dir: Path) -> None:
    """What is not corrected stays as it is."""
    shipped = load_weights(data_dir / "weights.json")
    name, causes = next(iter(sorted(shipped.learned.items())))
    cause, nats = next(iter(sorted(causes.items())))
    own = LearnedWeights(base="", corrections={name: {cause: 0.5}, "term:x": {"rank-crash": 1.0}})
    both = own.added_to(shipped)
    assert both.learned[name] == causes | {cause: round(nats + 0.5, 3)}
    assert both.learned["term:x"] == {"rank-crash": 1.0}
    assert replace(both, learned=shipped.learned) == shipped
    assert own.terms == ("x",)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text.replace("1.5", "1.6"), "its checksum is another"),
        (lambda text: text[: len(text) // 2], "AGAIN"),
        (lambda _: "[" * 100_000, "AGAIN"),
        (lambda _: "cos\nsystem\n(S'true'\ntR.", "AGAIN"),
        (lambda text: text.replace('"format": 1', '"format": 2'), "has format 2"),
        (lambda _: encoded(replace(LEARNED, corrections={"a": {"b": 9.5}})).decode(), "beyond 3"),
    ],
    ids=["changed", "cut", "deep", "pickle", "format", "too much"],
)
def test_what_is_damaged_is_refused(change: Callable[[str], str], says: str) -> None:
    """With the file's name, and what to do."""
    text = change(encoded(LEARNED).decode())
    with pytest.raises(DataError, match=r"learned\.json") as refused:
        decoded(text.encode(), name="learned.json")
    assert says.replace("AGAIN", "") in str(refused.value)
    assert "timeout-kb learn" in refused.value.todo


def test_those_for_other_knowledge_are_refused(tmp_path: Path, data_dir: Path) -> None:
    """After an update they are made again, not applied to what they do not fit."""
    keep_learned(tmp_path, LEARNED)
    with pytest.raises(DataError, match="another version of the knowledge"):
        load_learned(tmp_path, data_dir)


def test_the_file_says_what_it_is() -> None:
    """Readable JSON, the same bytes each time."""
    content = encoded(LEARNED)
    assert content == encoded(LEARNED)
    assert json.loads(content)["corrections"] == LEARNED.corrections
    assert decoded(content, name="x") == replace(LEARNED, checksum=json.loads(content)["checksum"])


def test_words_are_found_where_they_stand(knowledge: Knowledge, data_dir: Path) -> None:
    """In a person's words and in a program's lines, with line and file; each once."""
    reader = TermReader(["quobyte", "储能站"], Tokenizer(data_dir / "lexicon"), knowledge.labels)
    reading = LogReading(
        incident=Incident(),
        events=(),
        words="It hangs.\nQuobyte, our quobyte!\nquobyte",
        excerpt="quobyte: stalled",
        word_places=(("a.log", 3), ("a.log", 4), ("a.log", 9)),
    )
    (signal,) = reader.read(reading)
    assert (signal.name, signal.file, signal.line) == ("term:quobyte", "a.log", 4)
    assert signal.quote == "Quobyte, our quobyte!"
    assert not signal.rules_out
    assert reader.read(replace(reading, words="", excerpt="rank 3 stalled")) == []
