"""What is suggested is understood."""

from __future__ import annotations

from typing import Literal

import pytest

from tests.kb.chat.conftest import (
    OOM_LOG,
    TIMEOUT_LOG,
    CheckedChat,
)


@pytest.mark.parametrize("language", ["zh", "en"])
def test_suggestions_are_understood(chat: CheckedChat, language: Literal["zh", "en"]) -> None:
    """What is suggested means something when said, in its own language, and breaks nothing."""
    scripts = ([], [OOM_LOG], [TIMEOUT_LOG, "2"], [OOM_LOG, "similar cases"])
    for script in scripts:
        conversation = ""
        reply = None
        for message in script or ["hello"]:
            reply = chat.say(message, conversation=conversation, language=language)
            conversation = reply.conversation
        assert reply is not None
        assert 2 <= len(reply.suggestions) <= 4
        for suggestion in reply.suggestions:
            answer = chat.say(suggestion, conversation=conversation, language=language)
            assert answer.intent not in ("unclear", "off_topic"), suggestion
            assert answer.language == language
