"""From an Ask to an answer in Slack: progress, files, the work, the message, a reaction."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
from slack_sdk.errors import SlackApiError

from app.labels import Words
from app.slack import files, kit, lookup_blocks
from app.slack.desk import Answer
from app.slack.incoming import message_files, message_text, slack_file
from app.slack.types import Ask, ChannelSettings, Message, Place, SlackFile, conversation_id
from app.slack.voice import Voice
from app.slack.workspaces import reason
from kb.errors import InputError, KBError

if TYPE_CHECKING:
    from app.slack.office import Office
    from app.slack.workspaces import Workspace

ID_BYTES = 9  # of a conversation without a thread: an answer for one person's eyes
EYES = "eyes"
DONE = "white_check_mark"
FAILED = "warning"
UNSURE = "grey_question"
LONG = 300  # characters: a longer message is a log, and its reading worth a word
ASKED_FOR = ("mention", "shortcut", "command")  # the origins that always get a first word
SHY = ("mention", "thread", "auto")  # the origins a quiet channel may leave unanswered


class Answerer:
    """Answers asks of every workspace."""

    def __init__(self, office: Office) -> None:
        self._office = office

    async def answer(self, ask: Ask, *, keys: tuple[str, ...]) -> None:
        """Answer once: a repeated delivery of the same keys is dropped."""
        started = time.perf_counter()
        desk, pool, counters = self._office.desk, self._office.pool, self._office.counters
        workspace = self._office.workspaces.find(ask.team)
        if workspace is None:
            return
        channel = await pool.quick(lambda: desk.channel(ask.team, ask.channel))
        if ask.origin == "thread" and not await _knows(self._office, ask):
            ask = replace(ask, origin="auto")
        if ask.origin == "auto" and not (
            channel.auto and await _looks_like_timeout(self._office, ask)
        ):
            return
        if not await pool.quick(lambda: desk.first_time(*keys)):
            counters.repeated.inc()
            return
        counters.asked.labels(ask.origin).inc()
        await _Turn(self._office, ask, workspace, channel).take()
        counters.seconds.labels(ask.origin).observe(time.perf_counter() - started)


async def _knows(office: Office, ask: Ask) -> bool:
    """Whether the bot has a conversation where that was asked."""
    return await office.pool.quick(lambda: office.desk.knows(ask.conversation))


async def _looks_like_timeout(office: Office, ask: Ask) -> bool:
    """Whether a message nobody addressed to the bot is worth reading after all."""
    if files.readable(ask.files)[0]:
        return True
    if not ask.text.strip():
        return False
    return await office.pool.compute(lambda: office.desk.looks_like_timeout(ask.text))


class _Turn:
    """One ask being answered."""

    def __init__(
        self, office: Office, ask: Ask, workspace: Workspace, channel: ChannelSettings
    ) -> None:
        self._office = office
        self._desk = office.desk
        self._pool = office.pool
        self._counters = office.counters
        self._log = structlog.get_logger()
        self._ask = ask
        self._workspace = workspace
        self._channel = channel
        self._words: Words = self._desk.words(self._desk.language(ask.text, channel))
        only_for = ask.user if channel.ephemeral and ask.origin != "direct" else ""
        self._voice = Voice(
            office.workspaces,
            workspace,
            Place(
                team=ask.team,
                channel=ask.channel,
                # Slack shows what is for one person in a thread only where the thread has begun.
                thread=ask.thread if only_for else ask.root,
                only_for=only_for,
                response_url=ask.response_url,
            ),
        )
        self._eyes = False

    async def take(self) -> None:
        """Do all of it; a failure is told where the answer would stand."""
        ts = ""
        try:
            ts = await self._first_word()
            answer = await self._find_answer(ts)
            if answer is None:
                return
            await self._finish(answer, ts)
        except KBError as error:
            self._counters.failed.labels(error.code).inc()
            self._log.warning("slack answer failed", code=error.code, what=error.what)
            if error.code == "slack":  # it takes no message now; a mark it may take
                await self._react(FAILED)
            else:
                await self._fail(lookup_blocks.trouble(error, self._words), ts)
        except Exception as error:
            self._counters.failed.labels(type(error).__name__).inc()
            await self._fail(lookup_blocks.notice(self._words("slack.failed")), ts)
            raise

    async def _fail(self, message: Message, ts: str) -> None:
        if self._ask.origin == "auto":
            return  # nobody asked: a failure is for the log alone
        await self._voice.edit(ts, message)
        await self._react(FAILED)

    async def _first_word(self) -> str:
        """Show that the ask arrived: a reaction, and for a log a message to edit later."""
        ask = self._ask
        if ask.origin == "auto":
            return ""
        self._eyes = bool(ask.ts)
        long = len(ask.text) > LONG or "\n" in ask.text or bool(ask.files)
        silent = self._channel.quiet or bool(self._voice.place.only_for)
        if silent or not (long or ask.origin in ASKED_FOR):
            await self._voice.react(ask.ts, EYES)
            return ""
        first = self._words("slack.reading") if long else self._words("slack.thinking")
        word = lookup_blocks.notice(first)
        _, ts = await asyncio.gather(self._voice.react(ask.ts, EYES), self._voice.say(word))
        return ts

    async def _react(self, name: str) -> None:
        await self._voice.react(self._ask.ts, name, instead_of=EYES if self._eyes else "")

    async def _finish(self, answer: Answer, ts: str) -> None:
        ask = self._ask
        if self._channel.quiet and not answer.sure and ask.origin in SHY:
            self._counters.answered.labels("silent").inc()
            if ask.origin == "auto":
                await self._pool.quick(lambda: self._desk.forget(ask.conversation))
            else:
                await self._react(UNSURE)
            return
        ts = await self._voice.edit(ts, answer.message)
        if answer.whole and ts:  # a file has no way to one person alone
            # A command's answer begins a thread of its own.
            thread = self._voice.place.thread or (ts if ask.origin == "command" else "")
            await self._voice.attach(answer.whole, thread=thread)
        self._counters.answered.labels(answer.status or "reply").inc()
        await self._react(DONE)

    async def _find_answer(self, ts: str) -> Answer | None:
        """The answer, or None where a message nobody asked about holds no timeout."""
        ask = await self._with_parent()
        logs, others = files.readable(ask.files)
        conversation = self._conversation(ts)
        language = self._desk.wanted(self._channel)
        if logs:
            answer = await self._read_files(ask, logs, conversation)
            return answer and _with_note(answer, others, self._words)
        if not ask.text.strip():
            if others:
                names = ", ".join(others)
                raise InputError(
                    self._words("slack.no_log", names=names), todo=self._words("slack.no_log_todo")
                )
            return Answer(message=lookup_blocks.help_message(self._words))
        answer = await self._pool.compute(
            lambda: self._desk.say(ask.text, conversation=conversation, language=language)
        )
        return _with_note(answer, others, self._words)

    def _conversation(self, ts: str) -> str:
        """The thread's conversation; a command's answer is the start of one."""
        ask = self._ask
        if ask.origin != "command":
            return ask.conversation
        return conversation_id(ask.team, ask.channel, ts or secrets.token_urlsafe(ID_BYTES))

    async def _with_parent(self) -> Ask:
        """A mention in a thread the bot does not know asks about the thread's first message."""
        ask = self._ask
        if ask.origin != "mention" or ask.files or ask.thread in ("", ask.ts):
            return ask
        if await _knows(self._office, ask):
            return ask if ask.text.strip() else replace(ask, text=self._words("slack.say_next"))
        if await _looks_like_timeout(self._office, ask):
            return ask  # it brings a log of its own
        try:
            told = await self._workspace.client.conversations_replies(
                channel=ask.channel, ts=ask.thread, limit=1, inclusive=True
            )
        except SlackApiError as error:
            self._log.info("slack thread not read", error=reason(error))
            return ask
        parent: dict[str, Any] = next(iter(told.get("messages") or []), {})
        # The log first: its lines count from its own first line.
        text = "\n\n".join(filter(None, (message_text(parent), ask.text)))
        return replace(ask, text=text, files=message_files(parent))

    async def _read_files(
        self, ask: Ask, logs: tuple[SlackFile, ...], conversation: str
    ) -> Answer | None:
        language = self._desk.wanted(self._channel)
        with tempfile.TemporaryDirectory(prefix="timeout-kb-slack-") as name:
            folder = Path(name)
            paths = [await self._download(file, folder, number) for number, file in enumerate(logs)]
            limit = self._office.settings.slack_max_file

            def work() -> Answer | None:
                return self._desk.read(
                    files.unpack_all(paths, limit),
                    ask.text,
                    folder=folder,
                    conversation=conversation,
                    language=language,
                    only_timeouts=ask.origin == "auto",
                )

            return await self._pool.compute(work)

    async def _download(self, file: SlackFile, folder: Path, number: int) -> Path:
        if not file.url and file.id:  # of a channel shared with another company
            try:
                told = await self._workspace.client.files_info(file=file.id)
            except SlackApiError as error:
                why = reason(error)
                raise InputError(
                    f"{file.name} could not be fetched from Slack ({why})",
                    todo="paste the part around the first error",
                    reason="slack_lost",
                    values={"name": file.name, "why": why},
                ) from None
            file = slack_file(told.get("file") or {})
        client = self._workspace.client
        access = files.FileAccess(
            host=self._office.settings.slack_files_host,
            max_bytes=self._office.settings.slack_max_file,
            token=str(client.token),
            proxy=client.proxy,
        )
        session = self._office.workspaces.session
        return await files.download(session, file, access, folder=folder, number=number)


def _with_note(answer: Answer, others: tuple[str, ...], words: Words) -> Answer:
    """The answer with a line about files that were not read."""
    if not others:
        return answer
    note = kit.context(words("slack.not_read", names=", ".join(others)))
    message = answer.message
    blocks = [*message.blocks[: kit.MAX_BLOCKS - 1], note]
    return replace(answer, message=replace(message, blocks=blocks))
