"""Near-duplicates are found, boilerplate is not one, and groups close over links."""

from __future__ import annotations

from kb.evaluation.nearness import linked, near_duplicates
from tests.kb.evaluation.samples import incident

STORY = "the job stops after the second epoch when the last batch of the night shift is short"
OTHER = "a fresh cluster never gets past the first barrier since the cables were swapped"
WATCHDOG = (
    "watchdog caught collective operation timeout ran for many milliseconds before timing out"
)


def test_a_repost_is_a_near_duplicate() -> None:
    """The same story with another greeting is one; each names the other, nobody else is named."""
    found = near_duplicates(
        [
            incident("first", text=f"hello all {STORY}"),
            incident("again", text=f"dear maintainers {STORY}"),
            incident("other", text=OTHER),
        ]
    )
    assert found == {"again": ("first",), "first": ("again",)}


def test_lines_of_software_make_no_duplicates() -> None:
    """Lines that stand in three posts do not count, however much of each they are."""
    posts = [
        incident(str(n), text=f"{WATCHDOG} report {'abc'[n]} {OTHER[n * 9 :]}") for n in range(2)
    ]
    third = incident("third", text=WATCHDOG)
    assert "third" in near_duplicates([incident("x", text=WATCHDOG), third])
    assert "third" not in near_duplicates([*posts, third])


def test_links_close_over_chains() -> None:
    """a-b and b-c make one group named a; d-e another; the order of pairs does not matter."""
    pairs = [("b", "c"), ("e", "d"), ("a", "b")]
    expected = {"a": "a", "b": "a", "c": "a", "d": "d", "e": "d"}
    assert linked(pairs) == linked(pairs[::-1]) == expected
