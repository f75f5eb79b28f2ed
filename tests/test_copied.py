"""The knowledge is written in words of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kb.knowledge.load import Knowledge, read_knowledge
from tests.copied import (
    Originals,
    advice_texts,
    case_texts,
    cause_texts,
    shared_originals,
    without_log_lines,
)

SENTENCE = "the trainer waits for the slow rank until its patience has run out"
CHINESE = "训练进程一直等待最慢的那个进程直到超时为止"


@pytest.fixture(scope="module")
def knowledge(data_dir: Path) -> Knowledge:
    """The shipped knowledge."""
    return read_knowledge(data_dir)


@pytest.fixture(scope="module")
def originals(shared_dir: Path, knowledge: Knowledge) -> Originals:
    """Other people's prose."""
    return shared_originals(shared_dir, knowledge)


@pytest.mark.parametrize(
    ("text", "copied"),
    [
        (f"As we saw {SENTENCE}!", True),
        (SENTENCE.upper(), True),
        ("the trainer waits for the slow rank. Until its patience has run out", False),
        (f"run `{SENTENCE}` now", False),
        ("the trainer waits for the fast rank until its patience runs out", False),
        (f"如上所述，{CHINESE}。", True),
        ("训练进程一直等待，最慢的那个进程直到超时", False),
        ("", False),
    ],
)
def test_a_run_is_found_where_it_is_copied(text: str, copied: bool) -> None:
    """Eight words or twelve characters in a row count, quoted code and shorter runs do not."""
    originals = Originals.of([SENTENCE, CHINESE], [])
    assert bool(originals.copied(text)) is copied


def test_program_output_may_be_quoted() -> None:
    """A run that software prints is nobody's sentence."""
    assert Originals.of([SENTENCE], [SENTENCE]).copied(SENTENCE) == []
    assert without_log_lines(f"It hangs\n[rank0]: {SENTENCE}\nhelp") == "It hangs\nhelp"


@pytest.mark.shared
@pytest.mark.parametrize("texts", [cause_texts, advice_texts, case_texts])
def test_no_sentence_is_copied(
    texts: Callable[[Knowledge], Iterator[tuple[str, str]]],
    knowledge: Knowledge,
    originals: Originals,
) -> None:
    """No run of the shipped knowledge stands in the threads or the seed pages."""
    copied = [(where, run) for where, text in texts(knowledge) for run in originals.copied(text)]
    assert copied == []
