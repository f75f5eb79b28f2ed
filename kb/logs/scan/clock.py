"""When a line was printed, in the many ways loggers write time."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from functools import lru_cache

FRONT_CHARS = 200
_TIME = r"(?P<h>[01]?[0-9]|2[0-3]):(?P<mi>[0-5][0-9]):(?P<s>[0-5][0-9])(?:[.,:](?P<f>[0-9]{1,9}))?"
_ISO = re.compile(r"(?P<y>20[0-9][0-9])[-/](?P<mo>[01][0-9])[-/](?P<d>[0-3][0-9])[T _-]+" + _TIME)
_GLOG = re.compile(r"(?<![A-Za-z0-9])[IWEF](?P<mo>0?[1-9]|1[0-2])(?P<d>[0-3][0-9]) " + _TIME)
_MONTH_DAY = re.compile(r"(?<![0-9])(?P<mo>[01][0-9])[-/](?P<d>[0-3][0-9]) " + _TIME)
_SYSLOG = re.compile(
    r"(?P<mon>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) {1,2}(?P<d>[0-3]?[0-9]) "
    + _TIME
    + r"(?: (?P<y>20[0-9][0-9]))?"
)
_BARE = re.compile(r"(?<![0-9:])" + _TIME + r"(?![:0-9])")
_MINUTES = re.compile(
    r":[0-5][0-9]:[0-5][0-9]"
)  # in each of them; where it is not, neither are they
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
NO_YEAR = 1970  # where only month and day are printed, seconds count from that year's start


@dataclass(frozen=True, slots=True)
class Moment:
    """Seconds since the epoch (since midnight without a date) and the text they were read from."""

    seconds: float
    text: str


def moment(line: str) -> Moment | None:
    """The time at a line's front, or None. Zones are ignored: one log keeps to one zone."""
    front = line[:FRONT_CHARS]
    if not _MINUTES.search(front):
        return None
    for expression in (_ISO, _GLOG, _MONTH_DAY, _SYSLOG, _BARE):
        if match := expression.search(front):
            seconds = _seconds(match.groupdict())
            if seconds is not None:
                return Moment(seconds, match[0])
    return None


def _seconds(parts: dict[str, str | None]) -> float | None:
    clock = int(parts["h"] or 0) * 3600 + int(parts["mi"] or 0) * 60 + int(parts["s"] or 0)
    fraction = float(f"0.{parts.get('f') or 0}")
    day = parts.get("d")
    if not day:
        return clock + fraction
    mon = parts.get("mon")
    month = _MONTHS.index(mon) + 1 if mon else int(parts["mo"] or 1)
    start = _day(int(parts.get("y") or NO_YEAR), month, int(day or 1))
    return None if start is None else start + clock + fraction


@lru_cache(maxsize=64)  # a log is of few days
def _day(year: int, month: int, day: int) -> float | None:
    """Seconds since the epoch at a day's start, or None where there is no such day."""
    try:
        return dt.datetime(year, month, day, tzinfo=dt.UTC).timestamp()
    except ValueError:
        return None
