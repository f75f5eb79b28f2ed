"""Words that depend on numbers: bands, the summary, scopes, places."""

from __future__ import annotations

import pytest

from kb.diagnose.wording import (
    band,
    fill_ranks,
    model_percent,
    percent,
    place,
    scope,
    summary,
    why_unread,
)
from kb.knowledge.labels import Words
from kb.knowledge.load import read_labels
from kb.settings import shipped_data
from kb.types.incident import Culprit, FirstError, Incident, Unread
from kb.types.knowledge import AppliesTo
from kb.types.vocabulary import DiagnosisStatus
from tests.kb.diagnose.toys import both

LABELS = read_labels(shipped_data() / "labels")
EN, ZH = Words(LABELS, "en"), Words(LABELS, "zh")


@pytest.mark.parametrize(
    ("probability", "name"),
    [
        (1.0, "certain"),
        (0.85, "certain"),
        (0.8499, "likely"),
        (0.5, "likely"),
        (0.4999, "possible"),
        (0.2, "possible"),
        (0.1999, "unlikely"),
        (0.0, "unlikely"),
    ],
)
def test_bands(probability: float, name: str) -> None:
    """Almost certain from 85 %, likely from 50 %, possible from 20 %."""
    assert band(probability) == name


CULPRITS = tuple(Culprit(rank=rank, reason=both("late")) for rank in range(5))
ERROR = FirstError(rank=3, line=7, kind="oom", text="CUDA out of memory", file="a.log")
CAUSE = "The most likely cause: Late rank (likely)."


@pytest.mark.parametrize(
    ("status", "incident", "text"),
    [
        (
            "diagnosed",
            Incident(first_error=ERROR, culprit_ranks=CULPRITS),
            "The first error is on rank 3 at a.log line 7; the timeouts after it follow from that. "
            + CAUSE,
        ),
        (
            "diagnosed",
            Incident(first_error=FirstError(rank=None, line=7, kind="oom", text="x")),
            f"The first error is at line 7; the timeouts after it follow from that. {CAUSE}",
        ),
        (
            "diagnosed",
            Incident(culprit_ranks=CULPRITS, op="ALLREDUCE", timeout_ms=600_000),
            f"The other ranks were waiting for rank 0, 1, 2, 3. {CAUSE}",
        ),
        (
            "diagnosed",
            Incident(op="ALLREDUCE", timeout_ms=599_500),
            "The collective ALLREDUCE did not finish within 600 s and the watchdog ended the job. "
            + CAUSE,
        ),
        (
            "diagnosed",
            Incident(op="ALLREDUCE", has_timeout=True),
            f"A distributed operation timed out waiting. {CAUSE}",
        ),
        (
            "unknown",
            Incident(timeout_ms=1),
            f"{EN('summary.hang')} {EN('summary.unknown', title='Late rank')}",
        ),
    ],
)
def test_the_summary(status: DiagnosisStatus, incident: Incident, text: str) -> None:
    """First error, else four culprits, else the operation, else that it hung; then the cause."""
    assert summary(EN, status, incident, "Late rank", 0.6) == text


def test_chinese_sentences_have_no_space_between() -> None:
    """And without a timeout there is one sentence only."""
    said = summary(ZH, "diagnosed", Incident(), "慢 rank", 0.1)
    assert said == "描述的是一次分布式任务卡住或通信失败。最可能的根因：慢 rank（不太可能）。"
    assert summary(ZH, "no_timeout", Incident(), "慢 rank", 0.1) == ZH("summary.no_timeout")


def test_a_scope_in_words() -> None:
    """Frameworks, versions, backends, stages; nothing where it applies everywhere."""
    applies = AppliesTo(
        frameworks=("fsdp", "ddp"), backends=("nccl",), stages=("save",), versions=("torch>=2.2",)
    )
    assert scope(EN, applies) == "fsdp, ddp, torch>=2.2, nccl, saving a checkpoint"
    assert scope(ZH, AppliesTo(stages=("save", "load"))) == "保存检查点、加载"
    assert scope(EN, AppliesTo()) == ""


def test_a_place_in_words() -> None:
    """With the file where there are several."""
    assert place(EN, ERROR) == "a.log line 7"
    assert place(ZH, FirstError(rank=None, line=7, kind="", text="")) == "第 7 行"


@pytest.mark.parametrize(
    ("unread", "why"),
    [
        (Unread(file="a", reason="is binary", code="binary"), "是二进制文件，不是文本日志"),
        (Unread(file="a", reason="odd", code="nobody_knows"), "odd"),
        (Unread(file="a", reason="odd"), "odd"),
        (
            Unread(file="a", reason="large", code="too_large", values={"size": "64"}),
            "超过 64 MiB",
        ),
    ],
)
def test_why_a_file_is_not_read(unread: Unread, why: str) -> None:
    """In words where there are some for its code, else its own reason; without its name."""
    assert why_unread(ZH, unread) == why


@pytest.mark.parametrize(
    ("probability", "shown"),
    [
        (0, "0%"),
        (0.0099, "<1%"),
        (0.01, "1%"),
        (0.256, "26%"),
        (0.99, "99%"),
        (0.991, ">99%"),
        (1, "100%"),
    ],
)
def test_shares_are_never_rounded_to_certainty(probability: float, shown: str) -> None:
    """What is nearly 0 or 1 does not read as 0 % or 100 %."""
    assert percent(probability) == shown


@pytest.mark.parametrize(
    ("probability", "shown"), [(0.0, "<1%"), (0.00004, "<1%"), (0.5, "50%"), (1.0, ">99%")]
)
def test_the_model_is_never_certain(probability: float, shown: str) -> None:
    """What it calls 0 or 1 was rounded to that."""
    assert model_percent(probability) == shown


@pytest.mark.parametrize(("world", "silent"), [(8, "0, 2"), (None, "0, 2, …")])
def test_silent_ranks_are_open_where_the_size_is_unknown(world: int | None, silent: str) -> None:
    """Without a world size nobody knows how many ranks are silent above the reporting ones."""
    incident = Incident(ranks_reporting=(1, 3), ranks_silent=(0, 2), world_size=world)
    assert fill_ranks("only {ranks}, not {silent}", incident) == f"only 1, 3, not {silent}"
