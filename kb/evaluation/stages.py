"""How long each stage of an answer takes, over pastes of the length people post."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from kb.diagnose.evidence_model import Weights, load_weights, rank_causes
from kb.service import Service
from kb.train.threads import LabelledThread

PASTE_LINES = 200
ROUNDS = 2  # each paste's faster round counts, so that other programs' load counts less
WARM_UP = 5  # pastes before the clock runs: the first ones fill caches
STAGES = ("read", "patterns and facts", "description", "search", "rank", "answer")
TOTAL = "total"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """Milliseconds of every paste by stage."""

    taken_ms: Mapping[str, tuple[float, ...]]

    def percentile_ms(self, stage: str, percent: float) -> float:
        """What so many percent of the pastes take at most."""
        return float(np.percentile(self.taken_ms[stage], percent))


def pastes(threads: Sequence[LabelledThread], lines: int = PASTE_LINES) -> list[str]:
    """Every thread's post brought to `lines` lines: its words, progress of a run, its log."""
    texts = []
    for thread in threads:
        words = thread.text.removesuffix(thread.log).splitlines()
        log = thread.log.splitlines()
        progress = [
            f"INFO:trainer:step {step} loss {2 + 7 / (step + 3):.4f} tokens/s {41000 + step}"
            for step in range(lines - len(words) - len(log))
        ]
        texts.append("\n".join([*words, *progress, *log][:lines]))
    return texts


def time_stages(service: Service, texts: Sequence[str]) -> Stages:
    """Run every text through all stages, one after the other."""
    weights = load_weights(service.settings.data / "weights.json")
    for text in texts[:WARM_UP]:
        _timed(service, weights, text)
    rounds = [[_timed(service, weights, text) for text in texts] for _ in range(ROUNDS)]
    best = [min(tries, key=lambda taken: taken[TOTAL]) for tries in zip(*rounds, strict=True)]
    return Stages(
        taken_ms={stage: tuple(taken[stage] for taken in best) for stage in (*STAGES, TOTAL)}
    )


def _timed(service: Service, weights: Weights, text: str) -> dict[str, float]:
    """Milliseconds of every stage for one text."""
    engine = service.engine
    taken_ms: dict[str, float] = {}

    @contextmanager
    def stage(name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        taken_ms[name] = (time.perf_counter() - start) * 1000

    with stage("read"):
        reading = service.read_text(text)
    with stage("patterns and facts"):
        engine.signals(replace(reading, words=""))
    with stage("description"):
        engine.signals(replace(reading, events=(), incident=replace(reading.incident, facts=())))
    with stage("search"):
        similar = service.similar(reading)
        entries = service.entries_of(similar)
    verdict = engine.judge(reading, similar.hits, entries)  # repeats signals: in no stage
    with stage("rank"):
        rank_causes(verdict.signals, verdict.votes, weights)
    with stage("answer"):
        service.render(verdict)
    with stage(TOTAL):
        service.diagnose_text(text)
    return taken_ms
