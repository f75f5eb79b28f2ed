"""The engine: what is searched with, what is a report of a hang, when the answer is `unknown`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kb.diagnose.evidence_model import Weights
from kb.diagnose.same_error import NO_MARKS, ErrorMarks
from kb.diagnose.verdict import Engine, has_vote, search_filters, team_filters
from kb.knowledge.load import Knowledge
from kb.types.entries import CauseClaim
from kb.types.incident import Event, Fact, Incident, LogReading
from kb.types.knowledge import EventType, FactMeaning, Pattern, PolarityMark, Topic
from kb.types.vocabulary import EventRole, MarkRole
from tests.kb.diagnose.toys import both, by_id, case, hit, signal, weights


def cue(name: str, event: str, regex: str, **causes: float) -> Pattern:
    """A cue of that event."""
    return Pattern(
        id=name,
        regex=regex,
        kind="fact",
        event=event,
        means=both(name),
        examples=(),
        scope="text",
        causes=causes,
    )


RANKS = "all the ranks wait for what nobody does any more"  # as short as a report may be
KNOWLEDGE = Knowledge(
    digest="",
    causes=(),
    events=(
        EventType(id="oom", means=both("oom")),
        EventType(id="lost", means=both("lost"), roles=(EventRole.MACHINE_FAILURE,)),
    ),
    frameworks=(),
    patterns=(
        Pattern(
            id="oom",
            regex="oom",
            kind="root",
            event="oom",
            means=both("oom"),
            examples=(),
            causes={"alpha": 2.0},
        ),
    ),
    cues=(
        cue("hangs", "hang", r"\bhangs\b"),
        cue("ranks", "distributed", r"\branks\b"),
        cue("fails", "failure", r"\bfails\b"),
        cue("cable", "cable", r"\bcable\b", beta=0.7),
    ),
    facts=(FactMeaning(id="behind", means=both("behind"), causes={"gamma": 1.0}),),
    advice=(),
    polarity=(
        PolarityMark(id="no", role=MarkRole.NEGATION, regex=r"\bno\b", examples=()),
        PolarityMark(id="fine", role=MarkRole.GOOD, regex=r"\bfine\b", examples=()),
    ),
    topics=(Topic(id="disk", title=both("disk"), names=(r"\bdisk\b",), in_order={"gamma": -0.5}),),
    cases=(case("toy", "alpha", project="owner/toy"), case("other", "beta")),
)


def engine(fitted: Weights | None = None) -> Engine:
    """The engine over the toy knowledge."""
    return Engine(KNOWLEDGE, fitted or weights())


def reading(words: str = "", **fields: object) -> LogReading:
    """A reading of a person's words."""
    values = {"incident": Incident(), "events": (), "excerpt": ""}
    return LogReading(**(values | {"words": words} | fields))  # type: ignore[arg-type]


def event(name: str, pattern: str = "p") -> Event:
    """An event on line 7."""
    return Event(pattern_id=pattern, kind="root", event=name, line=7, text=name)


@pytest.mark.parametrize(
    ("read", "status"),
    [
        pytest.param(reading(incident=Incident(has_timeout=True)), "diagnosed", id="timeout"),
        pytest.param(reading(events=(event("thread_dump"),)), "diagnosed", id="stacks"),
        pytest.param(reading(events=(event("oom"),)), "no_timeout", id="error-alone"),
        pytest.param(
            reading(events=(replace(event("oom"), rank=3),)), "diagnosed", id="error-of-a-rank"
        ),
        pytest.param(reading("it hangs"), "diagnosed", id="hang"),
        pytest.param(reading("no hangs here"), "no_timeout", id="denied"),
        pytest.param(reading("it fails"), "no_timeout", id="failure-alone"),
        pytest.param(reading(RANKS), "unknown", id="distributed-alone"),
        pytest.param(reading(RANKS[1:]), "no_timeout", id="a-remark"),
        pytest.param(reading(RANKS, incident=Incident(bytes=10_000)), "unknown", id="long-log"),
        pytest.param(reading(events=(event("lost"),)), "diagnosed", id="machine-failure"),
        pytest.param(reading("it fails on all ranks"), "diagnosed", id="both"),
        pytest.param(reading("see a_hangs-it/x"), "no_timeout", id="in-a-path"),
        pytest.param(reading("see it-hangs-here"), "no_timeout", id="in-a-long-name"),
        pytest.param(reading("it-hangs"), "diagnosed", id="one-dash-is-a-word"),
        pytest.param(reading(""), "no_timeout", id="nothing"),
    ],
)
def test_what_is_a_timeout(read: LogReading, status: str) -> None:
    """A timeout, stacks, a hang in words, a rank's error, a failure of machines or of many.

    Words about distributed work that name nothing of it are answered `unknown`.
    """
    even = weights(prior={"alpha": 1.0, "beta": 0.0})
    assert engine(even).judge(read, [], {}).status == status


@pytest.mark.parametrize(
    ("causes", "unknown_bias", "status"),
    [
        (3, -50.0, "diagnosed"),  # 1/3
        (4, -50.0, "diagnosed"),  # exactly a quarter
        (5, -50.0, "unknown"),
        (3, -1.1, "diagnosed"),  # 0.3333 · 0.7503
        (3, -1.09, "unknown"),  # 0.3333 · 0.7484
    ],
)
def test_below_a_quarter_it_is_unknown(causes: int, unknown_bias: float, status: str) -> None:
    """The leading cause's own probability decides, what is left for `unknown` taken off."""
    prior = {f"c{number}": 0.0 for number in range(causes)}
    fitted = weights(prior=prior, unknown_bias=unknown_bias)
    assert engine(fitted).judge(reading("it hangs"), [], {}).status == status


def test_a_verdict_holds_all_it_rests_on() -> None:
    """Log lines, facts, words, the case of the same project, then what a person observed."""
    read = reading(
        "toy hangs, cable",
        events=(event("oom", "oom"),),
        incident=Incident(facts=(Fact(name="behind"),)),
        excerpt="",
        word_places=(("a.txt", 4),),
    )
    toy, other = KNOWLEDGE.cases
    hits = [hit(other, 0.5), hit(toy, 0.4)]
    seen = signal("seen", {"alpha": 1.0})
    verdict = engine(weights(case_weight=1.0)).judge(
        read,
        hits,
        by_id([toy, other]),
        observed=[seen],
        torch="2.8",
        marks_of=lambda entry: ErrorMarks(frozenset({"oom"})) if entry is toy else NO_MARKS,
    )
    assert [item.name for item in verdict.signals] == [
        "log:oom",
        "fact:behind",
        "cue:cable",
        "case:same-error",
        "seen",
    ]
    assert (verdict.signals[2].line, verdict.signals[2].file) == (4, "a.txt")
    assert [(item.entry_id, item.score) for item in verdict.hits] == [("toy", 0.7), ("other", 0.5)]
    assert verdict.votes == pytest.approx({"alpha": 0.556575, "beta": 0.143425}, abs=1e-6)
    assert (verdict.reading, verdict.torch, verdict.took_ms) == (read, "2.8", 0.0)
    assert dict(verdict.entries) == by_id([toy, other])
    assert verdict.marks == {"toy": ErrorMarks(frozenset({"oom"}))}
    logits = {item.cause: round(item.logit, 3) for item in verdict.ranking.causes}
    assert logits == {"alpha": 3.781, "beta": 0.486, "gamma": 0.307}


def test_the_excerpt_names_projects_too() -> None:
    """A project named by the log alone is named."""
    toy, other = KNOWLEDGE.cases
    read = reading("it hangs", excerpt="import toy")
    verdict = engine().judge(read, [hit(other, 0.5), hit(toy, 0.4)], by_id([toy, other]))
    assert verdict.hits[0].entry_id == "toy"


@pytest.mark.parametrize(
    ("read", "query"),
    [
        (reading("words", excerpt="line"), "words\nline"),
        (reading("", excerpt=" line "), "line"),
        (reading("d" * 5999, excerpt="line"), "d" * 5999 + "\n"),
        (reading(""), ""),
    ],
    ids=["words", "excerpt", "cut", "nothing"],
)
def test_what_is_searched_with(read: LogReading, query: str) -> None:
    """The person's words, then the excerpt."""
    assert engine().query_text(read) == query


def test_the_reader_is_not_shown_what_is_in_order() -> None:
    """Such sentences are blanks, so that lines and places stay what they are."""
    words = "It hangs.\nThe disk is fine.\nSince noon."
    assert engine().description(words) == f"It hangs.\n{' ' * 16}.\nSince noon."
    assert engine().description("It hangs") == "It hangs"


@pytest.mark.parametrize(
    ("words", "query"),
    [
        ("It hangs. The disk is fine. Since noon.", "It hangs.. Since noon."),
        ("The disk hangs. It is fine.", "The disk hangs. It is fine."),
        ("the disk is fine", "the disk is fine"),  # there is nothing else to go by
    ],
)
def test_what_is_in_order_is_not_searched_with(words: str, query: str) -> None:
    """A sentence that only rules something out is no likeness to cases with that."""
    assert engine().query_text(reading(words)) == query


def test_what_is_in_order_is_not_searched_with_beside_a_log() -> None:
    """Lines that matter are enough to search with."""
    assert engine().query_text(reading("the disk is fine", excerpt="line")) == "line"


def test_a_statement_is_a_signal_of_its_topic() -> None:
    """It weighs what the topic says, with its sentence as the quote."""
    (made,) = engine().signals(reading("It waits. The disk is fine."))
    assert (made.name, made.quote) == ("topic:disk:in_order", "The disk is fine")
    assert made.weights == {"gamma": -0.5}
    assert [item.topic.id for item in engine().statements("a disk. the disk is fine")] == ["disk"]


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({}, True),
        ({"kind": "incident"}, True),
        ({"kind": "thread"}, True),
        ({"kind": "incident", "resolved": False}, False),
        ({"kind": "incident", "causes": ()}, False),
        ({"kind": "writeup", "causes": (CauseClaim(id="alpha", status="reported"),)}, False),
        ({"causes": (CauseClaim(id="alpha", status="reported"),)}, True),
    ],
    ids=["case", "incident", "thread", "open", "no-cause", "guess", "reported-case"],
)
def test_who_has_a_vote(changes: dict[str, object], counts: bool) -> None:
    """Cases, and of what a team added only what is resolved with a confirmed cause."""
    entry = replace(case("c", "alpha"), **changes)  # type: ignore[arg-type]
    assert has_vote(entry) is counts
    team = team_filters(search_filters(["own"]))
    assert team.kinds == ("incident", "writeup", "thread")
    assert (team.statuses, team.exclude_ids) == (("confirmed",), ("own",))


def test_only_reviewed_cases_are_searched() -> None:
    """An incident's own case can be left out."""
    assert search_filters().kinds == ("case",)
    assert search_filters(["own"]).exclude_ids == ("own",)
    assert replace(search_filters(["own"]), kinds=(), exclude_ids=()) == replace(
        search_filters(), kinds=()
    )
