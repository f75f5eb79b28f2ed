"""Conversations in the store: loaded, kept within bounds, forgotten."""

from __future__ import annotations

import secrets
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

import msgspec

from kb.chat.types import Conversation
from kb.errors import InputError, NotFoundError
from kb.store.records import Records

ID_BYTES = 16  # 128 random bits: nobody guesses another's conversation
MAX_ID = 200  # characters of an id a face gives
DAY_S = 86_400.0
MAX_TURNS = 60  # stored of a conversation; older ones have been acted on
MAX_REMARKS = 24
MAX_CHECK_RESULTS = 40
LOCKS = 64  # two conversations rarely share one, and then only wait for a turn
CLEAN_EVERY = 50  # turns between two clean-ups of what has expired


class ConversationStore:
    """Keeps conversations for some days after their last message.

    Safe for several threads, and for several processes on one knowledge base: the page and the API
    may both be given the next message of a conversation.
    """

    def __init__(
        self,
        records: Records,
        *,
        lock: Callable[[str], AbstractContextManager[object]],
        days: int,
        clock: Callable[[], float],
    ) -> None:
        """Keep in `records` for `days`.

        Args:
            records: where.
            lock: lets nobody else into a block, by a name (`Store.lock`).
            days: after the last message.
            clock: seconds since the epoch.
        """
        self._records = records
        self._keep_s = days * DAY_S
        self._clock = clock
        self._lock = lock
        self._saved = 0

    @contextmanager
    def turn(self, identifier: str) -> Iterator[None]:
        """Let one turn of a conversation happen at a time, whichever process is asked."""
        number = zlib.crc32(identifier.encode("utf-8", "replace")) % LOCKS
        with self._lock(f"locks/chat-{number:02}"):
            yield

    def new(self, identifier: str = "") -> Conversation:
        """A conversation that is not stored yet.

        Raises:
            InputError: the id is too long or holds characters that do not print.
        """
        if len(identifier) > MAX_ID or not identifier.isprintable():
            raise InputError(
                f"conversation id {identifier[:40]!r} cannot be used",
                todo=f"use at most {MAX_ID} printable characters",
                reason="conversation_id",
                values={"id": identifier[:40], "limit": str(MAX_ID)},
            )
        return Conversation(
            id=identifier or secrets.token_urlsafe(ID_BYTES), created_s=self._clock()
        )

    def load(self, identifier: str, *, create: bool = False) -> Conversation:
        """The conversation with that id.

        Raises:
            NotFoundError: there is none, or it has expired or cannot be read; not with
                `create`, which begins one then.
        """
        try:
            body = self._records.get_conversation(identifier, now_s=self._clock()).body
            return msgspec.json.decode(body, type=Conversation)
        except (NotFoundError, msgspec.DecodeError) as error:
            if create:
                return self.new(identifier)
            raise _unknown(identifier) from error

    def save(self, conversation: Conversation) -> None:
        """Store the conversation, cut to its bounds; on the disk on return."""
        bounded = replace(
            conversation,
            turns=conversation.turns[-MAX_TURNS:],
            remarks=conversation.remarks[-MAX_REMARKS:],
            check_results=conversation.check_results[-MAX_CHECK_RESULTS:],
        )
        now_s = self._clock()
        self._records.put_conversation(
            bounded.id, msgspec.json.encode(bounded), now_s=now_s, expires_s=now_s + self._keep_s
        )
        self._saved += 1
        if self._saved % CLEAN_EVERY == 0:
            self._records.delete_expired(now_s=now_s)

    def forget(self, identifier: str) -> bool:
        """Delete a conversation; whether it was there."""
        with self.turn(identifier):
            return self._records.delete_conversation(identifier)


def by_link(identifier: str) -> str:
    """The id of a conversation that whoever has its link may see.

    Ids with a colon are made of names that others know, such as those of a Slack channel and a
    thread: only the face that made them opens them.

    Raises:
        NotFoundError: it is one of those.
    """
    if ":" in identifier:
        raise _unknown(identifier)
    return identifier


def _unknown(identifier: str) -> NotFoundError:
    return NotFoundError(
        f"there is no conversation {identifier[:MAX_ID]!r}",
        todo="it may have expired: begin anew",
        reason="no_conversation",
        values={"id": identifier[:MAX_ID]},
    )
