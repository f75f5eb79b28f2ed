"""The incidents of a conversation: one is spoken of, the others wait for somebody to return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kb.chat.types import Conversation
from kb.types.incident import LogReading

MAX_OTHERS = 4  # incidents kept beside the one spoken of
JUST_BEGUN = 3  # turns for which “that other job” still means the one begun last


def with_incident(conversation: Conversation, reading: LogReading | None) -> Conversation:
    """The conversation about another incident, or about none yet; the last one waits."""
    others = conversation.others
    if conversation.reading is not None:
        others = (*others, replace(conversation, turns=(), others=()))[-MAX_OTHERS:]
    return Conversation(
        id=conversation.id,
        language=conversation.language,
        language_pinned=conversation.language_pinned,
        created_s=conversation.created_s,
        turns=conversation.turns,
        reading=reading,
        others=others,
        began=_turns(conversation),
    )


def is_just_begun(conversation: Conversation) -> bool:
    """Whether the incident spoken of was begun beside another a few turns ago."""
    return bool(conversation.others) and _turns(conversation) - conversation.began <= JUST_BEGUN


def with_earlier(
    conversation: Conversation,
    sentence: str,
    key_words: Callable[[str], frozenset[str]],
    place: int,
) -> Conversation:
    """The conversation about one of the other incidents again.

    It is the one at that `place`, counted from 1 by when they began, where there is one; else the
    one whose words share most with the sentence, of several the first.
    """
    if not conversation.others:
        return conversation
    ordered = sorted((*conversation.others, conversation), key=lambda one: one.began)
    wanted = key_words(sentence)

    def shared(one: Conversation) -> int:
        words = one.reading.words if one.reading else ""
        return len(wanted & key_words(" ".join((words, *one.remarks))))

    meant = max(conversation.others, key=lambda one: (shared(one), -one.began))
    if not shared(meant) and 1 <= place <= len(ordered):
        meant = ordered[place - 1]
    if meant is conversation:
        return conversation
    waiting = replace(conversation, turns=(), others=())
    others = (*(one for one in conversation.others if one is not meant), waiting)
    return replace(
        meant,
        turns=conversation.turns,
        others=others[-MAX_OTHERS:],
        language=conversation.language,
        language_pinned=conversation.language_pinned,
    )


def _turns(conversation: Conversation) -> int:
    return conversation.turns[-1].reply.number if conversation.turns else 0
