"""The headline of an answer: what happened, on which rank, in at most 15 words.

It says what the evidence shows, never which cause is likely: an unknown cause has a headline too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from kb.diagnose.verdict import Verdict
from kb.diagnose.wording import duration, rank_span, waiting_ranks
from kb.diagnose.words_headline import MOST_WORDS, moment_of, words_headline
from kb.knowledge.labels import Words
from kb.knowledge.load import Knowledge
from kb.types.incident import FirstError, Incident, LogReading
from kb.types.knowledge import EventType

EXCEPTION = re.compile(r"\b([A-Z][A-Za-z]{2,40}(?:Error|Exception|Interrupt))\b")
CLAUSE = re.compile(r"[:：;；(（]")  # what follows explains
OPERATIONS = frozenset({"recv", "send"})  # names as they are printed
QUOTE_MARK = "“"
MESSAGE_WORDS = 7
MESSAGE_CHARS = 60
_HAN = r"[\u4e00-\u9fff]"
_APART = re.compile(rf"(?<={_HAN}) (?={_HAN})")  # a space between two Chinese characters
_TOUCHING = re.compile(rf"(?<={_HAN})(?=[A-Za-z0-9_])|(?<=[A-Za-z0-9_%])(?={_HAN})")
# What is said of a rank that is known.
_NOBODY = re.compile(r"^\{who\}[:：] ?|\{who\}的 ?| (?:of|on) \{who\}")
NAMED_RANKS = 4  # more are counted, not named


def headline(verdict: Verdict, knowledge: Knowledge, words: Words) -> str:
    """What happened, from the evidence of the verdict; never its cause."""
    reading, types = verdict.reading, knowledge.event_by_id
    if verdict.status == "no_timeout":
        return _sentence(_no_timeout(reading.incident, types, words), words)
    incident = reading.incident
    began = _began(incident, types, words)
    if began:
        return _sentence(_joined(began, _waits(incident, words), incident.op, words), words)
    text = _timed_out(incident, words) or next(iter(_waits(incident, words)), "")
    text = text or _named(reading, types, words)
    if not text:
        text = words_headline(reading, verdict.signals, knowledge.frameworks, words)
    return _sentence(text, words)


def _no_timeout(incident: Incident, types: Mapping[str, EventType], words: Words) -> str:
    """That nothing timed out, behind the error that did happen where there is one."""
    plain = words("headline.no_timeout")
    error = incident.first_error
    if error is None:
        return plain
    text = words("headline.join").join((_error(error, types, words, brief=True), plain))
    return text if len(text.split()) <= MOST_WORDS else plain


def _joined(began: str, waits: Iterable[str], op: str, words: Words) -> str:
    """How it began and who waited, as much of it as `MOST_WORDS` hold.

    `waits` are the same in ever fewer words; the operation is named once.
    """
    texts = (
        words("headline.join").join((began, wait))
        for wait in waits
        if not (op in began and op in wait)
    )
    return next((text for text in texts if len(text.split()) <= MOST_WORDS), began)


def _began(incident: Incident, types: Mapping[str, EventType], words: Words) -> str:
    """The first error, else the ranks that stand out, else what the ranks show together."""
    if incident.first_error is not None:
        return _error(incident.first_error, types, words)
    culprits = incident.culprit_ranks
    if culprits and words.has(f"headline.{culprits[0].kind}"):
        kind = culprits[0].kind
        same = [culprit.rank for culprit in culprits if culprit.kind == kind]
        return words(f"headline.{kind}", who=_ranks(same, words))
    for fact in incident.facts:
        if words.has(f"fact_headline.{fact.name}"):
            return words(f"fact_headline.{fact.name}", op=incident.op)
    return ""


def _error(
    error: FirstError, types: Mapping[str, EventType], words: Words, *, brief: bool = False
) -> str:
    """Who met what; of an exception its name and, unless `brief`, what it says."""
    known = error.rank is not None or bool(error.host)
    who = error.host or words("headline.somebody")
    if error.rank is not None:
        who = _ranks([error.rank], words)
    raised = EXCEPTION.search(error.text) if error.kind == "exception" else None
    if raised is not None:
        said = "" if brief else _message(error.text[raised.end() :])
        label = "headline.raised_saying" if said else "headline.raised"
        return words(label, who=who, name=raised[1], said=said)
    kind = types.get(error.kind)
    if kind is None:
        return error.kind
    if kind.headline is not None:
        template = kind.headline.get(words.language)
        return (template if known else _NOBODY.sub("", template)).format(who=who)
    means = _clause(kind.means.get(words.language))
    return words("headline.means", who=who, means=means) if known else means


def _message(text: str) -> str:
    """The first words an exception says, where it says something."""
    said = CLAUSE.sub("", text, count=1) if CLAUSE.match(text) else ""
    told = said.split()
    short = " ".join(told[:MESSAGE_WORDS])[:MESSAGE_CHARS].rstrip(".,;:([")
    return f"{short}…" if len(told) > MESSAGE_WORDS else short


def _waits(incident: Incident, words: Words) -> list[str]:
    """How many ranks waited how long in which operation, then the same in fewer words.

    Ranks the evidence points to are not counted: the others waited for them.

    Empty where no operation is known.
    """
    waiting = waiting_ranks(incident)
    ranks = waiting.ranks
    if not waiting.op or not ranks:
        return []
    span = incident.timeout_ms or incident.ran_ms
    label = "headline.waited" if span else "headline.waited_op"
    values = {"op": waiting.op, "span": duration(span, words) if span else ""}
    if len(ranks) == 1:
        return [words(f"{label}_one", who=_ranks(ranks, words), **values)]
    texts = [words(label, count=len(ranks), **values)]
    return [*texts, words("headline.waited_short", count=len(ranks), **values)] if span else texts


def _timed_out(incident: Incident, words: Words) -> str:
    """Which operation did not finish, and where in the run where that is known."""
    if not incident.op:
        return ""
    what = words("headline.op_hang", op=incident.op)
    if incident.timeout_ms:
        span = duration(incident.timeout_ms, words)
        what = words("headline.op_timeout", op=incident.op, span=span)
    moment = moment_of(incident, words)
    return words("headline.at_moment", what=what, moment=moment) if moment else what


def _named(reading: LogReading, types: Mapping[str, EventType], words: Words) -> str:
    """The timeout that says most: the first one with words of its own, else the first.

    Of a log without any, what follows from somebody's end tells that it ended.
    """
    timeouts = [event for event in reading.events if event.kind == "timeout"]
    timeouts = timeouts or [event for event in reading.events if event.kind == "cascade"]
    kinds = [types[event.event] for event in timeouts if event.event in types]
    own = next((kind.headline for kind in kinds if kind.headline is not None), None)
    if own is not None:
        return own.get(words.language).format(who=words("headline.somebody"))
    if kinds:
        return _clause(kinds[0].means.get(words.language))
    return words("headline.timeout") if timeouts else ""


def _ranks(ranks: Iterable[int], words: Words) -> str:
    numbers = sorted(set(ranks))
    label = "headline.rank" if len(numbers) == 1 else "headline.ranks"
    shown = rank_span(numbers[:NAMED_RANKS]) + ("…" if len(numbers) > NAMED_RANKS else "")
    return words(label, ranks=shown)


def _clause(text: str) -> str:
    return CLAUSE.split(text, maxsplit=1)[0].strip()


def _sentence(text: str, words: Words) -> str:
    """With a capital at its beginning where that is a plain word; Chinese spaced as people do."""
    if words.language == "zh":
        own, mark, quote = text.partition(QUOTE_MARK)  # a quote stays as it is
        return _TOUCHING.sub(" ", _APART.sub("", own)) + mark + quote
    first = text.partition(" ")[0]
    is_word = first.isascii() and first.isalpha() and first not in OPERATIONS
    return text[:1].upper() + text[1:] if is_word else text
