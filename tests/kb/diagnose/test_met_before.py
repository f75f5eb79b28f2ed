"""Which entry is this incident, and what is said of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kb.diagnose.evidence_model import Ranking, ScoredCause
from kb.diagnose.likeness import likeness
from kb.diagnose.met_before import (
    ALIKE_TEXT,
    SAME_ERROR,
    SAME_WORDS,
    STANDS_FAR_OUT,
    STANDS_OUT,
    met_before,
)
from kb.diagnose.same_error import NO_MARKS, ErrorMarks
from kb.diagnose.verdict import Verdict
from kb.knowledge.labels import Words
from kb.knowledge.load import read_labels
from kb.settings import shipped_data
from kb.types.answer import MetBefore
from kb.types.entries import Entry, Tags
from kb.types.incident import Event, Incident, LogReading
from kb.types.knowledge import EventType, Fix
from kb.types.vocabulary import DiagnosisStatus, EventRole, Language
from tests.kb.diagnose.toys import both, by_id, case, hit

LABELS = read_labels(shipped_data() / "labels")
TYPES = {
    "oom": EventType(id="oom", means=both("no memory")),
    "watchdog": EventType(id="watchdog", means=both("w"), roles=(EventRole.WATCHDOG_REPORT,)),
}
OOM = ErrorMarks(frozenset({"oom"}))
OTHER = ErrorMarks(frozenset({"disk_full"}))
HERE = Incident(op="ALLREDUCE", stage="save", frameworks=("fsdp",))
TAGS = Tags(ops=("ALLREDUCE",), stage="save", frameworks=("fsdp",))


def verdict(
    *pairs: tuple[Entry, float],
    event: str = "oom",
    marks: ErrorMarks = OOM,
    incident: Incident = HERE,
    status: DiagnosisStatus = "diagnosed",
    apart: float = 0.0,
) -> Verdict:
    """A verdict for alpha, certain, on a log with that event and hits that have `marks`.

    The first hit stands out from a case of no cause by `apart`.
    """
    pairs = (*pairs, (case("rival"), max(pairs[0][1] - apart, 0.0)))
    events = (Event(pattern_id="p", kind="root", event=event, line=1, text=""),)
    return Verdict(
        reading=LogReading(incident=incident, events=events, excerpt=""),
        status=status,
        ranking=Ranking(
            causes=(ScoredCause(cause="alpha", probability=1.0, logit=0.0),), unknown=0.0
        ),
        signals=(),
        hits=tuple(hit(entry, score) for entry, score in pairs),
        entries=by_id([entry for entry, _ in pairs]),
        votes={},
        marks={entry.id: marks for entry, _ in pairs if marks},
    )


def met(made: Verdict, language: Language = "en") -> MetBefore | None:
    """What was met before of it."""
    return met_before(made, TYPES, {"alpha": "Alpha"}, Words(LABELS, language))


def score_of(alike: float) -> float:
    """The score of the text that makes an entry of a certain cause so much alike."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if likeness(middle, 1.0) < alike else (low, middle)
    return high


@pytest.mark.parametrize(
    ("event", "marks", "tags", "least"),
    [
        pytest.param("oom", OOM, Tags(), SAME_ERROR, id="same-error"),
        pytest.param("oom", OTHER, TAGS, None, id="another-error"),
        pytest.param("oom", NO_MARKS, Tags(), SAME_WORDS, id="its-error-is-not-known"),
        pytest.param("watchdog", NO_MARKS, TAGS, SAME_ERROR, id="same-watchdog-report"),
        pytest.param(
            "watchdog", NO_MARKS, replace(TAGS, ops=("SEND",)), SAME_WORDS, id="another-operation"
        ),
        pytest.param(
            "watchdog", NO_MARKS, replace(TAGS, stage="train"), SAME_WORDS, id="another-stage"
        ),
        pytest.param(
            "watchdog", NO_MARKS, replace(TAGS, frameworks=()), SAME_WORDS, id="no-framework"
        ),
    ],
)
def test_how_alike_the_same_incident_is(
    event: str, marks: ErrorMarks, tags: Tags, least: float | None
) -> None:
    """Less is asked of the words where the error, or the watchdog's report, is the same."""
    entry = case("c", "alpha", tags=tags)
    at_most = met(verdict((entry, 1.0), event=event, marks=marks))
    assert (at_most is None) is (least is None)
    if least is not None:
        near, far = score_of(least) + 1e-9, score_of(least) - 1e-6
        assert met(verdict((entry, near), event=event, marks=marks)) is not None
        assert met(verdict((entry, far), event=event, marks=marks)) is None


def test_another_cause_is_another_incident() -> None:
    """An entry of another cause, or of none, is not it; nor is any where nothing is diagnosed."""
    assert met(verdict((case("c", "beta", "alpha"), 1.0))) is None
    assert met(verdict((case("c"), 1.0))) is None
    assert met(verdict((case("c", "alpha"), 1.0), status="unknown")) is None


@pytest.mark.parametrize(
    ("own", "tags", "is_same"),
    [
        (Incident(backend="nccl"), Tags(backend="gloo"), False),
        (Incident(backend="nccl"), Tags(backend="nccl"), True),
        (Incident(), Tags(backend="gloo"), True),
        (Incident(backend="nccl"), Tags(), True),
        (Incident(frameworks=("deepspeed",)), Tags(frameworks=("megatron",)), False),
        (Incident(frameworks=("deepspeed",)), Tags(frameworks=("megatron", "deepspeed")), True),
        (Incident(frameworks=("deepspeed",)), Tags(), True),
        (Incident(), Tags(frameworks=("megatron",)), True),
    ],
)
def test_another_backend_or_framework_is_another_incident(
    own: Incident, tags: Tags, is_same: bool
) -> None:
    """Also of the team's own; what one side does not name tells nothing."""
    for kind in ("case", "incident"):
        entry = replace(case("c", "alpha", tags=tags), kind=kind)
        assert (met(verdict((entry, 1.0), incident=own)) is not None) is is_same


@pytest.mark.parametrize("status", ["diagnosed", "unknown", "no_timeout"])
@pytest.mark.parametrize(
    ("cause", "score", "apart", "is_met"),
    [
        ("alpha", ALIKE_TEXT, STANDS_OUT, ("diagnosed",)),
        ("alpha", ALIKE_TEXT, STANDS_OUT - 0.02, ()),
        ("alpha", ALIKE_TEXT - 0.02, STANDS_FAR_OUT, ()),
        ("beta", ALIKE_TEXT, STANDS_FAR_OUT, ("diagnosed", "unknown", "no_timeout")),
        ("beta", 0.9, STANDS_FAR_OUT - 0.02, ()),
    ],
    ids=["out", "not-out", "not-alike", "another-cause-far-out", "another-cause-out"],
)
def test_a_text_that_stands_out_is_the_same_incident(
    status: DiagnosisStatus, cause: str, score: float, apart: float, is_met: tuple[str, ...]
) -> None:
    """Whatever its error; farther out where the leading cause, or none, is another."""
    entry = case("c", cause)
    made = verdict((entry, score), marks=OTHER, status=status, apart=apart + 1e-9)
    assert (met(made) is not None) is (status in is_met)


def test_the_teams_own_incident_stands_first() -> None:
    """Before cases, however alike, and these before threads; then the most alike, ties by id."""
    own = replace(case("own", "alpha"), kind="incident")
    thread = replace(case("a-thread", "alpha"), kind="thread")
    cases = [case("b", "alpha"), case("a", "alpha")]
    pairs = [(thread, 1.0), *((entry, 0.95) for entry in cases), (own, 0.9)]
    order = []
    while pairs:
        found = met(verdict(*pairs))
        assert found is not None
        order.append(found.entry)
        pairs = [pair for pair in pairs if pair[0].id != found.entry]
    assert order == ["own", "a", "b", "a-thread"]


@pytest.mark.parametrize("status", ["diagnosed", "unknown"])
def test_the_team_knows_another_cause_of_the_same_log(status: DiagnosisStatus) -> None:
    """Its own incident of nearly the same log counts whatever leads; another case does not."""
    own = replace(case("own", "beta"), kind="incident")
    found = met(verdict((own, 0.95), status=status))
    assert found is not None
    assert (found.entry, found.cause) == ("own", "beta")
    assert met(verdict((own, 0.85), status=status)) is None
    assert met(verdict((own, 0.95), marks=OTHER, status=status)) is None
    assert met(verdict((case("c", "beta"), 0.95), status=status)) is None


@pytest.mark.parametrize(
    ("language", "why", "differs"),
    [
        (
            "en",
            ("same error: no memory.", "same collective ALLREDUCE"),
            ("another stage: loading",),
        ),
        ("zh", ("同样的错误：no memory。", "同一集合通信 ALLREDUCE"), ("发生阶段不同：加载",)),
    ],
)
def test_what_is_said_of_it(
    language: Language, why: tuple[str, ...], differs: tuple[str, ...]
) -> None:
    """When it was resolved, what helped, what is alike and what differs."""
    guess = Fix(id="f/1", title=both("guess"), steps=(), commands=(), status="reported")
    cure = Fix(id="f/2", title=both("cure"), steps=(), commands=("run cure",), status="confirmed")
    own = replace(
        case("own", "alpha", tags=Tags(ops=("ALLREDUCE",), stage="load")),
        kind="incident",
        fixes=(guess, cure),
        resolved_on="2026-05-03T09:00:00Z",
    )
    end = "。" if language == "zh" else "."
    assert met(verdict((own, 1.0)), language) == MetBefore(
        entry="own",
        kind="incident",
        when="2026-05-03",
        title=f"title of own{end}",
        cause="alpha",
        cause_title="Alpha",
        fix=f"cure{end}",
        command="run cure",
        fix_id="f/2",
        fix_status="confirmed",
        url="https://example.org/own",
        why=why,
        differs=differs,
    )


def test_words_alone_are_a_reason_too() -> None:
    """Where nothing else is alike the description is."""
    made = met(verdict((case("c", "alpha"), 1.0), marks=NO_MARKS, incident=Incident()))
    assert made is not None
    assert (made.why, made.fix, made.when) == (("nearly the same description",), "", "2024-06-18")
