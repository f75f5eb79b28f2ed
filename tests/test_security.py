"""SECURITY.md: what it names is there, and every chapter of the standard has a row."""

from __future__ import annotations

import re
from pathlib import Path

from kb.settings import PREFIX, Settings


def test_what_it_names_exists(root: Path) -> None:
    """Tests, settings and options are spelt as they are."""
    text = (root / "SECURITY.md").read_text(encoding="utf-8")
    tests = re.findall(r"`(tests/[\w/]+\.py)`", text)
    assert len(tests) >= 5
    assert [name for name in tests if not (root / name).is_file()] == []
    settings = {PREFIX + name.upper() for name in Settings.__dataclass_fields__}
    assert set(re.findall(rf"{PREFIX}[A-Z_]+", text)) <= settings
    serve = (root / "app" / "cli" / "serve.py").read_text(encoding="utf-8")
    assert {"--tls-cert", "--tls-key"} <= set(re.findall(r'"(--[a-z-]+)"', serve))


def test_every_chapter_is_judged(root: Path) -> None:
    """V1 to V14, each row with a state of the legend."""
    text = (root / "SECURITY.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (V\d+)[^|]*\| ([^|]+) \|", text, re.MULTILINE)
    assert {chapter for chapter, _ in rows} == {f"V{number}" for number in range(1, 15)}
    states = {state for _, cell in rows for state in cell.split(" · ")}
    assert states <= {"holds", "proxy", "n/a", "open"}
