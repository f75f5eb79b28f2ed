"""`timeout-kb evaluate`: how good retrieval and diagnosis are, how much the knowledge covers."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.commands.common import State, format_option, write_json

if TYPE_CHECKING:
    from kb.service import Service

WHAT = ("knowledge", "retrieval", "diagnosis")
NEED_THREADS = ("retrieval", "diagnosis")
Figures = dict[str, dict[str, str]]


@click.command("evaluate")
@click.argument("what", type=click.Choice(WHAT), required=False)
@click.option(
    "--threads",
    type=click.Path(path_type=Path),
    help="Labelled threads, one JSON object a line; retrieval and diagnosis are measured on them.",
)
@format_option("text", "json")
@click.pass_context
def command(context: click.Context, what: str | None, threads: Path | None, form: str) -> None:
    """Measure WHAT: knowledge, retrieval or diagnosis; without WHAT all that can be measured.

    Each incident is judged by weights that never saw its project and without its own case.
    """
    state = context.find_object(State) or State()
    chosen = [what] if what else [name for name in WHAT if threads or name not in NEED_THREADS]
    if what in NEED_THREADS and threads is None:
        raise click.UsageError(f"{what} is measured on labelled threads: add --threads FILE")
    with state.service() as service:
        figures = {name: _measure(name, service, threads) for name in chosen}
    if form == "json":
        write_json(figures)
        return
    from app.layout import columns, paragraphs

    blocks = []
    for groups in figures.values():
        for group, values in groups.items():
            rows = columns([(f"  {name}", value) for name, value in values.items()])
            blocks.append([click.style(group, bold=True), *rows])
    click.echo(paragraphs(blocks), nl=False, color=state.colour)


def _measure(name: str, service: Service, threads: Path | None) -> Figures:
    if threads is None:
        return _knowledge(service)
    measures = {"retrieval": _retrieval, "diagnosis": _diagnosis}
    return measures[name](service, threads) if name in measures else _knowledge(service)


def _knowledge(service: Service) -> Figures:
    """Cases by cause and by standing; a cause without a case shows as 0."""
    knowledge = service.knowledge
    by_cause = Counter(claim.id for case in knowledge.cases for claim in case.causes[:1])
    by_status = Counter(case.status for case in knowledge.cases)
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
        "cases by standing": {name: str(count) for name, count in sorted(by_status.items())},
    }


def _retrieval(service: Service, threads: Path) -> Figures:
    """How the embedder alone ranks each thread's own cause and fix among all threads'."""
    from kb.embed import load_embedder
    from kb.evaluate_retrieval import dense, evaluate, load_threads

    routes = {"dense": dense(load_embedder(service.settings))}
    return {
        f"retrieval, {result.route}, {result.group}": {
            "MRR": str(result.mrr),
            "recall@1": str(result.recall_at_1),
            "recall@5": str(result.recall_at_5),
            "recall@10": str(result.recall_at_10),
            "nDCG@10": str(result.ndcg_at_10),
        }
        for result in evaluate(load_threads(threads), routes)
    }


def _diagnosis(service: Service, threads: Path) -> Figures:
    """Held-out quality of the ranking of causes."""
    from kb.evaluation.diagnosis import cross_validate
    from kb.evaluation.incidents import load_incidents
    from kb.evaluation.figures import quality
    from kb.evaluation.samples import case_samples, samples_of
    from kb.types import UNKNOWN

    incidents = load_incidents(threads)
    causes = [cause.id for cause in service.causes() if cause.id != UNKNOWN]
    samples = samples_of(incidents, service)
    found = quality(cross_validate(incidents, samples, causes, case_samples(service, incidents)))
    return {
        "diagnosis, held out": {
            "first is right": str(found.top1),
            "first is right or as good": str(found.top1_also),
            "right among three": str(found.top3),
            "first is right, per cause": str(found.macro_top1),
            "right among three, per cause": str(found.macro_top3),
            "calibration error": str(found.calibration_error),
            "first is right, surest 80%": str(found.top1_at_80),
        }
    }
