"""The diagnosis for a terminal: the answer first, everything that matters on one screen.

Colours are ANSI codes; whoever prints drops them where the output is not a terminal
(`click.echo` does). Commands are never wrapped, so that they can be copied.
"""

from __future__ import annotations

from collections.abc import Sequence

import click
from rich.cells import cell_len

from app.labels import Words
from app.layout import columns, cut, hang, pad, paragraphs, wrap
from app.view import CauseView, CommandView, EvidenceView, FixView, QuoteView, Row, View

QUOTE_LINES = 2  # a quote longer than this is cut: the line number leads to the whole
LEAD_EVIDENCE = 3  # the first cause shows this many reasons, the others one
OTHER_EVIDENCE = 1
LEAD_FIXES = 2  # and this many fixes, the others one by title
SHOWN_CASES = 3
MARK = "│ "
INDENT = "    "
STATUS_COLOURS = {"diagnosed": "green", "unknown": "yellow", "no_timeout": "cyan"}


def render_text(
    view: View, words: Words, *, width: int, full: bool = False, more: str = "word.more"
) -> str:
    """Lay `view` out for a terminal of `width` cells; `full` leaves nothing out.

    The label `more` says where what is left out can be read.
    """
    blocks: list[list[str]] = [_head(view, width), _happened(view, words, width)]
    if view.causes:
        blocks.append([_heading(words("heading.causes"))])
        blocks += _causes(view, words, width, full=full, more=more)
    if view.best_check:
        blocks.append(_command_block(words("heading.best_check"), [view.best_check], width))
    blocks.append(_warnings(view, words, width))
    blocks.append(_cases(view, words, width, full=full))
    if view.next:
        blocks.append(_command_block(words("heading.next"), view.next, width))
    if full:
        blocks.append(_timeline(view, words, width))
        blocks.append(_rank_table(view, words))
    blocks.append([click.style(view.footer, dim=True)])
    return paragraphs(blocks)


def _heading(text: str) -> str:
    return click.style(text, bold=True, underline=True)


def _head(view: View, width: int) -> list[str]:
    colour = STATUS_COLOURS[view.status]
    lines = [click.style(line, fg=colour, bold=True) for line in wrap(view.verdict, width)]
    if view.summary:
        lines += wrap(view.summary, width)
    return lines


def _happened(view: View, words: Words, width: int) -> list[str]:
    rows = [Row(label=words("row.culprit"), value=culprit) for culprit in view.culprits[:1]]
    rows += [Row(label="", value=culprit) for culprit in view.culprits[1:]]
    labels = [*rows, Row(label=words("row.first_error"), value=""), *view.facts]
    if view.restart:
        labels.append(Row(label=words("heading.restart"), value=""))
    column = max((cell_len(row.label) for row in labels), default=0) + 2
    lines = [line for row in rows for line in _row(row, column, width)]
    if view.first_error:
        lines += _first_error(view.first_error, words, column, width)
    for row in view.facts:
        lines += _row(row, column, width)
    if view.restart:
        lines += _row(Row(label=words("heading.restart"), value=view.restart), column, width)
    return lines


def _row(row: Row, column: int, width: int) -> list[str]:
    return _styled(hang(pad(row.label, column), row.value, width), row.label, bold=True)


def _styled(
    lines: list[str], lead: str, *, bold: bool | None = None, fg: str | None = None
) -> list[str]:
    """Style `lead` where it starts the first line."""
    if lead and lines[0].startswith(lead):
        lines[0] = click.style(lead, bold=bold, fg=fg) + lines[0][len(lead) :]
    return lines


def _first_error(error: QuoteView, words: Words, column: int, width: int) -> list[str]:
    lines = _row(Row(label=words("row.first_error"), value=error.where), column, width)
    return lines + quoted(error.text, " " * column, width, fg="red")


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


def _causes(view: View, words: Words, width: int, *, full: bool, more: str) -> list[list[str]]:
    share = max(cell_len(cause.percent) for cause in view.causes)
    told = {view.first_error.text} if view.first_error else set()
    blocks: list[list[str]] = []
    for number, cause in enumerate(view.causes, start=1):
        lines = _cause_head(cause, number, share, width)
        if full or number == 1:
            lines += _cause(cause, words, width, told, full=full)
            if not full and (hidden := _hidden(cause)):
                lines.append(click.style(INDENT + words(more, count=hidden), dim=True))
        elif not cause.faint:
            for item in cause.evidence[:OTHER_EVIDENCE]:
                lines += _evidence(item, words, width, told)
            for fix in cause.fixes[:1]:
                lines += _fix(fix, words, width, whole=False)
        if blocks and cause.faint and not full:
            blocks[-1] += lines  # causes that are hardly possible share a block
        else:
            blocks.append(lines)
    blocks[-1].append(click.style(INDENT + view.unknown, dim=True))
    return blocks


def _cause(cause: CauseView, words: Words, width: int, told: set[str], *, full: bool) -> list[str]:
    evidence = cause.evidence if full else cause.evidence[:LEAD_EVIDENCE]
    fixes = cause.fixes if full else cause.fixes[:LEAD_FIXES]
    lines = [line for item in evidence for line in _evidence(item, words, width, told)]
    lines += [line for fix in fixes for line in _fix(fix, words, width, whole=True)]
    if full:
        lines += [line for check in cause.checks for line in _command(check, width)]
        lines += hang(f"{INDENT}{words('row.restart')}: ", cause.restart, width)
    return lines


def _hidden(cause: CauseView) -> int:
    """How many reasons and fixes of the first cause are left out."""
    reasons = max(0, len(cause.evidence) - LEAD_EVIDENCE)
    return reasons + max(0, len(cause.fixes) - LEAD_FIXES)


def _cause_head(cause: CauseView, number: int, share: int, width: int) -> list[str]:
    lead = f"{number}. {cause.percent:>{share}}  "
    lines = hang(lead, f"{cause.title}  [{cause.id}, {cause.band}]", width)
    return [click.style(line, bold=True) for line in lines]


def _evidence(item: EvidenceView, words: Words, width: int, told: set[str]) -> list[str]:
    """One reason; its quote is left out where one of those `told` has it, and joins them."""
    sign = "-" if item.against else "+"
    parts = [item.where]
    if item.against:
        parts.append(words("word.against"))
    if item.reason:
        parts.append(item.reason)
    text = " · ".join(parts)
    lines = _styled(
        hang(f"  {sign} ", text, width), f"  {sign}", fg="red" if item.against else "green"
    )
    if any(item.quote in other for other in told):
        return lines
    told.add(item.quote)
    return lines + quoted(item.quote, INDENT, width, fg="cyan")


def _fix(fix: FixView, words: Words, width: int, *, whole: bool) -> list[str]:
    lines = hang("  → ", f"{fix.title}  [{fix.status}]", width)
    if not whole:
        return lines + copyable(fix.commands[:1])
    for number, step in enumerate(fix.steps, start=1):
        lines += hang(f"{INDENT}{number}. ", step, width)
    lines += copyable(fix.commands)
    for note in fix.notes:
        lead = f"{INDENT}{note.label}: "
        lines += _styled(hang(lead, note.value, width), lead, fg="yellow")
    return lines


def copyable(commands: Sequence[str]) -> list[str]:
    """Commands as they are, indented and never wrapped."""
    return [
        INDENT + "  " + click.style(line, fg="blue", bold=True)
        for command in commands
        for line in command.split("\n")
    ]


def _command(command: CommandView, width: int) -> list[str]:
    lines = hang("  ? ", command.why, width) if command.why else []
    lines += copyable([command.command])
    for outcome in command.outcomes:
        lines += hang(f"{INDENT}- ", outcome, width)
    return lines


def _command_block(heading: str, commands: Sequence[CommandView], width: int) -> list[str]:
    return [_heading(heading), *(line for item in commands for line in _command(item, width))]


def _warnings(view: View, words: Words, width: int) -> list[str]:
    if not view.warnings:
        return []
    lines = [_heading(words("heading.warnings"))]
    for warning in view.warnings:
        lead = f"  ! {warning.setting}: "
        text = " · ".join([warning.verdict, warning.explanation, *warning.notes])
        if warning.where:
            text += f" ({warning.where})"
        lines += _styled(hang(lead, text, width), lead, fg="yellow", bold=True)
    return lines


def _cases(view: View, words: Words, width: int, *, full: bool) -> list[str]:
    if not view.cases:
        return []
    lines = [_heading(words("heading.cases"))]
    for case in view.cases if full else view.cases[:SHOWN_CASES]:
        text = f"{case.title}  [{case.cause}, {case.status}]"
        lines += hang(f"  {case.score}  ", text, width)
        lines.append(f"        {click.style(case.url or case.id, underline=bool(case.url))}")
        if full:
            for note in case.notes:
                lines += hang("        ", note, width)
        elif case.notes:
            lines.append("        " + cut(case.notes[0], width - 8))
    return lines


def _timeline(view: View, words: Words, width: int) -> list[str]:
    if not view.timeline:
        return []
    lines = [_heading(words("heading.timeline"))]
    return lines + [line for moment in view.timeline for line in hang("  ", moment, width)]


def _rank_table(view: View, words: Words) -> list[str]:
    if view.ranks is None:
        return []
    lines = [f"  {line}" for line in columns(view.ranks.rows)]
    return [_heading(words("heading.ranks")), *lines]


def render_ranks(view: View, words: Words) -> str:
    """Only the rank table, with the verdict above it."""
    if view.ranks is None:
        return words("word.no_ranks") + "\n"
    header, *body = columns(view.ranks.rows)
    return paragraphs([[view.verdict], [click.style(header, bold=True), *body]])
