"""The advice check: what is wrong with settings in a script, a configuration or pasted advice."""

from kb.settings_check.contradictions import ContradictionFinder, SettingConflict
from kb.settings_check.extract import SettingMention, find_settings
from kb.settings_check.lint import SettingsReport, find_harms, lint, report_settings
from kb.settings_check.names import find_advice

__all__ = [
    "ContradictionFinder",
    "SettingConflict",
    "SettingMention",
    "SettingsReport",
    "find_advice",
    "find_harms",
    "find_settings",
    "lint",
    "report_settings",
]
