"""An archive of logs: a line of each, gone on with after any end, the same by two processes."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from app.cli import main as cli
from app.cli.common import State
from app.cli.ingest import read_whole_file
from app.inputs import archive
from app.inputs.archive import ArchiveRun, archived_log, diagnose_archive
from app.inputs.in_order import in_order
from ingest import Ingestor
from ingest.types import FileReading
from kb.bootstrap import open_service
from kb.errors import InputError, MissingExtraError
from kb.incidents.archive import ArchivedLog
from kb.service import Service
from kb.settings import Settings
from kb.types.entries import Entry
from tests.shipped_part import shipped_cases, shipped_part

OOM = """\
[rank{rank}]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate {rank}36.00 MiB.
[2026-03-0{day} 10:00:00,000] [rank0]:[E ProcessGroupNCCL.cpp:563] [Rank 0] Watchdog caught \
collective operation timeout: WorkNCCL(SeqNum={rank}12, OpType=ALLREDUCE, NumelIn=25165824, \
NumelOut=25165824, \
Timeout(ms)=600000) ran for 600068 milliseconds before timing out.
"""
DISK = """\
[rank1]: OSError: [Errno 28] No space left on device: '/scratch/ckpt-1'
[rank0]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1, OpType=BROADCAST, \
NumelIn=7340032, NumelOut=7340032, Timeout(ms)=600000) ran for 600068 milliseconds.
"""
MARCH_2 = 1_772_450_000  # 2026, a Monday


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> Iterator[Service]:
    """The shipped data with a dozen of the cases."""
    cases = shipped_cases(data_dir)[:12]
    data = shipped_part(tmp_path_factory.mktemp("data"), data_dir, cases)
    service = open_service(Settings(home=tmp_path_factory.mktemp("home"), data=data))
    yield service
    service.close()


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder of six files: four failures of two kinds, a log in order, and no log at all."""
    folder = tmp_path / "logs"
    (folder / "b").mkdir(parents=True)
    for rank in (1, 2, 3):
        text = OOM.format(rank=rank, day=rank)
        (folder / f"oom-{rank}.log").write_text(text)
    (folder / "b" / "disk.log").write_text(DISK)
    os.utime(folder / "b" / "disk.log", (MARCH_2, MARCH_2))
    (folder / "calm.log").write_text("step 1 loss 0.5\nstep 2 loss 0.4\ntraining finished\n")
    (folder / "core.bin").write_bytes(b"\x7fELF\0\0\0\0" * 200)
    (folder / ".hidden").write_text(DISK)
    return folder


def run(service: Service, paths: Path | Sequence[Path], out: Path, **options: Any) -> ArchiveRun:
    """Diagnose an archive in English."""
    given = [paths] if isinstance(paths, Path) else paths
    return diagnose_archive(service, given, out, language="en", **options)


def lines_of(out: Path) -> list[dict[str, Any]]:
    """What stands in the file."""
    return [json.loads(line) for line in out.read_text().splitlines()]


def names_of(out: Path) -> list[str]:
    """Names of the logs in their order."""
    return [Path(line["path"]).name for line in lines_of(out)]


ORDER = ["calm.log", "core.bin", "oom-1.log", "oom-2.log", "oom-3.log", "disk.log"]


def test_a_line_of_each_log_and_what_they_come_to(few: Service, logs: Path) -> None:
    """In the order of the files; failures of one kind are one group, by week of the log's clock."""
    out = logs / "out.jsonl"
    done = run(few, [logs, logs / "calm.log"], out)
    assert (done.diagnosed, done.known, names_of(out)) == (6, 0, ORDER)
    by_name = {Path(line["path"]).name: line for line in lines_of(out)}
    single = few.answer(few.read_paths([logs / "oom-2.log"]), language="en")
    oom = by_name["oom-2.log"]
    assert (oom["status"], oom["cause"]) == (single.status, single.causes[0].id)
    assert oom["headline"] == single.headline
    assert (oom["date"], oom["op"], oom["backend"]) == ("2026-03-02", "ALLREDUCE", "nccl")
    assert by_name["core.bin"]["status"] == "refused"
    assert by_name["core.bin"]["error"]
    assert by_name["calm.log"]["status"] == "no_timeout"
    summary = done.summary
    assert (summary.logs, sum(summary.statuses.values())) == (6, 6)
    assert [(group.logs, Path(group.example).name) for group in summary.groups] == [
        (3, "oom-1.log"),
        (1, "disk.log"),
    ]
    weeks = {week.week: week.logs for week in summary.weeks if week.cause == oom["cause"]}
    assert weeks == {"2026-02-23": 1, "2026-03-02": 3}


def test_a_later_run_goes_on(few: Service, logs: Path) -> None:
    """What is known is passed over; a changed log, a torn line, other knowledge are done again."""
    out = logs / "out.jsonl"
    first = run(few, logs, out)
    whole = out.read_bytes()
    again = run(few, logs, out)
    assert (again.diagnosed, again.known, out.read_bytes()) == (0, 6, whole)
    assert again.summary == first.summary

    out.write_bytes(whole[:-20])
    assert run(few, logs, out).diagnosed == 1
    assert out.read_bytes() == whole

    log = logs / "oom-1.log"
    os.utime(log, (1, 1))  # touched, and the same
    assert run(few, logs, out).diagnosed == 0
    log.write_text(DISK + DISK)
    changed = run(few, logs, out)
    assert (changed.diagnosed, sorted(names_of(out))) == (1, sorted(ORDER))
    assert [group.logs for group in changed.summary.groups] == [2, 2]

    log.unlink()
    assert (run(few, logs, out).diagnosed, len(names_of(out))) == (0, 6)
    rows = [replace_knowledge(line) for line in out.read_text().splitlines()]
    out.write_text("".join(f"{row}\n" for row in rows))
    assert run(few, logs, out).diagnosed == 5
    assert sorted(names_of(out)) == sorted(set(ORDER) - {"oom-1.log"})


def replace_knowledge(line: str) -> str:
    """The line of another release."""
    return json.dumps(json.loads(line) | {"knowledge": "0" * 16})


@pytest.mark.parametrize("stop", [1, 3, 5])
def test_a_run_that_was_ended_loses_and_repeats_nothing(
    few: Service, logs: Path, stop: int
) -> None:
    """The file in the end is that of a run from beginning to end."""
    out, whole = logs / "out.jsonl", logs.parent / "whole.jsonl"
    summary = run(few, logs, whole).summary

    def interrupt(done: int, _total: int, _name: str) -> None:
        if done == stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(few, logs, out, on_progress=interrupt)
    rest = run(few, logs, out)
    assert (rest.known, rest.diagnosed) == (stop, 6 - stop)
    assert out.read_bytes() == whole.read_bytes()
    assert rest.summary == summary


def test_the_search_runs_once_a_kind(
    few: Service, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logs that differ in ranks and numbers share what the search found."""
    asked: list[str] = []
    search = few.search_solved

    def counting(query: str, **options: Any) -> Any:
        asked.append(query)
        return search(query, **options)

    monkeypatch.setattr(few, "search_solved", counting)
    for number in range(4):
        text = OOM.format(rank=number + 1, day=4).replace("MiB", "MiB (of many)")
        (logs / f"more-{number}.log").write_text(text)
    run(few, sorted(logs.glob("more-*.log")), logs / "out.jsonl")
    assert len(asked) <= 1


def test_old_logs_are_left_out_and_wrong_words_refused(few: Service, logs: Path) -> None:
    """By the file's time; a date that is none, a path that is not there, a file in use are told."""
    os.utime(logs / "oom-1.log", (1_600_000_000, 1_600_000_000))
    out = logs / "out.jsonl"
    assert run(few, logs, out, since="2021-01-01").diagnosed == 5
    for wrong in ({"since": "soon"}, {"paths": logs / "gone"}, {"out": logs}):
        options: dict[str, Any] = {"paths": logs, "out": out, **wrong}
        with pytest.raises(InputError):
            run(few, options.pop("paths"), options.pop("out"), **options)

    def second(done: int, _total: int, _name: str) -> None:
        if not done:
            with pytest.raises(InputError, match="another run"):
                run(few, logs, out)

    run(few, logs, out, on_progress=second)


def both(service: Service, path: str) -> tuple[ArchivedLog, FileReading]:
    """A log's line, and what an import reads of it."""
    return archived_log("en", service, path), read_whole_file(service, Path(path))


@pytest.mark.slow
def test_two_processes_do_what_one_does(
    few: Service, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines and entries are the same, in the same order; so are the file and the report then."""
    paths = sorted(str(path) for path in logs.rglob("*") if path.is_file()) * 4  # several batches
    here = [both(few, path) for path in paths]
    there = list(in_order(both, paths, settings=few.settings, jobs=2))
    assert there == here

    lines = {log.path: log for log, _ in there}
    readings = {reading.path: reading for _, reading in there}
    one, two = logs / "one.jsonl", logs / "two.jsonl"
    summary = run(few, sorted(logs.glob("*.log")), one).summary

    def other_processes(_work: object, paths: Iterator[str], **options: Any) -> Iterator[Any]:
        assert options == {"settings": few.settings, "jobs": 2}
        return map(lines.__getitem__, paths)

    monkeypatch.setattr(archive, "in_order", other_processes)
    assert run(few, sorted(logs.glob("*.log")), two, jobs=2).summary == summary
    assert one.read_bytes() == two.read_bytes()

    class Sink:
        """Remembers entries by their source."""

        def __init__(self) -> None:
            self.entries: dict[str, Entry] = {}

        def apply(self, entries: Sequence[Entry]) -> dict[str, int]:
            """Store a group."""
            self.entries |= {entry.source_key: entry for entry in entries}
            return {"added": len(entries)}

    sinks = Sink(), Sink()
    options: dict[str, Any] = {"data": few.settings.data, "summarise": few.summarise}
    reports = [
        Ingestor(sink, few.reader, read_elsewhere=elsewhere, **options).ingest_paths([logs / "b"])
        for sink, elsewhere in zip(
            sinks, (None, lambda paths: map(readings.__getitem__, paths)), strict=True
        )
    ]
    assert reports[0] == reports[1]
    assert reports[0].added == 1
    assert sinks[0].entries == sinks[1].entries


@pytest.mark.slow
def test_ray_does_what_one_process_does(few: Service, logs: Path) -> None:
    """A real Ray of this machine writes the same lines in the same order."""
    pytest.importorskip("ray", reason="needs the extra ray, 600 MB")
    one, two = logs.parent / "one.jsonl", logs.parent / "two.jsonl"
    summary = run(few, logs, one).summary
    assert run(few, logs, two, ray="local").summary == summary
    assert one.read_bytes() == two.read_bytes()


def test_without_ray_its_extra_is_named(
    few: Service, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says what to install; nothing is written."""
    monkeypatch.setitem(sys.modules, "ray", None)
    out = logs.parent / "out.jsonl"
    with pytest.raises(MissingExtraError) as refused:
        run(few, logs, out, ray="127.0.0.1:1")
    assert "timeout-kb[ray]" in refused.value.todo
    assert out.read_bytes() == b""


def test_the_verb_shows_tables_and_gives_json(
    few: Service, logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counts, causes by week, groups where asked for; the same numbers as JSON."""
    out = logs / "out.jsonl"
    words = ["diagnose-archive", str(logs), "--out", str(out), "--group", "--lang", "en"]
    picture = logs.parent / "weeks.svg"
    words += ["--chart", str(picture)]
    state = State(settings_source=lambda: few.settings)
    assert cli.run(words, state=state) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("6 logs: diagnosed 4,")
    assert "Causes by week" in shown
    assert "Failures of one kind" in shown
    assert "OutOfMemoryError" in shown
    assert (
        cli.run([*words, "--format", "json"], state=State(settings_source=lambda: few.settings))
        == 0
    )
    given = json.loads(capsys.readouterr().out)
    assert all(week["week"] in picture.read_text() for week in given["summary"]["weeks"])
    assert (given["known"], given["summary"]["logs"]) == (6, 6)
