"""The model behind the kinds of lines: its signs, its weights, its best path."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kb.errors import DataError
from kb.settings import shipped_data
from kb.text.line_model import (
    FORMAT,
    SIGNS,
    WEIGHTS,
    LineModel,
    LineSigns,
    LineWeights,
    SignReader,
    named_signs,
    shipped_model,
)


def model(
    signs: dict[str, list[float]],
    steps: list[list[float]] | None = None,
    apart: list[list[float]] | None = None,
) -> LineModel:
    """A model of two kinds, words and numbers, with these weights a sign."""
    reader = SignReader({"rank": r"\[r\d\] "}, {"letter": "^[a-z]", "digit": r"^\d|;$"})
    weights = LineWeights(
        format=FORMAT,
        kinds=["words", "numbers"],
        signs=list(signs),
        weights=list(signs.values()),
        steps=steps or [[0.0, 0.0], [0.0, 0.0]],
        apart=apart or [[0.0, 0.0], [0.0, 0.0]],
    )
    return LineModel(reader, weights)


def test_the_heavier_kind_wins() -> None:
    """A line's kind is the one whose signs weigh more; a blank line has that of the line before."""
    toy = model({"letter": [1.0, 0.0], "digit": [0.0, 1.0]})
    assert toy.best_path(toy.reader.read(["abc", "", "12", "[r3] x"])) == [0, 0, 1, 0]
    assert toy.best_path(toy.reader.read(["", ""])) == [0, 0]
    assert toy.best_path([]) == []


def test_neighbours_decide_what_a_line_leaves_open() -> None:
    """A step's weight and the signs of the lines beside it count where its own say nothing."""
    lines = ["abc", "?", "abc"]
    stay = model({"letter": [2.0, 0.0], "bias=1": [0.0, 0.1]}, [[1.0, 0.0], [0.0, 1.0]])
    assert stay.best_path(stay.reader.read(lines)) == [0, 0, 0]
    move = model({"letter": [2.0, 0.0], "bias=1": [0.0, 0.1]}, [[0.0, 1.0], [1.0, 0.0]])
    assert move.best_path(move.reader.read(lines)) == [0, 1, 0]
    before = model({"letter": [2.0, 0.0], "bias=1": [0.0, 0.1], "<letter": [0.5, 0.0]})
    assert before.best_path(before.reader.read(["abc", "?", "?"])) == [0, 0, 1]
    behind = model({"letter": [2.0, 0.0], "bias=1": [0.0, 0.1], ">letter": [0.5, 0.0]})
    assert behind.best_path(behind.reader.read(["?", "?", "abc"])) == [1, 0, 0]


def test_a_blank_line_parts() -> None:
    """Lines with a blank one between them have steps of their own; two blank ones are one."""
    signs = {"letter": [2.0, 0.0], "bias=1": [0.0, 0.1]}
    toy = model(signs, [[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]])
    assert toy.best_path(toy.reader.read(["abc", "?"])) == [0, 0]
    assert toy.best_path(toy.reader.read(["abc", "", "", "?"])) == [0, 0, 0, 1]
    assert toy.best_path(toy.reader.read(["", "?", "abc"])) == [0, 0, 0]


def signs_of(*lines: str) -> list[LineSigns]:
    """The shipped signs of lines."""
    return shipped_model().reader.read(lines)


def test_signs_count_behind_quotes_prefixes_and_indentation() -> None:
    """What stands before a line's own text changes none of its looks but says that it was there."""
    plain = signs_of("export NCCL_DEBUG=INFO")[0]
    assert {"export", "command"} <= set(plain.own.looks)
    for line in ("> export NCCL_DEBUG=INFO", "   export NCCL_DEBUG=INFO"):
        assert signs_of(line)[0].own.looks == plain.own.looks
    prefixed = signs_of("[rank0]: 2025-01-01 10:00:00,1 export NCCL_DEBUG=INFO")[0]
    assert set(prefixed.own.looks) == {*plain.own.looks, "prefixed"}


@pytest.mark.parametrize(
    ("lines", "sign"),
    [
        (["```bash", "ls"], "in-fence-bash"),
        (["~~~", "x"], "in-fence-plain"),
        (["Traceback (most recent call last):", '  File "a", line 3, in f'], "in-traceback"),
        (["Traceback (most recent call last):", "  f()", "KeyError: 3"], "ends-traceback"),
        (["#!/bin/bash", "x"], "in-script"),
        (["PyTorch version: 2.1", "x"], "in-collect"),
        (["{", "x"], "in-brackets"),
        (["srun a \\", "b"], "continued"),
        (["## Environment", "x"], "below-environment"),
        (["x", "", "y"], "after-blank"),
    ],
)
def test_a_line_stands_in_something(lines: list[str], sign: str) -> None:
    """What began above and has not ended is a sign of the last line, and not of the first."""
    signs = signs_of(*lines)
    assert sign in signs[-1].context
    assert sign == "after-blank" or sign not in signs[0].context


@pytest.mark.parametrize(
    ("lines", "sign"),
    [
        (["```", "x", "```", "y"], "in-fence"),
        (["Traceback (most recent call last):", "KeyError: 3", "y"], "in-traceback"),
        (["{", "}", "y"], "in-brackets"),
        (["a \\", "b", "y"], "continued"),
    ],
)
def test_what_ended_is_over(lines: list[str], sign: str) -> None:
    """Behind its end nothing stands in it."""
    assert sign not in signs_of(*lines)[-1].context


def test_lines_between_fences_share_what_one_of_them_shows() -> None:
    """A shebang tells of its whole block, blank lines or not, and of nothing outside."""
    fenced = signs_of("```", "lr=1", "", "#!/bin/bash", "```", "lr=2")
    assert "block-shebang" in fenced[1].context
    assert "block-shebang" not in [*fenced[0].context, *fenced[5].context]
    assert "block-shebang" not in signs_of("lr=1", "#!/bin/bash")[0].context
    assert "most-shebang" not in fenced[1].context
    assert "most-shebang" in signs_of("```", "#!/bin/bash", "#SBATCH -n 2", "lr=1")[3].context


@pytest.mark.parametrize(("rare", "shared"), [(29, True), (30, False)])
def test_a_sign_that_is_rare_in_a_block_is_not_shared(rare: int, shared: bool) -> None:
    """One line in thirty still tells of the block, one in thirty-one does not."""
    signs = signs_of("```", "#!/bin/bash", *[f"lr{'x' * n}=1" for n in range(rare)])
    assert ("block-shebang" in signs[-1].context) is shared


@pytest.mark.parametrize(
    ("line", "sign"), [("# note", "fenced-heading"), ("- item", "fenced-list-item")]
)
def test_marks_mean_something_else_inside_a_fence(line: str, sign: str) -> None:
    """A heading or an item between fences has another sign beside its own."""
    assert sign in signs_of("```", line)[1].context
    assert sign not in signs_of(line)[0].context


@pytest.mark.parametrize("line", ["```RuntimeError: closed```", "``` a ``` b"])
def test_a_fence_that_ends_on_its_line_opens_nothing(line: str) -> None:
    """What stands below such a line stands in no fence."""
    assert "in-fence" not in signs_of(line, "x")[1].context


def test_arrows_of_a_program_are_no_quotes() -> None:
    """Four angle brackets in one are printed; up to three are a quoted quote."""
    assert [line.quoted for line in signs_of(">>>> building", ">>> a", ">> b", "> c")] == [
        False,
        False,
        True,
        True,
    ]


def test_names_of_signs_tell_the_line_they_are_of() -> None:
    """Looks count for the lines beside, marked; measures and places for their own line alone."""
    names = named_signs(signs_of("import torch", "", "we wait"))
    assert "import" in names[0]
    assert names[1] == []
    assert "<import" in names[2]
    assert "<none" in names[0]
    assert ">none" in names[2]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (b"{", "line_kinds.json"),
        (b"", "line_kinds.json"),
        (
            msgspec.json.encode(
                LineWeights(format="x/9", kinds=[], signs=[], weights=[], steps=[], apart=[])
            ),
            "x/9",
        ),
    ],
    ids=["damaged", "empty", "format"],
)
def test_damaged_weights_are_refused(tmp_path: Path, weights: bytes, message: str) -> None:
    """The error names the file and the command that makes it anew."""
    (tmp_path / SIGNS).write_bytes((shipped_data() / SIGNS).read_bytes())
    (tmp_path / WEIGHTS).write_bytes(weights)
    with pytest.raises(DataError, match=message) as caught:
        shipped_model(tmp_path)
    assert "kb.train.line_kind" in str(caught.value)


@pytest.mark.parametrize("signs", ["", "signs: 3", "prefixes: {}\nsigns: {a: '('}", "a: {"])
def test_damaged_signs_are_refused(tmp_path: Path, signs: str) -> None:
    """A file that is no mapping, or holds an expression RE2 does not take, is named."""
    (tmp_path / SIGNS).write_text(signs, encoding="utf-8")
    with pytest.raises(DataError, match=SIGNS):
        shipped_model(tmp_path)
