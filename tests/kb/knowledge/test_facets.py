"""The facets: one list, and every way to filter is made of it."""

from __future__ import annotations

from dataclasses import fields

import pytest

from kb.errors import InputError
from kb.knowledge.facets import FACETS, day_number, day_range, filters_of, wanted_values
from kb.types.entries import Filters

OTHER_CONDITIONS = {"since", "until", "exclude_ids"}


def test_every_condition_on_values_is_a_facet() -> None:
    """`Filters` has a field a facet, and nothing else but dates and ids to leave out."""
    assert {facet.field for facet in FACETS.values()} | OTHER_CONDITIONS == {
        field.name for field in fields(Filters)
    }


@pytest.mark.parametrize("name", sorted(FACETS))
def test_a_requested_value_is_asked_of_its_facet(name: str) -> None:
    """What is asked for by name comes out under that name, folded, and nowhere else."""
    filters = filters_of({name: ["Some Value"]})
    assert FACETS[name].requested(filters) == ("Some Value",)
    folded = "some-value" if name == "hardware" else "some value"
    assert wanted_values(filters) == [(name, (folded,))]


@pytest.mark.parametrize(
    ("date", "number"),
    [
        ("2024", 2024_00_00),
        ("2024-06", 2024_06_00),
        ("2024-06-18", 2024_06_18),
        (" 2024-06-18T10:00:00Z ", 2024_06_18),
        ("", 0),
        ("June 2024", 0),
        ("2024-6-18", 0),
    ],
)
def test_the_day_of_a_date(date: str, number: int) -> None:
    """Year, month and day as digits, zeros where the date stops, 0 for what is no date."""
    assert day_number(date) == number


@pytest.mark.parametrize(
    ("since", "until", "days"),
    [
        ("", "", None),
        ("2024", "", (2024_00_00, 9999_99_99)),
        ("", "2024", (1, 2024_99_99)),
        ("", "2024-06", (1, 2024_06_99)),
        ("2024-02-01", "2024-02-29", (2024_02_01, 2024_02_29)),
    ],
)
def test_the_days_that_pass(since: str, until: str, days: tuple[int, int] | None) -> None:
    """Both ends count; an open end goes to the first dated day or the last; a year ends in full."""
    assert day_range(Filters(since=since, until=until)) == days


@pytest.mark.parametrize("field", ["since", "until"])
def test_what_is_no_date_is_refused(field: str) -> None:
    """The error names the option and the text."""
    with pytest.raises(InputError, match=f"{field}='soon' is not a date"):
        day_range(Filters(**{field: "soon"}))  # type: ignore[arg-type]
