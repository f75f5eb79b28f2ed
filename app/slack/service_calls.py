"""The work behind an answer, without Slack: service and chat engine in, messages out.

A mention comes by `bot.py` and `responder.py` to `ServiceCalls.reply`; the diagnosis is made by
`Chat.say` (`kb.chat.assessment`: `Service.judge`). Everything here blocks and runs in a thread;
the asyncio side only carries the results.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from app.inputs.contributions import Feedback, Resolution, add_feedback, add_reading, resolve
from app.render.terminal import render_text
from app.slack.blocks.diagnosis import diagnosis_message, reply_message
from app.slack.blocks.primitives import SlackMessage, notice
from app.slack.requests import ChannelSettings, DiagnosisRef
from kb.errors import NotFoundError
from kb.knowledge.labels import Words
from kb.saved import load_diagnosis, save_diagnosis
from kb.text.language import answer_language, language_choice
from kb.types.answer import Diagnosis
from kb.types.vocabulary import UNKNOWN, Language

if TYPE_CHECKING:
    from kb.chat.chat import Chat
    from kb.chat.types import Reply
    from kb.diagnose.verdict import Verdict
    from kb.service import Service

KEEP_KEYS_S = 24 * 3600  # Slack repeats an event for an hour; a day covers a bot that was down
WARM_UP = "Watchdog caught collective operation timeout"  # takes the path a log takes
AT_A_LOSS = frozenset({"unclear", "off_topic", "courtesy"})  # intents with nothing to answer
SURE_BANDS = frozenset({"certain", "likely"})
READ_S = 30.0  # for the files of a message: an archive may unpack without end
LONG_PASTE = 4000  # characters; a longer paste is a log whose answer is worth a file, too
INCIDENT_DIGITS = 16  # of the digest that tells one incident of a conversation from another
REPORT_WIDTH = 100  # columns
REPORT_CHARS = 300_000  # below a megabyte in any language: Slack shows that as text


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownVerdict:
    """A verdict that a message shows, with what the buttons of that message carry."""

    verdict: Verdict
    ref: DiagnosisRef


class ServiceCalls:
    """Answers in values. Safe for use by several threads, as the service is."""

    def __init__(self, service: Service, chat: Chat) -> None:
        self.service = service
        self._chat = chat

    def warm_up(self) -> None:
        """Diagnose once before anybody asks: the first time compiles patterns and loads tables."""
        self.service.diagnose_text(WARM_UP)

    # --- deliveries, channels, conversations ---------------------------------------------------

    def first_time(self, key: str) -> bool:
        """Whether the key was not handled before, by this process or an earlier one."""
        preferences = self.service.store.preferences
        return preferences.claim(key, now_s=time.time(), keep_s=KEEP_KEYS_S)

    def channel(self, team: str, channel: str) -> ChannelSettings:
        """What is set for a channel; the defaults where nothing is, or it cannot be read."""
        body = self.service.store.preferences.get(_scope(team, channel))
        try:
            return msgspec.json.decode(body or b"{}", type=ChannelSettings)
        except msgspec.DecodeError:
            return ChannelSettings()  # of another version: a setting is easily made again

    def set_channel(self, team: str, channel: str, settings: ChannelSettings) -> None:
        """Set it; on return it is on the disk."""
        body = msgspec.json.encode(settings)
        self.service.store.preferences.put(_scope(team, channel), body, now_s=time.time())

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

    def set_language(self, channel: ChannelSettings) -> Language | None:
        """The language that is set, for the channel or for all; None where none is."""
        return language_choice(channel.language, self.service.settings.lang)

    def language(self, text: str, channel: ChannelSettings) -> Language:
        """The language to talk about `text` in."""
        return answer_language(channel.language, self.service.settings.lang, text)

    def words(self, language: Language) -> Words:
        """The labels in a language."""
        return Words(self.service.knowledge.labels, language)

    # --- answers -------------------------------------------------------------------------------

    def has_timeout(self, text: str) -> bool:
        """Whether a message nobody asked about holds a timeout."""
        return self.service.read_text(text).incident.has_timeout

    def reply(
        self, text: str, *, conversation: str, language: Language | None, can_edit: bool = False
    ) -> SlackMessage:
        """Answer a message: a log with its diagnosis, anything else as the chat engine does.

        Where the caller `can_edit` the answer later, a language model may be asked about it.

        Raises:
            InputError: the text is empty.
        """
        reply = self._chat.say(text, conversation=conversation, language=language, create=True)
        return self._answer(reply, long=len(text) > LONG_PASTE, can_edit=can_edit)

    def diagnose_files(
        self,
        paths: Sequence[Path],
        text: str,
        *,
        conversation: str,
        language: Language | None,
        only_timeouts: bool = False,
        can_edit: bool = False,
    ) -> SlackMessage | None:
        """Diagnose downloaded files, with the `text` written beside them, as one incident.

        With `only_timeouts` files without one are passed over: None. `can_edit` as for `reply`.

        Raises:
            InputError: a file is empty, binary or damaged, or they take too long to read.
        """
        reading = self.service.read_paths(paths, limit_s=READ_S)
        if only_timeouts and not reading.incident.has_timeout:
            return None
        if text.strip():  # the person's words, not the file's
            language = answer_language(language, text=text)
        reply = self._chat.begin(reading, conversation=conversation, language=language, create=True)
        return self._answer(reply, long=True, can_edit=can_edit)

    def _answer(self, reply: Reply, *, long: bool, can_edit: bool) -> SlackMessage:
        words = self.words(reply.language)
        diagnosis = reply.diagnosis if reply.intent == "log" else None
        shown = self._save(reply) if diagnosis or reply.outcome else None
        if diagnosis and shown and diagnosis.status != "no_timeout":
            url = self.service.settings.public_url
            model = self.service.second_reader if can_edit else None
            address = model.address if model else ""
            return replace(
                diagnosis_message(
                    diagnosis, words, shown.ref, public_url=url, model_address=address
                ),
                sure=diagnosis.status == "diagnosed" and diagnosis.causes[0].band in SURE_BANDS,
                report=_report(diagnosis, words) if long and not url else "",
                for_model=shown if model else None,
            )
        # How a person said it ended: buttons save that.
        judged = shown.ref if shown and reply.outcome else None
        message = reply_message(reply, words, judged=judged)
        adds_to = reply.conversation if can_edit and self.service.second_reader else ""
        sure = not diagnosis and reply.intent not in AT_A_LOSS
        return replace(message, sure=sure, adds_to=adds_to)

    def _save(self, reply: Reply) -> ShownVerdict | None:
        """Save the conversation's verdict for its buttons; None where there is none."""
        verdict = self._chat.verdict(reply.conversation)
        reading = self._chat.conversation(reply.conversation).reading
        if verdict is None or reading is None:
            return None
        read = msgspec.json.encode(replace(reading, took_ms=0.0))
        ref = DiagnosisRef(
            saved_id=save_diagnosis(self.service, verdict).id,
            language=reply.language,
            conversation=reply.conversation,
            incident=hashlib.sha256(read).hexdigest()[:INCIDENT_DIGITS],
            cause=reply.outcome.actual if reply.outcome else "",
            named_cause=reply.outcome.cause if reply.outcome else "",
        )
        return ShownVerdict(verdict=verdict, ref=ref)

    # --- the language model's reading: after the answer ------------------------------------------

    def ask_model(self, shown: ShownVerdict) -> Verdict:
        """The verdict with the language model's opinion; waits until it has answered or failed.

        Its question stays open in the conversation.
        """
        model = self.service.second_reader
        if model is None:
            return shown.verdict
        verdict = model.read(shown.verdict)
        if verdict.second and not verdict.second.why:
            self._chat.follow_up(shown.ref.conversation, wait_s=0)
        return verdict

    def addition(self, conversation: str) -> SlackMessage | None:
        """What the language model adds to the last reply, None where nothing; waits for it."""
        reply = self._chat.follow_up(conversation)
        return reply_message(reply, self.words(reply.language)) if reply else None

    def second_answer(self, first: ShownVerdict, verdict: Verdict) -> SlackMessage:
        """The answer again, with the language model's opinion or a line why there is none.

        A pooled verdict is saved under an id of its own, which buttons and link of this answer
        carry: what was pressed or linked before goes on meaning the first verdict. Where there is
        no opinion nothing further is saved.
        """
        ref, service = first.ref, self.service
        if verdict.second and not verdict.second.why:
            ref = msgspec.structs.replace(ref, saved_id=save_diagnosis(service, verdict).id)
        causes = len(service.knowledge.causes)  # as many as the chat engine renders
        diagnosis = service.render(verdict, language=ref.language, top=causes)
        url = service.settings.public_url
        return diagnosis_message(diagnosis, self.words(ref.language), ref, public_url=url)

    # --- buttons -------------------------------------------------------------------------------

    def diagnosis(self, ref: DiagnosisRef) -> Diagnosis:
        """A saved diagnosis in the language of its button.

        Raises:
            NotFoundError: it is saved no longer.
        """
        return load_diagnosis(self.service, ref.saved_id).answer(ref.language)

    def lead(self, ref: DiagnosisRef) -> str:
        """The id of the likeliest cause of a saved diagnosis."""
        causes = self.diagnosis(ref).causes
        return causes[0].id if causes else UNKNOWN

    def title(self, cause_id: str, language: Language) -> str:
        """The title of a cause; empty for one that is not known."""
        cause = self.service.knowledge.cause_by_id.get(cause_id)
        return cause.title.get(language) if cause else ""

    def judge(self, ref: DiagnosisRef, *, user: str, actual: str = "") -> SlackMessage:
        """Save which cause it was: `actual`, else the one the button speaks of, or the likeliest.

        Of what a person says of an incident the last word counts.

        Raises:
            InputError: that is no cause.
            NotFoundError: the diagnosis is saved no longer.
        """
        cause = actual or ref.cause or self.lead(ref)
        named = ref.named_cause or self.lead(ref)
        feedback = Feedback(
            verdict="right" if cause == named else "wrong",
            cause=named,
            actual=cause,
            diagnosis=ref.saved_id,
        )
        # Each answer saves a diagnosis of its own: what was read tells the incident.
        by = f"slack:{user}:{ref.conversation}:{ref.incident}"
        add_feedback(self.service, feedback, source="slack", by=by)
        words, title = self.words(ref.language), self.title(cause, ref.language)
        if not title:
            return notice(words("slack.thanks"))
        return notice(words("slack.thanks_wrong" if actual else "slack.thanks_right", title=title))

    def next_check(self, ref: DiagnosisRef, *, conversation: str) -> SlackMessage:
        """Ask the chat engine what to look at next; it knows the incident, or learns it anew."""
        conversation = ref.conversation or conversation
        language = ref.language
        if not self.knows(conversation):
            reading = load_diagnosis(self.service, ref.saved_id).reading
            self._chat.begin(reading, conversation=conversation, language=language, create=True)
        message = self.words(language)("slack.say_next")
        reply = self._chat.say(message, conversation=conversation, language=language, create=True)
        if reply.question is None:  # its buttons, whatever was said of it before
            reply = replace(reply, question=self._chat.open_question(conversation))
        return self._answer(reply, long=False, can_edit=False)

    def add_incident(
        self, ref: DiagnosisRef, *, cause: str, fix: str, user: str = ""
    ) -> SlackMessage:
        """Store the log of a diagnosis as an entry, resolved by `user` where the cause is known.

        Raises:
            InputError: the log cannot be taken.
        """
        reading = load_diagnosis(self.service, ref.saved_id).reading
        words = self.words(ref.language)
        entry_id = add_reading(self.service, reading, name=f"slack-{ref.saved_id}.log")
        if not cause:
            return notice(words("slack.incident_open", id=entry_id))
        fix = fix.strip() or self._earlier_fix(entry_id) or words("slack.fix_not_told")
        resolve(self.service, entry_id, Resolution(cause=cause, fix=fix), by=user)
        title = self.title(cause, ref.language)
        return notice(words("slack.incident_resolved", id=entry_id, title=title))

    def _earlier_fix(self, entry_id: str) -> str:
        """What an earlier form said of the fix: an empty field takes nothing back."""
        entry = self.service.entry(entry_id)  # perhaps the one that it was merged into
        return next((fix.title.en for fix in entry.fixes if fix.id == f"{entry.id}/resolution"), "")


def _report(diagnosis: Diagnosis, words: Words) -> str:
    """All of a diagnosis as text, cut where it is longer than Slack shows."""
    text = click.unstyle(render_text(diagnosis, words, width=REPORT_WIDTH))
    if len(text) > REPORT_CHARS:
        return f"{text[:REPORT_CHARS]}\n{words('slack.cut')}\n"
    return text


def _scope(team: str, channel: str) -> str:
    return f"slack:{team}:{channel}"
