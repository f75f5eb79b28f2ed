"""`timeout-kb chat`: talk about a hang, with or without its log."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.cli.common import (
    EXIT_DIAGNOSED,
    EXIT_UNDECIDED,
    State,
    format_option,
    language_option,
    note,
    text_width,
    usage,
    write,
)
from app.render.escape import plain
from kb.chat.types import IncidentOutcome, Reply
from kb.diagnose.wording import why_unread
from kb.errors import KBError
from kb.text.language import answer_language
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    from kb.chat.chat import Chat
    from kb.knowledge.labels import Words
    from kb.service import Service

PROMPT = "> "
PASTE = "paste"  # a line that begins a message of many lines
PASTE_END = "."


@click.command("chat")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@click.option("--conversation", default="", metavar="ID", help="Go on with this conversation.")
@language_option
@format_option("text", "json")
@click.pass_context
def command(
    context: click.Context,
    files: tuple[Path, ...],
    conversation: str,
    language: Language | None,
    form: str,
) -> None:
    """Talk about a hang: why, which rank, how sure, what to run, how to fix it.

    Reads the logs FILEs first. On a terminal it asks for messages; from a pipe every line is one.
    A line `paste` begins a message of many lines, a line `.` ends it. After “that was it” a line
    `keep` stores the outcome as feedback. With --format json every message gets one line of JSON:
    the reply, or the feedback that was stored.
    Exit code 3: the cause of the incident stays unknown.
    """
    state = context.find_object(State) or State()
    with state.service() as service:
        chat = state.open_chat(service)
        if conversation:
            chat.conversation(conversation)  # an unknown one fails before anything is read or typed
        session = ChatSession(
            state=state,
            service=service,
            chat=chat,
            conversation=conversation,
            language=state.language(language),
            as_json=form == "json",
        )
        try:
            session.name_model()
            if files:
                session.read(files)
            session.run()
        finally:
            session.close()
    if not session.conversation:
        raise usage("usage.no_talk")
    context.exit(EXIT_UNDECIDED if session.undecided else EXIT_DIAGNOSED)


@dataclass(slots=True, kw_only=True)
class ChatSession:
    """One conversation on this terminal or pipe.

    Attributes:
        language: the one asked for by option or setting; `reply_language` that of the last reply.
        undecided: whether the last diagnosis names no cause.
    """

    state: State
    service: Service
    chat: Chat
    conversation: str
    language: Language | None
    as_json: bool
    reply_language: Language | None = None
    undecided: bool = False

    def name_model(self) -> None:
        """Say that a language model reads along, and where."""
        reader = self.service.second_reader
        if reader is not None and not self.as_json:
            note(self._words()("talk.model", model=reader.model, address=reader.address))

    def read(self, files: tuple[Path, ...]) -> None:
        """Take the logs for the incident."""
        reading = self.service.read_paths(files)
        reply = self.chat.begin(reading, conversation=self.conversation, language=self.language)
        words = self._words(reply.language)
        for item in reading.incident.unread:
            note(f"{words('row.unread')} {plain(item.file)}: {plain(why_unread(words, item))}")
        self._reply(reply)

    def run(self) -> None:
        """Answer message by message."""
        terminal = sys.stdin.isatty()
        if terminal and not self.as_json:
            note(self._words()("talk.start"))
        lines = _typed_lines() if terminal else _piped_lines()
        for message in messages(lines, lambda: note(self._words()("talk.paste"))):
            try:
                self._reply(
                    self.chat.say(message, conversation=self.conversation, language=self.language)
                )
            except KBError as error:
                if not terminal:
                    raise
                note(self.state.error_line(error, self.reply_language))

    def close(self) -> None:
        """Name the command that goes on with this conversation."""
        if self.conversation and not self.as_json:
            note(self._words()("talk.kept", id=self.conversation))

    def _store(self, outcome: IncidentOutcome) -> None:
        """Store how it ended as feedback, once."""
        from app.inputs.contributions import Feedback, add_feedback

        feedback = Feedback(
            verdict=outcome.verdict,
            cause=outcome.cause,
            actual=outcome.actual,
            diagnosis=self.conversation,
        )
        stored = add_feedback(self.service, feedback, source="cli")
        if self.as_json:
            _print_json(stored)
        else:
            note(self._words()("talk.outcome_kept"))

    def _words(self, language: Language | None = None) -> Words:
        from kb.knowledge.labels import Words

        language = answer_language(language or self.language, fallback=self.reply_language)
        return Words(self.service.knowledge.labels, language)

    def _reply(self, reply: Reply) -> None:
        """Show a reply, and then what a language model adds to it; as JSON both are one line."""
        if self.service.second_reader is None:
            self._show(reply)
            return
        if not self.as_json:
            self._show(reply)
        addition = self.chat.follow_up(reply.conversation)
        if self.as_json:
            self._show(reply.with_addition(addition) if addition else reply)
        elif addition is not None:
            self._show(addition)

    def _show(self, reply: Reply) -> None:
        """Print a reply, remember what the next message depends on, keep what was confirmed."""
        from app.render.chat_terminal import render_reply

        self.conversation, self.reply_language = reply.conversation, reply.language
        if reply.diagnosis is not None:
            self.undecided = reply.diagnosis.status != "diagnosed"
        if self.as_json:
            _print_json(reply)
        else:
            write(self.state, render_reply(reply, self._words(reply.language), width=text_width()))
        if reply.outcome is not None:
            self._store(reply.outcome)


def _print_json(value: object) -> None:
    """Print `value` as one line of JSON."""
    import msgspec

    click.echo(msgspec.json.encode(value).decode())


def messages(lines: Iterable[str], on_paste: Callable[[], None]) -> Iterator[str]:
    """The messages among lines: each its own, or what stands between ``paste`` and ``.``."""
    rest = iter(lines)
    for line in rest:
        if line.strip() == PASTE:
            on_paste()
            line = "\n".join(iter(lambda: next(rest, PASTE_END), PASTE_END))  # noqa: PLW2901
        if line.strip():
            yield line


def _typed_lines() -> Iterator[str]:
    """Lines a person types; pasted ones come together where the terminal marks them so."""
    with contextlib.suppress(ImportError):  # not on every platform
        import readline  # noqa: F401 - gives `input` editing, history and bracketed paste
    while True:
        try:
            line = input(PROMPT)
        except EOFError:
            click.echo()
            return
        yield line


def _piped_lines() -> Iterator[str]:
    """Lines of standard input, whatever bytes they hold."""
    for line in sys.stdin.buffer:
        yield line.decode("utf-8", "replace").rstrip("\r\n")
