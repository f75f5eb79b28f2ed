"""From a person's words to what they mean, without a language model.

A fitted model (`kb.chat.acts`) reads what each sentence does, another (`kb.chat.check_answers`)
which outcome of an open question it reports; data/chat.yaml knows what they name. A question is
never evidence, whatever it names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Literal

from kb.chat.acts import ActReader
from kb.chat.check_answers import CheckAnswerReader
from kb.chat.observations import ASKING, ObservationReader
from kb.chat.phrases import ENTRY_ID, Phrasebook, Platform
from kb.chat.sentences import HAN, LATIN, clauses, is_assertion, sentences
from kb.chat.types import Act, CheckResult, Intent, QuestionForm
from kb.knowledge.load import Knowledge
from kb.text.tokenizer import default_tokenizer
from kb.types.knowledge import Check
from kb.types.vocabulary import Language

Job = Literal["", "new", "same"]
Settled = Literal["", "confirmed", "denied"]

ORDER_CHARS = 80  # an order to an assistant is short; a longer line tells more than that
REPORT_CHARS = 120  # a question is shorter
TOLD_CHARS = 30  # of what is stated in a message that reports an incident
MAX_REQUESTS = 2  # answered of one message, the last ones
FEW_WORDS = 2  # a message of so few unknown words is unclear rather than off topic
SWITCH_WORDS = 3  # English words after which a Chinese conversation goes on in English
TAKEN = 0.75  # probability from which a message is taken as an outcome of the check just asked
TAKEN_LATER = 0.92  # of a check asked before
SURE = 0.45  # of an act; below it what such acts have in common decides first
CERTAIN = 0.75  # of an act that is read against what stands in a log
ORDERED = 0.6  # of an order that stands in a log
HELPED = 0.25  # of having mended it, from which it is asked whether that was it
RETRACTED = 0.2  # of taking back, beside words that do
REPLY_SHARE = 0.5  # of yes, no and “cannot tell” together, from which a message is one of them
RARE = 0.05  # what is left of an act that makes no sense in the situation
NO_ANSWER: frozenset[Intent] = frozenset({"unclear", "off_topic"})
# Intents about an incident: without one, a message that reports a hang is the incident itself.
ABOUT_INCIDENT: frozenset[Intent] = frozenset(
    {"why", "sure", "fix", "next", "restart", "happened", "similar"}
)
LOOKUPS: frozenset[Intent] = frozenset({"search", "case", "setting", "cause", "outcome", "how_to"})
STATING: frozenset[Act] = frozenset({"tell", "suspect"})
REPLYING: frozenset[Act] = frozenset({"yes", "no", "unsure"})
ENDING: frozenset[Act] = frozenset({"fixed", "not_it"})
ANSWERING: frozenset[Act] = frozenset(
    {*STATING, *REPLYING, "not_it"}
)  # what an answer to a check looks like
LANGUAGES: Mapping[Act, Language] = {"lang_zh": "zh", "lang_en": "en"}
# Questions that a statement is easily taken for.
TELLING: frozenset[Act] = frozenset({"happened", "recap", "sure", "help"})
GROUPS: tuple[frozenset[Act], ...] = (STATING, REPLYING, ENDING, ASKING)
# Acts that need an incident; without one they are rare.
OF_INCIDENT: frozenset[Act] = frozenset({"fixed", "not_it", "retract", "same_job", "sure"})
# Acts that do harm where they were not meant, and the probability from which they count.
CONSEQUENTIAL: Mapping[Act, float] = {
    "fixed": 0.4,
    "not_it": 0.7,
    "retract": 0.65,
    "new_job": 0.5,
    "same_job": 0.65,
    "impatient": 0.65,
    "search": 0.65,
    "case": 0.5,
    "help": 0.5,
}
# Questions of the field: without a word of it they are about something else.
GENERAL: frozenset[Act] = frozenset({"how_to", "cause", "setting", "search"})
# Questions that, where they name a cause, ask whether it is that one.
SUPPOSING: frozenset[Act] = frozenset({"why", "happened", "sure", "recap", "cause", "case"})
# Acts that, where they name a place in a list, ask about what stands there.
PLACING: frozenset[Act] = frozenset(
    {"option", "case", "cause", "happened", "how_to", "search", "similar", "recap", "help"}
)
# Not answered beside anything else.
BESIDE: frozenset[Intent] = frozenset({"courtesy", "help", "unclear", "off_topic", "impatient"})
# What orders the assistant about and tells nothing of an incident.
ORDERING: frozenset[Act] = frozenset(
    {"lang_zh", "lang_en", "case", "search", "similar", "help", "new_job", "not_it", "retract"}
)
# The others are intents of the same name.
INTENTS: Mapping[Act, Intent] = {
    "suspect": "tell",
    "fixed": "outcome",
    "not_it": "outcome",
    "yes": "unclear",
    "no": "unclear",
    "unsure": "unclear",
    "retract": "unclear",
    "option": "cause",
    "lang_zh": "language",
    "lang_en": "language",
    "new_job": "log",
    "same_job": "log",
}
# Words of taking back itself; they do not tell which remark is meant.
RETRACTING = (
    "forget ignore disregard drop delete remove take back what i said told you wrote about my last"
    " previous remark message statement that it was wrong sorry never mind please the thing is not"
    " of on in we 忘掉 忽略 撤回 收回 刚才 刚刚 之前 前面 说的 说错了 那句 那条 这条 关于 我 的 了"
    " 不算 作废 不要了 是 不是"
)
_MEANT = re.compile(
    r"(?i)(?:\bi mean(?:t to say|t)?\b|\bactually\b|是说|应该是|其实是|而是)[ ,，]*(\S.*)$"
)
# What is asked for by its kind: a case, or what a cause is.
_NAMES_KIND = re.compile(
    r"(?i)\b(?:what|explain|define|meaning|cases?|examples?|links?|threads?)\b"
    r"|什么|啥|解释|介绍|案例|例子|链接|帖子"
)
# A place in the list asked, before more is said: “1, but …”.
_NUMBERED = re.compile(r"\s*([12])\s*[,，.。:：;；-]")
_WH = re.compile(
    r"(?i)\b(?:what|which|who|whose|why|how|when|where|show|tell|list|repeat|remind|sum)\b|[?？]"
    r"|什么|啥|谁|哪|怎|为何|吗|呢|几|多|复述|总结|列|说说|讲"
)
_SETTING = re.compile(r"[A-Za-z][A-Za-z0-9]{0,40}(?:[._][A-Za-z0-9]{1,40}){1,12}")
_VALUE = re.compile(r"[A-Za-z0-9_.]{1,80}=\S{1,80}")
_WORD = re.compile(r"[A-Za-z\u4e00-\u9fff]")
_UPPER = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")


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
        is_guess: whether what it names is only guessed or asked.
        has_helped: whether it may tell of what mended it.
        form: what a question asks for, where its words tell.
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
    is_guess: bool = False
    has_helped: bool = False
    form: QuestionForm = ""
    cases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What a message means.

    Attributes:
        remark: sentences that state something about the incident, joined.
        requests: in the order to be answered; may be empty where something is stated.
        check_result: the answer to an open question.
        cannot_answer: whether the person cannot answer it.
        settled: yes or no to whether the incident ended so.
        language: the language asked for.
        job: what the person says of the logs pasted: those of a new job, or of the same.
        retraction: the sentence that takes an earlier remark back.
        refusals: sentences that say that something cannot or will not be run.
        is_complaint: whether it is about our answers and asks nothing.
    """

    remark: str = ""
    requests: tuple[UserRequest, ...] = ()
    check_result: CheckResult | None = None
    cannot_answer: bool = False
    settled: Literal["", "yes", "no"] = ""
    language: Language | None = None
    job: Job = ""
    retraction: str = ""
    refusals: tuple[str, ...] = ()
    is_complaint: bool = False


@dataclass(kw_only=True)
class _Read:
    """What the sentences of a message do, gathered."""

    requests: list[UserRequest] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    is_complaint: bool = False
    language: Language | None = None
    job: Job = ""


class IntentReader:
    """Reads messages; made once."""

    def __init__(
        self,
        phrases: Phrasebook,
        knowledge: Knowledge,
        acts: ActReader,
        answers: CheckAnswerReader,
    ) -> None:
        """Read with `phrases` and the fitted models; settings are those of `knowledge`."""
        self._phrases = phrases
        self._acts = acts
        self._answers = answers
        self.observations = ObservationReader(phrases, acts)
        self.asks = self.observations.asks
        self._ids = frozenset(knowledge.advice_by_id)
        # Names in lower case, and the last parts of dotted ones, to the id of the advice.
        self._settings = {item.id.rpartition(".")[2].lower(): item.id for item in knowledge.advice}
        self._settings |= {item.id.lower(): item.id for item in knowledge.advice}

    def read(self, text: str, situation: Situation) -> Meaning:
        """What the person's own words mean in this situation."""
        placed = self._choice(text, situation)
        if placed is not None:
            return placed
        replied = self._reply(text, situation) or self._outcome_seen(text, situation)
        if replied is not None:
            return replied
        retraction = next(
            (
                item
                for item in sentences(text)
                if self._phrases.is_taken_back(item)
                and self._acts.read(item)["retract"] > RETRACTED
            ),
            "",
        )
        if retraction and situation.has_incident:
            return Meaning(retraction=retraction, remark=self._correction(text, situation))
        return self._by_sentence(text, situation)

    def is_request(self, line: str, *, has_incident: bool) -> bool:
        """Whether a line with an error in it is said to us rather than printed by a program.

        Without an incident a question about an error is the incident itself.
        """
        shares = self._acts.read(line)
        asks = _share(shares, ASKING) >= CERTAIN or self.asks(line)
        return (has_incident and asks) or max(shares[act] for act in ORDERING) >= CERTAIN

    def is_order(self, line: str) -> bool:
        """Whether a line in a log orders the assistant about rather than tells what happened."""
        if self._phrases.is_order(line):
            return True
        if len(line) > ORDER_CHARS:
            return False
        shares = self._acts.read(line)
        return max(shares[act] for act in ORDERING) >= ORDERED

    def remark(self, text: str) -> UserRequest:
        """A remark to be answered, with the causes it names and whether it denies them."""
        request, told = self._request("tell", text), sentences(text)
        helped = any(
            self._acts.read(item)["fixed"] >= (HELPED if self._phrases.is_cured(item) else CERTAIN)
            and not self.asks(item)
            and not self._phrases.is_still_trouble(item)
            for item in told
        )
        return replace(request, has_helped=helped)

    def incident_meant(self, text: str) -> tuple[str, str, Literal["", "other", "earlier"]]:
        """The text before the sentence that turns to another incident, from it on, and to which."""
        told = sentences(text)
        for place, sentence in enumerate(told):
            meant = self._phrases.incident_meant(sentence)
            if meant:
                return " ".join(told[:place]), " ".join(told[place:]), meant
        return "", text, ""

    def tells_trouble(self, text: str) -> bool:
        """Whether a text speaks of trouble of this field that has not ended."""
        phrases = self._phrases
        is_trouble = phrases.is_still_trouble(text) or bool(phrases.causes_in(text))
        return is_trouble and not phrases.is_cured(text) and self._tells(text)

    def causes_by_sense(self, text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The causes the text names, and those it only denies."""
        return self._phrases.causes_by_sense(text)

    def is_conclusion(self, sentence: str) -> bool:
        """Whether a sentence says without a doubt which cause it is."""
        is_unsure = self._phrases.is_guess(sentence) or self.asks(sentence)
        return not is_unsure and self._acts.read(sentence)["suspect"] >= SURE

    def is_ruling_out(self, sentence: str) -> bool:
        """Whether a short sentence says of what it names that it is not why."""
        return len(sentence) <= REPORT_CHARS and self._phrases.is_ruling_out(sentence)

    def denies_next(self, words: str) -> bool:
        """Whether the words deny what comes right behind them: “there is no …”."""
        return self._phrases.denies_next(words)

    def is_job_gone(self, text: str) -> bool:
        """Whether the text says that the job is no longer there to be looked at."""
        return self._phrases.is_job_gone(text)

    def repeated(self, text: str, intent: Intent) -> UserRequest:
        """The request in `text` that a reply of that intent answered."""
        situation = Situation(has_incident=True)
        for sentence in sentences(text):
            if _intent(self._act(sentence, situation)) == intent:
                return self._request(intent, sentence)
        return self._request(intent, text)

    def key_words(self, text: str) -> frozenset[str]:
        """The words by which a remark is found again: its tokens and the causes it names."""
        return _tokens(text).difference(_tokens(RETRACTING)) | frozenset(
            self._phrases.causes_in(text)
        )

    # --- the message as a whole ------------------------------------------------------------

    def _choice(self, text: str, situation: Situation) -> Meaning | None:
        """A place in the list or the question before: “2”, “the second one”, an option's words."""
        number = self._phrases.choice_in(text)
        for check in situation.open_checks if situation.just_asked else ():
            for place, outcome in enumerate(check.outcomes, start=1):
                shown = (outcome.observation.zh.casefold(), outcome.observation.en.casefold())
                if text.strip().casefold() in shown:
                    number = place
        if not number:
            return None
        if situation.after_cases:
            return Meaning(requests=(self._request("case", text),))
        if situation.outcome_asked and number <= 2:
            return Meaning(settled="yes" if number == 1 else "no")
        for check in situation.open_checks[:1]:
            if situation.just_asked and number <= len(check.outcomes):
                result = CheckResult(check=check.id, outcome=number, quote=text)
                return Meaning(check_result=result)
        return Meaning(requests=(self._request("cause", text),)) if situation.has_incident else None

    def _reply(self, text: str, situation: Situation) -> Meaning | None:
        """Yes, no or “cannot tell” to what was asked."""
        if situation.outcome_asked:
            return self._settled(text)
        asked = situation.model_asked or situation.just_asked
        if not asked or len(text) > REPORT_CHARS or self._phrases.is_asked(text):
            return None
        shares = self._acts.read(text)
        if _share(shares, REPLYING) < REPLY_SHARE:
            return None
        reply = max(REPLYING, key=lambda act: (shares[act], act))
        if reply != "unsure" and self._tells(text):
            return None  # “it isn't the network” says more than no
        if situation.model_asked:
            return Meaning(cannot_answer=True) if reply == "unsure" else Meaning(remark=text)
        if reply == "unsure":
            return Meaning(cannot_answer=True)
        check = situation.open_checks[0]
        result = self.answer_to(text, [check], least=TAKEN)  # “no, it passes” says more than “no”
        return Meaning(check_result=result) if result else _yes_or_no(text, reply, check)

    def _settled(self, text: str) -> Meaning | None:
        """Yes or no to how it ended; “yes, keep it. Though …” is one."""
        sentence = next(iter(sentences(text)), "")
        if self._phrases.is_asked(sentence):
            return None
        first = next(iter(clauses(sentence)), "")
        number = _NUMBERED.match(text)
        if number:
            return Meaning(settled="yes" if number[1] == "1" else "no")
        shares = self._acts.read(first)
        yes = shares["yes"] + shares["fixed"]
        no = shares["no"] + shares["not_it"]
        if max(yes, no) < REPLY_SHARE:
            return None
        return Meaning(settled="yes" if yes > no else "no")

    def _outcome_seen(self, text: str, situation: Situation) -> Meaning | None:
        """An outcome of an open check in the person's own words."""
        if not situation.open_checks or len(text) > REPORT_CHARS or self.asks(text):
            return None
        if _share(self._acts.read(text), ANSWERING) < REPLY_SHARE:
            return None
        if self._phrases.is_explanation(text):
            return None  # it says more than what was seen
        least = TAKEN if situation.just_asked else TAKEN_LATER
        result = self.answer_to(text, situation.open_checks[:1], least=least)
        return Meaning(check_result=result) if result else None

    def answer_to(
        self, text: str, checks: Sequence[Check], *, least: float = TAKEN_LATER
    ) -> CheckResult | None:
        """The outcome of the first of `checks` that `text` reports with that probability."""
        named = set(self._phrases.causes_in(text))
        for check in checks:
            if named.difference(*map(self._phrases.causes_in, _words_of(check))):
                continue  # it speaks of something else: “it's InfiniBand, two nodes are fine”
            read = self._answers.read(text, check)
            best = max(range(len(read)), key=read.__getitem__)
            if best and read[best] >= least:
                return CheckResult(check=check.id, outcome=best, quote=text)
        return None

    def _correction(self, text: str, situation: Situation) -> str:
        """What is stated in place of a remark taken back: “I was wrong, it is Ethernet”.

        It stands behind; what stands before speaks of the remark.
        """
        parts = [clause for sentence in sentences(text) for clause in clauses(sentence)]
        last = max(
            (at for at, part in enumerate(parts) if self._act(part, situation) == "retract"),
            default=0,
        )
        meant = _MEANT.search(parts[last]) if parts else None
        behind = [*([meant[1]] if meant else []), *parts[last + 1 :]]
        return ", ".join(
            part
            for part in behind
            if not self.asks(part)
            and (self._phrases.is_of_the_field(part) or self._phrases.causes_in(part))
        )

    # --- sentence by sentence --------------------------------------------------------------

    def _act(self, sentence: str, situation: Situation) -> Act:
        """What a sentence most likely does, where that makes sense."""
        if situation.has_incident and self._phrases.is_ending(sentence):
            return "fixed"
        shares = dict(self._acts.read(sentence))
        for act in self._senseless(sentence, situation):
            shares[act] *= RARE
        if self._phrases.is_asked(sentence):
            for act in (*STATING, *REPLYING, *ENDING, "new_job", "retract"):
                shares[act] *= RARE
        total = sum(shares.values())
        for act, least in CONSEQUENTIAL.items():
            if shares[act] < least * total:
                shares[act] *= RARE
        total = sum(shares.values())
        best = max(shares, key=shares.__getitem__)
        if shares[best] < SURE * total:
            kinds = [*GROUPS, *(frozenset({act}) for act in shares if not _grouped(act))]
            group = max(kinds, key=lambda kind: _share(shares, kind))
            best = max(sorted(group), key=shares.__getitem__)
        return best

    def _senseless(self, sentence: str, situation: Situation) -> Iterable[Act]:
        """Acts that a sentence cannot be, by what it names and by what was said before."""
        if not (situation.open_checks or situation.outcome_asked or situation.model_asked):
            yield from REPLYING
        if not situation.has_incident:
            yield from OF_INCIDENT
        if len(sentence) > ORDER_CHARS // 2 and not self._phrases.incident_meant(sentence):
            yield "new_job"  # a longer one says of which
        phrases = self._phrases
        if not phrases.causes_in(sentence) and (
            phrases.is_still_trouble(sentence) or phrases.is_to_us(sentence)
        ):
            yield "not_it"  # “still hangs”, “you got me wrong”: of no cause
        if phrases.is_still_trouble(sentence):
            yield "fixed"
        if not self._phrases.languages_in(sentence):
            yield from LANGUAGES
        if not self._phrases.ordinal_in(sentence):
            yield "option"
        beside = _VALUE.sub("", sentence)
        is_told = beside != sentence and _WORD.search(beside) is not None
        if not self.settings(sentence) or (is_told and not self._phrases.is_asked(sentence)):
            yield "setting"  # “we set X=1” tells something
        if not (self._phrases.causes_in(sentence) or self._phrases.ordinal_in(sentence)):
            yield "cause"

    def _by_sentence(self, text: str, situation: Situation) -> Meaning:
        read = _Read()
        for sentence in sentences(text):
            act = "case" if ENTRY_ID.search(sentence) else self._act(sentence, situation)
            asks = act in ASKING or self._phrases.is_asked(sentence)
            tells = act in TELLING or (act == "why" and self._phrases.is_explanation(sentence))
            if asks and tells and self._is_told(sentence):
                act, asks = "tell", False
            if situation.has_incident and self._is_refused(sentence):
                read.refusals.append(sentence)
                if not asks:
                    read.remarks += filter(None, [self.observations.stated(sentence)])
                    continue
            says_more = act in REPLYING and self._tells(sentence)
            if (act in STATING or act == "retract" or says_more) and not asks:
                self._state(sentence, situation, read)
            elif act not in REPLYING or len(sentence) == len(text):
                self._request_of(sentence, act, asks, situation, read)
        meaning = self._weighed(text, read, situation)
        if read.is_complaint and not (read.remarks or read.requests or read.refusals):
            meaning = Meaning(is_complaint=True)
        return replace(meaning, language=read.language, refusals=tuple(read.refusals))

    def _is_told(self, sentence: str) -> bool:
        """Whether a sentence has the form of a statement and no word of a question."""
        is_asked = self._phrases.is_asked(sentence) or self._phrases.form_of(sentence)
        return not is_asked and is_assertion(sentence) and _WH.search(sentence) is None

    def _request_of(
        self, sentence: str, act: Act, asks: bool, situation: Situation, read: _Read
    ) -> None:
        """Gather what a sentence asks for, and what it states before it asks."""
        read.language = read.language or LANGUAGES.get(act)
        if act in ("new_job", "same_job"):
            read.job = read.job or ("new" if act == "new_job" else "same")
            return
        if asks and situation.has_incident:
            read.remarks += self.observations.stated_in_question(sentence)
        if act in STATING or act == "retract":
            act = "why"  # it has the form of a question
        request = self._as_request(act, sentence, situation)
        if asks and not request.form and self._is_mere_complaint(sentence):
            read.is_complaint = True
        elif request not in read.requests:
            read.requests.append(request)

    def _is_mere_complaint(self, sentence: str) -> bool:
        is_clear = max(self._acts.read(sentence).values()) >= SURE
        talks = self._phrases.is_to_us(sentence) and not self._phrases.languages_in(sentence)
        return talks and not is_clear and not self._tells(sentence)

    def _is_refused(self, sentence: str) -> bool:
        return self._phrases.is_refusal(sentence) or self._phrases.is_job_gone(sentence)

    def _state(self, sentence: str, situation: Situation, read: _Read) -> None:
        """Gather what a sentence states and what it guesses, or that it is talk about us alone.

        Without an incident all that is said is its description.
        """
        if not situation.has_incident:
            read.remarks.append(sentence)
            return
        stated = self.observations.stated(sentence)
        if stated:
            read.remarks.append(stated)
        if stated != sentence and self._phrases.is_guess(sentence):
            named, _ = self._phrases.causes_by_sense(sentence)
            causes = named or situation.hinted_causes[:1]
            if causes:
                guess = self._request("why", sentence)
                read.requests.append(replace(guess, causes=causes, is_guess=True))
                return
        read.is_complaint |= not stated and self._phrases.is_to_us(sentence)

    def _as_request(self, act: Act, sentence: str, situation: Situation) -> UserRequest:
        """What is to be answered of a sentence that does `act`."""
        request = self._request(_intent(act), sentence)
        if act not in ENDING:
            request = replace(request, form=self._phrases.form_of(sentence))
        if act in ENDING:
            return replace(request, settles="confirmed" if act == "fixed" else "denied")
        if request.settings and act in ("help", "cause", "happened", "why"):
            return replace(request, intent="setting")
        if act in LANGUAGES:
            named = self._phrases.languages_in(sentence)
            return replace(request, language=next(iter(named - {None}), None))
        if ENTRY_ID.search(sentence):
            return replace(request, intent="case")
        if request.ordinal and act in PLACING and (act != "happened" or request.ordinal > 1):
            return replace(request, intent="case" if situation.after_cases else "cause")
        if act in GENERAL and not (self._tells(sentence) or request.settings or request.platforms):
            return replace(request, intent="off_topic")
        if situation.has_incident and act in SUPPOSING and not _NAMES_KIND.search(sentence):
            causes = request.causes or (situation.hinted_causes if act == "why" else ())
            intent = "why" if causes else request.intent
            return replace(request, intent=intent, causes=causes, is_guess=bool(causes))
        return request

    def _weighed(self, text: str, read: _Read, situation: Situation) -> Meaning:
        """Weigh requests and remarks: a report without an incident is an incident."""
        requests, remark, job = read.requests, " ".join(read.remarks), read.job
        if len(requests) > 1 or remark:
            kept = [item for item in requests if item.intent not in BESIDE or item.form]
            requests = kept[-MAX_REQUESTS:] or ([] if remark else requests[:1])
        if not situation.has_incident and self._is_report(text, remark, situation):
            about = tuple(item for item in requests if item.intent in ("setting", "how_to"))
            return Meaning(remark=text, requests=about, job=job)
        is_lookup = any(item.intent in LOOKUPS for item in requests)
        if not situation.has_incident and situation.reports_hang and (remark or not is_lookup):
            others = tuple(
                item
                for item in requests
                if item.intent not in ABOUT_INCIDENT and item.intent not in {*NO_ANSWER, "courtesy"}
            )
            return Meaning(remark=text, requests=others, job=job)
        if requests:
            is_evidence = situation.has_incident and bool(remark)
            if not (is_evidence and (situation.has_evidence or self._tells(remark))):
                return Meaning(requests=tuple(requests), job=job)
            answerable = tuple(
                item for item in requests if item.intent not in {*NO_ANSWER, "courtesy"}
            )
            return Meaning(remark=remark, requests=answerable, job=job)
        if job and not remark:
            return Meaning(job=job)
        return replace(self._stated(remark or text, situation), job=job)

    def _tells(self, text: str) -> bool:
        return self._phrases.is_of_the_field(text) or bool(self._phrases.causes_in(text))

    def _is_report(self, text: str, remark: str, situation: Situation) -> bool:
        """Whether a message tells of an incident, whatever it asks besides."""
        if situation.reports_hang and len(text) >= REPORT_CHARS:
            return True
        told = situation.has_evidence or situation.reports_hang or len(remark) >= TOLD_CHARS
        return bool(remark) and told and self._tells(text)

    def _stated(self, text: str, situation: Situation) -> Meaning:
        """The meaning of a message that states something."""
        ours = self._tells(text)
        if situation.has_incident or situation.reports_hang or situation.has_evidence:
            return Meaning(remark=text)
        intent: Intent = "off_topic"
        if ours:
            intent = "search"
        elif len(default_tokenizer().tokens(text)) <= FEW_WORDS:
            intent = "unclear"
        return Meaning(requests=(self._request(intent, text),))

    # --- what a text names -----------------------------------------------------------------

    def _request(self, intent: Intent, text: str) -> UserRequest:
        named, denied = self._phrases.causes_by_sense(text)
        return UserRequest(
            intent=intent,
            text=text,
            causes=named or denied,
            is_denial=bool(denied) and not named,
            platforms=self._phrases.platforms_in(text),
            ordinal=self._phrases.ordinal_in(text),
            settings=self.settings(text),
        )

    def settings(self, text: str) -> tuple[str, ...]:
        """Settings the text names: known ones in any case, others in capitals."""
        names = []
        for name in _SETTING.findall(text):
            identifier = name if name in self._ids else self._settings.get(name.lower(), "")
            if identifier or _UPPER.fullmatch(name):
                names.append(identifier or name)
        return tuple(dict.fromkeys(names))


def _words_of(check: Check) -> list[str]:
    """What a check says of itself, in both languages, with its command."""
    texts = [check.tells, *(outcome.observation for outcome in check.outcomes)]
    return [check.command, *(one for text in texts for one in (text.zh, text.en))]


def _share(shares: Mapping[Act, float], acts: Iterable[Act]) -> float:
    return sum(shares[act] for act in acts)


def _grouped(act: Act) -> bool:
    return any(act in group for group in GROUPS)


def _intent(act: Act) -> Intent:
    """The intent of a request that does `act`."""
    return INTENTS.get(act) or act  # type: ignore[return-value]


def _yes_or_no(text: str, reply: Act, check: Check) -> Meaning:
    """The answer to a check by a word; “no” to more than two outcomes denies the first."""
    is_second = reply == "no" and len(check.outcomes) == 2
    result = CheckResult(
        check=check.id,
        outcome=2 if is_second else 1,
        quote=text,
        is_denied=reply == "no" and not is_second,
    )
    return Meaning(check_result=result)


@lru_cache(1024)
def _tokens(text: str) -> frozenset[str]:
    return frozenset(default_tokenizer().tokens(text))


def message_language(text: str, current: Language | None) -> Language | None:
    """The language of a person's words; the current one where they are too few to tell."""
    if HAN.search(text):
        return "zh"
    latin = len(LATIN.findall(_SETTING.sub(" ", text)))
    if current == "zh" and latin < SWITCH_WORDS:
        return current
    return "en" if latin else current
