"""`timeout-kb chat`: logs and messages in, statements with their sources out."""

from __future__ import annotations

import io
import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from app.cli import main as cli
from app.cli.chat import messages
from app.cli.common import State
from app.inputs.contributions import StoredFeedback, read_feedback
from app.render.chat_terminal import render_reply
from kb.chat.types import Citation, Conversation, IncidentOutcome, Reply, Statement
from kb.errors import InputError
from kb.knowledge.labels import Words
from kb.settings import Settings
from kb.types.knowledge import Bilingual
from tests.app.fake_chat import STATEMENTS, FakeChat

if TYPE_CHECKING:
    from tests.app.fakes import FakeService

LOG = "torch.OutOfMemoryError: CUDA out of memory\nWatchdog caught collective operation timeout\n"
ON_A_TERMINAL = """
import sys
from pathlib import Path
from app.cli import main as cli
from app.cli.common import State
from kb.knowledge.load import Knowledge, read_labels
from kb.settings import Settings, shipped_data
from tests.app.fake_chat import FakeChat
from tests.app.fakes import FakeService
labels = read_labels(shipped_data() / "labels")
kinds = ("causes", "events", "patterns", "cues", "frameworks", "facts", "advice", "cases")
empty = dict.fromkeys(kinds, ())
home = Path(sys.argv[1])
service = FakeService(knowledge=Knowledge(digest="0", labels=labels, **empty), home=home)
chat = FakeChat()
state = State(
    open_service=lambda *_, **__: service,
    open_chat=lambda _: chat,
    settings_source=lambda: Settings(home=home),
)
code = cli.run(["chat"], state=state)
print("ASKED", [message for message, _, _ in chat.asked], "CODE", code)
"""


@dataclass(frozen=True)
class Result:
    """What a run gave."""

    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def chat() -> FakeChat:
    """The chat of one test."""
    return FakeChat()


@pytest.fixture
def run(
    service: FakeService,
    chat: FakeChat,
    settings: Settings,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    """Runs one command line with the fakes; standard input is a pipe unless it says `terminal`."""

    def go(*words: str, stdin: str | bytes = "", terminal: bool = False) -> Result:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        given = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
        monkeypatch.setattr(given, "isatty", lambda: terminal)
        monkeypatch.setattr(sys, "stdin", given)
        state = State(
            open_service=lambda *_arguments, **_options: service,  # type: ignore[arg-type,return-value]
            open_chat=lambda _service: chat,  # type: ignore[arg-type,return-value]
            settings_source=lambda: settings,
        )
        code = cli.run(["chat", *words], state=state)
        captured = capfd.readouterr()
        return Result(code, captured.out, captured.err)

    return go


def test_every_line_of_a_pipe_is_a_message(run: Run, chat: FakeChat) -> None:
    """Lines are answered in order in one conversation; its id is told at the end."""
    result = run(stdin="why?\n\n  \nhow do I fix it?\r\n")
    assert [message for message, _, _ in chat.asked] == ["why?", "how do I fix it?"]
    (identifier,) = chat.kept
    assert {kept for _, kept, _ in chat.asked} == {identifier}
    assert f"timeout-kb chat --conversation {identifier}" in result.err
    assert result.code == 0
    assert result.out.count("Rank 3 ran out of memory. Line two.") == 2


def test_statements_have_their_sources(run: Run) -> None:
    """Under a statement stand its quote, line and address, its command whole; then the question."""
    lines = run(stdin="why?\n").out.splitlines()
    assert lines[:8] == [
        "  + Rank 3 ran out of memory. Line two.",
        "    │ CUDA out of memory",
        "    line 2",
        "  → 少用显存。",
        "    first-case https://example.org/first-case",
        "      python train.py \\",
        "        --batch 4",
        "",
    ]
    rest = lines[8:]
    assert rest[:4] == ["What does dmesg say?", "      dmesg -T", "  1. an Xid", "  2. nothing"]
    assert "You might say: How sure are you?" in rest


def test_logs_are_read_first(run: Run, chat: FakeChat, tmp_path: Path) -> None:
    """The named files make the incident; messages follow in the same conversation."""
    path = tmp_path / "job.log"
    path.write_text(LOG, encoding="utf-8")
    result = run(str(path), "--lang", "zh", stdin="为什么？\n")
    assert [reading.words for reading in chat.begun] == [LOG]
    (identifier,) = chat.kept
    assert chat.asked == [("为什么？", identifier, "zh")]
    assert "第 2 行" in result.out
    assert run(str(path), stdin="").code == 0


def test_a_file_that_cannot_be_read_is_named(run: Run, tmp_path: Path) -> None:
    """The talk is about the others."""
    log, core = tmp_path / "job.log", tmp_path / "core.1"
    log.write_text(LOG, encoding="utf-8")
    core.write_bytes(b"\0\0")
    result = run(str(log), str(core), "--lang", "zh", stdin="")
    assert result.code == 0
    assert "未能读取 core.1: 是二进制文件，不是文本日志" in result.err


def test_a_conversation_goes_on(run: Run, chat: FakeChat) -> None:
    """With its id the conversation is taken up; an unknown one is an error before anything else."""
    chat.say("before", conversation="known", create=True)
    run("--conversation", "known", stdin="and now?\n")
    assert [turn.asked for turn in chat.kept["known"].turns] == ["before", "and now?"]
    result = run("--conversation", "nowhere", stdin="hello?\n")
    assert (result.code, result.out) == (1, "")
    assert "there is no conversation 'nowhere'" in result.err


def test_json_is_one_reply_a_line(run: Run) -> None:
    """Each line is a whole reply; nothing else is on standard output or error."""
    result = run("--format", "json", stdin="why?\nhow sure?\n")
    replies = [msgspec.json.decode(line, type=Reply) for line in result.out.splitlines()]
    assert [(reply.number, reply.statements) for reply in replies] == [
        (1, STATEMENTS),
        (2, STATEMENTS),
    ]
    assert result.err == ""


def test_many_lines_can_be_one_message(run: Run, chat: FakeChat) -> None:
    """What stands between `paste` and `.` is one message."""
    run(stdin=f"paste\n{LOG}.\nwhy?\n")
    assert [message for message, _, _ in chat.asked] == [LOG.rstrip("\n"), "why?"]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["a", "", "b"], ["a", "b"]),
        (["paste", "a", "", "b", ".", "c"], ["a\n\nb", "c"]),
        (["paste", "a"], ["a"]),
        (["paste", "."], []),
        (["paste", " ", "."], []),
        (["."], ["."]),
    ],
)
def test_messages_among_lines(lines: list[str], expected: list[str]) -> None:
    """A paste ends with a dot or the input; an empty one is no message."""
    asked: list[int] = []
    assert list(messages(lines, lambda: asked.append(1))) == expected
    assert len(asked) == lines.count("paste")


def test_any_bytes_are_a_message(run: Run, chat: FakeChat) -> None:
    """Bytes that are no UTF-8 do not stop the chat."""
    assert run(stdin=b"caf\xe9?\n").code == 0
    assert [message for message, _, _ in chat.asked] == ["caf\ufffd?"]


def test_nothing_said_is_a_usage_error(run: Run) -> None:
    """With an empty pipe and no log there is nothing to do; the message says what would be."""
    result = run(stdin="")
    assert (result.code, result.out) == (2, "")
    assert "timeout-kb chat job.log" in result.err


def test_a_refused_message_ends_a_pipe(run: Run, chat: FakeChat) -> None:
    """In a pipe the first failure is the result, with its exit code."""
    result = run(stdin="why?\nrefused\nwhy?\n")
    assert result.code == InputError.exit_code
    assert len(chat.asked) == 1
    assert "error: the input is binary" in result.err


@pytest.mark.parametrize("words", ["yes", "yes, keep it", "是，记下吧"])
def test_an_outcome_is_kept_on_a_yes(
    tmp_path: Path,
    built_home: Callable[[], Path],
    words: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """“that was it” is asked back; the yes stores it, once."""
    log = tmp_path / "job.log"
    log.write_text(LOG, encoding="utf-8")
    settings = Settings(home=built_home())
    said = f"that was it\n{words}\n".encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(said), encoding="utf-8"))
    assert cli.run(["chat", str(log)], state=State(settings_source=lambda: settings)) == 0
    captured = capfd.readouterr()
    assert "Yes, keep it" in captured.out
    assert ("Kept as feedback." in captured.err) or ("已存为反馈。" in captured.err)
    with State(settings_source=lambda: settings).service() as service:
        (stored,) = read_feedback(service)
        kept = service.store.records.get_conversation(stored.feedback.diagnosis, now_s=0.0)
    assert (stored.feedback.verdict, stored.feedback.cause) == ("right", "rank-crash")
    assert stored.source == "cli"
    turns = msgspec.json.decode(kept.body, type=Conversation).turns
    assert [turn.asked for turn in turns] == ["", "that was it", words]


def test_json_has_a_line_for_what_is_kept(run: Run, chat: FakeChat, service: FakeService) -> None:
    """It comes behind the reply to the yes."""
    chat.outcome = IncidentOutcome(verdict="right", cause="rank-crash")
    result = run("--format", "json", stdin="yes\n")
    said, kept = result.out.splitlines()
    assert msgspec.json.decode(said, type=Reply).outcome == chat.outcome
    assert read_feedback(service) == (msgspec.json.decode(kept, type=StoredFeedback),)  # type: ignore[arg-type]
    assert result.err == ""


def test_an_outcome_that_cannot_be_kept_ends_no_talk(run: Run, chat: FakeChat) -> None:
    """On a terminal it is told, and the person goes on."""
    chat.outcome = IncidentOutcome(verdict="right", cause="gone")
    result = run(stdin="yes\nwhy?\n", terminal=True)
    assert result.code == 0
    assert "'gone' is not a cause" in result.err
    assert [message for message, _, _ in chat.asked] == ["yes", "why?"]


def reply_of(*statements: Statement) -> Reply:
    """A reply of these statements."""
    return Reply(conversation="c", number=1, intent="why", language="en", statements=statements)


def test_nothing_untrusted_reaches_the_terminal(labels: dict[str, Bilingual]) -> None:
    """Escapes in any part of a statement are gone from what is printed."""
    evil = "\x1b]0;owned\x07\x1b[2Jtext\u202e"
    citation = Citation(kind="case", id=evil, quote=evil + "quote", url=f"https://x/{evil}")
    statement = Statement(role="note", text=evil, citations=(citation,), command=f"ls {evil}")
    text = render_reply(reply_of(statement), Words(labels, "en"), width=80)
    allowed = ("\x1b[2m", "\x1b[34m", "\x1b[36m", "\x1b[1m", "\x1b[0m")  # the look's own
    for code in allowed:
        text = text.replace(code, "")
    assert text.replace("\n", "").isprintable()
    assert "owned" not in text


def test_a_name_is_shown_once(labels: dict[str, Bilingual]) -> None:
    """The source of several statements of a reply stands under the first of them only."""
    step = Statement(
        role="step", text="Do it.", citations=(Citation(kind="cause", id="source-id"),)
    )
    text = render_reply(reply_of(step, step), Words(labels, "en"), width=80)
    assert text.count("Do it.") == 2
    assert text.count("source-id") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_asks_until_ctrl_d(root: Path, tmp_path: Path) -> None:
    """Typed lines are messages, a paste the terminal marks as one is one, Ctrl-D ends."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "PYTHONPATH": str(root), "INPUTRC": os.devnull}
    process = subprocess.Popen(
        [sys.executable, "-c", ON_A_TERMINAL, str(tmp_path)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=root,
        env=environment,
        close_fds=True,
    )
    os.close(theirs)
    screen = Screen(ours)
    try:
        assert "Ctrl-D" in screen.until("> ")
        os.write(ours, b"why?\n")
        assert "ran out of memory" in screen.until("You might say")
        screen.until("> ")  # typed earlier, Ctrl-D would be lost
        os.write(ours, b"refused\n")
        assert "the input is binary" in screen.until("pass a text log")
        screen.until("> ")
        os.write(ours, b"\x1b[200~one\ntwo\x1b[201~\n")
        screen.until("You might say")
        screen.until("> ")
        os.write(ours, b"\x04")
        end = screen.until("CODE 0")
        assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    asked = json.loads(end.split("ASKED ")[1].split(" CODE")[0].replace("'", '"'))
    assert asked[0] == "why?"
    assert asked[1:] in (["one\ntwo"], ["one", "two"])  # the second: readline without that mode


class Screen:
    """What a terminal shows, read piece by piece."""

    def __init__(self, terminal: int) -> None:
        self._terminal = terminal
        self._shown = ""

    def until(self, text: str, *, seconds: float = 30) -> str:
        """What is shown next, up to and with `text`."""
        deadline = time.monotonic() + seconds
        while text not in self._shown:
            left_s = max(0.0, deadline - time.monotonic())
            ready, _, _ = select.select([self._terminal], [], [], left_s)
            assert ready, f"waited for {text!r}, saw {self._shown!r}"
            self._shown += os.read(self._terminal, 4096).decode("utf-8", "replace")
        head, _, self._shown = self._shown.partition(text)
        return head + text
