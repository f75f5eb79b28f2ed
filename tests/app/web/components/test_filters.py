"""The query of a list: what an address asks for, and what its filters offer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.web.components import filters
from app.web.components.filters import ListQuery, parse_address
from kb.knowledge.facets import FACETS, filters_of
from kb.types.entries import Filters

names = st.text(min_size=1, max_size=20).map(str.strip).filter(bool)


@given(
    query=st.text(max_size=60).map(str.strip),
    values=st.dictionaries(
        st.sampled_from(list(FACETS)), st.lists(names, min_size=1, unique=True, max_size=4)
    ),
    shown=st.integers(1, filters.MOST),
    page=st.integers(1, 50),
)
def test_an_address_says_the_question(
    query: str, values: dict[str, list[str]], shown: int, page: int
) -> None:
    """Reading what was written gives the same question, filters and length."""
    chosen = filters_of(values)
    question = ListQuery(text=query, filters=chosen, shown=shown, page=page)
    assert parse_address(filters.address_of(question)) == question


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"n": ["-3"], "p": ["x"]}, ListQuery()),
        ({"n": ["0"], "p": ["00"]}, ListQuery()),
        ({"n": ["99999999999999999999"]}, ListQuery()),
        ({"n": ["5000"]}, ListQuery(shown=filters.MOST)),
        ({"cause": ["", "  ", "a" * 500]}, ListQuery()),
        ({"cause": ["x", "x"], "nobody": ["y"]}, ListQuery(filters=Filters(causes=("x",)))),
        ({"q": ["  a  ", "b"]}, ListQuery(text="a")),
    ],
    ids=["no numbers", "zeros", "huge", "too many", "no values", "unknown name", "two questions"],
)
def test_an_address_nobody_wrote_is_harmless(
    parameters: dict[str, list[str]], expected: ListQuery
) -> None:
    """What cannot be meant is passed over."""
    assert parse_address(parameters) == expected


def test_chosen_values_are_offered_as_entries_spell_them() -> None:
    """Filters do not mind the case; a value nothing has stays on offer with 0."""
    offered = filters.offered_values({"NCCL": 3}, ["nccl", "mpi"])
    assert offered == {"NCCL": 3, "mpi": 0}
    assert filters.spelt_as_offered(["nccl", "NCCL", "mpi"], offered) == ["NCCL", "mpi"]
