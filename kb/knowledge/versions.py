"""Version specifiers with a package in front (``torch>=2.2,<2.8``) against the versions seen."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_SPECIFIER = re.compile(r"\s*([A-Za-z][\w.-]*?)\s*([<>=!~].*)\Z")


def versions_meet(specifiers: Sequence[str], versions: Mapping[str, str]) -> bool | None:
    """Whether the versions meet all specifiers; None where some cannot be told.

    That is where a package's version is unknown or nothing that compares.
    """
    answer: bool | None = True
    for specifier in specifiers:
        met = _meets(specifier, versions)
        if met is False:
            return False
        answer = answer if met else None
    return answer


def _meets(specifier: str, versions: Mapping[str, str]) -> bool | None:
    match = _SPECIFIER.match(specifier)
    version = versions.get(match[1]) if match else None
    if match is None or not version:
        return None
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import InvalidVersion, Version

    try:
        return SpecifierSet(match[2]).contains(Version(version.split("+")[0]), prereleases=True)
    except (InvalidSpecifier, InvalidVersion):
        return None


def is_specifier(text: str) -> bool:
    """Whether the text is a package name with a specifier."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    match = _SPECIFIER.match(text)
    try:
        return match is not None and len(SpecifierSet(match[2])) > 0
    except InvalidSpecifier:
        return False
