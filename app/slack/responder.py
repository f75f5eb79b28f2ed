"""From a request to an answer in Slack: progress, files, the work, the message, a reaction."""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog
from slack_sdk.errors import SlackApiError

from app.inputs.uploads import upload_folder
from app.slack import files
from app.slack.blocks import primitives as kit
from app.slack.blocks.primitives import SlackMessage
from app.slack.commands import help_message
from app.slack.delivery import Poster
from app.slack.requests import (
    ChannelSettings,
    SlackFile,
    SlackRequest,
    conversation_id,
    message_files,
    message_text,
)
from app.slack.workspaces import reason, slack_call
from kb.errors import InputError, KBError

if TYPE_CHECKING:
    from app.slack.blocks.primitives import Block
    from app.slack.bot import BotContext
    from app.slack.service_calls import ShownVerdict
    from app.slack.workspaces import Workspace

ID_BYTES = 9  # of a conversation without a thread: an answer for one person's eyes
EYES = "eyes"
DONE = "white_check_mark"
FAILED = "warning"
UNSURE = "grey_question"
LONG = 300  # characters: a longer message is a log, and its reading worth a word
ALWAYS_PROGRESS = ("mention", "shortcut", "command")  # origins that always get a first word
MAY_BE_QUIET = ("mention", "thread", "auto")  # origins a quiet channel may leave unanswered


async def answer_request(bot: BotContext, request: SlackRequest) -> None:
    """Answer once: a repeated delivery is dropped."""
    channel = await asyncio.to_thread(bot.calls.channel, request.team, request.channel)
    if request.origin == "thread" and not await _knows(bot, request):
        request = replace(request, origin="auto")
    if request.origin == "auto" and not (channel.auto and await _has_log(bot, request)):
        return
    workspace = await bot.workspace_once(request.team, request.key)
    if workspace is not None:
        await _Exchange(bot, request, workspace, channel).run()


async def _knows(bot: BotContext, request: SlackRequest) -> bool:
    """Whether the bot has a conversation where that was asked."""
    return await asyncio.to_thread(bot.calls.knows, request.conversation)


async def _has_log(bot: BotContext, request: SlackRequest) -> bool:
    """Whether a message nobody addressed to the bot is worth reading after all."""
    if files.readable(request.files)[0]:
        return True
    if not request.text.strip():
        return False
    return await bot.jobs.compute(partial(bot.calls.has_timeout, request.text))


class _Exchange:
    """One request and its answer."""

    def __init__(
        self,
        bot: BotContext,
        request: SlackRequest,
        workspace: Workspace,
        channel: ChannelSettings,
    ) -> None:
        self._bot = bot
        self._calls = bot.calls
        self._log = structlog.get_logger()
        self._request = request
        self._workspace = workspace
        self._channel = channel
        self._words = bot.calls.words(bot.calls.language(request.text, channel))
        private = channel.ephemeral and request.origin != "direct"
        self._poster = Poster(bot.workspaces, workspace, request.destination(private=private))
        self._notes: list[Block] = []  # below the answer

    async def run(self) -> None:
        """Do all of it; a failure is told where the answer would stand."""
        ts = ""
        try:
            ts = await self._show_progress()
            answer = await self._answer(ts)
            if answer is not None:
                await self._finish(answer, ts)
        except KBError as error:
            self._log.warning("slack answer failed", code=error.code, what=error.what)
            if error.code == "slack":  # it takes no message now; a mark it may take
                await self._react(FAILED)
            else:
                await self._fail(kit.error_message(error, self._words), ts)
        except Exception:
            await self._fail(kit.notice(self._words("slack.failed")), ts)
            raise

    async def _fail(self, message: SlackMessage, ts: str) -> None:
        if self._request.origin == "auto":
            return  # nobody asked: a failure is for the log alone
        await self._poster.edit(ts, message)
        await self._react(FAILED)

    async def _react(self, name: str) -> None:
        eyes = EYES if self._request.origin != "auto" else ""
        await self._poster.react(self._request.ts, name, instead_of=eyes)

    async def _show_progress(self) -> str:
        """Show that the request arrived: a reaction, and for a log a message to edit later."""
        request = self._request
        if request.origin == "auto":
            return ""
        long = len(request.text) > LONG or "\n" in request.text or bool(request.files)
        silent = self._channel.quiet or bool(self._poster.destination.only_for)
        if silent or not (long or request.origin in ALWAYS_PROGRESS):
            await self._poster.react(request.ts, EYES)
            return ""
        word = kit.notice(self._words("slack.reading" if long else "slack.thinking"))
        eyes = self._poster.react(request.ts, EYES)
        _, ts = await asyncio.gather(eyes, self._poster.post(word))
        return ts

    async def _finish(self, answer: SlackMessage, ts: str) -> None:
        request = self._request
        if self._channel.quiet and not answer.sure and request.origin in MAY_BE_QUIET:
            if request.origin == "auto":
                await asyncio.to_thread(self._calls.forget, request.conversation)
            else:
                await self._react(UNSURE)
            return
        ts = await self._poster.edit(ts, self._with_notes(answer))
        if answer.for_model and ts:
            self._bot.model_jobs.start(partial(self._read_again, ts, answer.for_model))
        elif answer.adds_to and ts:
            self._bot.model_jobs.start(partial(self._add, answer.adds_to))
        if answer.report and ts:  # a file has no way to one person alone
            # A command's answer begins a thread of its own.
            start = ts if request.origin == "command" else ""
            thread = self._poster.destination.thread or start
            title = self._words("slack.whole_answer")
            await self._poster.attach(answer.report, title=title, thread=thread)
        await self._react(DONE)

    def _can_edit(self, ts: str) -> bool:
        """Whether an answer in the place of `ts`, or a new one, can surely be edited later."""
        to = self._poster.destination
        return bool(ts) or not (to.only_for or to.response_url)

    async def _read_again(self, ts: str, shown: ShownVerdict) -> None:
        """Edit the answer posted as `ts` when a language model has read; a deleted one stays so."""
        bot, calls = self._bot, self._calls
        try:
            verdict = await bot.model_jobs.wait_for(partial(calls.ask_model, shown))
            answer = await bot.jobs.compute(partial(calls.second_answer, shown, verdict))
            if not await self._poster.update(ts, self._with_notes(answer)):
                self._log.info("slack answer not edited")
        except KBError as error:
            self._log.warning("slack edit failed", code=error.code, what=error.what)

    async def _add(self, conversation: str) -> None:
        """Post what a language model adds to a reply of the conversation, below it."""
        bot = self._bot
        try:
            message = await bot.model_jobs.wait_for(partial(bot.calls.addition, conversation))
            if message is not None:
                await self._poster.post(message)
        except KBError as error:
            self._log.warning("slack addition failed", code=error.code, what=error.what)

    def _with_notes(self, answer: SlackMessage) -> SlackMessage:
        if not self._notes:
            return answer
        room = kit.MAX_BLOCKS - len(self._notes)
        return replace(answer, blocks=[*answer.blocks[:room], *self._notes])

    async def _answer(self, ts: str) -> SlackMessage | None:
        """The answer, or None where a message nobody asked about holds no timeout."""
        request = await self._with_parent()
        logs, others = files.readable(request.files)
        names = ", ".join(others)
        conversation = request.conversation
        if request.origin == "command":  # its answer is the start of a conversation
            start = ts or secrets.token_urlsafe(ID_BYTES)
            conversation = conversation_id(request.team, request.channel, start)
        can_edit = self._can_edit(ts) and not self._bot.model_jobs.full
        if others and (logs or request.text.strip()):
            self._notes = [kit.context(self._words("slack.not_read", names=names))]
        if logs:
            return await self._read_files(request, logs, conversation, can_edit=can_edit)
        if request.text.strip():
            language = self._calls.set_language(self._channel)
            reply = partial(self._calls.reply, conversation=conversation, language=language)
            return await self._bot.jobs.compute(partial(reply, request.text, can_edit=can_edit))
        if others:
            what = self._words("slack.no_log", names=names)
            raise InputError(what, todo=self._words("slack.no_log_todo"))
        return help_message(self._words)

    async def _with_parent(self) -> SlackRequest:
        """A mention in a thread the bot does not know asks about the thread's first message."""
        request = self._request
        if request.origin != "mention" or request.files or request.thread in ("", request.ts):
            return request
        if await _knows(self._bot, request):
            text = request.text.strip() and request.text
            return replace(request, text=text or self._words("slack.say_next"))
        if await _has_log(self._bot, request):
            return request  # it brings a log of its own
        try:
            replies = await slack_call(
                self._workspace.client.conversations_replies(
                    channel=request.channel, ts=request.thread, limit=1, inclusive=True
                )
            )
        except SlackApiError as error:
            self._log.info("slack thread not read", error=reason(error))
            return request
        parent: dict[str, Any] = next(iter(replies.get("messages") or []), {})
        # The log first: its lines count from its own first line.
        text = "\n\n".join(filter(None, (message_text(parent), request.text)))
        return replace(request, text=text, files=message_files(parent))

    async def _read_files(
        self,
        request: SlackRequest,
        logs: tuple[SlackFile, ...],
        conversation: str,
        *,
        can_edit: bool,
    ) -> SlackMessage | None:
        async with self._bot.file_jobs:
            with upload_folder() as folder:
                if request.text.strip():
                    folder.add_text(request.text)
                for file in logs:
                    path = folder.new_path(file.name)
                    client, settings = self._workspace.client, self._bot.settings
                    await files.download(file, path, client=client, settings=settings)
                diagnose = partial(
                    self._calls.diagnose_files,
                    folder.paths,
                    request.text,
                    conversation=conversation,
                    language=self._calls.set_language(self._channel),
                    only_timeouts=request.origin == "auto",
                    can_edit=can_edit,
                )
                return await self._bot.jobs.compute(diagnose)
