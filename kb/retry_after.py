"""The Retry-After header (RFC 9110 §10.2.3): written by the API, read by whatever asks again."""

from __future__ import annotations

import math


def parse_retry_after(header: str) -> float | None:
    """Seconds to wait; None where it is missing, a date, or no finite number."""
    try:
        seconds = float(header)
    except ValueError:
        return None
    return seconds if 0 <= seconds < math.inf else None


def retry_after_header(seconds: float) -> dict[str, str]:
    """The header that says when to come back, in whole seconds, at least one."""
    return {"Retry-After": str(max(1, math.ceil(seconds)))}
