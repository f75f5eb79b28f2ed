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
from kb.diagnose.reader import FOLDER as READER
from kb.diagnose.reader import ReaderModel, save_model
from kb.files.atomic import write_file
from kb.service import Service
from kb.settings import load_settings
from kb.train.reports import FOLDER as REPORTS
from kb.train.reports import Report, load_reports
from kb.train.samples import (
    case_samples,
    causes_of,
    described_reports,
    fit_reader,
    judged_reports,
    read_held_out,
    relate,
    thread_samples,
)
from kb.train.threads import LabelledThread, load_threads
from kb.train.weights import CrossFit, fit


def fit_all(
    threads: Sequence[LabelledThread], reports: Sequence[Report], service: Service
) -> tuple[ReaderModel, Weights, Weights]:
    """What to ship: the reader of everything, weights for use with it, and weights without.

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
    reader = fit_reader([*weighed, *cases, *told], service).model(fitted_on=fitted_on)
    alone = CrossFit(weighed, causes, cases).calibrate(
        fit([*weighed, *cases], causes, fitted_on=fitted_on)
    )
    samples, more = read_held_out([weighed, cases], service, told)
    weights = fit([*samples, *more], causes, fitted_on=fitted_on)
    return reader, CrossFit(samples, causes, more).calibrate(weights), alone


@click.command()
@click.argument("threads", nargs=-1, type=click.Path(path_type=Path))
@click.option("--output", type=click.Path(path_type=Path), help="Folder; default: data/.")
def main(threads: Sequence[Path], output: Path | None) -> None:
    """Fit the reader and the evidence model on the shipped reports and cases.

    And on labelled THREADS, files with one JSON object a line.
    """
    settings = load_settings()
    with tempfile.TemporaryDirectory() as folder:
        service = open_service(replace(settings, home=Path(folder)))
        try:
            labelled = [thread for path in threads for thread in load_threads(path)]
            reports = load_reports(settings.data / REPORTS)
            reader, weights, alone = fit_all(labelled, reports, service)
        finally:
            service.close()
    target = output or settings.data
    save_model(target / READER, reader)
    for path, fitted in ((target / READER / WEIGHTS, weights), (target / WEIGHTS, alone)):
        encoded = msgspec.json.format(msgspec.json.encode(fitted), indent=1)
        write_file(path, encoded + b"\n")
    click.echo(f"{target}: {weights.fitted_on}; {len(weights.learned)} signals corrected")


if __name__ == "__main__":
    sys.exit(main())
