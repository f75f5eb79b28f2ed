"""What one sentence of a message does, where that makes sense, and what it asks for.

A fitted model (`kb.chat.acts`) reads the sentence alone; what it names and what was said before
rule out the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from kb.chat.acts import ActReader, ProgressReader
from kb.chat.meaning import Situation, UserRequest
from kb.chat.observations import ASKING, ObservationReader
from kb.chat.phrases import ENTRY_ID, Phrasebook
from kb.chat.sentences import SETTING_NAME
from kb.chat.types import Act, Intent, Progress
from kb.knowledge.load import Knowledge
from kb.types.vocabulary import Language

ORDER_CHARS = 80  # an order to an assistant is short; a longer line tells more than that
SURE = 0.45  # of an act; below it what such acts have in common decides first
TRYING = 0.5  # probability from which it says that the outcome of a change is awaited
NO_PROGRESS = 0.5  # below it a text rather says how far it is
UNSOLVED = 0.5  # of both that a change was in vain and that its outcome is awaited
CLEAR_PROGRESS = 0.9
SOLVED = 0.6  # probability from which a message says that it works again
RARE = 0.05  # what is left of an act that makes no sense in the situation
STATING: frozenset[Act] = frozenset({"tell", "suspect"})
REPLYING: frozenset[Act] = frozenset({"yes", "no", "unsure"})
ENDING: frozenset[Act] = frozenset({"fixed", "not_it"})
LANGUAGES: Mapping[Act, Language] = {"lang_zh": "zh", "lang_en": "en"}
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
    "recap": 0.4,
}
# Those by which all that was said would be lost: what else the sentence might be is doubt of them.
FORGETTING: frozenset[Act] = frozenset({"new_job", "retract"})
# Questions of the field: without a word of it they are about something else.
GENERAL: frozenset[Act] = frozenset({"how_to", "cause", "setting", "search"})
# Questions that, where they name a cause, ask whether it is that one.
SUPPOSING: frozenset[Act] = frozenset({"why", "happened", "sure", "recap", "cause", "case"})
# Acts that, where they name a place in a list, ask about what stands there.
PLACING: frozenset[Act] = frozenset(
    {"option", "case", "cause", "happened", "how_to", "search", "similar", "recap", "help"}
)
# Not answered beside anything else.
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
_VALUE = re.compile(r"[A-Za-z0-9_.]{1,80}=\S{1,80}")
_WORD = re.compile(r"[A-Za-z\u4e00-\u9fff]")
_UPPER = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")


class SentenceReader:
    """Reads sentences one by one; made once."""

    def __init__(
        self,
        phrases: Phrasebook,
        knowledge: Knowledge,
        acts: ActReader,
        progress: ProgressReader,
    ) -> None:
        """Read with `phrases` and the fitted models; settings are those of `knowledge`."""
        self.phrases = phrases
        self.acts = acts
        self.progress = progress
        self.observations = ObservationReader(phrases, acts)
        self.asks = self.observations.asks
        self._ids = frozenset(knowledge.advice_by_id)
        # Names in lower case, and the last parts of dotted ones, to the id of the advice.
        self._settings = {item.id.rpartition(".")[2].lower(): item.id for item in knowledge.advice}
        self._settings |= {item.id.lower(): item.id for item in knowledge.advice}

    def act(self, sentence: str, situation: Situation) -> Act:
        """What a sentence most likely does, where that makes sense."""
        if situation.has_incident and (
            self.phrases.is_ending(sentence) or self.phrases.asks_to_keep(sentence)
        ):
            return "fixed"
        shares = dict(self.acts.read(sentence))
        for act in self._senseless(sentence, situation):
            shares[act] *= RARE
        for act in self._lacking(sentence):
            shares[act] = 0.0
        if self.phrases.is_asked(sentence):
            for act in (*STATING, *REPLYING, *ENDING, "new_job", "retract"):
                shares[act] *= RARE
        total = sum(shares.values())
        for act, least in CONSEQUENTIAL.items():
            whole = 1.0 if act in FORGETTING else total
            if shares[act] < least * whole:
                shares[act] *= RARE
        total = sum(shares.values())
        best = max(shares, key=shares.__getitem__)
        if shares[best] < SURE * total:
            kinds = [*GROUPS, *(frozenset({act}) for act in shares if not _grouped(act))]
            group = max(kinds, key=lambda kind: share_of(shares, kind))
            best = max(sorted(group), key=shares.__getitem__)
        return best

    def is_solved(self, text: str) -> bool:
        """Whether a message says that it works again; a run that is not over yet does not."""
        if self.phrases.is_ending(text) or self.phrases.asks_to_keep(text):
            return True
        return self._is_far(text, "solved", SOLVED)

    def _is_far(self, text: str, progress: Progress, least: float) -> bool:
        """Whether it says so; beside trouble it rather tells since when."""
        if self.phrases.is_still_trouble(text):
            least = CLEAR_PROGRESS
        return self.progress.read(text)[progress] >= least

    def is_clear_progress(self, text: str) -> bool:
        """Whether it says without a doubt that it works or that an outcome is awaited."""
        read = self.progress.read(text)
        return max(read["solved"], read["trying"]) >= CLEAR_PROGRESS

    def is_unsolved(self, text: str) -> bool:
        """Whether it says that a change was in vain, or that its outcome is not known yet."""
        read = self.progress.read(text)
        return read["failing"] + read["trying"] >= UNSOLVED

    def is_trying(self, text: str) -> bool:
        """Whether it says that something was changed and the outcome is not known yet."""
        return self._is_far(text, "trying", TRYING)

    def tells_progress(self, text: str) -> bool:
        """Whether it rather says how far the incident is than something else."""
        return self.progress.read(text)["none"] < NO_PROGRESS

    def _senseless(self, sentence: str, situation: Situation) -> Iterable[Act]:
        """Acts that a sentence cannot be, by what it names and by what was said before."""
        if not (situation.open_checks or situation.outcome_asked or situation.model_asked):
            yield from REPLYING
        if not situation.has_incident:
            yield from OF_INCIDENT
        if len(sentence) > ORDER_CHARS // 2 and not self.phrases.incident_meant(sentence):
            yield "new_job"  # a longer one says of which
        phrases = self.phrases
        if not phrases.causes_in(sentence) and (
            phrases.is_still_trouble(sentence) or phrases.is_to_us(sentence)
        ):
            yield "not_it"  # “still hangs”, “you got me wrong”: of no cause

    def _lacking(self, sentence: str) -> Iterable[Act]:
        """Acts that a sentence cannot be without a word of them."""
        phrases = self.phrases
        if not (phrases.is_of_others(sentence) or phrases.platforms_in(sentence)):
            yield "similar"
        if not phrases.names_restart(sentence):
            yield "restart"
        if not (
            phrases.is_asked(sentence)
            or phrases.has_question_word(sentence)
            or phrases.asks_for_own_words(sentence)
            or phrases.form_of(sentence) == "summary"
        ):
            yield "recap"
        if not self.phrases.languages_in(sentence):
            yield from LANGUAGES
        if not self.phrases.ordinal_in(sentence):
            yield "option"
        beside = _VALUE.sub("", sentence)
        is_told = beside != sentence and _WORD.search(beside) is not None
        if not self.settings(sentence) or (is_told and not self.phrases.is_asked(sentence)):
            yield "setting"  # “we set X=1” tells something
        if not (self.phrases.causes_in(sentence) or self.phrases.ordinal_in(sentence)):
            yield "cause"

    def as_request(self, act: Act, sentence: str, situation: Situation) -> UserRequest:
        """What is to be answered of a sentence that does `act`."""
        request = self.request(intent_of(act), sentence)
        if act not in ENDING:
            request = replace(request, form=self.phrases.form_of(sentence))
        if act in ENDING:
            return replace(request, settles="confirmed" if act == "fixed" else "denied")
        if request.settings and act in ("help", "cause", "happened"):
            return replace(request, intent="setting")
        if act in LANGUAGES:
            named = self.phrases.languages_in(sentence)
            return replace(request, language=next(iter(named - {None}), None))
        if ENTRY_ID.search(sentence):
            return replace(request, intent="case")
        if placed := self._placed(act, request, situation):
            return placed
        if act in GENERAL and not (self.tells(sentence) or request.settings or request.platforms):
            return replace(request, intent="off_topic")
        if situation.has_incident and act in SUPPOSING and not self.phrases.names_kind(sentence):
            causes = request.causes or self._hinted(act, request, situation)
            intent = "why" if causes else request.intent
            return replace(request, intent=intent, causes=causes, is_guess=bool(causes))
        return request

    def _placed(self, act: Act, request: UserRequest, situation: Situation) -> UserRequest | None:
        """The request for a place in a list; None where none is named, or another thing by it."""
        if request.ordinal and act in PLACING and (act != "happened" or request.ordinal > 1):
            return self.in_list(request, situation)
        if request.ordinal and self.phrases.places_fix(request.text, listed=False):
            return self.in_list(request, situation)
        return None

    def in_list(self, request: UserRequest, situation: Situation) -> UserRequest:
        """A request for a place in a list, as one for the case, fix or cause that stands there."""
        is_fix = self.phrases.places_fix(request.text, listed=situation.after_fixes)
        if is_fix and situation.has_incident:
            return replace(request, intent="fix", is_fix_place=True)
        return replace(request, intent="case" if situation.after_cases else "cause")

    def _hinted(self, act: Act, request: UserRequest, situation: Situation) -> tuple[str, ...]:
        """The causes a question without a cause's name speaks of, by the signs in it."""
        asks_about_one = act == "why" and request.form not in ("meaning", "how", "movement")
        if self.phrases.asks_for_reason(request.text) and self.phrases.is_to_us(request.text):
            return ()  # “why do you think so?” asks of what we said
        return situation.hinted_causes if asks_about_one else ()

    def tells(self, text: str) -> bool:
        """Whether a text speaks of this field."""
        return self.phrases.is_of_the_field(text) or bool(self.phrases.causes_in(text))

    def request(self, intent: Intent, text: str) -> UserRequest:
        """A request with all that its words name."""
        named, denied = self.phrases.causes_by_sense(text)
        return UserRequest(
            intent=intent,
            text=text,
            causes=named or denied,
            is_denial=bool(denied) and not named,
            platforms=self.phrases.platforms_in(text),
            ordinal=self.phrases.ordinal_in(text),
            settings=self.settings(text),
        )

    def settings(self, text: str) -> tuple[str, ...]:
        """Settings the text names: known ones in any case, others in capitals."""
        names = []
        for name in SETTING_NAME.findall(text):
            identifier = name if name in self._ids else self._settings.get(name.lower(), "")
            if identifier or _UPPER.fullmatch(name):
                names.append(identifier or name)
        return tuple(dict.fromkeys(names))


def share_of(shares: Mapping[Act, float], acts: Iterable[Act]) -> float:
    """The probability of all of `acts` together."""
    return sum(shares[act] for act in acts)


def _grouped(act: Act) -> bool:
    return any(act in group for group in GROUPS)


def intent_of(act: Act) -> Intent:
    """The intent of a request that does `act`."""
    return INTENTS.get(act) or act  # type: ignore[return-value]
