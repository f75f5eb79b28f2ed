"""How long each stage of an answer takes, over pastes of the length people post."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kb.diagnose.answer import Request, build_diagnosis
from kb.evaluation.incidents import Incident
from kb.service import Service
from kb.text import detect_language

PASTE_LINES = 200
ROUNDS = 2  # each paste's faster round counts, so that other programs' load counts less
WARM_UP = 5  # pastes before the clock runs: the first ones fill caches
STAGES = ("read", "patterns and facts", "description", "search", "rank", "answer")
TOTAL = "total"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """Milliseconds of every paste by stage."""

    taken_ms: Mapping[str, tuple[float, ...]]

    def p50_ms(self, stage: str) -> float:
        """Median."""
        return float(np.percentile(self.taken_ms[stage], 50))

    def p99_ms(self, stage: str) -> float:
        """99th percentile."""
        return float(np.percentile(self.taken_ms[stage], 99))


def pastes(incidents: Sequence[Incident], lines: int = PASTE_LINES) -> list[str]:
    """Every incident's post brought to `lines` lines: its words, progress of a run, its log."""
    texts = []
    for incident in incidents:
        words = incident.text.removesuffix(incident.log).splitlines()
        log = incident.log.splitlines()
        missing = max(0, lines - len(words) - len(log))
        progress = [
            f"INFO:trainer:step {step} loss {2 + 7 / (step + 3):.4f} lr {1e-4:.2e} tokens/s {41000 + step}"
            for step in range(missing)
        ]
        texts.append("\n".join([*words, *progress, *log][:lines]))
    return texts


def time_stages(service: Service, texts: Sequence[str]) -> Stages:
    """Run every text through all stages, one after the other."""
    for text in texts[:WARM_UP]:
        _timed(service, text)
    rounds = [[_timed(service, text) for text in texts] for _ in range(ROUNDS)]
    best = [min(tries, key=lambda taken: taken[TOTAL]) for tries in zip(*rounds, strict=True)]
    return Stages(
        taken_ms={stage: tuple(taken[stage] for taken in best) for stage in (*STAGES, TOTAL)}
    )


def _timed(service: Service, text: str) -> dict[str, float]:
    clock = _Clock()
    reading = service.reader.read_text(text)
    clock.lap("read")
    service.engine.signals(replace(reading, words=""))
    clock.lap("patterns and facts")
    silent = replace(reading, events=(), incident=replace(reading.incident, facts=()))
    service.engine.signals(silent)
    clock.lap("description")
    found = service.similar(reading)
    entries = service.entries_of(found)
    clock.lap("search")
    verdict = service.engine.judge(reading, found, entries)
    # judging gathers the signals again, which have been counted
    repeated = clock.taken["patterns and facts"] + clock.taken["description"]
    clock.lap("rank", less=repeated)
    language = detect_language(reading.description)
    request = Request(
        reading=reading,
        verdict=verdict,
        entries=entries,
        warnings=service.lint(reading.description, language=language)
        if reading.description
        else (),
        language=language,
        top=service.settings.top,
    )
    build_diagnosis(request, service.knowledge, took_ms=0.0)
    clock.lap("answer")
    started = time.perf_counter()
    service.diagnose_text(text)
    return {**clock.taken, TOTAL: (time.perf_counter() - started) * 1000}


class _Clock:
    """Time since the last lap, by name, in milliseconds."""

    def __init__(self) -> None:
        self.taken: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str, *, less: float = 0.0) -> None:
        """Note the time since the last lap, `less` what is counted elsewhere."""
        now = time.perf_counter()
        self.taken[name] = max(0.0, (now - self._last) * 1000 - less)
        self._last = now
