"""`timeout-kb evaluate`: how good retrieval and diagnosis are, how much the knowledge covers."""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.cli.common import State, format_option, note, write_json
from app.cli.evaluate_search import Figures, Tables, case_queries, retrieval, today

if TYPE_CHECKING:
    from kb.service import Service

MANY_CASES = 3  # projects with fewer would fill a page
WHAT = (
    "knowledge",
    "retrieval",
    "diagnosis",
    "fixes",
    "alike",
    "statements",
    "notes",
    "first-sight",
    "second-reader",
)
NEED_THREADS = ("diagnosis", "fixes", "alike")
READ_FILES = ("retrieval", "fixes", "statements", "notes", "first-sight", "second-reader")
REPORTED = ("diagnosis", "retrieval")
LANGUAGES = ("zh", "en")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """What one measure is asked with."""

    service: Service
    threads: Path | None
    file: Path | None
    show: bool

    @property
    def labelled(self) -> Path:
        """The threads, which `_check_usage` has seen."""
        if self.threads is None:
            raise click.UsageError("add --threads FILE")
        return self.threads


@click.command("evaluate")
@click.argument("what", type=click.Choice(WHAT), required=False)
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option(
    "--threads",
    type=click.Path(path_type=Path),
    help="Labelled threads, one JSON object a line; diagnosis and fixes are measured on them, and "
    "retrieval on them too.",
)
@click.option(
    "--minilm/--no-minilm",
    default=True,
    show_default=True,
    help="With `retrieval`, also measure all-MiniLM-L6-v2; it takes minutes.",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the figures to this folder: with `diagnosis` REPORT.md, plots and a line of the "
    "history, and figures.json, which `retrieval` writes its part of too.",
)
@click.option(
    "--negatives",
    type=click.Path(path_type=Path, file_okay=False),
    help="With `--report`, folder of *.log in which nothing timed out: false alarms are counted.",
)
@click.option(
    "--show",
    is_flag=True,
    help="With `statements`, list the sentences read wrongly; with `fixes`, the threads missed; "
    "with `alike`, the cases of another cause; with `notes`, the questions answered wrongly; "
    "with `retrieval` and a FILE, the queries whose case is not first.",
)
@click.option(
    "--record",
    metavar="NAME",
    help="With `first-sight`, write the figures to data/golden/first_sight.jsonl under this name.",
)
@format_option("text", "json")
@click.pass_context
def command(
    context: click.Context,
    what: str | None,
    file: Path | None,
    threads: Path | None,
    minilm: bool,
    report: Path | None,
    negatives: Path | None,
    show: bool,
    record: str | None,
    form: str,
) -> None:
    """Measure WHAT: all but first-sight and second-reader where it is not given.

    Retrieval is measured on the judged queries of data/golden, or on those of FILE, one JSON object
    a line with q, lang, kind and the case that answers. Each incident of the threads is
    diagnosed by weights that never saw its project and without its own case. Fixes: whether what
    helped in a thread, by FILE or else data/golden/fixes.jsonl, is shown first or among three, all
    told and where the cause is right. Alike: whether the cases shown beside the answers have the
    thread's cause. Statements are read in labelled sentences of FILE, one JSON
    object a line: those of data/golden where none is named. Notes: whether questions of FILE, or
    else data/golden/note_questions.jsonl, find the note that answers them. First-sight asks a FILE
    of fresh threads, one JSON object a line with url, date, lang, cause, text and log; each once,
    before anything is learned from it. Second-reader asks the language model that is set about the
    reports of data/golden and keeps how far it is to be trusted; with --threads and a FILE of
    answers it gave to these (id and p, by cause), it shows what both readers reach together.
    """
    state = context.find_object(State) or State()
    given = {
        "first-sight": file,
        "second-reader": None,
        **dict.fromkeys(NEED_THREADS, threads),
    }
    chosen = [what] if what else [name for name in WHAT if given.get(name, name)]
    _check_usage(what, chosen, threads=threads, file=file, report=report, record=record)
    figures: dict[str, Figures | Tables] = {}
    with state.service() as service:
        request = _Request(service=service, threads=threads, file=file, show=show)
        for name in chosen:
            if name == "retrieval" and file is None:
                figures |= retrieval(
                    service, state.settings, threads, minilm=minilm and what == name, report=report
                )
            elif name == "retrieval" and file is not None:
                figures[name] = case_queries(
                    service, state.settings, file, minilm=minilm, show=show
                )
            elif name == "diagnosis" and threads is not None:
                figures[name] = _diagnosis(state, threads, report, negatives)
            elif name == "first-sight" and file is not None:
                figures[name] = _first_sight(service, file, record)
            else:
                figures[name] = MEASURES[name](request)
    if form == "json":
        write_json(figures)
        return
    from app.render.columns import paragraphs

    blocks = [
        [click.style(group, bold=True), *_lines(values)]
        for groups in figures.values()
        for group, values in groups.items()
    ]
    click.echo(paragraphs(blocks), nl=False, color=state.colour)


def _check_usage(
    what: str | None,
    chosen: Sequence[str],
    *,
    threads: Path | None,
    file: Path | None,
    report: Path | None,
    record: str | None,
) -> None:
    """Refuse options and files that what is measured has no use for, or lacks."""
    if what in NEED_THREADS and threads is None:
        raise click.UsageError(f"{what} is measured on labelled threads: add --threads FILE")
    if report is not None and not set(REPORTED) & set(chosen):
        raise click.UsageError(f"--report is of {' and '.join(REPORTED)}, not of {what}")
    if file is not None and what not in READ_FILES:
        raise click.UsageError(f"only {' and '.join(READ_FILES)} read a file, not {what}")
    if what == "second-reader" and file is not None and threads is None:
        raise click.UsageError("recorded answers are judged on labelled threads: add --threads")
    if what == "first-sight" and file is None:
        raise click.UsageError("first-sight asks a file of fresh threads: name it")
    if record is not None and what != "first-sight":
        raise click.UsageError(f"--record is of first-sight, not of {what}")


def _lines(values: Mapping[str, str | dict[str, str]]) -> list[str]:
    """A list of figures as two columns, a table with its header."""
    from app.render.columns import columns

    rows: list[tuple[str, ...]] = []
    for name, value in values.items():
        if isinstance(value, str):
            rows.append((f"  {name}", value))
            continue
        if not rows:
            rows.append(("", *value))
        rows.append((f"  {name}", *value.values()))
    return columns(rows)


def _statements(service: Service, sentences: Path | None, *, show: bool) -> Figures:
    """How many labelled sentences are read right; with `show` what is wrong with the others."""
    from kb.evaluation.statements import (
        SENTENCES,
        judge_sentences,
        load_sentences,
        misses,
        statement_figures,
    )

    path = sentences or service.settings.data / "golden" / SENTENCES
    judged = judge_sentences(service.engine.statements, load_sentences(path))
    return statement_figures(judged) | ({"read wrongly": misses(judged)} if show else {})


def _fixes(service: Service, threads: Path, path: Path | None, *, show: bool) -> Figures | Tables:
    """Whether what helped is shown; with `show` what is shown instead."""
    from kb.evaluation.known_fixes import (
        APART,
        GOLDEN_FIXES,
        TUNED,
        ask_fixes,
        fix_figures,
        load_known_fixes,
        missed,
    )
    from kb.train.threads import load_threads

    known = load_known_fixes(
        path or service.settings.data / "golden" / GOLDEN_FIXES, service.knowledge
    )
    asked = ask_fixes(service, load_threads(threads), known)
    if show:
        return {
            "fixes that are not among the first three under their cause": {
                item.thread: f"{', '.join(item.known) or '-'}: {', '.join(item.under_cause) or '-'}"
                for item in missed(asked)
            }
        }
    halves = {half: [item for item in asked if item.half == half] for half in (TUNED, APART)}
    return {
        f"fixes: threads {name}": {
            row: {"first": str(first), "among three": str(three)}
            for row, (first, three) in fix_figures(some).items()
        }
        for name, some in {"in all": asked, **halves}.items()
    }


def _alike(service: Service, threads: Path, *, show: bool) -> Figures | Tables:
    """Whether the cases shown are alike; with `show` those that are not."""
    from kb.evaluation.alike import alike_figures, not_alike, shown_cases
    from kb.train.threads import load_threads

    shown = shown_cases(service, load_threads(threads))
    if show:
        return {
            "cases of another cause that are shown": {
                f"{one.thread} {one.case}": f"{one.score:.2f} {one.cause}, not {one.causes[0]}"
                for one in not_alike(shown)
            }
        }
    return {"cases shown that are alike": {k: str(v) for k, v in alike_figures(shown).items()}}


def _notes(service: Service, path: Path | None, *, show: bool) -> Figures | Tables:
    """Whether questions find the notes that answer them; with `show` what is shown instead."""
    from kb.evaluation.known_fixes import APART, TUNED
    from kb.evaluation.note_questions import (
        NOTE_QUESTIONS,
        ask_notes,
        load_note_questions,
        note_figures,
        wrong_answers,
    )

    file = path or service.settings.data / "golden" / NOTE_QUESTIONS
    asked = ask_notes(service, load_note_questions(file, service.knowledge))
    if show:
        return {
            "questions answered wrongly": {
                item.question.question: f"{', '.join(item.question.notes) or '-'}: "
                f"{', '.join(item.shown) or '-'}"
                for item in wrong_answers(asked)
            }
        }
    parts = {
        "in all": asked,
        **{half: [item for item in asked if item.half == half] for half in (TUNED, APART)},
        **{code: [item for item in asked if item.question.language == code] for code in LANGUAGES},
    }
    columns = {name: note_figures(part) for name, part in parts.items()}
    return {
        f"notes: {len(asked)} questions": {
            row: {name: figures[row].text(2, 2) for name, figures in columns.items()}
            for row in columns["in all"]
        }
    }


def _first_sight(service: Service, path: Path, name: str | None) -> Figures:
    """A batch of fresh threads, asked once; with `name` it goes on record."""
    from kb.evaluation.first_sight import (
        FIRST_SIGHT_TITLES,
        append_record,
        ask,
        load_batch,
        record_of,
    )

    asked = ask(service, load_batch(path))
    record = record_of(
        asked, batch=name or path.stem, date=today(), version=service.knowledge.digest[:12]
    )
    if name:
        append_record(service.settings.data / "golden", record)
    figures = {
        FIRST_SIGHT_TITLES[key]: f"{mean:.3f} ({low:.2f}-{high:.2f})"
        for key, (mean, low, high) in record.figures.items()
    }
    sizes = {"threads": f"{record.posts}, {record.zh} in Chinese, {record.recent} of two years"}
    return {f"first sight: {record.batch}": sizes | figures}


def _second_reader(service: Service) -> Figures:
    """What the language model is worth; how far it is trusted is kept in the state folder."""
    from kb.evaluation.second_reader import load_golden_reports, measure_trust, read_twice
    from kb.second_reader.asking import MeasuredTrust, save_trust

    reader = service.second_reader
    if reader is None:
        raise click.UsageError("no language model is set: see TIMEOUT_KB_LLM_BASE_URL")
    reports = load_golden_reports(service.settings.data / "golden")
    pairs = read_twice(service, reader, reports)
    measured = measure_trust(pairs)
    if not measured.answered:
        raise click.ClickException(
            f"{reader.model} at {reader.address} answered none of {len(pairs)} reports; "
            "timeout-kb diagnose says why"
        )
    kept = MeasuredTrust(trust=measured.trust, reports=measured.answered, date=today().isoformat())
    path = save_trust(service.settings.home, reader.model, kept)
    note(f"wrote {path}")
    return {
        f"second reader: {reader.model}": {
            "answered": f"{measured.answered} of {len(pairs)} reports",
            "first is right, ours alone": str(measured.ours),
            "first is right, the model alone": str(measured.model),
            "first is right, both": str(measured.both),
            "trust": f"{measured.trust:.2f}",
            "tokens": str(measured.tokens),
        }
    }


def _recorded_answers(service: Service, threads: Path, answers: Path) -> Tables:
    """What ours, a model and both reach on threads it was asked about; and what bad ones cost."""
    from kb.evaluation.second_reader import (
        PooledFigures,
        bad_models,
        load_answers,
        pooled_figures,
        read_recorded,
    )
    from kb.second_reader.answer import UNTESTED_TRUST
    from kb.train.threads import load_threads

    pairs = read_recorded(service, load_threads(threads), load_answers(answers))
    if not pairs:
        raise click.UsageError(f"{answers} has no answer to a thread of {threads}")
    usual = UNTESTED_TRUST
    rows: dict[str, PooledFigures] = {
        "ours": pooled_figures(pairs, 0.0),
        "the model": pooled_figures(pairs, None),
        "both, trust 1": pooled_figures(pairs, 1.0),
        f"both, trust {usual}": pooled_figures(pairs, usual),
    }
    for kind, bad in bad_models(pairs).items():
        rows[f"{kind}, trust {usual}"] = pooled_figures(bad, usual)
    return {
        f"second reader: {len(pairs)} recorded answers": {
            name: {"first": str(row.first), "three": str(row.three), "brier": f"{row.brier:.3f}"}
            for name, row in rows.items()
        }
    }


def _knowledge(service: Service) -> Figures:
    """What is known and how it is spread; a cause without a case shows as 0."""
    knowledge = service.knowledge
    by_cause = Counter(claim.id for case in knowledge.cases for claim in case.causes[:1])
    sizes = {
        "causes": len(knowledge.causes),
        "patterns": len(knowledge.patterns),
        "cues": len(knowledge.cues),
        "settings": len(knowledge.advice),
        "cases": len(knowledge.cases),
        "notes": len(knowledge.notes),
        "projects": len({case.project for case in knowledge.cases}),
    }
    return {
        "knowledge": {name: str(count) for name, count in sizes.items()},
        "cases by cause": {cause.id: str(by_cause[cause.id]) for cause in knowledge.causes},
        "cases by standing": _spread(case.status for case in knowledge.cases),
        "cases by backend": _spread(case.tags.backend or "none" for case in knowledge.cases),
        "cases by language": _spread(case.language for case in knowledge.cases),
        "cases by year first seen": _spread(case.date[:4] for case in knowledge.cases),
        "projects with three cases or more": {
            project: count
            for project, count in _spread(case.project for case in knowledge.cases).items()
            if int(count) >= MANY_CASES
        },
    }


def _spread(values: Iterable[str]) -> dict[str, str]:
    """How often each value stands there, by value."""
    return {value: str(count) for value, count in sorted(Counter(values).items())}


def _diagnosis(state: State, threads: Path, report: Path | None, negatives: Path | None) -> Figures:
    """Held-out quality of the ranking of causes; with `report` everything else, written there."""
    from kb.evaluation.figures import TITLES
    from kb.evaluation.measure import held_out, measure
    from kb.train.threads import load_threads

    labelled = load_threads(threads)
    with _shipped_only(state) as service:
        if report is None:
            figures = held_out(service, labelled)
        else:
            from kb.evaluation.report import write_report

            measured = measure(service, labelled, negatives)
            figures = measured.figures
            for path in write_report(measured, report, date=today().isoformat()):
                note(f"wrote {path}")
    return {"diagnosis, held out": {title: str(figures[name]) for name, title in TITLES.items()}}


@contextlib.contextmanager
def _shipped_only(state: State) -> Iterator[Service]:
    """A knowledge base of the shipped data alone, so that two runs see the same cases."""
    with tempfile.TemporaryDirectory(prefix="timeout-kb-") as folder:
        service = state.open_service(
            replace(state.settings, home=Path(folder), site=None), notify=note
        )
        try:
            yield service
        finally:
            service.close()


def _read_again(request: _Request) -> Figures | Tables:
    """What the second reader does, or did where its answers are on record."""
    if request.threads is not None and request.file is not None:
        return _recorded_answers(request.service, request.threads, request.file)
    return _second_reader(request.service)


MEASURES: Mapping[str, Callable[[_Request], Figures | Tables]] = {
    "knowledge": lambda request: _knowledge(request.service),
    "fixes": lambda request: _fixes(
        request.service, request.labelled, request.file, show=request.show
    ),
    "alike": lambda request: _alike(request.service, request.labelled, show=request.show),
    "statements": lambda request: _statements(request.service, request.file, show=request.show),
    "notes": lambda request: _notes(request.service, request.file, show=request.show),
    "second-reader": _read_again,
}
