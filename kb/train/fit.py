"""Fits data/reader and data/weights.json: `python -m kb.train.fit [THREADS ...]`.

From the shipped reports and cases alone, and better with labelled threads beside them: those are
what is weighed by, and the reader learns from them too. The same input gives the same files.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click
import msgspec

from kb.bootstrap import open_service
from kb.diagnose.evidence_model import WEIGHTS, Weights
from kb.diagnose.linear_model import LinearModel, save_model
from kb.diagnose.reader import FOLDER as READER
from kb.files.atomic import write_file
from kb.service import Service
from kb.settings import load_settings
from kb.train.reports import FOLDER as REPORTS
from kb.train.reports import Report, load_reports
from kb.train.samples import (
    HeldOutReader,
    case_samples,
    causes_of,
    described_reports,
    fit_reader,
    judged_reports,
    relate,
    thread_samples,
)
from kb.train.threads import LabelledThread, load_threads
from kb.train.weights import CrossFit, fit


def fit_all(
    threads: Sequence[LabelledThread], reports: Sequence[Report], service: Service
) -> tuple[LinearModel, Weights]:
    """What to ship: the reader of everything, and the weights.

    Without threads the reports retold from real ones stand in for them. Weights are fitted with
    what the reader says held out, and calibrated on held-out rankings.
    """
    causes, relations = causes_of(service), relate(threads, service)
    cases = case_samples(service, relations)
    real = thread_samples(threads, service, relations)
    retold = [report for report in reports if report.url and not real]
    written = [report for report in reports if real or not report.url]
    weighed = real or judged_reports(service, relations, retold)
    told = described_reports(service, relations, written)
    fitted_on = f"{len(threads)} threads, {len(reports)} reports, {len(cases)} symptom texts"
    model = fit_reader([*weighed, *cases, *told], service).model(fitted_on=fitted_on)
    reader = HeldOutReader([*weighed, *cases, *told], service)
    samples, more = ([reader.read(one) for one in part] for part in (weighed, cases))
    weights = fit([*samples, *more], causes, fitted_on=fitted_on)
    return model, CrossFit(samples, causes, more).calibrate(weights)


@click.command()
@click.argument("threads", nargs=-1, type=click.Path(path_type=Path))
@click.option("--output", type=click.Path(path_type=Path), help="Folder; default: data/.")
def main(threads: Sequence[Path], output: Path | None) -> None:
    """Fit the reader and the evidence model on the shipped reports and cases.

    And on labelled THREADS, files with one JSON object a line.
    """
    settings = load_settings()
    with tempfile.TemporaryDirectory() as folder:
        service = open_service(replace(settings, home=Path(folder), site=None))
        try:
            labelled = [thread for path in threads for thread in load_threads(path)]
            reports = load_reports(settings.data / REPORTS)
            model, weights = fit_all(labelled, reports, service)
        finally:
            service.close()
    target = output or settings.data
    save_model(target / READER, model)
    encoded = msgspec.json.format(msgspec.json.encode(weights), indent=1)
    write_file(target / WEIGHTS, encoded + b"\n")
    click.echo(f"{target}: {weights.fitted_on}; {len(weights.learned)} signals corrected")


if __name__ == "__main__":
    sys.exit(main())
