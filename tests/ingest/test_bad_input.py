"""Input that cannot be used, or only with care: each says why, and the rest goes in."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ingest import Ingestor
from ingest.files import MAX_PAGE_BYTES
from ingest.formats import FORMATS
from ingest.formats.threads import MAX_RECORD_BYTES
from ingest.types import ImportTools
from kb.types.entries import Entry
from tests.ingest.fakes import MemorySink
from tests.ingest.pages import SITES, ZH, text_page

Write = Callable[[str, str | bytes], Path]
PAGE = text_page(SITES["run-together-cards"], ZH, "flat")
NOBODY = 65534  # a user without rights

REFUSED: list[tuple[str, bytes, str]] = [
    ("zero.txt", b"", "is empty (0 bytes)"),
    ("zero.log", b"", "is empty (0 bytes)"),
    ("blank.txt", b" \n\t\n\r\n", "is empty"),
    ("nul.txt", bytes(5000), "is empty"),
    ("program.txt", b"\x7fELF" + bytes(range(256)) * 8, "is a program"),
    ("image.png", b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "is an image"),
    ("random.txt", bytes(range(256)) * 64, "is binary"),
    ("short.html", b"<html><body><nav>Home</nav><p>Log in</p></body></html>", "holds 0 characters"),
    ("menu.html", b"<html><body><nav>Home</nav></body></html>", "holds no text"),
    ("deep.html", b"<div>" * 20_000 + b"x" + b"</div>" * 20_000, "is nested too deep"),
    ("no.json", b'{"title": ', "is not JSON"),
    ("list.json", b"[1]", "a JSON object is wanted, here is int"),
    ("deep.json", b"[" * 100_000, "is nested too deep"),
    ("other.json", b'{"name": "x"}', "is no thread"),
    ("cut.log.gz", gzip.compress(b"hello" * 1000)[:9], "damaged gz archive"),
    ("quiet.log", b"step 1\nstep 2\n", "tells of no timeout and no error"),
    ("case.md", b"---\nid: case\nproject: x\ncause: y\n---\n# zh\n", "missing required field"),
    ("front.md", b"---\ntitle: [\n---\nText of a write-up\n", "the front matter is not YAML"),
    (
        "bomb.md",
        b"---\na: &a [x,x,x,x,x,x,x,x,x]\n"
        + b"".join(
            f"{name}: &{name} [{','.join([f'*{other}'] * 9)}]\n".encode()
            for other, name in zip("abcdefgh", "bcdefghi", strict=True)
        )
        + b"title: *i\n---\nText of a write-up\n",
        "refers to another place of itself",
    ),
    (
        "merged.md",
        b"---\na: &a {k: v}\nb: {<<: [*a, *a]}\n---\nText of a write-up\n",
        "refers to another place of itself",
    ),
    (
        "nested.md",
        b"---\ntitle: " + b"[" * 20_000 + b"\n---\nText of a write-up\n",
        "nests deeper than 8 levels",
    ),
    ("number.md", b"---\ntitle: !!int ''\n---\nText of a write-up\n", "is not YAML"),
    ("key.md", b"---\n? {a: b}\n: c\n---\nText of a write-up\n", "is not YAML"),
    (
        "bomb-case.md",
        b"---\nid: &a [x]\nproject: [*a, *a]\ncause: y\n---\n# zh\n",
        "refers to another place of itself",
    ),
    ("month.md", b"---\ndate: 2024-13-40\n---\nText of a write-up\n", "not YAML: month must be"),
]


@pytest.mark.parametrize(("name", "data", "reason"), REFUSED, ids=[row[0] for row in REFUSED])
def test_bad_file_is_named_with_its_reason(
    name: str, data: bytes, reason: str, write: Write, ingestor: Ingestor, sink: MemorySink
) -> None:
    """Of a bad file and a good one, the good one is in, the bad one is named with its reason."""
    bad, good = write(name, data), write("good-page.txt", PAGE)
    report = ingestor.ingest_paths([bad, good])
    assert [item.path for item in report.refused] == [str(bad)]
    assert reason in report.refused[0].reason
    assert [entry.title.zh for entry in sink.iter_entries()] == [ZH.title]


@pytest.mark.parametrize("code", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "gb18030"])
def test_encodings_give_the_same_entry(
    code: str, write: Write, ingestor: Ingestor, sink: MemorySink
) -> None:
    """A page in any usual encoding is read as the page it is."""
    report = ingestor.ingest_paths([write("page.txt", PAGE.encode(code))])
    (entry,) = sink.iter_entries()
    assert report.refused == ()
    assert tuple(fix.title.zh for fix in entry.fixes) == ZH.fixes
    noted = [item.reason for item in report.notes]
    assert noted == ([] if code == "utf-8-sig" else [f"read as {code.replace('-', '_')}"])


@pytest.mark.parametrize(
    ("code", "text"), [("big5", "訓練在評估階段逾時"), ("shift_jis", "学習が検証で停止します")]
)
def test_other_east_asian_encodings_are_not_taken_for_chinese(
    code: str, text: str, write: Write, ingestor: Ingestor, sink: MemorySink
) -> None:
    """Traditional Chinese and Japanese pages are read in their own encoding."""
    page = "Title of the page\n\n" + f"{text},所有節點都在等待。\n".replace("節點", "端末") * 6
    ingestor.ingest_paths([write("page.txt", page.encode(code))])
    (entry,) = sink.iter_entries()
    assert text in entry.chunks[0].text


def test_charset_found_behind_a_long_ascii_head(
    write: Write, ingestor: Ingestor, sink: MemorySink
) -> None:
    """A GBK page whose first kilobytes are ASCII is not garbled."""
    head = "<html><head><!--" + "x" * 9000 + "--></head><body><h1>标题一</h1>"
    page = (
        head + "<h2>解决方案</h2><p>" + "把随机种子设成一样就好了,这样每个进程看到同样的数据。" * 3
    )
    ingestor.ingest_paths([write("page.html", page.encode("gbk"))])
    (entry,) = sink.iter_entries()
    assert entry.title.zh == "标题一"
    assert entry.fixes[0].title.zh.startswith("把随机种子设成一样就好了")


def test_lone_surrogates_are_replaced(write: Write, ingestor: Ingestor, sink: MemorySink) -> None:
    """What no encoding can write does not reach the store; escaped pairs become one character."""
    text = PAGE.encode() + "坏\ud800尾巴".encode("utf-8", "surrogatepass")
    body = "All ranks hang in ALLREDUCE after the first epoch \ud83d\ude00 \udfff."
    thread = json.dumps({"title": "hang \ud800", "body": body, "html_url": "https://x.org/1"})
    report = ingestor.ingest_paths([write("page.txt", text), write("thread.json", thread)])
    assert report.refused == ()
    for entry in sink.iter_entries():
        whole = repr(entry).encode()  # raises on a lone surrogate
        assert b"\\ud800" not in whole
    (found,) = [entry for entry in sink.iter_entries() if entry.kind == "thread"]
    assert "\U0001f600 \ufffd." in found.chunks[0].text


@pytest.mark.parametrize("name", ["thread.json", "page.html", "page.txt"])
def test_a_file_of_one_long_line_is_read_whole(
    name: str, write: Write, ingestor: Ingestor, sink: MemorySink
) -> None:
    """Saved threads and minified pages have one line; only a paragraph is cut."""
    filler = "We saw that all ranks wait in ALLREDUCE. " * 2000
    texts = {
        "thread.json": json.dumps({"title": "hang", "body": f"{filler}\n\n## Fix\nset a seed"}),
        "page.html": f"<html><h1>Hang</h1><p>{filler}</p><h2>Fix</h2><p>set a seed</p></html>",
        "page.txt": f"Hang\n\n{filler}\n\nFix\n\nset a seed\n",
    }
    assert ingestor.ingest_paths([write(name, texts[name])]).refused == ()
    (entry,) = sink.iter_entries()
    assert "set a seed" in entry.chunks[-1].text


def test_broken_lines_of_a_thread_file(write: Write, ingestor: Ingestor, sink: MemorySink) -> None:
    """Each broken line is named by its number, each good one goes in."""
    good = {"title": "hang", "body": "All ranks hang in ALLREDUCE.", "html_url": "https://x.org/1"}
    lines = [json.dumps(good), '{"broken', "[1]", "", '"\\ud800"', "[" * 100_000, "{}"]
    path = write("threads.jsonl", "\n".join(lines))
    report = ingestor.ingest_paths([path])
    assert [item.path.removeprefix(str(path)) for item in report.refused] == [
        ":2", ":3", ":5", ":6", ":7",
    ]  # fmt: skip
    assert [entry.url for entry in sink.iter_entries()] == ["https://x.org/1"]


@pytest.mark.parametrize("name", ["line.txt", "line.html", "line.md", "line.json", "line.jsonl"])
def test_one_huge_line_costs_little_memory(name: str, tmp_path: Path, ingestor: Ingestor) -> None:
    """A line of 200 MB is refused with its size, in a fraction of it as memory."""
    path = tmp_path / name
    piece = b"a b c d " * 131_072
    with path.open("wb") as stream:
        for _ in range(200):
            stream.write(piece)
    tracemalloc.start()
    report = ingestor.ingest_paths([path])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    path.unlink()
    limit = MAX_RECORD_BYTES if name.endswith("jsonl") else MAX_PAGE_BYTES
    assert f"{limit // 1024 // 1024} MiB" in report.refused[0].reason
    assert peak < 5 * limit


def test_what_is_no_file(tmp_path: Path, ingestor: Ingestor, write: Write) -> None:
    """Links in circles, dangling links, pipes and missing paths are named; nothing hangs."""
    write("folder/page.txt", PAGE)
    (tmp_path / "folder" / "circle").symlink_to(tmp_path / "folder" / "circle")
    (tmp_path / "folder" / "again").symlink_to(tmp_path / "folder")
    (tmp_path / "folder" / "gone").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "folder" / "pipe.log")
    report = ingestor.ingest_paths([tmp_path / "folder", tmp_path / "missing"])
    assert report.added == 1
    assert {Path(item.path).name: item.reason.split(" — ")[0] for item in report.refused} == {
        "circle": "cannot be read: Too many levels of symbolic links",
        "gone": "is a link to a file that is gone",
        "pipe.log": "is not a file (a pipe, socket or device)",
        "missing": "does not exist",
    }


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder any user may enter, which pytest's own is not."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_no_rights(open_folder: Path, ingestor: Ingestor) -> None:
    """A folder and a file without rights are named; their neighbours go in."""
    (open_folder / "page.txt").write_text(PAGE)
    (open_folder / "closed").mkdir(mode=0o700)
    (open_folder / "closed" / "page.txt").write_text(PAGE)
    (open_folder / "secret.txt").write_text(PAGE)
    (open_folder / "secret.txt").chmod(0)
    (open_folder / "closed").chmod(0)
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        report = ingestor.ingest_paths([open_folder])
    finally:
        os.seteuid(user)
        (open_folder / "closed").chmod(0o700)
    assert report.added == 1
    assert {Path(item.path).name: item.reason.split(" — ")[0] for item in report.refused} == {
        "closed": "cannot be listed: Permission denied",
        "secret.txt": "cannot be read: Permission denied",
    }


def test_a_fault_of_the_program_does_not_end_the_run(
    write: Write, ingestor: Ingestor, sink: MemorySink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unexpected error on one document is reported as one, the next document goes in."""

    def fail(path: Path, _tools: ImportTools) -> Iterator[Entry]:
        raise ZeroDivisionError(path.name)

    broken = replace(FORMATS["case"], read=fail)
    monkeypatch.setitem(FORMATS, "case", broken)
    case = write("case.md", "---\nid: case\nproject: x\ncause: y\n---\n")
    report = ingestor.ingest_paths([case, write("page.txt", PAGE)])
    assert report.refused[0].reason == "could not be imported: ZeroDivisionError: case.md"
    assert len(sink.entries) == 1


def test_links_out_of_a_folder_are_left_out(
    tmp_path: Path, ingestor: Ingestor, write: Write, sink: MemorySink
) -> None:
    """A link inside a folder that leads elsewhere is refused by name; one inside it is taken."""
    write("elsewhere/private.txt", PAGE)
    write("folder/page.txt", PAGE)
    folder = tmp_path / "folder"
    (folder / "stolen.txt").symlink_to(tmp_path / "elsewhere" / "private.txt")
    (folder / "other").symlink_to(tmp_path / "elsewhere")
    (folder / "same.txt").symlink_to(folder / "page.txt")
    report = ingestor.ingest_paths([folder])
    assert report.added == 1
    assert {Path(item.path).name: item.code for item in report.refused} == {
        "stolen.txt": "outside_link",
        "other": "outside_link",
    }
    assert all("elsewhere" not in entry.source_key for entry in sink.iter_entries())
    assert ingestor.ingest_paths([folder / "stolen.txt"]).refused == ()  # named itself
