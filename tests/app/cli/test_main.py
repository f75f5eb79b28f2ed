"""The command line: what a person types, reads, and gets as exit code."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from app.cli import main as cli
from app.cli.common import State, colour_choice
from kb.errors import InputError, SettingsError
from kb.settings import Settings
from kb.types.answer import Diagnosis
from tests.app.test_posting import place

if TYPE_CHECKING:
    from tests.app.fakes import FakeService


@dataclass(frozen=True)
class Result:
    """What a run gave."""

    code: int
    out: str
    err: str


Run = Callable[..., Result]


@pytest.fixture
def run(service: FakeService, settings: Settings, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs one command line with the fake service; standard input is empty and no terminal."""

    def go(*words: str, stdin: str = "", opener: object = None) -> Result:
        def opened(_settings: Settings, **_options: object) -> FakeService:
            return service

        state = State(
            open_service=opener or opened,  # type: ignore[arg-type]
            settings_source=lambda: settings,
        )
        with standard_input(stdin.encode()):
            code = cli.run(words, state=state)
        captured = capfd.readouterr()
        return Result(code, captured.out, captured.err)

    return go


@contextlib.contextmanager
def standard_input(data: bytes) -> Iterator[None]:
    """Standard input is a pipe with `data`."""
    import io

    kept = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")
    try:
        yield
    finally:
        sys.stdin = kept


def encoding_error(text: str) -> Exception:
    """What the store and the indexes raise where they are handed `text`."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error
    raise AssertionError(text)


@pytest.fixture
def log_file(tmp_path: Path, log: str) -> Path:
    """The diagnosable log as a file."""
    path = tmp_path / "job.log"
    path.write_text(log, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "code"),
    [("log", 0), ("undecided_log", 3), ("fine", 3)],
)
def test_exit_code_says_whether_it_was_diagnosed(
    run: Run, request: pytest.FixtureRequest, text: str, code: int
) -> None:
    """0 diagnosed, 3 unknown or no timeout."""
    given = "all is well" if text == "fine" else request.getfixturevalue(text)
    assert run("diagnose", stdin=given).code == code


def test_file_dash_and_pipe_are_the_same(run: Run, log: str, log_file: Path) -> None:
    """A file, ``-`` and a bare pipe give the same text; nothing goes to stderr."""
    runs = [
        run("diagnose", str(log_file)),
        run("diagnose", "-", stdin=log),
        run("diagnose", stdin=log),
    ]
    assert {(result.code, result.err) for result in runs} == {(0, "")}
    assert len({result.out for result in runs}) == 1
    assert runs[0].out.startswith("Rank 3 ran out of GPU memory")


def test_json_is_the_diagnosis(run: Run, service: FakeService, log: str, log_file: Path) -> None:
    """The JSON decodes to the service's own answer."""
    result = run("diagnose", str(log_file), "--format", "json", "--lang", "zh", "--top", "1")
    expected = service.diagnose_text(log, language="zh", top=1)
    assert msgspec.json.decode(result.out, type=Diagnosis) == expected
    assert list(json.loads(result.out))[:4] == ["schema", "status", "language", "summary"]


def test_piped_output_has_no_colours(run: Run, log_file: Path) -> None:
    """Colours are for terminals, or when asked for."""
    assert "\x1b" not in run("diagnose", str(log_file)).out
    assert "\x1b[" in run("--color", "diagnose", str(log_file)).out


@pytest.mark.parametrize(
    ("requested", "environ", "colour"),
    [
        pytest.param(None, {"TERM": "xterm"}, None, id="as-the-output-is"),
        pytest.param(None, {"NO_COLOR": "1", "TERM": "xterm"}, False, id="no-color"),
        pytest.param(None, {"NO_COLOR": ""}, None, id="no-color-empty"),
        pytest.param(None, {"TERM": "dumb"}, False, id="dumb"),
        pytest.param(True, {"NO_COLOR": "1", "TERM": "dumb"}, True, id="asked-for"),
        pytest.param(False, {}, False, id="refused"),
    ],
)
def test_colours_follow_the_option_then_the_environment(
    *, requested: bool | None, environ: dict[str, str], colour: bool | None
) -> None:
    """NO_COLOR with any value and a dumb terminal switch them off; the option goes first."""
    assert colour_choice(requested, environ) is colour


@pytest.mark.parametrize("variable", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_a_terminal_that_wants_no_colours_gets_none(
    root: Path, built_home: Callable[[], Path], log_file: Path, variable: dict[str, str]
) -> None:
    """On a real terminal the answer is coloured, unless the environment says otherwise."""
    leader, follower = pty.openpty()
    environ = {"PATH": os.environ["PATH"], "TERM": "xterm", "PYTHONPATH": str(root)}
    environ |= {"TIMEOUT_KB_HOME": str(built_home())} | variable
    command = [
        sys.executable,
        "-c",
        "from app.cli.main import main; main()",
        "diagnose",
        str(log_file),
    ]
    job = subprocess.Popen(command, stdout=follower, stderr=subprocess.DEVNULL, env=environ)
    os.close(follower)
    shown = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while piece := os.read(leader, 65536):
            shown += piece
    os.close(leader)
    assert job.wait() == 0
    assert (b"\x1b[" in shown) is (variable == {})


def test_the_short_form_and_all_of_it(run: Run, log_file: Path) -> None:
    """`--format short` is ten lines at most; `--full` holds what the screen leaves out."""
    short = run("diagnose", "--format", "short", str(log_file)).out.splitlines()
    assert short[:2] == ["Rank 3 ran out of GPU memory", "Do first: Use less memory  [confirmed]"]
    assert len(short) <= 10
    screen = run("diagnose", str(log_file)).out
    full = run("diagnose", "--full", str(log_file)).out
    assert "--full shows all" in screen
    assert ("Timeline" in screen, "Timeline" in full) == (False, True)


def test_standard_input_goes_with_dumps(run: Run, log: str, tmp_path: Path) -> None:
    """A piped log and a folder of dumps are one run."""
    dumps = tmp_path / "dumps"
    dumps.mkdir()
    assert run("diagnose", "-", "--dump", str(dumps), stdin=log).code == 0


def test_nothing_to_read_says_what_to_do(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal without a file the three ways to pass a log are named."""
    import io

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    @contextlib.contextmanager
    def terminal(_data: bytes) -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", Terminal())
            yield

    monkeypatch.setitem(globals(), "standard_input", terminal)
    result = run("diagnose")
    assert result.code == 2
    assert "timeout-kb diagnose job.log" in result.err
    assert "srun" in result.err
    assert "Ctrl-D" in result.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["diagnose", "/nowhere/x.log"], "does not exist — check the path", id="path"),
        pytest.param(["diagnose", "-", "x.log"], "stands alone", id="dash-and-file"),
        pytest.param(["diagnose", "--lang", "fr"], "'fr' is not one of 'zh', 'en'", id="language"),
        pytest.param(["diagnose", "--top", "0"], "1<=x<=19", id="top"),
        pytest.param(["diagnoze", "x"], "Did you mean 'diagnose'?", id="verb"),
        pytest.param(["search"], "Missing argument", id="no-query"),
        pytest.param(["ingest"], "nothing to read", id="no-paths"),
        pytest.param(["evaluate", "diagnosis"], "add --threads FILE", id="no-threads"),
        pytest.param(["--colour", "x"], "--color", id="option"),
    ],
)
def test_usage_errors_say_what_was_wrong(run: Run, words: list[str], said: str) -> None:
    """Exit code 2, one clear message on stderr, nothing on stdout, no traceback."""
    result = run(*words)
    assert (result.code, result.out) == (2, "")
    assert said in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize(
    ("error", "code"),
    [(InputError("x is binary", todo="name a log"), 2), (SettingsError("bad"), 2)],
)
def test_expected_failures_are_one_line(run: Run, error: Exception, code: int) -> None:
    """``error: what — next step`` and the error's own exit code."""

    def failing(_settings: Settings, **_options: object) -> object:
        raise error

    result = run("diagnose", stdin="x", opener=failing)
    assert (result.code, result.out, result.err) == (code, "", f"error: {error}\n")


def test_unexpected_failures_are_kept_in_a_file(
    run: Run, service: FakeService, settings: Settings
) -> None:
    """One line that names the log with the traceback; the traceback itself with --debug."""
    service.failure = RuntimeError("boom")
    result = run("diagnose", stdin="x")
    path = settings.home / "logs" / "timeout-kb.log"
    assert result.code == 1
    assert result.err == f"error: unexpected RuntimeError: boom — details: {path}\n"
    assert "RuntimeError: boom" in path.read_text(encoding="utf-8")
    assert "Traceback" in run("--debug", "diagnose", stdin="x").err


@pytest.mark.parametrize(
    ("words", "error"),
    [
        pytest.param(["keys", "add", "\udcff"], None, id="whole"),
        pytest.param(["search", "foo", "\udcff"], encoding_error("foo \udcff"), id="joined"),
        pytest.param(["chat", "--conversation=\udcff"], encoding_error("\udcff"), id="option"),
        pytest.param(["search", "--framework=\udcff", "x"], ValueError("no text"), id="filter"),
    ],
)
def test_arguments_that_are_no_text_are_told(
    run: Run, words: list[str], error: Exception | None
) -> None:
    """Bytes that are no UTF-8 are a wrong command line, not a failure of ours."""

    def failing(_settings: Settings, **_options: object) -> object:
        raise error or AssertionError

    result = run(*words, opener=failing)
    assert (result.code, result.out) == (2, "")
    (wrong,) = (word for word in words if "\udcff" in word)
    assert result.err == f"error: {wrong!a} is not UTF-8 — type it as text\n"


def test_a_file_may_have_any_name(run: Run, log: str, tmp_path: Path) -> None:
    """Bytes that are no UTF-8 in a path are read, or told as that file's own trouble."""
    path = tmp_path / "job\udcff.log"
    assert "does not exist — check the path" in run("diagnose", str(path)).err
    path.write_text(log, encoding="utf-8")
    assert run("diagnose", str(path)).code == 0


def test_what_is_kept_of_a_failure_holds_no_secret(
    run: Run, service: FakeService, settings: Settings
) -> None:
    """The message of an error may quote the log it failed on, on the screen and in the file."""
    secret = "hf_" + "a1B2" * 9
    service.failure = RuntimeError(f"cannot take Bearer {secret}")
    result = run("diagnose", stdin="x")
    kept = (settings.home / "logs" / "timeout-kb.log").read_text(encoding="utf-8")
    assert "RuntimeError: cannot take Bearer <redacted" in kept
    assert "Traceback" in kept
    assert secret not in kept + result.err


def test_the_service_is_closed_also_after_a_failure(run: Run, service: FakeService) -> None:
    """Files and connections are let go in every case."""
    service.failure = RuntimeError("boom")
    run("diagnose", stdin="x")
    assert service.closed


def test_ranks_shows_the_table(run: Run, log_file: Path) -> None:
    """One line a rank under a header."""
    result = run("ranks", str(log_file))
    assert result.code == 0
    assert result.out.splitlines()[2:] == [
        "rank  state    enqueued  completed",
        "1     waiting  14217     14216",
        "3     crashed  14216     14216",
    ]


def test_search_lists_hits_with_links(run: Run) -> None:
    """Score, title, id, kind, cause, standing and link of each hit, best first."""
    result = run("search", "it", "hung", "--kind", "case")
    lines = result.out.splitlines()
    assert result.code == 0
    assert lines[0] == "0.90  title of first-case"
    assert lines[1].strip() == "first-case · case · owner/name · rank-crash · confirmed"
    assert lines[3].strip() == "https://example.org/first-case"
    assert [line for line in lines if line.startswith("0.8")] == ["0.80  title of second-case"]
    assert lines[-2:] == ["Narrow down", "  kind: case 2, thread 1"]


def test_no_match_is_said(run: Run) -> None:
    """Exit code 3 and a sentence before the closest entries."""
    result = run("search", "nothing")
    assert result.code == 3
    assert result.out.startswith("Nothing similar enough. The closest:")


def test_show_takes_cases_and_causes(run: Run) -> None:
    """A case and a cause are shown by id, in the language asked for."""
    assert run("show", "first-case").out.startswith("title of first-case")
    assert "卡住了" in run("show", "first-case", "--lang", "zh").out
    assert "nvidia-smi -q" in run("show", "rank-crash").out
    assert json.loads(run("show", "first-case", "--format", "json").out)["id"] == "first-case"


def test_notes_answer_before_entries(run: Run) -> None:
    """A note stands first, marked as one, and makes an answer where no entry is similar."""
    result = run("search", "nothing", "but", "a", "note", "--lang", "zh")
    lines = result.out.splitlines()
    assert (result.code, lines[0]) == (0, "0.50  SeqNum 是什么意思")
    assert lines[1].strip() == "meaning-seqnum · 问答"
    assert "没有足够相似的条目" not in result.out
    hits = json.loads(run("search", "a", "note", "--format", "json").out)["notes"]
    assert [(hit["note"]["id"], hit["score"]) for hit in hits] == [("meaning-seqnum", 0.5)]


def test_show_takes_notes_and_tells_of_them(run: Run) -> None:
    """A note has commands and sources in the reader's language; causes name theirs."""
    lines = run("show", "timeout-ddp").out.splitlines()
    assert lines[0] == "How to set the timeout of DDP"
    assert "    group = dist.new_group(timeout=timedelta(minutes=30))" in lines
    assert "  https://docs.pytorch.org/docs/stable/distributed.html" in lines
    assert not [line for line in lines if "```" in line]
    chinese = run("show", "timeout-ddp", "--lang", "zh").out.splitlines()
    assert chinese[0] == "怎么设置 DDP 的超时"
    assert json.loads(run("show", "timeout-ddp", "--format", "json").out)["id"] == "timeout-ddp"
    about = run("show", "rank-crash").out.partition("Notes about it")[2]
    assert "[connection-closed-by-peer]" in about
    assert "did you mean timeout-ddp" in run("show", "timeout-dpp").err


def test_a_misspelt_id_is_answered_with_the_nearest(run: Run) -> None:
    """The error suggests ids spelt alike."""
    result = run("show", "rank-crsh")
    assert result.code == 1
    assert result.err == "error: no entry 'rank-crsh' — did you mean rank-crash?\n"


def test_an_answer_is_posted_after_it_is_shown(run: Run, tmp_path: Path, log: str) -> None:
    """The address is checked before the log is read; a place that refuses it is a failure."""
    path = tmp_path / "job.log"
    path.write_text(log)
    with place(201, '{"web_url": "https://x.example/7"}') as (address, posts):
        sent = run("diagnose", str(path), "--send-to", address, "--lang", "en")
    assert (sent.code, sent.err) == (0, "posted: https://x.example/7\n")
    assert posts[0][2]["status"] == "diagnosed"
    assert run("diagnose", str(path), "--send-to", "http://x.example/").code == 2
    assert run("diagnose", str(path), "--template", "t.json").code == 2
    with place(500) as (address, _):
        refused = run("diagnose", str(path), "--send-to", address)
    assert (refused.code, refused.out) == (1, sent.out)


def test_lint_finds_what_is_wrong(run: Run, tmp_path: Path) -> None:
    """Exit code 1 with the warnings, 0 where there are none."""
    script = tmp_path / "run.sh"
    script.write_text("export NCCL_TIMEOUT=7200\n", encoding="utf-8")
    found = run("lint", str(script))
    assert (found.code, found.out.splitlines()[0]) == (
        1,
        "! NCCL_TIMEOUT: no effect · read by nobody",
    )
    clean = run("lint", stdin="export OMP_NUM_THREADS=1")
    assert (clean.code, clean.out) == (0, "Nothing wrong with these settings.\n")


def test_every_verb_has_help(run: Run) -> None:
    """``--help`` of the program and of each verb works and opens nothing."""

    def failing(_settings: Settings, **_options: object) -> object:
        raise AssertionError

    for words in ([], *([verb] for verb in cli.VERBS)):
        result = run(*words, "--help", opener=failing)
        assert (result.code, result.err) == (0, "")
        assert "Usage: timeout-kb" in result.out


def test_evaluate_counts_the_knowledge(run: Run) -> None:
    """Without labelled threads the knowledge is counted: every cause, also one without a case."""
    figures = json.loads(run("evaluate", "knowledge", "--format", "json").out)
    assert figures["knowledge"]["cases by cause"] == {"rank-crash": "1", "collective-mismatch": "1"}
    assert figures["knowledge"]["cases by standing"] == {"confirmed": "2"}
    assert sum(map(int, figures["knowledge"]["cases by backend"].values())) == 2
    assert sum(map(int, figures["knowledge"]["cases by year first seen"].values())) == 2
    assert "rank-crash           1" in run("evaluate", "knowledge").out


def test_failures_are_told_in_the_language_asked_for(
    run: Run, settings: Settings, capfd: pytest.CaptureFixture[str]
) -> None:
    """By --lang, else by the setting; in English with the whole path, in the words of before."""
    chinese = run("lint", "/nowhere/x.sh", "--lang", "zh")
    why = "No such file or directory"
    assert (chinese.code, chinese.err) == (
        2,
        f"错误：文件 x.sh 无法读取（{why}）。请检查文件和它的权限。\n",
    )
    english = run("lint", "/nowhere/x.sh", "--lang", "en").err
    assert english == f"error: /nowhere/x.sh: {why} — check the path and rights\n"
    assert "Error: 没有可读的内容。" in run("ingest", "--lang", "zh").err
    state = State(settings_source=lambda: replace(settings, lang="zh"))
    assert cli.run(("keys", "remove", "ops"), state=state) == 1
    assert capfd.readouterr().err == (
        "错误：没有名为“ops”的密钥。已有的密钥可用 timeout-kb keys list 查看。\n"
    )


def test_keys_are_made_listed_and_removed(run: Run) -> None:
    """The key is printed once, its name listed; a second of the name is refused."""
    made = run("keys", "add", "ops", "--role", "write")
    assert made.out.startswith("tkb_")
    assert run("keys", "list").out == "ops  write  600/min\n"
    assert run("keys", "add", "ops").code == 2
    assert run("keys", "remove", "ops").code == 0
    assert run("keys", "list").out == ""
    assert run("keys", "remove", "ops").code == 1


def test_help_loads_nothing_heavy(root: Path) -> None:
    """The program's help comes without the web framework, numpy or the index libraries."""
    heavy = "numpy faiss tantivy fastapi uvicorn torch sentence_transformers streamlit rich"
    code = (
        "import sys; from app.cli.main import run; run(['--help']);"
        f"print([name for name in {heavy.split()!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stderr == "[]\n"


def test_a_closed_pipe_is_quiet(root: Path, tmp_path: Path) -> None:
    """``timeout-kb ... | head -1`` prints no complaint."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-c", "from app.cli.main import main; main()", "--help"],
            cwd=root,
            stdout=closed,
            stderr=subprocess.PIPE,
            env={**os.environ, "TIMEOUT_KB_HOME": str(tmp_path)},
            check=False,
        )
    assert done.stderr == b""


@pytest.mark.parametrize("encoding", ["gb18030", "latin-1"])
def test_a_terminal_that_cannot_show_a_character_gets_a_mark(
    root: Path, tmp_path: Path, encoding: str
) -> None:
    """The output's encoding never ends the program."""
    code = (
        "import click; from app.cli import main as cli;"
        "cli.cli.add_command(click.Command('say', callback=lambda: click.echo('超时 \\u2713')));"
        "import sys; sys.argv = ['x', 'say']; cli.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding, "TIMEOUT_KB_HOME": str(tmp_path)},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode(encoding).strip() == "超时 ✓".encode(encoding, "replace").decode(
        encoding
    )


def test_wrong_settings_name_key_and_value(root: Path) -> None:
    """A wrong TIMEOUT_KB_* value is told with its key; help still works."""
    env = {**os.environ, "TIMEOUT_KB_PORT": "many"}
    command = [sys.executable, "-c", "from app.cli.main import main; main()"]
    done = subprocess.run(
        [*command, "diagnose"], cwd=root, env=env, input=b"x", capture_output=True, check=False
    )
    assert done.returncode == 2
    assert b"TIMEOUT_KB_PORT='many'" in done.stderr
    helped = subprocess.run(
        [*command, "--help"], cwd=root, env=env, capture_output=True, check=False
    )
    assert helped.returncode == 0
