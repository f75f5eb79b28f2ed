"""Answers about settings: who reads it, what it does, what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence

from kb.chat.answers.answer import IntentAnswer, cite_pages
from kb.chat.types import Citation
from kb.types.answer import SettingWarning
from kb.types.knowledge import Advice

SETTINGS_SHOWN = 2
PROBE = "1"  # a value to judge a setting by that is named without one


def answer_setting(answer: IntentAnswer) -> None:
    """What is true of the settings named."""
    for name in answer.request.settings[:SETTINGS_SHOWN]:
        advice = answer.knowledge.advice_by_id.get(name)
        if advice is not None:
            _say_advice(answer, advice)
            continue
        warnings = answer.service.lint(f"{name}={PROBE}", language=answer.language)
        _say_warnings(answer, warnings)  # a name nobody knows may be misspelt
        if not warnings:
            answer.say("note", "chat.setting_unknown", setting=name)


def _say_advice(answer: IntentAnswer, advice: Advice) -> None:
    effect = advice.effect.get(answer.language)
    page = next((url for url in advice.sources if url.startswith("http")), "")
    citation = Citation(kind="setting", id=advice.id, quote=effect, url=page)
    citations = (citation, *cite_pages(advice.sources[1:]))
    answer.say("verdict", "chat.setting", citations, setting=advice.id, effect=effect)
    _say_warnings(answer, _warnings(answer, advice))
    if advice.replaced_by:
        citation = Citation(kind="setting", id=advice.id, quote=advice.replaced_by)
        answer.say("fix", "chat.setting_instead", (citation,), setting=advice.replaced_by)


def _warnings(answer: IntentAnswer, advice: Advice) -> list[SettingWarning]:
    """What is wrong with it as the person wrote it; without a value, what holds for any value."""
    torch, lint = answer.incident.versions.get("torch"), answer.service.lint
    warnings = lint(answer.request.text, language=answer.language, torch=torch)
    named = [item for item in warnings if item.setting.partition("=")[0] == advice.id]
    for_any_value = {rule.verdict for rule in advice.rules if not rule.value}
    if named or not for_any_value:
        return named
    warnings = lint(f"{advice.id}={PROBE}", language=answer.language, torch=torch)
    return [item for item in warnings if item.verdict in for_any_value]


def _say_warnings(answer: IntentAnswer, warnings: Sequence[SettingWarning]) -> None:
    for warning in warnings:
        citation, text = cite_setting(warning, warning.explanation), warning.explanation
        answer.say("warning", "chat.warning", (citation,), explanation=text)


def cite_setting(warning: SettingWarning, quote: str) -> Citation:
    """The setting warned of."""
    name = warning.setting.partition("=")[0]
    url = warning.source if warning.source.startswith("http") else ""
    return Citation(kind="setting", id=name, quote=quote, url=url)
