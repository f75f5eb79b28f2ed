"""Tests of kb/evidence/torchrun.py."""

from __future__ import annotations

import json

import pytest

from kb.evidence.torchrun import ErrorFile, parse_error_file, read_error_files

GLOO = "RuntimeError: [/x/gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.3]:411"


def error(rank: int, message: str, timestamp: str) -> ErrorFile:
    """An error file as `@record` writes it."""
    text = json.dumps(
        {
            "message": {
                "message": message,
                "extraInfo": {"py_callstack": "…", "timestamp": timestamp},
            }
        }
    )
    parsed = parse_error_file(text, path=f"/logs/none_ab/attempt_0/{rank}/error.json")
    assert parsed is not None
    return parsed


def test_the_first_failure_of_its_own_is_named() -> None:
    """A closed connection that was written earlier is still the consequence."""
    files = [error(0, GLOO, "100"), error(2, "KeyError: 'dog'", "101"), error(1, GLOO, "101")]
    reading = read_error_files(files)
    assert [culprit.rank for culprit in reading.culprits] == [2]
    assert (reading.facts[0].name, reading.facts[0].quote) == (
        "torchrun_first_failure",
        "KeyError: 'dog'",
    )
    assert [(s.rank, s.state) for s in reading.ranks] == [
        (0, "cascade"),
        (1, "cascade"),
        (2, "failed"),
    ]


def test_of_two_own_failures_the_earlier_counts() -> None:
    """Time decides between failures of their own."""
    files = [error(3, "ValueError: late", "120"), error(1, "OSError: first", "119")]
    assert [culprit.rank for culprit in read_error_files(files).culprits] == [1]


def test_cascades_alone_name_nobody() -> None:
    """When every rank only lost its peer, the one that died wrote no file."""
    reading = read_error_files([error(0, GLOO, "1"), error(1, GLOO, "2")])
    assert reading.culprits == ()
    assert {fact.name for fact in reading.facts} == {"torchrun_error"}


def test_a_signal_is_written_in_another_form() -> None:
    """The agent writes ``message`` as text for a worker that died of a signal."""
    text = json.dumps(
        {"message": "Signal 11 (SIGSEGV) received by PID 77", "timestamp": 1668000000}
    )
    parsed = parse_error_file(text, path="error_rank_3.json")
    assert parsed is not None
    assert (parsed.rank, parsed.timestamp) == (3, 1668000000.0)
    assert [culprit.rank for culprit in read_error_files([parsed]).culprits] == [3]


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"message": 3}', "{" * 5000, '{"entries": []}'])
def test_other_files_are_no_error_files(text: str) -> None:
    """Anything else is None, not a failure."""
    assert parse_error_file(text, path="x.json") is None
