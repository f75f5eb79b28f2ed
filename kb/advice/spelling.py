"""The known setting a misspelt name most likely means."""

from __future__ import annotations

import difflib
from collections.abc import Collection

# Families whose names are known nearly completely; elsewhere an unknown name is just unknown.
PREFIXES = ("NCCL_", "TORCH_NCCL_", "TORCH_FR_", "GLOO_", "HCCL_")
# SequenceMatcher's ratio in [0, 1]: one or two letters wrong in a name of 15. At 0.85 pairs of
# real names of one family begin to look alike.
MIN_LIKENESS = 0.9
TORCH = "TORCH_"


def nearest_name(name: str, known: Collection[str]) -> str:
    """The known name that `name` misspells, empty where it is known or nothing is close.

    A missing or superfluous ``TORCH_`` counts as a misspelling; a difference in digits alone does
    not (``LL128`` and ``LL64`` are two settings).
    """
    if name in known or not name.startswith(PREFIXES):
        return ""
    for candidate in (TORCH + name, name.removeprefix(TORCH)):
        if candidate in known:
            return candidate
    family = sorted(other for other in known if other.startswith(PREFIXES))
    for candidate in difflib.get_close_matches(name, family, n=1, cutoff=MIN_LIKENESS):
        if _letters(candidate) != _letters(name):
            return candidate
    return ""


def _letters(name: str) -> str:
    return "".join(char for char in name if not char.isdigit())
