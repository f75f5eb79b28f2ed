"""Reading YAML strictly: what is wrong is said with file, line, field and value."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

from kb.errors import DataError

QUOTE_THE_TEXT = 'quote the text: {zh: "…", en: "…"}'
MAX_SHOWN = 60  # characters of a wrong value
MAX_CHOICES = 12  # of a vocabulary that is listed in a message

T = TypeVar("T")
Path = tuple[str | int, ...]
Decode = Callable[[type, Any], object]


def parse_yaml(
    text: str,
    kind: type[T],
    *,
    name: str,
    first_line: int = 1,
    decode: Decode | None = None,
    complete: Callable[[Any], None] | None = None,
) -> T:
    """Turn YAML into `kind`.

    Args:
        text: the YAML.
        kind: a dataclass, or a tuple or dict of them.
        name: of the file, for messages.
        first_line: line of the file that `text` begins on.
        decode: makes values of types that YAML has not; raises ValueError for a wrong one.
        complete: adds to what was read what follows from it, before the schema is looked at.

    Raises:
        DataError: not YAML, a key that stands twice, a value of a wrong type or of no known
            choice, a missing field, or a field the schema does not know.
    """
    import yaml

    try:
        raw: Any = yaml.load(text, Loader=_loader())  # noqa: S506 - it is a safe loader
    except _KeyTwice as error:
        line, first = (first_line + at for at in (error.line, error.first))
        raise DataError(
            f"{name} line {line}: {error.key!r} stands twice, first on line {first}",
            todo="keep one of the two: of such keys YAML drops all but the last",
        ) from error
    except yaml.MarkedYAMLError as error:
        raise _not_yaml(error, text, name, first_line) from error
    except yaml.YAMLError as error:
        raise DataError(f"{name} is not YAML: {error}") from error
    except RecursionError as error:
        raise DataError(f"{name} is nested too deeply", todo="see data/README.md") from error
    except ValueError as error:  # a date of month 13, a number of thousands of digits
        raise DataError(f"{name} is not YAML: {error}", todo="quote what is text") from error
    if complete is not None:
        complete(raw)
    try:
        value = msgspec.convert(raw, kind, dec_hook=decode)
    except msgspec.ValidationError as error:
        raise _wrong_value(str(error), raw, kind, _Source(text, name, first_line)) from error
    for path in _unknown_fields(raw, value):
        raise _unknown_field(path, raw, kind, _Source(text, name, first_line))
    return value


class _KeyTwice(Exception):  # noqa: N818 - never leaves this module
    """A key stands twice in one mapping; lines count from 0."""

    def __init__(self, key: str, line: int, first: int) -> None:
        super().__init__(key)
        self.key, self.line, self.first = key, line, first


@cache
def _loader() -> Any:  # noqa: ANN401 - yaml is imported where it is needed
    """YAML's safe loader, in C where there is one, that refuses a key which stands twice."""
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
        def flatten_mapping(self, node: Any) -> None:  # noqa: ANN401 - yaml's
            if not hasattr(node, "keys_checked"):  # later calls see the pairs that `<<` adds, too
                node.keys_checked = True
                _check_keys(node)
            super().flatten_mapping(node)

    return Loader


def _check_keys(node: Any) -> None:  # noqa: ANN401 - yaml's
    first: dict[tuple[str, str], int] = {}
    for key, _ in node.value:
        if isinstance(key.value, str):
            line = key.start_mark.line
            if (key.tag, key.value) in first:
                raise _KeyTwice(key.value, line, first[key.tag, key.value])
            first[key.tag, key.value] = line


class _Source:
    """A text that is wrong: says where in it something stands."""

    def __init__(self, text: str, name: str, first_line: int) -> None:
        self._text, self._name, self._first_line = text, name, first_line

    def place(self, path: Path, raw: object) -> str:
        """``patterns.yaml line 12: [nccl-watchdog].kind``; an item of a list by its id."""
        shown = ""
        for step in path:
            raw = raw[step]  # type: ignore[index]
            identifier = raw.get("id") if isinstance(raw, dict) else None
            if isinstance(step, int):
                shown += f"[{identifier or step}]"
            else:
                shown += f".{step}" if shown else str(step)
        return f"{self._name} line {self._line(path)}: {shown or 'all of it'}"

    def _line(self, path: Path) -> int:
        """The line on which the value stands at the end of `path`."""
        import yaml

        node = yaml.compose(self._text, Loader=yaml.SafeLoader)
        for step in path:
            if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
                node = node.value[step]
            elif isinstance(node, yaml.MappingNode):
                node = next((value for key, value in node.value if key.value == str(step)), node)
        return self._first_line + (node.start_mark.line if node else 0)


def _not_yaml(error: Any, text: str, name: str, first_line: int) -> DataError:  # noqa: ANN401 - yaml's
    mark = error.problem_mark or error.context_mark
    at = mark.line if mark else 0
    lines = text.splitlines()
    line = lines[at] if at < len(lines) else ""
    where = f"{name} line {first_line + at}"
    todo = QUOTE_THE_TEXT if "{" in line else "check quotes, colons and indentation of that line"
    return DataError(f"{where} is not YAML: {error.problem or error.context}", todo=todo)


def _wrong_value(message: str, raw: object, kind: Any, source: _Source) -> DataError:  # noqa: ANN401 - a type
    """Msgspec's message with the line, the value and, of a closed vocabulary, the nearest one."""
    reason, _, at = message.partition(" - at `$")
    path, whole = _resolved(at.rstrip("`"), raw, kind)
    value = raw
    for step in path:
        value = value[step]  # type: ignore[index]
    shown = repr(value)
    shown = shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}…"
    choices = _choices(_type_at(kind, path)) if whole else []
    if reason.startswith("Invalid enum value") and choices:
        known = ", ".join(choices) if len(choices) <= MAX_CHOICES else "the known ones"
        what = f"{source.place(path, raw)}: {shown} is not one of {known}"
        return DataError(what, todo=nearest(str(value), choices))
    what = f"{source.place(path, raw)}: {reason}, it is {shown}"
    return DataError(what, todo="see data/README.md")


def _choices(kind: Any) -> list[str]:  # noqa: ANN401 - a type
    """The values of a closed vocabulary: of an enum, a Literal, or a union of Literals."""
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [str(item.value) for item in kind]
    if isinstance(kind, str):
        return [kind] if kind else []
    return [choice for inner in get_args(kind) for choice in _choices(inner)]


def nearest(value: str, known: Sequence[str]) -> str:
    """What to do about an unknown name: the one it most likely means, where one is close."""
    near = difflib.get_close_matches(value, known, n=1)
    return f"did you mean {near[0]!r}?" if near else "see data/README.md"


def _resolved(at: str, raw: Any, kind: Any) -> tuple[Path, bool]:  # noqa: ANN401 - of any shape
    """Msgspec's path (``.fixes[0].cost``), and whether it names the very value.

    A key of a dict is not in it (``[...]``): the first value that does not fit is looked for.
    """
    path: list[str | int] = []
    for step in filter(None, at.replace("[...]", "[*]").replace("[", ".[").split(".")):
        if step == "[*]":
            inner = _type_at(kind, (*path, "*"))
            here = raw
            for known in path:
                here = here[known]
            key = next((key for key, value in here.items() if not _fits(value, inner)), None)
            if key is None:
                return tuple(path), False
            path.append(key)
        else:
            path.append(int(step[1:-1]) if step.startswith("[") else step)
    return tuple(path), True


def _fits(value: object, kind: Any) -> bool:  # noqa: ANN401 - a type
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _type_at(kind: Any, path: Path) -> Any:  # noqa: ANN401 - a type
    """The type of the value at `path` in a value of type `kind`."""
    for step in path:
        inner = [item for item in get_args(kind) if item is not type(None)]
        if len(inner) == 1 and is_dataclass(inner[0]) and isinstance(step, str):
            kind, inner = inner[0], []  # Optional[Dataclass]
        if is_dataclass(kind):
            kind = get_type_hints(kind)[str(step)]
        else:
            kind = inner[0] if isinstance(step, int) else inner[-1]
    return kind


def _unknown_field(path: Path, raw: object, kind: Any, source: _Source) -> DataError:  # noqa: ANN401 - a type
    around: Any = raw
    for step in path[:-1]:
        around = around[step]
    place = source.place(path, raw)
    if around[path[-1]] is None and {"zh", "en"} & set(around):
        return DataError(f"{place}: a comma ends the text before it", todo=QUOTE_THE_TEXT)
    fields = _type_at(kind, path[:-1])
    known = [*getattr(fields, "__dataclass_fields__", ())]
    return DataError(f"{place}: unknown field", todo=nearest(str(path[-1]), known))


def _unknown_fields(raw: object, value: object, path: Path = ()) -> Iterator[Path]:
    """Where `raw` has keys that the dataclass made from it has no field for."""
    if isinstance(raw, dict) and is_dataclass(value):
        for key, inner in raw.items():
            if key not in value.__dataclass_fields__:
                yield (*path, key)
            else:
                yield from _unknown_fields(inner, getattr(value, key), (*path, key))
    elif isinstance(raw, dict) and isinstance(value, dict):
        for key, inner in raw.items():
            yield from _unknown_fields(inner, value.get(key), (*path, key))
    elif isinstance(raw, list) and isinstance(value, tuple):
        for number, (inner, made) in enumerate(zip(raw, value, strict=True)):
            yield from _unknown_fields(inner, made, (*path, number))
