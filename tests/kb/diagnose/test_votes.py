"""Votes of similar cases: exact shares for scores, places, further causes and base rates."""

from __future__ import annotations

import pytest

from kb.diagnose.votes import VOTERS, base_rates, case_votes
from tests.kb.diagnose.toys import by_id, case, hit

EVEN = {"alpha": 1.0, "beta": 1.0, "gamma": 1.0}


def test_rates_count_the_first_cause_of_each_case() -> None:
    """Two cases are added to every cause; further causes and cases without one count nothing."""
    rates = base_rates(
        [case("a", "alpha", "beta"), case("b", "alpha"), case("c"), case("d", "beta")]
    )
    assert rates == {"alpha": 4.0, "beta": 3.0}


@pytest.mark.parametrize(
    ("scores", "rates", "votes"),
    [
        # 0.8³ for alpha; all the vote, as much of it as the nearest score
        pytest.param([("alpha", 0.8)], EVEN, {"alpha": 0.8}, id="one"),
        # 0.8³ = 0.512 against 0.4³/√2 = 0.04525; shares of 0.8
        pytest.param(
            [("alpha", 0.8), ("beta", 0.4)],
            EVEN,
            {"alpha": 0.7350318, "beta": 0.0649682},
            id="sharpness-and-place",
        ),
        # 0.5³ each, the second over √2, the fourth over 2
        pytest.param(
            [("alpha", 0.5), ("beta", 0.5), ("gamma", 0.5), ("beta", 0.5)],
            EVEN,
            {"alpha": 0.1795682, "beta": 0.2167580, "gamma": 0.1036738},
            id="places",
        ),
        # three times as many cases of alpha make each of them count a third
        pytest.param(
            [("alpha", 0.6), ("beta", 0.6)],
            {"alpha": 6.0, "beta": 2.0},
            {"alpha": 0.1922263, "beta": 0.4077737},
            id="rates",
        ),
        # a cause of no case has the rate of the two that are added
        pytest.param(
            [("alpha", 0.6), ("beta", 0.6)],
            {"alpha": 1.0},
            {"alpha": 0.4432777, "beta": 0.1567223},
            id="no-rate",
        ),
        pytest.param([], EVEN, {}, id="none"),
        pytest.param([("alpha", 0.0)], EVEN, {}, id="unlike"),
    ],
)
def test_shares(
    scores: list[tuple[str, float]], rates: dict[str, float], votes: dict[str, float]
) -> None:
    """score³ / √place over the cause's rate; all shares together are the nearest score."""
    cases = [case(f"case-{place}", cause) for place, (cause, _) in enumerate(scores)]
    hits = [hit(entry, score) for entry, (_, score) in zip(cases, scores, strict=True)]
    found = case_votes(hits, by_id(cases), rates)
    assert found == pytest.approx(votes, abs=1e-7)


def test_further_causes_have_a_third_of_a_vote() -> None:
    """0.3 of the case's strength for each cause it names besides its own."""
    entry = case("a", "alpha", "beta", "gamma")
    votes = case_votes([hit(entry, 0.8)], by_id([entry]), EVEN)
    assert votes == pytest.approx({"alpha": 0.5, "beta": 0.15, "gamma": 0.15})
    twins = [entry, case("b", "alpha", "beta", "gamma")]
    votes = case_votes([hit(one, 0.8) for one in twins], by_id(twins), EVEN)
    assert votes == pytest.approx({"alpha": 0.5, "beta": 0.15, "gamma": 0.15})


def test_a_case_without_a_cause_only_takes_its_place() -> None:
    """It votes for nothing, and the next one has the vote of a second."""
    entries = [case("a"), case("b", "alpha"), case("c", "beta")]
    votes = case_votes([hit(entry, 0.5) for entry in entries], by_id(entries), EVEN)
    assert votes == pytest.approx({"alpha": 0.2752551, "beta": 0.2247449}, abs=1e-7)


def test_twelve_cases_vote() -> None:
    """The thirteenth is not asked, not even for the nearest score."""
    entries = [case(f"c{number:02}", "alpha") for number in range(VOTERS)] + [case("last", "beta")]
    hits = [hit(entry, 0.5) for entry in entries[:-1]] + [hit(entries[-1], 0.9)]
    assert VOTERS == 12
    assert case_votes(hits, by_id(entries), EVEN) == pytest.approx({"alpha": 0.5})
