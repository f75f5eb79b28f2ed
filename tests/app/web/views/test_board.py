"""The board: how to feed it, what keeps coming back, who offends, filters and the address."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.web.views import board
from kb.incidents.board import WeekTally
from kb.knowledge.labels import Words
from kb.service import Service
from tests.app.web.conftest import OpenPage, address_of, codes_of, html_of, shown_text
from tests.kb.incidents.builders import OOM, at, cause, fixed, incident

TIMES = {"added": "2026-11-02T10:00:00Z", "on": "2026-11-02T16:00:00Z"}
ENTRIES = [
    incident(
        1,
        causes=cause("rank-crash"),
        signature=(OOM,),
        culprits=at(3, "gpu-07", "3 (1b:00)"),
        labels=("prod",),
        **fixed("Use <b>smaller</b> batches", **TIMES),
    ),
    incident(
        2,
        causes=cause("rank-crash"),
        signature=(OOM,),
        culprits=at(11, "gpu-07", "3 (1b:00)"),
        date="2026-11-20",
    ),
    incident(
        3,
        date="2026-12-01",
        project="a/b",
        labels=("night",),
        added_on="2026-12-01T09:41:07Z",
        log_name="slurm-812.log",
        own_cause="a <b>bent</b> riser",
    ),
]


@pytest.fixture
def filled(real: Service) -> Iterator[Service]:
    """Three incidents, gone after the test."""
    real.store.upsert(ENTRIES)
    yield real
    real.store.delete([entry.id for entry in ENTRIES])


@pytest.mark.parametrize(
    ("lang", "said"), [("en", "There are no incidents yet"), ("zh", "还没有事故")]
)
def test_an_empty_board_says_how_to_feed_it(open_page: OpenPage, lang: str, said: str) -> None:
    """The API's line and the hook's switch can be copied, Slack and the page are named."""
    page = open_page("board", lang=lang)
    shown = html_of(page)
    assert said in shown
    api, hook = codes_of(page)
    assert api.startswith("curl http://")
    assert api.endswith("/v1/entries -F file=@job.log")
    assert hook.startswith("TKB_INCIDENTS=1")
    assert "slurm-epilog.sh" in shown
    assert "Slack" in shown
    assert f'href="./?lang={lang}"' in shown
    assert not page.get("vega_lite_chart")


@pytest.mark.usefixtures("filled")
def test_what_comes_back_and_what_fixed_it(open_page: OpenPage) -> None:
    """Figures, the group with its fix and links, the offender, and every incident."""
    shown = html_of(open_page("board"))
    text = shown_text(shown)
    assert "3 incidents · 2 open · 1 resolved" in text
    assert "on average" not in text  # of one there is no mean
    assert "2× One rank died first" in text
    assert "2026-11-02 to 2026-11-20" in text
    assert "Use &lt;b&gt;smaller&lt;/b&gt; batches (1 incident)" in text
    assert "2× gpu-07 · GPU 3 (1b:00)" in text
    assert 'href="./board?lang=en&amp;host=gpu-07&amp;gpu=3+%281b%3A00%29"' in shown
    order = [text.index(h) for h in ("What keeps coming back", "Repeat offenders", "Latest")]
    assert order == sorted(order)
    for entry in ENTRIES:
        assert f'href="./cases?lang=en&amp;id={entry.id}"' in shown
    assert "rank 3 @ gpu-07 GPU 3 (1b:00)" in text


@pytest.mark.usefixtures("filled")
def test_incidents_of_one_title_are_told_apart(open_page: OpenPage) -> None:
    """By when they were added, the name of their log, their project, and what people said."""
    text = shown_text(html_of(open_page("board")))
    assert "added 2026-12-01 09:41 UTC · slurm-812.log · a/b" in text
    assert "unresolved · a &lt;b&gt;bent&lt;/b&gt; riser · 2026-12-01" in text


@pytest.mark.usefixtures("filled")
def test_the_board_speaks_chinese(open_page: OpenPage) -> None:
    """Headings, figures and causes are in the language of the page."""
    text = shown_text(html_of(open_page("board", lang="zh")))
    assert "3 起事故 · 2 起未解决 · 1 起已解决" in text
    assert "平均" not in text
    for heading in ("反复发生的事故", "屡次出问题的机器", "每周的事故", "最近的事故", "根因未定"):
        assert heading in text
    assert "incident" not in text.replace("incident 1", "")


@pytest.mark.usefixtures("filled")
def test_filters_of_the_address_and_of_the_widgets(open_page: OpenPage) -> None:
    """An address filters; what is chosen on the page stands in the address."""
    page = open_page("board", label="PROD")
    text = shown_text(html_of(page))
    assert "1 incident ·" in text
    assert "Repeat offenders" not in text
    assert address_of(page) == {"label": ["prod"]}
    page.button[0].click().run()
    assert "3 incidents" in shown_text(html_of(page))
    assert address_of(page) == {}
    page.selectbox[0].select("false").run()
    assert "2 incidents · 2 open · 0 resolved" in shown_text(html_of(page))
    assert address_of(page) == {"resolved": ["false"]}


@pytest.mark.usefixtures("filled")
def test_an_unknown_value_is_refused_and_hides_nothing(open_page: OpenPage) -> None:
    """A misspelt host is named with the hosts there are; all incidents are shown."""
    page = open_page("board", host="gpu-70")
    text = shown_text(html_of(page))
    assert "No incident has host &#39;gpu-70&#39;" in text
    assert "host is one of: gpu-07" in text
    assert "3 incidents" in text


@pytest.mark.usefixtures("filled")
def test_filters_that_leave_nothing_say_so(open_page: OpenPage) -> None:
    """Two filters that nothing passes together are no empty page."""
    text = shown_text(html_of(open_page("board", label="night", host="gpu-07")))
    assert "No incident passes these filters" in text
    assert "Latest incidents" not in text


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        (("10:00:20", "10:00:20"), "resolved in 1 min on average (of 2)"),
        (("10:20:00", "10:30:00"), "resolved in 25 min on average (of 2)"),
        (("11:00:00", "14:00:00"), "resolved in 2.5 h on average (of 2)"),
    ],
)
def test_the_mean_has_a_fitting_unit(
    real: Service, open_page: OpenPage, ends: tuple[str, str], said: str
) -> None:
    """Nothing is resolved in 0.0 h; the mean is of two incidents at least."""
    added = "2026-11-02T10:00:00Z"
    entries = [
        incident(at, **fixed("x", added=added, on=f"2026-11-02T{end}Z"))
        for at, end in enumerate(ends)
    ]
    real.store.upsert(entries)
    text = shown_text(html_of(open_page("board")))
    real.store.delete([entry.id for entry in entries])
    assert said in text


def test_one_week_needs_no_chart(real: Service, open_page: OpenPage) -> None:
    """A chart of one bar tells nothing; neither do tables of one row."""
    real.store.upsert(ENTRIES[:1])
    page = open_page("board")
    real.store.delete([ENTRIES[0].id])
    text = shown_text(html_of(page))
    assert "1 incident ·" in text
    assert "Incidents a week" not in text
    assert "By cause" not in text
    assert not page.get("vega_lite_chart")


def test_weeks_of_the_chart(
    real: Service, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Empty weeks have a place, rare causes are counted together, half a year is shown."""
    monkeypatch.setattr(board, "service", lambda: real)
    words = Words(real.knowledge.labels, "en")
    causes = [each.id for each in real.knowledge.causes[:8]]
    weeks = [
        WeekTally(week="2026-11-02", cause=name, incidents=9 - n, ids=())
        for n, name in enumerate(causes)
    ]
    weeks.append(WeekTally(week="2026-11-23", cause=causes[0], incidents=2, ids=()))
    weeks.append(WeekTally(week="2025-11-03", cause=causes[0], incidents=50, ids=()))
    spec = board.weeks_chart(weeks, words)
    domain = spec["encoding"]["x"]["scale"]["domain"]
    assert (len(domain), domain[-4:]) == (
        board.WEEKS,
        ["2026-11-02", "2026-11-09", "2026-11-16", "2026-11-23"],
    )
    rows = {(row["week"], row["cause"]): row["count"] for row in spec["data"]["values"]}
    assert rows["2026-11-02", "all others"] == 3 + 2
    assert sum(rows.values()) == sum(range(2, 10)) + 2
    assert len(spec["encoding"]["color"]["scale"]["domain"]) == board.CAUSES + 1


@pytest.mark.parametrize(
    ("hours", "span"),
    [
        (0.0, "1 min"),
        (0.25, "15 min"),
        (1.0, "1.0 h"),
        (47.9, "47.9 h"),
        (48.0, "2.0 days"),
        (84.0, "3.5 days"),
    ],
)
def test_spans(real: Service, hours: float, span: str) -> None:
    """Minutes below an hour, hours up to two days, then days."""
    assert board._span(hours, Words(real.knowledge.labels, "en")) == span
