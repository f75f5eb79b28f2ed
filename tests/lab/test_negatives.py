"""The makers of healthy logs: what they keep, what they take out, and the logs they left."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.negatives import CUT, LIMIT, ROOT, SAMPLES, Recipe, cook, cut, load_cookbook, scrub

BOOK = load_cookbook()
MIN_LOGS = 50
MIN_TRAININGS = 8  # logs of distributed trainings, the likeliest to be taken for a timeout


def test_every_recipe_left_a_log_and_every_log_has_a_recipe() -> None:
    """Names of recipes are unique and are those of the files."""
    names = [recipe.id for recipe in BOOK.recipes]
    assert sorted(names) == sorted(set(names))
    assert sorted(names) == sorted(path.stem for path in SAMPLES.glob("*.log"))
    assert len(names) >= MIN_LOGS
    assert sum(name.startswith("train-") for name in names) >= MIN_TRAININGS


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.log")), ids=lambda path: path.stem)
def test_kept_logs_are_small_and_tell_no_paths(path: Path) -> None:
    """Each is text of at most 8 KB without this checkout's place, escape codes or home folders."""
    text = path.read_text(encoding="utf-8")
    assert 0 < len(text.encode()) <= LIMIT
    assert text == scrub(text, Path("/tmp/negative-none"))
    assert "\x1b" not in text
    assert str(ROOT) not in text
    assert "/root/" not in text


def test_cutting_keeps_head_and_tail_in_whole_lines() -> None:
    """A long text keeps its first and last lines within the limit; a short one is left alone."""
    lines = [f"line {number}\n" for number in range(500)]
    kept = cut("".join(lines), limit=300)
    assert len(kept.encode()) <= 300
    head, tail = kept.split(CUT + "\n")
    assert head == "".join(lines[: head.count("\n")])
    assert tail == "".join(lines[-tail.count("\n") :])
    assert cut("short\n", limit=300) == "short\n"


def test_scrubbing_replaces_the_folder() -> None:
    """The folder of a run and escape codes go, everything else stays."""
    text = "\x1b[1merror\x1b[0m in /tmp/negative-x1/run.py, line 3\r\n"
    assert scrub(text, Path("/tmp/negative-x1")) == "error in /job/run.py, line 3\n"


def test_a_recipe_runs_in_a_folder_of_its_own() -> None:
    """Its files are there, its output is kept in order with its errors, and a wrong exit tells."""
    recipe = Recipe(
        id="r", run="cat a/b.txt; ls missing; exit 3", files={"a/b.txt": "hi\n"}, exit=3
    )
    text = cook(recipe, {})
    assert text.splitlines()[0] == "hi"
    assert "missing" in text.splitlines()[1]
    with pytest.raises(RuntimeError, match="r ended with 1, not 0"):
        cook(Recipe(id="r", run="exit 1"), {})
