"""From a person's words to what they mean, without a language model.

A fitted model (`kb.chat.acts`) reads what each sentence does, another (`kb.chat.check_answers`)
which outcome of an open question it reports; data/chat.yaml knows what they name. A question is
never evidence, whatever it names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from kb.chat.meaning import Job, Meaning, Situation, UserRequest
from kb.chat.observations import ASKING
from kb.chat.phrases import ENTRY_ID
from kb.chat.replies import REPORT_CHARS, TAKEN_LATER, ReplyReader
from kb.chat.sentence_acts import (
    LANGUAGES,
    ORDER_CHARS,
    REPLYING,
    STATING,
    SURE,
    SentenceReader,
    intent_of,
    share_of,
)
from kb.chat.sentences import clauses, sentences
from kb.chat.types import Act, Intent
from kb.text.tokenizer import default_tokenizer
from kb.types.vocabulary import Language

TOLD_CHARS = 30  # of what is stated in a message that reports an incident
MAX_REQUESTS = 2  # answered of one message, the last ones
FEW_WORDS = 2  # a message of so few unknown words is unclear rather than off topic
CERTAIN = 0.75  # of an act that is read against what stands in a log
ORDERED = 0.6  # of an order that stands in a log
RETRACTED = 0.2  # of taking back, beside words that do
NO_ANSWER: frozenset[Intent] = frozenset({"unclear", "off_topic"})
# Intents about an incident: without one, a message that reports a hang is the incident itself.
ABOUT_INCIDENT: frozenset[Intent] = frozenset(
    {"why", "sure", "fix", "next", "restart", "happened", "similar"}
)
LOOKUPS: frozenset[Intent] = frozenset({"search", "case", "setting", "cause", "outcome", "how_to"})
# Questions that a statement is easily taken for.
TELLING: frozenset[Act] = frozenset({"happened", "recap", "sure", "help"})
BESIDE: frozenset[Intent] = frozenset({"courtesy", "help", "unclear", "off_topic", "impatient"})
# What orders the assistant about and tells nothing of an incident.
ORDERING: frozenset[Act] = frozenset(
    {"lang_zh", "lang_en", "case", "search", "similar", "help", "new_job", "not_it", "retract"}
)


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

    def __init__(self, sentence_reader: SentenceReader, replies: ReplyReader) -> None:
        """Read messages by their sentences, and as `replies` to what was asked."""
        self.sentence_reader = sentence_reader
        self._replies = replies
        self._acts = sentence_reader.acts
        self.phrases = sentence_reader.phrases
        self.observations = sentence_reader.observations
        self.asks = sentence_reader.asks
        self.tells = sentence_reader.tells
        self.answer_to = replies.answer_to

    def read(self, text: str, situation: Situation) -> Meaning:
        """What the person's own words mean in this situation."""
        replied = self._replies.read(text, situation)
        if replied is not None:
            return replied
        text = self._without_scratched(text)
        retraction = next(
            (
                item
                for item in sentences(text)
                if self.phrases.is_disowned(item)
                or (
                    self.phrases.is_taken_back(item)
                    and not self.phrases.is_asked(item)
                    and self._acts.read(item)["retract"] > RETRACTED
                )
            ),
            "",
        )
        if retraction and situation.has_incident:
            rest = self._by_sentence(text.replace(retraction, " "), situation)
            asked = tuple(item for item in rest.requests if item.intent not in BESIDE)
            correction = self._correction(text, situation)
            if self.phrases.is_disowned(retraction):
                correction = rest.remark
            return Meaning(retraction=retraction, remark=correction, requests=asked)
        meaning = self._by_sentence(text, situation)
        if meaning.remark and meaning.requests and situation.just_asked:
            return self._with_outcome(meaning, situation)
        return meaning

    def _with_outcome(self, meaning: Meaning, situation: Situation) -> Meaning:
        """The meaning with the outcome of the check just asked that its remark reports, if any."""
        check = situation.open_checks[:1]
        for sentence in sentences(meaning.remark):
            result = self.answer_to(sentence, check, least=TAKEN_LATER)
            if result is not None:
                return replace(meaning, check_result=result)
        return meaning

    def _without_scratched(self, text: str) -> str:
        """The text without what it takes back itself: “we save over NFS. No, scratch that”."""
        said = [part for sentence in sentences(text) for part in sentence.split("... ")]
        for place, sentence in enumerate(said):
            if place and self.phrases.is_scratched(sentence):
                said[place - 1] = ""
                left = (part for part in clauses(sentence) if not self.phrases.is_scratched(part))
                said[place] = ", ".join(left)
        return " ".join(filter(None, said)) if "" in said else text

    def is_request(self, line: str, *, has_incident: bool) -> bool:
        """Whether a line with an error in it is said to us rather than printed by a program.

        Without an incident a question about an error is the incident itself.
        """
        shares = self._acts.read(line)
        asks = share_of(shares, ASKING) >= CERTAIN or self.asks(line)
        return (has_incident and asks) or max(shares[act] for act in ORDERING) >= CERTAIN

    def is_order(self, line: str) -> bool:
        """Whether a line in a log orders the assistant about rather than tells what happened."""
        if self.phrases.is_order(line):
            return True
        if len(line) > ORDER_CHARS:
            return False
        shares = self._acts.read(line)
        return max(shares[act] for act in ORDERING) >= ORDERED

    def remark(self, text: str, *, message: str = "") -> UserRequest:
        """A remark to be answered, with the causes it names and whether it denies them.

        Whether it tells of what mended it is read of the whole message.
        """
        request = self.sentence_reader.request("tell", text)
        reader, message = self.sentence_reader, message or text
        has_helped = reader.is_solved(message)
        return replace(
            request, has_helped=has_helped, is_trying=not has_helped and reader.is_trying(message)
        )

    def incident_meant(self, text: str) -> tuple[str, str, Literal["", "other", "earlier"]]:
        """The text before the sentence that turns to another incident, from it on, and to which."""
        told = sentences(text)
        for place, sentence in enumerate(told):
            meant = self.phrases.incident_meant(sentence)
            if meant:
                return " ".join(told[:place]), " ".join(told[place:]), meant
        return "", text, ""

    def tells_trouble(self, text: str) -> bool:
        """Whether a text speaks of trouble of this field that has not ended."""
        phrases = self.phrases
        names_cause = bool(phrases.causes_in(text)) and not phrases.is_guess(text)
        is_trouble = phrases.is_still_trouble(text) or names_cause
        is_ours = self.sentence_reader.tells(text)
        return is_trouble and is_ours and not self.sentence_reader.is_solved(text)

    def ask_of(self, sentence: str) -> Act:
        """The question that a sentence most likely asks, if it asks one."""
        shares = self._acts.read(sentence)
        return max(sorted(ASKING), key=lambda act: shares[act])

    def is_conclusion(self, sentence: str) -> bool:
        """Whether a sentence says without a doubt which cause it is."""
        is_unsure = self.phrases.is_guess(sentence) or self.asks(sentence)
        return not is_unsure and self._acts.read(sentence)["suspect"] >= SURE

    def is_ruling_out(self, sentence: str) -> bool:
        """Whether a short sentence says of what it names that it is not why."""
        return len(sentence) <= REPORT_CHARS and self.phrases.is_ruling_out(sentence)

    def repeated(self, text: str, intent: Intent) -> UserRequest:
        """The request in `text` that a reply of that intent answered."""
        situation = Situation(has_incident=True)
        for sentence in sentences(text):
            if intent_of(self.sentence_reader.act(sentence, situation)) == intent:
                return self.sentence_reader.request(intent, sentence)
        return self.sentence_reader.request(intent, text)

    def key_words(self, text: str) -> frozenset[str]:
        """The words by which a remark is found again: its tokens and the causes it names."""
        tokens = default_tokenizer().tokens(text)
        phrases = self.phrases
        words = frozenset(
            one for one in tokens if not (phrases.is_retracting(one) or phrases.is_filler(one))
        )
        return words | frozenset(self.phrases.causes_in(text))

    def _correction(self, text: str, situation: Situation) -> str:
        """What is stated in place of a remark taken back: “I was wrong, it is Ethernet”.

        It stands behind; what stands before speaks of the remark.
        """
        parts = [clause for sentence in sentences(text) for clause in clauses(sentence)]
        last = max(
            (
                at
                for at, part in enumerate(parts)
                if self.sentence_reader.act(part, situation) == "retract"
            ),
            default=0,
        )
        meant = self.phrases.meant_instead(parts[last]) if parts else ""
        behind = [meant, *parts[last + 1 :]]
        return ", ".join(
            part
            for part in behind
            if not self.asks(part)
            and (self.phrases.is_of_the_field(part) or self.phrases.causes_in(part))
        )

    # --- sentence by sentence --------------------------------------------------------------

    def _by_sentence(self, text: str, situation: Situation) -> Meaning:
        read = _Read()
        is_unsolved = self.sentence_reader.is_unsolved(text)
        for sentence in self._joined(sentences(text)):
            act = (
                "case"
                if ENTRY_ID.search(sentence)
                else self.sentence_reader.act(sentence, situation)
            )
            if act == "fixed" and is_unsolved:
                act = "tell"
            asks = act in ASKING or self.phrases.is_asked(sentence)
            tells = act in TELLING or (act == "why" and self.phrases.is_explanation(sentence))
            if asks and tells and self._is_told(sentence):
                act, asks = "tell", False
            if situation.has_incident and self._is_refused(sentence):
                read.refusals.append(sentence)
                if not asks:
                    read.remarks += filter(None, [self.observations.stated(sentence)])
                    continue
            says_more = act in REPLYING and self.sentence_reader.tells(sentence)
            if (act in STATING or act == "retract" or says_more) and not asks:
                self._state(sentence, situation, read)
            elif act not in REPLYING or len(sentence) == len(text):
                context = text[: text.find(sentence)].strip()
                self._request_of(sentence, act, asks, situation, read, context)
        meaning = self._weighed(text, read, situation)
        if read.is_complaint and not (read.remarks or read.requests or read.refusals):
            meaning = Meaning(is_complaint=True)
        if situation.has_incident and not meaning.remark and self._tells_progress(text, meaning):
            meaning = replace(meaning, remark=text, requests=(), is_complaint=False)
        return replace(
            meaning,
            language=read.language,
            refusals=tuple(read.refusals),
        )

    def _tells_progress(self, text: str, meaning: Meaning) -> bool:
        """Whether a message tells that a change was made, or that it works, and asks nothing.

        Where its acts are others than that it has to be clear.
        """
        reader, intents = self.sentence_reader, {one.intent for one in meaning.requests}
        if self.phrases.is_asked(text) or "outcome" in intents or meaning.language or meaning.job:
            return False
        is_told = reader.is_solved(text) or reader.is_trying(text)
        return is_told and (intents <= BESIDE or reader.is_clear_progress(text))

    def _joined(self, parts: Sequence[str]) -> list[str]:
        """The sentences, a question that only goes on with “or …?” joined to the one before."""
        joined: list[str] = []
        for sentence in parts:
            if joined and self.phrases.is_alternative(sentence) and self.asks(joined[-1]):
                joined[-1] = f"{joined[-1]} {sentence}"
            else:
                joined.append(sentence)
        return joined

    def _is_told(self, sentence: str) -> bool:
        """Whether a sentence has the form of a statement and no word of a question."""
        is_asked = self.phrases.is_asked(sentence) or self.phrases.form_of(sentence)
        return (
            not is_asked
            and self.phrases.is_assertion(sentence)
            and not self.phrases.has_question_word(sentence)
        )

    def _request_of(
        self, sentence: str, act: Act, asks: bool, situation: Situation, read: _Read, context: str
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
        request = self.sentence_reader.as_request(act, sentence, situation)
        request = replace(request, context=context)
        if asks and not request.form and self._is_mere_complaint(sentence):
            read.is_complaint = True
        elif request not in read.requests:
            read.requests.append(request)

    def _is_mere_complaint(self, sentence: str) -> bool:
        is_clear = max(self._acts.read(sentence).values()) >= SURE
        talks = self.phrases.is_to_us(sentence) and not self.phrases.languages_in(sentence)
        return talks and not is_clear and not self.sentence_reader.tells(sentence)

    def _is_refused(self, sentence: str) -> bool:
        return self.phrases.is_refusal(sentence) or self.phrases.is_job_gone(sentence)

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
        is_unstated = self.phrases.is_unstated(sentence)
        if stated != sentence and (self.phrases.is_guess(sentence) or is_unstated):
            named, _ = self.phrases.causes_by_sense(sentence)
            causes = named or situation.hinted_causes[:1]
            if causes:
                guess = self.sentence_reader.request("why", sentence)
                read.requests.append(replace(guess, causes=causes, is_guess=True))
                return
        is_talk = is_unstated or self.phrases.is_to_us(sentence)
        read.is_complaint |= not stated and is_talk

    def _weighed(self, text: str, read: _Read, situation: Situation) -> Meaning:
        """Weigh requests and remarks: a report without an incident is an incident."""
        requests, remark, job = read.requests, " ".join(read.remarks), read.job
        if len(requests) > 1 or remark:
            kept = [item for item in requests if item.intent not in BESIDE or self._asks(item)]
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
            if not (is_evidence and (situation.has_evidence or self.sentence_reader.tells(remark))):
                return Meaning(requests=tuple(requests), job=job)
            return Meaning(remark=remark, requests=tuple(requests), job=job)
        if job and not remark:
            return Meaning(job=job)
        return replace(self._stated(remark or text, situation), job=job)

    def _asks(self, request: UserRequest) -> bool:
        """Whether a request that its intent tells nothing of has the form of a question."""
        return bool(request.form) or (request.intent in NO_ANSWER and self.asks(request.text))

    def _is_report(self, text: str, remark: str, situation: Situation) -> bool:
        """Whether a message tells of an incident, whatever it asks besides."""
        if situation.reports_hang and len(text) >= REPORT_CHARS:
            return True
        told = situation.has_evidence or situation.reports_hang or len(remark) >= TOLD_CHARS
        return bool(remark) and told and self.sentence_reader.tells(text)

    def _stated(self, text: str, situation: Situation) -> Meaning:
        """The meaning of a message that states something."""
        ours = self.sentence_reader.tells(text)
        if situation.has_incident or situation.reports_hang or situation.has_evidence:
            return Meaning(remark=text)
        intent: Intent = "off_topic"
        if ours:
            intent = "search"
        elif len(default_tokenizer().tokens(text)) <= FEW_WORDS:
            intent = "unclear"
        return Meaning(requests=(self.sentence_reader.request(intent, text),))
