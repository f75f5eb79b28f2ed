"""The words of a remark that were taken for evidence."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kb.diagnose.signals import Signal
from kb.knowledge import Knowledge

EXPRESSIONS = 256  # of cues held compiled; a conversation touches a few


def clue(signal: Signal, knowledge: Knowledge) -> str:
    """The words in the signal's quote that its cue matched; the quote where they do not say it.

    Of what is denied or in order the words name the thing only, and the sentence says the rest.
    """
    pattern = knowledge.pattern_by_id.get(signal.reason_id)
    if pattern is None or signal.kind != "text" or signal.denied:
        return signal.quote
    found = _expression(pattern.regex).search(signal.quote)
    words = found.group().strip(" ,，、:：;；(（") if found else ""
    return words or signal.quote


@lru_cache(EXPRESSIONS)
def _expression(regex: str) -> Any:  # noqa: ANN401 - RE2 has no types
    import re2

    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    return re2.compile(regex, options)
