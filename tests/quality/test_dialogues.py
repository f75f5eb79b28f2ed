"""The record of the last judged dialogues: whole, and as data/golden/README.md counts it."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
CAUSES = re.compile(r"^- id: ([a-z0-9-]+)", re.MULTILINE)


@pytest.fixture(scope="module")
def dialogues() -> list[dict[str, Any]]:
    """One a line: the incident's address and cause, and every turn with what was said of it."""
    lines = (ROOT / "tests/quality/dialogues.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_twenty_dialogues_of_eight_turns_half_of_them_chinese(
    dialogues: list[dict[str, Any]],
) -> None:
    """Of known causes, each turn judged."""
    known = set(CAUSES.findall((ROOT / "data/causes.yaml").read_text(encoding="utf-8")))
    assert len(dialogues) >= 20
    assert Counter(item["lang"] for item in dialogues) == {"zh": 10, "en": 10}
    for item in dialogues:
        assert item["incident"].startswith("http")
        assert {item["cause"], *item["also"]} <= known
        assert len(item["turns"]) >= 8
        assert all(turn["good"] is not ("fault" in turn) for turn in item["turns"])
        assert all(turn["said"] for turn in item["turns"])


def test_the_figures_are_those_of_the_table(dialogues: list[dict[str, Any]]) -> None:
    """The last row of the table of rounds counts these turns."""
    table = (ROOT / "data/golden/README.md").read_text(encoding="utf-8")
    row = re.findall(r"^\| \d+[^\n]*$", table.split("## Chat")[1].split("\n## ")[0], re.MULTILINE)[
        -1
    ]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    turns = [(item["lang"], turn["good"]) for item in dialogues for turn in item["turns"]]
    share = {
        lang: sum(good for own, good in turns if own == lang) / sum(own == lang for own, _ in turns)
        for lang in ("zh", "en")
    }
    good = sum(good for _, good in turns) / len(turns)
    assert cells[1:3] == [str(len(dialogues)), str(len(turns))]
    assert cells[3] == f"{good:.2f} (zh {share['zh']:.2f}, en {share['en']:.2f})".replace("0.", ".")
