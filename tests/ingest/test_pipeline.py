"""The run as a whole: idempotence, replacement, groups, failures of the store, redaction."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from ingest import Ingestor
from ingest.pipeline import GROUP, ImportRecord, reader_stamp
from kb.errors import StoreError
from kb.store import Store
from kb.types.entries import Entry
from kb.types.incident import LogReading
from tests.ingest.fakes import MemorySink, WatchdogReader
from tests.ingest.pages import ARTICLES, EN, SITES, ZH, text_page

Write = Callable[[str, str | bytes], Path]
PAGE = text_page(SITES["cards"], ZH, "spaced")
LOG = (
    "[rank3]:[E ProcessGroupNCCL.cpp:563] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=88, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for "
    "600031 milliseconds before timing out.\n"
)


def thread(number: int, body: str = "All ranks hang in ALLREDUCE after the first epoch.") -> str:
    """A thread as one line of JSON."""
    url = f"https://github.com/acme/toaster/issues/{number}"
    return json.dumps({"title": f"hang {number}", "body": body, "html_url": url}) + "\n"


def test_again_is_unchanged_and_a_change_replaces(
    write: Write, ingestor: Ingestor, sink: MemorySink
) -> None:
    """The same content again changes nothing; new content under the same path takes its place."""
    path = write("page.txt", PAGE)
    first = ingestor.ingest_paths([path])
    again = ingestor.ingest_paths([path])
    path.write_text(PAGE.replace("拷贝后核对校验和", "拷贝后比较大小"))
    changed = ingestor.ingest_paths([path])
    assert [(r.added, r.updated, r.unchanged) for r in (first, again, changed)] == [
        (1, 0, 0),
        (0, 0, 1),
        (0, 1, 0),
    ]
    (entry,) = sink.iter_entries()
    assert (entry.id,) == changed.entries != first.entries
    assert "拷贝后比较大小" in "".join(chunk.text for chunk in entry.chunks)


def test_ids_come_from_the_content(write: Write, ingestor: Ingestor, sink: MemorySink) -> None:
    """An id is its kind and the first 16 digits of the digest; a copy is named, not stored."""
    first, copy = write("a.txt", PAGE), write("b.txt", PAGE)
    report = ingestor.ingest_paths([first, copy])
    (entry,) = sink.iter_entries()
    assert entry.id == f"writeup-{entry.digest[:16]}"
    assert entry.source_key == str(first.resolve())
    assert [(item.path, item.reason) for item in report.notes] == [
        (str(copy), f"has the same content as {first}")
    ]


def test_near_duplicates_of_the_run_and_of_the_store_are_named(
    write: Write, ingestor: Ingestor
) -> None:
    """A repost on another site is named with its likeness, in one run or a later one."""
    one = write("one.txt", PAGE)
    two = write("two.txt", text_page(SITES["blog-zh"], ZH, "flat"))
    other = write("other.txt", text_page(SITES["blog-en"], EN, "flat"))
    together = ingestor.ingest_paths([one, two, other])
    (pair,) = together.near_duplicates
    assert {pair.entry_id, pair.other_id} == set(together.entries[:2])
    assert pair.similarity > 0.8
    (later,) = ingestor.ingest_paths([two]).near_duplicates
    assert {later.entry_id, later.other_id} == set(together.entries[:2])


def test_a_file_is_in_one_group(write: Write, ingestor: Ingestor, sink: MemorySink) -> None:
    """Files are gathered into groups of `GROUP` entries, and no file is parted between two."""
    for number in range(10):
        lines = "".join(thread(100 * number + line) for line in range(10))
        write(f"threads/{number}.jsonl", lines)
    report = ingestor.ingest_paths([write("threads/x.txt", PAGE).parent])
    assert report.added == 101
    assert sink.groups == [70, 31]
    assert sink.groups[0] == GROUP + 6


def test_a_full_disk_ends_the_run_and_keeps_what_was_committed(
    write: Write, ingestor: Ingestor, sink: MemorySink
) -> None:
    """The store's error reaches the caller; groups before it are there, its own is not."""
    for number in range(20):
        write(f"t/{number:02}.jsonl", "".join(thread(10 * number + i) for i in range(10)))
    sink.fail_at = 1
    with pytest.raises(StoreError, match="the disk is full"):
        ingestor.ingest_paths([write("t/z.txt", PAGE).parent])
    assert len(sink.entries) == 70
    sink.fail_at = None
    report = ingestor.ingest_paths([write("t/z.txt", PAGE).parent])
    assert (report.added, report.unchanged) == (131, 70)


def test_interruption_leaves_whole_groups(
    write: Write, ingestor: Ingestor, sink: MemorySink
) -> None:
    """Ctrl-C leaves the groups committed so far, whole."""
    for number in range(20):
        write(f"t/{number:02}.jsonl", "".join(thread(10 * number + i) for i in range(10)))

    def interrupted(done: int, total: int, _name: str) -> None:
        assert total == 21
        if done == 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ingestor.ingest_paths([write("t/z.txt", PAGE).parent], on_progress=interrupted)
    assert len(sink.entries) == 70


def test_progress_names_each_source_once(write: Write, ingestor: Ingestor) -> None:
    """Every file is counted, the refused ones too; first none is done."""
    paths = [write("a.txt", PAGE), write("b.txt", PAGE), write("c.log", "step 1\n")]
    calls: list[tuple[int, int, str]] = []
    ingestor.ingest_paths(paths, on_progress=lambda *call: calls.append(call))
    assert calls == [(0, 3, ""), (1, 3, "a.txt"), (2, 3, "b.txt"), (3, 3, "c.log")]


SECRETS = ("hf_abcdefghijklmnopqrstuvwxyz123456", "jane.roe@example.com", "hunter2secret")


def test_secrets_do_not_reach_the_store(write: Write, ingestor: Ingestor, sink: MemorySink) -> None:
    """Tokens, addresses and passwords in any kind of source are gone from every field."""
    said = f"token {SECRETS[0]} mail {SECRETS[1]} url https://joe:{SECRETS[2]}@host/x."
    page = PAGE.replace("训练脚本改读本地路径", f"训练脚本改读本地路径 {said}")
    html = f"<html><body><h1>Hang</h1><h2>Solution</h2><p>Set it. {said}</p></body></html>"
    body = f"All ranks hang in ALLREDUCE. {said}"
    ingestor.ingest_paths(
        [
            write("page.txt", page),
            write("page.html", html),
            write("note.md", f"# Hang\n\n## Root cause\n\nSomebody forgot the seed. {said}\n"),
            write("thread.jsonl", thread(1, body)),
        ]
    )
    stored = list(sink.iter_entries())
    assert len(stored) == 4
    assert [s for s in SECRETS for entry in stored if s in repr(entry)] == []
    assert all("<redacted:token>" in repr(entry) for entry in stored)


def test_a_readme_found_in_a_folder_is_left_out(write: Write, ingestor: Ingestor) -> None:
    """A folder's description is no write-up, unless it is named itself."""
    readme = write(
        "folder/README.md", "# Pages\n\nThe pages of this folder tell of hangs we met last year.\n"
    )
    write("folder/page.txt", PAGE)
    found = ingestor.ingest_paths([readme.parent])
    named = ingestor.ingest_paths([readme])
    assert (found.added, [item.path for item in found.notes]) == (1, [str(readme)])
    assert (named.added, named.notes) == (1, ())


def test_order_of_the_paths_decides(write: Write, ingestor: Ingestor, sink: MemorySink) -> None:
    """Entries are reported in the order of the paths, files of a folder by name, each once."""
    for name, article in (("b/2.txt", ZH), ("b/10.txt", EN)):
        write(name, text_page(SITES["cards"], article, "flat"))
    first = write("z.txt", PAGE)
    report = ingestor.ingest_paths([first, first.parent / "b", first])
    names = {entry.id: Path(entry.source_key).name for entry in sink.iter_entries()}
    assert [names[i] for i in report.entries] == ["z.txt", "10.txt", "2.txt"]


def test_pasted_log_with_a_few_words_is_an_incident(
    write: Write, ingestor: Ingestor, sink: MemorySink
) -> None:
    """A text file that is a log becomes an open incident, a page that quotes one a write-up."""
    ingestor.ingest_paths(
        [
            write("paste.txt", "训练卡住了,帮忙看看\n" + LOG * 3),
            write("rank3.log", LOG),
            write("page.txt", PAGE),
        ]
    )
    kinds = {
        Path(entry.source_key).name: (entry.kind, entry.resolved) for entry in sink.iter_entries()
    }
    assert kinds == {
        "paste.txt": ("incident", False),
        "rank3.log": ("incident", False),
        "page.txt": ("writeup", True),
    }


def test_a_long_line_of_an_incident_ends_between_words(
    write: Write, ingestor: Ingestor, sink: MemorySink
) -> None:
    """Where the log and the signature leave out the rest of a line, the last word is whole."""
    long = LOG.strip() + " and waits" * 40
    ingestor.ingest_paths([write("rank3.log", long)])
    (entry,) = sink.iter_entries()
    log = "\n".join(section.text for section in entry.sections if section.role != "input")
    for shown in ("\n".join(entry.signature), log):
        (cut,) = (line for line in shown.splitlines() if "WorkNCCL" in line)
        assert cut.endswith((" and…", " waits…"))
        assert long.startswith(cut.removesuffix("…"))


@pytest.mark.parametrize("language", sorted(ARTICLES))
def test_shipped_cases_are_cases(
    language: str, data_dir: Path, tmp_path: Path, ingestor: Ingestor, sink: MemorySink
) -> None:
    """Files of data/cases keep their slug, their reviewed claims and both languages."""
    cases = sorted((data_dir / "cases").glob("*.md"))[:3]
    for path in cases:
        shutil.copy(path, tmp_path)
    report = ingestor.ingest_paths([tmp_path])
    assert report.refused == ()
    assert [entry.id for entry in sink.iter_entries()] == [path.stem for path in cases]
    assert {entry.kind for entry in sink.iter_entries()} <= {"case"}
    assert all(
        any(chunk.language == language for chunk in entry.chunks) for entry in sink.iter_entries()
    )


# --- the same files again ------------------------------------------------------------------------


class CountingReader(WatchdogReader):
    """Counts the logs it reads."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def read_paths(self, paths: Sequence[Path]) -> LogReading:
        """Read log files."""
        self.read += [path.name for path in paths]
        return super().read_paths(paths)


class StoreSink(MemorySink):
    """A real store, without a search index."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store

    def apply(self, entries: Sequence[Entry]) -> Mapping[str, int]:
        """Store a group."""
        self.groups.append(len(entries))
        return self.store.upsert(entries)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    store = Store.open(tmp_path / "home" / "kb.sqlite3")
    yield store
    store.close()


def _log(number: int) -> str:
    return LOG.replace("SeqNum=88", f"SeqNum={number}")


def test_files_that_did_not_change_are_not_read_again(
    write: Write, store: Store, data_dir: Path
) -> None:
    """By their content; a changed file, a lost entry, another reader make them be read."""
    paths = [write(f"{number}.log", _log(number)) for number in range(3)]
    paths += [write("page.txt", PAGE), write("threads.jsonl", thread(1) + thread(2))]
    reader = CountingReader()

    def again(stamp: str = "1") -> tuple[int, int, int, list[str]]:
        reader.read.clear()
        record = ImportRecord(store.imported_files, stamp)
        ingestor = Ingestor(StoreSink(store), reader, data=data_dir, record=record)
        report = ingestor.ingest_paths(paths)
        assert len(report.entries) == 6
        return report.added, report.unchanged, report.known_files, list(reader.read)

    logs = ["0.log", "1.log", "2.log"]
    assert again() == (6, 0, 0, logs)
    assert again() == (0, 6, 5, [])
    write("1.log", _log(7))
    assert again()[2:] == (4, ["1.log"])
    (lost,) = (entry.id for entry in store.iter_entries() if entry.source_key == str(paths[0]))
    store.delete([lost])
    assert again() == (1, 5, 4, ["0.log"])
    assert again("2") == (0, 6, 0, logs)
    assert again("1")[2] == 0


def test_what_was_refused_or_noted_is_told_again(
    write: Write, store: Store, data_dir: Path
) -> None:
    """A file with something to say about is read every time, and a copy named every time."""
    paths = [write("a.log", _log(1)), write("copy.log", _log(1)), write("calm.log", "step 1\n")]
    paths.append(write("threads.jsonl", thread(1) + "no JSON\n"))
    record = ImportRecord(store.imported_files, "1")
    reports = [
        Ingestor(StoreSink(store), CountingReader(), data=data_dir, record=record).ingest_paths(
            paths
        )
        for _ in range(2)
    ]
    assert [report.known_files for report in reports] == [0, 1]
    assert reports[0].refused == reports[1].refused != ()
    assert reports[0].notes == reports[1].notes != ()


def test_an_interrupted_run_reads_again_what_is_not_stored(
    write: Write, store: Store, data_dir: Path
) -> None:
    """A file is known once its entries are in the store, not before."""
    paths = [write(f"{number}.log", _log(number)) for number in range(GROUP + 3)]
    record, sink = ImportRecord(store.imported_files, "1"), StoreSink(store)

    def fail(entries: Sequence[Entry]) -> Mapping[str, int]:
        if sink.groups:
            raise KeyboardInterrupt
        return StoreSink.apply(sink, entries)

    sink.apply = fail  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        Ingestor(sink, CountingReader(), data=data_dir, record=record).ingest_paths(paths)
    reader = CountingReader()
    report = Ingestor(StoreSink(store), reader, data=data_dir, record=record).ingest_paths(paths)
    assert (report.added, report.known_files, len(reader.read)) == (3, GROUP, 3)


def test_the_reader_is_another_when_words_or_knowledge_change(tmp_path: Path) -> None:
    """A changed file of the data, or knowledge of another digest."""
    (tmp_path / "ingest").mkdir()
    (tmp_path / "ingest" / "words.yaml").write_text("a")
    first = reader_stamp(tmp_path, "k1")
    assert reader_stamp(tmp_path, "k1") == first != reader_stamp(tmp_path, "k2")
    (tmp_path / "ingest" / "words.yaml").write_text("ab")
    assert reader_stamp(tmp_path, "k1") != first
