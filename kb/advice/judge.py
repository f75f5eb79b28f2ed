"""Decide whether a rule about a setting applies: its value, torch's version, other settings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from kb.advice.extract import FoundSetting
from kb.errors import DataError, InputError
from kb.types import Advice, AdviceRule

# Without a version given, what holds for older torch only is left out: nobody starts a job with
# it today, and a warning about it would hit every right setting.
OLDEST_ASSUMED_MINOR = 4
NEWEST_ASSUMED_MINOR = 40  # above any torch 2 to come
_ON = {"1", "true", "yes", "on", "y"}
_OFF = {"0", "false", "no", "off", "n"}
_NUMBER = re.compile(r"[+-]?\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?\Z")
_SPECIFIER = re.compile(r"([A-Za-z][\w.-]*?)\s*([<>=!~].*)\Z")
_RELEASE = re.compile(r"\s*v?(\d+(?:\.\d+){0,2})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Applies:
    """A rule that applies, and whether its versions are known to hold."""

    rule: AdviceRule
    certain: bool


def torch_release(torch: str | None) -> Version | None:
    """The release part of a torch version (``2.4.0a0+cu121`` → 2.4.0), None where none is given.

    Raises:
        InputError: the text does not start like a version.
    """
    if torch is None or not torch.strip():
        return None
    match = _RELEASE.match(torch)
    if match is None:
        raise InputError(
            f"torch version {torch!r} is not a version",
            todo="write it like 2.4.1",
            reason="torch_version",
            values={"version": torch},
        )
    return Version(match[1])


def applying_rules(
    setting: FoundSetting,
    advice: Advice,
    others: Sequence[FoundSetting],
    torch: Version | None,
) -> list[Applies]:
    """The rules of `advice` that apply to `setting`, in the order of the file."""
    applies: list[Applies] = []
    for rule in advice.rules:
        if not value_matches(rule.value, setting.value):
            continue
        if rule.verdict == "contradicts" and not contradicting(advice, setting, others):
            continue
        certain = versions_hold(rule.versions, torch)
        if certain is not False:
            applies.append(Applies(rule=rule, certain=certain is True))
    return _without_shadowed(applies)


def _without_shadowed(applies: list[Applies]) -> list[Applies]:
    """Drop what another verdict makes pointless: the value of a setting that nothing reads."""
    if any(item.rule.verdict == "no_effect" and item.certain for item in applies):
        return [item for item in applies if item.rule.verdict == "no_effect" and item.certain]
    if any(item.rule.verdict == "wrong_unit" for item in applies):
        pointless = {"hides_cause", "never_fixes", "lowers_default"}
        return [item for item in applies if item.rule.verdict not in pointless]
    return applies


def versions_hold(versions: Sequence[str], torch: Version | None) -> bool | None:
    """Whether all `versions` hold for `torch`; None where that cannot be known.

    Without torch's version the answer is None as long as some torch of today meets them. Versions
    of other packages are never known.

    Raises:
        DataError: one is not a package name with a specifier.
    """
    answer: bool | None = True
    for text in versions:
        match = _SPECIFIER.match(text)
        if match is None:
            raise DataError(f"advice.yaml: version {text!r} is not like 'torch>=2.2'")
        if match[1] != "torch":
            answer = None
            continue
        specifier = SpecifierSet(match[2])
        if torch is not None:
            if not specifier.contains(torch):
                return False
        elif not _holds_today(specifier):
            return False
        else:
            answer = None
    return answer


def _holds_today(specifier: SpecifierSet) -> bool:
    minors = range(OLDEST_ASSUMED_MINOR, NEWEST_ASSUMED_MINOR)
    return any(specifier.contains(f"2.{minor}") for minor in minors)


def contradicting(
    advice: Advice, setting: FoundSetting, others: Sequence[FoundSetting]
) -> tuple[FoundSetting, ...]:
    """The other settings of the text that undo this one, in the order of their lines."""
    return tuple(
        other
        for other in others
        if other.name != setting.name
        and any(_is_named(other, entry) for entry in advice.contradicts)
    )


def _is_named(other: FoundSetting, entry: str) -> bool:
    name, equals, value = entry.partition("=")
    if other.name != name:
        return False
    if not equals:
        return True
    if value in ("0", "1"):
        return switch(other.value) is (value == "1")
    return other.value.lower() == value.lower()


def value_matches(test: str, value: str) -> bool:
    """Whether `value` passes a rule's test (see `AdviceRule.value`).

    Raises:
        DataError: the test is none of the known forms.
    """
    if not test:
        return True
    if test in ("on", "off"):
        return switch(value) is (test == "on")
    kind, rest = test[0], test[1:]
    if kind == "=":
        return value.lower() in rest.lower().split("|")
    if kind == "~":
        return re.fullmatch(rest, value) is not None
    if kind in "<>" and _NUMBER.match(rest):
        seen = number(value)
        if seen is None:
            return False
        return seen < float(rest) if kind == "<" else seen > float(rest)
    raise DataError(f"advice.yaml: value test {test!r} is not known", todo="see AdviceRule")


def switch(value: str) -> bool | None:
    """A switch's state, None for what is no switch; any number but 0 is on."""
    text = value.strip().lower()
    if text in _ON or text in _OFF:
        return text in _ON
    seen = number(text)
    return None if seen is None else seen != 0


def number(value: str) -> float | None:
    """A plain number, None for anything else."""
    text = value.strip()
    return float(text.replace("_", "")) if _NUMBER.match(text) else None
