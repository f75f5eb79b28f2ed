"""The diagnosis as short text for a program that reads it, a coding agent.

Quoted lines of the log are JSON strings: whatever stands in them, they end where they end.
"""

from __future__ import annotations

import json
from dataclasses import replace

from app.render import head, present
from app.render.columns import cut
from app.render.escape import printable, safe_url
from kb.knowledge.labels import Words
from kb.types.answer import Diagnosis, RankedCause, SimilarCase
from kb.types.entries import SearchResult

MAX_CASES = 3
MAX_RANKS = 32  # in the short form; culprits first
MAX_MOMENTS = 20
MAX_EVIDENCE = 5  # of a cause
FIXES = (5, 2)  # of the likeliest cause, of each other; `show` has all
MAX_CHECKS = 3  # of a cause
FACET_VALUES = 5
QUOTE_CELLS = 400  # of a quoted line


def render_for_agent(diagnosis: Diagnosis, words: Words) -> str:
    """Headline, first step, certainty, other causes, the line that says most, cases with links."""
    answer = printable(diagnosis)
    lines = [head.title(answer, words)]
    if answer.status == "no_timeout":
        lines.append(words("head.paste_more"))
    lines += _row(head.first_label(answer, words), head.first_title(answer, words), words)
    if answer.first_fix:
        lines += [f"    {line}" for line in answer.first_fix.command.split("\n") if line]
    lines += _row("", head.caution(answer, words), words)
    lines += _row(words("head.certainty"), head.certainty_and_why(answer, words), words)
    met = _row(head.met_label(answer, words), head.met_before(answer, words), words)
    lines += [f"{line} {head.met_address(answer)}".strip() for line in met]
    lines += _quote(answer, words)
    others = [cause for cause in answer.causes[1:] if not present.is_faint(cause)]
    lines += _row(words("head.others"), words.listing(map(_cause, others)), words)
    check = head.check_after_first(answer)
    if check is not None:
        lines += _row(words("heading.best_check"), f"{check.command} ({check.tells})", words)
    cases = head.cases_not_met(answer)[:MAX_CASES]
    lines += [words("agent.cases")] * bool(cases)
    lines += [f"- {_case(case)}" for case in cases]
    lines += [f"- {url} {text}".strip() for text, url in present.notices(answer.notices, words)]
    return "\n".join([*lines, "", words("agent.data")])


def shortened(diagnosis: Diagnosis) -> Diagnosis:
    """The same with its long lists cut: ranks, moments, evidence, fixes and checks of causes."""
    incident = diagnosis.incident
    culprits = {culprit.rank for culprit in incident.culprit_ranks}
    ranks = sorted(incident.ranks, key=lambda state: (state.rank not in culprits, state.rank))
    return replace(
        diagnosis,
        incident=replace(
            incident,
            ranks=tuple(sorted(ranks[:MAX_RANKS], key=lambda state: state.rank)),
            timeline=incident.timeline[:MAX_MOMENTS],
        ),
        causes=tuple(
            replace(
                cause,
                evidence=cause.evidence[:MAX_EVIDENCE],
                fixes=cause.fixes[: FIXES[min(place, 1)]],
                checks=cause.checks[:MAX_CHECKS],
            )
            for place, cause in enumerate(diagnosis.causes)
        ),
    )


def shortened_search(result: SearchResult) -> SearchResult:
    """The same with the most frequent values of every facet."""
    return replace(
        result,
        facets={
            name: dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:FACET_VALUES])
            for name, counts in result.facets.items()
        },
    )


def _row(label: str, text: str, words: Words) -> list[str]:
    if not text:
        return []
    return [words("word.reason", what=label, reason=text) if label else text]


def _quote(answer: Diagnosis, words: Words) -> list[str]:
    place, text = head.culprit_line(answer, words)
    if not text:
        return []
    quote = json.dumps(cut(text, QUOTE_CELLS), ensure_ascii=False)
    return [words("agent.quote", place=place, quote=quote)]


def _cause(cause: RankedCause) -> str:
    return f"{cause.title} ({cause.id}) {present.cause_share(cause)}"


def _case(case: SimilarCase) -> str:
    return f"{case.title} [{case.id}] {safe_url(case.url)}".strip()
