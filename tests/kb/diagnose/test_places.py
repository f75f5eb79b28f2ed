"""Where things stand: the line of the input, and of several files the file, that shows them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kb.service import Service
from kb.types.answer import Diagnosis

WORDS = """\
We train with FSDP on 8 GPUs.

2024-05-01 10:00:00 INFO loading

export NCCL_TIMEOUT=3600
export NCCL_P2P_DISABLE=1
export NCCL_P2P_LEVEL=NVL
2024-05-01 10:00:01 INFO starting
It hangs while saving the checkpoint.
"""
OOM = """\
2024-05-01 10:00:02 INFO starting

[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0
"""
TIMEOUT = """\
2024-05-01 10:00:02 INFO starting
[rank1]:[E ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation timeout: \
WorkNCCL(SeqNum=14217, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for \
600105 milliseconds before timing out.
"""
FILES = {"about.txt": WORDS, "node-0/rank_0.log": OOM, "node-1/rank_1.log": TIMEOUT}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A person's words and the logs of two ranks, two of them in folders."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def shown(diagnosis: Diagnosis) -> Iterator[tuple[str, int, str]]:
    """File, line and text of everything in the answer that stands on a line."""
    first = diagnosis.incident.first_error
    if first is not None:
        yield first.file, first.line, first.text
    for fact in diagnosis.incident.facts:
        if fact.line:
            yield fact.file, fact.line, fact.quote
    for cause in diagnosis.causes:
        for item in cause.evidence:
            if item.line:
                yield item.file, item.line, item.quote
    for warning in diagnosis.warnings:
        yield warning.file, warning.line, warning.setting


def test_each_line_named_holds_what_is_quoted(service: Service) -> None:
    """Evidence, words, settings, facts and the first error stand on the line they name."""
    text = WORDS + OOM + TIMEOUT
    lines = text.split("\n")
    diagnosis = service.diagnose_text(text, top=19)
    found = list(shown(diagnosis))
    assert [place for place in found if place[2] not in lines[place[1] - 1]] == []
    assert {file for file, _, _ in found} == {""}
    said = [item for cause in diagnosis.causes for item in cause.evidence if item.kind == "text"]
    assert {item.line for item in said} == {1, 9}


def test_of_several_files_the_file_is_named(service: Service, folder: Path) -> None:
    """Every line goes with the file it stands in, named below the folder all files share."""
    diagnosis = service.answer(service.read_paths([folder]), top=19)
    wrong = [
        place
        for place in shown(diagnosis)
        if place[2] not in FILES[place[0]].split("\n")[place[1] - 1]
    ]
    assert wrong == []
    assert {file for file, _, _ in shown(diagnosis)} == set(FILES)
    assert "node-0/rank_0.log line 3" in diagnosis.summary
    assert {(wave.file, wave.first_line) for wave in diagnosis.incident.waves} == {
        ("node-1/rank_1.log", 2)
    }
    assert {(state.rank, state.file) for state in diagnosis.incident.ranks} == {
        (0, "node-0/rank_0.log"),
        (1, "node-1/rank_1.log"),
    }
    moments = {(moment.file, moment.line) for moment in diagnosis.incident.timeline}
    assert {("node-0/rank_0.log", 3), ("node-1/rank_1.log", 2)} <= moments


def test_the_culprit_stands_where_its_error_stands(service: Service, folder: Path) -> None:
    """A rank accused of the first error is shown in its own log."""
    incident = service.read_paths([folder]).incident
    assert [(c.rank, c.file, c.line) for c in incident.culprit_ranks] == [
        (0, "node-0/rank_0.log", 3)
    ]


def test_settings_that_contradict_name_each_others_line(service: Service) -> None:
    """The line of the other setting is that of the input."""
    diagnosis = service.diagnose_text(WORDS + TIMEOUT)
    told = {
        warning.setting: warning.explanation
        for warning in diagnosis.warnings
        if warning.verdict == "contradicts"
    }
    assert list(told) == ["NCCL_P2P_DISABLE=1"]
    assert "NCCL_P2P_LEVEL=NVL on line 7" in told["NCCL_P2P_DISABLE=1"]


def test_a_lost_private_key_moves_no_line(service: Service) -> None:
    """Where redaction took lines away, words are quoted with the line they stood on."""
    key = "-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----\n"
    diagnosis = service.diagnose_text(key + WORDS + TIMEOUT)
    said = [item for cause in diagnosis.causes for item in cause.evidence if item.kind == "text"]
    lines = (key + WORDS + TIMEOUT).split("\n")
    assert said
    assert all(item.quote in lines[item.line - 1] for item in said)


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["a/rank_0.log"], [""]),
        (["a/rank_0.log", "a/rank_1.log"], ["rank_0.log", "rank_1.log"]),
        (["a/0/out.log", "a/1/out.log"], ["0/out.log", "1/out.log"]),
        (["rank_0.log", "/tmp/rank_1.log"], ["rank_0.log", "/tmp/rank_1.log"]),
        (["//tmp/rank_0.log", "/tmp/rank_1.log"], ["//tmp/rank_0.log", "/tmp/rank_1.log"]),
    ],
    ids=["one", "one folder", "same names", "relative and absolute", "two roots"],
)
def test_names_tell_files_apart(paths: list[str], names: list[str]) -> None:
    """A file's name is its path below the folder all share; a single file needs none."""
    from kb.files.paths import short_names

    assert short_names(paths) == names
