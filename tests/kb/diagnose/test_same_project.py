"""A case of the same project: rarity of names, the gain of its hit, and the nats of its signal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kb.diagnose.same_error import NO_MARKS, ErrorMarks
from kb.diagnose.same_project import ProjectNames
from kb.diagnose.signals import Signal
from kb.types.entries import Entry, Tags
from kb.types.vocabulary import ClaimStatus
from tests.kb.diagnose.toys import by_id, case, hit

# Four cases: "open-clip" is named by one, "nccl" by two, "torch" by all.
CASES = [
    case("clip", "alpha", project="mlfoundations/open_clip", symptoms="Open-CLIP torch nccl"),
    case("wenet", "beta", project="wenet-e2e/wenet", symptoms="wenet torch"),
    case("trainer", "gamma", project="someone/trainer", symptoms="torch nccl"),
    case("short", "alpha", project="a/ab", symptoms="torch"),
]


@pytest.mark.parametrize(
    ("name", "rarity"),
    [("open clip", 1.0), ("nccl", 0.5), ("torch", 0.0), ("unheard", 1.0), ("Open-CLIP", 1.0)],
)
def test_a_name_is_rare_by_the_reports_that_mention_it(name: str, rarity: float) -> None:
    """1 - ln(count) / ln(cases), marks between the parts of a name aside."""
    assert ProjectNames(CASES).rarity(name) == pytest.approx(rarity)


@pytest.mark.parametrize(
    ("text", "scores"),
    [
        ("Open_CLIP hangs", {"clip": 0.7, "wenet": 0.5}),
        ("openCLIP hangs", {"clip": 0.7, "wenet": 0.5}),
        ("openclip hangs", {"wenet": 0.5, "clip": 0.4}),  # one word is another name
        ("my-wenet/run hangs", {"wenet": 0.75, "clip": 0.4}),
        ("wenets hang", {"wenet": 0.5, "clip": 0.4}),
        ("", {"wenet": 0.5, "clip": 0.4}),
    ],
)
def test_hits_of_the_named_project_come_nearer(text: str, scores: dict[str, float]) -> None:
    """Half of what was left open is closed where the name is rare; the best come first."""
    cases = CASES[:2]
    hits = [hit(cases[0], 0.4), hit(cases[1], 0.5)]
    moved = ProjectNames(CASES).nearer(hits, by_id(cases), text)
    assert [(item.entry_id, round(item.score, 9)) for item in moved] == list(scores.items())


def test_short_names_are_words() -> None:
    """A project of two letters is not looked for; ties are by id."""
    entries = [CASES[3], case("also", "alpha", project="x/ab")]
    moved = ProjectNames(CASES).nearer([hit(e, 0.4) for e in entries], by_id(entries), "ab hangs")
    assert [(item.entry_id, item.score) for item in moved] == [("also", 0.4), ("short", 0.4)]


def known(status: ClaimStatus = "confirmed", **changes: object) -> Entry:
    """A case of the project toy with an operation and an error of its own."""
    values: dict[str, object] = {
        "project": "owner/toy",
        "status": status,
        "tags": Tags(ops=("ALLREDUCE",), frameworks=("tinkerlib",)),
    }
    return case("toy", "alpha", "beta", **(values | changes))  # type: ignore[arg-type]


ERROR = ErrorMarks(frozenset({"oom"}))
SIZES = ErrorMarks(sizes=frozenset({("8", "32")}))


def made(
    entry: Entry, score: float, text: str, marks: ErrorMarks = ERROR, *more: Entry
) -> list[Signal]:
    """The signals of one hit that shares `marks`, beside `more` cases."""
    names = ProjectNames([entry, case("other", "beta"), *more])
    return names.signals([hit(entry, score)], by_id([entry]), text, lambda _: marks)


@pytest.mark.parametrize(
    ("entry", "score", "text", "marks", "nats"),
    [
        pytest.param(known(), 1.0, "toy hangs", ERROR, 0.8, id="error"),
        pytest.param(known(), 0.5, "toy hangs", ERROR, 0.4, id="by-score"),
        pytest.param(known(), 1.0, "toy hangs in allreduce", ERROR, 2.0, id="operation"),
        pytest.param(known(), 1.0, "toy hangs in my_allreducer", ERROR, 0.8, id="part-of-a-word"),
        pytest.param(known(), 1.0, "toy hangs", SIZES, 2.8, id="sizes"),
        pytest.param(known(), 1.0, "toy ALLREDUCE", SIZES, 4.0, id="all"),
        pytest.param(known("reported"), 1.0, "toy hangs", ERROR, 0.72, id="reported"),
        pytest.param(known("unverified"), 1.0, "toy hangs", ERROR, 0.6, id="unverified"),
        pytest.param(known("contradicted"), 1.0, "toy hangs", ERROR, 0.0, id="contradicted"),
    ],
)
def test_nats_of_the_same_error(
    entry: Entry, score: float, text: str, marks: ErrorMarks, nats: float
) -> None:
    """Name, operation and sizes add up, times the case's standing and the hit's score."""
    (signal,) = made(entry, score, text, marks)
    assert signal.weights == pytest.approx({"alpha": nats})
    assert (signal.name, signal.kind, signal.source, signal.line) == (
        "case:same-error",
        "case",
        "toy",
        0,
    )
    assert (signal.quote, signal.means) == ("title of toy.", None)


@pytest.mark.parametrize(
    ("entry", "text", "marks"),
    [
        pytest.param(known(), "toy hangs", NO_MARKS, id="another-error"),
        pytest.param(known(), "it hangs", ERROR, id="project-not-named"),
        pytest.param(known(), "tinkerlib hangs", ERROR, id="only-its-framework"),
        pytest.param(known(project="a/to"), "to hang", ERROR, id="a-word"),
    ],
)
def test_nothing_is_said_of_another_error_or_project(
    entry: Entry, text: str, marks: ErrorMarks
) -> None:
    """A shared framework is no shared project, and a shared project no shared error."""
    assert made(entry, 1.0, text, marks) == []


def test_a_common_name_is_no_project() -> None:
    """Half where two of four cases mention the name; where four of six do it says nothing."""
    named = [case(name, "beta", symptoms="toy") for name in "abcd"]
    (signal,) = made(known(), 1.0, "toy allreduce", ERROR, *named[:2])
    assert signal.weights == pytest.approx({"alpha": 1.0})
    assert made(known(), 1.0, "toy allreduce", ERROR, *named) == []


def test_a_teams_own_incident_is_of_its_project() -> None:
    """No name is needed: the error is."""
    own = replace(known(project=""), kind="incident")
    (signal,) = made(own, 1.0, "it hangs")
    assert signal.weights == pytest.approx({"alpha": 0.8})
    assert made(own, 1.0, "it hangs", NO_MARKS) == []


def test_the_strongest_of_the_first_three_hits_counts() -> None:
    """One signal at most; a case without a cause and the fourth hit are passed over."""
    entries = [
        case("none", project="owner/toy"),
        known(),
        case("twin", "beta", project="owner/toy"),
        case("fourth", "gamma", project="owner/toy"),
    ]
    names = ProjectNames([case("x", "beta"), *entries])
    hits = [hit(entry, score) for entry, score in zip(entries, (1.0, 0.4, 0.5, 1.0), strict=True)]
    (signal,) = names.signals(hits, by_id(entries), "toy hangs", lambda _: ERROR)
    assert signal.source == "twin"
    assert signal.weights == pytest.approx({"beta": 0.4})
