"""Which rules about a setting apply: by its value, torch's version and the other settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kb.errors import DataError, InputError
from kb.knowledge.versions import versions_meet
from kb.settings_check.extract import SettingMention
from kb.text.linear_expression import linear_expression
from kb.types.knowledge import Advice, AdviceRule

# Without a version given, what holds for older torch only is left out: nobody starts a job with
# it today, and a warning about it would hit every right setting.
ASSUMED_TORCH = [f"2.{minor}" for minor in range(4, 40)]  # up to above any torch 2 to come
POINTLESS = {"hides_cause", "never_fixes", "lowers_default"}  # of a value in the wrong unit
_ON = {"1", "true", "yes", "on", "y"}
_OFF = {"0", "false", "no", "off", "n"}
MS_PER_UNIT = {"ms": 1.0, "s": 1000.0, "min": 60_000.0}
_NUMBER = re.compile(r"[+-]?[0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z")
_RELEASE = re.compile(r"\s*v?([0-9]+(?:\.[0-9]+){0,2})")


def torch_release(torch: str | None) -> str:
    """The release part of a torch version (``2.4.0a0+cu121`` → 2.4.0), empty where none is given.

    Raises:
        InputError: the text does not start like a version.
    """
    if torch is None or not torch.strip():
        return ""
    match = _RELEASE.match(torch)
    if match is None:
        raise InputError(
            f"torch version {torch!r} is not a version",
            todo="write it like 2.4.1",
            reason="torch_version",
            values={"version": torch},
        )
    return match[1]


def applying_rules(
    setting: SettingMention,
    advice: Advice,
    others: Sequence[SettingMention],
    versions: Mapping[str, str],
) -> list[AdviceRule]:
    """The rules of `advice` that apply to `setting`, in the order of the file.

    `versions` are those of packages, by name (torch's is its release).
    What another verdict makes pointless is left out: the value of a setting that nothing reads.
    """
    rules: list[AdviceRule] = []
    unread: list[AdviceRule] = []
    for rule in advice.rules:
        if not value_matches(rule.value, setting.value, linear=bool(advice.origin)):
            continue
        if rule.verdict == "contradicts" and not contradicting(advice, setting, others):
            continue
        holds = rule_holds(rule.versions, versions)
        if holds is not False:
            rules.append(rule)
        if holds and rule.verdict == "no_effect":
            unread.append(rule)
    if unread:
        return unread
    if any(rule.verdict == "wrong_unit" for rule in rules):
        return [rule for rule in rules if rule.verdict not in POINTLESS]
    return rules


def rule_holds(specifiers: Sequence[str], versions: Mapping[str, str]) -> bool | None:
    """Whether a rule holds for the versions of packages; None where that cannot be known.

    Without torch's release some torch of today has to meet its versions.
    """
    if versions.get("torch"):
        return versions_meet(specifiers, versions)
    today = [versions_meet(specifiers, {**versions, "torch": each}) for each in ASSUMED_TORCH]
    if all(holds is False for holds in today):
        return False
    of_torch = any(specifier.startswith("torch") for specifier in specifiers)
    return None if of_torch or not all(today) else True


def outside_lifetime(advice: Advice, versions: Mapping[str, str]) -> str:
    """The bound of the setting's lifetime that a version seen does not meet, empty for none."""
    if advice.since and versions_meet([advice.since], versions) is False:
        return advice.since
    gone = advice.until and versions_meet([advice.until], versions) is True
    return advice.until if gone else ""


def contradicting(
    advice: Advice, setting: SettingMention, others: Sequence[SettingMention]
) -> tuple[SettingMention, ...]:
    """The other settings of the text that undo this one, in the order of their lines."""
    return tuple(
        other
        for other in others
        if other.name != setting.name
        and any(_is_named(other, entry) for entry in advice.contradicts)
    )


def _is_named(other: SettingMention, entry: str) -> bool:
    name, equals, value = entry.partition("=")
    if other.name != name or not equals:
        return other.name == name
    if value in ("0", "1"):
        return switch(other.value) is (value == "1")
    return other.value.lower() == value.lower()


def value_matches(test: str, value: str, *, linear: bool = False) -> bool:
    """Whether `value` passes a rule's test (see `AdviceRule.value`).

    An expression is one of `re`, or where it has to be `linear` one of RE2.

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
        if linear:
            return linear_expression(rest).fullmatch(value) is not None
        return re.fullmatch(rest, value) is not None
    limit, seen = number(rest), number(value)
    if kind not in "<>" or limit is None:
        raise DataError(f"advice.yaml: value test {test!r} is not known", todo="see AdviceRule")
    return seen is not None and (seen < limit if kind == "<" else seen > limit)


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


def milliseconds(setting: SettingMention, advice: Advice) -> float | None:
    """A duration in the setting's unit, None for what is none."""
    value, factor = number(setting.value), MS_PER_UNIT.get(advice.unit)
    return None if value is None or factor is None else value * factor
