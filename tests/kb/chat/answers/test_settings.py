"""Answers about settings."""

from __future__ import annotations

import pytest

from tests.kb.chat.conftest import (
    Talker,
    roles,
    texts,
)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("does NCCL_TIMEOUT do anything?", "Neither PyTorch nor NVIDIA's NCCL reads NCCL_TIMEOUT"),
        ("NCCL_TIMEOUT 有用吗", "都不读 NCCL_TIMEOUT"),
    ],
)
def test_a_setting_is_explained_with_its_source(talk: Talker, question: str, words: str) -> None:
    """The truth about a variable, with a page, with or without an incident."""
    (reply,) = talk(question)
    assert reply.intent == "setting"
    assert words in texts(reply)
    assert "setting" in [c.kind for s in reply.statements for c in s.citations]
    assert any(c.url.startswith("https://") for s in reply.statements for c in s.citations)


def test_an_unknown_setting_is_not_made_up(talk: Talker) -> None:
    """Of a variable nobody knows nothing is claimed."""
    (reply,) = talk("what does FOO_BAR_BAZ do?")
    assert roles(reply) == {"note"}
    assert "FOO_BAR_BAZ" in texts(reply)


def test_a_misspelt_setting_is_named(talk: Talker) -> None:
    """A name one letter off is told to be misspelt."""
    (reply,) = talk("does NCCL_SOCKET_IFNMAE help?")
    assert "NCCL_SOCKET_IFNAME" in texts(reply)
