"""Paraphrases are read in order, and what is wrong with a line is named with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kb.errors import DataError
from kb.knowledge.load import read_knowledge
from kb.knowledge.paraphrases import FOLDER, Paraphrase, load_paraphrases

LINE = {"case": "save", "lang": "en", "kind": "lay", "text": "storing the weights never ends"}


def test_lines_of_all_files_in_order(tmp_path: Path) -> None:
    """Files by name, lines as they stand."""
    (tmp_path / "b.jsonl").write_text(json.dumps(LINE) + "\n", "utf-8")
    (tmp_path / "a.jsonl").write_text(json.dumps(LINE | {"text": "存权重卡住"}) + "\n", "utf-8")
    found = load_paraphrases(tmp_path, {"save"})
    assert [item.text for item in found] == ["存权重卡住", LINE["text"]]
    assert found[1] == Paraphrase(**LINE)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        ([LINE, LINE], "line 2: the same stands in paraphrases/p.jsonl, line 1"),
        ([LINE | {"case": "gone"}], "no case 'gone'"),
        ([LINE | {"text": " "}], "the text is empty"),
        ([LINE | {"kind": "song"}], "Invalid enum value 'song'"),
        ([LINE | {"more": 1}], "unknown field"),
    ],
)
def test_wrong_lines_are_refused(
    tmp_path: Path, lines: list[dict[str, object]], wrong: str
) -> None:
    """Twice the same, no such case, nothing said, no such kind, a field too many."""
    (tmp_path / "p.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines), "utf-8")
    with pytest.raises(DataError, match=wrong):
        load_paraphrases(tmp_path, {"save"})


def test_shipped_ones_have_ten_a_case_in_both_languages(data_dir: Path) -> None:
    """Every case that has paraphrases has at least ten, five in each language."""
    cases = set(read_knowledge(data_dir).case_by_id)
    counts: dict[str, list[str]] = {}
    for item in load_paraphrases(data_dir / FOLDER, cases):
        counts.setdefault(item.case, []).append(item.lang)
    few = {case: langs for case, langs in counts.items() if min(map(langs.count, ("zh", "en"))) < 5}
    assert few == {}
    assert len(counts) >= 218
