"""The diagnosis for a terminal: the answer first, everything that matters on one screen.

Colours are ANSI codes; whoever prints drops them where the output is not a terminal
(`click.echo` does). Commands are never wrapped, so that they can be copied.
"""

from __future__ import annotations

from collections.abc import Sequence

import click
from rich.cells import cell_len

from app.render import present
from app.render.columns import columns, cut, hang, pad, paragraphs, wrap
from app.render.escape import printable, safe_url
from kb.diagnose.wording import percent
from kb.knowledge.labels import Words
from kb.types.answer import (
    AnswerCheck,
    AnswerFix,
    Diagnosis,
    Evidence,
    NextStep,
    RankedCause,
    SettingWarning,
)

QUOTE_LINES = 2  # a quote longer than this is cut: the line number leads to the whole
LEAD_EVIDENCE = 3  # the first cause shows this many reasons, the others one
OTHER_EVIDENCE = 1
LEAD_FIXES = 2  # and this many fixes, the others one by title
SHOWN_CASES = 3
MARK = "│ "
INDENT = "    "
STATUS_COLOURS = {"diagnosed": "green", "unknown": "yellow", "no_timeout": "cyan"}


def render_text(
    diagnosis: Diagnosis, words: Words, *, width: int, full: bool = False, more: str = "word.more"
) -> str:
    """Lay `diagnosis` out for a terminal of `width` cells; `full` leaves nothing out.

    The label `more` says where what is left out can be read.
    """
    answer = printable(diagnosis)
    blocks: list[list[str]] = [_head(answer, words, width), _happened(answer, words, width)]
    if answer.causes:
        blocks.append([heading(words("heading.causes"))])
        blocks += _causes(answer, words, width, full=full, more=more)
    if second := present.second_reading(answer, words):
        blocks.append([line for text in second for line in wrap(text, width)])
    if answer.best_check:
        blocks.append(_commands(words("heading.best_check"), [answer.best_check], width))
    if answer.warnings:
        lines = [heading(words("heading.warnings"))]
        for warning in answer.warnings:
            lines += warning_lines(warning, words, width, sign="  ! ")
        blocks.append(lines)
    if settings := present.settings_line(answer, words):
        blocks.append([click.style(line, dim=True) for line in wrap(settings, width)])
    blocks.append(_cases(answer, words, width, full=full))
    if answer.next:
        blocks.append(_commands(words("heading.next"), answer.next, width))
    if full:
        blocks += [_timeline(answer, words, width), _rank_table(answer, words)]
    blocks.append([click.style(present.footer(answer, words), dim=True)])
    return paragraphs(blocks)


def render_change(first: Diagnosis, better: Diagnosis, words: Words, *, width: int) -> str:
    """What a language model made of the answer `first`: its opinion, and the causes after it."""
    before = {cause.id: cause.probability for cause in first.causes}
    answer = printable(better)
    lines = [line for text in present.second_reading(answer, words) for line in wrap(text, width)]
    if answer.second_reader is None or answer.second_reader.why:
        return paragraphs([lines])
    rows = []
    for number, cause in enumerate(answer.causes, start=1):
        row = f"{number}. {cause.title}  {percent(cause.probability)}"
        if cause.id in before:
            row += words("second.before", share=percent(before[cause.id]))
        rows += wrap(row, width)
    return paragraphs([[heading(words("second.heading"))], rows, lines])


def heading(text: str) -> str:
    """The line above a block."""
    return click.style(text, bold=True, underline=True)


def _head(answer: Diagnosis, words: Words, width: int) -> list[str]:
    colour = STATUS_COLOURS[answer.status]
    first = wrap(present.verdict(answer, words), width)
    lines = [
        click.style(line, fg="yellow")
        for text, url in present.notices(answer, words)
        for line in wrap(f"{text} {url}".rstrip(), width)
    ]
    lines += [click.style(line, fg=colour, bold=True) for line in first]
    return lines + wrap(answer.summary, width) if answer.summary else lines


def _happened(answer: Diagnosis, words: Words, width: int) -> list[str]:
    incident = answer.incident
    culprits = present.culprits(incident, words)
    rows = [(words("row.culprit") if not at else "", text) for at, text in enumerate(culprits)]
    error = incident.first_error
    if error:
        rows.append((words("row.first_error"), present.first_error_place(error, words)))
    facts = present.facts(incident, words)
    if answer.causes:
        facts.append((words("heading.restart"), present.restart_advice(answer.causes[0], words)))
    labels = [label for label, _ in rows + facts] + [words("row.first_error")]
    column = max(map(cell_len, labels)) + 2
    lines = [line for row in rows for line in _row(row, column, width)]
    if error:
        lines += quoted(error.text, " " * column, width, fg="red")
    return lines + [line for row in facts for line in _row(row, column, width)]


def _row(row: present.Row, column: int, width: int) -> list[str]:
    label, value = row
    return led(pad(label, column), value, width, bold=True)


def led(
    lead: str, text: str, width: int, *, bold: bool | None = None, fg: str | None = None
) -> list[str]:
    """`text` wrapped behind `lead`, which alone is styled."""
    lines = hang(lead, text, width)
    if lines[0].startswith(lead):
        lines[0] = click.style(lead, bold=bold, fg=fg) + lines[0][len(lead) :]
    return lines


def quoted(text: str, indent: str, width: int, *, fg: str | None = None) -> list[str]:
    """A quote behind bars, cut after `QUOTE_LINES`."""
    if not text:
        return []
    room = width - len(indent) - len(MARK)
    lines = wrap(text, room)
    if len(lines) > QUOTE_LINES:
        rest = " ".join(lines[QUOTE_LINES - 1 :])
        lines = [*lines[: QUOTE_LINES - 1], cut(rest, room)]
    return [f"{indent}{MARK}{click.style(line, fg=fg)}" for line in lines]


def _causes(
    answer: Diagnosis, words: Words, width: int, *, full: bool, more: str
) -> list[list[str]]:
    share = max(cell_len(present.cause_share(cause)) for cause in answer.causes)
    error = answer.incident.first_error
    shown = {error.text} if error else set()
    blocks: list[list[str]] = []
    for number, cause in enumerate(answer.causes, start=1):
        faint = present.is_faint(cause)
        lines = _cause_head(cause, number, share, words, width)
        if full or number == 1:
            lines += _cause(cause, words, width, shown, full=full)
            if not full and (hidden := _hidden(cause)):
                lines.append(click.style(INDENT + words(more, count=hidden), dim=True))
        elif not faint:
            for item in cause.evidence[:OTHER_EVIDENCE]:
                lines += _evidence(item, words, width, shown)
            for fix in cause.fixes[:1]:
                lines += fix_lines(fix, words, width, whole=False)
        if blocks and faint and not full:
            blocks[-1] += lines  # causes that are hardly possible share a block
        else:
            blocks.append(lines)
    blocks[-1].append(click.style(INDENT + present.unknown_share(answer, words), dim=True))
    return blocks


def _cause(
    cause: RankedCause, words: Words, width: int, shown: set[str], *, full: bool
) -> list[str]:
    evidence = cause.evidence if full else cause.evidence[:LEAD_EVIDENCE]
    fixes = cause.fixes if full else cause.fixes[:LEAD_FIXES]
    lines = [line for item in evidence for line in _evidence(item, words, width, shown)]
    lines += [line for fix in fixes for line in fix_lines(fix, words, width)]
    for title, url in present.runbooks(cause, words):
        lines += [*hang("  → ", title, width), f"{INDENT}{click.style(url, underline=True)}"]
    if full:
        lines += [line for check in cause.checks for line in command_lines(check, width)]
        advice = present.restart_advice(cause, words)
        lines += hang(f"{INDENT}{words('row.restart')}: ", advice, width)
    return lines


def _hidden(cause: RankedCause) -> int:
    """How many reasons and fixes of the first cause are left out."""
    reasons = max(0, len(cause.evidence) - LEAD_EVIDENCE)
    return reasons + max(0, len(cause.fixes) - LEAD_FIXES)


def _cause_head(cause: RankedCause, number: int, share: int, words: Words, width: int) -> list[str]:
    lead = f"{number}. {present.cause_share(cause):>{share}}  "
    text = f"{cause.title}  [{cause.id}, {words.term('band', cause.band)}]"
    return [click.style(line, bold=True) for line in hang(lead, text, width)]


def _evidence(item: Evidence, words: Words, width: int, shown: set[str]) -> list[str]:
    """One reason; a quote that is among those `shown` is left out."""
    against = item.weight < 0
    parts = [present.evidence_place(item, words), words("word.against") if against else ""]
    text = " · ".join(filter(None, [*parts, item.reason]))
    lines = led(f"  {'-' if against else '+'} ", text, width, fg="red" if against else "green")
    return lines + quoted(present.new_quote(item, shown), INDENT, width, fg="cyan")


def fix_lines(fix: AnswerFix, words: Words, width: int, *, whole: bool = True) -> list[str]:
    """A fix with its steps, commands and what to beware of; else its title and first command."""
    lines = hang("  → ", f"{fix.title}  [{words.term('claim', fix.status)}]", width)
    if not whole:
        return lines + copyable(fix.commands[:1])
    for number, step in enumerate(fix.steps, start=1):
        lines += hang(f"{INDENT}{number}. ", step, width)
    lines += copyable(fix.commands)
    for label, text in present.fix_notes(fix, words):
        lines += led(f"{INDENT}{label}: ", text, width, fg="yellow")
    return lines


def copyable(commands: Sequence[str]) -> list[str]:
    """Commands as they are, indented and never wrapped."""
    return [
        INDENT + "  " + click.style(line, fg="blue", bold=True)
        for command in commands
        for line in command.split("\n")
    ]


def command_lines(item: AnswerCheck | NextStep, width: int) -> list[str]:
    """What a command is for, the command, and what its outcomes mean."""
    why, outcomes = present.check_parts(item)
    lines = hang("  ? ", why, width) if why else []
    lines += copyable([item.command])
    for outcome in outcomes:
        lines += hang(f"{INDENT}- ", outcome, width)
    return lines


def _commands(title: str, items: Sequence[AnswerCheck | NextStep], width: int) -> list[str]:
    return [heading(title), *(line for item in items for line in command_lines(item, width))]


def warning_lines(
    warning: SettingWarning, words: Words, width: int, *, sign: str = "! "
) -> list[str]:
    """What is wrong with a setting, and where it stands."""
    where = present.place(warning, words)
    text = present.warning_text(warning, words) + (f" ({where})" if where else "")
    return led(f"{sign}{warning.setting}: ", text, width, fg="yellow", bold=True)


def _cases(answer: Diagnosis, words: Words, width: int, *, full: bool) -> list[str]:
    if not answer.cases:
        return []
    lines = [heading(words("heading.cases"))]
    for case in answer.cases if full else answer.cases[:SHOWN_CASES]:
        text = f"{case.title}  [{case.cause}, {words.term('claim', case.status)}]"
        lines += hang(f"  {case.score:.2f}  ", text, width)
        url = safe_url(case.url)
        lines.append(f"        {click.style(url or case.id, underline=bool(url))}")
        notes = present.case_notes(case, words)
        if full:
            for note in notes:
                lines += hang("        ", note, width)
        elif notes:
            lines.append("        " + cut(notes[0], width - 8))
    return lines


def _timeline(answer: Diagnosis, words: Words, width: int) -> list[str]:
    moments = [present.moment_text(moment, words) for moment in answer.incident.timeline]
    lines = [line for moment in moments for line in hang("  ", moment, width)]
    return [heading(words("heading.timeline")), *lines] if lines else []


def _rank_table(answer: Diagnosis, words: Words) -> list[str]:
    rows = columns(present.rank_table(answer.incident.ranks, words))
    return [heading(words("heading.ranks")), *(f"  {line}" for line in rows)] if rows else []


def render_ranks(diagnosis: Diagnosis, words: Words) -> str:
    """Only the rank table, with the verdict above it."""
    answer = printable(diagnosis)
    rows = columns(present.rank_table(answer.incident.ranks, words))
    if not rows:
        return words("word.no_ranks") + "\n"
    header, *body = rows
    return paragraphs([[present.verdict(answer, words)], [click.style(header, bold=True), *body]])
