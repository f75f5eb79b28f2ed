"""The answers: one function an intent."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kb.chat.answers.answer import IntentAnswer
from kb.chat.answers.cases import answer_case, answer_search, answer_similar
from kb.chat.answers.causes import (
    answer_cause,
    answer_fix,
    answer_next,
    answer_restart,
    answer_sure,
    answer_why,
)
from kb.chat.answers.conversation import (
    answer_courtesy,
    answer_help,
    answer_impatient,
    answer_language,
    answer_off_topic,
    answer_outcome,
    answer_recap,
    answer_unclear,
)
from kb.chat.answers.notes import answer_how_to, answer_setting_question
from kb.chat.answers.timeline import answer_happened
from kb.chat.answers.verdict import answer_log, answer_tell
from kb.chat.types import Intent

ANSWERS: Mapping[Intent, Callable[[IntentAnswer], None]] = {
    "log": answer_log,
    "tell": answer_tell,
    "happened": answer_happened,
    "why": answer_why,
    "sure": answer_sure,
    "fix": answer_fix,
    "next": answer_next,
    "restart": answer_restart,
    "case": answer_case,
    "similar": answer_similar,
    "cause": answer_cause,
    "setting": answer_setting_question,
    "how_to": answer_how_to,
    "search": answer_search,
    "language": answer_language,
    "outcome": answer_outcome,
    "recap": answer_recap,
    "help": answer_help,
    "courtesy": answer_courtesy,
    "impatient": answer_impatient,
    "off_topic": answer_off_topic,
    "unclear": answer_unclear,
}
