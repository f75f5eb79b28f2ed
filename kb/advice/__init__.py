"""The advice check: what is wrong with settings in a script, a configuration or pasted advice."""

from kb.advice.extract import FoundSetting, find_settings
from kb.advice.lint import lint

__all__ = ["FoundSetting", "find_settings", "lint"]
