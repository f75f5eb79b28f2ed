"""Notices: on their days, above the answers they are for; bad hosts with the ranks on them."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest

from kb.diagnose.notices import is_due, notices_of
from kb.knowledge.labels import Words
from kb.knowledge.load import Knowledge
from kb.types.incident import Culprit, Event, Incident, LogReading, RankState
from kb.types.knowledge import BadHost, Bilingual, TeamNotice

TEXT = Bilingual(zh="维护", en="maintenance")
DAY = dt.date(2026, 5, 3)


@pytest.mark.parametrize(
    ("since", "until", "due"),
    [
        (None, None, True),
        (DAY, DAY, True),
        (DAY + dt.timedelta(1), None, False),
        (None, DAY - dt.timedelta(1), False),
    ],
    ids=["always", "that day", "not yet", "over"],
)
def test_a_notice_has_its_days(since: dt.date | None, until: dt.date | None, due: bool) -> None:
    """The first and the last day are both of them."""
    assert is_due(TeamNotice(id="x", text=TEXT, since=since, until=until), DAY) is due


def test_a_notice_stands_above_its_causes(knowledge: Knowledge) -> None:
    """One without causes above all answers, another above those that name a cause of it."""
    notices = (
        TeamNotice(id="all", text=TEXT),
        TeamNotice(id="io", text=TEXT, causes=("checkpoint-io",)),
    )
    own, words = replace(knowledge, notices=notices), Words(knowledge.labels, "en")
    reading = LogReading(incident=Incident(), events=(), excerpt="")
    shown = {
        cause: [item.id for item in notices_of(reading, [cause], own, words, DAY)]
        for cause in ("checkpoint-io", "rank-crash")
    }
    assert shown == {"checkpoint-io": ["all", "io"], "rank-crash": ["all"]}


def test_bad_hosts_are_named_with_their_ranks(knowledge: Knowledge) -> None:
    """A rank's host, and one that a line names; the culprit's first; good hosts never."""
    bad = [BadHost(name=name, reason=Bilingual(zh="坏", en="bad")) for name in ("n1", "n2", "n3")]
    reading = LogReading(
        incident=Incident(
            ranks=(
                RankState(rank=0, state="waiting", host="n1.cluster"),
                RankState(rank=1, state="waiting", host="n1.cluster"),
                RankState(rank=5, state="silent", host="n2"),
                RankState(rank=6, state="silent", host="n4"),
            ),
            culprit_ranks=(Culprit(rank=5, kind="silent", reason=TEXT),),
        ),
        events=(
            Event(pattern_id="x", kind="cascade", event="x", line=1, text="closed by peer n3:4242"),
        ),
        excerpt="",
    )
    own, words = replace(knowledge, hosts=tuple(bad)), Words(knowledge.labels, "en")
    shown = notices_of(reading, [], own, words, DAY)
    assert [(item.id, item.ranks) for item in shown] == [
        ("n2", (5,)),
        ("n1.cluster", (0, 1)),
        ("n3", ()),
    ]
    assert shown[1].text == "Host n1.cluster (rank 0-1) is on your team's list of bad hosts: bad"
