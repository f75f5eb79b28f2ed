"""Answers to `/timeout search`, `case`, `lint`, `settings` and `help`, and small notices."""

from __future__ import annotations

from collections.abc import Iterable

from app.failure import told
from app.labels import Words
from app.present import warning_view
from app.quoting import plain
from app.slack import kit
from app.slack.diagnosis_blocks import warning_lines
from app.slack.types import Blocks, ChannelSettings, Message
from kb.errors import KBError
from kb.logs.redact import redact
from kb.types import Cause, Entry, Fix, Hit, SearchResult, SettingWarning

HITS = 5
MAX_SNIPPET = 200
MAX_SECTION_TEXT = 1200  # of a case's section; the link has the rest
COMMANDS = 3


def notice(text: str) -> Message:
    """A sentence."""
    return kit.message(text, [kit.section(text)])


def trouble(error: KBError, words: Words) -> Message:
    """An expected failure: what was wrong, and the next step; secrets in it redacted."""
    failure = told(error, words)
    text, todo = words("slack.trouble", what=redact(failure.what)[0]), redact(failure.todo)[0]
    return kit.message(text, [kit.section(text), *([kit.context(todo)] if todo else [])])


def search_message(result: SearchResult, words: Words) -> Message:
    """Hits, best first."""
    hits = result.hits[:HITS]
    if not hits:
        return notice(words("word.no_match"))
    title = words("heading.cases") if result.similar_enough else words("word.closest")
    rows = [_hit(hit, words) for hit in hits]
    blocks: Blocks = [
        kit.rich(kit.line(kit.words(title, bold=True)), *rows),
        kit.context(words("slack.case_hint")),
    ]
    return kit.message(title, blocks, cut=words("slack.cut"))


def _hit(hit: Hit, words: Words) -> kit.Element:
    title = plain(hit.title.get(words.language))
    told = [f"{hit.score:.2f}", hit.project, words.term("claim", hit.status), hit.cause]
    parts = [kit.link(title, hit.url), kit.gap(" · ")]
    parts.append(kit.words(" · ".join(plain(item) for item in told if item)))
    parts += [kit.gap(" · "), kit.words(hit.entry_id, code=True)]
    snippet = plain(hit.snippet).removeprefix(title).strip()
    if snippet:
        parts += [kit.gap("\n"), kit.words(kit.fit(snippet, MAX_SNIPPET))]
    return kit.bullets([parts])


def entry_message(entry: Entry, words: Words) -> Message:
    """A case or an imported entry, in one language."""
    language = words.language
    title = plain(entry.title.get(language))
    causes = words.listing([plain(claim.id) for claim in entry.causes])
    rows = [
        (words("row.project"), plain(entry.project)),
        (words("row.cause"), causes),
        (words("row.status"), words.term("claim", entry.status)),
        (words("row.date"), plain(entry.date)),
    ]
    blocks: Blocks = [kit.header(title)]
    blocks += kit.fields([f"{label}: {value}" for label, value in rows if value])
    there = {section.language for section in entry.sections}
    shown = language if language in there else min(there, default=language)
    for section in entry.sections:
        if section.language == shown and section.text.strip():
            head = kit.line(kit.words(section.title or section.role, bold=True))
            blocks.append(kit.rich(head, kit.code(section.text, limit=MAX_SECTION_TEXT)))
    blocks += _fixes(entry.fixes, words)
    last = [kit.rich(kit.line(kit.link(words("row.link"), entry.url)))] if entry.url else []
    return kit.message(title, blocks, last=last, cut=words("slack.cut"))


def cause_message(cause: Cause, words: Words) -> Message:
    """A root cause: what it is, how it shows, what to do."""
    language = words.language
    title = cause.title.get(language)
    blocks: Blocks = [kit.header(title), kit.section(cause.definition.get(language))]
    for name, points in (
        ("heading.shows", cause.shows),
        ("heading.confirms", cause.confirms),
        ("heading.refutes", cause.refutes),
    ):
        lines = [[kit.words(point.get(language))] for point in points]
        head = kit.line(kit.words(words(name), bold=True))
        blocks.append(kit.rich(head, *([kit.bullets(lines)] if lines else [])))
    return kit.message(title, [*blocks, *_fixes(cause.fixes, words)], cut=words("slack.cut"))


def _fixes(fixes: Iterable[Fix], words: Words) -> Blocks:
    blocks: Blocks = []
    for fix in fixes:
        title = plain(fix.title.get(words.language))
        if not title:
            continue
        parts = [kit.line(kit.words(title, bold=True))]
        steps = [[kit.words(step.get(words.language))] for step in fix.steps]
        if steps:
            parts.append(kit.bullets(steps, ordered=True))
        parts += [kit.code(command) for command in fix.commands[:COMMANDS]]
        blocks.append(kit.rich(*parts))
    if not blocks:
        return []
    return [kit.rich(kit.line(kit.words(words("heading.fixes"), bold=True))), *blocks]


def lint_message(warnings: Iterable[SettingWarning], words: Words) -> Message:
    """What is wrong with settings."""
    views = [warning_view(warning, words) for warning in warnings]
    if not views:
        return notice(words("word.no_warnings"))
    title = words("heading.warnings")
    lines = [kit.bullets([one]) for one in warning_lines(views, words)]
    blocks: Blocks = [kit.rich(kit.line(kit.words(title, bold=True)))]
    blocks += [kit.rich(one) for one in lines]
    return kit.message(title, blocks, cut=words("slack.cut"))


def settings_message(settings: ChannelSettings, words: Words, *, changed: bool) -> Message:
    """What is set for the channel, and how to set it."""
    title = words("slack.settings_changed") if changed else words("slack.settings_title")
    language = settings.language or "auto"
    rows = [
        (f"auto {_switch(settings.auto)}", words("slack.about_auto")),
        (f"language {language}", words("slack.about_language")),
        (f"ephemeral {_switch(settings.ephemeral)}", words("slack.about_ephemeral")),
        (f"quiet {_switch(settings.quiet)}", words("slack.about_quiet")),
    ]
    lines = [[kit.words(name, code=True), kit.gap(" "), kit.words(what)] for name, what in rows]
    head = kit.line(kit.words(title, bold=True))
    hint = kit.context(words("slack.settings_hint"))
    return kit.message(title, [kit.rich(head, kit.bullets(lines)), hint])


def _switch(on: bool) -> str:
    return "on" if on else "off"


def help_message(words: Words, *, wrong: str = "") -> Message:
    """What the bot can do; after `wrong`, what was wrong."""
    rows = (
        ("@timeout-kb …", "slack.help_mention"),
        ("/timeout <text>", "slack.help_text"),
        ("/timeout search <text>", "slack.help_search"),
        ("/timeout case <id>", "slack.help_case"),
        ("/timeout lint NCCL_TIMEOUT=…", "slack.help_lint"),
        ("/timeout settings", "slack.help_settings"),
    )
    lines = [
        [kit.words(name, code=True), kit.gap(" "), kit.words(words(what))] for name, what in rows
    ]
    blocks: Blocks = [kit.section(wrong)] if wrong else []
    blocks.append(
        kit.rich(kit.line(kit.words(words("slack.help_title"), bold=True)), kit.bullets(lines))
    )
    blocks.append(kit.context(words("slack.help_more")))
    return kit.message(wrong or words("slack.help_title"), blocks)
