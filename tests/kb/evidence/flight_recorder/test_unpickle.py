"""Tests of kb/logs/unpickle.py: plain data comes through, nothing else does anything."""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import tracemalloc
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.errors import InputError
from kb.evidence.flight_recorder.unpickle import MAX_DEPTH, load_plain

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


class Runs:
    """An object whose unpickling calls a function with arguments."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.call


class WithState:
    """An object with a state to build."""

    def __init__(self) -> None:
        self.value = 1


def laughs(levels: int) -> bytes:
    """Lists of ten references to the list below: 10 ** `levels` leaves in a few hundred bytes."""
    pickled = b"\x80\x02]q\x00"
    for level in range(levels):
        pickled += b"](" + b"h" + bytes([level]) + b"h" + bytes([level]) + b"e"
        pickled += b"q" + bytes([level + 1])
    return pickled + b"."


def tuples(levels: int) -> bytes:
    """Tuples of two references to the tuple below: 2 ** `levels` leaves."""
    pickled = b"\x80\x02)q\x00"
    for level in range(levels):
        pickled += b"h" + bytes([level]) + b"h" + bytes([level]) + b"\x86q" + bytes([level + 1])
    return pickled + b"."


def as_key(levels: int) -> bytes:
    """Such tuples as a dictionary's key: hashing them takes 2 ** `levels` steps."""
    return tuples(levels)[:-1] + b"}h" + bytes([levels]) + b"Ns."


@given(value=PLAIN, protocol=st.sampled_from([3, 4, 5]))
@settings(max_examples=150, deadline=None)
def test_plain_data_round_trips(value: object, protocol: int) -> None:
    """What pickle writes for plain data is what comes back, for every binary protocol."""
    loaded = load_plain(pickle.dumps(value, protocol), name="dump_0")
    assert loaded == value
    assert type(loaded) is type(value)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda path: Runs(os.system, f"touch {path}"), id="os-system"),
        pytest.param(lambda path: Runs(eval, f"open({str(path)!r}, 'w')"), id="eval"),
        pytest.param(lambda path: Runs(subprocess.check_call, ["touch", str(path)]), id="popen"),
        pytest.param(lambda path: [Runs(os.makedirs, str(path))] * 3, id="inside-a-list"),
        pytest.param(lambda path: OrderedDict(a=str(path)), id="harmless-class"),
        pytest.param(lambda path: WithState(), id="build-state"),
        pytest.param(lambda path: {1, 2}, id="set"),
    ],
)
def test_nothing_is_ever_called(make: Any, protocol: int, tmp_path: Path) -> None:
    """A pickle that would call anything is refused by name, and nothing has happened."""
    mark = tmp_path / "mark"
    with pytest.raises(InputError, match=r"^dump_3 .*was not loaded") as caught:
        load_plain(pickle.dumps(make(mark), protocol), name="dump_3")
    assert caught.value.todo
    assert not mark.exists()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        pytest.param(
            b"\x80\x02B" + struct.pack("<I", 1 << 30) + b"ab.", "but only", id="1-GB-bytes"
        ),
        pytest.param(
            b"\x80\x02X" + struct.pack("<I", 1 << 30) + b"ab.", "but only", id="1-GB-text"
        ),
        pytest.param(b"\x80\x04\x8d" + struct.pack("<Q", 1 << 40) + b"a.", "but only", id="1-TB"),
        pytest.param(b"\x80\x04\x8e" + struct.pack("<Q", 1 << 63) + b"a.", "", id="2-to-the-63"),
        pytest.param(b"\x80\x02\x8b" + struct.pack("<i", 1 << 30) + b"a.", "", id="1-GB-number"),
        pytest.param(b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".", "deeper", id="nested"),
        pytest.param(b"\x80\x02]q\x00h\x00a.", "deeper", id="contains-itself"),
        pytest.param(tuples(60), "deeper", id="tuple-bomb"),
        pytest.param(as_key(60), "key of type tuple", id="hash-bomb"),
        pytest.param(b"\x80\x04(" + b"(" * 100_000 + b"0.", "deeper", id="open-marks"),
        pytest.param(b"\x80\x04}(\x8a\x02\x00\x01Nu.", "key of type int", id="number-as-key"),
        pytest.param(
            b"\x80\x04}(G\x40\x00\x00\x00\x00\x00\x00\x00Nu.",
            "key of type float",
            id="float-as-key",
        ),
        pytest.param(b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R.", "GLOBAL", id="by-hand"),
        pytest.param(b"\x80\x02\x82\x01.", "EXT1", id="extension-registry"),
        pytest.param(b"\x80\x02Pname\n.", "PERSID", id="persistent-id"),
        pytest.param(b"\x80\x02}q\x00", "", id="no-end"),
        pytest.param(b"\x80\x02a.", "", id="empty-stack"),
        pytest.param(b"\x80\x02}(]Nu.", "", id="list-as-key"),
        pytest.param(b"", "", id="empty"),
        pytest.param(b"\x00" * 64, "", id="zeroes"),
    ],
)
def test_bombs_are_refused_in_little_memory(data: bytes, says: str) -> None:
    """A lie about sizes ends with a message that names the file, in less than 40 MiB."""
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"^dump_7 ") as caught:
            load_plain(data, name="dump_7")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert says in str(caught.value)
    assert peak < 40 * 2**20


@pytest.mark.parametrize("opcode", [b"]", b"}", b"\x94"], ids=["lists", "dicts", "memo"])
def test_one_byte_that_takes_a_hundred_is_counted(
    opcode: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Containers and memo places have a limit of their own, far below that of opcodes."""
    monkeypatch.setattr("kb.evidence.flight_recorder.unpickle.MAX_CONTAINERS", 1000)
    assert load_plain(b"\x80\x04(N" + opcode * 999 + b"t.", name="dump_0")
    with pytest.raises(InputError, match="more than 1,000 containers"):
        load_plain(b"\x80\x04(N" + opcode * 1001 + b"t.", name="dump_0")


def test_a_refusal_holds_no_raw_text_of_the_pickle() -> None:
    """What a hostile opcode names is quoted: no escape sequence reaches a terminal."""
    with pytest.raises(InputError, match="GLOBAL") as caught:
        load_plain(b"\x80\x04c\x1b]0;pwn\x07os\nsystem\x1b[31m\n.", name="dump_0")
    assert str(caught.value).isprintable()
    assert caught.value.values["why"].isprintable()


def test_what_pickle_shares_is_read() -> None:
    """A dump saved again by Python, one tuple and one text standing in many places, comes back."""
    group = ("0", "default_pg")
    dump = {"entries": [{"process_group": group, "sizes": (group, group)} for _ in range(3)]}
    for protocol in (2, 3, 4, 5):
        again = pickle.dumps(pickle.loads(pickle.dumps(dump, protocol)), protocol)  # noqa: S301
        assert load_plain(again, name="dump_0") == dump


def test_a_far_memo_place_costs_nothing() -> None:
    """A memo index near 2 ** 32 takes no memory for the places before it."""
    tracemalloc.start()
    try:
        far = struct.pack("<I", 0xFFFFFFF0)
        value = load_plain(b"\x80\x02]r" + far + b"j" + far + b"\x86.", name="dump_0")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert value == ([], [])
    assert peak < 2**20


@pytest.mark.parametrize("leaves", [pytest.param(3, id="lists"), pytest.param(2, id="tuples")])
def test_what_is_shared_is_bounded_by_its_size_written_out(leaves: int) -> None:
    """Few levels that would print as billions of values are refused: readers write values out."""
    inner: object = tuple(range(1000))
    for _ in range(leaves):
        inner = [inner] * 1000 if leaves == 3 else (inner,) * 10_000
    with pytest.raises(InputError, match="writes out to more than"):
        load_plain(pickle.dumps(inner), name="dump_0")


def test_shared_lists_cost_linear_time() -> None:
    """Twenty levels of doubled lists hold 2 ** 20 leaves by path and twenty lists by identity."""
    value: object = load_plain(laughs(20), name="dump_0")
    for _ in range(20):
        assert isinstance(value, list)
        assert value[0] is value[1]
        value = value[0]
    with pytest.raises(InputError, match="deeper"):
        load_plain(laughs(MAX_DEPTH + 1), name="dump_0")


@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")  # pickletools'
@given(data=st.binary(max_size=300), protocol=st.sampled_from([b"\x80\x02", b"\x80\x04", b""]))
@settings(max_examples=400, deadline=None)
def test_any_bytes_give_a_value_or_an_input_error(data: bytes, protocol: bytes) -> None:
    """No input makes it fail in another way than an InputError that names file and next step."""
    problem = ""
    try:
        load_plain(protocol + data, name="dump_1")
    except InputError as error:
        problem = str(error)
    assert problem == "" or (problem.startswith("dump_1 ") and "pass dumps" in problem)
