"""The seed pages and the labelled threads, as the mission's first import."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ingest import Ingestor
from kb.types.entries import Entry
from tests.ingest.fakes import MemorySink

pytestmark = pytest.mark.shared

# name of the page → causes and titles of the fixes, as a reader lists them
READ = {
    "000": (
        {"software-version", "data-loading-stall", "network-fault", "memory-pressure"},
        ("更换数据集格式", "升级CUDA环境", "调整超时参数"),
    ),
    "001": ({"uneven-data"}, ("显式设置随机种子", "补充numpy随机种子设置", "双重保险")),
    "002": ({"data-loading-stall"}, ("减少数据加载进程数", "降低预取量", "资源平衡原则")),
    "003": (
        {"rank0-long-work", "compute-skew"},
        ("优化日志存储位置", "调整训练配置", "监控与诊断"),
    ),
    "004": (
        {"software-version", "network-config", "memory-pressure", "timeout-too-short"},
        ("软件环境调整", "训练参数优化", "DeepSpeed配置调整", "NCCL参数调优", "硬件资源检查"),
    ),
}
FIRST = {
    "000": ("OpenCLIP", "2025-05-20", "eval"),
    "001": ("Llama-recipes", "2025-05-13", "save"),
    "002": ("Wenet", "2025-06-13", "train"),
    "003": ("Torchtitan", "2025-06-19", "train"),
    "004": ("VLM-R1", "2025-06-11", "train"),
}


@pytest.fixture
def seeds(ingestor: Ingestor, sink: MemorySink, shared_dir: Path) -> dict[str, Entry]:
    """The entries of the seed pages by the number in the file's name."""
    report = ingestor.ingest_paths([shared_dir / "seeds"])
    assert (report.added, report.refused, report.near_duplicates) == (5, (), ())
    return {Path(entry.source_key).name[:3]: entry for entry in sink.iter_entries()}


@pytest.mark.parametrize("name", sorted(READ))
def test_causes_and_fixes_are_those_a_reader_lists(name: str, seeds: dict[str, Entry]) -> None:
    """The causes section gives the cause ids, the fixes section one fix a point, all unverified."""
    entry = seeds[name]
    causes, fixes = READ[name]
    assert {claim.id for claim in entry.causes} == causes
    assert tuple(fix.title.zh for fix in entry.fixes) == fixes
    assert {claim.status for claim in entry.causes} == {"unverified"}
    assert {fix.status for fix in entry.fixes} == {"unverified"}
    assert (entry.project, entry.date, entry.tags.stage) == FIRST[name]
    assert (entry.kind, entry.language, entry.tags.backend) == ("writeup", "zh", "nccl")


def test_code_and_environment_are_kept(seeds: dict[str, Entry]) -> None:
    """Code under a point is that fix's command, line by line."""
    by_title = {fix.title.zh: fix for entry in seeds.values() for fix in entry.fixes}
    assert by_title["显式设置随机种子"].commands == (
        "ds.train_test_split(test_size=500, seed=1234)",
    )
    assert by_title["补充numpy随机种子设置"].commands == (
        "import numpy as np\nnp.random.seed(train_config.seed)",
    )
    lines = by_title["NCCL参数调优"].commands[0].split("\n")
    assert (len(lines), lines[0], lines[-1]) == (
        7,
        "export NCCL_P2P_DISABLE=1",
        "export NCCL_TIMEOUT=3600",
    )


def test_no_furniture_in_any_chunk(
    seeds: dict[str, Entry], sink: MemorySink, shared_dir: Path
) -> None:
    """No line from the login prompt on, and none above the title, is in a chunk."""
    del sink
    for path in sorted((shared_dir / "seeds").glob("0*.txt")):
        text = path.read_text(encoding="utf-8")
        footer = text[text.index("登录后查看全文") :]
        lines = {line.strip() for line in footer.splitlines() if len(line.strip()) > 1} | {"首页"}
        chunks = {
            line.strip()
            for chunk in seeds[path.name[:3]].chunks
            for line in chunk.text.splitlines()
        }
        assert lines & chunks == set(), path.name


def test_pages_without_their_markers_clean_the_same(
    seeds: dict[str, Entry], ingestor: Ingestor, sink: MemorySink, shared_dir: Path, tmp_path: Path
) -> None:
    """The card lists are known by their structure: without the marker lines nothing changes."""
    markers = ("登录后查看全文", "热门项目推荐", "相关项目推荐", "项目优选", "最新内容推荐", "收起")
    for path in sorted((shared_dir / "seeds").glob("0*.txt")):
        lines = path.read_text(encoding="utf-8").splitlines()
        kept = [line for line in lines if line.strip() not in markers]
        (tmp_path / path.name).write_text("\n".join(kept), encoding="utf-8")
    ingestor.ingest_paths([tmp_path])
    for path in sorted(tmp_path.glob("0*.txt")):
        stripped = sink.entries[str(path.resolve())]
        assert stripped.sections == seeds[path.name[:3]].sections, path.name


def test_second_run_changes_nothing(ingestor: Ingestor, sink: MemorySink, shared_dir: Path) -> None:
    """The same files again: all unchanged, the same entries."""
    paths = [shared_dir / "seeds", shared_dir / "threads" / "threads.jsonl"]
    first = ingestor.ingest_paths(paths)
    before = dict(sink.entries)
    second = ingestor.ingest_paths(paths)
    assert (first.added, first.updated, first.unchanged, first.refused) == (235, 0, 0, ())
    assert (second.added, second.updated, second.unchanged, second.refused) == (0, 0, 235, ())
    assert (sink.entries, second.entries) == (before, first.entries)


def test_threads_keep_their_labels(ingestor: Ingestor, sink: MemorySink, shared_dir: Path) -> None:
    """A labelled record keeps its cause, standing, project, date, backend and stage."""
    path = shared_dir / "threads" / "threads.jsonl"
    ingestor.ingest_paths([path])
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    entries = {entry.source_key: entry for entry in sink.iter_entries()}
    standing = {"confirmed": "confirmed", "likely": "reported"}
    for record in records:
        entry = entries[f"{record['url']}#{record['id']}"]
        assert entry.causes[0].id == record["cause"]
        assert tuple(claim.id for claim in entry.causes[1:]) == tuple(record["also"])
        assert entry.causes[0].status == standing[record["confidence"]]
        assert (entry.project, entry.date, entry.url) == (
            record["repo"],
            record["date"],
            record["url"],
        )
        assert (entry.tags.backend, entry.tags.stage) == (record["backend"], record["stage"])
        assert set(record["framework"]) <= set(entry.tags.frameworks)
