"""What a person reads of a Diagnosis beside its own texts: labels, places, shares, rows.

Every face lays out the same Diagnosis and takes these words from here. Texts come through as they
are: `app.render.escape.printable` goes first. Orders are those of the Diagnosis.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.render.escape import safe_url
from kb.diagnose import wording
from kb.diagnose.wording import LEAST, duration, percent, rank_span
from kb.knowledge.labels import Words
from kb.types.answer import (
    AnswerCheck,
    AnswerCulprit,
    AnswerFix,
    AnswerIncident,
    AnswerMoment,
    AnswerNotice,
    AnswerRunbook,
    Diagnosis,
    Evidence,
    NextStep,
    RankedCause,
    SettingWarning,
    SimilarCase,
)
from kb.types.entries import SearchResult
from kb.types.incident import FirstError, RankState

Row = tuple[str, str]
"""A label and its value: ``What hung: ALLREDUCE, seq 14217``."""

FAINT = 0.05  # a cause below this needs no evidence and fixes at first sight
WHY_TERMS = 4  # words two cases share that are named; more say nothing more
UNDECIDED = "unknown"  # a fault's type: the ranks' records fit no rule
UNREAD_SHOWN = 5  # files named that could not be read
NAMES = frozenset({"line", "op", "signature"})  # kinds of a hit's reasons that identify
BARE = "signature"  # of these a single word: beside sentences it reads like a part of them
WORDS = frozenset({"term", "translation"})  # of one character they say nothing
AGREEMENTS = (  # kinds of a hit's reasons that say how a question and an entry agree
    "same_framework",
    "other_framework",
    "other_hardware",
    "same_stage",
    "other_stage",
)
SEARCH_KINDS = NAMES | WORDS | {"language", "coverage", *AGREEMENTS}


def second_reading(answer: Diagnosis, words: Words) -> list[str]:
    """What a language model made of the report, or why nothing; empty where none was asked."""
    second = answer.second_reader
    if second is None:
        return []
    if second.why:
        return [words("second.none", model=second.model, why=second.why)]
    top = ", ".join(f"{one.title} {percent(one.probability)}" for one in second.top)
    said = words(
        "second.says",
        model=second.model,
        top=top,
        trust=f"{second.trust:.2f}",
        cost=words("second.cost", tokens=second.tokens) if second.tokens else "",
    )
    return [said, words("second.asks", ask=second.ask)] if second.ask else [said]


# --- what the team adds --------------------------------------------------------------------------


def notices(shown: Iterable[AnswerNotice], words: Words) -> list[Row]:
    """What the team wants known, and what the answer lacks: texts, with an address or nothing."""
    lead = words("site.notice")
    return [
        (
            notice.text
            if notice.kind == "not_searched"
            else words("word.reason", what=lead, reason=notice.text),
            safe_url(notice.url),
        )
        for notice in shown
    ]


def runbooks(pages: Iterable[AnswerRunbook], words: Words) -> list[Row]:
    """The team's pages about a cause: titles with addresses."""
    lead = words.listing([words("site.runbook"), words("site.own")])
    return [
        (words("word.reason", what=lead, reason=page.title), safe_url(page.url)) for page in pages
    ]


# --- numbers and places ------------------------------------------------------------------------


def place(item: wording.Placed, words: Words) -> str:
    """Where something stands: ``rank_3.log line 23``, ``line 23``; empty where nobody knows."""
    return wording.place(words, item) if item.line else ""


def rank_and_place(item: FirstError | AnswerMoment, words: Words) -> str:
    """The same behind the rank: ``rank 3, line 812``."""
    rank = words("word.rank", rank=item.rank) if item.rank is not None else ""
    return words.listing([rank, place(item, words)])


def first_error_place(error: FirstError, words: Words) -> str:
    """Where the first error stands and what it is: ``rank 3, line 812, cuda-oom``."""
    return words.listing([rank_and_place(error, words), error.kind])


def moment_text(moment: AnswerMoment, words: Words) -> str:
    """A moment of the timeline on one line."""
    return " ".join(filter(None, (moment.time, rank_and_place(moment, words), moment.what)))


# --- the answer --------------------------------------------------------------------------------


def verdict(diagnosis: Diagnosis, words: Words) -> str:
    """The first line: the cause with its share, and the ranks to look at."""
    if diagnosis.status == "no_timeout":
        return words("verdict.no_timeout")
    parts = []
    lead = diagnosis.causes[0] if diagnosis.causes else None
    if diagnosis.status == "diagnosed" and lead is not None:
        share, band = percent(lead.probability), words.term("band", lead.band)
        parts.append(
            words("verdict.diagnosed", title=lead.title, id=lead.id, percent=share, band=band)
        )
    else:
        parts.append(words("verdict.unknown"))
        if lead is not None:
            share = percent(lead.probability)
            parts.append(words("verdict.leading", title=lead.title, percent=share))
    culprits = diagnosis.incident.culprit_ranks
    if culprits:
        parts.append(words("verdict.rank", ranks=rank_span(culprit.rank for culprit in culprits)))
    return " · ".join(parts)


def footer(diagnosis: Diagnosis, words: Words) -> str:
    """How much was read, how long it took, and how much of it is hidden."""
    took = words("word.took", lines=diagnosis.incident.lines, ms=round(diagnosis.took_ms))
    hidden = diagnosis.redactions
    return words.listing([took, words("word.redacted", count=hidden) if hidden else ""])


def cause_share(cause: RankedCause) -> str:
    """The probability of a cause that is named: ``62%``, never ``0%``."""
    return percent(max(cause.probability, LEAST))


def is_faint(cause: RankedCause) -> bool:
    """Whether a cause is hardly possible."""
    return cause.probability < FAINT


def unknown_share(diagnosis: Diagnosis, words: Words) -> str:
    """What is left beside the causes named."""
    return words("word.unknown_share", percent=percent(diagnosis.unknown_probability))


def restart_advice(cause: RankedCause, words: Words) -> str:
    """Whether a restart helps against a cause, and why."""
    advice = words.term("restart", cause.restart)
    reason = cause.restart_reason
    return words("word.reason", what=advice, reason=reason) if reason else advice


def evidence_place(item: Evidence, words: Words) -> str:
    """Where an evidence stands: its line, else what kind it is of."""
    where = place(item, words) or words.term("source", item.kind)
    if item.kind == "case" and not safe_url(item.source) and item.source not in item.reason:
        return f"{where} {item.source}"
    return words.listing([where, words("site.own") if item.origin else ""])


def new_quote(item: Evidence, shown: set[str]) -> str:
    """The quote of an evidence, or nothing where one of those `shown` has it; joins them."""
    known = any(item.quote in other for other in shown)
    shown.add(item.quote)
    return "" if known else item.quote


def fresh_evidence(evidence: Iterable[Evidence], shown: set[str]) -> list[tuple[Evidence, str]]:
    """Each reason with its quote, empty where it is among those `shown`; new quotes join them.

    A reason that stands there already and has no new quote says nothing more and is left out.
    """
    reasons: set[str] = set()
    fresh = []
    for item in evidence:
        quote = new_quote(item, shown)
        if quote or item.reason not in reasons:
            fresh.append((item, quote))
        reasons.add(item.reason)
    return fresh


def fix_notes(fix: AnswerFix, words: Words) -> list[Row]:
    """Where a fix applies, what to beware of, and whether it is the team's own."""
    own = words("site.folder") if fix.origin else ""
    notes = (
        ("row.applies_to", fix.applies_to),
        ("row.caution", fix.caution),
        ("site.from", own),
    )
    return [(words(name), text) for name, text in notes if text]


def check_parts(item: AnswerCheck | NextStep) -> tuple[str, tuple[str, ...]]:
    """What a command is for, and what its outcomes mean."""
    return (item.tells, item.outcomes) if isinstance(item, AnswerCheck) else (item.why, ())


def warning_notes(warning: SettingWarning, words: Words) -> list[str]:
    """What a warning says beside its explanation: what to use instead, which versions it is of."""
    notes = []
    if warning.replacement:
        notes.append(words("word.use_instead", setting=warning.replacement))
    if warning.torch_versions:
        notes.append(words("word.versions", versions=warning.torch_versions))
    if warning.origin:
        notes.append(words("site.own"))
    return notes


def warning_text(warning: SettingWarning, words: Words) -> str:
    """What is wrong with a setting, on one line."""
    parts = [words.term("warning", warning.verdict), warning.explanation]
    return " · ".join(filter(None, [*parts, *warning_notes(warning, words)]))


def settings_line(diagnosis: Diagnosis, words: Words) -> str:
    """What of the settings needs no warning, on one line; empty where none stand in the input."""
    count, notes = diagnosis.settings_in_order, diagnosis.setting_notes
    terms = (f"{item.setting} ({setting_advice(item, words)})" for item in notes)
    return words.listing(
        [
            words("word.settings_in_order", count=count) if count else "",
            words("word.settings_to_know", count=len(notes), settings=words.listing(terms))
            if notes
            else "",
        ]
    )


def setting_advice(note: SettingWarning, words: Words) -> str:
    """What is true of a setting that does no harm, and what to do about it."""
    todo = words("word.use_instead", setting=note.replacement) if note.replacement else ""
    return words(
        "word.reason",
        what=words.term("warning", note.verdict),
        reason=todo or words.term("setting_todo", note.verdict),
    )


def search_notes(result: SearchResult, words: Words) -> list[str]:
    """Which words of a question were mistyped, and which no entry has where nothing is alike."""
    notes = [
        words("word.searched_for", typed=typed, meant=meant) for typed, meant in result.corrected
    ]
    if result.unknown and not result.similar_enough:
        notes.append(words("word.in_no_entry", what=words.listing(list(result.unknown))))
    missing = [word for word in result.missing if word not in result.unknown]
    if result.hits and missing:
        notes.append(words("word.nearest_lacks", what=words.listing(missing)))
    return notes


def agreements(why: Sequence[str], words: Words) -> list[str]:
    """How much of a question a hit has, and which of its frameworks, hardware and stages."""
    named: dict[str, list[str]] = {}
    for kind, _, value in (item.partition(":") for item in why):
        named.setdefault(kind, []).append(value)
    lines = [
        words("hit.coverage", percent=percent(float(share))) for share in named.get("coverage", ())
    ]
    for kind in AGREEMENTS:
        if kind in named:
            group = "stage" if kind.endswith("stage") else "framework"
            names = [words.term(group, value) for value in named[kind]]
            lines.append(words(f"hit.{kind}", what=words.listing(names)))
    return lines


def case_notes(case: SimilarCase, words: Words) -> list[str]:
    """In what a case is alike and in what it differs, a line each."""
    notes = []
    why = likenesses(case.why)
    if why:
        notes.append(words("word.why", what=words.listing(why)))
    if case.differs:
        notes.append(words("word.differs", what=words.listing(list(case.differs))))
    if case.origin:
        notes.append(words("site.own"))
    return notes


def likenesses(why: Sequence[str]) -> list[str]:
    """Sentences first, then what the search names as ``kind:value``.

    Single words two texts share (``term:timing``) are named only where there is nothing better,
    and so is the rarest name of a matched line (``signature:cache``).
    """
    named = [(kind, value) for kind, _, value in (item.partition(":") for item in why)]
    sentences = [item for item in why if item.partition(":")[0] not in SEARCH_KINDS]
    text = " ".join(sentences).casefold()
    better = [
        value
        for kind, value in named
        if kind in NAMES and value.casefold() not in text and not (sentences and kind == BARE)
    ]
    words = [value for kind, value in named if kind in WORDS and len(value) > 1]
    return sentences + list(dict.fromkeys(better or ([] if sentences else words)))[:WHY_TERMS]


# --- what happened -----------------------------------------------------------------------------


def culprits(incident: AnswerIncident, words: Words) -> list[str]:
    """Each rank to look at, with the reason."""
    return [_culprit(culprit, incident, words) for culprit in incident.culprit_ranks]


def _culprit(culprit: AnswerCulprit, incident: AnswerIncident, words: Words) -> str:
    """Why a rank is looked at, and what it hangs in where that is not what the others hang in."""
    rank, reason = words("word.rank", rank=culprit.rank), culprit.reason
    own = next((state for state in incident.ranks if state.rank == culprit.rank), None)
    if own and own.last_op and (own.last_op, own.last_seq) != (incident.op, incident.seq):
        work = _work(own.last_op, own.last_seq, own.numel_in, own.numel_out, words)
        reason = words("word.hangs_in", reason=reason, work=words.listing(work))
    return words("word.reason", what=rank, reason=reason)


def facts(incident: AnswerIncident, words: Words) -> list[Row]:
    """What happened, as labelled rows; a row nothing is known for is left out."""
    fault = incident.fault_type
    rows = (
        ("row.hung", _hung(incident, words)),
        ("row.timeout", _timeout(incident, words)),
        ("row.ranks", _ranks(incident, words)),
        ("row.where", _environment(incident, words)),
        ("row.waves", _waves(incident, words)),
        ("row.fault", words.term("fault", fault) if fault != UNDECIDED else ""),
        *(("row.unread", name) for name in unread(incident, words)),
    )
    return [(words(label), value) for label, value in rows if value]


def _hung(incident: AnswerIncident, words: Words) -> str:
    group, hung = incident.process_group, wording.waiting_ranks(incident)
    shown = words("word.process_group", group=group) if group else ""
    work = _work(hung.op, hung.seq, hung.numel_in, hung.numel_out, words)
    return words.listing([*work, shown])


def _work(
    op: str, seq: int | None, numel_in: int | None, numel_out: int | None, words: Words
) -> list[str]:
    numel = ""
    if numel_in is not None and numel_out not in (None, numel_in):
        numel = words("word.numel", numel_in=numel_in, numel_out=numel_out)
    elif numel_in is not None:
        numel = words("word.numel_in", numel_in=numel_in)
    return [op, words("word.seq", seq=seq) if seq is not None else "", numel]


def _timeout(incident: AnswerIncident, words: Words) -> str:
    if incident.timeout_ms is None:
        return ""
    text = f"{duration(incident.timeout_ms, words)} ({incident.timeout_ms} ms)"
    if incident.ran_ms is None:
        return text
    ran = words("word.ran", duration=duration(incident.ran_ms, words))
    return words.listing([text, ran])


def _ranks(incident: AnswerIncident, words: Words) -> str:
    parts = []
    if incident.ranks_reporting:
        parts.append(words("word.reporting", ranks=rank_span(incident.ranks_reporting)))
    if incident.ranks_silent:
        parts.append(words("word.silent", ranks=rank_span(incident.ranks_silent)))
    if incident.world_size is not None:
        parts.append(words("word.world", size=incident.world_size))
    return " · ".join(parts)


def _environment(incident: AnswerIncident, words: Words) -> str:
    stage = words.term("stage", incident.stage) if incident.stage != "unknown" else ""
    versions = [f"{name} {version}" for name, version in incident.versions.items()]
    parts = [incident.backend, stage, *incident.frameworks, *incident.transport, *versions]
    return " · ".join(part for part in parts if part)


def _waves(incident: AnswerIncident, words: Words) -> str:
    if len(incident.waves) < 2:
        return ""
    lines = []
    for wave in incident.waves:
        span = words("word.lines", first=wave.first_line, last=wave.last_line)
        lines.append(f"{wave.file} {span}".strip())
    return words("word.waves", count=len(lines), lines=words.listing(lines))


def unread(incident: AnswerIncident, words: Words) -> list[str]:
    """The files that could not be read and why, the first ones by name."""
    shown = [
        words("word.reason", what=item.file, reason=item.reason)
        for item in incident.unread[:UNREAD_SHOWN]
    ]
    more = len(incident.unread) - len(shown)
    return [*shown, words("word.unread_more", count=more)] if more else shown


def rank_table(ranks: Iterable[RankState], words: Words) -> list[tuple[str, ...]]:
    """What is known of each rank below a row of column names; columns without a value left out.

    Empty where nothing is known of any rank.
    """
    names = (
        *("rank", "state", "enqueued", "completed", "seq", "op", "step", "exit", "host", "gpu"),
        "line",
    )
    body = [
        (
            state.rank,
            state.state,
            state.last_enqueued,
            state.last_completed,
            state.last_seq,
            state.last_op,
            state.last_step,
            state.signal or state.exit_code,
            state.host,
            state.gpu,
            f"{state.file}:{state.line}" if state.file and state.line else state.line or None,
        )
        for state in ranks
    ]
    if not body:
        return []
    used = [at for at in range(len(names)) if any(row[at] not in (None, "") for row in body)]
    header = tuple(words(f"column.{names[at]}") for at in used)
    return [
        header,
        *(tuple("" if row[at] is None else str(row[at]) for at in used) for row in body),
    ]
