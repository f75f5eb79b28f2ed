"""The tools: each is one call of the service that the HTTP API and the command line make, too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import click
import msgspec

from app.api.schemas import (
    AddedEntries,
    EntryDetail,
    IncidentPage,
    SearchRequest,
    added_entries,
    entry_detail,
    note_summary,
)
from app.inputs.settings_files import read_settings_file
from app.inputs.uploads import upload_folder
from app.mcp.schemas import (
    AddArguments,
    DiagnoseArguments,
    IncidentsArguments,
    ItemAnswer,
    LintAnswer,
    LintArguments,
    NotePage,
    NotesArguments,
    ResolveArguments,
    ShowArguments,
)
from app.render.agent import render_for_agent, shortened, shortened_search
from app.render.item import find_item, render_item
from app.render.listing import render_note, render_search, render_warnings
from kb.errors import InputError
from kb.knowledge.labels import Words
from kb.text.language import answer_language, language_choice
from kb.types.answer import Diagnosis
from kb.types.entries import Entry, SearchResult
from kb.types.knowledge import Advice, Cause, Note
from kb.types.vocabulary import Language

if TYPE_CHECKING:
    from app.api.auth import Role
    from app.mcp.folders import AllowedFolders
    from kb.service import Service
    from kb.types.incident import LogReading

READ_S = 60.0  # for the files of one call: a client waits that long for an answer
WIDTH = 100  # cells of text answers
STEPS = ("agent.reading", "agent.weighing", "agent.asking", "agent.writing")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """What a tool works with: the service, the files it may read, who calls, and progress.

    `report` tells the caller how far the work is, in a line, and ends it where it was cancelled.
    """

    service: Service
    folders: AllowedFolders
    by: str
    report: Callable[[int, int, str], None]

    def words(self, language: Language | None, text: str = "") -> Words:
        """The labels in the language asked for, else that of the settings, else of `text`."""
        chosen = answer_language(language, self.service.settings.lang, text)
        return Words(self.service.knowledge.labels, chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """Short text, the same as a value, and the entries it names as (id, title)."""

    text: str
    value: object
    links: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolType:
    """A tool: its name and description, the types of arguments and answer, and what it does.

    A tool of another role than ``read`` writes.
    """

    name: str
    title: str
    description: str
    arguments: type[msgspec.Struct]
    answer: type
    run: Callable[[ToolCall, Any], ToolAnswer]
    role: Role = "read"


# --- diagnosing --------------------------------------------------------------------------------


def diagnose(call: ToolCall, wanted: DiagnoseArguments) -> ToolAnswer:
    """Read, weigh, ask the language model where that is wanted, and answer."""
    service = call.service
    words = call.words(wanted.lang, wanted.text)
    step = partial(_step, call, words)
    step(0)
    reading = _read(call, wanted)
    step(1)
    verdict = service.judge(reading, torch=wanted.torch)
    if wanted.wait and service.second_reader is not None:
        step(2)
        verdict = service.second_reader.read(verdict, wait_s=wanted.wait)
    step(3)
    language = language_choice(wanted.lang, service.settings.lang)
    diagnosis = service.render(verdict, language=language, top=wanted.top)
    shown = shortened(diagnosis) if wanted.detail == "short" else diagnosis
    words = Words(service.knowledge.labels, diagnosis.language)
    text = render_for_agent(diagnosis, words)
    if shown != diagnosis:
        text += "\n" + words("agent.shortened")
    links = tuple((case.id, case.title) for case in diagnosis.cases)
    return ToolAnswer(text=text, value=shown, links=links)


def _step(call: ToolCall, words: Words, number: int) -> None:
    call.report(number, len(STEPS), words(STEPS[number]))


def _read(call: ToolCall, wanted: DiagnoseArguments) -> LogReading:
    """What was handed in, as the files of one run."""
    paths, dumps = call.folders.paths(wanted.paths), call.folders.paths(wanted.dumps)
    if not paths and not dumps:
        if not wanted.text.strip():
            raise _nothing("text, paths, dumps")
        return call.service.read_text(wanted.text)
    with upload_folder() as folder:
        if wanted.text.strip():
            paths.insert(0, folder.add_text(wanted.text))
        return call.service.read_paths(paths, dumps=dumps, limit_s=READ_S)


def _nothing(arguments: str) -> InputError:
    return InputError(
        "there is nothing to read",
        todo=f"pass one of these arguments: {arguments}",
        reason="no_arguments",
        values={"arguments": arguments},
    )


def lint_settings(call: ToolCall, wanted: LintArguments) -> ToolAnswer:
    """What is wrong with settings, in texts and files."""
    texts = [wanted.text, *map(read_settings_file, call.folders.paths(wanted.paths))]
    text = "\n".join(filter(str.strip, texts))
    if not text:
        raise _nothing("text, paths")
    words = call.words(wanted.lang, text)
    warnings = call.service.lint(text, language=words.language, torch=wanted.torch)
    shown = click.unstyle(render_warnings(warnings, words, width=WIDTH))
    return ToolAnswer(text=shown, value=LintAnswer(warnings=warnings))


# --- looking things up -------------------------------------------------------------------------


def search(call: ToolCall, wanted: SearchRequest) -> ToolAnswer:
    """Entries like the query, and the settings and notes that answer it."""
    language = language_choice(wanted.lang, call.service.settings.lang)
    result = call.service.search(
        wanted.query, filters=wanted.filters, limit=wanted.limit, language=language
    )
    words = call.words(wanted.lang, wanted.query)
    links = [(hit.entry_id, hit.title.get(words.language)) for hit in result.hits]
    links += [(hit.note.id, hit.title) for hit in result.notes]
    text = _as_data(render_search(result, words, width=WIDTH), words)
    return ToolAnswer(text=text, value=shortened_search(result), links=tuple(links))


def show(call: ToolCall, wanted: ShowArguments) -> ToolAnswer:
    """All that stands under an id."""
    item, words = find_item(call.service, wanted.id), call.words(wanted.lang)
    text = _as_data(render_item(call.service, item, words, width=WIDTH), words)
    return ToolAnswer(text=text, value=item_answer(item))


def item_answer(item: Cause | Advice | Note | Entry) -> ItemAnswer:
    """What stands under an id, in the field of its kind."""
    if isinstance(item, Cause):
        return ItemAnswer(cause=item)
    if isinstance(item, Advice):
        return ItemAnswer(setting=item)
    if isinstance(item, Note):
        return ItemAnswer(note=item)
    return ItemAnswer(entry=entry_detail(item))


def _as_data(text: str, words: Words) -> str:
    """Stored text behind a line that says what it is."""
    return f"{words('agent.data')}\n\n{click.unstyle(text)}"


def notes(call: ToolCall, wanted: NotesArguments) -> ToolAnswer:
    """The notes that answer a question, whole; without one the titles of all, a page of them."""
    words = call.words(wanted.lang, wanted.question)
    if wanted.question.strip():
        hits = call.service.find_notes(wanted.question, words.language)
        listed = tuple(hit.note for hit in hits)
        texts = [click.unstyle(render_note(note, words, width=WIDTH)) for note in listed]
        total = len(listed)
    else:
        everything = call.service.knowledge.notes
        listed, total = everything[wanted.offset : wanted.offset + wanted.limit], len(everything)
        texts = [f"{note.id}: {note.title.get(words.language)}" for note in listed]
    page = NotePage(
        items=tuple(map(note_summary, listed)),
        total=total,
        offset=wanted.offset,
        next_offset=_following(wanted.offset, len(listed), total),
    )
    links = tuple((note.id, note.title.get(words.language)) for note in listed)
    text = "\n".join(texts) or words("agent.no_note")
    return ToolAnswer(text=_paged(text, page.next_offset, words), value=page, links=links)


def incidents(call: ToolCall, wanted: IncidentsArguments) -> ToolAnswer:
    """The team's incidents, the latest first, a page of them."""
    from kb.incidents.records import IncidentFilters, selected

    filters = IncidentFilters(
        cause=(wanted.cause,) if wanted.cause else (),
        host=(wanted.host,) if wanted.host else (),
        resolved=wanted.resolved,
    )
    every = selected(call.service.incidents(), filters)
    listed = every[wanted.offset : wanted.offset + wanted.limit]
    page = IncidentPage(
        items=listed,
        total=len(every),
        offset=wanted.offset,
        next_offset=_following(wanted.offset, len(listed), len(every)),
    )
    words = call.words(wanted.lang)
    rows = [
        f"{record.id}  {record.date}  {record.own_cause or record.cause}  "
        f"{record.title.get(words.language)}"
        for record in listed
    ]
    text = _as_data("\n".join(rows), words) if rows else words("agent.no_incident")
    links = tuple((record.id, record.title.get(words.language)) for record in listed)
    return ToolAnswer(text=_paged(text, page.next_offset, words), value=page, links=links)


def _following(offset: int, count: int, total: int) -> int | None:
    return offset + count if offset + count < total else None


def _paged(text: str, following: int | None, words: Words) -> str:
    return text if following is None else f"{text}\n{words('agent.more', offset=following)}"


# --- writing -----------------------------------------------------------------------------------


def add_incident(call: ToolCall, wanted: AddArguments) -> ToolAnswer:
    """Add a log as an incident of the team: redacted, tagged, searchable on return."""
    from app.inputs.contributions import add_files, add_text

    words = call.words(wanted.lang, wanted.text)
    if wanted.path:
        report = add_files(call.service, call.folders.paths([wanted.path]))
    elif wanted.text.strip():
        report = add_text(call.service, wanted.text, name=wanted.name)
    else:
        raise _nothing("text, path")
    titles = [
        (identifier, call.service.entry(identifier).title.get(words.language))
        for identifier in report.entries
    ]
    lines = [words("agent.added", id=identifier, title=title) for identifier, title in titles]
    value = added_entries(report, words)
    lines += [f"{item.name}: {item.reason}" for item in value.refused]
    return ToolAnswer(text="\n".join(lines), value=value, links=tuple(titles))


def resolve_incident(call: ToolCall, wanted: ResolveArguments) -> ToolAnswer:
    """Write down how an incident ended; it counts in answers from now on."""
    from app.inputs.contributions import Resolution, resolve

    fields = msgspec.structs.asdict(wanted)
    identifier, language = fields.pop("id"), fields.pop("lang")
    entry = resolve(call.service, identifier, Resolution(**fields), by=call.by)
    words = call.words(language, wanted.fix)
    text = words("incident.resolved", id=entry.id)
    link = (entry.id, entry.title.get(words.language))
    return ToolAnswer(text=text, value=entry_detail(entry), links=(link,))


TOOLS = (
    ToolType(
        name="diagnose",
        title="Diagnose a hang or timeout",
        description="Say what happened in the log of a distributed training or inference job that "
        "hung, timed out or crashed (NCCL, RCCL, HCCL, Gloo, TCPStore, DeepSpeed, vLLM, ...), the "
        "ranked root causes with evidence, what to do first, and similar public cases. Pass the "
        "log as text, or paths of all logs and dumps of one run (one file a rank is best).",
        arguments=DiagnoseArguments,
        answer=Diagnosis,
        run=diagnose,
    ),
    ToolType(
        name="search",
        title="Search the knowledge base",
        description="Find reviewed cases, the team's incidents, notes and settings for words, a "
        "question or a line of a log, in English or Chinese. `show` gives all of a hit.",
        arguments=SearchRequest,
        answer=SearchResult,
        run=search,
    ),
    ToolType(
        name="show",
        title="Show a case, cause, note, incident or setting",
        description="All that is known under an id that another tool named: a cause with its "
        "fixes and checks, a case with its sources, a note, an incident, or a setting such as "
        "TORCH_NCCL_BLOCKING_WAIT.",
        arguments=ShowArguments,
        answer=ItemAnswer,
        run=show,
    ),
    ToolType(
        name="lint_settings",
        title="Check settings",
        description="What is wrong with the settings (NCCL_*, TORCH_NCCL_*, GLOO_*, HCCL_*, ...) "
        "in a launch script, a configuration or an environment: without effect, renamed, "
        "contradicting each other. For advice you are about to give as well.",
        arguments=LintArguments,
        answer=LintAnswer,
        run=lint_settings,
    ),
    ToolType(
        name="notes",
        title="Answer a question from the notes",
        description="Short sourced answers to what people ask around a hang, such as how to raise "
        "a timeout in a framework or what a message means; without a question a list of all.",
        arguments=NotesArguments,
        answer=NotePage,
        run=notes,
    ),
    ToolType(
        name="incidents",
        title="List the team's incidents",
        description="The team's own incidents, the latest first: open or resolved, by cause, host.",
        arguments=IncidentsArguments,
        answer=IncidentPage,
        run=incidents,
    ),
    ToolType(
        name="add_incident",
        title="Add an incident",
        description="Keep a failed job's log as an incident of the team, secrets removed. Answers "
        "with its id. Ask the person before you add one.",
        arguments=AddArguments,
        answer=AddedEntries,
        run=add_incident,
        role="write",
    ),
    ToolType(
        name="resolve_incident",
        title="Resolve an incident",
        description="Write down the cause (an id of a cause, or own_cause in words) and the fix "
        "that helped; from then on whoever meets the same incident is told. Only what was "
        "confirmed: ask the person first.",
        arguments=ResolveArguments,
        answer=EntryDetail,
        run=resolve_incident,
        role="write",
    ),
)
TOOL_BY_NAME = {tool.name: tool for tool in TOOLS}
