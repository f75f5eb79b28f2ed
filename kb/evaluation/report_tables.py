"""The sections of the report, each from the measured value to Markdown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from kb.evaluation.figures import Prediction, Quality, confusion, per_cause, splits
from kb.evaluation.incidents import Incident
from kb.evaluation.intervals import Interval, mean_interval
from kb.evaluation.measure import Measured, kept
from kb.evaluation.parity import one_sided
from kb.evaluation.stages import PASTE_LINES, STAGES, TOTAL

SHOWN_CAUSES = 3
SHOWN_SIGNALS = 40  # of those found in one language only


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def goals_section(measured: Measured) -> str:
    """What is aimed at, and whether it is reached."""
    quality, known, stages = measured.measurable, measured.known, measured.stages
    alarms = mean_interval([float(item.alarm) for item in measured.negatives])
    at_least = (
        ("first is right", 0.64, quality.top1),
        ("right among three", 0.87, quality.top3),
        ("right among three, macro", 0.82, quality.macro_top3),
        ("first is right at 80 % coverage", 0.75, quality.top1_at_80),
        ("known incident: its case first", 0.85, known.recall_at_1),
        ("known incident: its case among five", 0.97, known.recall_at_5),
        ("same first cause in zh and en, words only", 0.92, measured.parity.words.agreement),
        ("the same, with the log lines", 0.92, measured.parity.with_lines.agreement),
    )
    at_most = (
        ("calibration error", 0.08, quality.calibration_error),
        ("false alarms", 0.03, alarms),
    )
    rows = [
        [name, f"≥ {goal}", show(value), _met(value.mean >= goal)] for name, goal, value in at_least
    ]
    rows += [
        [name, f"≤ {goal}", show(value), _met(value.mean <= goal)] for name, goal, value in at_most
    ]
    for name, goal_ms, found_ms in (
        ("p50 of a 200-line paste", 15.0, stages.p50_ms(TOTAL)),
        ("p99 of a 200-line paste", 60.0, stages.p99_ms(TOTAL)),
    ):
        rows.append([name, f"≤ {goal_ms:.0f} ms", f"{found_ms:.1f} ms", _met(found_ms <= goal_ms)])
    return "## Goals\n\n" + table(["figure", "goal", "reached", ""], rows)


def _met(reached: bool) -> str:
    return "yes" if reached else "**no**"


def show(value: Interval) -> str:
    """A figure with its interval and count."""
    if math.isnan(value.mean):
        return "not measured"
    return f"{value.mean:.3f} [{value.low:.3f}, {value.high:.3f}], n={value.n}"


def _short(value: Interval) -> str:
    return f"{value.mean:.3f} [{value.low:.2f}, {value.high:.2f}]"


def figures_section(measured: Measured) -> str:
    """All figures, over measurable and over all incidents."""
    rows = [
        [name, _short(one), _short(other)]
        for (name, one), (_, other) in zip(
            _named(measured.measurable), _named(measured.everything), strict=True
        )
    ]
    header = [
        "",
        f"measurable (n={measured.measurable.top1.n})",
        f"all (n={measured.everything.top1.n})",
    ]
    return "## Held-out quality\n\n" + table(header, rows)


def _named(quality: Quality) -> list[tuple[str, Interval]]:
    return [
        ("first is right", quality.top1),
        ("first is right or as good", quality.top1_also),
        ("right among three", quality.top3),
        ("right or as good among three", quality.top3_also),
        ("first is right, macro", quality.macro_top1),
        ("right among three, macro", quality.macro_top3),
        ("expected calibration error", quality.calibration_error),
        ("first is right, surest 80 %", quality.top1_at_80),
    ]


def splits_section(measured: Measured) -> str:
    """By language and by whether there is a log."""
    rows = []
    for name, part in splits(kept(measured.predictions)).items():
        rows.append(
            [
                name,
                str(len(part)),
                _short(mean_interval([float(item.rank == 1) for item in part])),
                _short(mean_interval([float(item.rank_also == 1) for item in part])),
                _short(mean_interval([float(item.rank <= 3) for item in part])),
            ]
        )
    header = ["measurable incidents", "n", "first", "first or as good", "among three"]
    return "## By language and log\n\n" + table(header, rows)


def causes_section(measured: Measured) -> str:
    """Every cause."""
    rows = [
        [
            row.cause,
            str(row.n),
            _share(row.top1),
            _share(row.top3),
            str(row.named),
            _share(row.precision),
        ]
        for row in per_cause(kept(measured.predictions))
    ]
    header = ["cause", "n", "first", "among three", "named first", "of these right"]
    return "## By cause\n\nMeasurable incidents.\n\n" + table(header, rows)


def _share(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"


def confusion_section(measured: Measured) -> str:
    """The confusion matrix: a row a true cause, a column the cause named first."""
    counts = confusion(kept(measured.predictions))
    totals = Counter(item.incident.cause for item in kept(measured.predictions))
    totals.update(dict.fromkeys((named for _, named in counts), 0))
    order = sorted(totals, key=lambda cause: (-totals[cause], cause))
    letters = {cause: _letter(number) for number, cause in enumerate(order)}
    rows = [
        [
            f"{letters[truth]} {truth}",
            *(_count(counts.get((truth, named), 0), truth == named) for named in order),
        ]
        for truth in order
    ]
    return "## Confusion\n\nRows: the right cause; columns: the cause named first.\n\n" + table(
        ["", *letters.values()], rows
    )


def _letter(number: int) -> str:
    return chr(ord("A") + number)


def _count(count: int, diagonal: bool) -> str:
    if not count:
        return "·"
    return f"**{count}**" if diagonal else str(count)


def known_section(measured: Measured) -> str:
    """Known incidents."""
    known = measured.known
    rows = [
        ["its case first", show(known.recall_at_1)],
        ["its case among five", show(known.recall_at_5)],
        ["first cause is right", show(known.top1)],
        ["right among three", show(known.top3)],
    ]
    text = (
        "## Known incidents\n\nThe incident's own case is in the knowledge base, as for a user who "
        "meets what is already written up.\n\n" + table(["", "share"], rows)
    )
    missed = [
        [_link(item.prediction.incident), ", ".join(item.own), str(item.place or "–"), item.first]
        for item in sorted(
            measured.known_answers, key=lambda item: (-item.place, item.prediction.incident.id)
        )
        if item.place != 1
    ]
    if missed:
        text += "\n\nIts case is not first:\n\n"
        text += table(["incident", "its case", "place", "first instead"], missed)
    return text


def parity_section(measured: Measured) -> str:
    """Chinese against English."""
    parity = measured.parity
    rows = [
        [
            name,
            show(quality.agreement),
            show(quality.agreement_threads),
            _short(quality.zh_right),
            _short(quality.en_right),
        ]
        for name, quality in (
            ("words only", parity.words),
            ("words and the shared log lines", parity.with_lines),
        )
    ]
    header = ["twin reports", "same first cause", "of these from threads", "zh right", "en right"]
    apart = [[pair.case, pair.cause, pair.zh, pair.en] for pair in parity.pairs if not pair.agrees]
    text = (
        "## Chinese and English\n\nThe symptoms of each case in both languages, judged without the "
        "case and by weights that never saw its project.\n\n" + table(header, rows)
    )
    if apart:
        text += "\n\nWords only, different first causes:\n\n"
        text += table(["case", "cause", "zh", "en"], apart)
    lopsided = [
        [name, str(zh), str(en)] for name, zh, en in one_sided(parity.pairs)[:SHOWN_SIGNALS]
    ]
    text += "\n\nSignals found in one language of a twin and not in the other:\n\n"
    return text + table(["signal", "zh only", "en only"], lopsided)


def negatives_section(measured: Measured) -> str:
    """False alarms."""
    if not measured.negatives:
        return "## Logs without a timeout\n\nNot measured: add `--negatives DIR`."
    alarms = [item for item in measured.negatives if item.alarm]
    text = (
        f"## Logs without a timeout\n\n{len(alarms)} of {len(measured.negatives)} healthy or "
        "otherwise failed runs are said to be a timeout."
    )
    if alarms:
        rows = [[item.name, item.cause, "; ".join(map(_cell, item.triggers))] for item in alarms]
        text += "\n\n" + table(["log", "cause named", "because"], rows)
    return text


def _cell(text: str) -> str:
    return f"`{text.replace('|', '¦').replace('`', chr(39))}`"


def evidence_section(measured: Measured) -> str:
    """What each kind of evidence is worth."""
    rows = [
        [
            worth.variant,
            _short(worth.top1),
            _short(worth.top3),
            _share(worth.macro_top3),
            f"{worth.top1_all.mean:.3f}",
            f"{worth.top3_all.mean:.3f}",
            f"{worth.p50_ms:.1f}",
        ]
        for worth in measured.worth
    ]
    header = [
        "evidence",
        "first",
        "among three",
        "macro among three",
        "first, all",
        "among three, all",
        "p50 ms",
    ]
    return (
        "## What each evidence is worth\n\nWeights fitted anew without the rest; measurable "
        "incidents, and all. Milliseconds are those of the stages it needs.\n\n"
        + table(header, rows)
    )


def stages_section(measured: Measured) -> str:
    """Time by stage."""
    stages = measured.stages
    rows = [
        [name, f"{stages.p50_ms(name):.2f}", f"{stages.p99_ms(name):.2f}"]
        for name in (*STAGES, TOTAL)
    ]
    return (
        f"## Time\n\n{len(stages.taken_ms[TOTAL])} pastes of {PASTE_LINES} lines (the post's "
        "words, progress of a run, its log), one thread, on the machine that wrote this report.\n\n"
        + table(["stage", "p50 ms", "p99 ms"], rows)
    )


def misses_section(measured: Measured) -> str:
    """Every measurable incident whose first cause is wrong."""
    missed = [item for item in kept(measured.predictions) if item.rank != 1]
    missed.sort(key=lambda item: (item.rank, item.incident.cause, item.incident.id))
    rows = [_miss(item) for item in missed]
    header = ["incident", "right (as good)", "place", "named", "because"]
    return "## Misses\n\n" + table(header, rows)


def _miss(item: Prediction) -> list[str]:
    incident = item.incident
    named = ", ".join(
        f"{cause} {probability:.2f}"
        for cause, probability in zip(
            item.causes[:SHOWN_CAUSES], item.probabilities[:SHOWN_CAUSES], strict=True
        )
    )
    also = f" ({', '.join(incident.also)})" if incident.also else ""
    return [
        _link(incident),
        f"{incident.cause}{also}",
        str(item.rank),
        named,
        ", ".join(item.because) or "nothing",
    ]


def _link(incident: Incident) -> str:
    name = incident.id.replace("__", "/", 1).replace("__", " ")
    return f"[{name}]({incident.url})"
