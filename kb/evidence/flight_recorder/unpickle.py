"""Plain data out of a pickle nobody trusts: nothing is imported, called or built.

A flight-recorder dump is a pickle, and a pickle is a program. The library's unpickler is never
handed it: `pickletools.genops` decodes the opcodes without executing any, and `_Builder` does the
few that write literals, lists, tuples and dicts. Any other (GLOBAL, REDUCE, BUILD, INST, OBJ,
NEWOBJ, EXT*, PERSID, DUP, text of protocol 0, ...) ends the reading, and so does a container as a
dictionary's key: hashing nested shared tuples costs exponential time.

Saved again by Python, a dump shares what is equal: one tuple stands in many places. `_measure`
counts the places as if each were written out, every container looked at once; a cycle, deep nesting
and a fan of shared lists ("billion laughs") are refused in linear time.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from typing import Any

from kb.errors import InputError
from kb.evidence.limits import EvidenceLimits

MAX_BYTES = 256 * 1024 * 1024  # 20 times the largest dump of the default 2000 entries with stacks
MAX_OPS = 30_000_000  # opcodes of a dump of that size; bounds time
MAX_CONTAINERS = 2_000_000  # containers and memo places; 200,000 entries hold 1.7 million
STEPS_A_LOOK = 1 << 16  # opcodes between two looks at the clock
MAX_PLACES = MAX_OPS  # values in it, shared ones counted wherever they stand
MAX_DEPTH = 24  # a dump nests 5 deep (dump, entries, entry, sizes, size)

_TODO = (
    "pass dumps as PyTorch wrote them (TORCH_FR_DUMP_TEMP_FILE or _dump_nccl_trace), or as JSON "
    "(_dump_nccl_trace_json)"
)
_LITERALS = frozenset(
    {"BININT", "BININT1", "BININT2", "BINFLOAT", "LONG1"}
    | {"BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINSTRING", "SHORT_BINSTRING"}
    | {"BINBYTES", "SHORT_BINBYTES", "BINBYTES8"}
)
_HOLDING = frozenset(
    {"EMPTY_LIST", "EMPTY_DICT", "LIST", "DICT", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"}
    | {"BINPUT", "LONG_BINPUT", "MEMOIZE"}
)
_KEYS = (str, bytes)  # their hashes are salted; numbers can be chosen to share one


def load_plain(data: bytes, *, name: str, limits: EvidenceLimits | None = None) -> object:
    """Read a pickle that holds nothing but dicts, lists, tuples, text, bytes, numbers and None.

    `name` is the file's name, for messages; `limits` are those of the request it belongs to.

    Raises:
        InputError: the pickle would run code, lies about its size, nests too deep, holds too much,
            is cut off, or is no pickle at all. Nothing of it has been executed.
        SlowInputError: it takes longer than the limits allow.
    """
    limits = limits or EvidenceLimits(size=len(data))
    try:
        if len(data) > MAX_BYTES:
            raise _RefusedError(f"is {len(data):,} bytes, above the limit of {MAX_BYTES:,}")
        value = _Builder().build(data, limits)
        places, _ = _measure(value, {}, 0)
    except _RefusedError as error:
        what, cause = str(error), error.__cause__
    except (ValueError, TypeError) as error:
        what, cause = f"is no pickle of plain data ({error})", error
    except (IndexError, KeyError, MemoryError, OverflowError) as error:
        what, cause = f"is a damaged pickle ({type(error).__name__})", error
    else:
        limits.take_places(places, name)
        return value
    raise InputError(
        f"{name} {what}; it was not loaded",
        todo=_TODO,
        reason="dump_refused",
        values={"name": name, "why": what},
    ) from cause


class _RefusedError(Exception):
    """Why a pickle is not read."""


class _Builder:
    """The part of the pickle machine that makes literals and containers of them."""

    def __init__(self) -> None:
        self._stack: list[object] = []
        self._marks: list[int] = []
        self._memo: dict[int, object] = {}
        push = self._stack.append
        self._acts: dict[str, Callable[[Any], object]] = {
            "PROTO": lambda _: None,
            "FRAME": lambda _: None,
            "STOP": lambda _: None,
            "NONE": lambda _: push(None),
            "NEWTRUE": lambda _: push(True),
            "NEWFALSE": lambda _: push(False),
            "EMPTY_TUPLE": lambda _: push(()),
            "EMPTY_LIST": lambda _: push([]),
            "EMPTY_DICT": lambda _: push({}),
            "MARK": self._mark,
            "TUPLE": lambda _: push(tuple(self._marked())),
            "TUPLE1": lambda _: push(tuple(self._last(1))),
            "TUPLE2": lambda _: push(tuple(self._last(2))),
            "TUPLE3": lambda _: push(tuple(self._last(3))),
            "LIST": lambda _: push(self._marked()),
            "DICT": lambda _: push(_pairs(self._marked())),
            "APPEND": lambda _: self._extend(self._last(1)),
            "APPENDS": lambda _: self._extend(self._marked()),
            "SETITEM": lambda _: self._update(self._last(2)),
            "SETITEMS": lambda _: self._update(self._marked()),
            "BINPUT": self._put,
            "LONG_BINPUT": self._put,
            "MEMOIZE": lambda _: self._put(len(self._memo)),
            "BINGET": self._get,
            "LONG_BINGET": self._get,
            **dict.fromkeys(_LITERALS, push),
        }

    def build(self, data: bytes, limits: EvidenceLimits) -> object:
        """The value the opcodes up to STOP write down.

        Raises:
            _RefusedError: an opcode does something else, or there are too many.
            SlowInputError: it takes longer than the limits allow.
            ValueError: the bytes are no opcodes; other errors come of a stack that does not fit.
        """
        acts = self._acts
        containers = 0
        for steps, (opcode, argument, position) in enumerate(pickletools.genops(data), start=1):
            act = acts.get(opcode.name)
            if act is None:
                wants = f" ({argument[:80]!r})" if isinstance(argument, str) else ""
                raise _RefusedError(
                    f"holds the pickle opcode {opcode.name}{wants} at byte {position}"
                )
            act(argument)
            containers += opcode.name in _HOLDING
            if steps % STEPS_A_LOOK == 0:
                limits.check_time()
            if steps > MAX_OPS:
                raise _RefusedError(f"has more than {MAX_OPS:,} steps")
            if containers > MAX_CONTAINERS:
                raise _RefusedError(f"has more than {MAX_CONTAINERS:,} containers and memo places")
        return self._stack.pop()

    def _mark(self, _: object) -> None:
        """Open a container; every open mark is a level of nesting."""
        if len(self._marks) > MAX_DEPTH:
            raise _RefusedError(f"nests deeper than {MAX_DEPTH} levels")
        self._marks.append(len(self._stack))

    def _put(self, index: int) -> None:
        self._memo[index] = self._stack[-1]

    def _get(self, index: int) -> None:
        self._stack.append(self._memo[index])

    def _last(self, count: int) -> list[object]:
        """Take the last `count` values."""
        if count > len(self._stack):
            raise IndexError(count)
        return [self._stack.pop() for _ in range(count)][::-1]

    def _marked(self) -> list[object]:
        """Take all values since the last mark."""
        start = self._marks.pop()
        taken = self._stack[start:]
        del self._stack[start:]
        return taken

    def _extend(self, items: list[object]) -> None:
        target = self._stack[-1]
        if not isinstance(target, list):
            raise TypeError(f"items for a {type(target).__name__}")
        target += items

    def _update(self, items: list[object]) -> None:
        target = self._stack[-1]
        if not isinstance(target, dict):
            raise TypeError(f"keys for a {type(target).__name__}")
        target.update(_pairs(items))


def _pairs(items: list[object]) -> dict[object, object]:
    """Keys and values that follow each other, as a dict."""
    for key in items[::2]:
        if not isinstance(key, _KEYS):
            raise _RefusedError(f"has a key of type {type(key).__name__}, which no recorder writes")
    return dict(zip(items[::2], items[1::2], strict=True))


def _measure(value: object, seen: dict[int, tuple[int, int]], depth: int) -> tuple[int, int]:
    """Places and levels of a value as if nothing were shared; `seen` holds those of containers.

    Raises:
        _RefusedError: it holds more than `MAX_PLACES` or nests deeper than `MAX_DEPTH`.
    """
    if not isinstance(value, (dict, list, tuple)):
        return 1, 0
    places, levels = seen.get(id(value), (0, 1))
    if depth + levels > MAX_DEPTH:
        raise _RefusedError(f"nests deeper than {MAX_DEPTH} levels")
    if not places:
        places = 1
        for child in value.values() if isinstance(value, dict) else value:
            more, below = _measure(child, seen, depth + 1)
            places, levels = places + more, max(levels, below + 1)
        if places > MAX_PLACES:
            raise _RefusedError(f"writes out to more than {MAX_PLACES:,} values")
        seen[id(value)] = places, levels
    return places, levels
