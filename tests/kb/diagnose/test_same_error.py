"""What tells one failure from another: errors, what exceptions say, sizes of collectives."""

from __future__ import annotations

import pytest

from kb.diagnose.same_error import ErrorMarks, error_marks
from kb.types.incident import Event, Incident, LogReading
from kb.types.knowledge import EventType
from kb.types.vocabulary import EventRole, PatternKind
from tests.kb.diagnose.toys import both

TYPES = {
    kind.id: kind
    for kind in (
        EventType(id="oom", means=both("oom")),
        EventType(id="watchdog", means=both("w"), roles=(EventRole.WATCHDOG_REPORT,)),
        EventType(id="vague", means=both("v"), roles=(EventRole.VAGUE,)),
        EventType(id="exception", means=both("e"), roles=(EventRole.VAGUE, EventRole.EXCEPTION)),
    )
}


def marks(event: str, text: str = "", kind: PatternKind = "root") -> ErrorMarks:
    """The marks of a log with one event."""
    events = (Event(pattern_id="p", kind=kind, event=event, line=1, text=text),)
    return error_marks(LogReading(incident=Incident(), events=events, excerpt=""), TYPES)


@pytest.mark.parametrize(
    ("event", "text", "errors"),
    [
        pytest.param("oom", "", {"oom"}, id="an-error"),
        pytest.param("retired", "", {"retired"}, id="of-no-known-kind"),
        pytest.param("watchdog", "", set(), id="in-every-log"),
        pytest.param("vague", "", set(), id="says-nothing"),
        pytest.param(
            "exception",
            "[rank3]: KeyError: 'x' in /data/run 7 at 0xff",
            {"KeyError: 'x' in # # at #"},
            id="what-it-says",
        ),
        pytest.param("exception", "ValueError", set(), id="an-exception-without-words"),
        pytest.param("exception", "it raised", set(), id="no-exception"),
    ],
)
def test_what_counts_as_an_error(event: str, text: str, errors: set[str]) -> None:
    """What failed counts; that something failed does not; numbers and paths vary."""
    assert marks(event, text).errors == errors


def test_context_is_no_error() -> None:
    """Errors and timeouts count, whatever else a log says does not."""
    assert marks("oom", kind="timeout")
    assert not marks("oom", kind="context")


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("NumelIn=8, NumelOut=32", {("8", "32")}),
        ("NumelIn=8,\tNumelOut=16", {("8", "16")}),
        ("NumelIn=1, NumelOut=1", set()),
    ],
    ids=["sizes", "tab", "barrier"],
)
def test_sizes_of_what_timed_out(text: str, sizes: set[tuple[str, str]]) -> None:
    """Those of a barrier stand in every log."""
    made = marks("watchdog", text, "timeout")
    assert (made.errors, made.sizes) == (frozenset(), sizes)
    assert bool(made) is bool(sizes)


def test_what_both_have() -> None:
    """Errors and sizes that stand in both, or nothing."""
    one = ErrorMarks(frozenset({"a", "b"}), frozenset({("8", "8")}))
    other = ErrorMarks(frozenset({"b"}), frozenset({("8", "9")}))
    assert one.shared(other) == ErrorMarks(frozenset({"b"}))
    assert not one.shared(ErrorMarks(frozenset({"c"})))
