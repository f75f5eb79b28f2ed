"""What messages name: causes, platforms, places; data/chat.yaml, matched in linear time by RE2."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from kb.chat.phrase_sets import (
    CausePhrase,
    LanguageName,
    Ordinal,
    PhraseGroup,
    PhraseSet,
    Platform,
    QuestionFormWords,
    Tool,
)
from kb.chat.sentences import clauses
from kb.chat.types import QuestionForm
from kb.errors import DataError
from kb.knowledge.load import Knowledge, read_yaml
from kb.types.vocabulary import Language

NEXT_CHARS = 40  # before a name that may deny it

ENTRY_ID = re.compile(r"\b(?:incident|thread|writeup)-[0-9a-f]{16}\b")  # of an imported entry


@dataclass(frozen=True, kw_only=True)
class Phrasebook:
    """The whole of data/chat.yaml, and what of it a text holds.

    Attributes:
        field: words of this field.
        orders: orders to an assistant that stand in logs.
        denials: what denies a cause it names; `complaints` look like it and say the contrary.
        denies_next_words: words that deny what comes right behind them.
        ruling_out: words of one who says what it is not.
        asking: forms of a question.
        endings: words of one who knows by now what it was.
        troubles: words of trouble that is still there; `cured` say that it is over.
        takes_back: words that take back or correct what was said; `keeps` say the contrary.
        misleading: words of sentences whose words alone mislead.
        choices: nothing but a place in a list.
        guesses: words of one who guesses.
        to_us: words to us about our answers; `own_deeds` tell what the person did all the same.
        explanations: words of one who tells why it happened.
        refusals: what cannot or will not be run; `gone`: the job is no longer there.
        other_incident, first_incident: another incident, and back to an earlier one.
        forms: what a question asks for.
        embedded_questions: a question inside a statement: “decides whether to stop”.
        question_words: words of a question; `why_words` begin one for a reason,
            `reason_words` ask for it in whatever place.
        supposition_words: words before a clause that only supposes; `assertion_words` state.
        kinds: what is asked for by its kind: a case, what a cause is.
        correction_leads: what leads up to what is said instead of something taken back, in a group.
        retracting_words: words of taking back itself, which do not tell what is meant.
        places_of_fixes: a place in a list, of a fix; `places_of_causes`: of a cause.
        restarts: a restart; `other_than_restart`: something instead of it.
        others: cases of others.
        keep_requests: asks to keep how it ended; `disowning` that something was never said.
        alternatives: goes on with another possibility.
        scratching: takes back what was said right before.
        unstated: no statement of one's own: a request, an open question, advice of others, talk.
        corrections: puts right what was said; `additions` say that it holds besides.
        intentions: what the person is going to do.
        fillers: words that tell nothing of what a question is about.
        empty_passages: sentences of cases that only say that something is not known.
        own_words: what the person said, where that is asked for.
        record_words: whether something was kept; `pointing`: at what was said before.
        check_words: the check asked, or its options.
        stacks: words for what shows where a process that runs stands.
        case_requests, case_request_words: words of asking for a case, which name none.
        tools: programs of checks.
    """

    topics: tuple[CausePhrase, ...]
    platforms: tuple[Platform, ...]
    ordinals: tuple[Ordinal, ...]
    languages: tuple[LanguageName, ...]
    field: PhraseGroup
    orders: PhraseGroup
    denials: PhraseGroup
    complaints: PhraseGroup
    denies_next_words: PhraseGroup
    ruling_out: PhraseGroup
    asking: PhraseGroup
    endings: PhraseGroup
    troubles: PhraseGroup
    cured: PhraseGroup
    takes_back: PhraseGroup
    keeps: PhraseGroup
    misleading: PhraseGroup
    choices: PhraseGroup
    guesses: PhraseGroup
    to_us: PhraseGroup
    own_deeds: PhraseGroup
    explanations: PhraseGroup
    refusals: PhraseGroup
    gone: PhraseGroup
    other_incident: PhraseGroup
    first_incident: PhraseGroup
    forms: tuple[QuestionFormWords, ...]
    embedded_questions: PhraseGroup
    question_words: PhraseGroup
    why_words: PhraseGroup
    reason_words: PhraseGroup
    supposition_words: PhraseGroup
    assertion_words: PhraseGroup
    kinds: PhraseGroup
    correction_leads: PhraseGroup
    retracting_words: PhraseGroup
    places_of_fixes: PhraseGroup
    places_of_causes: PhraseGroup
    restarts: PhraseGroup
    other_than_restart: PhraseGroup
    others: PhraseGroup
    keep_requests: PhraseGroup
    disowning: PhraseGroup
    said_otherwise: PhraseGroup
    alternatives: PhraseGroup
    scratching: PhraseGroup
    unstated: PhraseGroup
    corrections: PhraseGroup
    additions: PhraseGroup
    intentions: PhraseGroup
    fillers: PhraseGroup
    empty_passages: PhraseGroup
    own_words: PhraseGroup
    record_words: PhraseGroup
    pointing: PhraseGroup
    check_words: PhraseGroup
    stacks: PhraseGroup
    case_requests: PhraseGroup
    case_request_words: PhraseGroup
    tools: tuple[Tool, ...]

    @cached_property
    def sets(self) -> dict[str, PhraseSet]:
        """The patterns by what they tell, compiled with the first text.

        Raises:
            DataError: a pattern is not RE2.
        """
        groups: dict[str, Sequence[PhraseGroup]] = {
            "topics": self.topics,
            "platforms": self.platforms,
            "ordinals": self.ordinals,
            "languages": self.languages,
            "field": (self.field,),
            "orders": (self.orders,),
            "denials": (self.denials, self.complaints),
            "ruling_out": (self.ruling_out,),
            "denies_next": (self.denies_next_words,),
            "asking": (self.asking,),
            "endings": (self.endings,),
            "troubles": (self.troubles, self.cured),
            "takes_back": (self.takes_back, self.keeps),
            "misleading": (self.misleading,),
            "choices": (self.choices,),
            "guesses": (self.guesses,),
            "to_us": (self.to_us, self.own_deeds),
            "explanations": (self.explanations,),
            "refusals": (self.refusals, self.gone),
            "incidents": (self.other_incident, self.first_incident),
            "forms": self.forms,
            "embedded_questions": (self.embedded_questions,),
            "question_words": (self.question_words, self.why_words),
            "reason_words": (self.reason_words,),
            "assertion_words": (self.supposition_words, self.assertion_words),
            "kinds": (self.kinds,),
            "correction_leads": (self.correction_leads,),
            "retracting_words": (self.retracting_words,),
            "places": (self.places_of_causes, self.places_of_fixes),
            "restarts": (self.restarts, self.other_than_restart),
            "others": (self.others,),
            "keep_requests": (self.keep_requests,),
            "disowning": (self.disowning, self.said_otherwise),
            "alternatives": (self.alternatives,),
            "scratching": (self.scratching,),
            "unstated": (self.unstated,),
            "corrections": (self.corrections, self.additions),
            "intentions": (self.intentions,),
            "fillers": (self.fillers,),
            "empty_passages": (self.empty_passages,),
            "own_words": (self.own_words,),
            "record_words": (self.record_words,),
            "pointing": (self.pointing,),
            "check_words": (self.check_words,),
            "stacks": (self.stacks,),
            "case_requests": (self.case_requests,),
            "case_request_words": (self.case_request_words,),
            "tools": self.tools,
        }
        return {name: PhraseSet(group) for name, group in groups.items()}

    def causes_in(self, text: str) -> tuple[str, ...]:
        """The causes the text names, the single ones before those of a wider word.

        A wider word adds nothing where one of its causes is named: "the network configuration".
        """
        named = [self.topics[at] for at in self.sets["topics"].match(text)]
        topics = sorted(
            (topic for topic in named if not topic.alone or len(named) == 1),
            key=lambda topic: len(topic.causes),
        )
        causes: dict[str, None] = {}
        for topic in topics:
            if len(topic.causes) == 1 or not causes.keys() & topic.causes:
                causes |= dict.fromkeys(topic.causes)
        return tuple(causes)

    def causes_by_sense(self, text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The causes the text names as they are, and those it only denies: “not a version bug”."""
        denied: dict[str, None] = {}
        named: dict[str, None] = {}
        parts = clauses(text)
        for place, clause in enumerate(parts):
            behind = "".join(parts[place + 1 : place + 2])
            is_denied = (
                self.is_denial(clause)
                or self.is_ruling_out(clause)
                or (self.is_denial(behind) and not self.causes_in(behind))
            )
            (denied if is_denied else named).update(dict.fromkeys(self.causes_in(clause)))
        return tuple(named), tuple(cause for cause in denied if cause not in named)

    def platforms_in(self, text: str) -> tuple[Platform, ...]:
        """The backends and frameworks the text names."""
        return tuple(self.platforms[at] for at in self.sets["platforms"].match(text))

    def ordinal_in(self, text: str) -> int:
        """The number in a list the text names, counted from 1; 0 for none."""
        return next((self.ordinals[at].number for at in self.sets["ordinals"].match(text)), 0)

    def languages_in(self, text: str) -> set[Language | None]:
        """The languages the text names."""
        return {self.languages[at].language for at in self.sets["languages"].match(text)}

    def is_order(self, line: str) -> bool:
        """Whether a line gives orders to an assistant, such as to ignore its instructions."""
        return bool(self.sets["orders"].match(line))

    def is_denial(self, text: str) -> bool:
        """Whether the text says that what it names is in order, or is not the cause."""
        return self.sets["denials"].match(text) == (0,)

    def is_ruling_out(self, text: str) -> bool:
        """Whether the text says of what it names that it is not why."""
        return bool(self.sets["ruling_out"].match(text))

    def denies_next(self, words: str) -> bool:
        """Whether the words deny what comes right behind them."""
        return bool(self.sets["denies_next"].match(words[-NEXT_CHARS:]))

    def is_asked(self, text: str) -> bool:
        """Whether the text has the form of a question; “decides whether to stop” has none."""
        return bool(self.sets["asking"].match(self.sets["embedded_questions"].without(text)))

    def has_question_word(self, text: str) -> bool:
        """Whether the text has a word of a question, in whatever place."""
        return 0 in self.sets["question_words"].match(text)

    def asks_why(self, text: str) -> bool:
        """Whether the text begins with a word that asks for a reason."""
        return 1 in self.sets["question_words"].match(text)

    def asks_for_reason(self, text: str) -> bool:
        """Whether the text has a word that asks for a reason, in whatever place."""
        return bool(self.sets["reason_words"].match(text))

    def is_assertion(self, clause: str) -> bool:
        """Whether a clause says that something is so, instead of naming or supposing it."""
        return self.sets["assertion_words"].match(clause) == (1,)

    def places_fix(self, text: str, *, listed: bool) -> bool:
        """Whether a place in a list is a fix's: by the noun, else by what was `listed` last."""
        named = self.sets["places"].match(text)
        return 1 in named or (listed and 0 not in named)

    def speaks_of_causes(self, text: str) -> bool:
        """Whether the text has a word for causes."""
        return 0 in self.sets["places"].match(text)

    def names_kind(self, text: str) -> bool:
        """Whether the text asks for something by its kind: a case, what a cause is."""
        return bool(self.sets["kinds"].match(text))

    def meant_instead(self, text: str) -> str:
        """What the text says is meant, behind the words that lead up to it; empty for nothing."""
        return self.sets["correction_leads"].behind(text)

    def is_retracting(self, word: str) -> bool:
        """Whether a word is one of taking back itself."""
        return bool(self.sets["retracting_words"].match(word))

    def is_restart(self, text: str) -> bool:
        """Whether the text speaks of a restart, and not of something instead of it."""
        return self.sets["restarts"].match(text) == (0,)

    def is_of_others(self, text: str) -> bool:
        """Whether the text asks for cases of others."""
        return bool(self.sets["others"].match(text))

    def names_restart(self, text: str) -> bool:
        """Whether the text speaks of a restart."""
        return 0 in self.sets["restarts"].match(text)

    def asks_for_record(self, text: str) -> bool:
        """Whether the text speaks of what was kept."""
        return bool(self.sets["record_words"].match(text))

    def asks_to_keep(self, text: str) -> bool:
        """Whether the text asks to keep how it ended, and is no question whether it was kept."""
        return bool(self.sets["keep_requests"].match(text)) and not self.is_asked(text)

    def is_disowned(self, text: str) -> bool:
        """Whether the text says that the person never said something."""
        return self.sets["disowning"].match(text) == (0,)

    def is_alternative(self, text: str) -> bool:
        """Whether the text goes on with another possibility."""
        return bool(self.sets["alternatives"].match(text))

    def is_scratched(self, text: str) -> bool:
        """Whether the text takes back what was said right before."""
        return bool(self.sets["scratching"].match(text))

    def is_unstated(self, text: str) -> bool:
        """Whether the text orders, wonders, chats or tells what others advise."""
        return bool(self.sets["unstated"].match(text))

    def is_correction(self, text: str) -> bool:
        """Whether the text has the form of putting right what was said, and adds nothing to it."""
        return self.sets["corrections"].match(text) == (0,)

    def is_intention(self, text: str) -> bool:
        """Whether the text says what the person is going to do."""
        return bool(self.sets["intentions"].match(text))

    def is_filler(self, word: str) -> bool:
        """Whether a word tells nothing of what a question is about."""
        return bool(self.sets["fillers"].match(word))

    def is_empty_passage(self, text: str) -> bool:
        """Whether a sentence of a case only says that something is not known."""
        return bool(self.sets["empty_passages"].match(text))

    def concludes(self, text: str) -> bool:
        """Whether the text says what it was, whether or not it names a cause."""
        return bool(self.sets["endings"].match(text)) or self.is_explanation(text)

    def asks_for_own_words(self, text: str) -> bool:
        """Whether the text speaks of what the person said."""
        return bool(self.sets["own_words"].match(text))

    def is_pointing(self, text: str) -> bool:
        """Whether the text points at what was said before."""
        return bool(self.sets["pointing"].match(text))

    def is_about_check(self, text: str) -> bool:
        """Whether the text speaks of the check asked, or of its options."""
        return bool(self.sets["check_words"].match(text))

    def names_stacks(self, text: str) -> bool:
        """Whether the text names what shows where a process that runs stands."""
        return bool(self.sets["stacks"].match(text))

    def without_case_request(self, text: str) -> str:
        """The text without the words that ask for a case, which are not apart in Chinese."""
        return self.sets["case_requests"].without(text, " ")

    def is_case_request(self, word: str) -> bool:
        """Whether a word only asks for a case and names none."""
        return bool(self.sets["case_request_words"].match(word))

    def tools_in(self, text: str) -> frozenset[str]:
        """The tools that a command runs or a sentence names."""
        return frozenset(self.tools[at].id for at in self.sets["tools"].match(text))

    @property
    def running(self) -> str:
        """The tool that looks at a process that runs."""
        return self.tools[-1].id

    @cached_property
    def own_programs(self) -> frozenset[str]:
        """The tools a job of which runs no training script."""
        return frozenset(tool.id for tool in self.tools if tool.own_program)

    def is_ending(self, text: str) -> bool:
        """Whether the text names a cause as the one that it was."""
        named = self.sets["endings"].match(text) and self.causes_in(text)
        return bool(named) and not self.is_asked(text)

    def is_misleading(self, text: str) -> bool:
        """Whether the words alone mislead: something is denied, wished or guessed."""
        return bool(self.sets["misleading"].match(text))

    def is_still_trouble(self, text: str) -> bool:
        """Whether the text speaks of trouble and of no end of it."""
        return self.sets["troubles"].match(text) == (0,)

    def is_taken_back(self, text: str) -> bool:
        """Whether the text has words that take something back."""
        return self.sets["takes_back"].match(text) == (0,)

    def is_guess(self, text: str) -> bool:
        """Whether the text guesses."""
        return bool(self.sets["guesses"].match(text))

    def is_to_us(self, text: str) -> bool:
        """Whether the text speaks to us of our answers and tells nothing the person did."""
        return self.sets["to_us"].match(text) == (0,)

    def is_own_deed(self, text: str) -> bool:
        """Whether the text tells what the person did or found."""
        return 1 in self.sets["to_us"].match(text)

    def is_explanation(self, text: str) -> bool:
        """Whether the text tells why it happened."""
        return bool(self.sets["explanations"].match(text)) and not self.is_guess(text)

    def is_refusal(self, text: str) -> bool:
        """Whether the text says that something cannot or will not be run."""
        return 0 in self.sets["refusals"].match(text)

    def is_job_gone(self, text: str) -> bool:
        """Whether the text says that the job is no longer there to be looked at."""
        return 1 in self.sets["refusals"].match(text)

    def incident_meant(self, text: str) -> Literal["", "other", "earlier"]:
        """Whether the text speaks of another incident, or goes back to an earlier one."""
        found = self.sets["incidents"].match(text)
        return "earlier" if 1 in found else "other" if found else ""

    def form_of(self, question: str) -> QuestionForm:
        """What a question asks for by its form; the first in the file counts."""
        found = self.sets["forms"].match(question)
        return self.forms[found[0]].form if found else ""

    def choice_in(self, text: str) -> int:
        """The place in a list, counted from 1, that is all the text says; 0 for none."""
        if not self.sets["choices"].match(text):
            return 0
        return self.ordinal_in(text) or next((int(char) for char in text if char.isdecimal()), 0)

    def is_of_the_field(self, text: str) -> bool:
        """Whether the text holds a word of the field."""
        return bool(self.sets["field"].match(text))


def load_phrases(data: Path, knowledge: Knowledge) -> Phrasebook:
    """Read and check `data`/chat.yaml.

    Raises:
        DataError: it is missing, breaks its schema, names a cause nobody knows, or holds a
            pattern that is not RE2.
    """
    book = read_yaml(data / "chat.yaml", Phrasebook)
    cause_ids = {cause.id for cause in knowledge.causes}
    for topic in book.topics:
        for cause in topic.causes:
            if cause_ids and cause not in cause_ids:
                raise DataError(
                    f"chat.yaml: topic {topic.id}: {cause!r} is not a cause",
                    todo="see data/causes.yaml",
                )
    _ = book.sets
    return book
