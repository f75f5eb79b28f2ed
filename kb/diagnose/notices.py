"""What a team wants known above an answer: its notices, and bad hosts that the log names."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence

from kb.diagnose.wording import rank_span
from kb.knowledge.labels import Words
from kb.knowledge.load import Knowledge
from kb.knowledge.site import bad_hosts
from kb.types.answer import AnswerNotice
from kb.types.incident import LogReading
from kb.types.knowledge import BadHost, TeamNotice

_NAMES = re.compile(r"[\w-]+(?:\.[\w-]+)*")  # hosts among other words


def notices_of(
    reading: LogReading,
    causes: Sequence[str],
    knowledge: Knowledge,
    words: Words,
    today: dt.date | None,
    *,
    is_searched: bool = True,
) -> tuple[AnswerNotice, ...]:
    """Bad hosts first, culprits' before others', then the notices that are due, as in their file.

    `causes` are those the answer names. At the end stands that nothing similar could be searched
    for where that is so.
    """
    found: list[AnswerNotice] = []
    if knowledge.hosts:
        culprits = {culprit.rank for culprit in reading.incident.culprit_ranks}
        found += _of_hosts(reading, knowledge.hosts, words)
        found.sort(key=lambda notice: not culprits & set(notice.ranks))
    found += [
        _notice(notice, words)
        for notice in knowledge.notices
        if is_due(notice, today) and (not notice.causes or set(notice.causes) & set(causes))
    ]
    if not is_searched:
        text = words("warning.not_searched")
        found.append(AnswerNotice(kind="not_searched", id="index", text=text))
    return tuple(found)


def notices_about(
    cause: str, notices: Sequence[TeamNotice], words: Words, today: dt.date
) -> tuple[AnswerNotice, ...]:
    """The notices about one cause that are due, in their order."""
    return tuple(
        _notice(notice, words)
        for notice in notices
        if cause in notice.causes and is_due(notice, today)
    )


def _notice(notice: TeamNotice, words: Words) -> AnswerNotice:
    text = notice.text.get(words.language)
    return AnswerNotice(kind="notice", id=notice.id, text=text, url=notice.url)


def is_due(notice: TeamNotice, today: dt.date | None) -> bool:
    """Whether a notice is shown on a day; without a day, whether it is always shown."""
    if today is None:
        return notice.since is None and notice.until is None
    begun = notice.since is None or notice.since <= today
    return begun and (notice.until is None or today <= notice.until)


def _of_hosts(
    reading: LogReading, hosts: Sequence[BadHost], words: Words
) -> Iterator[AnswerNotice]:
    ranks: dict[str, set[int]] = {}
    places: list[tuple[str, int | None]] = [
        (state.host, state.rank) for state in reading.incident.ranks
    ]
    for event in reading.events:
        places.append((event.host, event.rank))
        places += [(name, None) for name in _NAMES.findall(event.text)]  # of peers
    for name, rank in places:
        if name:
            ranks.setdefault(name, set()).update(() if rank is None else (rank,))
    for host, names in bad_hosts(hosts, ranks).items():
        on_it = tuple(sorted(set().union(*(ranks[name] for name in names))))
        text = words(
            "site.bad_host",
            host=names[0],
            ranks=words("site.on_it", ranks=rank_span(on_it)) if on_it else "",
            since=words("site.since", day=host.since.isoformat()) if host.since else "",
            reason=host.reason.get(words.language),
        )
        yield AnswerNotice(kind="bad_host", id=names[0], text=text, ranks=on_it)
