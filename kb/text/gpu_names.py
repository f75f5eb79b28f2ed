"""What GPUs are called: their number on the host, their PCI bus id, or both: ``3 (1b:00)``."""

from __future__ import annotations

import re

_PCI = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.[0-9a-f])?\Z")
_HEX = re.compile(r"[0-9a-f]{1,12}\Z")
_PART = re.compile(r"[0-9a-f]{1,8}(?::[0-9a-f]{1,8}){1,4}|[0-9]{1,9}")


def bus_id(text: str) -> str:
    """A PCI bus id in one form: domain if not 0, bus and device; empty where it is none.

    Drivers write ``0000:1B:00.0``, NCCL the same digits as one number, ``1b000``.

    >>> bus_id("0000:1B:00.0"), bus_id("1b000"), bus_id("100000")
    ('1b:00', '1b:00', '0001:00:00')
    """
    text = text.strip().lower()
    if match := _PCI.match(text):
        domain, bus, device = int(match[1] or "0", 16), int(match[2], 16), int(match[3], 16)
    elif _HEX.match(text):
        number = int(text, 16)
        domain, bus, device = number >> 20, number >> 12 & 0xFF, number >> 4 & 0xFF
    else:
        return ""
    return f"{domain:04x}:{bus:02x}:{device:02x}" if domain else f"{bus:02x}:{device:02x}"


def gpu_name(number: str, bus: str) -> str:
    """A GPU by what is known of it."""
    return f"{number} ({bus})" if number and bus else number or bus


def gpu_parts(name: str) -> tuple[str, str]:
    """Number and bus id out of a name; empty where it lacks them."""
    parts = _PART.findall(name.lower())
    number = next((part for part in parts if ":" not in part), "")
    return number, next((part for part in parts if ":" in part), "")
