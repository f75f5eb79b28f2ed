"""The diagnosis on one screen of a terminal: what to know and do first, a line or two each."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import click

from app.render import head, present
from app.render.columns import cell_len, cut, pad, paragraphs, wrap
from app.render.escape import printable, safe_url
from kb.knowledge.labels import Words
from kb.types.answer import Diagnosis, SimilarCase

MAX_ROWS = 25  # of the window, wrapped commands counted as they show
COMMAND_LINES = 6  # of a command; the rest is counted
TEXT_LINES = 2  # of any other text
MET_LINES = 3  # of the same incident met before: its title and what helped
CASES = 3
NEXT = 3
WARNINGS = 2
LEAST_TITLE = 20  # cells of a case's title beside its address; with less it has its own line
BAR = "│ "
INDENT = "  "
GAP = 2
_Lines = tuple[str, ...]
CERTAINTY_COLOURS = {"certain": "magenta", "likely": "cyan", "possible": "yellow"}  # by band
LABELS = (
    *("head.fix", "head.check", "head.collect", "head.certainty", "head.met_before", "head.line"),
    *(
        "head.helped_before",
        "site.runbook",
        "head.others",
        "head.settings",
        "head.similar",
        "heading.next",
        "heading.restart",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """Items of lines under a label.

    Where room is short second and further items are left out first, of the highest `rank` on;
    those of rank 0 stay.
    """

    label: str
    items: tuple[_Lines, ...]
    rank: int = 0


def render_screen(
    diagnosis: Diagnosis, words: Words, *, width: int, more: str = "head.full"
) -> str:
    """Lay the answer out on at most `MAX_ROWS` rows of `width` cells.

    The label `more` says how all of it can be read.
    """
    answer = printable(diagnosis)
    column = max(cell_len(words(label)) for label in LABELS) + GAP
    first = [
        click.style(line, fg=head.CARE)
        for text, url in present.notices(answer.notices, words)
        for line in _text(f"{text} {url}".rstrip(), width)
    ]
    first += [
        click.style(line, fg=head.severity(answer), bold=True)
        for line in wrap(head.title(answer, words), width)
    ]
    footer = f"{present.footer(answer, words)} · {words(more)}"
    last = [click.style(line, dim=True) for line in wrap(footer, width)]
    parts = _parts(answer, words, width - column)
    while True:
        body = [line for part in parts for line in _laid_out(part, column)]
        text = paragraphs([first, body, last])
        spare = [at for at, part in enumerate(parts) if part.rank and part.items]
        if not spare or rows_of(text, width) <= MAX_ROWS:
            return text
        at = max(spare, key=lambda index: (len(parts[index].items) > 1, parts[index].rank))
        parts[at] = replace(parts[at], items=parts[at].items[:-1])


def rows_of(text: str, width: int) -> int:
    """How many rows of a window `text` takes."""
    lines = click.unstyle(text).splitlines()
    return sum(max(1, math.ceil(cell_len(line) / width)) for line in lines)


def _laid_out(part: _Entry, column: int) -> list[str]:
    label = click.style(pad(part.label, column), bold=True)
    lines = [line for item in part.items for line in item]
    return [(" " * column if at else label) + line for at, line in enumerate(lines)]


def _parts(answer: Diagnosis, words: Words, room: int) -> list[_Entry]:
    """What stands on the screen, in order."""

    def part(label: str, items: Iterable[tuple[str, ...]], rank: int = 0) -> _Entry:
        return _Entry(label=words(label), items=tuple(item for item in items if item), rank=rank)

    if answer.status == "no_timeout":
        first = [part("heading.next", [_text(words("head.paste_more"), room)])]
    else:
        first = [
            _first_step(answer, words, room),
            part("site.runbook", _runbooks(answer), 1),
            part("head.certainty", _why(answer, words, room)),
        ]
    unread = present.unread(answer.incident, words)
    return [
        *first,
        part("head.met_before", [_met_before(answer, words, room)], 1),
        part("head.line", [_line(answer, words, room)]),
        part("row.unread", (_text(name, room) for name in unread), 1),
        part("head.others", _others(answer, words, room), 2),
        part("head.settings", _warnings(answer, words, room), 3),
        part("heading.restart", [_restart(answer, words, room)], 4),
        part("head.check", [_check(answer, words, room)], 2),
        part("head.similar", _cases(answer, words, room), 5),
        part("heading.next", _next(answer, words, room), 6),
    ]


def _text(text: str, room: int, *, most: int = TEXT_LINES, fg: str | None = None) -> _Lines:
    """A text on at most `most` lines; none for none."""
    lines = wrap(text, room) if text else []
    if len(lines) > most:
        lines = [*lines[: most - 1], cut(" ".join(lines[most - 1 :]), room)]
    return tuple(click.style(line, fg=fg) for line in lines)


def _command(command: str, words: Words) -> _Lines:
    """A command as it is, never wrapped; of a long one the first lines."""
    lines = command.split("\n") if command else []
    shown = [INDENT + click.style(line, fg="blue", bold=True) for line in lines[:COMMAND_LINES]]
    hidden = len(lines) - len(shown)
    return (*shown, INDENT + words("head.more_lines", count=hidden)) if hidden else tuple(shown)


def _first_step(answer: Diagnosis, words: Words, room: int) -> _Entry:
    step = answer.first_fix
    if step is None:
        return _Entry(label="", items=())
    label, title = head.first_label(answer, words), head.first_title(answer, words)
    if head.helped_team(answer):  # whose label is too long for its column
        label, title = words("head.helped_before"), words("word.reason", what=label, reason=title)
    command = _command(step.command, words)
    lines = (*_text(title, room), *command, *_text(head.caution(answer, words), room, fg=head.CARE))
    return _Entry(label=label, items=(lines,))


def _runbooks(answer: Diagnosis) -> list[_Lines]:
    """The team's pages about the likeliest cause, a line each."""
    pages = answer.causes[0].runbooks if answer.causes else ()
    return [(f"{page.title}  {click.style(safe_url(page.url), underline=True)}",) for page in pages]


def _why(answer: Diagnosis, words: Words, room: int) -> list[_Lines]:
    colour = CERTAINTY_COLOURS.get(answer.causes[0].band) if answer.causes else None
    second = (_text(text, room) for text in present.second_reading(answer, words))
    return [_text(head.certainty_and_why(answer, words), room, fg=colour), *second]


def _met_before(answer: Diagnosis, words: Words, room: int) -> _Lines:
    address = head.met_address(answer)
    link = (click.style(address, underline=True),) if address else ()
    what, whose = head.met_before(answer, words), head.met_label(answer, words)
    text = words("word.reason", what=whose, reason=what) if what else ""
    return (*_text(text, room, most=MET_LINES), *link)


def _line(answer: Diagnosis, words: Words, room: int) -> _Lines:
    """The line that says most, quoted behind its place."""
    place, quote = head.culprit_line(answer, words)
    quoted = _text(quote, room - len(BAR), fg=head.severity(answer))
    return (*_text(place, room, most=1), *(BAR + line for line in quoted))


def _others(answer: Diagnosis, words: Words, room: int) -> list[_Lines]:
    causes = (f"{share:>4}  {title}" for title, share in head.other_causes(answer))
    rest = present.unknown_share(answer, words) if answer.causes else ""
    return [_text(text, room, most=1) for text in (*causes, rest)]


def _warnings(answer: Diagnosis, words: Words, room: int) -> list[_Lines]:
    texts = (
        f"{warning.setting}: {present.warning_text(warning, words)}"
        for warning in answer.warnings[:WARNINGS]
    )
    return [_text(text, room, most=1, fg=head.CARE) for text in texts]


def _restart(answer: Diagnosis, words: Words, room: int) -> _Lines:
    if answer.status != "diagnosed" or not answer.causes or head.names_another_cause(answer):
        return ()
    return _text(present.restart_advice(answer.causes[0], words), room, most=1)


def _check(answer: Diagnosis, words: Words, room: int) -> _Lines:
    check = head.check_after_first(answer)
    if check is None:
        return ()
    return (*_text(check.tells, room, most=1), *_command(check.command, words))


def _cases(answer: Diagnosis, words: Words, room: int) -> list[_Lines]:
    return [_case(case, room) for case in head.cases_not_met(answer)[:CASES]]


def _case(case: SimilarCase, room: int) -> _Lines:
    """A case and its address: on one line where both fit."""
    address = safe_url(case.url) or case.id
    link = click.style(address, underline=True) if safe_url(case.url) else address
    share = f"{case.score:.2f}{INDENT}"
    left = room - len(share) - GAP - cell_len(address)
    if left < min(LEAST_TITLE, cell_len(case.title)):
        return (share + cut(case.title, room - len(share)), " " * len(share) + link)
    return (f"{share}{cut(case.title, left)}{' ' * GAP}{link}",)


def _next(answer: Diagnosis, words: Words, room: int) -> list[_Lines]:
    """What to collect: a command with its purpose as its comment, where both fit."""
    items: list[_Lines] = []
    for step in head.steps_after_first(answer)[:NEXT]:
        command = _command(step.command, words)
        comment = f"  # {step.why}"
        if len(command) == 1 and len(INDENT) + cell_len(step.command + comment) <= room:
            items.append((command[0] + click.style(comment, dim=True),))
        else:
            items.append((*_text(step.why, room, most=1), *command))
    return items
