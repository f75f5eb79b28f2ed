"""`lint`: every setting of a text against what is true of it, and what they contradict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

from kb.knowledge.labels import Words
from kb.settings_check.contradictions import (
    SettingConflict,
    explanation,
    setting_lines,
)
from kb.settings_check.extract import SettingMention, find_settings, one_text
from kb.settings_check.names import nearest_name
from kb.settings_check.rules import (
    applying_rules,
    contradicting,
    milliseconds,
    outside_lifetime,
    rule_holds,
    torch_release,
)
from kb.types.answer import SettingWarning
from kb.types.incident import LogReading
from kb.types.knowledge import Advice, AdviceRule
from kb.types.vocabulary import SETTING_EVENT, AdviceVerdict

TOLERANCE_MS = 1000.0  # settings are whole seconds, logs print milliseconds
# What is true of a setting and does no harm: worth a line when somebody asks about settings, and
# no warning beside an incident.
HARMLESS: frozenset[AdviceVerdict] = frozenset(
    {"deprecated_alias", "debug_only", "never_fixes", "hides_cause", "lowers_default"}
)
SEVERITY: tuple[AdviceVerdict, ...] = (  # the worst first
    *("wrong_value", "wrong_unit", "contradicts", "misspelt", "no_effect"),
    *("hides_cause", "lowers_default", "debug_only", "never_fixes", "deprecated_alias"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsReport:
    """The settings of a paste: what is wrong, what is worth a note, and how many are in order."""

    warnings: tuple[SettingWarning, ...]
    notes: tuple[SettingWarning, ...]
    in_order: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingHarm:
    """A setting whose value is known to do harm, with the rule that says so."""

    setting: SettingMention
    rule: AdviceRule
    quote: str


def lint(
    text: str,
    advice: Sequence[Advice],
    *,
    torch: str | None = None,
    timeout_ms: int | None = None,
    words: Words,
    conflicts: Iterable[SettingConflict] = (),
) -> tuple[SettingWarning, ...]:
    """What is wrong with the settings in `text`, by line, then in the order of data/advice.yaml.

    Args:
        text: a script, a configuration, an environment, pasted advice or a log.
        advice: what is true of each setting.
        torch: torch's version; without it a rule is told with the versions it holds for.
        timeout_ms: the timeout a log shows, against which a setting of it is held.
        words: those of the explanations' language.
        conflicts: what the settings of `text` contradict.

    Raises:
        InputError: `torch` is not a version.
    """
    settings = find_settings(text, _options(advice))
    judge = _Judge(
        settings, advice, versions=_versions({}, torch), timeout_ms=timeout_ms, words=words
    )
    return _in_order_of_lines([*judge.warnings(), *conflict_warnings(conflicts, words)])


def report_settings(
    reading: LogReading,
    advice: Sequence[Advice],
    conflicts: Sequence[SettingConflict],
    *,
    torch: str | None,
    words: Words,
) -> SettingsReport:
    """The settings of what was read, those that the log shows included, the worst first."""
    settings = _settings_of(reading, advice)
    incident = reading.incident
    judge = _Judge(
        settings,
        advice,
        versions=_versions(incident.versions, torch),
        timeout_ms=incident.timeout_ms,
        words=words,
    )
    contradicted = {value.name for conflict in conflicts for value in conflict.values}
    about = [
        item
        for item in judge.judged()
        if item.warning.setting.partition("=")[0] not in contradicted
    ]
    warnings = list(_one_a_pair(item for item in about if item.is_wrong))
    warned = {item.warning.setting for item in about if item.is_wrong}
    notes = [item.warning for item in about if item.warning.setting not in warned]
    own = conflict_warnings(conflicts, words)
    wrong = {_name(item.warning) for item in about} | contradicted
    known = {setting.name for setting in settings if judge.knows(setting)}
    return SettingsReport(
        warnings=_worst_first(chain(_one_a_setting(warnings), own)),
        notes=_worst_first(_one_a_setting(notes)),
        in_order=len(known - wrong),
    )


def find_harms(
    reading: LogReading, advice: Sequence[Advice], *, torch: str | None
) -> tuple[SettingHarm, ...]:
    """The settings of a paste whose values are known to do harm, in the order of their lines."""
    by_name = _by_name(advice)
    if not any(rule.causes for item in advice for rule in item.rules):
        return ()
    settings = _settings_of(reading, advice)
    versions = _versions(reading.incident.versions, torch)
    quotes = {(line.file, line.number): line.text.strip() for line in setting_lines(reading)}
    return tuple(
        SettingHarm(setting=setting, rule=rule, quote=quotes.get((setting.file, setting.line), ""))
        for setting in settings
        if (item := by_name.get(setting.name)) is not None and setting.line
        for rule in applying_rules(setting, item, settings, versions)
        if rule.causes
    )


def conflict_warnings(conflicts: Iterable[SettingConflict], words: Words) -> list[SettingWarning]:
    """A warning for each conflict, at the line of its first value."""
    return [
        SettingWarning(
            setting=conflict.first.shown,
            verdict=conflict.contradiction.verdict,
            explanation=explanation(conflict).get(words.language),
            source=conflict.contradiction.sources[0],
            replacement=conflict.contradiction.replacement.replace("{name}", conflict.first.name),
            line=conflict.first.line,
            file=conflict.first.file,
        )
        for conflict in conflicts
    ]


def _name(warning: SettingWarning) -> str:
    return warning.setting.partition("=")[0]


def _one_a_pair(judged: Iterable[_Judged]) -> Iterator[SettingWarning]:
    """The warnings, of two settings that contradict each other the first."""
    pairs: set[frozenset[str]] = set()
    for item in judged:
        name = _name(item.warning)
        own = {frozenset({name, partner}) for partner in item.partners}
        if not own or own - pairs:
            yield item.warning
        pairs |= own


def _one_a_setting(warnings: Iterable[SettingWarning]) -> list[SettingWarning]:
    """The first warning about each setting."""
    first: dict[str, SettingWarning] = {}
    for warning in warnings:
        first.setdefault(warning.setting, warning)
    return list(first.values())


def _in_order_of_lines(warnings: Iterable[SettingWarning]) -> tuple[SettingWarning, ...]:
    return tuple(sorted(warnings, key=lambda warning: (warning.file, warning.line)))


def _worst_first(warnings: Iterable[SettingWarning]) -> tuple[SettingWarning, ...]:
    """By severity, then by line; verdicts of contradictions that advice does not give last."""
    rank: dict[str, int] = {verdict: at for at, verdict in enumerate(SEVERITY)}
    ordered = _in_order_of_lines(warnings)
    return tuple(sorted(ordered, key=lambda warning: rank.get(warning.verdict, len(rank))))


def _versions(seen: Mapping[str, str], torch: str | None) -> dict[str, str]:
    """The versions seen, torch's as a release; one that a person names comes first."""
    versions = {name: version for name, version in seen.items() if name != "torch"}
    release = torch_release(torch or seen.get("torch"))
    return {**versions, "torch": release} if release else versions


def _settings_of(reading: LogReading, advice: Sequence[Advice]) -> list[SettingMention]:
    """The settings of a paste and those its log shows, each with file and line."""
    options = _options(advice)
    lines = setting_lines(reading)
    mentions = [
        replace(item, file=lines[item.line - 1].file, line=lines[item.line - 1].number)
        for item in find_settings(one_text(line.text for line in lines), options)
    ]
    settings = {(item.name, item.value): item for item in mentions}
    places = {
        event.fields.get("name", ""): (event.file, event.line)
        for event in reading.events
        if event.event == SETTING_EVENT
    }
    for name, value in reading.incident.settings.items():
        file, line = places.get(name, ("", 0))
        for item in find_settings(f"{name}={value}", options):
            settings.setdefault((item.name, item.value), replace(item, file=file, line=line))
    return sorted(settings.values(), key=lambda item: (item.file, item.line, item.name))


def _options(advice: Sequence[Advice]) -> frozenset[str]:
    """The names of advice that are options, not environment variables."""
    return frozenset(item.id for item in advice if not item.id.isupper())


def _by_name(advice: Sequence[Advice]) -> dict[str, Advice]:
    """Advice by its name, a dotted one by its last part too."""
    named = {item.id: item for item in advice}
    return named | {item.id.rpartition(".")[2]: item for item in advice if "." in item.id}


class _Judged(NamedTuple):
    """What is true of a setting, whether it is wrong, and the settings it contradicts."""

    warning: SettingWarning
    is_wrong: bool
    partners: frozenset[str] = frozenset()


class _Judge:
    """All settings of one text, and what each of them is judged by."""

    def __init__(
        self,
        settings: Sequence[SettingMention],
        advice: Sequence[Advice],
        *,
        versions: Mapping[str, str],
        timeout_ms: int | None,
        words: Words,
    ) -> None:
        self._settings = settings
        self._advice = _by_name(advice)
        self._known = {name: item for item in advice for name in item.related} | self._advice
        self._versions = versions
        self._words = words
        self._timeout_ms = timeout_ms
        if any(self._wanted_ms(item) and not self._ignored(item) for item in settings):
            self._timeout_ms = None  # one of the settings accounts for the logged timeout

    def warnings(self) -> list[SettingWarning]:
        """What is true of each setting."""
        return [item.warning for item in self.judged()]

    def judged(self) -> Iterator[_Judged]:
        """What is true of each setting, and whether that is wrong and not only worth a note."""
        for setting in self._settings:
            advice = self._advice.get(setting.name)
            origin = advice.origin if advice is not None else ""
            for item in self._about(setting):
                yield item._replace(warning=replace(item.warning, origin=origin))

    def knows(self, setting: SettingMention) -> bool:
        """Whether anything is known of a setting's name."""
        return setting.name in self._known

    def _about(self, setting: SettingMention) -> Iterator[_Judged]:
        advice, words = self._advice.get(setting.name), self._words
        if advice is None:
            near = "" if setting.is_option else nearest_name(setting.name, self._known)
            if near:
                explanation = words("setting.misspelt", name=setting.name, near=near)
                warning = _warning(setting, "misspelt", explanation, self._known[near].sources[0])
                replacement = f"{near}={setting.value}"
                yield _Judged(replace(warning, replacement=replacement), is_wrong=True)
            return
        rules = applying_rules(setting, advice, self._settings, self._versions)
        for rule in rules:
            explanation = rule.explanation.get(words.language)
            partners: Sequence[SettingMention] = ()
            if rule.verdict == "contradicts":
                partners = contradicting(advice, setting, self._settings)
                explanation += self._together(partners)
            if rule.verdict == "no_effect" and not advice.read_by and self._ignored(setting):
                explanation += words("setting.ignored", logged=self._timeout_ms)
            warning = _warning(setting, rule.verdict, explanation, rule.source or advice.sources[0])
            replacement = rule.replacement.replace("{value}", setting.value)
            versions = ", ".join(rule.versions)
            is_sure = rule_holds(rule.versions, self._versions)
            is_wrong = bool(rule.causes) or (is_sure and rule.verdict not in HARMLESS)
            yield _Judged(
                replace(warning, torch_versions=versions, replacement=replacement),
                is_wrong=bool(is_wrong),
                partners=frozenset(item.name for item in partners),
            )
        bound = outside_lifetime(advice, self._versions)
        if bound and all(rule.verdict != "no_effect" for rule in rules):
            explanation = words("setting.outside_lifetime", name=setting.name, bound=bound)
            warning = _warning(setting, "no_effect", explanation, advice.sources[0])
            yield _Judged(warning, is_wrong=True)
        wanted_ms = self._wanted_ms(setting)
        if wanted_ms and self._timeout_ms and self._ignored(setting):
            explanation = words(
                "setting.not_in_force", logged=self._timeout_ms / 1000, wanted=wanted_ms / 1000
            )
            warning = _warning(setting, "no_effect", explanation, advice.sources[0])
            yield _Judged(warning, is_wrong=True)

    def _wanted_ms(self, setting: SettingMention) -> float | None:
        """The timeout of the process group that the setting asks for."""
        advice = self._advice.get(setting.name)
        sets = advice is not None and advice.sets_group_timeout
        return milliseconds(setting, advice) if advice and sets else None

    def _ignored(self, setting: SettingMention) -> bool:
        """Whether the log shows another timeout than the setting's value."""
        advice = self._advice.get(setting.name)
        value_ms = milliseconds(setting, advice) if advice else None
        if value_ms is None or self._timeout_ms is None:
            return False
        return abs(value_ms - self._timeout_ms) > TOLERANCE_MS

    def _together(self, others: Sequence[SettingMention]) -> str:
        """The other settings with their lines, in words."""
        words = self._words
        return "".join(
            words(
                "setting.together_at" if other.line else "setting.together",
                other=f"{other.name}={other.value}",
                place=words("word.file_line", file=other.file, line=other.line).strip(),
            )
            for other in others
        )


def _warning(
    setting: SettingMention, verdict: AdviceVerdict, explanation: str, source: str
) -> SettingWarning:
    return SettingWarning(
        setting=f"{setting.name}={setting.value}",
        verdict=verdict,
        explanation=explanation,
        source=source,
        line=setting.line,
        file=setting.file,
    )
