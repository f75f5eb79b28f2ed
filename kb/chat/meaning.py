"""What a message means: the values its readers make of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kb.chat.phrase_sets import Platform
from kb.chat.types import CheckResult, Intent, QuestionForm, ReadStatement
from kb.types.knowledge import Check
from kb.types.vocabulary import Language

Job = Literal["", "new", "same"]
Settled = Literal["", "confirmed", "denied"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What the meaning of a message depends on beside its words.

    Attributes:
        has_incident: whether there is one to speak of.
        open_checks: those asked and not answered, the last one first.
        just_asked: whether the last reply ended with the question of the first of them.
        outcome_asked: whether the last reply asked whether the incident ended so.
        model_asked: whether a language model asked something after it.
        reports_hang: whether the words report a hang or failed communication.
        has_evidence: whether the words hold evidence (cues, lines, facts).
        after_cases: whether the last reply listed cases.
        after_fixes: whether it told fixes, which are numbered.
        hinted_causes: the causes the words hold signs of, in a question or a statement.
    """

    has_incident: bool
    open_checks: tuple[Check, ...] = ()
    just_asked: bool = False
    outcome_asked: bool = False
    model_asked: bool = False
    reports_hang: bool = False
    has_evidence: bool = False
    after_cases: bool = False
    after_fixes: bool = False
    hinted_causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRequest:
    """One thing to be answered.

    Attributes:
        text: the sentence of the person it stands in, redacted.
        context: what the message says before it.
        causes, platforms, ordinal: what it names: causes, backends and frameworks, a place in a
            list.
        is_fix_place: whether that is a place in the list of fixes.
        settings: names of settings, as data/advice.yaml knows them or as written.
        settles: whether a cause was confirmed or denied.
        language: the language asked for.
        unanswerable: whether it is a question that nothing here answers.
        is_denial: whether it says that what it names is in order.
        is_guess: whether what it names is only guessed or asked.
        has_helped: whether it may tell of what mended it.
        is_trying: whether it says that the outcome of a change is awaited.
        form: what a question asks for, where its words tell.
        cases: those of an earlier reply that is repeated in another language, in its order.
    """

    intent: Intent
    text: str = ""
    context: str = ""
    causes: tuple[str, ...] = ()
    platforms: tuple[Platform, ...] = ()
    ordinal: int = 0
    is_fix_place: bool = False
    settings: tuple[str, ...] = ()
    settles: Settled = ""
    language: Language | None = None
    unanswerable: bool = False
    is_denial: bool = False
    is_guess: bool = False
    has_helped: bool = False
    is_trying: bool = False
    form: QuestionForm = ""
    cases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What a message means.

    Attributes:
        text: the message.
        remark: sentences that state something about the incident, joined.
        requests: in the order to be answered; may be empty where something is stated.
        check_result: the answer to an open question.
        cannot_answer: whether the person cannot answer it.
        settled: yes or no to whether the incident ended so.
        language: the language asked for.
        job: what the person says of the logs pasted: those of a new job, or of the same.
        retraction: the sentence that takes an earlier remark back; `retracted` are the remarks it
            means, where that is known.
        statements: what a language model read in the remark.
        refusals: sentences that say that something cannot or will not be run.
        is_complaint: whether it is about our answers and asks nothing.
    """

    text: str = ""
    remark: str = ""
    requests: tuple[UserRequest, ...] = ()
    check_result: CheckResult | None = None
    cannot_answer: bool = False
    settled: Literal["", "yes", "no"] = ""
    language: Language | None = None
    job: Job = ""
    retraction: str = ""
    retracted: tuple[str, ...] = ()
    statements: tuple[ReadStatement, ...] = ()
    refusals: tuple[str, ...] = ()
    is_complaint: bool = False
