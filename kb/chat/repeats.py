"""What a conversation has shown: no text is said twice, what was said is pointed at."""

from __future__ import annotations

from collections.abc import Iterable

from kb.chat.types import Statement, Turn

SHORT = 40  # characters of a line that may be said again
LONG_QUOTE = 24  # characters of a quote by which a line is known again in other words around it
START_WORDS = 90  # characters of a line by which it is found again above
QUOTING = ("evidence", "check", "step", "warning")  # roles of lines that are mostly a quote


class ShownTexts:
    """The lines of earlier replies."""

    def __init__(self, turns: Iterable[Turn] = ()) -> None:
        """Know the lines of `turns`."""
        lines = [line for turn in turns for line in turn.reply.statements]
        self._texts = {line.text for line in lines}
        self._quotes = {quote for line in lines for quote in long_quotes(line)}
        self._commands = {line.command for line in lines if line.command}

    def holds(self, line: Statement) -> bool:
        """Whether a line was said, in these words or around the same quotes."""
        if line.text in self._texts:
            return len(line.text) > SHORT or line.command in self._commands
        quotes = long_quotes(line)
        return bool(quotes) and quotes <= self._quotes

    def names(self, title: str) -> bool:
        """Whether a line had that title in it."""
        return any(title in text for text in self._texts)

    def says(self, text: str) -> bool:
        """Whether a line said just that."""
        return text in self._texts

    def has_command(self, command: str) -> bool:
        """Whether a line gave that command."""
        return command in self._commands


def long_quotes(line: Statement) -> frozenset[str]:
    """The quotes that make up most of a line; of a line that only names its source none."""
    if line.role not in QUOTING:
        return frozenset()
    quotes = {citation.quote for citation in line.citations if citation.kind != "source"}
    told = line.text.casefold()
    return frozenset(
        quote
        for quote in quotes
        if len(quote) >= LONG_QUOTE
        and 2 * len(quote) >= len(line.text)
        and quote.casefold() in told
    )


def is_lead(line: Statement) -> bool:
    """Whether a line only leads up to the next: “What speaks for it:”."""
    return line.text.rstrip().endswith((":", "："))


def start_of(text: str) -> str:
    """The first words of a line, by which it is found again."""
    line = " ".join(text.split())
    if len(line) <= START_WORDS:
        return line.rstrip(".。")
    head = line[:START_WORDS]
    return f"{head.rpartition(' ')[0] or head}…"
