"""Signals: what cues, log lines and facts become, field by field."""

from __future__ import annotations

import pytest

from kb.diagnose.cues import CueHit
from kb.diagnose.signals import (
    Signal,
    cue_signals,
    event_signals,
    fact_signals,
    statement_signals,
)
from kb.diagnose.statements import TopicStatement
from kb.types.incident import Event, Fact
from kb.types.knowledge import FactMeaning, Pattern, Topic
from kb.types.vocabulary import EvidenceKind, PatternKind, Polarity, Standing
from tests.kb.diagnose.toys import both


def pattern(name: str, kind: PatternKind = "root", **fields: object) -> Pattern:
    """A pattern or cue with this id."""
    return Pattern(
        id=name,
        regex=name,
        kind=kind,
        event=name,
        means=both(name),
        examples=(),
        **fields,  # type: ignore[arg-type]
    )


def cue_hit(
    cue: Pattern, polarity: Polarity = Polarity.TROUBLE, *, line: int = 1, is_stated: bool = False
) -> CueHit:
    """A cue found on a line, in the first five characters."""
    quote = f"about {cue.id}"
    return CueHit(cue=cue, quote=quote, line=line, polarity=polarity, end=5, is_stated=is_stated)


def test_a_cue_becomes_a_signal_of_the_persons_words() -> None:
    """Name, quote, line in the file, weights, meaning and the first source."""
    cue = pattern("ib", causes={"net": 0.8}, sources=("https://a.example", "https://b.example"))
    (made,) = cue_signals([cue_hit(cue, line=2)], [("about.txt", 10), ("about.txt", 14)])
    assert made == Signal(
        name="cue:ib",
        kind="text",
        quote="about ib",
        line=14,
        weights={"net": 0.8},
        reason_id="ib",
        source="https://a.example",
        means=both("ib"),
        file="about.txt",
    )


@pytest.mark.parametrize(
    ("line", "places", "shown"),
    [
        (1, (("a", 7), ("b", 9)), ("a", 7)),
        (2, (("a", 7), ("b", 9)), ("b", 9)),
        (3, (("a", 7), ("b", 9)), ("", 0)),
        (1, (), ("", 0)),
    ],
)
def test_the_line_of_a_cue_is_that_of_the_input(
    line: int, places: tuple[tuple[str, int], ...], shown: tuple[str, int]
) -> None:
    """0 where the lines of the words are not known, or not that far."""
    (made,) = cue_signals([cue_hit(pattern("ib", causes={"net": 1.0}), line=line)], places)
    assert (made.file, made.line, made.source) == (*shown, "ib")


BOTH = {"causes": {"net": 1.0, "gpu": -0.5}}
THING = {"causes": {"net": 1.0}, "sound": {"net": -0.9}}


@pytest.mark.parametrize(
    ("fields", "polarity", "suffix", "weights"),
    [
        (BOTH, Polarity.TROUBLE, "", {"net": 1.0, "gpu": -0.5}),
        (BOTH, Polarity.HELPED, "", {"net": 1.0, "gpu": -0.5}),
        (BOTH, Polarity.DENIED, "!", {"net": -0.4, "gpu": 0.2}),
        (BOTH, Polarity.ASKED, "?", {"net": 0.3, "gpu": -0.15}),
        (BOTH, Polarity.GUESSED, "?", {"net": 0.3, "gpu": -0.15}),
        (THING, Polarity.IN_ORDER, "!", {"net": -0.9}),
        (THING, Polarity.DENIED, "!", {"net": -0.9}),
        (THING, Polarity.TROUBLE, "", {"net": 1.0}),
        ({"sound": {"net": -0.9}}, Polarity.IN_ORDER, "!", {"net": -0.9}),
    ],
)
def test_weights_of_a_cue(
    fields: dict[str, object], polarity: Polarity, suffix: str, weights: dict[str, float]
) -> None:
    """Denied -0.4 of it, or what it weighs in order; asked or guessed .3 of it."""
    (made,) = cue_signals([cue_hit(pattern("ib", **fields), polarity)])
    assert made.weights == pytest.approx(weights)
    assert (made.name, made.polarity) == (f"cue:ib{suffix}", polarity)


def test_what_came_of_a_change_and_what_is_past_are_no_cue() -> None:
    """A change is its topic's to weigh, as is what a statement about the same words says."""
    cue = pattern("ib", **THING)
    gone = [cue_hit(cue, Polarity.TRIED_IN_VAIN), cue_hit(cue, Polarity.BEFORE)]
    gone.append(cue_hit(cue, Polarity.IN_ORDER, is_stated=True))
    assert cue_signals(gone) == []
    assert len(cue_signals([cue_hit(cue, Polarity.ASKED, is_stated=True)])) == 1


TOPIC = Topic(
    id="net",
    title=both("the net"),
    names=("net",),
    trouble={"net": 1.0},
    in_order={"net": -0.3},
    cures={"net": 2.0, "gpu": 0.5},
)


def statement(
    polarity: Polarity, standing: Standing = Standing.NAME, *, line: int = 1, left: int = 0
) -> TopicStatement:
    """A statement about the net, in a sentence of ten characters."""
    return TopicStatement(
        topic=TOPIC,
        polarity=polarity,
        quote="the net",
        line=line,
        start=left,
        end=left + 3,
        left=left,
        right=left + 10,
        standing=standing,
    )


@pytest.mark.parametrize(
    ("polarity", "weights"),
    [
        (Polarity.IN_ORDER, {"net": -0.3}),
        (Polarity.DENIED, {"net": -0.3}),
        (Polarity.TRIED_IN_VAIN, {"net": -0.8, "gpu": -0.2}),
        (Polarity.HELPED, {"net": 2.0, "gpu": 0.5}),
        (Polarity.ASKED, {"net": 0.3}),
        (Polarity.GUESSED, {"net": 0.3}),
    ],
)
def test_weights_of_a_statement(polarity: Polarity, weights: dict[str, float]) -> None:
    """What cures is weighed against where it was tried in vain, and for where it helped."""
    (made,) = statement_signals(
        [statement(polarity, line=2)], [], [("about.txt", 10), ("about.txt", 14)]
    )
    assert made.weights == pytest.approx(weights)
    assert made == Signal(
        name=f"topic:net:{polarity}",
        kind="text",
        quote="the net",
        line=14,
        weights=made.weights,
        reason_id="net",
        source=f"topic:net:{polarity}",
        means=both("the net"),
        polarity=polarity,
        file="about.txt",
    )


def test_what_statements_do_not_weigh() -> None:
    """Trouble is the cues' to weigh; the past and words too general say nothing; once is enough."""
    silent = [statement(Polarity.TROUBLE), statement(Polarity.BEFORE)]
    silent.append(statement(Polarity.HELPED, Standing.GENERIC))
    assert statement_signals(silent, []) == []
    twice = [statement(Polarity.HELPED), statement(Polarity.HELPED, left=20)]
    assert len(statement_signals(twice, [])) == 1


@pytest.mark.parametrize(
    ("left", "polarity", "signals"),
    [
        (0, Polarity.TROUBLE, 0),
        (5, Polarity.TROUBLE, 1),
        (0, Polarity.IN_ORDER, 1),
    ],
    ids=["same-sentence", "another-sentence", "other-direction"],
)
def test_a_cue_that_says_as_much_is_enough(left: int, polarity: Polarity, signals: int) -> None:
    """One remark counts once: a cue in the sentence that weighs a cause in the same direction."""
    hits = [cue_hit(pattern("ib", **THING), polarity)]
    assert len(statement_signals([statement(Polarity.HELPED, left=left)], hits)) == signals


@pytest.mark.parametrize(
    ("kind", "polarity", "weights", "rules_out"),
    [
        ("text", Polarity.TROUBLE, {"net": 1.0}, False),
        ("text", Polarity.TROUBLE, {"net": -1.0}, True),
        ("text", Polarity.TROUBLE, {"net": -1.0, "gpu": 0.1}, False),
        ("text", Polarity.TROUBLE, {}, False),
        ("log", Polarity.TROUBLE, {"net": -1.0}, False),
        ("text", Polarity.DENIED, {"net": 1.0}, True),
        ("text", Polarity.TRIED_IN_VAIN, {"net": -1.0}, True),
        ("text", Polarity.ASKED, {"net": 1.0}, False),
    ],
)
def test_a_person_rules_out(
    kind: EvidenceKind, polarity: Polarity, weights: dict[str, float], rules_out: bool
) -> None:
    """By a denial, by a change in vain, and by what speaks against causes only."""
    made = Signal(
        name="s",
        kind=kind,
        quote="",
        line=0,
        weights=weights,
        reason_id="s",
        source="s",
        polarity=polarity,
    )
    assert made.rules_out is rules_out


def test_a_thing_merely_named_says_nothing() -> None:
    """A cue without weights is a signal only where the thing is in order."""
    assert cue_signals([cue_hit(pattern("ib", sound={"net": -0.9}))]) == []


def event(name: str, line: int, text: str = "") -> Event:
    """An event of that pattern."""
    return Event(
        pattern_id=name, kind="root", event=name, line=line, text=text or name, file="rank_1.log"
    )


def test_a_log_line_counts_once_at_its_first_place() -> None:
    """Noise and patterns nobody knows are no signals; the source is the first page or the id."""
    patterns = {
        item.id: item
        for item in (
            pattern("oom", causes={"memory": 2.0}, sources=("https://oom.example",)),
            pattern("xid", causes={"gpu": 1.0}),
            pattern("hint", kind="noise", causes={"gpu": 9.0}),
        )
    }
    events = [event("hint", 1), event("gone", 2), event("oom", 3, "first"), event("oom", 4)]
    assert event_signals([*events, event("xid", 5)], patterns) == [
        Signal(
            name="log:oom",
            kind="log",
            quote="first",
            line=3,
            weights={"memory": 2.0},
            reason_id="oom",
            source="https://oom.example",
            means=both("oom"),
            file="rank_1.log",
        ),
        Signal(
            name="log:xid",
            kind="log",
            quote="xid",
            line=5,
            weights={"gpu": 1.0},
            reason_id="xid",
            source="xid",
            means=both("xid"),
            file="rank_1.log",
        ),
    ]


def test_a_fact_counts_once_and_only_with_a_meaning() -> None:
    """The first of a name stands; its detail goes with it."""
    meanings = {"behind": FactMeaning(id="behind", means=both("behind"), causes={"data": 1.5})}
    facts = [
        Fact(name="unheard", line=1),
        Fact(name="behind", line=4, quote="rank 3", detail="3 of 8", file="a.log"),
        Fact(name="behind", line=9),
    ]
    assert fact_signals(facts, meanings) == [
        Signal(
            name="fact:behind",
            kind="rank",
            quote="rank 3",
            line=4,
            weights={"data": 1.5},
            reason_id="behind",
            source="fact:behind",
            means=both("behind"),
            file="a.log",
            detail="3 of 8",
        )
    ]
