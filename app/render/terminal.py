"""All of a diagnosis for a terminal: the answer first, then everything it rests on.

Colours are ANSI codes; whoever prints drops them where the output is not a terminal
(`click.echo` does). Commands are never wrapped, so that they can be copied.
"""

from __future__ import annotations

from collections.abc import Sequence

import click

from app.render import head, present
from app.render.columns import cell_len, columns, cut, hang, pad, paragraphs, wrap
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
MARK = "│ "
INDENT = "    "
SPEAKS_FOR, SPEAKS_AGAINST = "cyan", "yellow"


def render_text(diagnosis: Diagnosis, words: Words, *, width: int) -> str:
    """Lay all of `diagnosis` out for a terminal of `width` cells; nothing stands there twice."""
    answer = printable(diagnosis)
    blocks = [_head(answer, words, width), _happened(answer, words, width)]
    if answer.causes:
        title = words("heading.causes")
        undecided = "" if answer.status == "diagnosed" else f" · {words('verdict.unknown')}"
        blocks.append([heading(title) + undecided])
        blocks += _causes(answer, words, width)
    if second := present.second_reading(answer, words):
        blocks.append([line for text in second for line in wrap(text, width)])
    if check := head.check_after_first(answer):
        blocks.append(_commands(words("heading.best_check"), [check], width))
    if answer.warnings:
        lines = [heading(words("heading.warnings"))]
        for warning in answer.warnings:
            lines += warning_lines(warning, words, width, sign="  ! ")
        blocks.append(lines)
    if settings := present.settings_line(answer, words):
        blocks.append([click.style(line, dim=True) for line in wrap(settings, width)])
    blocks.append(_cases(answer, words, width))
    if steps := head.steps_after_first(answer):
        blocks.append(_commands(words("heading.next"), steps, width))
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
    """The headline, the whole of the first step, and the same incident met before."""
    colour = head.severity(answer)
    lines = notice_lines(answer, words, width)
    lines += [
        click.style(line, fg=colour, bold=True) for line in wrap(head.title(answer, words), width)
    ]
    if answer.status == "no_timeout":
        lines += wrap(words("head.paste_more"), width)
    lines += _first_step(answer, words, width)
    if met := head.met_before(answer, words):
        lines += ["", *led(f"{head.met_label(answer, words)}: ", met, width, bold=True)]
        if address := head.met_address(answer):
            lines.append(INDENT + click.style(address, underline=True))
    return lines


def notice_lines(answer: Diagnosis, words: Words, width: int) -> list[str]:
    """What the team wants everybody to know."""
    return [
        click.style(line, fg="yellow")
        for text, url in present.notices(answer.notices, words)
        for line in wrap(f"{text} {url}".rstrip(), width)
    ]


def _first_step(answer: Diagnosis, words: Words, width: int) -> list[str]:
    step = answer.first_fix
    if step is None:
        return []
    fix, check = head.first_answer_fix(answer), answer.best_check
    lines = ["", heading(head.first_label(answer, words))]
    if fix is not None:
        return lines + fix_lines(fix, words, width)
    if check is not None and step.kind == "check":
        return lines + command_lines(check, width)
    return lines + command_lines(NextStep(command=step.command, why=step.title), width)


def _happened(answer: Diagnosis, words: Words, width: int) -> list[str]:
    incident = answer.incident
    culprits = present.culprits(incident, words)
    rows = [(words("row.culprit") if not at else "", text) for at, text in enumerate(culprits)]
    error = incident.first_error
    if error:
        rows.append((words("row.first_error"), present.first_error_place(error, words)))
    facts = present.facts(incident, words)
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


def _causes(answer: Diagnosis, words: Words, width: int) -> list[list[str]]:
    share = max(cell_len(present.cause_share(cause)) for cause in answer.causes)
    error = answer.incident.first_error
    shown = {error.text} if error else set()
    shown |= {case.title for case in answer.cases}
    first = head.first_answer_fix(answer)
    commands = {answer.first_fix.command} if answer.first_fix else set()
    blocks: list[list[str]] = []
    for number, cause in enumerate(answer.causes, start=1):
        lines = _cause_head(cause, number, share, words, width)
        for item, quote in present.fresh_evidence(cause.evidence, shown):
            lines += _evidence(item, quote, words, width)
        for fix in cause.fixes:
            lines += fix_lines(fix, words, width) if fix != first else []
        for title, url in present.runbooks(cause.runbooks, words):
            lines += [*hang("  → ", title, width), f"{INDENT}{click.style(url, underline=True)}"]
        for check in cause.checks:
            lines += command_lines(check, width) if check.command not in commands else []
            commands.add(check.command)
        advice = present.restart_advice(cause, words)
        blocks.append(lines + hang(f"{INDENT}{words('row.restart')}: ", advice, width))
    blocks[-1].append(click.style(INDENT + present.unknown_share(answer, words), dim=True))
    return blocks


def _cause_head(cause: RankedCause, number: int, share: int, words: Words, width: int) -> list[str]:
    lead = f"{number}. {present.cause_share(cause):>{share}}  "
    text = f"{cause.title}  [{cause.id}, {words.term('band', cause.band)}]"
    return [click.style(line, bold=True) for line in hang(lead, text, width)]


def _evidence(item: Evidence, quote: str, words: Words, width: int) -> list[str]:
    """One reason with its quote."""
    against = item.weight < 0
    parts = [present.evidence_place(item, words), words("word.against") if against else ""]
    text = " · ".join(filter(None, [*parts, item.reason]))
    sign, colour = ("-", SPEAKS_AGAINST) if against else ("+", SPEAKS_FOR)
    lines = led(f"  {sign} ", text, width, fg=colour)
    return lines + quoted(quote, INDENT, width, fg="cyan")


def fix_lines(fix: AnswerFix, words: Words, width: int) -> list[str]:
    """A fix with its steps, commands and what to beware of."""
    lines = hang("  → ", f"{fix.title}  [{words.term('claim', fix.status)}]", width)
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


def _cases(answer: Diagnosis, words: Words, width: int) -> list[str]:
    cases = head.cases_not_met(answer)
    if not cases:
        return []
    lines = [heading(words("heading.cases"))]
    for case in cases:
        text = f"{case.title}  [{case.cause}, {words.term('claim', case.status)}]"
        lines += hang(f"  {case.score:.2f}  ", text, width)
        url = safe_url(case.url)
        lines.append(f"        {click.style(url or case.id, underline=bool(url))}")
        for note in present.case_notes(case, words):
            lines += hang("        ", note, width)
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
