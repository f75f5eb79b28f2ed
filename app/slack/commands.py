"""`/timeout`: lookups and the channel's settings, answered to the person alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from app.slack import lookup_blocks
from app.slack.desk import Desk
from app.slack.types import Ask, ChannelSettings, Message
from kb.logs.redact import redact
from kb.types import Language

# What may stand first after /timeout; everything else is a text to diagnose.
VERBS = {
    "search": "search",
    "搜索": "search",
    "case": "case",
    "案例": "case",
    "lint": "lint",
    "检查": "lint",
    "settings": "settings",
    "设置": "settings",
    "help": "help",
    "帮助": "help",
}
SWITCHES = {"on": True, "off": False, "开": True, "关": False}
LANGUAGES: dict[str, Literal["", "zh", "en"]] = {"zh": "zh", "en": "en", "auto": ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A verb and what follows it; `verb` is empty for a text to diagnose."""

    verb: str
    rest: str


def parse(text: str) -> Command:
    """Split what was typed after `/timeout`."""
    first, _, rest = text.strip().partition(" ")
    if not first:
        return Command(verb="help", rest="")
    verb = VERBS.get(first.lower(), "")
    # "case closed, but it hangs again ..." is no lookup: an id is one word.
    if verb == "case" and len(rest.split()) != 1:
        verb = "" if rest.strip() else "help"
    # On several lines stands a log, whatever its first word; settings to lint may have several.
    if "\n" in text.strip() and verb != "lint":
        verb = ""
    return Command(verb=verb, rest=rest.strip() if verb else text.strip())


class Lookups:
    """The verbs, each from what follows it to a message. They block."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._verbs: dict[str, Callable[[Ask, str, Language], Message]] = {
            "search": self._search,
            "case": self._case,
            "lint": self._lint,
            "settings": self._settings,
            "help": self._help,
        }

    def answer(self, ask: Ask, command: Command) -> Message:
        """The answer to a verb.

        Raises:
            KBError: what follows it is wrong.
        """
        channel = self._desk.channel(ask.team, ask.channel)
        language = self._desk.language(ask.text, channel)
        if not command.rest and command.verb in ("search", "case", "lint"):
            return self._help(ask, "", language)
        return self._verbs[command.verb](ask, command.rest, language)

    def _search(self, _ask: Ask, rest: str, language: Language) -> Message:
        return self._desk.search(rest, language)

    def _case(self, _ask: Ask, rest: str, language: Language) -> Message:
        return self._desk.show(rest, language)

    def _lint(self, _ask: Ask, rest: str, language: Language) -> Message:
        return self._desk.lint(rest, language)

    def _help(self, _ask: Ask, _rest: str, language: Language) -> Message:
        return lookup_blocks.help_message(self._desk.words(language))

    def _settings(self, ask: Ask, rest: str, language: Language) -> Message:
        words = self._desk.words(language)
        now = self._desk.channel(ask.team, ask.channel)
        if not rest:
            return lookup_blocks.settings_message(now, words, changed=False)
        changed = changed_settings(now, rest)
        if changed is None:
            return lookup_blocks.help_message(
                words, wrong=words("slack.wrong_setting", what=redact(rest)[0])
            )
        self._desk.set_channel(ask.team, ask.channel, changed)
        words = self._desk.words(changed.language or language)
        return lookup_blocks.settings_message(changed, words, changed=True)


def changed_settings(now: ChannelSettings, rest: str) -> ChannelSettings | None:
    """The settings after ``NAME VALUE``, or None where that is none."""
    name, _, value = rest.strip().lower().partition(" ")
    value = value.strip()
    if name in ("language", "语言") and value in LANGUAGES:
        return replace(now, language=LANGUAGES[value])
    on = SWITCHES.get(value)
    if on is None:
        return None
    if name == "auto":
        return replace(now, auto=on)
    if name == "ephemeral":
        return replace(now, ephemeral=on)
    if name == "quiet":
        return replace(now, quiet=on)
    return None
