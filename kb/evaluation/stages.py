"""How long each stage of an answer takes, over pastes of the length people post."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kb.diagnose.answer import Request, build_diagnosis
from kb.diagnose.engine import Verdict
from kb.diagnose.model import Ranking, Weights, load_weights, rank_causes
from kb.evaluation.incidents import Incident
from kb.service import Service
from kb.text import detect_language
from kb.types import Entry, LogReading, SearchResult

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
            f"INFO:trainer:step {step} loss {2 + 7 / (step + 3):.4f} tokens/s {41000 + step}"
            for step in range(missing)
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
    engine = service.engine
    lap = _Lap()
    reading = service.reader.read_text(text)
    taken = {"read": lap.ms()}
    told = engine.signals(replace(reading, words=""))
    taken["patterns and facts"] = lap.ms()
    said = engine.signals(replace(reading, events=(), incident=replace(reading.incident, facts=())))
    taken["description"] = lap.ms()
    found = service.similar(reading)
    entries = service.entries_of(found)
    votes = engine.votes(found, entries)
    kin = engine.kin(reading, found, entries)
    taken["search"] = lap.ms()
    ranking = rank_causes((*told, *said, *kin), votes, weights)
    taken["rank"] = lap.ms()
    _answer(service, reading, ranking, found, entries)
    taken["answer"] = lap.ms()
    service.diagnose_text(text)
    return {**taken, TOTAL: lap.ms()}


def _answer(
    service: Service,
    reading: LogReading,
    ranking: Ranking,
    found: SearchResult,
    entries: Mapping[str, Entry],
) -> None:
    language = detect_language(reading.description)
    verdict = Verdict(status="diagnosed", ranking=ranking, signals=(), hits=found.hits, votes={})
    request = Request(
        reading=reading,
        verdict=verdict,
        entries=entries,
        warnings=service.lint(reading.description, language=language),
        language=language,
        top=service.settings.top,
    )
    build_diagnosis(request, service.knowledge, took_ms=0.0)


class _Lap:
    """A clock that tells the milliseconds since it was last asked."""

    def __init__(self) -> None:
        self._last = time.perf_counter()

    def ms(self) -> float:
        now = time.perf_counter()
        taken = (now - self._last) * 1000
        self._last = now
        return taken
