"""A Diagnosis as a Slack message: verdict, culprit, causes, first fix, warnings, cases, buttons."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

from app.labels import Words
from app.slack import kit
from app.slack.handles import pack
from app.slack.types import Blocks, Handle, Message
from app.view import CaseView, CauseView, CommandView, EvidenceView, FixView, View, WarningView

CAUSES = 3  # causes with evidence in the answer; the rest stands behind the link
EVIDENCE = 3  # reasons a cause
CASES = 3  # cases in the answer; the button shows more
MORE_CASES = 8
WARNINGS = 4
FIXES = 4  # fixes a cause, behind the button
COMMANDS = 3  # commands of a fix


def diagnosis_message(view: View, words: Words, handle: Handle, *, public_url: str = "") -> Message:
    """The answer to a log."""
    blocks: Blocks = [kit.header(view.verdict)]
    if len(view.verdict) > kit.MAX_HEADER:
        blocks.append(kit.section(view.verdict))
    blocks += [kit.section(view.summary), *_happened(view, words)]
    blocks += _causes(view, words)
    blocks += _first_fix(view, words)
    blocks += _warnings(view, words)
    blocks += cases_blocks(view.cases[:CASES], words)
    blocks += _next(view, words)
    return kit.message(
        f"{view.verdict} — {view.summary}",
        blocks,
        last=_end(view, words, handle, public_url),
        cut=words("slack.cut"),
    )


def _end(view: View, words: Words, handle: Handle, public_url: str) -> Blocks:
    end: Blocks = [kit.context(view.footer)]
    if public_url.startswith(("http://", "https://")):
        address = f"{public_url.rstrip('/')}/?d={quote(handle.kept)}"
        end.insert(0, kit.rich(kit.line(kit.link(words("slack.full_answer"), address))))
    if view.causes:
        end.append(_buttons(view, words, handle))
    return end


def _buttons(view: View, words: Words, handle: Handle) -> kit.Element:
    value = pack(handle)
    buttons = judging_buttons(words, handle, named=view.status == "diagnosed")
    buttons.append(kit.button(words("slack.button_fixes"), "fixes", value))
    if view.cases:
        buttons.append(kit.button(words("slack.button_cases"), "cases", value))
    buttons.append(kit.button(words("slack.button_incident"), "incident", value))
    buttons.append(kit.button(words("slack.button_next"), "next_check", value))
    return kit.actions(buttons)


def judging_buttons(words: Words, handle: Handle, *, named: bool) -> list[kit.Element]:
    """Was it that cause? Where none is `named`, which one was it?"""
    value = pack(handle)
    if not named:
        return [kit.button(words("slack.button_known"), "wrong", value)]
    return [
        kit.button(words("slack.button_right"), "right", value, style="primary"),
        kit.button(words("slack.button_wrong"), "wrong", value),
    ]


def _happened(view: View, words: Words) -> Blocks:
    blocks: Blocks = []
    told = [f"{words('row.culprit')}: {culprit}" for culprit in view.culprits]
    told += [f"{row.label}: {row.value}" for row in view.facts]
    blocks += kit.fields(told[: kit.MAX_FIELDS])
    first = view.first_error
    if first is not None:
        title = kit.words(f"{words('row.first_error')}: {first.where}", bold=True)
        parts = [kit.line(title)]
        if first.text:
            parts.append(kit.code(first.text, limit=kit.MAX_QUOTE))
        blocks.append(kit.rich(*parts))
    return blocks


def _causes(view: View, words: Words) -> Blocks:
    shown = [cause for cause in view.causes[:CAUSES] if not cause.faint] or view.causes[:1]
    if not shown:
        return []
    blocks: Blocks = [kit.divider()]
    told: set[str] = set()
    for number, cause in enumerate(shown, start=1):
        title = kit.line(
            kit.words(f"{number}. {cause.title}", bold=True),
            kit.gap(f" · {cause.percent} · {cause.band}"),
        )
        reasons = [_evidence(item, words, told) for item in cause.evidence[:EVIDENCE]]
        blocks.append(kit.rich(title, *([kit.bullets(reasons)] if reasons else [])))
    blocks.append(kit.context(view.unknown, f"{words('heading.restart')}: {view.restart}"))
    return blocks


def _evidence(item: EvidenceView, words: Words, told: set[str]) -> list[kit.Element]:
    """One reason; a quote that was shown already is not shown again."""
    parts = [kit.words(item.where)]
    if item.against:
        parts.insert(0, kit.gap(f"({words('word.against')}) "))
    if item.quote and item.quote not in told:
        told.add(item.quote)
        parts += [kit.gap(" · "), kit.words(kit.fit(item.quote, kit.MAX_QUOTE), code=True)]
    if item.reason:
        parts += [kit.gap(" · "), kit.words(item.reason)]
    if item.url:
        parts += [kit.gap(" · "), kit.link(words("word.source"), item.url)]
    return parts


def _first_fix(view: View, words: Words) -> Blocks:
    fix = next((fix for cause in view.causes[:1] for fix in cause.fixes), None)
    if fix is None or view.status != "diagnosed":
        return []  # mending what is not known to be broken
    title = kit.rich(kit.line(kit.words(words("slack.first_fix"), bold=True)))
    return [kit.divider(), title, fix_block(fix, words)]


def fix_block(fix: FixView, words: Words) -> kit.Element:
    """A fix: title, steps, commands to copy, where it applies and what to beware of."""
    parts = [kit.line(kit.words(fix.title, bold=True), kit.gap(f" ({fix.status})"))]
    if fix.steps:
        parts.append(kit.bullets([[kit.words(step)] for step in fix.steps], ordered=True))
    parts += [kit.code(command) for command in fix.commands[:COMMANDS]]
    for note in fix.notes:
        parts.append(kit.line(kit.words(f"{note.label}: {note.value}")))
    links = [kit.link(f"{words('word.source')} {n}", url) for n, url in enumerate(fix.sources, 1)]
    if links:
        spaced = [part for item in links for part in (item, kit.gap())]
        parts.append(kit.line(*spaced[:-1]))
    return kit.rich(*parts)


def fixes_message(view: View, words: Words) -> Message:
    """All fixes of the leading causes."""
    blocks: Blocks = []
    for cause in view.causes[:CAUSES]:
        if cause.fixes and not (cause.faint and blocks):
            blocks.append(kit.header(f"{cause.title} · {cause.percent}"))
            blocks += [fix_block(fix, words) for fix in cause.fixes[:FIXES]]
            blocks += _checks(cause, words)
    title = words("slack.no_fixes") if not blocks else words("heading.fixes")
    return kit.message(title, blocks or [kit.section(title)], cut=words("slack.cut"))


def _checks(cause: CauseView, words: Words) -> Blocks:
    if not cause.checks:
        return []
    title = kit.rich(kit.line(kit.words(words("heading.checks"), bold=True)))
    return [title, *(_command(check) for check in cause.checks[:COMMANDS])]


def _command(item: CommandView) -> kit.Element:
    parts = [kit.line(kit.words(item.why)), kit.code(item.command)]
    if item.outcomes:
        parts.append(kit.bullets([[kit.words(outcome)] for outcome in item.outcomes]))
    return kit.rich(*parts)


def _warnings(view: View, words: Words) -> Blocks:
    if not view.warnings:
        return []
    shown = warning_lines(view.warnings[:WARNINGS], words)
    title = kit.line(kit.words(words("heading.warnings"), bold=True))
    return [kit.rich(title, kit.bullets(shown))]


def warning_lines(warnings: Iterable[WarningView], words: Words) -> list[list[kit.Element]]:
    """Settings to mind, one paragraph each."""
    lines = []
    for warning in warnings:
        told = (warning.verdict, warning.explanation, *warning.notes, warning.where)
        parts = [kit.words(warning.setting, code=True), kit.gap(" ")]
        parts.append(kit.words(" · ".join(part for part in told if part)))
        if warning.url:
            parts += [kit.gap(" · "), kit.link(words("word.source"), warning.url)]
        lines.append(parts)
    return lines


def cases_blocks(cases: Iterable[CaseView], words: Words) -> Blocks:
    """Similar cases with links, none for none."""
    lines = []
    for case in cases:
        parts = [kit.link(case.title, case.url)]
        told = (case.score, case.project, case.status, *case.notes)
        parts += [kit.gap(" · "), kit.words(" · ".join(part for part in told if part))]
        lines.append([*parts, kit.gap(" · "), kit.words(case.id, code=True)])
    if not lines:
        return []
    return [kit.rich(kit.line(kit.words(words("heading.cases"), bold=True)), kit.bullets(lines))]


def cases_message(view: View, words: Words) -> Message:
    """More of the similar cases."""
    blocks = cases_blocks(view.cases[:MORE_CASES], words)
    title = words("heading.cases") if blocks else words("word.no_match")
    blocks = [*blocks, kit.context(words("slack.case_hint"))] if blocks else [kit.section(title)]
    return kit.message(title, blocks, cut=words("slack.cut"))


def _next(view: View, words: Words) -> Blocks:
    """What to do where the evidence does not decide: the check that would, or what to collect."""
    if view.status == "diagnosed":
        return []
    items = ([view.best_check] if view.best_check else []) + list(view.next[:COMMANDS])
    if not items:
        return []
    title = kit.rich(kit.line(kit.words(words("heading.next"), bold=True)))
    return [title, *(_command(item) for item in items[:COMMANDS])]
