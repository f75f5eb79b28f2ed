"""The diagnosis as Markdown, for an issue, a wiki page or a chat.

Quotes stand in code spans and fences that cannot be left from inside; prose is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.render import present
from app.render.escape import md_code, md_fence, md_link, md_text, printable, safe_url
from kb.knowledge.labels import Words
from kb.types.answer import AnswerCheck, AnswerFix, Diagnosis, Evidence, NextStep, RankedCause

NEST = "  "
FIXES = 4  # fixes a cause; the page and --full have the others


def render_markdown(diagnosis: Diagnosis, words: Words) -> str:
    """All of `diagnosis` as CommonMark (one table of GitHub's dialect where ranks are known)."""
    answer = printable(diagnosis)
    incident = answer.incident
    blocks = [f"## {md_text(present.verdict(answer, words))}", md_text(answer.summary)]
    blocks.append(_happened(answer, words))
    if answer.causes:
        blocks.append(f"### {words('heading.causes')}")
        for number, cause in enumerate(answer.causes, start=1):
            blocks += _cause(cause, number, words)
        blocks.append(md_text(present.unknown_share(answer, words)))
    blocks += [md_text(text) for text in present.second_reading(answer, words)]
    if answer.best_check:
        blocks += [f"### {words('heading.best_check')}", _checks([answer.best_check])]
    blocks += _warnings(answer, words)
    blocks.append(md_text(present.settings_line(answer, words)))
    blocks += _cases(answer, words)
    if answer.next:
        blocks += [f"### {words('heading.next')}", _checks(answer.next)]
    if incident.timeline:
        moments = (present.moment_text(moment, words) for moment in incident.timeline)
        items = "\n".join(f"- {md_text(moment)}" for moment in moments)
        blocks += [f"### {words('heading.timeline')}", items]
    table = present.rank_table(incident.ranks, words)
    if table:
        blocks += [f"### {words('heading.ranks')}", _table(table)]
    blocks.append(md_text(present.footer(answer, words)))
    return "\n\n".join(block for block in blocks if block) + "\n"


def _happened(answer: Diagnosis, words: Words) -> str:
    incident = answer.incident
    items = [
        f"- **{words('row.culprit')}**: {md_text(culprit)}"
        for culprit in present.culprits(incident, words)
    ]
    if incident.first_error:
        where = present.first_error_place(incident.first_error, words)
        items.append(f"- **{words('row.first_error')}**: {md_text(where)}")
        if incident.first_error.text:
            items.append(md_fence(incident.first_error.text, info="text", indent=NEST))
    items += [f"- **{label}**: {md_text(value)}" for label, value in present.facts(incident, words)]
    if answer.causes:
        advice = present.restart_advice(answer.causes[0], words)
        items.append(f"- **{words('heading.restart')}**: {md_text(advice)}")
    return "\n".join(items)


def _cause(cause: RankedCause, number: int, words: Words) -> list[str]:
    title = f"#### {number}\\. {md_text(cause.title)} · {present.cause_share(cause)}"
    blocks = [f"{title} ({md_code(cause.id)}, {md_text(words.term('band', cause.band))})"]
    if cause.evidence:
        blocks.append(f"**{words('heading.evidence')}**")
        shown: set[str] = set()
        blocks.append("\n".join(_evidence(item, words, shown) for item in cause.evidence))
    if cause.fixes:
        blocks.append(f"**{words('heading.fixes')}**")
        blocks += [_fix(fix, words) for fix in cause.fixes[:FIXES]]
    if cause.checks:
        blocks += [f"**{words('heading.checks')}**", _checks(cause.checks)]
    blocks.append(f"**{words('row.restart')}**: {md_text(present.restart_advice(cause, words))}")
    return blocks


def _evidence(item: Evidence, words: Words, shown: set[str]) -> str:
    """One reason; a quote that is among those `shown` is left out."""
    sign = f"({words('word.against')}) " if item.weight < 0 else ""
    quote = md_code(present.new_quote(item, shown))
    parts = [md_text(present.evidence_place(item, words)), quote, md_text(item.reason)]
    if safe_url(item.source):
        parts.append(md_link(words("word.source"), item.source))
    return f"- {sign}" + " · ".join(part for part in parts if part)


def _fix(fix: AnswerFix, words: Words) -> str:
    lines = [f"- **{md_text(fix.title)}** ({md_text(words.term('claim', fix.status))})"]
    lines += [f"{NEST}{number}. {md_text(step)}" for number, step in enumerate(fix.steps, start=1)]
    for command in fix.commands:
        lines += ["", md_fence(command, indent=NEST)]
    lines += [f"{NEST}- {name}: {md_text(text)}" for name, text in present.fix_notes(fix, words)]
    links = ", ".join(
        md_link(f"{words('word.source')} {number}", url)
        for number, url in enumerate(filter(safe_url, fix.sources), start=1)
    )
    return "\n".join([*lines, f"{NEST}- {links}"] if links else lines)


def _checks(commands: Iterable[AnswerCheck | NextStep]) -> str:
    lines: list[str] = []
    for item in commands:
        why, outcomes = present.check_parts(item)
        lines += [f"- {md_text(why)}".rstrip(), "", md_fence(item.command, indent=NEST)]
        lines += [f"{NEST}- {md_text(outcome)}" for outcome in outcomes]
    return "\n".join(lines)


def _warnings(answer: Diagnosis, words: Words) -> list[str]:
    if not answer.warnings:
        return []
    lines = []
    for warning in answer.warnings:
        parts = [present.warning_text(warning, words), present.place(warning, words)]
        text = " · ".join(md_text(part) for part in parts if part)
        source = safe_url(warning.source)
        link = " · " + md_link(words("word.source"), source) if source else ""
        lines.append(f"- {md_code(warning.setting)}: {text}{link}")
    return [f"### {words('heading.warnings')}", "\n".join(lines)]


def _cases(answer: Diagnosis, words: Words) -> list[str]:
    if not answer.cases:
        return []
    lines = []
    for case in answer.cases:
        url = safe_url(case.url)
        title = md_link(case.title, url) if url else md_text(case.title)
        status = md_text(words.term("claim", case.status))
        parts = [f"{case.score:.2f}", title, md_code(case.cause), status]
        parts += [md_text(note) for note in present.case_notes(case, words)]
        lines.append("- " + " · ".join(part for part in parts if part))
    return [f"### {words('heading.cases')}", "\n".join(lines)]


def _table(rows: Sequence[Sequence[str]]) -> str:
    header, *body = ["| " + " | ".join(map(md_text, row)) + " |" for row in rows]
    return "\n".join([header, "| " + " | ".join(["---"] * len(rows[0])) + " |", *body])
