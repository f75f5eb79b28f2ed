"""What an operator sees of the bot: Prometheus numbers."""

from __future__ import annotations

from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Histogram

BUCKETS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """The numbers of one bot."""

    asked: Counter
    repeated: Counter
    answered: Counter
    failed: Counter
    seconds: Histogram


def new_counters(registry: CollectorRegistry | None = None) -> Counters:
    """Fresh numbers, in `registry` (that of the API server, say) or one of their own."""
    registry = registry or CollectorRegistry()
    return Counters(
        asked=Counter(
            "timeout_kb_slack_asked", "What came from Slack.", ("origin",), registry=registry
        ),
        repeated=Counter(
            "timeout_kb_slack_repeated",
            "Deliveries Slack repeated, answered once.",
            registry=registry,
        ),
        answered=Counter(
            "timeout_kb_slack_answered", "Answers by status.", ("status",), registry=registry
        ),
        failed=Counter(
            "timeout_kb_slack_failed", "Failures by type.", ("type",), registry=registry
        ),
        seconds=Histogram(
            "timeout_kb_slack_seconds",
            "Time from the acknowledgement to the answer's end.",
            ("origin",),
            buckets=BUCKETS_S,
            registry=registry,
        ),
    )
