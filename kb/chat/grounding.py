"""A language model words the engine's statements anew; what they do not carry is dropped.

The model is given the statements as numbered evidence. Its answer is cut into sentences as it
comes; a sentence passes if it cites statements there are and `kb.chat.support` finds nothing in it
beyond them. It takes over their citations. Commands are the cited statement's own, never a model's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kb.chat.model import LanguageModel, ModelError, ModelRequest
from kb.chat.support import SupportCheck, foreign_quotes, source_of, without
from kb.chat.types import Citation, Reply, Statement
from kb.chat.wordlists import WordLists, default_wordlists
from kb.text import has_han
from kb.types import Language

MAX_EVIDENCE = 24  # statements sent; a reply has about ten
MAX_STATEMENT = 600  # characters of one; quotes of long log lines are cut
SAME_START = 40  # characters; a quote the text begins to give need not follow it again
MAX_ANSWER = 6000  # characters read of an answer: ten times what is asked for
MAX_SENTENCE = 600  # characters without an end are no sentence
MAX_CITED = 5  # statements a sentence may rest on; one that cites everything proves nothing

_MARKERS = r"(?:\s*[\[［【]\s*\d+(?:\s*[,，、;-]\s*\d+)*\s*[\]］】])"
_MARKER = re.compile(_MARKERS)
# A sentence ends at 。！？, at . ! ? before a space or a citation, or at the end of a line; numbers
# of statements right behind the end still belong to it.
_END = re.compile(
    rf"(?:[。！？]+[”’」』）)]*|[.!?]+[\"')]*(?=\s|[\[［【]|$)){_MARKERS}*|{_MARKERS}+(?=\s*\n)|\n"
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig)|^\s*\d{1,2})\.$", re.IGNORECASE
)
_DECORATION = re.compile(r"^\s*(?:[-*•#>]+\s+|\d{1,2}[.)、]\s*)|\*\*|__(?=\w)|(?<=\w)__")
_LINK = re.compile(r"\]\s*\(")  # Markdown: an address is cited, a model writes none
_SPACE_BEFORE_END = re.compile(r"\s+(?=[.,;:!?。，；：！？])")


def reword(
    model: LanguageModel,
    message: str,
    reply: Reply,
    language: Language,
    *,
    words: WordLists | None = None,
) -> Iterator[Statement]:
    """The statements of `reply` in a model's words, each as soon as it is said and checked.

    Args:
        model: the model asked.
        message: what the person said, redacted.
        reply: the engine's answer; its citable statements are the evidence.
        language: of the answer.
        words: prompt and word lists; default: the shipped ones.

    Raises:
        ModelError: no answer, half of one, or nothing in it that the evidence carries. Statements
            given before are sound, yet the answer is not whole.
    """
    words = words or default_wordlists()
    evidence = tuple(found for found in reply.statements if found.citations)[:MAX_EVIDENCE]
    if not evidence:
        raise ModelError("the answer holds no statement with evidence", todo="nothing to word anew")
    checked = _Checked(evidence, message, words)
    request = ModelRequest(
        system=words.system.get(language),
        evidence=tuple(_shown(found, words, language) for found in evidence),
        question=message[:MAX_ANSWER],
        reminder=words.reminder.get(language),
        language=language,
    )
    pieces = model.stream(request)
    try:
        for sentence in sentences(pieces):
            yield from checked.statements(sentence)
    finally:
        close = getattr(pieces, "close", None)
        if close:
            close()
    if not checked.given:
        raise ModelError(
            f"no sentence of the language model rests on the evidence ({checked.dropped} dropped)",
            todo="the engine's own answer stands",
        )
    yield from checked.commands_left(reply.statements)


def sentences(pieces: Iterable[str]) -> Iterator[str]:
    """The sentences of a text that comes in pieces, each as soon as its end is certain."""
    waiting = ""
    received = 0
    for piece in pieces:
        # One piece may be megabytes: what is beyond the bound is not even looked at.
        kept = piece[: MAX_ANSWER - received]
        received += len(piece)
        waiting += kept
        # The end of the text so far may be the middle of a number, a marker or an abbreviation.
        found, waiting = _cut(waiting, final=False)
        yield from found
        if len(waiting) > MAX_SENTENCE:
            waiting = ""
        if received > MAX_ANSWER:
            return  # the last sentence may have been cut
    found, _ = _cut(waiting, final=True)
    yield from found


def _cut(text: str, *, final: bool) -> tuple[list[str], str]:
    """The whole sentences of `text`, and what is left."""
    found: list[str] = []
    start = 0
    for end in _END.finditer(text):
        sentence = text[start : end.end()]
        if _ABBREVIATION.search(sentence.rstrip("\n")):
            continue
        if sentence.count("“") > sentence.count("”"):  # the end is that of a quoted line
            continue
        if not final and not _is_certain(text[end.end() :]):
            break
        found.append(sentence)
        start = end.end()
    if final and start < len(text):
        found.append(text[start:])
        start = len(text)
    return [sentence.strip() for sentence in found if sentence.strip()], text[start:]


def _is_certain(rest: str) -> bool:
    """Whether what follows an end shows that no further marker belongs to the sentence."""
    following = rest.lstrip(" ")
    return bool(following) and following[0] not in "[［【"


class _Checked:
    """Turns sentences of a model into statements, and counts what became of them."""

    def __init__(self, evidence: tuple[Statement, ...], message: str, words: WordLists) -> None:
        self._evidence = evidence
        self._sources = [source_of(found, words) for found in evidence]
        self._check = SupportCheck(words)
        self._message = message
        self._commands: set[str] = set()
        self._said: set[str] = set()
        self.given = 0
        self.dropped = 0

    def statements(self, sentence: str) -> Iterator[Statement]:
        """The statement of a sentence, and the commands of what it cites; nothing if it fails."""
        numbers = cited_numbers(sentence)
        text = _bare(sentence)
        if _LINK.search(sentence) or not self._sound(text, numbers):
            self.dropped += 1
            return
        self._said.add(text)
        cited = [self._evidence[number - 1] for number in numbers]
        fresh = [found for found in cited if found.command and found.command not in self._commands]
        self._commands.update(found.command for found in fresh)
        self.given += 1
        yield Statement(
            role=cited[0].role,
            text=text,
            citations=_union(cited),
            command=fresh[0].command if fresh else "",
        )
        for found in fresh[1:]:
            if found.command != fresh[0].command:
                yield found

    def commands_left(self, statements: Iterable[Statement]) -> Iterator[Statement]:
        """The engine's statements whose commands no sentence brought: none may get lost."""
        for found in statements:
            if found.command and found.command not in self._commands:
                self._commands.add(found.command)
                yield found

    def _sound(self, text: str, numbers: tuple[int, ...]) -> bool:
        if not text or not text.isprintable() or text in self._said:
            return False
        if not 0 < len(numbers) <= MAX_CITED:
            return False
        if not all(1 <= number <= len(self._evidence) for number in numbers):
            return False
        sources = [self._sources[number - 1] for number in numbers]
        return not self._check.lack(text, sources, self._message)


def cited_numbers(sentence: str) -> tuple[int, ...]:
    """The statements a sentence cites, in its order: ``[2][1]`` and ``[2, 1]`` are 2 and 1."""
    found: dict[int, None] = {}
    for marker in _MARKER.findall(sentence):
        numbers = [int(digits) for digits in re.findall(r"\d{1,6}", marker)]
        if "-" in marker and len(numbers) > 1:
            numbers = list(range(numbers[0], min(numbers[-1], numbers[0] + MAX_CITED) + 1))
        found.update(dict.fromkeys(numbers))
    return tuple(found)


def _bare(sentence: str) -> str:
    """A sentence without its markers and without Markdown."""
    text = _DECORATION.sub("", _MARKER.sub("", sentence))
    text = " ".join(_SPACE_BEFORE_END.sub("", text).split())
    if text and text[-1] not in '.!?。！？)）"”:：;；…':
        text += "。" if has_han(text) else "."
    return text


def _union(cited: Iterable[Statement]) -> tuple[Citation, ...]:
    """All citations of the statements, each once, in their order."""
    return tuple(dict.fromkeys(part for found in cited for part in found.citations))


def _shown(statement: Statement, words: WordLists, language: Language) -> str:
    """A statement as the model sees it: one line, its quotes behind it.

    A quote that talks to its reader is left out: a model must not even meet it.
    """
    withheld = words.withheld.get(language)
    orders = [quote for quote in foreign_quotes(statement) if words.talks_to_reader.search(quote)]
    text = without(statement.text, orders, withheld)
    if words.talks_to_reader.search(text):
        text = withheld
    quotes = [
        citation.quote
        for citation in statement.citations
        if citation.quote not in (*orders, statement.command)
        and citation.quote[:SAME_START] not in text
    ]
    line = " ".join(" | ".join([text, *dict.fromkeys(quotes)]).split())
    return line if len(line) <= MAX_STATEMENT else line[: MAX_STATEMENT - 1] + "…"
