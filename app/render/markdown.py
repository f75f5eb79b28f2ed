"""The diagnosis as Markdown to be pasted into an issue: what matters first, the rest folded.

Quotes stand in code spans and fences that cannot be left from inside; prose is escaped. The only
HTML are the lines that fold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.render import head, present
from app.render.escape import md_code, md_fence, md_link, md_text, printable, safe_url
from kb.knowledge.labels import Words
from kb.types.answer import AnswerCheck, AnswerFix, Diagnosis, Evidence, NextStep

MAX_LINES = 120  # an issue of this length is still read
EVIDENCE = 4  # reasons of the likeliest cause that are not folded
CULPRITS = 4
WARNINGS = 4
CASES = 5
RANK_ROWS = 16
NEST = "  "
FIXES = 4  # fixes a cause; the page and --full have the others


def render_markdown(diagnosis: Diagnosis, words: Words) -> str:
    """`diagnosis` as CommonMark of at most `MAX_LINES` lines.

    One table of GitHub's dialect where ranks are known. What has no room is left out from the end
    of the folded part, and said to be.
    """
    answer = printable(diagnosis)
    shown = {case.title for case in answer.cases}  # quotes that stand elsewhere
    if answer.incident.first_error is not None:
        shown.add(answer.incident.first_error.text)
    blocks = [f"> {_linked(text, url)}" for text, url in present.notices(answer.notices, words)]
    blocks += [f"## {md_text(head.title(answer, words))}", *_first(answer, words)]
    blocks.append(_happened(answer, words))
    blocks += _causes(answer, words, shown)
    blocks += [md_text(text) for text in present.second_reading(answer, words)]
    if check := head.check_after_first(answer):
        blocks += [f"### {words('heading.best_check')}", _checks([check])]
    blocks += _warnings(answer, words)
    blocks.append(md_text(present.settings_line(answer, words)))
    blocks += _cases(answer, words)
    last = [md_text(present.footer(answer, words))]
    folded = _folded(answer, words, shown)
    return _joined(_fitting(blocks, folded, last, words))


def _joined(blocks: Iterable[str]) -> str:
    return "\n\n".join(block for block in blocks if block) + "\n"


def _fitting(blocks: list[str], folded: list[str], last: list[str], words: Words) -> list[str]:
    """All blocks, of those `folded` as many as there is room for."""
    count = len(folded)
    while True:
        note = [md_text(words("head.shortened"))] if count < len(folded) else []
        summary = f"<details>\n<summary>{words('head.rest')}</summary>"
        rest = [summary, *folded[:count], "</details>"] if count else []
        made = [*blocks, *rest, *note, *last]
        if not count or _joined(made).count("\n") <= MAX_LINES:
            return made
        count -= 1


def _first(answer: Diagnosis, words: Words) -> list[str]:
    """The first step, how sure the cause is and why, the same incident met before."""
    if answer.status == "no_timeout":
        return [md_text(words("head.paste_more"))]
    blocks = []
    step, fix, check = answer.first_fix, head.first_answer_fix(answer), answer.best_check
    if step is not None:
        label = f"**{md_text(head.first_label(answer, words))}**"
        if fix is not None:
            blocks += [label, _fix(fix, words)]
        elif check is not None and step.kind == "check":
            blocks += [label, _checks([check])]
        else:
            blocks += [label, _checks([NextStep(command=step.command, why=step.title)])]
    if answer.causes:
        pages = present.runbooks(answer.causes[0].runbooks, words)
        blocks += [f"- {_linked(title, url)}" for title, url in pages]
    if sure := head.certainty(answer, words):
        blocks.append(f"**{words('head.certainty')}**: {md_text(sure)}")
    if met := head.met_before(answer, words):
        address = head.met_address(answer)
        link = " · " + md_link(words("word.source"), address) if address else ""
        blocks.append(f"**{md_text(head.met_label(answer, words))}**: {md_text(met)}{link}")
    return blocks


def _causes(answer: Diagnosis, words: Words, shown: set[str]) -> list[str]:
    """The evidence of the likeliest cause, then the others, a line each."""
    if not answer.causes:
        return []
    lead, *others = answer.causes
    blocks = []
    if lead.evidence:
        blocks.append(f"### {words('heading.evidence')}")
        fresh = present.fresh_evidence(lead.evidence[:EVIDENCE], shown)
        blocks.append("\n".join(_proof(item, quote, words) for item, quote in fresh))
    rows = [
        f"- {present.cause_share(cause)} {md_text(cause.title)} ({md_code(cause.id)})"
        for cause in others
    ]
    rows.append(f"- {md_text(present.unknown_share(answer, words))}")
    return [*blocks, f"### {words('head.others')}", "\n".join(rows)]


def _proof(item: Evidence, quote: str, words: Words) -> str:
    """One reason, its quote in a block of its own."""
    reason = _evidence(item, "", words)
    return f"{reason}\n\n{md_fence(quote, info='text', indent=NEST)}" if quote else reason


def _folded(answer: Diagnosis, words: Words, shown: set[str]) -> list[str]:
    """What is worth keeping with an issue and not worth reading first."""
    first = head.first_answer_fix(answer)
    commands = {answer.first_fix.command} if answer.first_fix else set()
    if answer.best_check is not None:
        commands.add(answer.best_check.command)
    blocks: list[str] = []
    for number, cause in enumerate(answer.causes, start=1):
        fixes = [_fix(fix, words) for fix in cause.fixes[:FIXES] if fix != first]
        checks = [check for check in cause.checks if check.command not in commands]
        commands |= {check.command for check in checks}
        rest = cause.evidence[EVIDENCE:] if number == 1 else cause.evidence
        fresh = present.fresh_evidence(rest, shown)
        reasons = "\n".join(_evidence(item, quote, words) for item, quote in fresh)
        section = [reasons] if reasons else []
        section += _under(f"**{words('heading.fixes')}**", fixes)
        section += _under(f"**{words('heading.checks')}**", [_checks([one]) for one in checks])
        advice = md_text(present.restart_advice(cause, words))
        section.append(f"**{words('row.restart')}**: {advice}")
        blocks += _under(f"#### {number}\\. {md_text(cause.title)}", section)
    if steps := [step for step in head.steps_after_first(answer) if step.command not in commands]:
        blocks += _under(f"#### {words('heading.next')}", [_checks([step]) for step in steps])
    if answer.incident.timeline:
        moments = (present.moment_text(moment, words) for moment in answer.incident.timeline)
        items = "\n".join(f"- {md_text(moment)}" for moment in moments)
        blocks += _under(f"#### {words('heading.timeline')}", [items])
    if table := present.rank_table(answer.incident.ranks[:RANK_ROWS], words):
        blocks += _under(f"#### {words('heading.ranks')}", [_table(table)])
    return blocks


def _happened(answer: Diagnosis, words: Words) -> str:
    incident = answer.incident
    items = [
        f"- **{words('row.culprit')}**: {md_text(culprit)}"
        for culprit in present.culprits(incident, words)[:CULPRITS]
    ]
    if incident.first_error:
        where = present.first_error_place(incident.first_error, words)
        items.append(f"- **{words('row.first_error')}**: {md_text(where)}")
        if incident.first_error.text:
            items.append(md_fence(incident.first_error.text, info="text", indent=NEST))
    items += [f"- **{label}**: {md_text(value)}" for label, value in present.facts(incident, words)]
    return "\n".join(items)


def _under(title: str, blocks: Sequence[str]) -> list[str]:
    """Blocks, the first of them under the title, which never stands alone; none for none."""
    return [f"{title}\n\n{blocks[0]}", *blocks[1:]] if blocks else []


def _linked(text: str, url: str) -> str:
    return md_link(text, url) if url else md_text(text)


def _evidence(item: Evidence, quote: str, words: Words) -> str:
    """One reason with where it stands, its quote and its source."""
    sign = f"({words('word.against')}) " if item.weight < 0 else ""
    parts = [md_text(present.evidence_place(item, words)), md_code(quote), md_text(item.reason)]
    if safe_url(item.source):
        parts.append(md_link(words("word.source"), item.source))
    return f"- {sign}" + " · ".join(part for part in parts if part)


def _fix(fix: AnswerFix, words: Words) -> str:
    lines = [f"- **{md_text(fix.title)}** ({md_text(words.term('claim', fix.status))})"]
    lines += [f"{NEST}{number}. {md_text(step)}" for number, step in enumerate(fix.steps, start=1)]
    single = all("\n" not in command for command in fix.commands)
    for command in ["\n".join(fix.commands)] if single and fix.commands else fix.commands:
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
    for warning in answer.warnings[:WARNINGS]:
        parts = [present.warning_text(warning, words), present.place(warning, words)]
        text = " · ".join(md_text(part) for part in parts if part)
        source = safe_url(warning.source)
        link = " · " + md_link(words("word.source"), source) if source else ""
        lines.append(f"- {md_code(warning.setting)}: {text}{link}")
    return [f"### {words('heading.warnings')}", "\n".join(lines)]


def _cases(answer: Diagnosis, words: Words) -> list[str]:
    cases = head.cases_not_met(answer)[:CASES]
    if not cases:
        return []
    lines = []
    for case in cases:
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
