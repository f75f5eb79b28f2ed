"""What an operator sees of the server: JSON log lines and Prometheus numbers."""

from __future__ import annotations

import logging
import sys
from collections import Counter as Tally
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from kb.errors import KBError
from kb.log_lines import PROCESSORS
from kb.store.quota import ALL_BYTES

if TYPE_CHECKING:
    from kb.service import Service

# A diagnosis takes milliseconds, an uploaded gigabyte seconds: the buckets span both.
AUDIT = "app.audit"  # the logger of changes
BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


def configure_logging(level: str) -> None:
    """Send all log lines of this process to stderr as JSON, one object a line.

    Tracebacks are plain: they name code, never the values of variables.
    """
    structlog.configure(
        processors=[*PROCESSORS, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=PROCESSORS,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(ensure_ascii=False),
            ],
        )
    )
    logging.getLogger(AUDIT).setLevel(logging.INFO)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())


def audit_log() -> structlog.typing.FilteringBoundLogger:
    """The log of who changed what; its lines go out whatever the level of the others."""
    lines: structlog.typing.FilteringBoundLogger = structlog.wrap_logger(
        logging.getLogger(AUDIT), wrapper_class=structlog.make_filtering_bound_logger(logging.INFO)
    )
    return lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """The numbers of one server, in a registry of its own."""

    registry: CollectorRegistry
    requests: Counter
    seconds: Histogram
    running: Gauge
    diagnoses: Counter
    failures: Counter
    received: Counter
    answers: Counter
    answers_bytes: Gauge
    content_type: str = field(default=CONTENT_TYPE_LATEST)

    def text(self) -> bytes:
        """The exposition a Prometheus server scrapes."""
        return generate_latest(self.registry)


def new_metrics() -> Metrics:
    """Fresh numbers, all at zero."""
    registry = CollectorRegistry()
    return Metrics(
        registry=registry,
        requests=Counter(
            "timeout_kb_requests",
            "Requests answered.",
            ("method", "route", "status"),
            registry=registry,
        ),
        seconds=Histogram(
            "timeout_kb_request_seconds",
            "Time from the request's head to the answer's end.",
            ("route",),
            buckets=BUCKETS_S,
            registry=registry,
        ),
        running=Gauge("timeout_kb_requests_running", "Requests in work.", registry=registry),
        diagnoses=Counter(
            "timeout_kb_diagnoses",
            "Diagnoses by status and first cause.",
            ("status", "cause"),
            registry=registry,
        ),
        failures=Counter(
            "timeout_kb_failures", "Unexpected failures by type.", ("type",), registry=registry
        ),
        received=Counter(
            "timeout_kb_received_bytes", "Bytes of request bodies.", registry=registry
        ),
        answers=Counter(
            "timeout_kb_answers",
            "Answers to short logs: made, or kept from an earlier request with the same log.",
            ("source",),
            registry=registry,
        ),
        answers_bytes=Gauge(
            "timeout_kb_answers_kept_bytes", "Size of the answers kept.", registry=registry
        ),
    )


class ModelUsage(Collector):
    """What the language model was asked and what it cost, read when somebody looks."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[CounterMetricFamily]:
        """Both counters as they are now; none where no model is set."""
        if self._service.second_reader is None:
            return
        usage = self._service.second_reader.usage()
        questions = CounterMetricFamily(
            "timeout_kb_model_questions",
            "Questions to the language model by how they ended: answered, or why not.",
            labels=("outcome",),
        )
        for outcome, count in usage.outcomes.items():
            questions.add_metric((outcome,), count)
        tokens = CounterMetricFamily(
            "timeout_kb_model_tokens",
            "Tokens sent to the language model and answered by it, as far as its server tells.",
            labels=("direction",),
        )
        tokens.add_metric(("in",), usage.tokens_in)
        tokens.add_metric(("out",), usage.tokens_out)
        yield from (questions, tokens)


class KeptSizes(Collector):
    """How much is kept of diagnoses and conversations, against what may be."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The gauges as they are now; none where the store cannot be read."""
        try:
            sizes = self._service.store.records.kept_sizes()
        except KBError:
            structlog.get_logger("app.server").exception("kept records not counted")
            return
        count = GaugeMetricFamily(
            "timeout_kb_kept", "Diagnoses and conversations kept.", labels=("kind",)
        )
        size = GaugeMetricFamily("timeout_kb_kept_bytes", "Their size.", labels=("kind",))
        for kept in sizes:
            count.add_metric((kept.kind,), kept.count)
            size.add_metric((kept.kind,), kept.bytes)
        limit = GaugeMetricFamily(
            "timeout_kb_kept_bytes_limit", "The oldest go beyond this size, of all kinds together."
        )
        limit.add_metric((), ALL_BYTES)
        yield from (count, size, limit)


class IncidentCounts(Collector):
    """How many incidents the team has, by cause; read anew only where the store has changed."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The gauge as it is now; none where the store cannot be read."""
        try:
            records = self._service.incidents()
        except KBError:
            structlog.get_logger("app.server").exception("incidents not counted")
            return
        gauge = GaugeMetricFamily(
            "timeout_kb_incidents",
            "Incidents in the knowledge base by cause, open and resolved.",
            labels=("cause", "resolved"),
        )
        counts = Tally((record.cause, str(record.resolved).lower()) for record in records)
        for labels, count in sorted(counts.items()):
            gauge.add_metric(labels, count)
        yield gauge
