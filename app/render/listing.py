"""Search results, entries, causes and setting warnings as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

from app.render import present
from app.render.columns import hang, paragraphs, wrap
from app.render.escape import plain, plain_block, printable, safe_url
from app.render.terminal import (
    INDENT,
    command_lines,
    copyable,
    fix_lines,
    heading,
    led,
    warning_lines,
)
from kb.diagnose.rendering import answer_fix, answer_runbooks
from kb.knowledge.labels import Words
from kb.types.answer import AnswerCheck, AnswerNotice, SettingWarning
from kb.types.entries import Entry, Hit, NoteHit, RankPlace, SearchResult, Section
from kb.types.knowledge import Advice, Bilingual, Cause, Fix, Note
from kb.types.vocabulary import Language

SNIPPET_LINES = 2  # enough to recognise a hit; `show` tells the rest
LISTED_FACETS = ("cause", "framework", "backend", "stage", "kind")
FACET_VALUES = 5
LISTED_NOTES = 8  # of a cause or a setting; the search finds the others


def render_search(result: SearchResult, words: Words, *, width: int) -> str:
    """Hits best first, then what the result can be narrowed down to."""
    blocks = [render_setting(item, words, width=width) for item in result.settings]
    blocks += [_note_hit(hit, words, width) for hit in result.notes]
    if notes := present.search_notes(result, words):
        blocks.append([plain(note) for note in notes])
    if not result.hits:
        return paragraphs([*blocks, [words("word.no_match")]])
    if not (result.similar_enough or result.settings or result.notes):
        blocks.append([click.style(words("word.closest"), fg="yellow")])
    blocks += [_hit(hit, words, width) for hit in result.hits]
    blocks.append(_facets(result.facets, words, width))
    return paragraphs(blocks)


def render_setting(item: Advice, words: Words, *, width: int) -> list[str]:
    """A setting: what it does, who reads it, what is wrong with it, and the page that says so."""
    lead = f"{plain(item.id)}: "
    lines = led(lead, plain(item.effect.get(words.language)), width, bold=True)
    for name, value in setting_rows(item, words):
        lines += hang(f"{INDENT}{words(name)}: ", value, width)
    return lines + [
        INDENT + click.style(url, underline=True) for url in source_links(item.sources[:1])
    ]


def setting_rows(item: Advice, words: Words) -> list[tuple[str, str]]:
    """What is known of a setting: name of the label and value, rows without a value left out."""
    defaults = [
        f"{value.value} ({', '.join(value.versions)})" if value.versions else value.value
        for value in item.defaults
    ]
    rows = [
        ("row.read_by", plain(item.read_by) or words("word.nobody")),
        ("row.default", plain(words.listing(defaults))),
        ("row.instead", plain(item.replaced_by)),
    ]
    # what holds only for some value is the advice check's to tell
    for rule in item.rules:
        if not rule.value and rule.verdict != "contradicts":
            scope = f" ({', '.join(rule.versions)})" if rule.versions else ""
            verdict = f"{words.term('warning', rule.verdict)}{scope} · "
            rows.append(("row.mind", plain(verdict + rule.explanation.get(words.language))))
    if item.risk is not None:
        rows.append(("row.caution", plain(item.risk.get(words.language))))
    return [(name, value) for name, value in rows if value]


def _hit(hit: Hit, words: Words, width: int) -> list[str]:
    title = plain(hit.title.get(words.language))
    lines = [click.style(line, bold=True) for line in hang(f"{hit.score:.2f}  ", title, width)]
    tags = [hit.entry_id, words.term("kind", hit.kind), hit.project, hit.cause]
    tags.append(words.term("claim", hit.status))
    lines += hang("      ", " · ".join(plain(tag) for tag in tags if tag), width)
    snippet = hit_snippet(hit)
    if snippet:
        lines += hang("      ", snippet, width)[:SNIPPET_LINES]
    if safe_url(hit.url):
        lines.append("      " + click.style(hit.url, underline=True))
    return lines


def _note_hit(hit: NoteHit, words: Words, width: int) -> list[str]:
    lines = [
        click.style(line, bold=True) for line in hang(f"{hit.score:.2f}  ", plain(hit.title), width)
    ]
    lines += hang("      ", f"{hit.note.id} · {words('word.note')}", width)
    return lines + hang("      ", note_lead(hit.note, words.language), width)[:SNIPPET_LINES]


def note_lead(note: Note, language: Language) -> str:
    """How a note begins, on one line."""
    return plain(next(iter(note.body.get(language).splitlines()), ""))


def hit_snippet(hit: Hit) -> str:
    """The piece of the entry that was found, without the title it may begin with."""
    snippet = plain(hit.snippet)
    for title in (hit.title.zh, hit.title.en):  # it may be in the other language than the reader's
        snippet = snippet.removeprefix(plain(title)).strip()
    return snippet


def _facets(facets: Mapping[str, Mapping[str, int]], words: Words, width: int) -> list[str]:
    lines = []
    for name in LISTED_FACETS:
        counts = sorted(facets.get(name, {}).items(), key=lambda pair: (-pair[1], pair[0]))
        if len(counts) > 1:
            shown = ", ".join(f"{plain(value)} {count}" for value, count in counts[:FACET_VALUES])
            lines += hang(f"  {name}: ", shown, width)
    return [click.style(words("heading.facets"), bold=True), *lines] if lines else []


def render_entry(entry: Entry, words: Words, *, width: int) -> str:
    """One entry with its tags, sections and the standing of its claims, in one language."""
    rows = [
        line
        for name, value in entry_rows(entry, words)
        for line in hang(f"{words(name)}: ", value, width)
    ]
    claims = [
        line
        for claim in entry.claims
        for line in hang(
            f"  {words.term('claim', claim.status)}: ",
            plain(claim.text.get(words.language)),
            width,
        )
    ]
    return paragraphs(
        [
            _title(plain(entry.title.get(words.language)), width),
            rows,
            *(
                [heading(plain(section.title)), *_block(section.text, width)]
                for section in shown_sections(entry, words.language)
            ),
            _fixes(entry.fixes, words, width),
            _under(words("heading.claims"), claims),
            _under(words("heading.signature"), [f"  {plain(line)}" for line in entry.signature]),
            _sources([source.url for source in entry.sources], words),
        ]
    )


def render_note(note: Note, words: Words, *, width: int) -> str:
    """One note: what it answers, for which versions, what confirms it, and what was run."""
    rows = [
        line
        for name, value in note_rows(note, words)
        for line in hang(f"{words(name)}: ", value, width)
    ]
    sources = [
        line
        for source in note.sources
        if safe_url(source.url)
        for line in (f"  {source.url}", *hang(INDENT, plain(source.confirms), width))
    ]
    return paragraphs(
        [
            _title(plain(note.title.get(words.language)), width),
            rows,
            _block(note.body.get(words.language), width),
            _under(words("heading.sources"), sources),
            _under(words("heading.was_run"), [f"  {plain(line)}" for line in note_runs(note)]),
        ]
    )


def note_rows(note: Note, words: Words) -> list[tuple[str, str]]:
    """What a note is about: name of the label and value, rows without a value left out."""
    rows = (
        ("row.status", f"{words('word.note')}, {words.term('claim', note.status)}"),
        ("row.versions", words.listing([plain(item) for item in note.versions])),
        ("row.where", words.listing([plain(item) for item in note.frameworks])),
        ("row.settings", words.listing([plain(item) for item in note.settings])),
        ("row.cause", words.listing([plain(item) for item in note.causes])),
    )
    return [(name, value) for name, value in rows if value]


def note_runs(note: Note) -> list[str]:
    """What was run for a note, each with the version it was run with."""
    return [f"{item.command} ({item.version})" for item in note.run]


def note_list(notes: Sequence[Note], words: Words, width: int) -> list[str]:
    """The notes about something under their heading: titles with ids; nothing without notes."""
    lines = [
        line
        for note in notes[:LISTED_NOTES]
        for line in hang("  - ", f"{plain(note.title.get(words.language))}  [{note.id}]", width)
    ]
    return _under(words("heading.notes"), lines)


def shown_sections(entry: Entry, language: Language) -> tuple[Section, ...]:
    """The sections in `language`; those in the other one where there are none.

    Only cases say everything in both languages; of any other entry all of it is shown, but for
    what was handed in: an excerpt stands for that.
    """
    if entry.kind != "case":
        return tuple(section for section in entry.sections if section.role != "input")
    there = {section.language for section in entry.sections}
    shown = language if language in there else min(there, default=language)
    return tuple(section for section in entry.sections if section.language == shown)


def entry_rows(entry: Entry, words: Words) -> list[tuple[str, str]]:
    """What an entry is about: name of the label and value, rows without a value left out."""
    causes = [f"{claim.id} ({words.term('claim', claim.status)})" for claim in entry.causes]
    if entry.own_cause:
        causes.insert(0, plain(entry.own_cause))
    tags = entry.tags
    versions = [f"{name} {version}" for name, version in tags.versions.items()]
    where = [*tags.frameworks, tags.backend, *tags.ops, *tags.hardware, *versions]
    if tags.stage != "unknown":
        where.append(words.term("stage", tags.stage))
    rows = (
        ("row.project", plain(entry.project)),
        ("row.cause", words.listing(causes)),
        ("row.log_name", plain(entry.log_name)),
        ("row.culprit", words.listing(place_text(place) for place in entry.culprits)),
        ("row.labels", words.listing([plain(label) for label in entry.labels])),
        ("row.resolved", _moment(entry.resolved_on, entry.resolved_by)),
        ("row.corrected", _moment(entry.corrected_on, entry.corrected_by)),
        ("row.merged", words.listing(entry.merged)),
        ("row.status", f"{words.term('kind', entry.kind)}, {words.term('claim', entry.status)}"),
        ("row.where", words.listing([plain(item) for item in where])),
        ("row.date", plain(entry.date)),
        ("row.link", safe_url(entry.url)),
    )
    return [(name, value) for name, value in rows if value]


def _moment(when: str, who: str) -> str:
    return " · ".join(filter(None, (when, plain(who))))


def place_text(place: RankPlace) -> str:
    """A culprit in short: ``rank 3 @ gpu-07 GPU 3 (1b:00)``."""
    rank = "" if place.rank is None else f"rank {place.rank}"
    where = " ".join(filter(None, (plain(place.host), place.gpu and f"GPU {plain(place.gpu)}")))
    return " @ ".join(filter(None, (rank, where)))


def text_blocks(text: str) -> list[tuple[bool, list[str]]]:
    """The lines of `text` in runs of prose (False) and code (True: indented or fenced)."""
    blocks: list[tuple[bool, list[str]]] = []
    fenced = False
    for line in plain_block(text).split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            continue
        code = fenced or line.startswith(INDENT)
        if not blocks or blocks[-1][0] != code:
            blocks.append((code, []))
        blocks[-1][1].append(line)
    return blocks


def _block(text: str, width: int) -> list[str]:
    """Prose wrapped, code (indented or fenced) as it stands."""
    lines: list[str] = []
    for code, block in text_blocks(text):
        for line in block:
            lines += [INDENT + line] if code else hang("  ", line, width)
    return lines


def _title(text: str, width: int) -> list[str]:
    return [click.style(line, bold=True) for line in wrap(text, width)]


def _under(title: str, lines: Sequence[str]) -> list[str]:
    """Lines under a heading; nothing where there are none."""
    return [heading(title), *lines] if lines else []


def _fixes(fixes: Sequence[Fix], words: Words, width: int) -> list[str]:
    shown = (printable(answer_fix(fix, words)) for fix in fixes)
    return _under(
        words("heading.fixes"), [line for fix in shown for line in fix_lines(fix, words, width)]
    )


def _sources(urls: Sequence[str], words: Words) -> list[str]:
    return _under(words("heading.sources"), [f"  {url}" for url in source_links(urls)])


def source_links(urls: Sequence[str]) -> list[str]:
    """The addresses that may be linked, each once."""
    return [url for url in dict.fromkeys(urls) if safe_url(url)]


def render_cause(
    cause: Cause,
    words: Words,
    *,
    width: int,
    notes: Sequence[Note] = (),
    notices: Sequence[AnswerNotice] = (),
) -> str:
    """One root cause: what it is, how it shows, how to tell and what to do; notes about it.

    `notices` are the team's that are due.
    """
    language = words.language
    team = [
        *present.notices(notices, words),
        *present.runbooks(answer_runbooks(cause, words), words),
    ]
    checks = [
        AnswerCheck(
            command=check.command,
            tells=check.tells.get(language),
            outcomes=tuple(outcome.observation.get(language) for outcome in check.outcomes),
        )
        for check in cause.checks
    ]
    advice = words(
        "word.reason",
        what=words.term("restart", cause.restart),
        reason=plain(cause.restart_reason.get(language)),
    )
    collect = [
        line
        for item in cause.collect
        for line in [
            *hang("  - ", plain(item.why.get(language)), width),
            *copyable([plain_block(item.command)]),
        ]
    ]
    return paragraphs(
        [
            _title(f"{plain(cause.title.get(language))}  [{cause.id}]", width),
            [line for row in team for line in wrap(plain(" ".join(filter(None, row))), width)],
            wrap(plain(cause.definition.get(language)), width),
            hang(f"{words('heading.restart')}: ", advice, width),
            _points("heading.shows", cause.shows, words, width),
            _points("heading.confirms", cause.confirms, words, width),
            _points("heading.refutes", cause.refutes, words, width),
            _fixes(cause.fixes, words, width),
            _under(
                words("heading.checks"),
                [line for check in checks for line in command_lines(printable(check), width)],
            ),
            _under(words("heading.collect"), collect),
            note_list(notes, words, width),
            _sources(cause.sources, words),
        ]
    )


def _points(name: str, points: Sequence[Bilingual], words: Words, width: int) -> list[str]:
    lines = [hang("  - ", plain(point.get(words.language)), width) for point in points]
    return _under(words(name), [line for point in lines for line in point])


def render_warnings(warnings: Sequence[SettingWarning], words: Words, *, width: int) -> str:
    """What is wrong with settings, one paragraph each."""
    blocks = []
    for warning in map(printable, warnings):
        lines = warning_lines(warning, words, width)
        if url := safe_url(warning.source):
            lines.append(" " * len(f"! {warning.setting}: ") + click.style(url, underline=True))
        blocks.append(lines)
    return paragraphs(blocks or [[words("word.no_warnings")]])
