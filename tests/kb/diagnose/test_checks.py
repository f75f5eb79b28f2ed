"""The check proposed first is the one expected to remove the most doubt."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kb.diagnose.checks import best_check, entropy, expected_gain, fitting_checks, is_open
from kb.types.incident import Incident
from kb.types.knowledge import AppliesTo, Bilingual, Check, CheckOutcome
from kb.types.vocabulary import Level

WORDS = Bilingual(zh="看", en="look")


def check(
    name: str, *outcomes: tuple[tuple[str, ...], tuple[str, ...]], cost: Level = "low"
) -> Check:
    """A check whose outcomes support and refute these causes."""
    return Check(
        id=name,
        command=name,
        tells=WORDS,
        cost=cost,
        outcomes=tuple(
            CheckOutcome(observation=WORDS, supports=good, refutes=bad) for good, bad in outcomes
        ),
    )


SEPARATES = check("separates", (("a",), ("b",)), (("b",), ("a",)))
BLIND = check("blind", (("a", "b"), ()), ((), ()))


def test_entropy_of_an_even_pair_is_one_bit() -> None:
    """H(½, ½) = 1, and certainty has none."""
    assert entropy({"a": 0.5, "b": 0.5}) == pytest.approx(1.0)
    assert entropy({"a": 1.0, "b": 0.0}) == 0.0


def test_the_gain_is_that_of_the_channel() -> None:
    """0.9 against 0.1 is a binary symmetric channel: 1 - H(0.1) bits."""
    gain = expected_gain(SEPARATES, {"a": 0.5, "b": 0.5})
    assert gain == pytest.approx(1 - entropy({"x": 0.1, "y": 0.9}))


def test_a_check_that_tells_the_leaders_apart_wins() -> None:
    """A check both leaders answer alike removes nothing and is never proposed."""
    assert expected_gain(BLIND, {"a": 0.5, "b": 0.5}) == pytest.approx(0.0)
    assert best_check([BLIND, SEPARATES], {"a": 0.4, "b": 0.4}) == SEPARATES
    assert best_check([BLIND], {"a": 0.4, "b": 0.4}) is None


def test_nothing_is_proposed_when_nothing_is_in_doubt() -> None:
    """With one cause certain no check gains anything."""
    assert best_check([SEPARATES], {"a": 1.0, "b": 0.0}) is None
    assert best_check([SEPARATES], {}) is None


def test_a_dear_check_has_to_gain_more() -> None:
    """Of two equal checks the cheap one comes first, then the smaller id."""
    dear = check("a-dear", (("a",), ("b",)), (("b",), ("a",)), cost="high")
    twin = check("separates-twin", (("a",), ("b",)), (("b",), ("a",)))
    assert best_check([dear, twin, SEPARATES], {"a": 0.5, "b": 0.5}) == SEPARATES


@pytest.mark.parametrize(
    ("outcomes", "beliefs", "bits"),
    [
        # an outcome is likely (0.9) under what it supports, unlikely (0.1) under what it refutes,
        # else neutral (0.4); of one cause all outcomes together are 1
        ([(("a",), ()), ((), ("a",))], {"a": 0.5, "b": 0.5}, 0.146793),
        ([(("a",), ()), ((), ())], {"a": 0.5, "b": 0.5}, 0.027910),
        ([((), ()), ((), ("a",))], {"a": 0.5, "b": 0.5}, 0.073104),
        (
            [(("a",), ("b",)), (("b",), ("a",)), ((), ())],
            {"a": 0.7, "b": 0.3},
            0.325588,
        ),
    ],
)
def test_expected_gain(
    outcomes: list[tuple[tuple[str, ...], tuple[str, ...]]], beliefs: dict[str, float], bits: float
) -> None:
    """Entropy now, less what is expected to be left."""
    assert expected_gain(check("c", *outcomes), beliefs) == pytest.approx(bits, abs=1e-6)


@pytest.mark.parametrize(
    ("cost", "beliefs", "proposed"),
    [
        # the gain of telling a from b falls to 0.05, 0.10 and 0.20 bits at these shares of a
        ("low", {"a": 0.9794, "b": 0.0206}, True),
        ("low", {"a": 0.9795, "b": 0.0205}, False),
        ("medium", {"a": 0.9571, "b": 0.0429}, True),
        ("medium", {"a": 0.9572, "b": 0.0428}, False),
        ("high", {"a": 0.9062, "b": 0.0938}, True),
        ("high", {"a": 0.9063, "b": 0.0937}, False),
    ],
)
def test_a_check_has_to_gain_its_cost_and_a_twentieth_of_a_bit(
    cost: Level, beliefs: dict[str, float], proposed: bool
) -> None:
    """Below that it tells nothing worth doing; shares beyond 1 count by what they are of all."""
    only = check("only", (("a",), ("b",)), (("b",), ("a",)), cost=cost)
    for factor in (1.0, 3.0):
        shares = {cause: factor * share for cause, share in beliefs.items()}
        assert best_check([only], shares) == (only if proposed else None)


@pytest.mark.parametrize(
    ("shares", "bits"),
    [
        # half of what is left beside the two, of which nobody knows how the check comes out
        ({"a": 0.5, "b": 0.25}, 0.417125),
        # the same where causes hold it that no outcome speaks of
        ({"a": 0.5, "b": 0.25, "c": 0.15, "d": 0.1}, 0.417125),
        # a cause behind the two leading ones counts by how the check would come out under it
        ({"a": 0.5, "c": 0.3, "b": 0.2}, 0.260785),
    ],
)
def test_what_is_left_beside_the_leading_causes_counts_half(
    shares: dict[str, float], bits: float
) -> None:
    """The other causes and those nobody names are one belief of half its weight."""
    assert expected_gain(SEPARATES, shares) == pytest.approx(bits, abs=1e-6)


@pytest.mark.parametrize(
    ("seen", "is_asked"),
    [
        (("launcher:slurm", "stage:eval"), True),
        (("launcher:slurm",), False),
        (("stage:eval", "cue:passes"), False),
        (("stage:eval", "setting:A=1"), True),
        (("stage:eval", "setting:A=1", "topic:p2p:tried_in_vain"), False),
    ],
    ids=["due", "not-here", "seen-to-pass", "half-seen", "seen-to-hang"],
)
def test_a_check_the_input_answers_is_not_asked(seen: tuple[str, ...], is_asked: bool) -> None:
    """Where `when` is not seen it makes no sense; where an outcome is, it is done already."""
    passes = CheckOutcome(observation=WORDS, shown_by=(("cue:passes",),))
    hangs = CheckOutcome(observation=WORDS, shown_by=(("setting:A=1", "topic:p2p:tried_in_vain"),))
    eval_check = replace(check("c"), outcomes=(passes, hangs), when=(("stage:eval",),))
    assert is_open(eval_check, seen) == is_asked
    cause = SimpleNamespace(checks=[eval_check])
    found = fitting_checks(cause, Incident(), (), seen)  # type: ignore[arg-type]
    assert found == ([eval_check] if is_asked else [])


def test_a_check_without_outcomes_is_never_proposed() -> None:
    """It cannot tell anything, whatever stands beside it."""
    assert best_check([check("a-silent"), SEPARATES], {"a": 0.5, "b": 0.5}) == SEPARATES


@pytest.mark.parametrize(
    ("incident", "provided", "names"),
    [
        (Incident(), (), ["anywhere", "on-hccl", "on-fsdp"]),
        (Incident(backend="nccl"), (), ["anywhere", "on-fsdp"]),
        (Incident(backend="hccl"), (), ["anywhere", "on-hccl", "on-fsdp"]),
        (Incident(frameworks=("fsdp",)), (), ["on-fsdp", "anywhere", "on-hccl"]),
        (Incident(), ("stacks",), ["on-hccl", "on-fsdp"]),
    ],
    ids=["nothing-known", "another-backend", "its-backend", "its-framework", "provided"],
)
def test_checks_that_fit_come_first(
    incident: Incident, provided: tuple[str, ...], names: list[str]
) -> None:
    """Those of another backend go; those for what nothing speaks of are last; no evidence twice."""
    scopes = {
        "on-hccl": AppliesTo(backends=("hccl",)),
        "on-fsdp": AppliesTo(frameworks=("fsdp",)),
        "anywhere": AppliesTo(),
    }
    cause = SimpleNamespace(
        checks=[
            replace(
                check(name), applies_to=scope, gives="stacks" if name == "anywhere" else "script"
            )
            for name, scope in scopes.items()
        ]
    )
    fitting = fitting_checks(cause, incident, provided)  # type: ignore[arg-type]
    assert [item.id for item in fitting] == names
