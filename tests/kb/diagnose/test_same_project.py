"""A case of the same project: rarity of names, the gain of its hit, and the nats of its signal."""

from __future__ import annotations

import pytest

from kb.diagnose.same_project import ProjectNames
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
    """A case of the project toy with an operation and sizes."""
    values: dict[str, object] = {
        "project": "owner/toy",
        "status": status,
        "tags": Tags(ops=("ALLREDUCE",)),
        "signature": ["OpType=ALLREDUCE, NumelIn=8, NumelOut=32"],
    }
    return case("toy", "alpha", "beta", **(values | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("entry", "score", "text", "nats"),
    [
        pytest.param(known(), 1.0, "toy hangs", 0.8, id="named"),
        pytest.param(known(), 0.5, "toy hangs", 0.4, id="by-score"),
        pytest.param(known(), 1.0, "toy hangs in allreduce", 2.0, id="operation"),
        pytest.param(known(), 1.0, "toy hangs in my_allreducer", 0.8, id="part-of-a-word"),
        pytest.param(known(), 1.0, "toy NumelIn=8, NumelOut=32", 2.8, id="sizes"),
        pytest.param(known(), 1.0, "toy NumelIn=8, NumelOut=16", 0.8, id="other-sizes"),
        pytest.param(known(), 1.0, "toy ALLREDUCE NumelIn=8,\nNumelOut=32", 4.0, id="all"),
        pytest.param(
            known(signature=["NumelIn=1, NumelOut=1"]),
            1.0,
            "toy NumelIn=1, NumelOut=1",
            0.8,
            id="barrier",
        ),
        pytest.param(known("reported"), 1.0, "toy hangs", 0.72, id="reported"),
        pytest.param(known("unverified"), 1.0, "toy hangs", 0.6, id="unverified"),
        pytest.param(known("contradicted"), 1.0, "toy hangs", 0.0, id="contradicted"),
    ],
)
def test_nats_of_the_same_project(entry: Entry, score: float, text: str, nats: float) -> None:
    """Name, operation and sizes add up, times the case's standing and the hit's score."""
    names = ProjectNames([entry, case("other", "beta")])
    (made,) = names.signals([hit(entry, score)], by_id([entry]), text)
    assert made.weights == pytest.approx({"alpha": nats})
    assert (made.name, made.kind, made.source, made.line) == ("case:same-project", "case", "toy", 0)
    assert (made.quote, made.means) == ("title of toy.", None)


def test_a_common_name_says_less() -> None:
    """Name and operation count by rarity: half where two of four cases mention the name."""
    entry = known()
    others = [case("a", "beta", symptoms="toy"), case("b", "beta", symptoms="toy")]
    names = ProjectNames([entry, *others, case("c", "beta")])
    (made,) = names.signals([hit(entry, 1.0)], by_id([entry]), "toy allreduce")
    assert made.weights == pytest.approx({"alpha": 1.0})


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
    (made,) = names.signals(hits, by_id(entries), "toy hangs")
    assert made.source == "twin"
    assert made.weights == pytest.approx({"beta": 0.4})
    assert names.signals(hits, by_id(entries), "nothing named") == []
