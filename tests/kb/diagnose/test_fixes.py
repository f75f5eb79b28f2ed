"""Fixes: what fits the incident comes first, what cannot apply is left out."""

from __future__ import annotations

import pytest

from kb.diagnose.fixes import (
    elsewhere,
    fit,
    fix_score,
    here_first,
    order_fixes,
)
from kb.service import Service
from kb.types.incident import FirstError, Incident
from kb.types.knowledge import AppliesTo, Bilingual, Fix

WORDS = Bilingual(zh="做", en="do")


def fix(name: str, **fields: object) -> Fix:
    """A fix with this id."""
    return Fix(id=name, title=WORDS, steps=(WORDS,), **fields)  # type: ignore[arg-type]


def test_the_framework_seen_comes_first_and_a_foreign_one_last() -> None:
    """Seen framework, then general, then one for a framework nobody named."""
    fixes = [
        fix("foreign", applies_to=AppliesTo(frameworks=("vllm",))),
        fix("general"),
        fix("own", applies_to=AppliesTo(frameworks=("deepspeed",))),
    ]
    ordered = order_fixes(fixes, Incident(frameworks=("deepspeed",)))
    assert [item.id for item in ordered] == ["own", "general", "foreign"]


def test_what_nobody_speaks_of_stands_behind_whatever_its_standing() -> None:
    """A confirmed fix for an Ascend comes after an untested general one when nobody named HCCL."""
    fixes = [
        fix("ascend", status="confirmed", applies_to=AppliesTo(backends=("hccl",))),
        fix("general", cost="high", risk="high"),
    ]
    assert [item.id for item in order_fixes(fixes, Incident())] == ["general", "ascend"]


def test_what_cannot_apply_is_left_out() -> None:
    """Another backend, another version and contradicted advice are not shown."""
    fixes = [
        fix("other-backend", applies_to=AppliesTo(backends=("hccl",))),
        fix("other-version", applies_to=AppliesTo(versions=("torch>=2.8",))),
        fix("refuted", status="contradicted"),
        fix("fits", applies_to=AppliesTo(backends=("nccl",), versions=("torch>=2.2",))),
    ]
    ordered = order_fixes(fixes, Incident(backend="nccl", versions={"torch": "2.4.0+cu121"}))
    assert [item.id for item in ordered] == ["fits"]


def test_cheap_and_safe_comes_before_dear_and_risky() -> None:
    """At equal fit, cost and risk decide, then the id."""
    fixes = [
        fix("c", cost="high"),
        fix("b", risk="high"),
        fix("a2"),
        fix("a1"),
        fix("d", cost="low"),
    ]
    assert [item.id for item in order_fixes(fixes, Incident())] == ["d", "a1", "a2", "c", "b"]


def test_a_fix_for_the_error_seen_comes_first() -> None:
    """The first error's kind is looked for in the fix's id; half of its words is another error."""
    first = FirstError(rank=2, line=1, kind="cuda_oom", text="CUDA out of memory")
    fixes = [fix("crash/a-host-oom"), fix("crash/b-assert"), fix("crash/cuda-oom", cost="high")]
    ordered = [item.id for item in order_fixes(fixes, Incident(first_error=first))]
    assert ordered == ["crash/cuda-oom", "crash/a-host-oom", "crash/b-assert"]
    plain = [item.id for item in order_fixes(fixes, Incident())]
    assert plain == ["crash/a-host-oom", "crash/b-assert", "crash/cuda-oom"]


NCCL = Incident(backend="nccl", frameworks=("deepspeed",), stage="save")


@pytest.mark.parametrize(
    ("applies", "incident", "score"),
    [
        (AppliesTo(), NCCL, 1.0),
        (AppliesTo(frameworks=("deepspeed",)), NCCL, 2.0),
        (AppliesTo(frameworks=("vllm", "deepspeed")), NCCL, 2.0),
        (AppliesTo(frameworks=("vllm",)), NCCL, -1.0),
        (AppliesTo(stages=("save",)), NCCL, 2.0),
        (AppliesTo(stages=("eval",)), NCCL, 0.0),
        (AppliesTo(stages=("eval",)), Incident(), 1.0),  # nobody knows the stage
        (AppliesTo(frameworks=("deepspeed",), stages=("save",)), NCCL, 3.0),
        (AppliesTo(backends=("nccl",)), NCCL, 1.0),
        (AppliesTo(backends=("hccl",)), NCCL, -10.0),
        (AppliesTo(backends=("hccl",)), Incident(), 1.0),  # nobody knows the backend
        (AppliesTo(versions=("torch>=2.8",)), Incident(versions={"torch": "2.4"}), -10.0),
        (AppliesTo(versions=("torch>=2.8",)), Incident(versions={"torch": "2.8"}), 1.0),
    ],
)
def test_how_well_a_scope_fits(applies: AppliesTo, incident: Incident, score: float) -> None:
    """1 everywhere, 2 for the framework seen, ±1 for the stage, -1 and -10 for what is not here."""
    assert fit(applies, incident) == score


@pytest.mark.parametrize(
    ("made", "score"),
    [
        # 1 for applying everywhere; reported 0.25, medium cost 0.5, low risk 0
        (fix("c/x"), 0.75),
        (fix("c/x", status="confirmed"), 1.0),
        (fix("c/x", status="unverified"), 0.5),
        (fix("c/x", status="contradicted"), -9.5),
        (fix("c/x", cost="low"), 1.25),
        (fix("c/x", cost="high"), 0.25),
        (fix("c/x", risk="medium"), 0.25),
        (fix("c/x", risk="high"), -0.25),
        (fix("c/cuda-oom"), 3.25),  # both words of the first error
        (fix("cuda/oom"), 0.75),  # one of two is another error
        (fix("c/host-oom"), 0.75),
        (fix("c/x", signs=("fact:behind",)), 3.25),
        (fix("c/x", signs=("fact:ahead",)), 0.75),
        (fix("c/cuda-oom", signs=("fact:behind",)), 3.25),  # the better of the two reasons
    ],
)
def test_the_score_of_a_fix(made: Fix, score: float) -> None:
    """Fit, 2.5 for a fix made for the error or a sign that was seen, standing and ease."""
    first = FirstError(rank=2, line=1, kind="cuda_oom_error", text="CUDA out of memory")
    assert fix_score(made, Incident(first_error=first), {"fact:behind"}) == score


@pytest.mark.parametrize(
    ("kind", "name", "score"),
    [
        ("a_b_c", "c/a-b", 2.4167),  # 2 of 3 words
        ("a_b", "c/a", 0.75),  # half is no match
        ("error", "c/error", 0.75),  # "error" is in nearly every kind
    ],
)
def test_words_of_the_first_error_in_the_id(kind: str, name: str, score: float) -> None:
    """2.5 times the share of its words, where that is more than half."""
    first = FirstError(rank=2, line=1, kind=kind, text="")
    made = fix_score(fix(name), Incident(first_error=first))
    assert made == pytest.approx(score, abs=1e-4)


@pytest.mark.parametrize(
    ("applies", "incident", "foreign"),
    [
        (AppliesTo(), Incident(), False),
        (AppliesTo(frameworks=("pytorch",)), Incident(), False),
        (AppliesTo(frameworks=("ddp", "vllm")), Incident(), False),
        (AppliesTo(frameworks=("vllm",)), Incident(), True),
        (AppliesTo(frameworks=("vllm",)), Incident(frameworks=("vllm",)), False),
        (AppliesTo(backends=("nccl",)), Incident(), False),
        (AppliesTo(backends=("gloo", "hccl")), Incident(), True),
        (AppliesTo(backends=("hccl",)), Incident(backend="hccl"), False),
        (AppliesTo(backends=("nccl",)), Incident(backend="gloo"), True),
        (AppliesTo(frameworks=("vllm",), backends=("nccl",)), Incident(), True),
    ],
)
def test_what_is_made_for_elsewhere(applies: AppliesTo, incident: Incident, foreign: bool) -> None:
    """Another framework than those seen, PyTorch and DDP aside; another backend, or NCCL's."""
    assert elsewhere(applies, incident) is foreign


def test_a_fix_made_for_another_sign_stands_behind() -> None:
    """Where none of its signs was seen it comes last, wherever it applies; its order is kept."""
    fixes = [fix("b", signs=("cue:other",)), fix("c"), fix("a"), fix("d", signs=("cue:ours",))]
    ordered = here_first(fixes, Incident(), {"cue:ours"})
    assert [item.id for item in ordered] == ["c", "a", "d", "b"]


def test_a_fix_made_for_what_was_seen_comes_first(service: Service) -> None:
    """Signs lift a fix above general ones where they were seen and put it behind where not."""
    timeout = (
        "[rank1]:[E ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation "
        "timeout: WorkNCCL(SeqNum=142, OpType=_ALLGATHER_BASE, NumelIn=8, NumelOut=32, "
        "Timeout(ms)=600000) ran for 600105 milliseconds before timing out.\n"
    )

    def first(words: str, cause: str) -> list[str]:
        found = service.diagnose_text(words + timeout, top=19)
        return [fix.id for item in found.causes if item.id == cause for fix in item.fixes]

    mixed = first("Mixed text-only and image samples hang under ZeRO-3.\n", "collective-mismatch")
    plain = first("It hangs.\n", "collective-mismatch")
    assert mixed[0] == "collective-mismatch/dummy-modality"
    assert "collective-mismatch/same-path" in plain[:1]
    assert not {"collective-mismatch/dummy-modality", "collective-mismatch/empty-targets"} & set(
        plain[:2]
    )
    assert "network-config/ib-off-check" not in first("It hangs.\n", "network-config")[:2]


def test_no_timeout_asks_for_nothing_to_be_collected(service: Service) -> None:
    """Where nothing hung there is nothing to switch on for the next run."""
    found = service.diagnose_text("error: could not compile `demo` (bin) due to 1 previous error")
    assert (found.status, found.next) == ("no_timeout", ())
