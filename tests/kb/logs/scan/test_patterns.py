"""The shipped patterns keep what data/patterns.yaml promises."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kb.errors import DataError
from kb.knowledge.load import read_yaml
from kb.logs.scan.scanner import Scanner, regex_flags
from kb.settings import shipped_data
from kb.types.knowledge import Bilingual, Pattern

PATTERNS = read_yaml(shipped_data() / "patterns.yaml", tuple[Pattern, ...])
CORPUS = sorted({line for p in PATTERNS for line in (*p.examples, *p.negatives)})
FIELDS = frozenset(
    {
        "addr",
        "clock",
        "completed",
        "count",
        "bus",
        "cuda",
        "deepspeed",
        "device",
        "driver",
        "dtypes",
        "duration",
        "elapsed",
        "enqueued",
        "epoch",
        "exception",
        "exit_code",
        "expected",
        "framework",
        "from",
        "key",
        "gid",
        "host",
        "iface",
        "limit",
        "local_rank",
        "magic",
        "msg",
        "name",
        "nccl",
        "number",
        "nvml",
        "numel_in",
        "numel_out",
        "op",
        "peer",
        "peer_dtypes",
        "peer_op",
        "peer_seq",
        "peer_shape",
        "peers",
        "percent",
        "pg",
        "pid",
        "present",
        "process",
        "ran_ms",
        "rank",
        "ranks",
        "rccl",
        "received",
        "return_code",
        "seconds",
        "seq",
        "shape",
        "signal",
        "signal_number",
        "size",
        "source",
        "status",
        "step",
        "steps",
        "timeout_ms",
        "to",
        "unit",
        "torch",
        "total",
        "value",
        "vendor",
        "version",
        "what",
        "world_size",
        "xid",
        "boot",
        "link",
    }
)


def compile_re(pattern: Pattern) -> re.Pattern[bytes]:
    """The pattern for `re` on bytes: the reference the scan is tested against."""
    return re.compile(pattern.regex.encode(), regex_flags(pattern))


@pytest.fixture(scope="module")
def scanner() -> Scanner:
    """All patterns in one database that reports every hit."""
    return Scanner(PATTERNS, once_a_block=False)


def by_id(pattern: Pattern) -> str:
    """The id, for the test's name."""
    return pattern.id


@pytest.mark.parametrize("pattern", PATTERNS, ids=by_id)
def test_examples_match_and_negatives_do_not(pattern: Pattern) -> None:
    """A pattern finds the lines it was written for and none of its look-alikes."""
    expression = compile_re(pattern)
    assert [line for line in pattern.examples if not expression.search(line.encode())] == []
    assert [line for line in pattern.negatives if expression.search(line.encode())] == []


def test_hyperscan_agrees_with_re(scanner: Scanner) -> None:
    """On every line of the examples of all patterns both engines find the same patterns."""
    expressions = [compile_re(pattern) for pattern in PATTERNS]
    for line in CORPUS:
        data = line.encode()
        by_hyperscan = {number for number, _ in scanner.scan(data)}
        by_re = {number for number, e in enumerate(expressions) if e.search(data)}
        assert by_hyperscan == by_re, line


def test_one_scan_finds_what_single_lines_do(scanner: Scanner) -> None:
    """Lines standing in one block are found as they are alone: no pattern crosses a line's end."""
    block = "\n".join(CORPUS).encode()
    found: dict[int, set[int]] = {}
    for number, end in scanner.scan(block):
        found.setdefault(block.count(b"\n", 0, end - 1), set()).add(number)
    alone = {
        place: hits
        for place, line in enumerate(CORPUS)
        if (hits := {number for number, _ in scanner.scan(line.encode())})
    }
    assert found == alone


@pytest.mark.parametrize("pattern", PATTERNS, ids=by_id)
def test_captures_fill_known_fields(pattern: Pattern) -> None:
    """Groups of a capture are fields the program knows, and the capture fits some example."""
    if not pattern.capture:
        return
    capture = re.compile(pattern.capture, re.IGNORECASE if pattern.ignore_case else 0)
    assert set(capture.groupindex) - FIELDS == set()
    assert capture.groupindex


@pytest.mark.parametrize("pattern", PATTERNS, ids=by_id)
def test_every_pattern_is_documented(pattern: Pattern) -> None:
    """Example, look-alike, meaning in both languages, a source, and a reason for weights."""
    assert pattern.examples
    assert pattern.negatives
    assert pattern.means.zh
    assert pattern.means.en
    assert all(source.startswith("https://") for source in pattern.sources)
    assert pattern.sources
    assert bool(pattern.reason) == bool(pattern.causes)


def test_there_are_enough() -> None:
    """At least 150 patterns, 20 of them root candidates for each of the common backends."""
    assert len(PATTERNS) >= 150
    assert len({p.id for p in PATTERNS}) == len(PATTERNS)
    assert sum(p.kind == "root" for p in PATTERNS) >= 60


def test_a_bad_expression_is_named() -> None:
    """An expression hyperscan refuses is reported with its pattern's id and what to do."""
    bad = Pattern(
        id="bad-one",
        regex="(?<=x)y",
        kind="root",
        event="bad",
        means=Bilingual(zh="坏", en="bad"),
        examples=("xy",),
    )
    with pytest.raises(DataError, match="bad-one") as caught:
        Scanner([bad], once_a_block=False)
    assert "look-around" in caught.value.todo


def test_cache_gives_the_same_database(tmp_path: Path) -> None:
    """A database read back finds the same; a damaged cache file is replaced, not believed."""
    first = Scanner(PATTERNS, once_a_block=True, cache=tmp_path)
    (kept,) = tmp_path.glob("scan-*.hsdb")
    block = "\n".join(CORPUS).encode()
    expected = first.scan(block)
    assert Scanner(PATTERNS, once_a_block=True, cache=tmp_path).scan(block) == expected
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-100] + bytes(100))
    assert Scanner(PATTERNS, once_a_block=True, cache=tmp_path).scan(block) == expected
    assert kept.read_bytes() == whole


def test_flags_follow_the_pattern() -> None:
    """`ignore_case` reaches the reference expression; lines are anchored one by one."""
    pattern = next(p for p in PATTERNS if p.ignore_case)
    assert regex_flags(pattern) & re.IGNORECASE
    assert regex_flags(pattern) & re.MULTILINE
