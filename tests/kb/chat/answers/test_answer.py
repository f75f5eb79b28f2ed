"""What answers are made of."""

from __future__ import annotations

import pytest

from kb.chat.answers.answer import cite_pages
from kb.chat.checks import mid_sentence


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("Whether a rank", "whether a rank"),
        ("NCCL reads it", "NCCL reads it"),
        ("看日志", "看日志"),
    ],
)
def test_a_sentence_inside_a_sentence(text: str, inside: str) -> None:
    """The capital of a beginning goes, that of a name stays."""
    assert mid_sentence(text) == inside


def test_three_pages_are_cited_at_most() -> None:
    """Only addresses of the web, in their order."""
    urls = ["case:x", *(f"https://example.org/{number}" for number in range(5))]
    assert [item.url for item in cite_pages(urls)] == urls[1:4]
