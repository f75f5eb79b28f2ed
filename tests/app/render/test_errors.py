"""What a person reads of an expected failure."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from app.render.errors import error_sentence, error_text, why_refused
from kb.errors import DataError, InputError, KBError, NotFoundError, SearchIndexError
from kb.evidence.collect import read_evidence
from kb.knowledge.labels import Words
from kb.logs import LogReader
from kb.logs.event_log import EventVocabulary
from kb.types.knowledge import Bilingual
from kb.types.vocabulary import Language

Labels = dict[str, Bilingual]
HAN = re.compile(r"[\u4e00-\u9fff]")
REFUSED = {
    "empty.log": b" \n",
    "tool.bin": b"\x7fELF\x02\x01" + bytes(500),
    "noise.bin": bytes(range(256)) * 20,
    "shot.png": b"\x89PNG\r\n" + bytes(500),
    "paper.pdf": b"%PDF-1.7 " + b"x" * 500,
    "logs.zip": b"PK\x03\x04" + bytes(500),
    "dump.pkl": b"\x80\x04\x95" + bytes(500),
    "cut.gz": b"\x1f\x8b\x08\x00" + b"nonsense" * 20,
}
CODE = ("kb", "app", "ingest")
REFUSALS = {"InputError", "SlowInputError", "NotFoundError"}
# Measuring and training, which nobody does through a face; what only a bug reaches; the client of
# the API, whose server has said it in the caller's language; Slack, whose words are labels already.
WITHOUT_WORDS = ("kb/evaluation/", "kb/embed/", "kb/train/", "kb/search/", "kb/chat/chat.py")
WITHOUT_WORDS += ("kb/index/", "app/slack/", "app/web/", "app/client_http.py", "app/client.py")
WITHOUT_WORDS += tuple(f"kb/store/{name}.py" for name in ("records", "statements", "vectors"))
DUMPS = {
    "notes_3": b"just some words",
    "trace": b"\x80\x02}.",
    "trace_1": b"\x80\x02cos\nsystem\n.",
    "trace_2": b"\x80\x02}.",
}


@pytest.fixture
def reader() -> LogReader:
    """A reader without patterns: what is refused is refused before any is looked for."""
    return LogReader(EventVocabulary([], [], [], {}), cache=None)


def assert_fit(error: InputError, labels: Labels, path: Path) -> None:
    """Both languages name the file, no folder, no option of the command line, and a next step."""
    for language in ("zh", "en"):
        shown = error_text(error, Words(labels, language))
        text = f"{shown.what} {shown.todo}"
        assert path.name in shown.what
        assert str(path.parent) not in text
        assert "--" not in text
        assert "{" not in text
        assert bool(HAN.search(shown.what)) == bool(HAN.search(shown.todo)) == (language == "zh")


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_log_is_told_in_both_languages(
    name: str, reader: LogReader, labels: Labels, tmp_path: Path
) -> None:
    """Whoever uploads a file reads its name and what to do, and not where it lay."""
    path = tmp_path / name
    path.write_bytes(REFUSED[name])
    with pytest.raises(InputError) as caught:
        reader.read_paths([path])
    assert_fit(caught.value, labels, path)


@pytest.mark.parametrize("name", DUMPS)
def test_a_refused_dump_is_told_in_both_languages(
    name: str, labels: Labels, tmp_path: Path
) -> None:
    """The same of files that were given as dumps."""
    path = tmp_path / name
    path.write_bytes(DUMPS[name])
    with pytest.raises(InputError) as caught:
        read_evidence([path])
    assert_fit(caught.value, labels, path)


def test_missing_paths_are_told_in_both_languages(
    reader: LogReader, labels: Labels, tmp_path: Path
) -> None:
    """A path that is not there, a folder without files."""
    for path in (tmp_path / "none.log", tmp_path):
        with pytest.raises(InputError) as caught:
            reader.read_paths([path])
        assert_fit(caught.value, labels, path)


@pytest.mark.parametrize(("language", "name"), [("zh", "输入的内容"), ("en", "the input")])
def test_a_paste_has_no_name(
    reader: LogReader, labels: Labels, language: Language, name: str
) -> None:
    """What was pasted is called the input."""
    with pytest.raises(InputError) as caught:
        reader.read_text(" ")
    assert error_text(caught.value, Words(labels, language)).what.startswith(name)


def test_a_failure_without_labels_keeps_its_words(labels: Labels) -> None:
    """Nothing is lost where nobody has written labels; control characters are."""
    shown = error_text(NotFoundError("no entry \x1b[1mx", todo="look again"), Words(labels, "zh"))
    assert (shown.what, shown.todo) == ("no entry x", "look again")


@pytest.mark.parametrize(
    "error",
    [
        SearchIndexError("/x/index is damaged", todo="run `timeout-kb ingest --rebuild`"),
        DataError("causes.yaml is not YAML"),
    ],
    ids=["with-a-next-step", "without"],
)
def test_a_failure_of_a_kind_quotes_its_own_words(error: KBError, labels: Labels) -> None:
    """What has no labels of its own is still told by a sentence of the reader's language."""
    chinese = error_text(error, Words(labels, "zh"))
    english = error_text(error, Words(labels, "en"))
    assert (english.what, english.todo) == (error.what, error.todo)
    assert error.what in chinese.what
    assert HAN.search(chinese.what)
    assert error.todo in chinese.todo
    assert bool(chinese.todo) == bool(error.todo)


def test_one_line_joins_both_as_the_language_does(labels: Labels) -> None:
    """A file's name stands where there is one to tell, and not beside a name in a list."""
    error = InputError("x", reason="no_trouble", values={"name": "a.log"})
    assert error_sentence(error, Words(labels, "en")) == (
        "a.log tells of no timeout and no error — Import the log of the rank that failed."
    )
    listed = why_refused("x", Words(labels, "zh"), code="no_trouble", values={})
    assert listed == "既没有超时也没有报错。请导入出错那个 rank 的日志。"


def test_every_failure_of_a_request_has_words(root: Path) -> None:
    """Whatever input, exchange or missing thing is refused names the labels that say so."""
    silent = []
    for path in sorted(item for name in CODE for item in (root / name).rglob("*.py")):
        place = path.relative_to(root).as_posix()
        if place.startswith(WITHOUT_WORDS):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                made = node.exc
                known = isinstance(made.func, ast.Name) and made.func.id in REFUSALS
                if known and "reason" not in {item.arg for item in made.keywords}:
                    silent.append(f"{place}:{node.lineno}")
    assert silent == []


def test_every_reason_has_its_labels(labels: Labels, root: Path) -> None:
    """Reasons in the code and labels in data are the same, each with a next step."""
    reasons, constants = set(), set()
    for path in sorted(item for name in CODE for item in (root / name).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                constants.add(node.value)
            if isinstance(node, ast.Call):
                found = [item.value for item in node.keywords if item.arg == "reason"]
                if isinstance(node.func, ast.Name) and node.func.id in ("_refused", "invalid_body"):
                    found += node.args[:1]
                if isinstance(node.func, ast.Name) and node.func.id == "HttpError":
                    found += node.args[2:3]
                reasons |= {item.value for item in found if isinstance(item, ast.Constant)}
    spoken = {name.partition(".")[2] for name in labels if name.startswith("error.")}
    steps = {name.partition(".")[2] for name in labels if name.startswith("todo.")}
    short = {reason for reason in reasons if re.fullmatch("[a-z_]+", str(reason))}
    assert short <= spoken
    assert spoken <= constants
    assert spoken == steps
