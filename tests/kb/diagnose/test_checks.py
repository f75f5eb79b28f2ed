"""The check proposed first is the one expected to remove the most doubt."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from kb.diagnose.checks import best_check, entropy, expected_gain, fitting_checks
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
            {"a": 0.7, "b": 0.2, "c": 0.1},
            0.256662,
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
        # the gain of telling a from b falls to 0.02, 0.07 and 0.17 bits at these shares of a
        ("low", {"a": 0.9919, "b": 0.0081}, True),
        ("low", {"a": 0.9920, "b": 0.0080}, False),
        ("medium", {"a": 0.9707, "b": 0.0293}, True),
        ("medium", {"a": 0.9708, "b": 0.0292}, False),
        ("high", {"a": 0.9225, "b": 0.0775}, True),
        ("high", {"a": 0.9226, "b": 0.0774}, False),
    ],
)
def test_a_check_has_to_gain_its_cost_and_a_fiftieth_of_a_bit(
    cost: Level, beliefs: dict[str, float], proposed: bool
) -> None:
    """Below that it tells nothing worth doing; beliefs count by their shares alone."""
    only = check("only", (("a",), ("b",)), (("b",), ("a",)), cost=cost)
    for factor in (1.0, 0.1):
        shares = {cause: factor * share for cause, share in beliefs.items()}
        assert best_check([only], shares) == (only if proposed else None)


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
