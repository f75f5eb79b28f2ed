"""What a person states: the words of a message that tell what was seen, done or tried.

Nothing else is evidence: no question, no guess, no word to us about our answers, and not that a
check cannot be run. It is told clause by clause: “I guess it is memory, but rank 0 alone was at
100 %” guesses and tells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kb.chat.acts import ActReader
from kb.chat.phrases import Phrasebook
from kb.chat.sentences import clauses, sentences, word_count
from kb.chat.types import Act

TAG_WORDS = 3  # of “right?”, “is it not?”, “对不对” behind what is asked
MOSTLY = 0.5  # probability of asking, all ways of it together, from which a sentence asks
ASKING: frozenset[Act] = frozenset(
    {
        *("happened", "why", "sure", "fix", "next", "restart", "similar", "case", "search"),
        *("cause", "setting", "how_to", "recap", "help"),
    }
)


class ObservationReader:
    """Finds what is stated in a person's words; made once."""

    def __init__(self, phrases: Phrasebook, acts: ActReader) -> None:
        """Tell by the words of `phrases` and the fitted model `acts`."""
        self._phrases = phrases
        self._acts = acts

    def asks(self, sentence: str) -> bool:
        """Whether a sentence asks, with or without a question mark, and so states nothing."""
        if self._phrases.is_asked(sentence):
            return True
        shares: Mapping[Act, float] = self._acts.read(sentence)
        return sum(shares[act] for act in ASKING) > MOSTLY

    def stated(self, sentence: str) -> str:
        """What a sentence that asks nothing states; empty where all of it is talk or a guess."""
        parts = clauses(sentence)
        kept = [part for part in parts if not self._is_talk(part)]
        return sentence if len(kept) == len(parts) else ", ".join(kept)

    def stated_in_question(self, question: str) -> list[str]:
        """The clauses of a question that state something before it asks: “it is IB, is that it?”.

        None where only the last word asks (“rank 3 crashed, right?”): then all of it is asked.
        """
        *leading, last = clauses(question) or [question]
        if not leading or word_count(last) <= TAG_WORDS:
            return []
        return [
            part
            for part in leading
            if self._phrases.is_assertion(part)
            and not self._is_talk(part)
            and not self.asks(part)
            and self._phrases.is_of_the_field(part)
        ]

    def suppositions(self, text: str) -> tuple[str, ...]:
        """Sentences that ask whether it is some cause: in a report they would count as its signs.

        “Why does it hang when saving?” is none: it tells that it hangs when saving.
        """
        return tuple(
            sentence
            for sentence in sentences(text)
            if self.asks(sentence)
            and self._phrases.causes_in(sentence)
            and not self._phrases.asks_why(sentence)
        )

    def talk(self, text: str, *, is_report: bool) -> tuple[str, ...]:
        """Sentences beside a log that state nothing: questions, guesses, words to us.

        In a report that begins an incident only what supposes a cause.
        """
        if is_report:
            return self.suppositions(text)
        return tuple(one for one in sentences(text) if self.asks(one) or not self.stated(one))

    def guesses(self, text: str) -> tuple[str, ...]:
        """Sentences that only guess at a cause."""
        return tuple(
            one
            for one in sentences(text)
            if (self._phrases.is_guess(one) or self._phrases.is_unstated(one))
            and self._phrases.causes_in(one)
            and not self.stated(one)
        )

    def misleading(self, remark: str) -> tuple[str, ...]:
        """The sentences whose words alone mislead, so that only cues read them."""
        return tuple(one for one in sentences(remark) if self._phrases.is_misleading(one))

    def explanations(self, remark: str) -> Sequence[str]:
        """The sentences that tell why it happened."""
        return [
            one
            for one in sentences(remark)
            if self._phrases.is_explanation(one) and not self.asks(one)
        ]

    def _is_talk(self, clause: str) -> bool:
        names = self._phrases
        if names.is_to_us(clause) or names.is_refusal(clause) or names.is_job_gone(clause):
            return True
        if names.is_intention(clause):
            return True
        if names.is_unstated(clause) and not names.is_own_deed(clause):
            return True
        return (
            names.is_guess(clause)
            and not names.is_own_deed(clause)
            and bool(names.causes_in(clause) or self._acts.read(clause)["suspect"] > MOSTLY / 2)
        )
