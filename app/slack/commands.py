"""`/timeout`: its verbs, each from what follows it to a message for the person alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from app.render.escape import plain, printable
from app.render.listing import entry_rows, hit_snippet, shown_sections
from app.render.present import search_notes
from app.slack.blocks import primitives as kit
from app.slack.blocks.diagnosis import fix_block, warning_lines
from app.slack.blocks.primitives import Block, Element, SlackMessage
from app.slack.requests import ChannelSettings
from kb.diagnose.rendering import answer_fix
from kb.text.redact import redact

if TYPE_CHECKING:
    from app.slack.requests import SlackRequest
    from app.slack.service_calls import ServiceCalls
    from kb.knowledge.labels import Words
    from kb.types.answer import SettingWarning
    from kb.types.entries import Entry, Hit, SearchResult
    from kb.types.knowledge import Cause, Fix
    from kb.types.vocabulary import Language

# What may stand first after /timeout; everything else is a text to diagnose.
VERBS = {
    "search": "search",
    "搜索": "search",
    "case": "case",
    "案例": "case",
    "lint": "lint",
    "检查": "lint",
    "settings": "settings",
    "设置": "settings",
    "help": "help",
    "帮助": "help",
}
SWITCHES = {"on": True, "off": False, "开": True, "关": False}
LANGUAGES: dict[str, Literal["", "zh", "en"]] = {"zh": "zh", "en": "en", "auto": ""}
HITS = 5
MAX_SNIPPET = 200
MAX_SECTION_TEXT = 1200  # of a case's section; the link has the rest
HELP = (
    ("@timeout-kb …", "slack.help_mention"),
    ("/timeout <text>", "slack.help_text"),
    ("/timeout search <text>", "slack.help_search"),
    ("/timeout case <id>", "slack.help_case"),
    ("/timeout lint NCCL_TIMEOUT=…", "slack.help_lint"),
    ("/timeout settings", "slack.help_settings"),
)


def parse(text: str) -> tuple[str, str]:
    """The verb typed after `/timeout` and what follows it; no verb for a text to diagnose."""
    first, _, rest = text.strip().partition(" ")
    if not first:
        return "help", ""
    verb = VERBS.get(first.lower(), "")
    # "case closed, but it hangs again ..." is no lookup: an id is one word.
    if verb == "case" and len(rest.split()) != 1:
        verb = "" if rest.strip() else "help"
    # On several lines stands a log, whatever its first word; settings to lint may have several.
    if "\n" in text.strip() and verb != "lint":
        verb = ""
    return verb, rest.strip() if verb else text.strip()


def answer_command(
    calls: ServiceCalls, request: SlackRequest, verb: str, rest: str
) -> SlackMessage:
    """The answer to a verb; blocks.

    Raises:
        KBError: what follows it is wrong.
    """
    channel = calls.channel(request.team, request.channel)
    language = calls.language(request.text, channel)
    words, service = calls.words(language), calls.service
    if verb == "settings":
        return _settings(calls, request, rest, language)
    if verb == "help" or not rest:
        return help_message(words)
    if verb == "search":
        return _search_message(service.search(rest, language=language), words)
    if verb == "lint":
        return _lint_message(service.lint(redact(rest)[0], language=language), words)
    cause = service.knowledge.cause_by_id.get(rest)
    return _cause_message(cause, words) if cause else _entry_message(service.entry(rest), words)


def _settings(
    calls: ServiceCalls, request: SlackRequest, rest: str, language: Language
) -> SlackMessage:
    words = calls.words(language)
    current = calls.channel(request.team, request.channel)
    if not rest:
        return _settings_message(current, words, changed=False)
    changed = changed_settings(current, rest)
    if changed is None:
        wrong = words("slack.wrong_setting", what=redact(rest)[0])
        return help_message(words, wrong=wrong)
    calls.set_channel(request.team, request.channel, changed)
    words = calls.words(changed.language or language)
    return _settings_message(changed, words, changed=True)


def changed_settings(current: ChannelSettings, rest: str) -> ChannelSettings | None:
    """The settings after ``NAME VALUE``, or None where that is none."""
    name, _, value = rest.strip().lower().partition(" ")
    value = value.strip()
    if name in ("language", "语言") and value in LANGUAGES:
        return replace(current, language=LANGUAGES[value])
    if name in ("auto", "ephemeral", "quiet") and value in SWITCHES:
        return replace(current, **{name: SWITCHES[value]})  # type: ignore[arg-type]
    return None


# --- messages ------------------------------------------------------------------------------------


def _search_message(result: SearchResult, words: Words) -> SlackMessage:
    """Hits, best first."""
    notes = [plain(note) for note in search_notes(result, words)]
    if not result.hits:
        return kit.notice(" ".join([*notes, words("word.no_match")]))
    title = words("heading.cases") if result.similar_enough else words("word.closest")
    lines = [_hit(hit, words) for hit in result.hits[:HITS]]
    context = " ".join([*notes, words("slack.case_hint")])
    blocks = [kit.titled(title, *kit.bullets(lines)), kit.context(context)]
    return kit.message(title, blocks, cut=words("slack.cut"))


def _hit(hit: Hit, words: Words) -> list[Element]:
    tags = [f"{hit.score:.2f}", hit.project, words.term("claim", hit.status), hit.cause]
    shown = " · ".join(plain(tag) for tag in tags if tag)
    title = kit.link(hit.title.get(words.language), hit.url)
    parts = [title, kit.text_run(shown), kit.text_run(hit.entry_id, code=True)]
    line = kit.joined(parts, " · ")
    if snippet := hit_snippet(hit):
        line += [kit.spacing("\n"), kit.text_run(kit.fit(snippet, MAX_SNIPPET))]
    return line


def _entry_message(entry: Entry, words: Words) -> SlackMessage:
    """A case or an imported entry, in one language."""
    title = entry.title.get(words.language)
    rows = [f"{words(name)}: {value}" for name, value in entry_rows(entry, words)]
    blocks = [kit.header(title), *kit.fields(rows)]
    for part in shown_sections(entry, words.language):
        if part.text.strip():
            text = kit.code(part.text, limit=MAX_SECTION_TEXT)
            blocks.append(kit.titled(part.title or part.role, text))
    blocks += _fixes(entry.fixes, words)
    page = kit.link(words("row.link"), entry.url)
    last = [kit.rich_text(kit.paragraph(page))] if entry.url else []
    return kit.message(title, blocks, last=last, cut=words("slack.cut"))


def _cause_message(cause: Cause, words: Words) -> SlackMessage:
    """A root cause: what it is, how it shows, what to do."""
    language = words.language
    title = cause.title.get(language)
    blocks = [kit.header(title), kit.section(cause.definition.get(language))]
    for name, points in (
        ("heading.shows", cause.shows),
        ("heading.confirms", cause.confirms),
        ("heading.refutes", cause.refutes),
    ):
        lines = kit.text_list(point.get(language) for point in points)
        blocks.append(kit.titled(words(name), *lines))
    return kit.message(title, [*blocks, *_fixes(cause.fixes, words)], cut=words("slack.cut"))


def _fixes(fixes: Iterable[Fix], words: Words) -> list[Block]:
    shown = (printable(answer_fix(fix, words)) for fix in fixes)
    blocks = [fix_block(fix, words) for fix in shown if fix.title]
    return [kit.titled(words("heading.fixes")), *blocks] if blocks else []


def _lint_message(warnings: Iterable[SettingWarning], words: Words) -> SlackMessage:
    """What is wrong with settings."""
    lines = warning_lines(map(printable, warnings), words)
    if not lines:
        return kit.notice(words("word.no_warnings"))
    title = words("heading.warnings")
    blocks = [kit.titled(title), *(kit.rich_text(*kit.bullets([line])) for line in lines)]
    return kit.message(title, blocks, cut=words("slack.cut"))


def _settings_message(settings: ChannelSettings, words: Words, *, changed: bool) -> SlackMessage:
    """What is set for the channel, and how to set it."""
    title = words("slack.settings_changed") if changed else words("slack.settings_title")
    shown = (
        (f"auto {_switch(settings.auto)}", "slack.about_auto"),
        (f"language {settings.language or 'auto'}", "slack.about_language"),
        (f"ephemeral {_switch(settings.ephemeral)}", "slack.about_ephemeral"),
        (f"quiet {_switch(settings.quiet)}", "slack.about_quiet"),
    )
    blocks = [_explained(title, shown, words), kit.context(words("slack.settings_hint"))]
    return kit.message(title, blocks)


def _switch(on: bool) -> str:
    return "on" if on else "off"


def help_message(words: Words, *, wrong: str = "") -> SlackMessage:
    """What the bot can do; after `wrong`, what was wrong."""
    title = words("slack.help_title")
    blocks = [kit.section(wrong)] if wrong else []
    blocks += [_explained(title, HELP, words), kit.context(words("slack.help_more"))]
    return kit.message(wrong or title, blocks)


def _explained(title: str, rows: Iterable[tuple[str, str]], words: Words) -> Block:
    """What can be typed, and the label that says what it does."""
    lines = [
        [kit.text_run(typed, code=True), kit.spacing(), kit.text_run(words(label))]
        for typed, label in rows
    ]
    return kit.titled(title, *kit.bullets(lines))
