"""Fits data/weights.json: `python -m kb.evaluation.fit THREADS [--output FILE]`."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import click
import msgspec

from kb.bootstrap import open_service
from kb.diagnose.model import Weights
from kb.evaluation.diagnosis import fit_all
from kb.evaluation.incidents import load_incidents
from kb.evaluation.samples import case_samples, samples_of
from kb.settings import load_settings
from kb.types import UNKNOWN


def fit_weights(threads: Path) -> Weights:
    """Weights fitted on labelled threads and the symptoms of the shipped cases."""
    incidents = load_incidents(threads)
    with tempfile.TemporaryDirectory() as home:
        service = open_service(replace(load_settings(), home=Path(home)))
        try:
            causes = [cause.id for cause in service.causes() if cause.id != UNKNOWN]
            more = case_samples(service, incidents)
            return fit_all(
                samples_of(incidents, service),
                causes,
                more,
                fitted_on=f"{len(incidents)} threads, {len(more)} symptom texts of cases",
            )
        finally:
            service.close()


@click.command()
@click.argument("threads", type=click.Path(path_type=Path))
@click.option("--output", type=click.Path(path_type=Path), help="Default: weights.json of data/.")
def main(threads: Path, output: Path | None) -> None:
    """Fit the evidence model on labelled THREADS, one JSON object a line."""
    weights = fit_weights(threads)
    target = output or load_settings().data / "weights.json"
    target.write_bytes(msgspec.json.format(msgspec.json.encode(weights), indent=1) + b"\n")
    click.echo(f"{target}: {weights.fitted_on}; {len(weights.learned)} signals corrected")


if __name__ == "__main__":
    sys.exit(main())
