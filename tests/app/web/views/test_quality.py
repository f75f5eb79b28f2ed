"""The quality page: figures as measured, coverage as counted, feedback as given."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from app.cli import main as cli
from app.cli.common import State
from app.inputs.contributions import Feedback, StoredFeedback, add_feedback
from app.web.views import quality as figures
from kb.evaluation.published import (
    PUBLISHED,
    BatchRecord,
    CauseFigures,
    ConfidenceBin,
    FirstSightAnswer,
    Interval,
    LearningPoint,
    load_published,
)
from kb.knowledge.labels import Words
from kb.service import Service
from tests.app.web.conftest import OpenPage, forget_feedback, html_of

PHONE_CELLS = 64  # of an axis' label on 360 pixels
STEADY = Interval(mean=0.6857, low=0.6, high=0.7714, n=105)


@pytest.fixture
def words(real: Service) -> Words:
    """English labels."""
    return Words(real.knowledge.labels, "en")


def rows_of(shown: str) -> list[list[str]]:
    """Cells of all tables of a page, row by row."""
    return [
        [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row)]
        for row in re.findall(r"<tr>(.*?)</tr>", shown, re.DOTALL)
    ]


# --- figures -----------------------------------------------------------------------------------


def test_the_page_tells_the_published_figures(real: Service, open_page: OpenPage) -> None:
    """Every headline figure stands there with its interval and count, as in the file."""
    rows = dict(row for row in rows_of(html_of(open_page("quality"))) if len(row) == 2)
    found = load_published(real.settings.data / "golden").diagnosis
    assert found is not None
    assert rows["first is right"] == figures.share(found.figures["top1"])
    assert rows["right among three"] == figures.share(found.figures["top3"])
    assert rows["known incident: its case first"] == figures.share(
        found.figures["known_recall_at_1"]
    )
    assert rows["false alarms (lower is better)"] == figures.share(found.figures["false_alarms"])


@pytest.mark.parametrize(
    ("figure", "said"),
    [
        (STEADY, "69% (60–77%), n = 105"),
        (replace(STEADY, mean=0.0, low=0.0, high=0.004), "0% (0–<1%), n = 105"),
        (replace(STEADY, mean=1.0, low=0.997, high=1.0), "100% (>99–100%), n = 105"),
        (Interval(mean=None, low=None, high=None, n=0), "–"),
        (None, "–"),
    ],
    ids=["usual", "nearly none", "nearly all", "not measured", "missing"],
)
def test_a_figure_is_said_with_its_interval(figure: Interval | None, said: str) -> None:
    """Share, interval and count; what was not measured is a dash, never 0."""
    assert figures.share(figure) == said


def test_recall_is_shown_by_route_and_setting(real: Service, words: Words) -> None:
    """A row a route, the shipped search first, a column each for same and across languages."""
    found = load_published(real.settings.data / "golden").retrieval
    assert found is not None
    header, first, *_ = figures.recall_table(found, words)
    assert header == ["Method", "same language", "across languages", "both languages"]
    shipped = {row.setting: row.recall_at_5 for row in found.routes if row.route == "hybrid"}
    assert first == [
        "the search as shipped",
        *(figures.share(shipped[name]) for name in figures.SETTINGS),
    ]


def test_settings_and_routes_are_those_measured(real: Service) -> None:
    """Every setting, route and part of the published figures has its words."""
    found = load_published(real.settings.data / "golden")
    assert found.retrieval is not None
    assert found.diagnosis is not None
    assert {row.setting for row in found.retrieval.routes} == set(figures.SETTINGS)
    assert {row.route for row in found.retrieval.routes} == set(figures.ROUTES)
    assert {part.name for part in found.diagnosis.parts} <= set(figures.PARTS)


def test_the_reliability_chart_draws_every_bin(words: Words) -> None:
    """A point a bin at its stated probability and share, its interval, and the diagonal."""
    bins = [ConfidenceBin(confidence=stated, right=STEADY) for stated in (0.3, 0.9)]
    chart = figures.reliability_chart(bins, words)
    diagonal, _, dots = chart["layer"]
    points = chart["data"]["values"]
    assert [row["stated"] for row in points] == [0.3, 0.9]
    assert all(row["low"] <= row["right"] <= row["high"] for row in points)
    assert dots["encoding"]["x"]["title"] == "stated probability"
    assert diagonal["data"]["values"] == [{"stated": at, "right": at} for at in (0, 1)]


def test_a_cause_has_two_bars(words: Words, real: Service) -> None:
    """Its title whole, its count, and its share right at first place and among three."""
    rows = [
        CauseFigures(cause="rank-crash", n=12, named=9, top1=0.5, top3=0.75, precision=None),
        CauseFigures(cause="elsewhere", n=1, named=0, top1=None, top3=0.0, precision=None),
        CauseFigures(cause="shm-limits", n=0, named=0, top1=None, top3=None, precision=None),
    ]
    header, *body = figures.cause_table(rows, real.knowledge.causes, words)
    assert header == ["Cause", "n", "first is right", "right among three"]
    title = real.knowledge.cause_by_id["rank-crash"].title.en
    assert [row[:2] for row in body] == [[title, "12"], ["elsewhere", "1"]]
    widths = [re.findall(r"width:([\d.]+)%", str(cell)) for row in body for cell in row[2:]]
    assert widths == [["50.0"], ["75.0"], [], ["0.0"]]
    assert body[1][2] == "–"


def elsewhere(real: Service, data: Path) -> SimpleNamespace:
    """As much of the service as the page asks for, over another folder of data files."""
    return SimpleNamespace(
        settings=replace(real.settings, data=data),
        knowledge=real.knowledge,
        store=real.store,
    )


def test_what_was_not_measured_says_so(real: Service, open_page: OpenPage, tmp_path: Path) -> None:
    """Without figures the page names the command that makes them and still shows the coverage."""
    shown = html_of(open_page("quality", service=elsewhere(real, tmp_path)))
    assert "timeout-kb evaluate --threads FILE --report" in shown
    assert "What the knowledge covers" in shown
    assert "first is right" not in shown


def test_a_damaged_file_costs_only_its_part(
    real: Service, open_page: OpenPage, tmp_path: Path
) -> None:
    """The damage is told with its repair; the rest of the page stands."""
    (tmp_path / "golden").mkdir()
    (tmp_path / "golden" / PUBLISHED).write_text('{"format": 99}', "utf-8")
    shown = html_of(open_page("quality", service=elsewhere(real, tmp_path)))
    assert "is of format 99" in shown
    assert "What the knowledge covers" in shown


# --- coverage ----------------------------------------------------------------------------------


def test_coverage_is_what_the_command_counts(
    real: Service, words: Words, capsys: pytest.CaptureFixture[str]
) -> None:
    """Page and `timeout-kb evaluate knowledge` count the same."""
    state = State(open_service=lambda *_args, **_options: _Open(real))  # type: ignore[arg-type]
    assert cli.run(["evaluate", "knowledge", "--format", "json"], state=state) == 0
    told = json.loads(capsys.readouterr().out)["knowledge"]
    bars = figures.coverage(real.knowledge.cases, real.knowledge.causes, words)
    assert [str(count) for _, count in bars["page.by_cause"]] == list(
        told["cases by cause"].values()
    )
    assert {name: str(count) for name, count in bars["page.by_year"]} == told[
        "cases by year first seen"
    ]
    backends = {name: str(count) for name, count in bars["page.by_backend"]}
    expected = told["cases by backend"]
    assert {name: backends[name] for name in expected if name != "none"} == {
        name: count for name, count in expected.items() if name != "none"
    }


class _Open:
    """The service, which a command would close at its end."""

    def __init__(self, real: Service) -> None:
        self.knowledge = real.knowledge

    def close(self) -> None:
        """Others still use it."""


def test_bars_add_up_to_the_cases(real: Service, words: Words) -> None:
    """Every chart counts every case once."""
    for bars in figures.coverage(real.knowledge.cases, real.knowledge.causes, words).values():
        assert sum(count for _, count in bars) == len(real.knowledge.cases)


def test_rare_values_are_counted_together() -> None:
    """At most so many bars; the rest stands in one, ties in the order of names."""
    values = [f"p{number:02}" for number in range(20)] + ["p19"]
    bars = figures.spread(values, rest="rest")
    assert bars[0] == ("p19", 2)
    assert bars[1] == ("p00", 1)
    assert bars[-1] == ("rest", 20 - figures.MOST_BARS)
    assert len(bars) == figures.MOST_BARS + 1


def test_a_given_order_keeps_zeros() -> None:
    """A cause without a case shows as such."""
    assert figures.spread(["b"], order=["a", "b"]) == [
        ("a", 0),
        ("b", 1),
    ]


def test_a_count_has_a_bar() -> None:
    """In the order given; the longest bar is whole, and beside each stands its number."""
    shown = str(figures.bar_table([("b", 2), ("a", 1)], "cases"))
    assert rows_of(shown) == [["", "cases"], ["b", "2"], ["a", "1"]]
    assert re.findall(r"width:([\d.]+)%", shown) == ["100.0", "50.0"]
    assert "width" not in str(figures.bar_table([], "cases"))


# --- feedback ----------------------------------------------------------------------------------


@pytest.fixture
def judged(real: Service) -> Iterator[None]:
    """Three judgements with a comment nobody else may read."""
    forget_feedback(real)
    for verdict, cause in (
        ("right", "rank-crash"),
        ("wrong", "rank-crash"),
        ("right", "shm-limits"),
    ):
        add_feedback(
            real,
            Feedback(verdict=verdict, cause=cause, comment="my secret job"),  # type: ignore[arg-type]
            source="web",
        )
    yield
    forget_feedback(real)


def test_feedback_is_counted_not_shown(judged: None, real: Service, open_page: OpenPage) -> None:
    """Right and wrong by cause; no comment appears."""
    shown = html_of(open_page("quality"))
    crash, limits = (
        real.knowledge.cause_by_id[name].title.en for name in ("rank-crash", "shm-limits")
    )
    assert [crash, "1", "1"] in rows_of(shown)
    assert [limits, "1", "0"] in rows_of(shown)
    assert "3 in all" in shown
    assert "secret" not in shown


def test_no_feedback_yet(real: Service, open_page: OpenPage) -> None:
    """Nothing said is said."""
    forget_feedback(real)
    assert "None yet." in html_of(open_page("quality"))


def test_feedback_rows_follow_the_causes(real: Service, words: Words) -> None:
    """Causes in their own order, those nobody judged left out."""
    stored = [
        StoredFeedback(at="2030", feedback=Feedback(verdict="wrong", cause="shm-limits")),
        StoredFeedback(at="2030", feedback=Feedback(verdict="right", cause="rank-crash")),
    ]
    rows = figures.feedback_rows(stored, real.knowledge.causes, words)
    assert [(right, wrong) for _, right, wrong in rows] == [(1, 0), (0, 1)]


@pytest.mark.parametrize(
    ("name", "shown"),
    [("top1", "50% (25–75%), n = 32"), ("sure_right", "2 / 3"), ("macro_top1", "-")],
)
def test_figures_of_a_batch(name: str, shown: str) -> None:
    """Shares with their interval; of a handful of sure answers the count, not a share of all."""
    batch = BatchRecord(
        batch="b",
        date="2026-01-01",
        version="v",
        digest="d",
        posts=32,
        zh=7,
        recent=19,
        figures={
            "top1": (0.5, 0.25, 0.75),
            "sure": (0.094, 0.0, 0.2),
            "sure_right": (0.667, 0.1, 1.0),
        },
    )
    assert figures.batch_figure(batch, name) == shown


def answer(cause: str, rank: int, *, lang: str = "en", log: bool = False) -> FirstSightAnswer:
    """One of a batch, stated with 50 %."""
    named = cause if rank == 1 else "other"
    return FirstSightAnswer(cause=cause, named=named, confidence=0.5, rank=rank, lang=lang, log=log)


def test_what_is_missed_at_first_sight_is_counted(words: Words, real: Service) -> None:
    """By language, by log, and by the cause it was; causes most often met first."""
    answers = [answer("rendezvous", 1), answer("rendezvous", 3, lang="zh"), answer("odd", 4)]
    table = figures.sight_table(answers, real.knowledge.causes, words)
    assert [row[1:] for row in table[1:]] == [
        ["2", "1 / 2", "1 / 2"],
        ["1", "0 / 1", "1 / 1"],
        ["3", "1 / 3", "2 / 3"],
        ["2", "1 / 2", "2 / 2"],
        ["1", "0 / 1", "0 / 1"],
    ]
    assert table[-1][0] == "odd"


def test_what_the_reports_teach_is_told(words: Words) -> None:
    """A row a share of them."""
    point = LearningPoint(name="25%", reports=800, top1=STEADY, top3=STEADY)
    (header, row) = figures.learning_table([point], words)
    assert len(header) == len(row) == 3
    assert row[0] == "25% (800)"
    assert row[1].startswith("69")
