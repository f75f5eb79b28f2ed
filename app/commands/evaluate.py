"""`timeout-kb evaluate`: how good retrieval and diagnosis are, how much the knowledge covers."""

from __future__ import annotations

import contextlib
import datetime as dt
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.commands.common import State, format_option, note, write_json
from kb.settings import Settings

if TYPE_CHECKING:
    from kb.embed.base import Embedder
    from kb.evaluation.metrics import Result
    from kb.evaluation.search_quality import GoldenReport
    from kb.service import Service

MANY_CASES = 3  # projects with fewer would fill a page
WHAT = ("knowledge", "retrieval", "diagnosis")
NEED_THREADS = ("diagnosis",)
REPORTED = ("diagnosis", "retrieval")
Figures = dict[str, dict[str, str]]
Tables = dict[str, dict[str, dict[str, str]]]
"""Table, row, column."""


@click.command("evaluate")
@click.argument("what", type=click.Choice(WHAT), required=False)
@click.option(
    "--threads",
    type=click.Path(path_type=Path),
    help="Labelled threads, one JSON object a line; diagnosis is measured on them, and retrieval "
    "on them too.",
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
@format_option("text", "json")
@click.pass_context
def command(
    context: click.Context,
    what: str | None,
    threads: Path | None,
    minilm: bool,
    report: Path | None,
    negatives: Path | None,
    form: str,
) -> None:
    """Measure WHAT: knowledge, retrieval or diagnosis; without WHAT all that can be measured.

    Retrieval is measured on the judged queries of data/golden. Each incident of the threads is
    diagnosed by weights that never saw its project and without its own case.
    """
    state = context.find_object(State) or State()
    chosen = [what] if what else [name for name in WHAT if threads or name not in NEED_THREADS]
    if what in NEED_THREADS and threads is None:
        raise click.UsageError(f"{what} is measured on labelled threads: add --threads FILE")
    if report is not None and not set(REPORTED) & set(chosen):
        raise click.UsageError(f"--report is of {' and '.join(REPORTED)}, not of {what}")
    figures: dict[str, Figures | Tables] = {}
    with state.service() as service:
        for name in chosen:
            if name == "knowledge":
                figures[name] = _knowledge(service)
            elif name == "retrieval":
                compare = minilm and what == name
                figures |= _retrieval(
                    service, state.settings, threads, minilm=compare, report=report
                )
            elif threads is not None:
                figures[name] = _diagnosis(state, threads, report, negatives)
    if form == "json":
        write_json(figures)
        return
    from app.layout import paragraphs

    blocks = [
        [click.style(group, bold=True), *_lines(values)]
        for groups in figures.values()
        for group, values in groups.items()
    ]
    click.echo(paragraphs(blocks), nl=False, color=state.colour)


def _lines(values: Mapping[str, str | dict[str, str]]) -> list[str]:
    """A list of figures as two columns, a table with its header."""
    from app.layout import columns

    rows: list[tuple[str, ...]] = []
    for name, value in values.items():
        if isinstance(value, str):
            rows.append((f"  {name}", value))
            continue
        if not rows:
            rows.append(("", *value))
        rows.append((f"  {name}", *value.values()))
    return columns(rows)


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


def _retrieval(
    service: Service,
    settings: Settings,
    threads: Path | None,
    *,
    minilm: bool,
    report: Path | None,
) -> dict[str, Figures | Tables]:
    """The search on the golden set and on labelled threads, route by route."""
    from kb.embed import load_embedder
    from kb.evaluation.golden import load_golden
    from kb.evaluation.retrieval import load_threads
    from kb.evaluation.search_quality import measure_golden, measure_threads
    from kb.text import Tokenizer

    embedder, tokenizer = load_embedder(settings), Tokenizer(settings.data / "lexicon")
    other, missing = _monolingual() if minilm else (None, "")
    golden = load_golden(settings.data / "golden")
    cases = service.knowledge.cases
    measured = measure_golden(golden, cases, embedder, tokenizer, monolingual=other)
    if report is not None:
        from kb.evaluation.publish import retrieval_figures
        from kb.evaluation.published import save_published

        figures = retrieval_figures(measured, date=_today())
        note(f"wrote {save_published(report, retrieval=figures)}")
    summary = _summary(measured) | ({"MiniLM": missing} if missing else {})
    tables = _tables("golden set", measured.results)
    tables["golden set, parts, the search as shipped"] = {
        result.group: _row(result) for result in measured.parts
    }
    if threads is not None:
        results = measure_threads(load_threads(threads), embedder, tokenizer, monolingual=other)
        tables |= _tables("posts and their threads' causes", results)
    return {"retrieval": {"golden set": summary}, "retrieval by route": tables}


def _monolingual() -> tuple[Embedder | None, str]:
    """The model to compare with, or why there is none."""
    from kb.errors import MissingExtraError
    from kb.evaluation.ablation import monolingual

    try:
        return monolingual(), ""
    except MissingExtraError as error:
        return None, str(error)


def _summary(report: GoldenReport) -> dict[str, str]:
    agreed = report.agreement
    return {
        "queries": f"{report.queries} ({report.left_out} left out, their cases are not here)",
        "cases searched": str(report.cases),
        "two judgements": f"kappa {agreed.kappa:.2f}, equal {agreed.equal:.1%} of {agreed.pairs}",
        "recall@5, cross-language / same": str(report.parity),
        "the same without bare log lines": str(report.parity_of_words),
    }


def _tables(title: str, results: Sequence[Result]) -> Tables:
    """One table a group, one row a route."""
    tables: Tables = {}
    for result in results:
        table = tables.setdefault(f"{title}, {result.group} (n={result.count})", {})
        table[result.route] = _row(result)
    return tables


def _row(result: Result) -> dict[str, str]:
    figures = {
        "MRR": result.mrr,
        "recall@1": result.recall_at_1,
        "recall@5": result.recall_at_5,
        "recall@10": result.recall_at_10,
        "nDCG@10": result.ndcg_at_10,
    }
    return {
        name: f"{value.mean:.3f} [{value.low:.2f}, {value.high:.2f}]"
        for name, value in figures.items()
    }


def _diagnosis(state: State, threads: Path, report: Path | None, negatives: Path | None) -> Figures:
    """Held-out quality of the ranking of causes; with `report` everything else, written there."""
    from kb.evaluation.figures import quality
    from kb.evaluation.incidents import load_incidents
    from kb.evaluation.measure import held_out, kept, measure

    incidents = load_incidents(threads)
    with _shipped_only(state) as service:
        if report is None:
            found = quality(kept(held_out(service, incidents)))
        else:
            from kb.evaluation.report import write_report

            measured = measure(service, incidents, negatives)
            found = measured.measurable
            for path in write_report(measured, report, date=_today()):
                note(f"wrote {path}")
    return {
        "diagnosis, held out": {
            "first is right": str(found.top1),
            "first is right or as good": str(found.top1_also),
            "right among three": str(found.top3),
            "right or as good among three": str(found.top3_also),
            "first is right, per cause": str(found.macro_top1),
            "right among three, per cause": str(found.macro_top3),
            "calibration error": str(found.calibration_error),
            "first is right, surest 80%": str(found.top1_at_80),
        }
    }


def _today() -> str:
    return dt.datetime.now(dt.UTC).date().isoformat()


@contextlib.contextmanager
def _shipped_only(state: State) -> Iterator[Service]:
    """A knowledge base of the shipped data alone, so that two runs see the same cases."""
    with tempfile.TemporaryDirectory(prefix="timeout-kb-") as home:
        service = state.open_service(replace(state.settings, home=Path(home)), notify=note)
        try:
            yield service
        finally:
            service.close()
