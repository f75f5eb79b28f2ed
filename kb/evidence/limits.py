"""What all evidence of one request may take together: seconds, bytes, values and ranks.

Limits of a file alone do not hold for twenty of them: a pickle shares one value among any number of
places, so 27 kB can stand for millions of values.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from kb.errors import InputError, SlowInputError

MAX_TOTAL_BYTES = 8 << 30  # unpacked; 16,384 ranks with half a megabyte each
FREE_PLACES = 4_000_000  # values of dumps, whatever their size
PLACES_A_BYTE = (
    16  # more are allowed by the bytes they came in; dumps of PyTorch have less than one
)
MAX_TOTAL_MEMBERS = 64_000_000  # length of all rank lists; 4,096 ranks that list 16 groups whole
LINES_A_LOOK = 256  # lines between two looks at the clock

_TODO = "hand over fewer dumps, those of the ranks around the failure"


@dataclass(slots=True)
class EvidenceLimits:
    """What one request has taken so far, and when its time is over."""

    limit_s: float = math.inf
    size: int = 0
    places: int = 0
    members: int = 0
    _start: float = field(default_factory=time.monotonic)

    @property
    def left_s(self) -> float:
        """The seconds that are left."""
        return self.limit_s - (time.monotonic() - self._start)

    def check_time(self) -> None:
        """End the work when its time is over.

        Raises:
            SlowInputError: it is.
        """
        if self.left_s < 0:
            raise SlowInputError(
                f"reading takes longer than {self.limit_s:g} seconds",
                todo="send the part around the failure, or read it with `timeout-kb diagnose`",
                reason="slow",
                values={"seconds": f"{self.limit_s:g}"},
            )

    def take_bytes(self, size: int, name: str) -> None:
        """Count the bytes of a file, unpacked.

        Raises:
            InputError: all files together are too large.
            SlowInputError: the time is over.
        """
        self.check_time()
        self.size += size
        self._check(self.size <= MAX_TOTAL_BYTES, name)

    def take_places(self, places: int, name: str) -> None:
        """Count the values of a dump as if none were shared; so many bytes allow so many values.

        Raises:
            InputError: all dumps together hold too many.
        """
        self.places += places
        self._check(self.places <= FREE_PLACES + PLACES_A_BYTE * self.size, name)

    def take_members(self, members: int, name: str) -> None:
        """Count the ranks that a dump lists for its groups.

        Raises:
            InputError: all dumps together list too many.
        """
        self.members += members
        self._check(self.members <= MAX_TOTAL_MEMBERS, name)

    def lines(self, text: str) -> Iterator[tuple[int, str]]:
        """The lines of a text with their numbers, as long as there is time.

        Raises:
            SlowInputError: the time is over.
        """
        for number, line in enumerate(text.splitlines(), start=1):
            if number % LINES_A_LOOK == 0:
                self.check_time()
            yield number, line

    def _check(self, fits: bool, name: str) -> None:
        if not fits:
            raise InputError(
                f"{name} holds more than can be read together with the files before it",
                todo=_TODO,
                reason="evidence_limit",
                values={"name": name},
            )
