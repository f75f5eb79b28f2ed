"""Checking data files beyond types: fields that the schema does not know are named, not ignored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import is_dataclass


def unknown_fields(raw: object, value: object, path: str = "") -> Iterator[str]:
    """Paths of keys in `raw` that the dataclass made from it has no field for.

    Args:
        raw: what the file held: dicts, lists and plain values.
        value: what `msgspec.convert` made of it.
        path: where in the file `raw` stands.
    """
    if isinstance(raw, dict) and is_dataclass(value):
        known = value.__dataclass_fields__
        for key, inner in raw.items():
            place = f"{path}.{key}" if path else str(key)
            if key not in known:
                yield place
            else:
                yield from unknown_fields(inner, getattr(value, key), place)
    elif isinstance(raw, dict) and isinstance(value, dict):
        for key, inner in raw.items():
            yield from unknown_fields(inner, value.get(key), f"{path}.{key}" if path else str(key))
    elif isinstance(raw, list) and isinstance(value, tuple):
        for number, (inner, made) in enumerate(zip(raw, value, strict=True)):
            yield from unknown_fields(inner, made, f"{path}[{number}]")
