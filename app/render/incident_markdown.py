"""Incidents as Markdown, for a wiki page or a review."""

from __future__ import annotations

from collections.abc import Iterable

from app.render.escape import md_code, md_fence, md_link, md_text, safe_url
from app.render.listing import entry_rows
from kb.knowledge.labels import Words
from kb.types.entries import Entry


def render_incidents(entries: Iterable[Entry], words: Words) -> str:
    """Each incident with its outcome and its log, in one language, as CommonMark."""
    return "\n".join(_incident(entry, words) for entry in entries)


def _incident(entry: Entry, words: Words) -> str:
    rows = [f"- **{words('row.id')}**: {md_code(entry.id)}"]
    rows += [f"- **{words(name)}**: {_value(value)}" for name, value in entry_rows(entry, words)]
    blocks = [f"## {md_text(entry.title.get(words.language))}", "\n".join(rows)]
    for fix in entry.fixes:
        blocks.append(f"### {words('heading.fixes')}: {md_text(fix.title.get(words.language))}")
        blocks += [md_fence(command) for command in fix.commands]
    for section in entry.sections:
        if section.role != "fixes":  # told by the fixes
            title = section.title or words("heading.description")
            blocks += [f"### {md_text(title)}", md_fence(section.text, info="text")]
    if entry.signature:
        blocks += [f"### {words('heading.signature')}", md_fence("\n".join(entry.signature))]
    return "\n\n".join(blocks) + "\n"


def _value(text: str) -> str:
    return md_link(text, text) if safe_url(text) else md_text(text)
