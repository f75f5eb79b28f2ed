"""The picture of causes by week is as high as its counts."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from app.render.weeks_picture import COLOURS, GREY, NAMED, PLOT, weeks_picture
from kb.incidents.archive import WeekCount

SVG = "{http://www.w3.org/2000/svg}"


def bars(picture: str) -> dict[str, tuple[float, str]]:
    """Height and colour of each part by what it says when pointed at."""
    rects = ET.fromstring(picture).iter(f"{SVG}rect")  # noqa: S314 - our own
    return {
        str(title.text): (float(rect.attrib["height"]), rect.attrib["fill"])
        for rect in rects
        if (title := rect.find(f"{SVG}title")) is not None
    }


def test_heights_are_shares_of_the_highest_week() -> None:
    """Every count is drawn once, in its week, in the colour of its cause; titles are escaped."""
    weeks = [
        WeekCount(week="2026-01-05", cause="a", logs=3),
        WeekCount(week="2026-01-05", cause="b", logs=1),
        WeekCount(week="2026-01-12", cause="b", logs=1),
    ]
    picture = weeks_picture(weeks, lambda cause: f"<{cause}>", "others")
    assert bars(picture) == {
        "2026-01-05: 3 <a>": (PLOT * 3 / 4, COLOURS[0]),
        "2026-01-05: 1 <b>": (PLOT / 4, COLOURS[1]),
        "2026-01-12: 1 <b>": (PLOT / 4, COLOURS[1]),
    }
    assert "others" not in picture


def test_the_rare_share_a_colour() -> None:
    """Beyond the named ones causes are grey, and the legend says so; no week is no bar."""
    weeks = [WeekCount(week="2026-01-05", cause=f"c{at}", logs=9 - at) for at in range(NAMED + 1)]
    picture = weeks_picture(weeks, str, "others")
    assert [colour for _, colour in bars(picture).values()] == [*COLOURS, GREY]
    assert ">others<" in picture
    assert bars(weeks_picture([], str, "others")) == {}
