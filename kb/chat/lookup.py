"""Finding the case a message means."""

from __future__ import annotations

import re

from kb.chat.talk import Talk
from kb.diagnose.engine import query_text
from kb.types import Entry, Filters

MIN_SHARE = 0.5  # of the words asked for that a case must have
TIES = 8  # equally well named cases that are compared with the incident
_WORD = re.compile(r"[a-z0-9][a-z0-9_.+-]{1,60}|[\u4e00-\u9fff]{2,12}")
# Words of the request itself; they name no case.
_REQUEST = frozenset(
    "show me the case cases see open please display read give view tell about what look at more"  # noqa: SIM905 - a word list reads better so
    " second first third details detail of on in one that this it which is can you number link an"
    " a source thread issue and got any real have has anyone examples example some like mine pls"
    " please this".split()
)
_REQUEST_ZH = re.compile(
    "看一?看|看下|展示|打开|显示|给我|讲讲|说说|查看|详细|介绍|一下|那个|案例|例子|的|第.个"
    "|有没有|有|真实|实际|具体|现成|类似|没有?|吗|呢|贴|发|来|找|一?个|链接|issue|我|看"
)


def find_cases(talk: Talk) -> list[Entry]:
    """The cases meant, best first: by id, by place in the list, by project or words of the title.

    Several only where the words fit them equally well; those of the incident come first then.
    """
    own = talk.heard.own.lower()
    cases = talk.knowledge.case_by_id
    named = next((case for name, case in sorted(cases.items()) if name in own), None)
    if named is not None:
        return [named]
    listed = [case.id for case in talk.diagnosis.cases] if talk.diagnosis else []
    if talk.heard.ordinal:
        order = _last_list(talk) or listed
        chosen = order[talk.heard.ordinal - 1 : talk.heard.ordinal]
        return [cases[name] for name in chosen if name in cases]
    wanted = _wanted(own)
    if not wanted:
        latest = [*talk.conversation.shown[-1:], *listed[:1]]
        return [cases[name] for name in latest[:1] if name in cases]
    return _ordered(talk, _best_named(list(cases.values()), wanted), listed)


def names_any(own: str) -> bool:
    """Whether the words of a request say anything of the cases wanted."""
    return bool(_wanted(own.lower()))


def _wanted(own: str) -> list[str]:
    return [word for word in _WORD.findall(_REQUEST_ZH.sub(" ", own)) if word not in _REQUEST]


def _best_named(cases: list[Entry], wanted: list[str]) -> list[Entry]:
    """The cases that have most of the words, all of them equally many."""
    scored = [(_likeness(case, wanted), case) for case in cases]
    best = max((share for share, _ in scored), default=0.0)
    return [case for share, case in scored if share == best] if best >= MIN_SHARE else []


def _ordered(talk: Talk, ties: list[Entry], listed: list[str]) -> list[Entry]:
    """Cases of the incident first, then those most like it, ties by id."""
    place = {name: number for number, name in enumerate(listed)}
    likeness: dict[str, float] = {}
    if len(ties) > 1 and talk.judged is not None:
        projects = tuple(sorted({case.project for case in ties}))[:TIES]
        query = query_text(talk.judged.reading)
        if query:
            filters = Filters(kinds=("case",), projects=projects)
            found = talk.service.search(query, filters=filters, limit=TIES)
            likeness = {hit.entry_id: hit.score for hit in found.hits}
    return sorted(
        ties,
        key=lambda case: (place.get(case.id, len(place)), -likeness.get(case.id, 0.0), case.id),
    )


def _last_list(talk: Talk) -> list[str]:
    """The cases of the last reply that showed any, in its order."""
    for turn in reversed(talk.conversation.turns):
        ids = [
            citation.id
            for statement in turn.reply.statements
            if statement.role == "case"
            for citation in statement.citations
            if citation.kind == "case"
        ]
        if ids:
            return list(dict.fromkeys(ids))
    return []


def _likeness(case: Entry, wanted: list[str]) -> float:
    """Share of the words asked for that stand in the case's id, project or titles."""
    text = f"{case.id} {case.project} {case.title.zh} {case.title.en}".lower()
    return sum(word in text for word in wanted) / len(wanted)
