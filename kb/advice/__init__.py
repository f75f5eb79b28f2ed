"""The advice check: what is wrong with settings in a script, a configuration or pasted advice."""

from kb.advice.extract import FoundSetting, find_settings
from kb.advice.find import find_advice
from kb.advice.lint import lint, lint_reading

__all__ = ["FoundSetting", "find_advice", "find_settings", "lint", "lint_reading"]
