"""Fixes: what fits the incident comes first, what cannot apply is left out."""

from __future__ import annotations

import pytest

from kb.diagnose.fixes import order_fixes, versions_allow
from kb.service import Service
from kb.types import AppliesTo, Bilingual, FirstError, Fix, Incident

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


@pytest.mark.parametrize(
    ("specifier", "seen", "allowed"),
    [
        ("torch>=2.8", "2.10.0", True),
        ("torch>=2.8", "2.4.1+cu121", False),
        ("torch>=2.2,<2.8", "2.7.1", True),
        ("torch<2.8", "", True),
        ("torch>=2.8", "nightly", True),
        ("nonsense", "2.4", True),
    ],
    ids=["as-numbers", "local-part", "range", "unseen", "not-a-version", "not-a-specifier"],
)
def test_versions(specifier: str, seen: str, allowed: bool) -> None:
    """Versions compare as versions; what cannot be compared excludes nothing."""
    assert versions_allow([specifier], {"torch": seen}) is allowed


def test_a_fix_for_the_error_seen_comes_first() -> None:
    """The first error's kind is looked for in the fix's id; half of its words is another error."""
    first = FirstError(rank=2, line=1, kind="cuda_oom", text="CUDA out of memory")
    fixes = [fix("crash/a-host-oom"), fix("crash/b-assert"), fix("crash/cuda-oom", cost="high")]
    ordered = [item.id for item in order_fixes(fixes, Incident(first_error=first))]
    assert ordered == ["crash/cuda-oom", "crash/a-host-oom", "crash/b-assert"]
    plain = [item.id for item in order_fixes(fixes, Incident())]
    assert plain == ["crash/a-host-oom", "crash/b-assert", "crash/cuda-oom"]


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
