"""Plain data out of a pickle nobody trusts: nothing is imported, called or built.

A flight-recorder dump is a pickle, and a pickle is a program. This reader accepts the part of the
language that writes literals and refuses the rest *before* anything runs:

1. `_check` walks the opcodes (`pickletools.genops` decodes, it never executes). An opcode outside
   the allow list (GLOBAL, REDUCE, BUILD, INST, OBJ, NEWOBJ, EXT*, PERSID, DUP, text of protocol 0,
   ...), a length claim longer than the file, or a memo index no program could have reached yet
   ends the reading. A tuple may not be used twice: hashing nested shared tuples as dictionary
   keys costs exponential time.
2. The checked bytes go to the library's unpickler, whose `find_class` and `persistent_load` raise.
3. `_check_depth` goes through the result level by level, each container once, so a cycle, deep
   nesting and a fan of shared lists ("billion laughs") are refused in linear time.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from typing import NoReturn

from kb.errors import InputError

MAX_BYTES = 256 * 1024 * 1024  # 20 times the largest dump of the default 2000 entries with stacks
MAX_OPS = 30_000_000  # opcodes of a dump of that size; bounds time and memory
MAX_DEPTH = 24  # a dump nests 5 deep (dump, entries, entry, sizes, size)

_TODO = (
    "pass dumps as PyTorch wrote them (TORCH_FR_DUMP_TEMP_FILE or _dump_nccl_trace), or as JSON "
    "(_dump_nccl_trace_json)"
)
_TUPLES = frozenset({"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"})
_PUTS = frozenset({"BINPUT", "LONG_BINPUT", "MEMOIZE"})
_GETS = frozenset({"BINGET", "LONG_BINGET"})
_MEMO = _PUTS | _GETS
_ALLOWED = (
    frozenset(
        {"PROTO", "FRAME", "STOP", "NONE", "NEWTRUE", "NEWFALSE", "EMPTY_TUPLE", "MARK"}
        | {"BININT", "BININT1", "BININT2", "BINFLOAT", "LONG1"}
        | {"BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINSTRING", "SHORT_BINSTRING"}
        | {"BINBYTES", "SHORT_BINBYTES", "BINBYTES8"}
        | {"EMPTY_LIST", "EMPTY_DICT", "LIST", "DICT", "APPEND", "APPENDS", "SETITEM", "SETITEMS"}
    )
    | _TUPLES
    | _MEMO
)

_Container = dict[object, object] | list[object] | tuple[object, ...]


def load_plain(data: bytes, *, name: str) -> object:
    """Read a pickle that holds nothing but dicts, lists, tuples, text, bytes, numbers and None.

    `name` is the file's name, for messages.

    Raises:
        InputError: the pickle would run code, lies about its size, nests too deep, is cut off, or
            is no pickle at all. Nothing of it has been executed.
    """
    if len(data) > MAX_BYTES:
        _refuse(name, f"is {len(data):,} bytes, above the limit of {MAX_BYTES:,}")
    try:
        _check(data, name)
        value = _PlainUnpickler(io.BytesIO(data)).load()
    except (pickle.UnpicklingError, ValueError, TypeError, EOFError, AttributeError) as error:
        _refuse(name, f"is no pickle of plain data ({error})", cause=error)
    except (IndexError, KeyError, MemoryError, OverflowError, RecursionError) as error:
        _refuse(name, f"is a damaged pickle ({type(error).__name__})", cause=error)
    _check_depth(value, name)
    return value


class _PlainUnpickler(pickle.Unpickler):
    """The library's unpickler without any way to reach a class or a function."""

    def find_class(self, module_name: str, global_name: str, /) -> NoReturn:
        raise pickle.UnpicklingError(f"asks for {module_name}.{global_name}")

    def persistent_load(self, pid: object, /) -> NoReturn:
        raise pickle.UnpicklingError("asks for an outside object")


def _refuse(name: str, what: str, *, cause: BaseException | None = None) -> NoReturn:
    raise InputError(f"{name} {what}; it was not loaded", todo=_TODO) from cause


def _check(data: bytes, name: str) -> None:
    """Walk the opcodes up to STOP without executing any; refuse what is not plain data."""
    memo = _Memo(name)
    previous = ""
    for steps, (opcode, argument, position) in enumerate(pickletools.genops(data), start=1):
        op = opcode.name
        if op not in _ALLOWED:
            wants = f" ({argument})" if isinstance(argument, str) else ""
            _refuse(name, f"holds the pickle opcode {op}{wants[:80]} at byte {position}")
        if op in _MEMO:
            memo.check(op, argument, steps, previous)
        previous = op
        if steps > MAX_OPS:
            _refuse(name, f"has more than {MAX_OPS:,} steps")


class _Memo:
    """What the memo opcodes may do: grow by one a step, and share no tuple."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._slots = 0
        self._tuples: set[int] = set()

    def check(self, op: str, argument: object, steps: int, previous: str) -> None:
        index = argument if isinstance(argument, int) else self._slots
        if op in _GETS:
            if index in self._tuples:
                _refuse(self._name, "uses one tuple twice, which no recorder does")
            return
        self._slots += 1
        if index > steps:
            _refuse(self._name, f"asks for {index:,} memo places after {steps:,} steps")
        if previous in _TUPLES:
            self._tuples.add(index)


def _check_depth(value: object, name: str) -> None:
    """Refuse containers nested deeper than `MAX_DEPTH`, each container of a level seen once."""
    level: dict[int, _Container] = {}
    if isinstance(value, (dict, list, tuple)):
        level[id(value)] = value
    for _ in range(MAX_DEPTH):
        below: dict[int, _Container] = {}
        for item in level.values():
            for child in item.values() if isinstance(item, dict) else item:
                if isinstance(child, (dict, list, tuple)):
                    below[id(child)] = child
        if not below:
            return
        level = below
    _refuse(name, f"nests deeper than {MAX_DEPTH} levels")
