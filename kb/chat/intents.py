"""From a person's words to what they mean, without a language model.

Phrases of data/chat.yaml decide where one matches. Where none does, the answer to the open
question, cues of a hang, and words of the field do; the rest is not ours. A question is never
evidence, whatever it names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from kb.chat.phrases import IntentPhrase, Job, Phrasebook, Platform, Settled
from kb.chat.sentences import clauses, is_assertion, sentences
from kb.chat.types import CheckResult, Intent
from kb.knowledge.load import Knowledge
from kb.text.tokenizer import default_tokenizer
from kb.types.knowledge import Check
from kb.types.vocabulary import Language

ORDER_CHARS = 80  # an order to an assistant is short; a longer line tells more than that
ORDERING: frozenset[Intent] = frozenset({"language", "case", "search", "similar", "help"})
REPORT_CHARS = 120  # a question is shorter
ALIKE = 0.5  # share of the person's words an option must have to be meant
ALIKE_LEAD = 0.2  # by which it must lead before the next option
FEW_WORDS = 2  # a message of so few unknown words is unclear rather than off topic
TAG_WORDS = 3  # of “right?”, “is it not?”, “对不对” behind what is asked
SWITCH_WORDS = 3  # English words after which a Chinese conversation goes on in English
MORE = "go-on"  # the phrase that asks for more of the same
SUPPOSING = ("why-not", "what-about")  # phrases that ask whether it is some cause
NO_ANSWER: frozenset[Intent] = frozenset({"unclear", "off_topic"})
# Intents about an incident: without one, a message that reports a hang is the incident itself.
ABOUT_INCIDENT: frozenset[Intent] = frozenset(
    {"why", "sure", "fix", "next", "restart", "happened", "similar"}
)
LOOKUPS: frozenset[Intent] = frozenset({"search", "case", "setting", "cause", "outcome"})
# Words of taking back itself; they do not tell which remark is meant.
RETRACTING = (
    "forget ignore disregard drop delete remove take back what i said told you wrote about my last"
    " previous remark message statement that it was wrong sorry never mind please the thing is not"
    " of on in we 忘掉 忽略 撤回 收回 刚才 刚刚 之前 前面 说的 说错了 那句 那条 这条 关于 我 的 了"
    " 不算 作废 不要了 是 不是"
)
_DIGIT = re.compile(r"\d")
_SETTING = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[._][A-Za-z0-9]+)+")
_UPPER = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_HAN = re.compile(r"[\u4e00-\u9fff]")
_LATIN = re.compile(r"[A-Za-z][a-z']+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What the meaning of a message depends on beside its words.

    Attributes:
        has_incident: whether there is one to speak of.
        open_check: the one the open question asks about.
        just_asked: whether the last reply ended with that question.
        model_asked: whether a language model asked something after it.
        reports_hang: whether the words report a hang or failed communication.
        has_evidence: whether the words hold evidence (cues, lines, facts).
        after_cases: whether the last reply listed cases.
        hinted_causes: the causes the words hold signs of, in a question or a statement.
    """

    has_incident: bool
    open_check: Check | None = None
    just_asked: bool = False
    model_asked: bool = False
    reports_hang: bool = False
    has_evidence: bool = False
    after_cases: bool = False
    hinted_causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UserRequest:
    """One thing to be answered.

    Attributes:
        text: the sentence of the person it stands in, redacted.
        causes, platforms, ordinal: what it names: causes, backends and frameworks, a place in a
            list.
        settings: names of settings, as data/advice.yaml knows them or as written.
        settles: whether a cause was confirmed or denied.
        language: the language asked for.
        unanswerable: whether it is a question that nothing here answers.
        is_denial: whether it says that what it names is in order.
        cases: those of an earlier reply that is repeated in another language, in its order.
    """

    intent: Intent
    text: str = ""
    causes: tuple[str, ...] = ()
    platforms: tuple[Platform, ...] = ()
    ordinal: int = 0
    settings: tuple[str, ...] = ()
    settles: Settled = ""
    language: Language | None = None
    unanswerable: bool = False
    is_denial: bool = False
    cases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What a message means.

    Attributes:
        remark: sentences that state something about the incident, joined.
        requests: in the order to be answered; may be empty where something is stated.
        check_result: the answer to the open question.
        cannot_answer: whether the person cannot answer it.
        language: the language asked for.
        job: what the person says of the logs pasted: those of a new job, or of the same.
        retraction: the sentence that takes an earlier remark back.
    """

    remark: str = ""
    requests: tuple[UserRequest, ...] = ()
    check_result: CheckResult | None = None
    cannot_answer: bool = False
    language: Language | None = None
    job: Job = ""
    retraction: str = ""


class IntentReader:
    """Reads messages; made once."""

    def __init__(self, phrases: Phrasebook, knowledge: Knowledge) -> None:
        """Read with `phrases`; settings are those of `knowledge`."""
        self._phrases = phrases
        self._ids = frozenset(knowledge.advice_by_id)
        # Names in lower case, and the last parts of dotted ones, to the id of the advice.
        self._settings = {item.id.rpartition(".")[2].lower(): item.id for item in knowledge.advice}
        self._settings |= {item.id.lower(): item.id for item in knowledge.advice}

    def read(self, text: str, situation: Situation) -> Meaning:
        """What the person's own words mean in this situation."""
        whole = self._intents(text)
        reply = next((phrase.answer for phrase in whole if phrase.answer), "")
        if reply and situation.model_asked:
            return Meaning(cannot_answer=True) if reply == "unsure" else Meaning(remark=text)
        if reply and situation.open_check is not None:
            return _yes_or_no(text, reply, situation.open_check)
        if not whole:
            placed = self._choice(text, situation)
            if placed is not None:
                return placed
        retraction = next((item for item in sentences(text) if self._retracts(item)), "")
        if retraction and situation.has_incident:
            return Meaning(retraction=retraction, remark=self._correction(text))
        return self._by_sentence(text, situation)

    def is_request(self, line: str, *, has_incident: bool) -> bool:
        """Whether a line with an error in it is said to us: a phrase reads it, or it asks.

        Without an incident a question about an error is the incident itself.
        """
        return bool(self._intents(line)) or (has_incident and self._phrases.is_question(line))

    def is_order(self, line: str) -> bool:
        """Whether a line in a log orders the assistant about rather than tells what happened.

        “Why does it hang” also tells that it hangs, and “disabling it helps” is evidence: only
        short lines of intents that tell nothing count, beside plain orders of any length.
        """
        if self._phrases.is_order(line):
            return True
        phrase = self._intent(line) if len(line) <= ORDER_CHARS else None
        return phrase is not None and (
            bool(phrase.job) or phrase.settles == "denied" or phrase.intent in ORDERING
        )

    def suppositions(self, text: str) -> tuple[str, ...]:
        """Sentences that ask whether it is some cause: in a report they would count as its signs.

        “Why does it hang when saving?” is none: it tells that it hangs when saving.
        """
        return tuple(
            sentence
            for sentence in sentences(text)
            if self._phrases.is_question(sentence)
            and self._phrases.causes_in(sentence)
            and all(phrase.id in SUPPOSING for phrase in self._intents(sentence)[:1])
        )

    def remark(self, text: str) -> UserRequest:
        """A remark to be answered, with the causes it names and whether it denies them."""
        return replace(self._request("tell", text), is_denial=self._phrases.is_denial(text))

    def repeated(self, text: str, intent: Intent) -> UserRequest:
        """The request in `text` that a reply of that intent answered."""
        for sentence in sentences(text):
            phrase = self._intent(sentence)
            if phrase is not None and phrase.intent == intent:
                return self._request(intent, sentence)
        return self._request(intent, text)

    def key_words(self, text: str) -> frozenset[str]:
        """The words by which a remark is found again: its tokens and the causes it names."""
        return _tokens(text).difference(_tokens(RETRACTING)) | frozenset(
            self._phrases.causes_in(text)
        )

    # --- the message as a whole ------------------------------------------------------------

    def _choice(self, text: str, situation: Situation) -> Meaning | None:
        """A place in the list or the question before, or words like those of its options."""
        number, check = self._phrases.choice_in(text), situation.open_check
        if number and situation.after_cases:
            return Meaning(requests=(self._request("case", text),))
        # A bare figure is what a button of an older question says; words mean what was just asked.
        of_question = situation.just_asked or _DIGIT.search(text) is not None
        if check is not None and (of_question or not number):
            outcome = number or self._outcome(text, check)
            if 1 <= outcome <= len(check.outcomes):
                result = CheckResult(check=check.id, outcome=outcome, quote=text)
                return Meaning(check_result=result)
        if number and situation.has_incident:
            return Meaning(requests=(self._request("cause", text),))
        return None

    def _outcome(self, text: str, check: Check) -> int:
        """The outcome meant by words like those of an option; 0 for none."""
        words = _tokens(text)
        if not words or self._phrases.is_question(text):
            return 0
        shares = []
        for outcome in check.outcomes:
            options = (outcome.observation.zh, outcome.observation.en)
            shares.append(max(len(words & _tokens(option)) / len(words) for option in options))
        best, second, *_ = [*sorted(shares, reverse=True), 0.0]
        return shares.index(best) + 1 if best >= ALIKE and best - second >= ALIKE_LEAD else 0

    def _retracts(self, sentence: str) -> bool:
        phrase = self._intent(sentence)
        return phrase is not None and phrase.retracts

    def _correction(self, text: str) -> str:
        """What is stated in place of a remark taken back: “I was wrong, it is Ethernet”.

        It stands behind; what stands before speaks of the remark.
        """
        parts = [clause for sentence in sentences(text) for clause in clauses(sentence)]
        last = max(
            (at for at, part in enumerate(parts) if self._retracts(part)), default=len(parts)
        )
        return ", ".join(
            part
            for part in parts[last + 1 :]
            if not self._phrases.is_question(part)
            and (self._phrases.is_of_the_field(part) or self._phrases.causes_in(part))
        )

    # --- sentence by sentence --------------------------------------------------------------

    def _by_sentence(self, text: str, situation: Situation) -> Meaning:
        requests: dict[Intent, UserRequest] = {}
        remarks: list[str] = []
        language: Language | None = None
        job: Job = ""
        for sentence in sentences(text):
            phrase = self._intent(sentence)
            if phrase is None or phrase.answer:
                if situation.has_incident and self._phrases.is_question(sentence):
                    remarks += self._assertions(sentence)
                    request = self._unread_question(sentence, situation)
                    requests.setdefault(request.intent, request)
                else:
                    remarks.append(sentence)
                continue
            language = language or phrase.language
            job = job or phrase.job
            if phrase.id in SUPPOSING and situation.has_incident:
                remarks += self._assertions(sentence)
            if not phrase.job:
                intent = phrase.intent
                if phrase.retracts:
                    intent = "unclear"
                elif phrase.id == MORE and situation.after_cases:
                    intent = "similar"
                requests.setdefault(intent, self._request(intent, sentence, phrase))
        meaning = self._weighed(text, list(requests.values()), " ".join(remarks), job, situation)
        return replace(meaning, language=language)

    def _assertions(self, question: str) -> list[str]:
        """The clauses of a question that state something before it asks: “it is IB, is that it?”.

        None where only the last word asks (“rank 3 crashed, right?”): then all of it is asked.
        """
        *leading, last = clauses(question) or [question]
        if not leading or _word_count(last) <= TAG_WORDS:
            return []
        return [
            part
            for part in leading
            if is_assertion(part)
            and not self._phrases.is_question(part)
            and self._phrases.is_of_the_field(part)
        ]

    def _unread_question(self, sentence: str, situation: Situation) -> UserRequest:
        """What a question asks that no phrase reads: of a cause, a place, by its weak words."""
        request = self._request("why", sentence)
        hint = self._phrases.hint_in(sentence)
        if hint == "case":
            return replace(request, intent="case")
        if request.causes and not request.platforms:
            return request
        if request.ordinal:
            return replace(request, intent="cause")
        if hint:
            return replace(request, intent=hint)
        if request.platforms:
            return replace(request, intent="similar")
        if situation.hinted_causes:
            return replace(request, causes=situation.hinted_causes)
        if self._phrases.is_of_the_field(sentence):
            return replace(request, intent="unclear", unanswerable=True)
        return replace(request, intent="off_topic" if _word_count(sentence) > 1 else "unclear")

    def _weighed(
        self,
        text: str,
        requests: list[UserRequest],
        remark: str,
        job: Job,
        situation: Situation,
    ) -> Meaning:
        """Weigh requests and remarks: a report without an incident is an incident."""
        if len(requests) > 1:
            requests = [item for item in requests if item.intent != "courtesy"] or requests[:1]
        if not situation.has_incident and self._is_report(text):
            about = tuple(item for item in requests if item.intent == "setting")
            if situation.reports_hang:
                return Meaning(remark=text, requests=about, job=job)
            return Meaning(requests=about or (self._request("search", text),))
        is_lookup = any(item.intent in LOOKUPS for item in requests)
        if not situation.has_incident and situation.reports_hang and not is_lookup:
            others = tuple(item for item in requests if item.intent not in ABOUT_INCIDENT)
            return Meaning(remark=text, requests=others, job=job)
        if requests:
            is_evidence = situation.has_incident and situation.has_evidence
            if not (is_evidence and remark and self._phrases.is_of_the_field(remark)):
                return Meaning(requests=tuple(requests), job=job)
            answerable = tuple(item for item in requests if item.intent not in NO_ANSWER)
            return Meaning(remark=remark, requests=answerable, job=job)
        if job and not remark:
            return Meaning(job=job)
        return replace(self._unread(remark or text, situation), job=job)

    def _is_report(self, text: str) -> bool:
        """Whether a message is so long that it tells of something, whatever it asks besides."""
        return len(text) >= REPORT_CHARS and self._phrases.is_of_the_field(text)

    def _unread(self, text: str, situation: Situation) -> Meaning:
        """The meaning of a message that no phrase reads."""
        causes = self._phrases.causes_in(text)
        ours = self._phrases.is_of_the_field(text) or bool(causes)
        number, hint = self._phrases.ordinal_in(text), self._phrases.hint_in(text)
        has_incident, has_evidence = situation.has_incident, situation.has_evidence
        intent: Intent = "off_topic"
        if has_incident and not has_evidence and (number or (hint and not ours)):
            intent = "cause" if number else hint or "unclear"
        elif situation.reports_hang or (has_incident and (has_evidence or ours)):
            return Meaning(remark=text)
        elif self._phrases.is_question(text) and causes:
            intent = "why"
        elif self._phrases.is_denial(text) and causes:
            intent = "unclear"  # of what? a search would list what it is not
        elif has_evidence or ours:
            intent = "search"
        elif len(default_tokenizer().tokens(text)) <= FEW_WORDS:
            intent = "unclear"
        return Meaning(requests=(self._request(intent, text),))

    # --- what a text names -----------------------------------------------------------------

    def _intents(self, text: str) -> list[IntentPhrase]:
        return [phrase for phrase in self._phrases.intents_in(text) if self._has_need(phrase, text)]

    def _intent(self, text: str) -> IntentPhrase | None:
        return next(iter(self._intents(text)), None)

    def _has_need(self, phrase: IntentPhrase, text: str) -> bool:
        if phrase.needs == "setting":
            return bool(self.settings(text))
        if phrase.needs == "topic":
            return bool(self._phrases.causes_in(text))
        return phrase.needs != "ordinal" or bool(self._phrases.ordinal_in(text))

    def _request(
        self, intent: Intent, text: str, phrase: IntentPhrase | None = None
    ) -> UserRequest:
        return UserRequest(
            intent=intent,
            text=text,
            causes=self._phrases.causes_in(text),
            platforms=self._phrases.platforms_in(text),
            ordinal=self._phrases.ordinal_in(text),
            settings=self.settings(text),
            settles=phrase.settles if phrase else "",
            language=phrase.language if phrase else None,
        )

    def settings(self, text: str) -> tuple[str, ...]:
        """Settings the text names: known ones in any case, others in capitals."""
        names = []
        for name in _SETTING.findall(text):
            identifier = name if name in self._ids else self._settings.get(name.lower(), "")
            if identifier or _UPPER.fullmatch(name):
                names.append(identifier or name)
        return tuple(dict.fromkeys(names))


def _yes_or_no(text: str, reply: str, check: Check) -> Meaning:
    """The answer to a check by a word; “no” to more than two outcomes denies the first."""
    if reply == "unsure":
        return Meaning(cannot_answer=True)
    is_second = reply == "no" and len(check.outcomes) == 2
    result = CheckResult(
        check=check.id,
        outcome=2 if is_second else 1,
        quote=text,
        is_denied=reply == "no" and not is_second,
    )
    return Meaning(check_result=result)


def _word_count(text: str) -> int:
    """English words and Chinese characters."""
    return len(_LATIN.findall(text)) + len(_HAN.findall(text))


@lru_cache(1024)
def _tokens(text: str) -> frozenset[str]:
    return frozenset(default_tokenizer().tokens(text))


def message_language(text: str, current: Language | None) -> Language | None:
    """The language of a person's words; the current one where they are too few to tell."""
    if _HAN.search(text):
        return "zh"
    latin = len(_LATIN.findall(_SETTING.sub(" ", text)))
    if current == "zh" and latin < SWITCH_WORDS:
        return current
    return "en" if latin else current
