"""The work behind an answer, without Slack: service and chat engine in, messages out.

Everything here blocks and runs in a compute thread; the asyncio side only carries the results.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from app.contribute import Feedback, Resolution, add_feedback, add_text, resolve
from app.labels import Words
from app.present import present
from app.slack import lookup_blocks
from app.slack.diagnosis_blocks import cases_message, diagnosis_message, fixes_message
from app.slack.reply_blocks import reply_message
from app.slack.types import ChannelSettings, Handle, Message, TextFile
from app.terminal import render_text
from kb.errors import InputError, NotFoundError
from kb.kept import Kept, keep, kept
from kb.logs.redact import redact
from kb.text import detect_language
from kb.types import UNKNOWN, DiagnosisStatus, Language

if TYPE_CHECKING:
    from app.view import View
    from kb.chat.chat import Chat
    from kb.chat.types import Reply
    from kb.service import Service

KEEP_KEYS_S = 24 * 3600  # Slack repeats an event for an hour; a day covers a bot that was down
WARM_UP = "Watchdog caught collective operation timeout"  # takes the path a log takes
AT_A_LOSS = frozenset({"unclear", "off_topic", "courtesy"})  # intents with nothing to answer
SURE_BANDS = frozenset({"certain", "likely"})
LONG_PASTE = 4000  # characters; a longer paste is a log whose answer is worth a file, too
WHOLE_WIDTH = 100  # columns
WHOLE_CHARACTERS = 300_000  # below a megabyte in any language: Slack shows that as text
DESCRIPTION = "message.txt"  # name of what was written beside attached files


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A message, and how sure it is.

    `status` is that of the diagnosis, empty without one. Not `sure` is what a quiet channel is
    spared: a cause that is only possible, no timeout, a message that was not understood. `whole`
    is all of the diagnosis of a long log, None where the message links to it.
    """

    message: Message
    status: DiagnosisStatus | Literal[""] = ""
    sure: bool = True
    whole: TextFile | None = None


class Desk:
    """Answers in values. Safe for use by several threads, as the service is."""

    def __init__(self, service: Service, chat: Chat) -> None:
        self._service = service
        self._chat = chat

    def warm_up(self) -> None:
        """Diagnose once before anybody asks: the first time compiles patterns and loads tables."""
        self._service.diagnose_text(WARM_UP)

    # --- what is remembered --------------------------------------------------------------------

    def first_time(self, *keys: str) -> bool:
        """Whether none of the keys was handled before, by this process or an earlier one."""
        preferences = self._service.store.preferences
        return preferences.claim(*keys, now_s=time.time(), keep_s=KEEP_KEYS_S)

    def channel(self, team: str, channel: str) -> ChannelSettings:
        """What is set for a channel; the defaults where nothing is, or it cannot be read."""
        body = self._service.store.preferences.get(_scope(team, channel))
        if body is None:
            return ChannelSettings()
        try:
            return msgspec.json.decode(body, type=ChannelSettings)
        except msgspec.DecodeError:
            return ChannelSettings()  # of another version: a setting is easily made again

    def set_channel(self, team: str, channel: str, settings: ChannelSettings) -> None:
        """Set it; on return it is on the disk."""
        body = msgspec.json.encode(settings)
        self._service.store.preferences.put(_scope(team, channel), body, now_s=time.time())

    def knows(self, conversation: str) -> bool:
        """Whether there is a conversation under that id."""
        try:
            self._chat.conversation(conversation)
        except NotFoundError:
            return False
        return True

    def forget(self, conversation: str) -> None:
        """Drop a conversation nobody knows of."""
        self._chat.forget(conversation)

    # --- answers -------------------------------------------------------------------------------

    def looks_like_timeout(self, text: str) -> bool:
        """Whether a message nobody asked about holds a timeout."""
        return self._service.read_text(text).incident.has_timeout

    def wanted(self, channel: ChannelSettings) -> Language | None:
        """The language that is set, for the channel or for all; None where none is."""
        return channel.language or self._service.settings.lang or None  # type: ignore[return-value]

    def language(self, text: str, channel: ChannelSettings) -> Language:
        """The language to talk about `text` in."""
        return self.wanted(channel) or detect_language(text)

    def words(self, language: Language) -> Words:
        """The labels in a language."""
        return Words(self._service.knowledge.labels, language)

    def say(self, text: str, *, conversation: str, language: Language | None) -> Answer:
        """Answer a message: a log with its diagnosis, anything else as the chat engine does.

        Raises:
            InputError: the text is empty.
        """
        reply = self._chat.say(text, conversation=conversation, language=language, create=True)
        return self._answer(reply, long=len(text) > LONG_PASTE)

    def read(
        self,
        paths: Sequence[Path],
        text: str,
        *,
        folder: Path,
        conversation: str,
        language: Language | None,
        only_timeouts: bool = False,
    ) -> Answer | None:
        """Diagnose downloaded files and the text beside them as one incident.

        With `only_timeouts` files without one are passed over: None.

        Raises:
            InputError: a file is empty, binary or damaged.
        """
        read = list(paths)
        if text.strip():
            beside = folder / DESCRIPTION
            beside.write_text(text, encoding="utf-8", errors="replace")
            read.insert(0, beside)
        reading = self._service.read_paths(read)
        if only_timeouts and not reading.incident.has_timeout:
            return None
        if language is None and text.strip():  # the person's words, not the file's
            language = detect_language(text)
        reply = self._chat.begin(reading, conversation=conversation, language=language, create=True)
        return self._answer(reply, long=True)

    def _answer(self, reply: Reply, *, long: bool) -> Answer:
        words = self.words(reply.language)
        diagnosis = reply.diagnosis
        if diagnosis is None or reply.intent != "log":
            sure = reply.intent not in AT_A_LOSS
            message = reply_message(reply, words, judged=self._judged(reply))
            return Answer(message=message, sure=sure)
        reading = self._chat.conversation(reply.conversation).reading
        if reading is None or diagnosis.status == "no_timeout":
            message = reply_message(reply, words)
            return Answer(message=message, status=diagnosis.status, sure=False)
        handle = Handle(
            kept=keep(self._service, reading, known=diagnosis).id,
            language=reply.language,
            conversation=reply.conversation,
        )
        view = present(diagnosis, self._service.knowledge.labels, language=reply.language)
        url = self._service.settings.public_url
        message = diagnosis_message(view, words, handle, public_url=url)
        sure = diagnosis.status == "diagnosed" and diagnosis.causes[0].band in SURE_BANDS
        whole = _whole(view, words) if long and not url else None
        return Answer(message=message, status=diagnosis.status, sure=sure, whole=whole)

    def _judged(self, reply: Reply) -> Handle | None:
        """How a person said it ended, for the buttons that keep it; None where nobody said."""
        outcome = reply.outcome
        reading = self._chat.conversation(reply.conversation).reading if outcome else None
        if outcome is None or reading is None:
            return None
        return Handle(
            kept=keep(self._service, reading).id,
            language=reply.language,
            conversation=reply.conversation,
            cause=outcome.actual,
            named=outcome.cause,
        )

    # --- lookups -------------------------------------------------------------------------------

    def search(self, query: str, language: Language) -> Message:
        """Entries like `query`."""
        result = self._service.search(query, language=language)
        return lookup_blocks.search_message(result, self.words(language))

    def show(self, identifier: str, language: Language) -> Message:
        """The case, entry or cause of that id.

        Raises:
            NotFoundError: there is none; the nearest ids are named.
        """
        cause = self._service.knowledge.cause_by_id.get(identifier)
        if cause is not None:
            return lookup_blocks.cause_message(cause, self.words(language))
        return lookup_blocks.entry_message(self._service.entry(identifier), self.words(language))

    def lint(self, text: str, language: Language) -> Message:
        """What is wrong with the settings in `text`."""
        warnings = self._service.lint(redact(text)[0], language=language)
        return lookup_blocks.lint_message(warnings, self.words(language))

    # --- buttons -------------------------------------------------------------------------------

    @property
    def causes(self) -> tuple[Any, ...]:
        """All causes, for menus."""
        return self._service.causes()

    def lead(self, handle: Handle) -> tuple[str, str]:
        """Id and title of the cause spoken of, else of the likeliest of a kept diagnosis.

        Raises:
            NotFoundError: it is kept no longer.
        """
        spoken = self._service.knowledge.cause_by_id.get(handle.cause)
        if spoken is not None:
            return spoken.id, spoken.title.get(handle.language)
        causes = self._kept(handle).answer(handle.language).causes
        return (causes[0].id, causes[0].title) if causes else (UNKNOWN, "")

    def right(self, handle: Handle, *, user: str) -> Message:
        """Somebody says the cause spoken of, or else the likeliest, was it."""
        actual, title = self.lead(handle)
        self._keep_verdict(handle, actual, user=user)
        return lookup_blocks.notice(self.words(handle.language)("slack.thanks_right", title=title))

    def wrong(self, handle: Handle, actual: str, *, user: str) -> Message:
        """Somebody says which cause it was instead.

        Raises:
            InputError: that is no cause.
        """
        self._keep_verdict(handle, actual, user=user)
        words = self.words(handle.language)
        known = self._service.knowledge.cause_by_id.get(actual)
        if known is None:
            return lookup_blocks.notice(words("slack.thanks"))
        title = known.title.get(handle.language)
        return lookup_blocks.notice(words("slack.thanks_wrong", title=title))

    def _keep_verdict(self, handle: Handle, actual: str, *, user: str) -> None:
        """Keep which cause it was; of what a person says of an incident the last word counts.

        Raises:
            InputError: that is no cause.
            NotFoundError: the diagnosis is kept no longer.
        """
        named = handle.named or self.lead(replace(handle, cause=""))[0]
        feedback = Feedback(
            verdict="right" if actual == named else "wrong",
            cause=named,
            actual=actual,
            diagnosis=handle.kept,
        )
        # Each answer keeps a diagnosis of its own: what was read tells the incident.
        read = hashlib.sha256(msgspec.json.encode(self._kept(handle).reading)).hexdigest()
        by = f"slack:{user}:{handle.conversation}:{read}"
        add_feedback(self._service, feedback, source="slack", by=by)

    def fixes(self, handle: Handle) -> Message:
        """All fixes of the leading causes."""
        return fixes_message(self._view(handle), self.words(handle.language))

    def cases(self, handle: Handle) -> Message:
        """More of the similar cases."""
        return cases_message(self._view(handle), self.words(handle.language))

    def next_check(self, handle: Handle, *, conversation: str) -> Answer:
        """Ask the chat engine what to look at next; it knows the incident, or learns it anew."""
        conversation = handle.conversation or conversation
        if not self.knows(conversation):
            reading = self._kept(handle).reading
            self._chat.begin(
                reading, conversation=conversation, language=handle.language, create=True
            )
        asked = self.words(handle.language)("slack.say_next")
        return self.say(asked, conversation=conversation, language=handle.language)

    def add_incident(self, handle: Handle, *, cause: str, fix: str) -> Message:
        """Keep the log of a diagnosis as an entry, resolved where the cause is known.

        Raises:
            InputError: the log cannot be taken.
        """
        found = self._kept(handle)
        text = "\n\n".join(filter(None, (found.reading.description, found.reading.excerpt)))
        report = add_text(self._service, text, name=f"slack-{handle.kept}.log")
        words = self.words(handle.language)
        if not report.entries:
            raise InputError(words("slack.not_added"), todo=words("slack.not_added_todo"))
        entry_id = report.entries[0]
        if not cause:
            return lookup_blocks.notice(words("slack.incident_open", id=entry_id))
        told = fix.strip() or self._told_before(entry_id) or words("slack.fix_not_told")
        resolve(self._service, entry_id, Resolution(cause=cause, fix=told))
        title = self._service.knowledge.cause_by_id[cause].title.get(handle.language)
        return lookup_blocks.notice(words("slack.incident_resolved", id=entry_id, title=title))

    def _told_before(self, entry_id: str) -> str:
        """What an earlier form said of the fix: an empty field takes nothing back."""
        fixes = self._service.entry(entry_id).fixes
        return next((fix.title.en for fix in fixes if fix.id == f"{entry_id}/resolution"), "")

    def _kept(self, handle: Handle) -> Kept:
        return kept(self._service, handle.kept)

    def _view(self, handle: Handle) -> Any:  # noqa: ANN401 - see present
        diagnosis = self._kept(handle).answer(handle.language)
        return present(diagnosis, self._service.knowledge.labels, language=handle.language)


def _whole(view: View, words: Words) -> TextFile:
    """All of a diagnosis as text, cut where it is longer than Slack shows."""
    text = click.unstyle(render_text(view, words, width=WHOLE_WIDTH, full=True))
    if len(text) > WHOLE_CHARACTERS:
        text = f"{text[:WHOLE_CHARACTERS]}\n{words('slack.cut')}\n"
    return TextFile(title=words("slack.whole_answer"), text=text)


def _scope(team: str, channel: str) -> str:
    return f"slack:{team}:{channel}"
