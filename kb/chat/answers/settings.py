"""Answers about settings: who reads it, what it does, what is wrong with it."""

from __future__ import annotations

from kb.chat.talk import Said, Talk, cite_sources
from kb.chat.types import Citation, Statement
from kb.types import Advice, SettingWarning

SETTINGS_SHOWN = 2
PROBE = "1"  # a value to judge a setting by that is named without one


def answer_setting(talk: Talk) -> Said:
    """What is true of the settings named."""
    statements: list[Statement] = []
    for name in talk.heard.settings[:SETTINGS_SHOWN]:
        advice = talk.knowledge.advice_by_id.get(name)
        statements += _known(talk, advice) if advice else _unknown(talk, name)
    return Said(statements=tuple(statements))


def _known(talk: Talk, advice: Advice) -> list[Statement]:
    effect = advice.effect.get(talk.words.language)
    own = Citation(kind="setting", id=advice.id, quote=effect, url=_first_page(advice.sources))
    statements = [
        talk.say(
            "verdict",
            "chat.setting",
            (own, *cite_sources(advice.sources[1:])),
            setting=advice.id,
            effect=effect,
        )
    ]
    statements += [_warning(talk, warning) for warning in _wrong(talk, advice)]
    if advice.replaced_by:
        cited = (Citation(kind="setting", id=advice.id, quote=advice.replaced_by),)
        statements.append(
            talk.say("fix", "chat.setting_instead", cited, setting=advice.replaced_by)
        )
    return statements


def _wrong(talk: Talk, advice: Advice) -> list[SettingWarning]:
    """What is wrong with it as the person wrote it; without a value, what holds for any value."""
    own = talk.heard.own
    language = talk.words.language
    torch = None
    if talk.judged is not None:
        torch = talk.judged.reading.incident.versions.get("torch")
    found = talk.service.lint(own, language=language, torch=torch)
    named = [item for item in found if item.setting.partition("=")[0] == advice.id]
    if named or not any(not rule.value for rule in advice.rules):
        return named
    probe = f"{advice.id}={PROBE}"
    any_value = {rule.verdict for rule in advice.rules if not rule.value}
    found = talk.service.lint(probe, language=language, torch=torch)
    return [item for item in found if item.verdict in any_value]


def _warning(talk: Talk, warning: SettingWarning) -> Statement:
    cited = Citation(
        kind="setting",
        id=warning.setting.partition("=")[0],
        quote=warning.explanation,
        url=warning.source if warning.source.startswith("http") else "",
    )
    return talk.say("warning", "chat.warning", (cited,), explanation=warning.explanation)


def _unknown(talk: Talk, name: str) -> list[Statement]:
    """A name nobody knows: misspelt, or simply not in the book."""
    found = talk.service.lint(f"{name}={PROBE}", language=talk.words.language)
    misspelt = [_warning(talk, item) for item in found]
    return misspelt or [talk.say("note", "chat.setting_unknown", setting=name)]


def _first_page(urls: tuple[str, ...]) -> str:
    return next((url for url in urls if url.startswith("http")), "")
