"""From a person's words to what they mean, without a language model.

Patterns of data/chat.yaml decide where they say something. Where they do not, the answer to the
open question, cues of a hang, and words of the field do; the rest is not ours. What asks is never
evidence, whatever it names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from kb.chat.phrases import Phrases, Saying
from kb.chat.sentences import clauses, sentences, states
from kb.chat.talk import Heard
from kb.chat.types import Answered, Intent
from kb.knowledge import Knowledge
from kb.text import default_tokenizer
from kb.types import Check, Language

ORDER_CHARS = 80  # an order to an assistant is short; a longer line tells more than that
ORDERING: frozenset[Intent] = frozenset({"language", "case", "search", "similar", "help"})
REPORT_CHARS = 120  # a question is shorter
ALIKE = 0.5  # share of the person's words an option must have to be meant
ALIKE_LEAD = 0.2  # by which it must lead before the next option
FEW_WORDS = 2  # a message of so few unknown words is unclear rather than off topic
_DIGIT = re.compile(r"\d")
_SETTING = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[._][A-Za-z0-9]+)+")
_UPPER = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_HAN = re.compile(r"[\u4e00-\u9fff]")
_LATIN = re.compile(r"[A-Za-z][a-z']+")
# Words of taking back itself; they do not tell which remark is meant.
PLAIN = (
    "forget ignore disregard drop delete remove take back what i said told you wrote about my last"
    " previous remark message statement that it was wrong sorry never mind please the thing is not"
    " of on in we 忘掉 忽略 撤回 收回 刚才 刚刚 之前 前面 说的 说错了 那句 那条 这条 关于 我 的 了"
    " 不算 作废 不要了 是 不是"
)
NO_ANSWER: frozenset[Intent] = frozenset({"unclear", "off_topic"})
GO_ON = "go-on"  # the saying that asks for more of the same
SUPPOSING = ("why-not", "what-about")  # sayings that ask whether it is some cause
TAG_WORDS = 3  # of “right?”, “is it not?”, “对不对” behind what is asked
SWITCH_WORDS = 3  # English words after which a Chinese conversation goes on in English
# Intents about an incident: without one, a message that reports a hang is the incident itself.
ABOUT_INCIDENT: frozenset[Intent] = frozenset(
    {"why", "sure", "fix", "next", "restart", "happened", "similar"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What the understanding depends on beside the words.

    Attributes:
        has_incident: whether there is one to speak of.
        check: the one the open question asks about.
        just_asked: whether the last reply ended with that question.
        reports: whether the words report a hang or failed communication.
        tells: whether the words hold evidence (cues, lines, facts).
        lists: whether the last reply listed cases.
        signs: the causes the words hold signs of, whether they ask or tell.
    """

    has_incident: bool
    check: Check | None = None
    just_asked: bool = False
    reports: bool = False
    tells: bool = False
    lists: bool = False
    signs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Understood:
    """What a message means.

    Attributes:
        told: sentences that tell something about the incident, joined.
        heard: what is asked, in the order to be answered; may be empty when something is told.
        answered: the answer to the open question.
        unsure: whether the person cannot answer it.
        speaks: the language asked for.
        parts: ``new`` or ``same``: what the person says of the logs pasted.
        retracts: the sentence that takes an earlier remark back.
    """

    told: str = ""
    heard: tuple[Heard, ...] = ()
    answered: Answered | None = None
    unsure: bool = False
    speaks: Language | None = None
    parts: str = ""
    retracts: str = ""


class Understanding:
    """Understands messages; made once."""

    def __init__(self, phrases: Phrases, knowledge: Knowledge) -> None:
        """Read with `phrases`; settings are those of `knowledge`."""
        self._phrases = phrases
        self._settings = _setting_names(knowledge)
        self._ids = frozenset(knowledge.advice_by_id)

    def asks(self, line: str, *, has_incident: bool) -> bool:
        """Whether a line with an error in it is said to us: a pattern reads it, or it asks.

        Without an incident a question about an error is the incident itself.
        """
        return bool(self._sayings(line)) or (has_incident and self._phrases.is_question(line))

    def is_order(self, line: str) -> bool:
        """Whether a line in a log orders the assistant about rather than tells what happened.

        “Why does it hang” also tells that it hangs, and “disabling it helps” is evidence: only
        short lines of intents that tell nothing count, beside plain orders of any length.
        """
        if self._phrases.is_order(line):
            return True
        saying = self._saying(line) if len(line) <= ORDER_CHARS else None
        return saying is not None and (
            bool(saying.parts) or saying.settles == "denied" or saying.intent in ORDERING
        )

    def understand(self, own: str, situation: Situation) -> Understood:
        """What the person's own words mean in this situation."""
        whole = self._sayings(own)
        reply = next((item for item in whole if item.replies), None)
        if reply is not None and situation.check is not None:
            return self._replied(own, reply, situation.check)
        placed = None if whole else self._placed(own, situation)
        if placed is not None:
            return placed
        retracts = next((item for item in sentences(own) if self._retracts(item)), "")
        if retracts and situation.has_incident:
            return Understood(retracts=retracts, told=self._put_right(own))
        asked: dict[Intent, Heard] = {}
        told: list[str] = []
        speaks: Language | None = None
        parts = ""
        for sentence in sentences(own):
            saying = self._saying(sentence)
            if saying is None or saying.replies:
                if situation.has_incident and self._phrases.is_question(sentence):
                    told += self._declared(sentence)
                    inquiry = self._inquiry(sentence, situation)
                    asked.setdefault(inquiry.intent, inquiry)
                else:
                    told.append(sentence)
                continue
            speaks = speaks or saying.speaks
            parts = parts or saying.parts
            if saying.id in SUPPOSING and situation.has_incident:
                told += self._declared(sentence)
            if not saying.parts:
                intent = self._meant(saying, situation)
                asked.setdefault(intent, self._heard(intent, sentence, saying))
        return self._sorted(own, asked, told, speaks, parts, situation)

    def suppositions(self, own: str) -> tuple[str, ...]:
        """Sentences that ask whether it is some cause: in a report they would count as its signs.

        “Why does it hang when saving?” is none: it tells that it hangs when saving.
        """
        return tuple(
            sentence
            for sentence in sentences(own)
            if self._phrases.is_question(sentence)
            and self._phrases.causes(sentence)
            and all(item.id in SUPPOSING for item in self._sayings(sentence)[:1])
        )

    def remark(self, told: str) -> Heard:
        """Something told, with the causes it names and whether it denies them."""
        return replace(self._heard("tell", told), denies=self._phrases.is_denial(told))

    def words(self, text: str) -> frozenset[str]:
        """The words by which a remark is found again: its tokens and the causes it names."""
        return _tokens(text).difference(_tokens(PLAIN)) | frozenset(self._phrases.causes(text))

    def again(self, asked: str, intent: Intent) -> Heard:
        """What was heard when the reply of that intent was given."""
        said = (item for item in sentences(asked) if self._is_of(item, intent))
        return self._heard(intent, next(said, asked))

    def _is_of(self, sentence: str, intent: Intent) -> bool:
        saying = self._saying(sentence)
        return saying is not None and saying.intent == intent

    def _placed(self, own: str, situation: Situation) -> Understood | None:
        """A place in the list or the question before, or words like those of its options."""
        number, check = self._phrases.choice(own), situation.check
        if number and situation.lists:
            return Understood(heard=(self._heard("case", own),))
        # A bare figure is what a button of an older question says; words mean what was just asked.
        meant = situation.just_asked or _DIGIT.search(own) is not None
        if check is not None and not (number and not meant):
            outcome = number or self._outcome(own, check)
            if 1 <= outcome <= len(check.outcomes):
                return Understood(answered=Answered(check=check.id, outcome=outcome, quote=own))
        if number and situation.has_incident:
            return Understood(heard=(self._heard("cause", own),))
        return None

    def _meant(self, saying: Saying, situation: Situation) -> Intent:
        """The intent of a saying; “and then?” goes on with what the last reply was about."""
        if saying.retracts:
            return "unclear"
        return "similar" if saying.id == GO_ON and situation.lists else saying.intent

    def _inquiry(self, sentence: str, situation: Situation) -> Heard:
        """What a question asks that no pattern reads: of a cause, a place, by its weak words."""
        heard = self._heard("why", sentence)
        hint = self._phrases.hint(sentence)
        if hint == "case" or (heard.causes and not heard.places):
            return replace(heard, intent="case" if hint == "case" else "why")
        if heard.ordinal:
            return replace(heard, intent="cause")
        if hint:
            return replace(heard, intent=hint)
        if heard.places:
            return replace(heard, intent="similar")
        if situation.signs:
            return replace(heard, causes=situation.signs)
        if self._phrases.of_the_field(sentence):
            return replace(heard, intent="unclear", asks=True)
        words = len(_LATIN.findall(sentence)) + len(_HAN.findall(sentence))
        return replace(heard, intent="off_topic" if words > 1 else "unclear")

    def _declared(self, sentence: str) -> list[str]:
        """The clauses of a question that state something before it asks: “it is IB, is that it?”.

        None where only the last word asks (“rank 3 crashed, right?”): then all of it is asked.
        """
        *leading, last = clauses(sentence) or [sentence]
        if not leading or len(_LATIN.findall(last)) + len(_HAN.findall(last)) <= TAG_WORDS:
            return []
        return [
            part
            for part in leading
            if states(part)
            and not self._phrases.is_question(part)
            and self._phrases.of_the_field(part)
        ]

    def _retracts(self, sentence: str) -> bool:
        saying = self._saying(sentence)
        return saying is not None and saying.retracts

    def _put_right(self, own: str) -> str:
        """What is told in place of a remark taken back: “I was wrong, it is Ethernet”.

        It stands behind; what stands before speaks of the remark.
        """
        parts = [clause for sentence in sentences(own) for clause in clauses(sentence)]
        last = max(
            (at for at, part in enumerate(parts) if self._retracts(part)), default=len(parts)
        )
        return ", ".join(
            part
            for part in parts[last + 1 :]
            if not self._phrases.is_question(part)
            and (self._phrases.of_the_field(part) or self._phrases.causes(part))
        )

    def _sorted(
        self,
        own: str,
        asked: Mapping[Intent, Heard],
        told: Sequence[str],
        speaks: Language | None,
        parts: str,
        situation: Situation,
    ) -> Understood:
        """Weigh what was asked and told: a report without an incident is an incident."""
        heard = list(asked.values())
        if len(heard) > 1:
            heard = [item for item in heard if item.intent != "courtesy"] or heard[:1]
        said = " ".join(told)
        if not situation.has_incident and self._is_report(own):
            about = tuple(item for item in heard if item.intent == "setting")
            if situation.reports:
                return Understood(told=own, heard=about, speaks=speaks, parts=parts)
            return Understood(heard=about or (self._heard("search", own),), speaks=speaks)
        if not situation.has_incident and situation.reports and not _is_lookup(heard):
            kept = [item for item in heard if item.intent not in ABOUT_INCIDENT]
            return Understood(told=own, heard=tuple(kept), speaks=speaks, parts=parts)
        if heard:
            useful = situation.has_incident and self._worth_telling(said, situation)
            if useful:
                heard = [item for item in heard if item.intent not in NO_ANSWER]
            return Understood(
                told=said if useful else "", heard=tuple(heard), speaks=speaks, parts=parts
            )
        if parts and not said:
            return Understood(parts=parts, speaks=speaks)
        return self._unasked(said or own, situation, parts)

    def _is_report(self, own: str) -> bool:
        """Whether a message is so long that it tells of something, whatever it asks besides."""
        return len(own) >= REPORT_CHARS and self._phrases.of_the_field(own)

    def _worth_telling(self, said: str, situation: Situation) -> bool:
        return bool(said) and situation.tells and self._phrases.of_the_field(said)

    def _unasked(self, own: str, situation: Situation, parts: str) -> Understood:
        """No pattern says what is meant."""
        ours = self._phrases.of_the_field(own) or bool(self._phrases.causes(own))
        number, hint = self._phrases.ordinal(own), self._phrases.hint(own)
        if situation.has_incident and not situation.tells and (number or (hint and not ours)):
            intent: Intent = "cause" if number else hint or "unclear"
            return Understood(heard=(self._heard(intent, own),), parts=parts)
        if situation.has_incident and (situation.tells or ours):
            return Understood(told=own, parts=parts)
        if situation.reports:
            return Understood(told=own, parts=parts)
        intent = "off_topic"
        if self._phrases.is_question(own) and self._phrases.causes(own):
            intent = "why"
        elif self._phrases.is_denial(own) and self._phrases.causes(own):
            intent = "unclear"  # of what? a search would list what it is not
        elif situation.tells or ours:
            intent = "search"
        elif len(default_tokenizer().tokens(own)) <= FEW_WORDS:
            intent = "unclear"
        return Understood(heard=(self._heard(intent, own),), parts=parts)

    def _replied(self, own: str, saying: Saying, check: Check) -> Understood:
        if saying.replies == "unsure":
            return Understood(unsure=True)
        if saying.replies == "yes":
            return Understood(answered=Answered(check=check.id, outcome=1, quote=own))
        if len(check.outcomes) == 2:
            return Understood(answered=Answered(check=check.id, outcome=2, quote=own))
        return Understood(answered=Answered(check=check.id, outcome=1, quote=own, denied=True))

    def _outcome(self, own: str, check: Check) -> int:
        """The outcome meant by words like those of an option; 0 for none."""
        if self._phrases.is_question(own):
            return 0
        said = set(default_tokenizer().tokens(own))
        if not said:
            return 0
        shares = []
        for outcome in check.outcomes:
            texts = (outcome.observation.zh, outcome.observation.en)
            shares.append(max(len(said & _tokens(text)) / len(said) for text in texts))
        order = sorted(range(len(shares)), key=lambda at: (-shares[at], at))
        best = shares[order[0]]
        second = shares[order[1]] if len(order) > 1 else 0.0
        return order[0] + 1 if best >= ALIKE and best - second >= ALIKE_LEAD else 0

    def _sayings(self, text: str) -> list[Saying]:
        return [item for item in self._phrases.sayings(text) if self._has(item, text)]

    def _saying(self, text: str) -> Saying | None:
        return next(iter(self._sayings(text)), None)

    def _has(self, saying: Saying, text: str) -> bool:
        if saying.needs == "setting":
            return bool(self.settings(text))
        if saying.needs == "topic":
            return bool(self._phrases.causes(text))
        if saying.needs == "ordinal":
            return bool(self._phrases.ordinal(text))
        return True

    def _heard(self, intent: Intent, text: str, saying: Saying | None = None) -> Heard:
        return Heard(
            intent=intent,
            own=text,
            query=text,
            causes=self._phrases.causes(text),
            places=self._phrases.places(text),
            ordinal=self._phrases.ordinal(text),
            settings=self.settings(text),
            settles=saying.settles if saying else "",
            speaks=saying.speaks if saying else None,
        )

    def settings(self, text: str) -> tuple[str, ...]:
        """Settings the text names: known ones in any case, others in capitals."""
        found = []
        for name in _SETTING.findall(text):
            known = name if name in self._ids else self._settings.get(name.lower(), "")
            if known or _UPPER.fullmatch(name):
                found.append(known or name)
        return tuple(dict.fromkeys(found))


def _is_lookup(heard: Sequence[Heard]) -> bool:
    return any(item.intent in ("search", "case", "setting", "cause", "outcome") for item in heard)


def _setting_names(knowledge: Knowledge) -> dict[str, str]:
    """Lower-case names, and the last parts of dotted ones, to the id of the advice."""
    names = {item.id.rpartition(".")[2].lower(): item.id for item in knowledge.advice}
    return names | {item.id.lower(): item.id for item in knowledge.advice}


@lru_cache(1024)
def _tokens(text: str) -> frozenset[str]:
    return frozenset(default_tokenizer().tokens(text))


def spoken_language(own: str, current: Language | None) -> Language | None:
    """The language of a person's words; the current one where they are too few to tell."""
    if _HAN.search(own):
        return "zh"
    latin = len(_LATIN.findall(_SETTING.sub(" ", own)))
    if current == "zh" and latin < SWITCH_WORDS:
        return current
    return "en" if latin else current
