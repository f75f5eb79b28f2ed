"""Answers as Slack messages: a diagnosis, what its buttons show, and what the chat says of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from urllib.parse import quote

from app.render import head, present
from app.render.escape import printable, safe_url
from app.slack.blocks import primitives as kit
from app.slack.blocks.primitives import Block, Element, SlackMessage
from app.slack.requests import OPTION, DiagnosisRef
from kb.chat.types import Citation, Question, Reply, Statement
from kb.knowledge.labels import Words
from kb.types.answer import (
    AnswerCheck,
    AnswerFix,
    Diagnosis,
    Evidence,
    NextStep,
    SettingWarning,
    SimilarCase,
)

CAUSES = 3  # causes with evidence in the answer; the rest stands behind the link
EVIDENCE = 3  # reasons a cause
CASES = 3  # cases in the answer; the button shows more
MORE_CASES = 8
WARNINGS = 4
FIXES = 4  # fixes a cause, behind the button
COMMANDS = 3  # commands of a fix
MAX_CITATIONS = 3  # shown a statement
MAX_OPTIONS = 9  # buttons of a question
BUTTON_LABELS = {
    "fixes": "slack.button_fixes",
    "cases": "slack.button_cases",
    "incident": "slack.button_incident",
    "next_check": "slack.button_next",
}


def diagnosis_message(
    diagnosis: Diagnosis,
    words: Words,
    ref: DiagnosisRef,
    *,
    public_url: str = "",
    model_address: str = "",
) -> SlackMessage:
    """The answer to a log.

    Args:
        diagnosis: with what a language model says of it, where it has read.
        words: labels in the language of the diagnosis.
        ref: what the buttons carry.
        public_url: of the web page; where it is set the message links to the diagnosis there.
        model_address: of a language model that still reads; empty where none does.
    """
    answer = printable(diagnosis)
    title = head.title(answer, words)
    blocks: list[Block] = [
        kit.rich_text(_linked(row)) for row in present.notices(answer.notices, words)
    ]
    blocks.append(kit.header(title))
    if len(title) > kit.MAX_HEADER:
        blocks.append(kit.section(title))
    if answer.status == "no_timeout":
        blocks.append(kit.section(words("head.paste_more")))
    blocks += [*_first_step(answer, words), *_met_before(answer, words)]
    blocks += [*_causes(answer, words), *_incident(answer, words)]
    if answer.warnings:
        shown = kit.bullets(warning_lines(answer.warnings[:WARNINGS], words))
        blocks.append(kit.titled(words("heading.warnings"), *shown))
    if settings := present.settings_line(answer, words):
        blocks.append(kit.context(settings))
    blocks += _cases(head.cases_not_met(answer)[:CASES], words)
    blocks += _next_steps(answer, words)
    last: list[Block] = []
    if model_address:
        last.append(kit.context(words("slack.model_reads", address=model_address)))
    elif second := present.second_reading(answer, words):
        last.append(kit.context(*second))
    if public_url:
        address = f"{public_url.rstrip('/')}/?d={quote(ref.saved_id)}"
        last.append(kit.rich_text(kit.paragraph(kit.link(words("slack.full_answer"), address))))
    last.append(kit.context(present.footer(answer, words)))
    if answer.causes:
        last.append(_buttons(answer, words, ref))
    text = " — ".join(filter(None, (title, head.certainty(answer, words))))
    return kit.message(text, blocks, last=last, cut=words("slack.cut"))


def _buttons(answer: Diagnosis, words: Words, ref: DiagnosisRef) -> Block:
    names = ["fixes", *(["cases"] if answer.cases else []), "incident", "next_check"]
    more = [kit.button(words(BUTTON_LABELS[name]), name, ref.encode()) for name in names]
    return kit.actions([*verdict_buttons(words, ref, named=answer.status == "diagnosed"), *more])


def verdict_buttons(words: Words, ref: DiagnosisRef, *, named: bool) -> list[Element]:
    """Was it that cause? Where none is `named`, which one was it?"""
    value = ref.encode()
    if not named:
        return [kit.button(words("slack.button_known"), "wrong", value)]
    return [
        kit.button(words("slack.button_right"), "right", value, style="primary"),
        kit.button(words("slack.button_wrong"), "wrong", value),
    ]


def _incident(answer: Diagnosis, words: Words) -> list[Block]:
    incident = answer.incident
    rows = [f"{words('row.culprit')}: {text}" for text in present.culprits(incident, words)]
    rows += [f"{label}: {value}" for label, value in present.facts(incident, words)]
    blocks = kit.fields(rows)
    first = incident.first_error
    if first is not None:
        where = present.first_error_place(first, words)
        quoted = [kit.code(first.text, limit=kit.MAX_QUOTE)] if first.text else []
        blocks.append(kit.titled(f"{words('row.first_error')}: {where}", *quoted))
    return blocks


def _linked(row: present.Row) -> Element:
    """A line of the team's, with the page it names."""
    text, url = row
    link = [kit.spacing(), kit.link(url, url)] if url else []
    return kit.paragraph(kit.text_run(text), *link)


def _causes(answer: Diagnosis, words: Words) -> list[Block]:
    likely = [cause for cause in answer.causes[:CAUSES] if not present.is_faint(cause)]
    shown = likely or answer.causes[:1]
    if not shown:
        return []
    blocks = [kit.DIVIDER]
    quotes: set[str] = set()
    for number, cause in enumerate(shown, start=1):
        title = kit.text_run(f"{number}. {cause.title}", bold=True)
        share = f" · {present.cause_share(cause)} · {words.term('band', cause.band)}"
        reasons = [_evidence(item, words, quotes) for item in cause.evidence[:EVIDENCE]]
        line = kit.paragraph(title, kit.spacing(share))
        blocks.append(kit.rich_text(line, *kit.bullets(reasons)))
    notes = [present.unknown_share(answer, words)]
    if not head.names_another_cause(answer):
        notes.append(f"{words('heading.restart')}: {present.restart_advice(shown[0], words)}")
    blocks.append(kit.context(*notes))
    return blocks


def _evidence(item: Evidence, words: Words, quotes: set[str]) -> list[Element]:
    """One reason; a quote that was shown already is not shown again."""
    parts = [kit.text_run(present.evidence_place(item, words))]
    if quoted := present.new_quote(item, quotes):
        parts.append(kit.text_run(kit.fit(quoted, kit.MAX_QUOTE), code=True))
    if item.reason:
        parts.append(kit.text_run(item.reason))
    parts += _source(item.source, words)
    against = [kit.spacing(f"({words('word.against')}) ")] if item.weight < 0 else []
    return [*against, *kit.joined(parts, " · ")]


def _source(address: str, words: Words) -> list[Element]:
    return [kit.link(words("word.source"), address)] if safe_url(address) else []


def _first_step(answer: Diagnosis, words: Words) -> list[Block]:
    """What to do first, of a fix all of it; nothing where nothing is known to do."""
    step, fix, check = answer.first_fix, head.first_answer_fix(answer), answer.best_check
    if step is None:
        return []
    if fix is not None:
        pages = [
            kit.rich_text(_linked(row))
            for row in present.runbooks(answer.causes[0].runbooks, words)
        ]
        return [kit.titled(head.first_label(answer, words)), fix_block(fix, words), *pages]
    if check is not None and step.kind == "check":
        return _commands(f"head.{step.kind}", [check], words)
    return _commands(f"head.{step.kind}", [NextStep(command=step.command, why=step.title)], words)


def _met_before(answer: Diagnosis, words: Words) -> list[Block]:
    met, address = head.met_before(answer, words), head.met_address(answer)
    if not met:
        return []
    source = [kit.link(words("word.source"), address)] if address else []
    parts = kit.joined([kit.text_run(met), *source], " · ")
    return [kit.titled(head.met_label(answer, words), kit.paragraph(*parts))]


def fix_block(fix: AnswerFix, words: Words) -> Block:
    """A fix: title, steps, commands to copy, where it applies and what to beware of."""
    status = kit.spacing(f" ({words.term('claim', fix.status)})")
    parts = [kit.paragraph(kit.text_run(fix.title, bold=True), status)]
    parts += kit.text_list(fix.steps, style="ordered")
    parts += [kit.code(command) for command in fix.commands[:COMMANDS]]
    for label, text in present.fix_notes(fix, words):
        parts.append(kit.paragraph(kit.text_run(f"{label}: {text}")))
    urls = filter(safe_url, fix.sources)
    links = [kit.link(f"{words('word.source')} {n}", url) for n, url in enumerate(urls, 1)]
    if links:
        parts.append(kit.paragraph(*kit.joined(links, " ")))
    return kit.rich_text(*parts)


def fixes_message(diagnosis: Diagnosis, words: Words) -> SlackMessage:
    """All fixes of the leading causes."""
    blocks: list[Block] = []
    for cause in printable(diagnosis).causes[:CAUSES]:
        if cause.fixes and not (present.is_faint(cause) and blocks):
            blocks.append(kit.header(f"{cause.title} · {present.cause_share(cause)}"))
            blocks += [fix_block(fix, words) for fix in cause.fixes[:FIXES]]
            blocks += _commands("heading.checks", cause.checks, words)
    if not blocks:
        return kit.notice(words("slack.no_fixes"))
    return kit.message(words("heading.fixes"), blocks, cut=words("slack.cut"))


def _commands(heading: str, items: Sequence[AnswerCheck | NextStep], words: Words) -> list[Block]:
    """Commands to run, what for and what their outcomes mean; none for none."""
    blocks = [kit.titled(words(heading))] if items else []
    for item in items[:COMMANDS]:
        why, outcomes = present.check_parts(item)
        why_line = kit.paragraph(kit.text_run(why))
        blocks.append(kit.rich_text(why_line, kit.code(item.command), *kit.text_list(outcomes)))
    return blocks


def warning_lines(warnings: Iterable[SettingWarning], words: Words) -> list[list[Element]]:
    """Settings to mind, one paragraph each."""
    lines = []
    for warning in warnings:
        texts = (present.warning_text(warning, words), present.place(warning, words))
        shown = kit.text_run(" · ".join(filter(None, texts)))
        parts = kit.joined([shown, *_source(warning.source, words)], " · ")
        lines.append([kit.text_run(warning.setting, code=True), kit.spacing(), *parts])
    return lines


def _cases(cases: Sequence[SimilarCase], words: Words) -> list[Block]:
    """Similar cases with links, none for none."""
    lines = []
    for case in cases:
        tags = (f"{case.score:.2f}", case.project, words.term("claim", case.status))
        notes = kit.text_run(" · ".join(filter(None, (*tags, *present.case_notes(case, words)))))
        parts = [kit.link(case.title, case.url), notes, kit.text_run(case.id, code=True)]
        lines.append(kit.joined(parts, " · "))
    return [kit.titled(words("heading.cases"), *kit.bullets(lines))] if lines else []


def cases_message(diagnosis: Diagnosis, words: Words) -> SlackMessage:
    """More of the similar cases."""
    blocks = _cases(printable(diagnosis).cases[:MORE_CASES], words)
    if not blocks:
        return kit.notice(words("word.no_match"))
    hint = kit.context(words("slack.case_hint"))
    return kit.message(words("heading.cases"), [*blocks, hint], cut=words("slack.cut"))


def _next_steps(answer: Diagnosis, words: Words) -> list[Block]:
    """What to do where the evidence does not decide: the check that would, or what to collect."""
    if answer.status == "diagnosed":
        return []
    check = head.check_after_first(answer)
    best = [check] if check else []
    return _commands("heading.next", [*best, *head.steps_after_first(answer)], words)


# --- what the chat says --------------------------------------------------------------------------


def reply_message(
    reply: Reply, words: Words, *, judged: DiagnosisRef | None = None
) -> SlackMessage:
    """A reply, statement by statement with what it rests on, then the question.

    `judged` is the diagnosis the person spoke about as right or wrong: buttons keep that.
    """
    blocks = [_statement(item, words) for item in reply.statements]
    texts = [item.text for item in reply.statements]
    last: list[Block] = []
    if reply.suggestions:
        last.append(kit.context(words("slack.try", what=" · ".join(reply.suggestions))))
    if reply.question:
        blocks += [kit.DIVIDER, _question(reply.question)]
        texts.append(reply.question.text)
        last.append(_options(reply.question, reply))
    if judged:
        last.append(kit.actions(verdict_buttons(words, judged, named=bool(judged.cause))))
    text = " ".join(texts)
    return kit.message(text, blocks or [kit.section(text)], last=last, cut=words("slack.cut"))


def _statement(item: Statement, words: Words) -> Block:
    bold = {"bold": True} if item.role in ("verdict", "change") else {}
    parts = [kit.paragraph(kit.text_run(item.text, **bold), *_citations(item, words))]
    if item.command:
        parts.append(kit.code(item.command))
    return kit.rich_text(*parts)


def _citations(item: Statement, words: Words) -> list[Element]:
    """What a statement rests on, in brackets; what it names itself is left out."""
    shown: list[Element] = []
    for citation in item.citations:
        one = _citation(citation, words)
        if one and one not in shown and one["text"].casefold() not in item.text.casefold():
            shown.append(one)
    if not shown:
        return []
    return [kit.spacing(" ("), *kit.joined(shown[:MAX_CITATIONS], ", "), kit.spacing(")")]


def _citation(citation: Citation, words: Words) -> Element | None:
    if safe_url(citation.url):
        return kit.link(citation.id or words("word.source"), citation.url)
    if citation.line:
        return kit.text_run(present.place(citation, words))
    return kit.text_run(citation.id, code=True) if citation.id else None


def _question(question: Question) -> Block:
    command = [kit.code(question.command)] if question.command else []
    options = [
        kit.paragraph(kit.text_run(f"{item.number}. {item.text}")) for item in question.options
    ]
    return kit.titled(question.text, *command, *options)


def _options(question: Question, reply: Reply) -> Block:
    """One button an option; its number comes back as if it was typed."""
    ref = DiagnosisRef(saved_id="", language=reply.language, conversation=reply.conversation)
    numbers = [str(item.number) for item in question.options[:MAX_OPTIONS]]
    return kit.actions([kit.button(n, f"{OPTION}{n}", ref.encode()) for n in numbers])
