"""What a message takes back or corrects: which of the person's earlier words no longer count."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kb.chat.checks import find_check
from kb.chat.phrases import Phrasebook
from kb.chat.sentences import clauses, sentences
from kb.chat.types import CheckResult, Conversation
from kb.knowledge.load import Knowledge

_VALUE = r"(?P<value>[0-9]{1,9}(?:\.[0-9]{1,6}){0,4})"
# “rank 3”, “epoch is 3”, “driver 550.54”.
NUMBER = re.compile(
    rf"\b(?P<noun>[A-Za-z][A-Za-z-]{{1,20}})(?:\s(?:is|was|number|version|no\.))?\s?#?{_VALUE}\b"
)
# “5 号卡”, “3号机”, “2 节点”.
NUMBER_ZH = re.compile(rf"{_VALUE}\s?(?P<noun>号?(?:卡|机器?|节点|进程|轮|步|网口|个))")
NEGATION = re.compile(r"not?|never|n't|没有?|不是?|[a-z]{2,8}n[’']?t")


def take_back(
    conversation: Conversation,
    sentence: str,
    key_words: Callable[[str], frozenset[str]],
    knowledge: Knowledge,
    *,
    names_it: bool,
    is_disowned: bool = False,
) -> tuple[Conversation, tuple[str, ...]]:
    """The conversation without what `sentence` takes back, and the person's words for that.

    These are the remarks, answers to checks and endings that share most of their `key_words` with
    it (half of what is disowned); where none shares a word, the last thing said, and nothing where
    the sentence names it.
    """
    wanted = key_words(sentence)
    quotes = tuple(
        one for one in words_that_count(conversation) if one not in conversation.misleading
    )
    taken_as = {one.quote: _observed(one, knowledge) for one in conversation.check_results}
    shared = {
        quote: len(wanted & key_words(f"{quote} {taken_as.get(quote, '')}")) for quote in quotes
    }
    most = max(shared.values(), default=0)
    if most and (not is_disowned or 2 * most >= len(wanted)):
        retracted = tuple(quote for quote in quotes if shared[quote] == most)
    elif names_it:
        return conversation, ()
    else:
        said = [turn.asked for turn in reversed(conversation.turns)]
        latest = next((quote for asked in said for quote in quotes if quote in asked), "")
        retracted = (latest,) if latest else quotes[-1:]
    return without(conversation, retracted), retracted


def without(conversation: Conversation, retracted: Sequence[str]) -> Conversation:
    """The conversation in which these words of the person count no longer; its checks are open."""
    again = (one.check for one in conversation.check_results if one.quote in retracted)
    return replace(
        conversation,
        remarks=tuple(filter(None, (_cut(one, retracted) for one in conversation.remarks))),
        check_results=tuple(
            one for one in conversation.check_results if one.quote not in retracted
        ),
        endings=tuple(one for one in conversation.endings if one.quote not in retracted),
        stated_causes=tuple(
            one
            for one in conversation.stated_causes
            if not any(one.quote in quote for quote in retracted)
        ),
        statements=tuple(
            one
            for one in conversation.statements
            if not any(one.quote in quote for quote in retracted)
        ),
        open_checks=(*conversation.open_checks, *again)[-1:],
    )


def _observed(result: CheckResult, knowledge: Knowledge) -> str:
    """What an answer to a check was taken for, in both languages."""
    check = find_check(knowledge, result.check)
    if check is None or not 1 <= result.outcome <= len(check.outcomes):
        return ""
    observation = check.outcomes[result.outcome - 1].observation
    return f"{observation.zh} {observation.en}"


def words_that_count(conversation: Conversation) -> tuple[str, ...]:
    """What the person said that still counts, sentence by sentence, in their words."""
    remarks = (sentence for remark in conversation.remarks for sentence in sentences(remark))
    results = (one.quote for one in conversation.check_results)
    endings = (one.quote for one in conversation.endings)
    return tuple(dict.fromkeys((*remarks, *results, *endings)))


def _cut(remark: str, retracted: Sequence[str]) -> str:
    """A remark without the sentences taken back."""
    if remark in retracted:
        return ""
    quotes = sentences(remark)
    kept = [one for one in quotes if one not in retracted]
    return remark if len(kept) == len(quotes) else " ".join(kept)


# --- corrections ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """The sentence a message puts right, and what is said in its place."""

    old: str
    new: str


class CorrectionReader:
    """Finds the earlier sentence that a message puts right; made once."""

    def __init__(
        self,
        phrases: Phrasebook,
        topics_in: Callable[[str], frozenset[str]],
        key_words: Callable[[str], frozenset[str]],
    ) -> None:
        """Compare sentences by the topics and key words in them."""
        self._phrases = phrases
        self._topics_in = topics_in
        self._key_words = key_words

    def read(self, text: str, earlier: Sequence[str]) -> Correction | None:
        """What `text` puts right of the sentences `earlier`, oldest first; None for nothing.

        It has the form of a correction, and names a number of the same thing (“rank 3” for
        “rank 5”), or what the earlier sentence speaks of, or denies just that.
        """
        parts = sentences(text)
        if not parts or not any(map(self._phrases.is_correction, parts)):
            return None
        if any(self._phrases.is_asked(one) for one in parts):
            return None
        new = self._phrases.meant_instead(text) or text
        best = max(
            ((self._likeness(text, one), at) for at, one in enumerate(earlier)), default=(0, 0)
        )
        if not best[0]:
            return None
        old = earlier[best[1]]
        return Correction(old=old, new=self._renumbered(new, old) or text)

    def _likeness(self, text: str, old: str) -> int:
        """How much `text` speaks of what `old` says; 0 where it puts nothing of it right."""
        here, there = numbers_in(text), numbers_in(old)
        words, known = self._words(text), self._words(old)
        topics = self._topics_in(old)
        if any(noun in there and here[noun] != there[noun] for noun in here):
            if self._renumbered(text, old):
                return 100
            is_same = (words & known) - set(here) or topics & self._topics_in(text)
            return 60 if is_same else 0
        if set(here) - set(there):
            return 0  # of a number nobody named: it tells something more
        denied = [one for one in clauses(text) if self._phrases.is_denial(one)]
        if any(topics & self._topics_in(one) for one in denied):
            return 50
        shared = len(words & known)
        is_turned = self._phrases.is_denial(text) != self._phrases.is_denial(old)
        if is_turned and shared and 2 * shared >= len(words):
            return 10 + shared
        return 5 if topics & self._topics_in(text) else 0

    def _is_lead(self, clause: str) -> bool:
        """Whether a clause only leads up to what is put right: “my mistake”, “说错了”."""
        names = self._topics_in(clause) or self._phrases.causes_in(clause)
        return not names and (
            self._phrases.is_correction(clause) or self._phrases.is_taken_back(clause)
        )

    def _words(self, text: str) -> frozenset[str]:
        return frozenset(one for one in self._key_words(text) if not NEGATION.fullmatch(one))

    def _renumbered(self, new: str, old: str) -> str:
        """The earlier sentence with the numbers of the new one, where that says nothing else."""
        here, there = numbers_in(new), numbers_in(old)
        swapped = {noun: value for noun, value in here.items() if noun in there}
        leads = (one for one in clauses(new) if numbers_in(one) or not self._is_lead(one))
        besides = NUMBER.sub(" ", NUMBER_ZH.sub(" ", ", ".join(leads)))
        besides = self._phrases.meant_instead(besides) or besides
        if not swapped or self._words(besides) - set(swapped):
            return ""
        for noun, value in swapped.items():
            old = _with_number(old, noun, there[noun], value)
        return old


def numbers_in(text: str) -> dict[str, str]:
    """The numbers a text gives of things, by what they are of: rank → 3, 号卡 → 5."""
    found = {match["noun"].lower(): match["value"] for match in NUMBER.finditer(text)}
    return found | {match["noun"]: match["value"] for match in NUMBER_ZH.finditer(text)}


def _with_number(text: str, noun: str, before: str, after: str) -> str:
    """The text with another number of that thing."""
    for expression in (NUMBER, NUMBER_ZH):
        for match in expression.finditer(text):
            if match["noun"].lower() == noun and match["value"] == before:
                start, end = match.span("value")
                return f"{text[:start]}{after}{text[end:]}"
    return text
