"""Windows of the log: the lines around what matters, without secrets, as text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.web.components import log_view
from kb.types.incident import Event, LogReading


def test_windows_show_the_lines_around_a_mark() -> None:
    """Numbers and text are those of the log; windows that touch are one."""
    text = "\n".join(f"line {number}" for number in range(1, 101))
    marks: dict[log_view.Place, log_view.Mark] = {("", 3): "error", ("", 9): "evidence"}
    marks |= {("", 100): "evidence"}
    first, last = log_view.windows({"": log_view.lines_of(text)}, marks, context=3)
    assert [line.number for line in first.lines] == list(range(1, 13))
    assert [line.number for line in last.lines] == [97, 98, 99, 100]
    assert {line.number: line.mark for line in first.lines if line.mark} == {
        3: "error",
        9: "evidence",
    }
    assert all(
        line.text == f"line {line.number}" for window in (first, last) for line in window.lines
    )


def test_windows_hide_secrets_and_keep_line_numbers() -> None:
    """A key that began before the window is hidden too, and the lines below keep their numbers."""
    key = [
        "-----BEGIN RSA PRIVATE KEY-----",
        *["MIIEpAIBAAKCAQEA0"] * 30,
        "-----END RSA PRIVATE KEY-----",
    ]
    lines = ["before", *key, "password=hunter2hunter2", "the error"]
    at = len(lines)
    (window,) = log_view.windows({"": lines}, {("", at): "error"}, context=5)
    shown = {line.number: line.text for line in window.lines}
    assert shown[at] == "the error"
    assert "MIIE" not in str(shown)
    assert "hunter2" not in str(shown)


@given(st.binary(max_size=400), st.integers(1, 50))
def test_lines_of_a_file_do_not_depend_on_its_pieces(data: bytes, size: int) -> None:
    """Read in pieces of any size the lines are the same."""
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    *whole, last = [line.decode("utf-8", "replace") for line in data.split(b"\n")]
    whole += [last] if last else []
    assert list(log_view.lines_of_chunks(pieces)) == whole


def test_a_quote_is_found_in_its_own_file() -> None:
    """Two files have a line 7; the one with the quoted text is meant."""
    events = tuple(
        Event(pattern_id="p", kind="root", event="e", line=7, text=text, file=file)
        for file, text in (("rank0.log", "all is well"), ("rank1.log", "CUDA out of memory"))
    )
    reading = LogReading(incident=None, events=events, excerpt="")  # type: ignore[arg-type]
    assert log_view.place_of(reading, 7, "CUDA out of memory") == ("rank1.log", 7)
    assert log_view.place_of(reading, 8, "elsewhere") == ("", 8)


def test_hostile_lines_are_text() -> None:
    """HTML, escapes and reordering marks in a log show as characters or not at all."""
    (window,) = log_view.windows(
        {"": ["<script>x</script>\x1b[31m\u202e"]}, {("", 1): "error"}, context=1
    )
    content = log_view.window_html(window)
    assert "&lt;script&gt;x&lt;/script&gt;" in content
    assert "\x1b" not in content
    assert "\u202e" not in content
