"""Small causes, entries and parts of answers for tests of the faces."""

from __future__ import annotations

from collections.abc import Sequence

from kb.types.answer import (
    AnswerCheck,
    AnswerCulprit,
    AnswerFix,
    AnswerIncident,
    AnswerMoment,
    Evidence,
    FirstStep,
    RankedCause,
)
from kb.types.entries import CauseClaim, Entry, Section, Source, Tags
from kb.types.incident import Fact, FirstError, RankState, Wave
from kb.types.knowledge import Bilingual, Cause, Fix
from kb.types.vocabulary import Language

TIMEOUT_MARK = "Watchdog caught collective operation timeout"
ERROR_MARK = "OutOfMemoryError"
LOG = (
    "step 100 loss 2.5\n"
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    "[rank1]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=14217, "
    "OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600029 ms\n"
)
UNDECIDED_LOG = LOG.replace(ERROR_MARK, "SomethingElse")


def both(zh: str, en: str) -> Bilingual:
    """A text in both languages."""
    return Bilingual(zh=zh, en=en)


def make_cause(identifier: str, zh: str, en: str) -> Cause:
    """A small cause."""
    return Cause(
        id=identifier,
        title=both(zh, en),
        definition=both(f"{zh}的定义", f"what {en} is"),
        shows=(both("日志里", "in the log"),),
        confirms=(both("证实", "it is"),),
        refutes=(both("排除", "it is not"),),
        restart="will_not_help",
        restart_reason=both("会再来", "it comes back"),
        fixes=(
            Fix(
                id=f"{identifier}/fix",
                title=both("修", "mend it"),
                steps=(both("第一步", "first step"),),
                commands=("nvidia-smi -q",),
            ),
        ),
        sources=("https://example.org/docs",),
    )


def make_entry(identifier: str, cause: str, *, kind: str = "case") -> Entry:
    """A small entry in both languages."""
    return Entry(
        id=identifier,
        kind=kind,  # type: ignore[arg-type]
        language="both",
        title=both(f"{identifier} 的标题", f"title of {identifier}"),
        project="owner/name",
        url=f"https://example.org/{identifier}",
        date="2024-06-18",
        status="confirmed",
        causes=(CauseClaim(id=cause, status="confirmed"),),
        fixes=(),
        tags=Tags(backend="nccl", ops=("ALLREDUCE",), stage="train", frameworks=("fsdp",)),
        signature=("OpType=ALLREDUCE",),
        sections=(
            Section(role="symptoms", title="现象", text="卡住了", language="zh"),
            Section(role="symptoms", title="Symptom", text="it hung", language="en"),
        ),
        chunks=(),
        source_key=f"/private/{identifier}.md",
        digest=f"digest-of-{identifier}",
        sources=(Source(url=f"https://example.org/{identifier}"),),
    )


CAUSES = (
    make_cause("rank-crash", "有一个 rank 先崩溃", "One rank crashed first"),
    make_cause("collective-mismatch", "各 rank 的集合通信不一致", "Ranks issued other collectives"),
)
ENTRIES = (
    make_entry("first-case", "rank-crash"),
    make_entry("second-case", "collective-mismatch"),
    make_entry("thread-0123456789abcdef", "rank-crash", kind="thread"),
)


def make_incident(lines: Sequence[str]) -> AnswerIncident:
    """The incident of `LOG`, with the first error at the line it stands in."""
    hits = [(number, line) for number, line in enumerate(lines, start=1) if ERROR_MARK in line]
    first = FirstError(rank=3, line=hits[0][0], kind="cuda-oom", text=hits[0][1]) if hits else None
    return AnswerIncident(
        backend="nccl",
        op="ALLREDUCE",
        seq=14217,
        numel_in=1,
        numel_out=1,
        timeout_ms=600000,
        ran_ms=600029,
        process_group="default_pg",
        stage="train",
        world_size=8,
        frameworks=("fsdp",),
        versions={"torch": "2.3.1"},
        settings={"NCCL_TIMEOUT": "7200"},
        transport=("NET/IB",),
        ranks_reporting=(0, 1, 2, 4, 5, 6, 7),
        ranks_silent=(3,),
        culprit_ranks=(AnswerCulprit(rank=3, reason="last enqueued 14216, others wait"),),
        first_error=first,
        waves=(Wave(first_line=3, last_line=3, op="ALLREDUCE"),),
        timeline=(AnswerMoment(time="12:00:01", rank=3, what="out of memory", line=2),),
        ranks=(
            RankState(rank=1, state="waiting", last_enqueued=14217, last_completed=14216),
            RankState(rank=3, state="crashed", last_enqueued=14216, last_completed=14216),
        ),
        fault_type="",
        facts=(Fact(name="rank_behind", line=3),),
        lines=len(lines),
        bytes=sum(len(line) + 1 for line in lines),
    )


def make_headline(language: Language) -> str:
    """What happened in the incident of `LOG`."""
    return "rank 3 显存耗尽" if language == "zh" else "Rank 3 ran out of GPU memory"


def make_first_fix(lead: RankedCause) -> FirstStep:
    """The first fix of a cause, to be done first."""
    fix = lead.fixes[0]
    return FirstStep(
        kind="fix",
        title=fix.title,
        command=fix.commands[0],
        caution=fix.caution,
        fix=fix.id,
        cause=lead.id,
    )


def make_ranked(cause: Cause, probability: float, quote: str, language: Language) -> RankedCause:
    """A ranked cause with one piece of evidence for it and one against."""
    return RankedCause(
        id=cause.id,
        title=cause.title.get(language),
        probability=probability,
        band="likely" if probability > 0.5 else "unlikely",
        evidence=(
            Evidence(kind="log", quote=quote, line=2, weight=2.0, source="oom", reason="first"),
            Evidence(kind="prior", quote="", line=0, weight=-0.5, source="prior", reason="rare"),
        ),
        fixes=(
            AnswerFix(
                id="fix",
                title="Use less memory" if language == "en" else "少用显存",
                steps=("Halve the batch",),
                commands=("python train.py \\\n  --batch 4",),
                status="confirmed",
                applies_to="torch>=2.2",
                caution="slower",
                sources=("https://example.org/fix",),
            ),
        ),
        checks=(AnswerCheck(command="dmesg -T | grep -i oom", tells="whether", outcomes=("yes",)),),
        restart=cause.restart,
        restart_reason=cause.restart_reason.get(language),
        cases=("first-case",),
    )
