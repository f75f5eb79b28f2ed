"""The report of the diagnosis: Markdown with tables, two plots, the history, the page's figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from kb.errors import InputError
from kb.evaluation.figures import TITLES, confusion, per_cause, reliability, splits
from kb.evaluation.intervals import share
from kb.evaluation.measure import Measured, one_sided
from kb.evaluation.plots import reliability_plot, risk_coverage_plot
from kb.evaluation.published import (
    DIGITS,
    DiagnosisFigures,
    Interval,
    PartFigures,
    save_published,
)
from kb.evaluation.stages import PASTE_LINES, STAGES, TOTAL
from kb.train.threads import LabelledThread

REPORT, HISTORY = "REPORT.md", "history.jsonl"
RELIABILITY, RISK = "reliability.svg", "risk-coverage.svg"
SHOWN_CAUSES = 3
SHOWN_SIGNALS = 40  # of those seen in one language only
CLOCK = "ms"  # figures whose name ends so are measured on a clock and never repeat

AT_LEAST = (
    ("first is right", "top1", 0.64),
    ("right among three", "top3", 0.87),
    ("right among three, macro", "macro_top3", 0.82),
    ("first is right at 80 % coverage", "top1_at_80", 0.75),
    ("known incident: its case first", "known_recall_at_1", 0.85),
    ("known incident: its case among five", "known_recall_at_5", 0.97),
    ("same first cause in zh and en, words only", "parity", 0.92),
    ("the same, with the log lines", "parity_with_lines", 0.92),
)
AT_MOST = (("calibration error", "calibration_error", 0.08), ("false alarms", "false_alarms", 0.03))
AT_MOST_MS = (("p50 of a 200-line paste", 50, 15.0), ("p99 of a 200-line paste", 99, 60.0))
PUBLISHED_NAMES = (
    "top1",
    "top1_also",
    "top3",
    "top3_also",
    "macro_top1",
    "macro_top3",
    "calibration_error",
    "top1_all",
    "top3_all",
    "known_recall_at_1",
    "known_recall_at_5",
    "parity",
    "false_alarms",
)
HISTORY_NAMES = (
    "top1",
    "top1_also",
    "top3",
    "macro_top1",
    "macro_top3",
    "calibration_error",
    "top1_at_80",
    "top1_all",
    "top3_all",
    "known_recall_at_1",
    "known_recall_at_5",
    "known_top1",
    "parity",
    "parity_with_lines",
)


def write_report(measured: Measured, folder: Path, *, date: str) -> list[Path]:
    """Write report, plots and figures into `folder`, add to the history; returns the files written.

    Args:
        measured: what `kb.evaluation.measure.measure` gives.
        folder: made where it does not exist.
        date: of today, ``YYYY-MM-DD``.

    Raises:
        InputError: the folder cannot be written.
    """
    texts = {
        REPORT: render(measured),
        RELIABILITY: reliability_plot(measured.measurable),
        RISK: risk_coverage_plot(measured.measurable, measured.unknown_below),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        append_history(folder / HISTORY, measured, date=date)
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}", todo="name a folder to write to") from error
    figures = save_published(folder, diagnosis_figures(measured, date=date))
    return [*(folder / name for name in (*texts, HISTORY)), figures]


def diagnosis_figures(measured: Measured, *, date: str) -> DiagnosisFigures:
    """The figures a page shows, over measurable threads where nothing else is said."""
    shown = measured.measurable
    answered = [item for item in shown if item.confidence >= measured.unknown_below]
    return DiagnosisFigures(
        date=date,
        incidents=len(measured.predictions),
        measurable=len(shown),
        cases=measured.cases,
        negatives=len(measured.healthy),
        unknown_below=measured.unknown_below,
        answered=len(answered),
        answered_right=sum(item.rank == 1 for item in answered),
        figures={name: measured.figures[name] for name in PUBLISHED_NAMES},
        bins=reliability(shown),
        causes=per_cause(shown),
        parts=tuple(
            PartFigures(
                name=name,
                top1=share(part, lambda item: item.rank == 1),
                top3=share(part, lambda item: item.rank <= 3),
            )
            for name, part in splits(shown).items()
        ),
        learning=measured.learning,
    )


# --- the history: one JSON object a line, so that a regression is seen ---------------------------


def append_history(path: Path, measured: Measured, *, date: str) -> bool:
    """Add a line to the history; False where nothing but the clock has changed since the last.

    Raises:
        InputError: the file's last line is no line of a history.
    """
    figures = {name: measured.figures[name].mean for name in HISTORY_NAMES}
    for percent in (50, 99):
        figures[f"p{percent}_{CLOCK}"] = measured.stages.percentile_ms(TOTAL, percent)
    if measured.healthy:
        figures["false_alarms"] = measured.figures["false_alarms"].mean
    line: dict[str, Any] = {
        "date": date,
        "incidents": len(measured.predictions),
        "measurable": len(measured.measurable),
        "cases": measured.cases,
        "negatives": len(measured.healthy),
        **{name: None if v is None else round(v, DIGITS) for name, v in figures.items()},
    }
    last = last_line(path)
    if last is not None and _steady(last) == _steady(line):
        return False
    with path.open("ab") as file:
        file.write(msgspec.json.encode(line) + b"\n")
    return True


def last_line(path: Path) -> dict[str, Any] | None:
    """The newest line, or None where there is no history.

    Raises:
        InputError: it is no JSON object.
    """
    lines = path.read_bytes().splitlines() if path.is_file() else []
    if not lines:
        return None
    try:
        return msgspec.json.decode(lines[-1], type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: {error}", todo="correct or remove its last line") from error


def _steady(line: dict[str, Any]) -> dict[str, Any]:
    return {name: v for name, v in line.items() if name != "date" and not name.endswith(CLOCK)}


# --- the Markdown --------------------------------------------------------------------------------


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table; intervals, shares and what was not measured are written alike in all."""
    lines = [header, ["---"] * len(header), *([_cell(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cell(value: object) -> str:
    if isinstance(value, Interval):
        return value.text(3, 2)
    if value is None:
        return "–"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def _full(value: Interval) -> str:
    """A figure with its interval and count."""
    return "not measured" if value.mean is None else f"{value.text(3, 3)}, n={value.n}"


def _section(title: str, *blocks: str) -> str:
    return "\n\n".join([f"## {title}", *(block for block in blocks if block)])


def render(measured: Measured) -> str:
    """The report in Markdown; the same figures give the same text."""
    sections = (
        _head(measured),
        _goals(measured),
        _figures(measured),
        _splits(measured),
        _plots(measured),
        _causes(measured),
        _confusion(measured),
        _known(measured),
        _twins(measured),
        _healthy(measured),
        _evidence(measured),
        _learning(measured),
        _time(measured),
        _misses(measured),
    )
    return "\n\n".join(sections) + "\n"


def _head(measured: Measured) -> str:
    return (
        "# How good the diagnosis is\n\n"
        "Written by `timeout-kb evaluate diagnosis --threads FILE --report DIR`; do not edit.\n\n"
        f"{len(measured.predictions)} real threads with a label, {len(measured.measurable)} of "
        "them measurable (the post says enough and does not tell the cause), against "
        f"{measured.cases} cases. Every incident is judged without its own case and those of its "
        "near-duplicates, by weights fitted and calibrated without its project. Brackets hold "
        "95 % bootstrap intervals; that of the calibration error lies high, since drawing "
        "anew adds noise to every bin. *As good* also counts causes a reader of the thread found "
        "equally defensible. Macro averages per cause."
    )


def _goals(measured: Measured) -> str:
    """What is aimed at, and whether it is reached."""

    def row(title: str, goal: str, reached: str, met: bool) -> list[object]:
        return [title, goal, reached, "yes" if met else "**no**"]

    rows = []
    for title, name, goal in AT_LEAST:
        value = measured.figures[name]
        rows.append(row(title, f"≥ {goal}", _full(value), (value.mean or 0) >= goal))
    for title, name, goal in AT_MOST:
        value = measured.figures[name]
        met = value.mean is not None and value.mean <= goal
        rows.append(row(title, f"≤ {goal}", _full(value), met))
    for title, percent, goal in AT_MOST_MS:
        taken = measured.stages.percentile_ms(TOTAL, percent)
        rows.append(row(title, f"≤ {goal:.0f} ms", f"{taken:.1f} ms", taken <= goal))
    return _section("Goals", table(["figure", "goal", "reached", ""], rows))


def _figures(measured: Measured) -> str:
    """All figures, over measurable and over all threads."""
    figures = measured.figures
    rows = [[title, figures[name], figures[f"{name}_all"]] for name, title in TITLES.items()]
    sizes = [f"measurable (n={len(measured.measurable)})", f"all (n={len(measured.predictions)})"]
    return _section("Held-out quality", table(["", *sizes], rows))


def _splits(measured: Measured) -> str:
    """By language and by whether there is a log."""
    rows = [
        [
            name,
            len(part),
            share(part, lambda item: item.rank == 1),
            share(part, lambda item: item.rank_also == 1),
            share(part, lambda item: item.rank <= 3),
        ]
        for name, part in splits(measured.measurable).items()
    ]
    header = ["measurable incidents", "n", "first", "first or as good", "among three"]
    return _section("By language and log", table(header, rows))


def _plots(measured: Measured) -> str:
    figures = diagnosis_figures(measured, date="")
    return _section(
        "Calibration and abstaining",
        f"![Reliability of the stated probabilities]({RELIABILITY})",
        f"![Share of wrong answers by share of incidents answered]({RISK})",
        f'The product says "unknown" below {figures.unknown_below:.2f}: it answers '
        f"{figures.answered} of {figures.measurable} measurable incidents and "
        f"{figures.answered_right} of those rightly.",
    )


def _causes(measured: Measured) -> str:
    rows = [
        [row.cause, row.n, row.top1, row.top3, row.named, row.precision]
        for row in per_cause(measured.measurable)
    ]
    header = ["cause", "n", "first", "among three", "named first", "of these right"]
    return _section("By cause", "Measurable incidents.", table(header, rows))


def _confusion(measured: Measured) -> str:
    """A row a true cause, a column the cause named first."""
    counts = confusion(measured.measurable)
    totals = Counter(item.thread.cause for item in measured.measurable)
    totals.update(dict.fromkeys((named for _, named in counts), 0))
    order = sorted(totals, key=lambda cause: (-totals[cause], cause))
    letters = {cause: chr(ord("A") + number) for number, cause in enumerate(order)}

    def count(truth: str, named: str) -> str:
        number = str(counts.get((truth, named), "·"))
        return f"**{number}**" if truth == named and number != "·" else number

    rows = [[f"{letters[one]} {one}", *(count(one, named) for named in order)] for one in order]
    intro = "Rows: the right cause; columns: the cause named first."
    return _section("Confusion", intro, table(["", *letters.values()], rows))


def _known(measured: Measured) -> str:
    """Known incidents."""
    figures = measured.figures
    rows = [
        ["its case first", _full(figures["known_recall_at_1"])],
        ["its case among five", _full(figures["known_recall_at_5"])],
        ["first cause is right", _full(figures["known_top1"])],
        ["right among three", _full(figures["known_top3"])],
    ]
    intro = (
        "The incident's own case is in the knowledge base, as for a user who "
        "meets what is already written up."
    )
    blocks = [intro, table(["", "share"], rows)]
    missed = [item for item in measured.known if item.place != 1]
    missed.sort(key=lambda item: (-item.place, item.prediction.thread.id))
    if missed:
        rows = [
            [_link(item.prediction.thread), ", ".join(item.own), str(item.place or "–"), item.first]
            for item in missed
        ]
        header = ["incident", "its case", "place", "first instead"]
        blocks += ["Its case is not first:", table(header, rows)]
    return _section("Known incidents", *blocks)


def _twins(measured: Measured) -> str:
    """Chinese against English."""
    figures = measured.figures
    rows: list[list[object]] = [
        [
            title,
            _full(figures[f"parity{suffix}"]),
            _full(figures[f"parity_threads{suffix}"]),
            figures[f"zh_right{suffix}"],
            figures[f"en_right{suffix}"],
        ]
        for title, suffix in (
            ("words only", ""),
            ("words and the shared log lines", "_with_lines"),
        )
    ]
    header = ["twin reports", "same first cause", "of these from threads", "zh right", "en right"]
    intro = (
        "The symptoms of each case in both languages, judged without the "
        "case and by weights that never saw its project."
    )
    blocks = [intro, table(header, rows)]
    apart = [[one.case, one.cause, one.zh, one.en] for one in measured.twins if one.zh != one.en]
    if apart:
        blocks += ["Words only, different first causes:"]
        blocks += [table(["case", "cause", "zh", "en"], apart)]
    lopsided = one_sided(measured.twins)[:SHOWN_SIGNALS]
    blocks += ["Signals found in one language of a twin and not in the other:"]
    blocks += [table(["signal", "zh only", "en only"], lopsided)]
    return _section("Chinese and English", *blocks)


def _healthy(measured: Measured) -> str:
    """False alarms."""
    if not measured.healthy:
        return _section("Logs without a timeout", "Not measured: add `--negatives DIR`.")
    alarms = [log for log in measured.healthy if log.alarm]
    rows = [[log.name, log.cause, "; ".join(map(_code, log.triggers))] for log in alarms]
    return _section(
        "Logs without a timeout",
        f"{len(alarms)} of {len(measured.healthy)} healthy or "
        "otherwise failed runs are said to be a timeout.",
        table(["log", "cause named", "because"], rows) if alarms else "",
    )


def _code(text: str) -> str:
    return f"`{text.replace('|', '¦').replace('`', chr(39))}`"


def _evidence(measured: Measured) -> str:
    """What each kind of evidence is worth."""
    rows = [
        [
            worth.variant,
            worth.top1,
            worth.top3,
            worth.macro_top3,
            f"{worth.top1_all.mean:.3f}",
            f"{worth.top3_all.mean:.3f}",
            f"{worth.p50_ms:.1f}",
        ]
        for worth in measured.variants
    ]
    header = ["evidence", "first", "among three", "macro among three"]
    header += ["first, all", "among three, all", "p50 ms"]
    intro = (
        "Weights fitted anew without the rest; measurable "
        "incidents, and all. Milliseconds are those of the stages it needs."
    )
    return _section("What each evidence is worth", intro, table(header, rows))


def _learning(measured: Measured) -> str:
    """What the learned reader gets from the shipped reports."""
    rows = [[point.name, point.reports, point.top1, point.top3] for point in measured.learning]
    return _section(
        "What the reports teach",
        "Measurable incidents, judged with a reader that learned from so many of the shipped "
        "reports beside the other threads and the cases' symptoms.",
        table(["reports", "n", "first", "among three"], rows),
    )


def _time(measured: Measured) -> str:
    """Time by stage."""
    stages = measured.stages
    rows = [
        [name, stages.percentile_ms(name, 50), stages.percentile_ms(name, 99)]
        for name in (*STAGES, TOTAL)
    ]
    intro = (
        f"{len(stages.taken_ms[TOTAL])} pastes of {PASTE_LINES} lines (the post's "
        "words, progress of a run, its log), one thread, on the machine that wrote this report."
    )
    return _section("Time", intro, table(["stage", "p50 ms", "p99 ms"], rows))


def _misses(measured: Measured) -> str:
    """Every measurable thread whose first cause is wrong."""
    missed = [item for item in measured.measurable if item.rank != 1]
    missed.sort(key=lambda item: (item.rank, item.thread.cause, item.thread.id))
    rows: list[list[object]] = []
    for item in missed:
        leading = list(zip(item.causes, item.probabilities, strict=True))[:SHOWN_CAUSES]
        named = ", ".join(f"{cause} {probability:.2f}" for cause, probability in leading)
        also = f" ({', '.join(item.thread.also)})" if item.thread.also else ""
        right = f"{item.thread.cause}{also}"
        because = ", ".join(item.because) or "nothing"
        rows.append([_link(item.thread), right, item.rank, named, because])
    header = ["incident", "right (as good)", "place", "named", "because"]
    return _section("Misses", table(header, rows))


def _link(thread: LabelledThread) -> str:
    name = thread.id.replace("__", "/", 1).replace("__", " ")
    return f"[{name}]({thread.url})"
