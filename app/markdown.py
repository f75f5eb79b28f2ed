"""The diagnosis as Markdown, for an issue, a wiki page or a chat.

Quotes stand in code spans and fences that cannot be left from inside; prose is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable

from app.labels import Words
from app.quoting import md_code, md_fence, md_link, md_text
from app.view import CauseView, CommandView, EvidenceView, FixView, TableView, View

NEST = "  "


def render_markdown(view: View, words: Words) -> str:
    """All of `view` as CommonMark (one table of GitHub's dialect where ranks are known)."""
    blocks = [f"## {md_text(view.verdict)}", md_text(view.summary), _happened(view, words)]
    if view.causes:
        blocks.append(f"### {words('heading.causes')}")
        for number, cause in enumerate(view.causes, start=1):
            blocks += _cause(cause, number, words)
        blocks.append(md_text(view.unknown))
    if view.best_check:
        blocks += [f"### {words('heading.best_check')}", _commands([view.best_check])]
    blocks += _warnings(view, words)
    blocks += _cases(view, words)
    if view.next:
        blocks += [f"### {words('heading.next')}", _commands(view.next)]
    if view.timeline:
        items = "\n".join(f"- {md_text(moment)}" for moment in view.timeline)
        blocks += [f"### {words('heading.timeline')}", items]
    if view.ranks:
        blocks += [f"### {words('heading.ranks')}", _table(view.ranks)]
    blocks.append(md_text(view.footer))
    return "\n\n".join(block for block in blocks if block) + "\n"


def _happened(view: View, words: Words) -> str:
    items = [f"- **{words('row.culprit')}**: {md_text(culprit)}" for culprit in view.culprits]
    if view.first_error:
        items.append(f"- **{words('row.first_error')}**: {md_text(view.first_error.where)}")
        if view.first_error.text:
            items.append(md_fence(view.first_error.text, info="text", indent=NEST))
    items += [f"- **{row.label}**: {md_text(row.value)}" for row in view.facts]
    if view.restart:
        items.append(f"- **{words('heading.restart')}**: {md_text(view.restart)}")
    return "\n".join(items)


def _cause(cause: CauseView, number: int, words: Words) -> list[str]:
    title = f"#### {number}\\. {md_text(cause.title)} · {cause.percent}"
    blocks = [f"{title} ({md_code(cause.id)}, {md_text(cause.band)})"]
    if cause.evidence:
        blocks.append(f"**{words('heading.evidence')}**")
        told: set[str] = set()
        blocks.append("\n".join(_evidence(item, words, told) for item in cause.evidence))
    if cause.fixes:
        blocks.append(f"**{words('heading.fixes')}**")
        blocks += [_fix(fix, words) for fix in cause.fixes]
    if cause.checks:
        blocks += [f"**{words('heading.checks')}**", _commands(cause.checks)]
    blocks.append(f"**{words('row.restart')}**: {md_text(cause.restart)}")
    return blocks


def _evidence(item: EvidenceView, words: Words, told: set[str]) -> str:
    """One reason; its quote is left out where one of those `told` has it, and joins them."""
    sign = f"({words('word.against')}) " if item.against else ""
    quote = "" if any(item.quote in other for other in told) else md_code(item.quote)
    told.add(item.quote)
    parts = [md_text(item.where), quote, md_text(item.reason)]
    if item.url:
        parts.append(md_link(words("word.source"), item.url))
    return f"- {sign}" + " · ".join(part for part in parts if part)


def _fix(fix: FixView, words: Words) -> str:
    lines = [f"- **{md_text(fix.title)}** ({md_text(fix.status)})"]
    lines += [f"{NEST}{number}. {md_text(step)}" for number, step in enumerate(fix.steps, start=1)]
    for command in fix.commands:
        lines += ["", md_fence(command, indent=NEST)]
    lines += [f"{NEST}- {note.label}: {md_text(note.value)}" for note in fix.notes]
    if fix.sources:
        links = ", ".join(
            md_link(f"{words('word.source')} {number}", url)
            for number, url in enumerate(fix.sources, start=1)
        )
        lines.append(f"{NEST}- {links}")
    return "\n".join(lines)


def _commands(commands: Iterable[CommandView]) -> str:
    lines: list[str] = []
    for item in commands:
        lines += [f"- {md_text(item.why)}".rstrip(), "", md_fence(item.command, indent=NEST)]
        lines += [f"{NEST}- {md_text(outcome)}" for outcome in item.outcomes]
    return "\n".join(lines)


def _warnings(view: View, words: Words) -> list[str]:
    if not view.warnings:
        return []
    lines = []
    for warning in view.warnings:
        parts = [warning.verdict, warning.explanation, *warning.notes, warning.where]
        text = " · ".join(md_text(part) for part in parts if part)
        link = " · " + md_link(words("word.source"), warning.url) if warning.url else ""
        lines.append(f"- {md_code(warning.setting)}: {text}{link}")
    return [f"### {words('heading.warnings')}", "\n".join(lines)]


def _cases(view: View, words: Words) -> list[str]:
    if not view.cases:
        return []
    lines = []
    for case in view.cases:
        title = md_link(case.title, case.url) if case.url else md_text(case.title)
        parts = [case.score, title, md_code(case.cause), md_text(case.status)]
        parts += [md_text(note) for note in case.notes]
        lines.append("- " + " · ".join(part for part in parts if part))
    return [f"### {words('heading.cases')}", "\n".join(lines)]


def _table(table: TableView) -> str:
    header, *body = table.rows
    lines = [header, ["---"] * len(header), *body]
    return "\n".join(
        "| " + " | ".join(cell if cell == "---" else md_text(cell) for cell in line) + " |"
        for line in lines
    )
