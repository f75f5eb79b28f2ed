"""`lint`: every setting of a text against what is true of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from packaging.version import Version

from kb.advice.extract import FoundSetting, find_settings
from kb.advice.judge import applying_rules, contradicting, number, torch_release
from kb.advice.spelling import nearest_name
from kb.types import Advice, AdviceRule, Bilingual, Language, LogReading, SettingWarning

MS_PER_UNIT = {"ms": 1.0, "s": 1000.0, "min": 60_000.0}
TOLERANCE_MS = 1000.0  # settings are whole seconds, logs print milliseconds

MISSPELT = Bilingual(
    zh="没有名为 {name} 的设置；应当是 {near}。拼错的变量会被静默忽略。",
    en="There is no setting {name}; it should be {near}. A misspelt variable is ignored silently.",
)
NOT_IN_FORCE = Bilingual(
    zh="日志里超时的那个操作用的是 {logged:.10g} 秒，而不是这里的 {wanted:.10g} 秒：它没有生效。"
    "请检查它是否在建立进程组之前传入，以及是否有别的地方先建了组。",
    en="The operation that timed out in the log had {logged:.10g} s, not the {wanted:.10g} s set "
    "here: it was not in force. Check that it is passed before the process group is created and "
    "that nothing else created the group first.",
)
IGNORED = Bilingual(
    zh="日志里的 Timeout(ms)={logged} 也说明它没有生效。",
    en=" Timeout(ms)={logged} in the log shows as well that it was ignored.",
)
TOGETHER = Bilingual(zh="（{place}的 {other}）", en=" ({other} on {place})")
TOGETHER_SOMEWHERE = Bilingual(zh="（{other}）", en=" ({other})")
PLACE = Bilingual(zh="{file} 第 {line} 行", en="{file} line {line}")


def lint(
    text: str,
    advice: Sequence[Advice],
    *,
    torch: str | None = None,
    timeout_ms: int | None = None,
    language: Language,
) -> tuple[SettingWarning, ...]:
    """What is wrong with the settings in `text`, by line, then in the order of data/advice.yaml.

    Args:
        text: a script, a configuration, an environment, pasted advice or a log.
        advice: what is true of each setting.
        torch: torch's version; without it a rule is told with the versions it holds for.
        timeout_ms: the timeout a log shows, against which a setting of it is held.
        language: language of the explanations.

    Raises:
        InputError: `torch` is not a version.
    """
    found = find_settings(text, _options(advice))
    return _judged(found, advice, torch=torch, timeout_ms=timeout_ms, language=language)


def lint_reading(
    reading: LogReading, advice: Sequence[Advice], *, torch: str | None, language: Language
) -> tuple[SettingWarning, ...]:
    """The same of what was read: the settings the log shows and those in the person's words."""
    incident = reading.incident
    settings = "\n".join(f"{key}={value}" for key, value in incident.settings.items())
    options = _options(advice)
    places = _places(reading, options)
    found = [
        replace(setting, file=file, line=line)
        for setting in find_settings(f"{reading.description}\n{settings}", options)
        for file, line in [places.get((setting.name, setting.value), ("", 0))]
    ]
    return _judged(
        found,
        advice,
        torch=torch or incident.versions.get("torch"),
        timeout_ms=incident.timeout_ms,
        language=language,
    )


def _options(advice: Sequence[Advice]) -> list[str]:
    """The names of advice that are options, not environment variables."""
    return [item.id for item in advice if item.id.islower()]


def _places(reading: LogReading, options: Sequence[str]) -> dict[tuple[str, str], tuple[str, int]]:
    """File and line of each setting with its value, as far as known."""
    places: dict[tuple[str, str], tuple[str, int]] = {}
    if reading.word_lines:
        for item in find_settings(reading.words, options):
            place = (reading.word_file, reading.word_lines[item.line - 1])
            places.setdefault((item.name, item.value), place)
    for event in reading.events:
        if event.event == "setting":
            named = (event.fields.get("name", ""), event.fields.get("value", "").rstrip(".,;"))
            places.setdefault(named, (event.file, event.line))
    return places


def _judged(
    found: Sequence[FoundSetting],
    advice: Sequence[Advice],
    *,
    torch: str | None,
    timeout_ms: int | None,
    language: Language,
) -> tuple[SettingWarning, ...]:
    by_name = {item.id: item for item in advice}
    by_name |= {item.id.rpartition(".")[2]: item for item in advice if "." in item.id}
    readers = {name: item for item in advice for name in item.related} | by_name
    seen = _Seen(
        found=tuple(found),
        torch=torch_release(torch),
        timeout_ms=_unexplained(timeout_ms, found, by_name),
        language=language,
    )
    warnings: list[SettingWarning] = []
    for setting in found:
        item = by_name.get(setting.name)
        if item is not None:
            warnings += _about(setting, item, seen)
        elif not setting.is_option:
            near = nearest_name(setting.name, readers)
            if near:
                warnings.append(_misspelt(setting, near, readers[near].sources[0], language))
    return tuple(sorted(warnings, key=lambda warning: (warning.file, warning.line)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What all settings of one text are judged by."""

    found: tuple[FoundSetting, ...]
    torch: Version | None
    timeout_ms: int | None
    language: Language


def _unexplained(
    timeout_ms: int | None, found: Sequence[FoundSetting], by_name: Mapping[str, Advice]
) -> int | None:
    """The logged timeout, None where a setting of the text accounts for it."""
    for setting in found:
        advice = by_name.get(setting.name)
        if advice is not None and advice.sets_group_timeout:
            wanted = _milliseconds(setting, advice)
            if wanted is not None and not _differs(wanted, timeout_ms):
                return None
    return timeout_ms


def _differs(wanted_ms: float, timeout_ms: int | None) -> bool:
    return timeout_ms is not None and abs(wanted_ms - timeout_ms) > TOLERANCE_MS


def _about(setting: FoundSetting, advice: Advice, seen: _Seen) -> Iterator[SettingWarning]:
    wanted_ms = _milliseconds(setting, advice)
    ignored = wanted_ms is not None and _differs(wanted_ms, seen.timeout_ms)
    for item in applying_rules(setting, advice, seen.found, seen.torch):
        explanation = item.rule.explanation.get(seen.language)
        if item.rule.verdict == "contradicts":
            explanation += _together(contradicting(advice, setting, seen.found), seen.language)
        if item.rule.verdict == "no_effect" and not advice.read_by and ignored:
            explanation += IGNORED.get(seen.language).format(logged=seen.timeout_ms)
        yield _warning(setting, advice, item.rule, explanation)
    if advice.sets_group_timeout and ignored and seen.timeout_ms and wanted_ms:
        yield SettingWarning(
            setting=f"{setting.name}={setting.value}",
            verdict="no_effect",
            explanation=NOT_IN_FORCE.get(seen.language).format(
                logged=seen.timeout_ms / 1000, wanted=wanted_ms / 1000
            ),
            source=advice.sources[0],
            line=setting.line,
            file=setting.file,
        )


def _milliseconds(setting: FoundSetting, advice: Advice) -> float | None:
    value = number(setting.value)
    factor = MS_PER_UNIT.get(advice.unit)
    return None if value is None or factor is None else value * factor


def _together(others: Sequence[FoundSetting], language: Language) -> str:
    told = []
    for other in others:
        template = TOGETHER if other.line else TOGETHER_SOMEWHERE
        place = PLACE.get(language).format(file=other.file, line=other.line).strip()
        told.append(template.get(language).format(other=f"{other.name}={other.value}", place=place))
    return "".join(told)


def _warning(
    setting: FoundSetting, advice: Advice, rule: AdviceRule, explanation: str
) -> SettingWarning:
    return SettingWarning(
        setting=f"{setting.name}={setting.value}",
        verdict=rule.verdict,
        explanation=explanation,
        source=rule.source or advice.sources[0],
        torch_versions=", ".join(rule.versions),
        replacement=rule.replacement.replace("{value}", setting.value),
        line=setting.line,
        file=setting.file,
    )


def _misspelt(setting: FoundSetting, near: str, source: str, language: Language) -> SettingWarning:
    return SettingWarning(
        setting=f"{setting.name}={setting.value}",
        verdict="misspelt",
        explanation=MISSPELT.get(language).format(name=setting.name, near=near),
        source=source,
        replacement=f"{near}={setting.value}",
        line=setting.line,
        file=setting.file,
    )
