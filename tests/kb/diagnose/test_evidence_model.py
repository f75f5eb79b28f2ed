"""The evidence model: sums of evidence become probabilities that can be explained."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.diagnose.evidence_model import (
    REPEAT_DISCOUNT,
    discounted,
    explain,
    load_weights,
    opinions,
    rank_causes,
    vote_logit,
)
from kb.diagnose.signals import Signal
from kb.errors import DataError
from kb.settings import shipped_data
from kb.types.vocabulary import Polarity
from tests.kb.diagnose.toys import CAUSES, weights
from tests.kb.diagnose.toys import signal as toy


def signal(name: str = "s", /, **nats: float) -> Signal:
    """A log signal with these expert weights."""
    return toy(name, nats)


def test_every_number_counts() -> None:
    """Prior, scales, learned corrections, votes, temperature and unknown, all of them at once.

    alpha: (0.2 + 0.5·2 + 2·0.85·1 + 0.7·ln 0.5) / 2, beta: (0.5·-1 + 0.4 + 0.7·ln 2) / 2,
    gamma: (-1 + 0.7·ln 0.5) / 2; unknown: σ(0.3 - 0.25·2.7).
    """
    fitted = weights(
        prior={"alpha": 0.2, "beta": 0.0, "gamma": -1.0},
        scale={"log": 0.5, "text": 2.0},
        learned={"a": {"beta": 0.4}},
        case_weight=0.7,
        temperature=2.0,
        unknown_bias=0.3,
        unknown_slope=0.25,
    )
    signals = [toy("a", {"alpha": 2.0, "beta": -1.0}), toy("b", {"alpha": 1.0}, kind="text")]
    ranking = rank_causes(signals, {"beta": 0.6}, fitted)
    assert [
        (item.cause, round(item.logit, 6), round(item.probability, 6)) for item in ranking.causes
    ] == [
        ("alpha", 1.207398, 0.393864),
        ("beta", 0.192602, 0.142766),
        ("gamma", -0.742602, 0.056037),
    ]
    assert ranking.unknown == pytest.approx(0.407333, abs=1e-6)
    assert [
        [(part.signal.name, round(part.weight, 9)) for part in item.contributions]
        for item in ranking.causes
    ] == [[("b", 1.7), ("a", 1.0)], [("a", -0.1)], []]


@pytest.mark.parametrize(
    ("temperature", "first"),
    [(0.5, 0.880797), (1.0, 0.731059), (2.0, 0.622459), (4.0, 0.562177)],
)
def test_temperature_divides_every_logit(temperature: float, first: float) -> None:
    """One nat between two causes: σ(1 / temperature)."""
    fitted = weights(prior={"alpha": 1.0, "beta": 0.0}, temperature=temperature)
    ranking = rank_causes([], {}, fitted)
    assert ranking.causes[0].probability == pytest.approx(first, abs=1e-6)


@pytest.mark.parametrize(
    ("nats", "unknown"),
    [
        pytest.param([{}], 0.731059, id="nothing"),
        pytest.param([{"alpha": 2.0}], 0.5, id="one"),
        pytest.param([{"alpha": 2.0, "beta": 4.0}], 0.268941, id="the-best-supported-cause"),
        pytest.param([{"alpha": 2.0}, {"alpha": -9.0}], 0.5, id="against-does-not-count"),
        pytest.param([{"alpha": 2.0}, {"alpha": 2.0}], 0.299433, id="sums-with-the-discount"),
        pytest.param([{"alpha": -3.0}], 0.731059, id="only-against"),
    ],
)
def test_unknown_falls_with_what_supports_a_cause(
    nats: list[dict[str, float]], unknown: float
) -> None:
    """σ(1 - 0.5 · nats for the cause with most of them)."""
    fitted = weights(unknown_bias=1.0, unknown_slope=0.5)
    signals = [toy(f"s{number}", item) for number, item in enumerate(nats)]
    assert rank_causes(signals, {}, fitted).unknown == pytest.approx(unknown, abs=1e-6)


@pytest.mark.parametrize(
    ("votes", "factor"),
    [
        ({}, 1.0),
        ({"alpha": 0.25}, 1.5),  # 0.25 + 0.75 / 3, times 3
        ({"alpha": 0.5}, 2.0),
        ({"alpha": 1.0}, 2.0),  # half always stays open
        ({"alpha": 0.6, "beta": 0.2}, 1.625),  # 0.6 · 0.625 + 0.5 / 3, times 3
        ({"beta": 1.0}, 0.5),
    ],
)
def test_a_vote_is_the_log_of_its_share_against_an_even_split(
    votes: dict[str, float], factor: float
) -> None:
    """What is left open, half at least, is spread evenly over three causes."""
    assert vote_logit("alpha", votes, 3) == pytest.approx(math.log(factor))


@pytest.mark.parametrize(
    ("nats", "discounts"),
    [
        ([2.0], [2.0]),
        ([1.0, 2.0, 3.0], [0.7225, 1.7, 3.0]),
        ([-1.0, 2.0, -3.0], [-0.85, 2.0, -3.0]),
        ([1.0, 1.0], [1.0, 0.85]),  # of equals the smaller name counts in full
        ([0.0, 1.0], [0.0, 1.0]),
    ],
)
def test_repeats_of_one_direction_are_discounted(nats: list[float], discounts: list[float]) -> None:
    """0.85 to the power of how many stronger ones point the same way."""
    signals = [toy(f"s{number}", {"alpha": item}) for number, item in enumerate(nats)]
    assert discounted(signals, "alpha") == pytest.approx(discounts)


def test_parts_of_what_the_reader_says_are_no_repeats() -> None:
    """They are one sum, and discount nobody."""
    signals = [
        toy("a", {"alpha": 3.0}, "reader"),
        toy("b", {"alpha": 2.0}, "reader"),
        toy("c", {"alpha": 1.0}),
        toy("d", {"alpha": 0.5}),
    ]
    assert discounted(signals, "alpha") == pytest.approx([3.0, 2.0, 1.0, 0.425])


def test_what_adds_nothing_is_no_contribution() -> None:
    """A kind without a scale counts in full; learned nats count without an expert's."""
    fitted = weights(scale={"log": 0.0}, learned={"b": {"alpha": 0.5}})
    signals = [
        toy("a", {"alpha": 2.0}),
        toy("b", {}),
        toy("c", {"alpha": 0.5}, kind="prior"),
        toy("d", {"beta": 1.0}, kind="prior"),
    ]
    parts = explain(signals, "alpha", fitted)
    assert [(part.signal.name, part.weight) for part in parts] == [("b", 0.5), ("c", 0.425)]


def test_probabilities_are_the_softmax_of_summed_evidence() -> None:
    """Evidence for one cause over an even prior gives e^nats : 1 : 1."""
    ranking = rank_causes([signal("a", alpha=1.5), signal("b", alpha=0.5)], {}, weights())
    e2 = math.exp(1.5 + 0.5 * REPEAT_DISCOUNT)
    assert [item.cause for item in ranking.causes] == ["alpha", "beta", "gamma"]
    assert ranking.causes[0].probability == pytest.approx(e2 / (e2 + 2))
    assert ranking.causes[1].probability == pytest.approx(1 / (e2 + 2))


def test_every_logit_is_the_sum_of_its_parts() -> None:
    """Prior, parts and votes add up to the logit: nothing moves a cause unseen."""
    fitted = weights(
        prior={"alpha": -0.5, "beta": -1.0, "gamma": -2.0},
        learned={"a": {"beta": 0.7}},
        case_weight=0.4,
    )
    votes = {"beta": 0.75, "gamma": 0.25}
    ranking = rank_causes([signal("a", alpha=1.0, beta=-0.3), signal("b", gamma=2)], votes, fitted)
    for item in ranking.causes:
        parts = sum(part.weight for part in item.contributions)
        expected = fitted.prior[item.cause] + parts + 0.4 * vote_logit(item.cause, votes, 3)
        assert item.logit == pytest.approx(expected)


@given(
    st.lists(st.dictionaries(st.sampled_from(CAUSES), st.floats(-5, 5), max_size=3), max_size=6),
    st.floats(-4, 4),
    st.floats(0, 2),
)
def test_probabilities_and_unknown_sum_to_one(
    nats: list[dict[str, float]], bias: float, slope: float
) -> None:
    """Whatever the evidence, all shares together are 1 and none is negative."""
    signals = [signal(str(number), **item) for number, item in enumerate(nats)]
    ranking = rank_causes(signals, {}, weights(unknown_bias=bias, unknown_slope=slope))
    shares = [item.probability for item in ranking.causes] + [ranking.unknown]
    assert sum(shares) == pytest.approx(1.0)
    assert min(shares) >= 0


def test_evidence_against_lowers_a_cause() -> None:
    """A negative weight takes a cause below the ones nothing was said about."""
    ranking = rank_causes([signal("a", alpha=-1.0)], {}, weights())
    assert ranking.causes[-1].cause == "alpha"


def test_ties_break_on_the_id() -> None:
    """Without evidence the order is that of the ids, whatever that of the file."""
    even = weights(prior=dict.fromkeys(("gamma", "alpha", "beta"), 0.0))
    assert [item.cause for item in rank_causes([], {}, even).causes] == list(CAUSES)


def test_shipped_weights_cover_every_cause() -> None:
    """The shipped file loads and names a prior for every cause but `unknown`."""
    from kb.knowledge.load import read_yaml
    from kb.types.knowledge import Cause

    causes = read_yaml(shipped_data() / "causes.yaml", tuple[Cause, ...])
    fitted = load_weights(shipped_data() / "weights.json")
    assert set(fitted.prior) == {cause.id for cause in causes} - {"unknown"}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", r"\Aweights.json: "),
        (b"[]", r"\Aweights.json: "),
        (
            msgspec.json.encode(weights(format=7)),
            r"\Aweights.json has format 7, this program reads 1 ",
        ),
    ],
    ids=["cut-off", "wrong-shape", "another-format"],
)
def test_damaged_weights_are_refused(content: bytes, says: str, tmp_path: Path) -> None:
    """A damaged file is named together with the command that makes it anew."""
    path = tmp_path / "weights.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match=says) as caught:
        load_weights(path)
    assert caught.value.todo == "run python -m kb.train.fit"


def test_missing_weights_are_named(tmp_path: Path) -> None:
    """The message has the path and the system's reason."""
    path = tmp_path / "weights.json"
    with pytest.raises(DataError) as caught:
        load_weights(path)
    assert str(caught.value) == f"{path}: No such file or directory — reinstall the package"


def test_what_is_ruled_out_speaks_for_nothing_else() -> None:
    """It takes from its causes, e^(weight / temperature) of their share, and gives to unknown."""
    plain = [toy("a", {"alpha": 1.0}), toy("b", {"beta": 0.5})]
    denial = Signal(
        name="c!",
        kind="text",
        quote="",
        line=0,
        weights={"alpha": -0.5, "beta": 0.3},
        reason_id="c",
        source="c",
        polarity=Polarity.DENIED,
    )
    fitted = weights(temperature=2.0)
    before = rank_causes(plain, {}, fitted)
    after = rank_causes([*plain, denial], {}, fitted)
    shares = {item.cause: item.probability for item in before.causes}
    for item in after.causes:
        kept = math.exp(-0.25) if item.cause == "alpha" else 1.0
        assert item.probability == pytest.approx(shares[item.cause] * kept)
    assert after.unknown == pytest.approx(before.unknown + shares["alpha"] * (1 - math.exp(-0.25)))


def test_one_more_thing_in_order_raises_no_cause() -> None:
    """Nor where other things were ruled out before."""

    def ruled_out(cause: str) -> Signal:
        return Signal(
            name=f"{cause}!",
            kind="text",
            quote="",
            line=0,
            weights={cause: -2.0},
            reason_id=cause,
            source=cause,
            polarity=Polarity.IN_ORDER,
        )

    signals = [toy("a", {"alpha": 1.0})]
    for cause in CAUSES:
        before = {
            item.cause: item.probability for item in rank_causes(signals, {}, weights()).causes
        }
        signals.append(ruled_out(cause))
        for item in rank_causes(signals, {}, weights()).causes:
            assert item.probability <= before[item.cause] + 1e-12


def test_each_part_of_the_evidence_has_an_opinion_of_its_own() -> None:
    """With the prior and what is its own; a part that says nothing has none."""
    fitted = weights(prior={"alpha": 0.0, "beta": 1.0}, case_weight=0.5, temperature=2.0)
    signals = [toy("a", {"alpha": 3.0}), toy("r", {"beta": 1.0}, kind="reader")]
    votes = {"alpha": 0.5}
    parts = opinions(rank_causes(signals, votes, fitted), votes, fitted)
    # σ((3 - 1) / 2), σ((0 - 2) / 2), σ((½·ln 1.5 - 1 - ½·ln 0.5) / 2)
    assert {name: round(shares["alpha"], 6) for name, shares in parts.items()} == {
        "evidence": 0.731059,
        "reader": 0.268941,
        "cases": 0.4439,
    }
    assert opinions(rank_causes(signals[1:], {}, fitted), {}, fitted).keys() == {"reader"}
