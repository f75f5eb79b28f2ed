"""Answers to what was asked last: a place in the list, yes or no, an outcome of a check."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from kb.chat.check_answers import CheckAnswerReader
from kb.chat.meaning import Meaning, Situation
from kb.chat.sentence_acts import REPLYING, STATING, SentenceReader, share_of
from kb.chat.sentences import clauses, sentences
from kb.chat.types import Act, CheckResult
from kb.types.knowledge import Check

REPORT_CHARS = 120  # a question is shorter
TAKEN = 0.75  # probability from which a message is taken as an outcome of the check just asked
TAKEN_LATER = 0.92  # of a check asked before
LIKELY = 0.3  # of the option named before the words, of a check not asked just now
REPLY_SHARE = 0.5  # of yes, no and “cannot tell” together, from which a message is one of them
ANSWERING: frozenset[Act] = frozenset(
    {*STATING, *REPLYING, "not_it"}
)  # what an answer to a check looks like
# A place in the list asked, before more is said: “1, but …”.
_OPTION = re.compile(r"(?m)^[^\S\n]*[(（#]?([1-4])[^\S\n]*[)）.,，。:：;；、-]\s{0,20}(?=[^\s0-9])")
_NUMBERED = re.compile(r"\s*([12])\s*[,，.。:：;；-]")


class ReplyReader:
    """Reads a message as the answer to an open question; made once."""

    def __init__(self, sentence_reader: SentenceReader, answers: CheckAnswerReader) -> None:
        """Read with what sentences do, and the fitted model of outcomes `answers`."""
        self._sentences = sentence_reader
        self._phrases = sentence_reader.phrases
        self._acts = sentence_reader.acts
        self._answers = answers

    def read(self, text: str, situation: Situation) -> Meaning | None:
        """The answer that the message is; None where it is none."""
        return (
            self._choice(text, situation)
            or self._reply(text, situation)
            or self._outcome_seen(text, situation)
        )

    def _choice(self, text: str, situation: Situation) -> Meaning | None:
        """A place in the list or the question before: “2”, “the second one”, an option's words."""
        number = self._phrases.choice_in(text)
        for check in situation.open_checks if situation.just_asked else ():
            for place, outcome in enumerate(check.outcomes, start=1):
                shown = (outcome.observation.zh.casefold(), outcome.observation.en.casefold())
                if text.strip().casefold() in shown:
                    number = place
        if not number:
            number = self._numbered(text, situation)
        if not number:
            return None
        request = self._sentences.request("cause", text)
        if situation.after_cases:
            return Meaning(requests=(replace(request, intent="case"),))
        if situation.outcome_asked and number <= 2:
            return Meaning(settled="yes" if number == 1 else "no")
        for check in situation.open_checks[:1]:
            is_meant = situation.just_asked or _OPTION.match(text)
            if is_meant and number <= len(check.outcomes):
                result = CheckResult(check=check.id, outcome=number, quote=text)
                return Meaning(check_result=result)
        return (
            Meaning(requests=(self._sentences.in_list(request, situation),))
            if situation.has_incident
            else None
        )

    def _numbered(self, text: str, situation: Situation) -> int:
        """The option before the words that go on: “2, both hang”; 0 where a list begins."""
        number = _OPTION.match(text)
        if number is None or _OPTION.search(text, number.end()):
            return 0
        place = int(number[1])
        for check in situation.open_checks[:1]:
            read = self._answers.read(text, check)
            if situation.just_asked or (place < len(read) and read[place] >= LIKELY):
                return place
        return 0

    def _reply(self, text: str, situation: Situation) -> Meaning | None:
        """Yes, no or “cannot tell” to what was asked."""
        if situation.outcome_asked:
            return self._settled(text)
        asked = situation.model_asked or situation.just_asked
        if not asked or len(text) > REPORT_CHARS or self._phrases.is_asked(text):
            return None
        shares = self._acts.read(text)
        if share_of(shares, REPLYING) < REPLY_SHARE:
            return None
        reply = max(REPLYING, key=lambda act: (shares[act], act))
        if reply != "unsure" and self._sentences.tells(text):
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
        if not situation.open_checks or len(text) > REPORT_CHARS or self._sentences.asks(text):
            return None
        if share_of(self._acts.read(text), ANSWERING) < REPLY_SHARE:
            return None
        if self._phrases.is_explanation(text):
            return None  # it says more than what was seen
        is_plain = situation.just_asked and len(sentences(text)) == 1
        least = TAKEN if is_plain else TAKEN_LATER
        result = self.answer_to(text, situation.open_checks[:1], least=least)
        return Meaning(check_result=result) if result else None

    def answer_to(
        self, text: str, checks: Sequence[Check], *, least: float = TAKEN_LATER
    ) -> CheckResult | None:
        """The outcome of the first of `checks` that `text` reports with that probability."""
        named = set(self._phrases.causes_in(text))
        for check in checks:
            if named.difference(*map(self._phrases.causes_in, words_of(check))):
                continue  # it speaks of something else: “it's InfiniBand, two nodes are fine”
            read = self._answers.read(text, check)
            best = max(range(len(read)), key=read.__getitem__)
            if best and read[best] >= least:
                return CheckResult(check=check.id, outcome=best, quote=text)
        return None


def words_of(check: Check) -> list[str]:
    """What a check says of itself, in both languages, with its command."""
    texts = [check.tells, *(outcome.observation for outcome in check.outcomes)]
    return [check.command, *(one for text in texts for one in (text.zh, text.en))]


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
