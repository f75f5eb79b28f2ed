"""Paraphrases are read in order, and what is wrong with a line is named with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kb.errors import DataError
from kb.knowledge.load import read_knowledge
from kb.knowledge.paraphrases import (
    ASKED_ROLE,
    FOLDER,
    TOGETHER,
    Paraphrase,
    load_paraphrases,
    with_paraphrases,
)
from tests.kb.fakes import make_entry

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


def test_a_case_is_searched_by_them() -> None:
    """They are further chunks, a language apart; log lines and other cases' ones are not taken."""
    case = make_entry("save", "a checkpoint hangs")
    told = [
        Paraphrase(**LINE | {"text": f"storing hangs {number}"})  # type: ignore[arg-type]
        for number in range(TOGETHER + 1)
    ]
    others = [
        Paraphrase(case="save", lang="zh", kind="question", text="存权重卡住怎么办"),
        Paraphrase(case="save", lang="en", kind="line", text="watchdog"),
        Paraphrase(case="gone", lang="en", kind="lay", text="gone"),
    ]
    [found] = with_paraphrases([case], [*told, *others])
    asked = [chunk for chunk in found.chunks if chunk.role == ASKED_ROLE]
    assert found.chunks[: len(case.chunks)] == case.chunks
    assert len({chunk.id for chunk in found.chunks}) == len(found.chunks)
    lines = sorted(line for chunk in asked for line in chunk.text.splitlines())
    assert lines == sorted([*(item.text for item in told), "存权重卡住怎么办"])
    assert [chunk.language for chunk in asked] == ["zh", "en", "en"]


def test_a_new_one_changes_the_case() -> None:
    """The digest follows, so that a stored case is written anew; without any all stays."""
    case = make_entry("save", "a checkpoint hangs")
    first = Paraphrase(**LINE)  # type: ignore[arg-type]
    second = Paraphrase(case="save", lang="en", kind="lay", text="it never ends")
    digests = {with_paraphrases([case], told)[0].digest for told in ([], [first], [first, second])}
    assert len(digests) == 3
    assert with_paraphrases([case], []) == (case,)
