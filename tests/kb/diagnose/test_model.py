"""The evidence model: sums of evidence become probabilities that can be explained."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.diagnose.model import (
    REPEAT_DISCOUNT,
    WEIGHTS_FORMAT,
    Weights,
    discounted,
    explain,
    load_weights,
    rank_causes,
    vote_logit,
)
from kb.diagnose.signals import Signal
from kb.errors import DataError
from kb.settings import shipped_data

CAUSES = ("alpha", "beta", "gamma")


def weights(**changes: object) -> Weights:
    """Weights under which nothing is learned and nothing unknown."""
    values: dict[str, object] = {
        "format": WEIGHTS_FORMAT,
        "prior": dict.fromkeys(CAUSES, 0.0),
        "scale": {"log": 1.0, "text": 1.0, "rank": 1.0},
        "learned": {},
        "case_weight": 0.0,
        "temperature": 1.0,
        "unknown_bias": -50.0,
        "unknown_slope": 0.0,
    }
    return Weights(**(values | changes))  # type: ignore[arg-type]


def signal(name: str = "s", **nats: float) -> Signal:
    """A log signal with these expert weights."""
    return Signal(name=name, kind="log", quote="q", line=1, weights=nats, reason_id="r", source="x")


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
        parts = sum(part.weight for part in item.parts)
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


def test_more_evidence_leaves_less_unknown() -> None:
    """`unknown` falls with the nats that support the leading cause."""
    fitted = weights(unknown_bias=0.0, unknown_slope=0.5)
    shares = [
        rank_causes([signal("a", alpha=nats)], {}, fitted).unknown for nats in (0.0, 1.0, 3.0)
    ]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == pytest.approx(0.5)


def test_evidence_against_lowers_a_cause() -> None:
    """A negative weight takes a cause below the ones nothing was said about."""
    ranking = rank_causes([signal("a", alpha=-1.0)], {}, weights())
    assert ranking.causes[-1].cause == "alpha"


def test_ties_break_on_the_id() -> None:
    """Without evidence the order is that of the ids."""
    assert [item.cause for item in rank_causes([], {}, weights()).causes] == list(CAUSES)


def test_an_expert_weight_is_scaled_by_kind_and_corrected_by_name() -> None:
    """scale(kind) · expert + learned(name)."""
    fitted = weights(scale={"log": 0.5}, learned={"s": {"alpha": 0.25}})
    assert [part.weight for part in explain([signal(alpha=2.0)], "alpha", fitted)] == [1.25]


def test_repeats_count_less_in_each_direction_strongest_first() -> None:
    """Weights 1, 3 and -2 keep 3 and -2 in full and discount the 1."""
    signals = [signal("a", alpha=1.0), signal("b", alpha=3.0), signal("c", alpha=-2.0)]
    assert discounted(signals, "alpha") == [REPEAT_DISCOUNT, 3.0, -2.0]


def test_votes_favour_without_ruling_out() -> None:
    """The voted cause gains, the others lose a bounded amount, and no votes mean no change."""
    votes = {"alpha": 1.0}
    assert vote_logit("alpha", votes, 3) > 0 > vote_logit("beta", votes, 3) > math.log(0.4)
    assert vote_logit("alpha", {}, 3) == 0.0


def test_shipped_weights_cover_every_cause() -> None:
    """The shipped file loads and names a prior for every cause but `unknown`."""
    from kb.knowledge import read_yaml
    from kb.types import Cause

    causes = read_yaml(shipped_data() / "causes.yaml", tuple[Cause, ...])
    fitted = load_weights(shipped_data() / "weights.json")
    assert set(fitted.prior) == {cause.id for cause in causes} - {"unknown"}


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"{", "weights.json"), (b"[]", "weights.json")],
    ids=["cut-off", "wrong-shape"],
)
def test_damaged_weights_are_refused(
    content: bytes, says: str, tmp_path: pytest.TempPathFactory
) -> None:
    """A damaged file is named together with the command that makes it anew."""
    path = tmp_path / "weights.json"  # type: ignore[operator]
    path.write_bytes(content)
    with pytest.raises(DataError, match=says) as caught:
        load_weights(path)
    assert "kb.evaluation.fit" in caught.value.todo
