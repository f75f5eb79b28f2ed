"""`timeout-kb chat`: talk about a hang, with or without its log."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.commands.common import (
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
from app.quoting import plain
from kb.chat.types import Outcome, Reply, Statement
from kb.diagnose import wording
from kb.errors import KBError
from kb.text import detect_language
from kb.types import Language

if TYPE_CHECKING:
    from app.labels import Words
    from kb.chat.chat import Chat
    from kb.service import Service

PROMPT = "> "
PASTE = "paste"  # a line that says: what follows is one message
PASTE_END = "."
# What keeps the outcome just told as feedback; a plain yes does where it was just offered.
KEEP = frozenset(
    {"keep", "keep it", "yes keep it", "yes keep", "ok keep it", "yes", "y"}
    | {"保存", "保存吧", "存", "存下来", "存为反馈", "是", "好", "好的", "是的 保存", "好 保存"}
)
_PAUSES = re.compile(r"[\s,.!，。！]+")


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
    if state.settings.llm_base_url:
        from app.observe import configure_logging

        configure_logging(state.settings.log_level)  # to stderr: the answer stands alone on stdout
    with state.service() as service:
        chat = state.open_chat(service)
        if conversation:
            chat.conversation(conversation)  # unknown, it is told before anything is read or typed
        talk = _Talk(
            state=state,
            service=service,
            chat=chat,
            conversation=conversation,
            wanted=state.language(language),
            as_json=form == "json",
        )
        try:
            talk.hold(files)
        finally:
            talk.leave()
    if not talk.conversation:
        raise usage("usage.no_talk")
    context.exit(EXIT_UNDECIDED if talk.undecided else EXIT_DIAGNOSED)


@dataclass(slots=True, kw_only=True)
class _Talk:
    """One conversation on this terminal or pipe.

    `spoken` is the language of its last reply, `outcome` what that reply offers to keep.
    """

    state: State
    service: Service
    chat: Chat
    conversation: str
    wanted: Language | None
    as_json: bool
    spoken: Language | None = None
    undecided: bool = False
    outcome: Outcome | None = None

    def hold(self, files: tuple[Path, ...]) -> None:
        """Read the logs, then answer message by message."""
        if files:
            reading = self.service.read_paths(files)
            reply = self.chat.begin(reading, conversation=self.conversation, language=self.wanted)
            for item in reading.incident.unread:
                words = self._words(reading.description)
                why = wording.why_unread(
                    wording.Words(self.service.knowledge.labels, words.language), item
                )
                note(f"{words('row.unread')} {plain(item.file)}: {plain(why)}")
            self._show([*reply.statements, reply])
        terminal = sys.stdin.isatty()
        if terminal and not self.as_json:
            note(self._words()("talk.start"))
        lines = _typed() if terminal else _piped()
        for message in messages(lines, lambda: note(self._words()("talk.paste"))):
            try:
                if self.outcome is not None and _PAUSES.sub(" ", message).strip().lower() in KEEP:
                    self._keep(self.outcome)
                    continue
                self._show(
                    self.chat.stream(message, conversation=self.conversation, language=self.wanted)
                )
            except KBError as error:
                if not terminal:
                    raise
                note(self.state.failure(error, self.spoken))

    def _keep(self, outcome: Outcome) -> None:
        """Store how it ended as feedback, once."""
        from app.contribute import Feedback, add_feedback

        feedback = Feedback(
            verdict=outcome.verdict,
            cause=outcome.cause,
            actual=outcome.actual,
            diagnosis=self.conversation,
        )
        stored = add_feedback(self.service, feedback, source="cli")
        self.outcome = None
        if self.as_json:
            _line(stored)
        else:
            note(self._words()("talk.outcome_kept"))

    def leave(self) -> None:
        """Tell how to come back."""
        if self.conversation and not self.as_json:
            note(self._words()("talk.kept", id=self.conversation))

    def _words(self, text: str = "") -> Words:
        from app.labels import Words

        language = detect_language(text) if text else self.spoken
        return Words(self.service.knowledge.labels, self.wanted or language or "en")

    def _show(self, items: Iterable[Statement | Reply]) -> None:
        """Print statements as they come, and what follows them."""
        said: list[Statement] = []
        told: set[str] = set()
        for item in items:
            if isinstance(item, Reply):
                self._end(item, tuple(said))
            else:
                said.append(item)
                self._statement(item, told)

    def _statement(self, statement: Statement, told: set[str]) -> None:
        from app.talking import render_statement

        if not self.as_json:
            words = self._words(statement.text)
            text = render_statement(statement, words, width=text_width(), told=told)
            write(self.state, text)

    def _end(self, reply: Reply, said: tuple[Statement, ...]) -> None:
        from app.talking import render_end

        self.conversation, self.spoken = reply.conversation, reply.language
        self.outcome = reply.outcome
        if reply.diagnosis is not None:
            self.undecided = reply.diagnosis.status != "diagnosed"
        if self.as_json:
            _line(reply)
            return
        words = self._words()
        if said != reply.statements:  # a language model broke off: the engine said it anew
            write(self.state, f"\n{words('talk.whole')}\n")
            told: set[str] = set()
            for statement in reply.statements:
                self._statement(statement, told)
        write(self.state, render_end(reply, words, width=text_width()))


def _line(value: object) -> None:
    """Print `value` as one line of JSON."""
    import msgspec

    click.echo(msgspec.json.encode(value).decode())


def messages(lines: Iterable[str], asked_to_paste: Callable[[], None]) -> Iterator[str]:
    """The messages among lines: each its own, or what stands between ``paste`` and ``.``."""
    coming = iter(lines)
    for line in coming:
        if line.strip() != PASTE:
            if line.strip():
                yield line
            continue
        asked_to_paste()
        pasted = "\n".join(iter(lambda: next(coming, PASTE_END), PASTE_END))
        if pasted.strip():
            yield pasted


def _typed() -> Iterator[str]:
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


def _piped() -> Iterator[str]:
    """Lines of standard input, whatever bytes they hold."""
    for line in sys.stdin.buffer:
        yield line.decode("utf-8", "replace").rstrip("\r\n")
