"""Retry-After: read and written in one place."""

from __future__ import annotations

import pytest

from kb.retry_after import parse_retry_after, retry_after_header


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("3", 3.0),
        ("0.5", 0.5),
        ("0", 0.0),
        ("", None),
        ("-1", None),
        ("nan", None),
        ("inf", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
    ],
)
def test_only_a_finite_number_of_seconds_counts(header: str, seconds: float | None) -> None:
    """A date, nothing, or what no clock reaches is as if nothing were said."""
    assert parse_retry_after(header) == seconds


@pytest.mark.parametrize(("seconds", "text"), [(0.0, "1"), (0.2, "1"), (1.0, "1"), (1.1, "2")])
def test_whole_seconds_are_written_never_too_few(seconds: float, text: str) -> None:
    """Who comes back then is not refused again; zero would be a loop."""
    assert retry_after_header(seconds) == {"Retry-After": text}
