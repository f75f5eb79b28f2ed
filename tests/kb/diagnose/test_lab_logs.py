"""Logs of real hanging jobs, without dumps or stacks: what they show decides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kb.service import Service

SAMPLES = Path(__file__).resolve().parents[2] / "lab" / "samples"
# `gil_hold` looks from its log like any other rank that was busy.
UNDECIDED = {"gil_hold"}
RUNS = sorted(path.parent for path in SAMPLES.glob("*/truth.json"))


@pytest.mark.parametrize(
    "run", [run for run in RUNS if run.name not in UNDECIDED], ids=lambda run: run.name
)
def test_the_log_alone_gives_the_cause(run: Path, service: Service) -> None:
    """The first cause is the injected one or one that a careful reader would accept as well."""
    truth = json.loads((run / "truth.json").read_text(encoding="utf-8"))
    log = (run / "combined.log").read_text(encoding="utf-8")
    verdict = service.judge(service.read_text(log))
    assert verdict.status == "diagnosed"
    assert verdict.ranking.causes[0].cause in (truth["cause"], *truth["also"])
