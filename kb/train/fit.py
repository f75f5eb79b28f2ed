"""Fits data/weights.json: `python -m kb.train.fit THREADS [--output FILE]`."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import click
import msgspec

from kb.bootstrap import open_service
from kb.diagnose.evidence_model import Weights
from kb.files.atomic import write_file
from kb.service import Service
from kb.settings import load_settings
from kb.train.samples import case_samples, causes_of, relate, thread_samples
from kb.train.threads import LabelledThread, load_threads
from kb.train.weights import CrossFit, fit


def fit_weights(threads: tuple[LabelledThread, ...], service: Service) -> Weights:
    """The weights to ship: fitted on threads and cases, calibrated on held-out rankings."""
    causes, relations = causes_of(service), relate(threads, service)
    more = case_samples(service, relations)
    samples = thread_samples(threads, service, relations)
    fitted_on = f"{len(threads)} threads, {len(more)} symptom texts of cases"
    weights = fit([*samples, *more], causes, fitted_on=fitted_on)
    return CrossFit(samples, causes, more).calibrate(weights)


@click.command()
@click.argument("threads", type=click.Path(path_type=Path))
@click.option("--output", type=click.Path(path_type=Path), help="Default: weights.json of data/.")
def main(threads: Path, output: Path | None) -> None:
    """Fit the evidence model on labelled THREADS, one JSON object a line."""
    settings = load_settings()
    with tempfile.TemporaryDirectory() as folder:
        service = open_service(replace(settings, home=Path(folder)))
        try:
            weights = fit_weights(load_threads(threads), service)
        finally:
            service.close()
    target = output or settings.data / "weights.json"
    write_file(target, msgspec.json.format(msgspec.json.encode(weights), indent=1) + b"\n")
    click.echo(f"{target}: {weights.fitted_on}; {len(weights.learned)} signals corrected")


if __name__ == "__main__":
    sys.exit(main())
