"""What an answer says of like cases, of ranks that differ, and of files it could not read."""

from __future__ import annotations

from pathlib import Path

import pytest

from kb.diagnose.likeness import compare
from kb.knowledge.labels import Words
from kb.service import Service
from kb.types.vocabulary import Language

BEHIND = "rank-behind.log"


def test_ranks_that_hang_apart_are_evidence_and_nothing_says_they_agree(
    service: Service, data_dir: Path
) -> None:
    """Of the shipped example each part's operation is named, and no reason claims agreement."""
    diagnosis = service.answer(
        service.read_paths([data_dir / "examples" / BEHIND]), language="en", top=19
    )
    lead = diagnosis.causes[0]
    assert lead.id == "collective-mismatch"
    reason = next(e.reason for e in lead.evidence if e.source == "fact:different_ops_hang")
    assert "rank 3: ALLREDUCE(1) 9683" in reason
    assert "rank 0-2, 4: _ALLGATHER_BASE(4194304) 9684" in reason
    told = [item.reason for cause in diagnosis.causes for item in cause.evidence]
    assert [text for text in told if "agree" in text or "{" in text] == []


@pytest.mark.parametrize("name", [BEHIND, "rank-out-of-memory.log", "save-on-rank0.log"])
def test_like_cases_say_what_is_alike(service: Service, data_dir: Path, name: str) -> None:
    """Each similar case of the shipped examples shares a cause, an operation or a backend."""
    for case in service.answer(
        service.read_paths([data_dir / "examples" / name]), language="en"
    ).cases:
        told = [item for item in case.why if item.startswith("same ")]
        assert told
        assert not any("=" in item for item in case.why)


def test_an_operation_any_rank_hangs_in_is_shared(service: Service, data_dir: Path) -> None:
    """A case of the culprit's own operation is like the incident, not only one of the others'."""
    reading = service.read_paths([data_dir / "examples" / BEHIND])
    incident, entry = reading.incident, service.entry("pytorch-iterable-dataset-uneven-ddp")
    why, _ = compare(incident, entry, Words(service.knowledge.labels, "en"))
    assert incident.op != "ALLREDUCE"
    assert "same collective ALLREDUCE" in why


@pytest.mark.parametrize(
    ("language", "reason"),
    [("zh", "是图片，不是文本日志"), ("en", "is a picture, not a text log")],
)
def test_why_a_file_was_not_read_is_told_in_the_answers_language(
    service: Service, data_dir: Path, tmp_path: Path, language: Language, reason: str
) -> None:
    """The reason stands in the language of the answer, its code stays the same."""
    picture = tmp_path / "shot.png"
    picture.write_bytes(b"\x89PNG\r\n" + bytes(500))
    log = data_dir / "examples" / BEHIND
    (unread,) = service.answer(
        service.read_paths([log, picture]), language=language
    ).incident.unread
    assert (unread.file.endswith("shot.png"), unread.reason) == (True, reason)
    assert unread.code == "picture"
