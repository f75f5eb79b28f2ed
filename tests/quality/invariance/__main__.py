"""How often text that tells nothing changes an answer: ``python -m tests.quality.invariance``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from kb.bootstrap import open_service
from kb.settings import Settings
from tests.quality.invariance.incidents import known_incidents
from tests.quality.invariance.measure import (
    DisturbedReport,
    InvarianceMeasure,
    KindFigures,
    culprits,
    figures,
    first,
    overall,
)

SAMPLE = 200  # reports a kind: the share is known to about three points


def main() -> int:
    """Print the table and, if asked, the reports whose answer changed most."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, default=SAMPLE, help="reports a kind; 0: all")
    parser.add_argument("--kind", action="append", help="only this kind; may be repeated")
    parser.add_argument("--show", type=int, default=0, help="changed reports shown a kind")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="timeout-kb-invariance-") as home:
        service = open_service(Settings(home=Path(home)))
        measure = InvarianceMeasure(service, known_incidents(service))
        parts = []
        for kind in options.kind or measure.kinds:
            reports = list(measure.reports(kind, options.sample or None))
            parts.append(figures(kind, reports))
            if options.show:
                sys.stdout.write(f"--- {kind}\n{shown(reports, options.show)}")
        sys.stdout.write(table([*parts, overall(parts)]))
        service.close()
    return 0


def table(parts: Sequence[KindFigures]) -> str:
    """A line a kind."""
    lines = [f"{'kind':14} reports  first cause changed  ranks changed  a cause up > 5 points"]
    lines += [
        f"{part.kind:14} {part.reports:7}  {part.causes:5} {part.share:12.1%}  "
        f"{part.ranks:13}  {part.rises:6} {part.rises / max(part.reports, 1):13.1%}"
        for part in parts
    ]
    return "\n".join(lines) + "\n"


def shown(reports: Sequence[DisturbedReport], count: int) -> str:
    """The reports whose answer changed, those moved most first, and what moved them."""
    changed = [report for report in reports if report.cause_changed or report.ranks_changed]
    changed.sort(key=lambda report: -report.rise)
    by_id = Counter(report.disturbance.id for report in changed)
    new = Counter(name for report in changed for name in report.evidence_change()[0])
    gone = Counter(name for report in changed for name in report.evidence_change()[1])
    lines = [f"disturbances: {by_id.most_common(20)}", f"new: {new.most_common(20)}"]
    lines += [f"gone: {gone.most_common(20)}"]
    for report in changed[:count]:
        added, lost = report.evidence_change()
        lines.append(
            f"{report.incident.id} + {report.disturbance.id}: {_ranking(report, before=True)}"
            f" -> {_ranking(report, before=False)} | new {added} gone {lost}"
        )
    return "\n".join(lines) + "\n"


def _ranking(report: DisturbedReport, *, before: bool) -> str:
    verdict = report.before if before else report.after
    top = ", ".join(f"{item.cause} {item.probability:.2f}" for item in verdict.ranking.causes[:3])
    return f"{first(verdict)} [{top}] ranks {list(culprits(verdict))}"


if __name__ == "__main__":
    raise SystemExit(main())
