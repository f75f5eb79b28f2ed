"""Diagnosis → view model: the one place that decides what a person reads and in which words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from app.labels import Words
from app.quoting import plain, plain_block, safe_url
from app.view import (
    CaseView,
    CauseView,
    CommandView,
    EvidenceView,
    FixView,
    QuoteView,
    Row,
    TableView,
    View,
    WarningView,
)
from kb.types import (
    AnswerCheck,
    AnswerCulprit,
    AnswerFix,
    AnswerIncident,
    Bilingual,
    Diagnosis,
    Evidence,
    Language,
    RankedCause,
    RankState,
    SettingWarning,
    SimilarCase,
)

LEAST = 0.0001  # probabilities are rounded to this; a cause that is named is never impossible
FAINT = 0.05  # a cause below this needs no evidence and fixes at first sight
WHY_TERMS = 4  # words two cases share that are named; more say nothing more
SECONDS_PER_MINUTE = 60
SECONDS_PER_HOUR = 3600
UNDECIDED = "unknown"  # a fault's type: the ranks' records fit no rule
UNREAD_SHOWN = 5  # files named that could not be read
NAMES = frozenset({"line", "op", "signature"})  # kinds of a hit's reasons that identify
BARE = "signature"  # of these a single word: beside sentences it reads like a part of them
WORDS = frozenset({"term", "translation"})  # of one character they say nothing
SEARCH_KINDS = NAMES | {"term", "translation", "language"}


def present(
    diagnosis: Diagnosis, labels: Mapping[str, Bilingual], *, language: Language | None = None
) -> View:
    """Arrange `diagnosis` for a reader; `language` of the labels defaults to the answer's own."""
    words = Words(labels, language or diagnosis.language)
    incident = diagnosis.incident
    first = incident.first_error
    return View(
        status=diagnosis.status,
        language=words.language,
        verdict=_verdict(diagnosis, words),
        summary=plain(diagnosis.summary),
        culprits=tuple(_culprit(culprit, incident, words) for culprit in incident.culprit_ranks),
        first_error=None
        if first is None
        else QuoteView(
            text=plain(first.text),
            where=_where(words, rank=first.rank, file=first.file, line=first.line, kind=first.kind),
        ),
        facts=facts(incident, words),
        causes=tuple(_cause(cause, words) for cause in diagnosis.causes),
        unknown=words("word.unknown_share", percent=percent(diagnosis.unknown_probability))
        if diagnosis.causes
        else "",
        best_check=check_view(diagnosis.best_check) if diagnosis.best_check else None,
        restart=_restart(diagnosis.causes[0], words) if diagnosis.causes else "",
        warnings=tuple(warning_view(warning, words) for warning in diagnosis.warnings),
        cases=tuple(_case(case, words) for case in diagnosis.cases),
        next=tuple(
            CommandView(command=plain_block(step.command), why=plain(step.why))
            for step in diagnosis.next
        ),
        timeline=tuple(
            " ".join(
                part
                for part in (
                    plain(moment.time),
                    _where(words, rank=moment.rank, file=moment.file, line=moment.line),
                    plain(moment.what),
                )
                if part
            )
            for moment in incident.timeline
        ),
        ranks=rank_table(incident.ranks, words),
        footer=_footer(diagnosis, words),
    )


def percent(probability: float) -> str:
    """A share as people read it: whole per cent, never 0 % or 100 % for what is only nearly so."""
    if 0 < probability < 0.01:
        return "<1%"
    if 0.99 < probability < 1:
        return ">99%"
    return f"{round(probability * 100)}%"


def duration(milliseconds: int, words: Words) -> str:
    """A span in its largest fitting unit: ``10 min``, ``1 h 30 min``, ``45 s``, ``250 ms``."""
    seconds, rest = divmod(milliseconds, 1000)
    if seconds == 0:
        return words("word.milliseconds", count=rest)
    parts = []
    hours, seconds = divmod(seconds, SECONDS_PER_HOUR)
    minutes, seconds = divmod(seconds, SECONDS_PER_MINUTE)
    for name, count in (("hours", hours), ("minutes", minutes), ("seconds", seconds)):
        if count:
            parts.append(words(f"word.{name}", count=count))
    return " ".join(parts)


def rank_span(ranks: Iterable[int]) -> str:
    """Ranks in short: ``0-2, 5``."""
    spans: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    return ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)


def facts(incident: AnswerIncident, words: Words) -> tuple[Row, ...]:
    """What happened, as labelled rows; a row nothing is known for is left out."""
    fault = incident.fault_type
    rows = (
        ("row.hung", _hung(incident, words)),
        ("row.timeout", _timeout(incident, words)),
        ("row.ranks", _ranks(incident, words)),
        ("row.where", _environment(incident, words)),
        ("row.waves", _waves(incident, words)),
        ("row.fault", plain(words.term("fault", fault)) if fault != UNDECIDED else ""),
        *(("row.unread", name) for name in _unread(incident, words)),
    )
    return tuple(Row(label=words(label), value=value) for label, value in rows if value)


def _unread(incident: AnswerIncident, words: Words) -> list[str]:
    """The files that could not be read and why, the first ones by name."""
    shown = [
        words("word.reason", what=plain(item.file), reason=plain(item.reason))
        for item in incident.unread[:UNREAD_SHOWN]
    ]
    more = len(incident.unread) - len(shown)
    return [*shown, words("word.unread_more", count=more)] if more else shown


def _culprit(culprit: AnswerCulprit, incident: AnswerIncident, words: Words) -> str:
    """Why a rank is looked at, and what it hangs in where that is not what the others hang in."""
    rank, reason = words("word.rank", rank=culprit.rank), plain(culprit.reason)
    own = next((state for state in incident.ranks if state.rank == culprit.rank), None)
    if own and own.last_op and (own.last_op, own.last_seq) != (incident.op, incident.seq):
        work = _work(own.last_op, own.last_seq, own.numel_in, own.numel_out, words)
        reason = words("word.hangs_in", reason=reason, work=words.listing(work))
    return words("word.reason", what=rank, reason=reason)


def _hung(incident: AnswerIncident, words: Words) -> str:
    group = plain(incident.process_group)
    shown = words("word.process_group", group=group) if group else ""
    work = _work(incident.op, incident.seq, incident.numel_in, incident.numel_out, words)
    return words.listing([*work, shown])


def _work(
    op: str, seq: int | None, numel_in: int | None, numel_out: int | None, words: Words
) -> list[str]:
    numel = ""
    if numel_in is not None and numel_out not in (None, numel_in):
        numel = words("word.numel", numel_in=numel_in, numel_out=numel_out)
    elif numel_in is not None:
        numel = words("word.numel_in", numel_in=numel_in)
    return [plain(op), words("word.seq", seq=seq) if seq is not None else "", numel]


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
    parts = [plain(incident.backend)]
    if incident.stage != "unknown":
        parts.append(words.term("stage", incident.stage))
    parts += [plain(name) for name in (*incident.frameworks, *incident.transport)]
    parts += [plain(f"{name} {version}") for name, version in incident.versions.items()]
    return " · ".join(part for part in parts if part)


def _waves(incident: AnswerIncident, words: Words) -> str:
    if len(incident.waves) < 2:
        return ""
    lines = []
    for wave in incident.waves:
        span = words("word.lines", first=wave.first_line, last=wave.last_line)
        lines.append(f"{plain(wave.file)} {span}".strip())
    return words("word.waves", count=len(lines), lines=words.listing(lines))


def _verdict(diagnosis: Diagnosis, words: Words) -> str:
    if diagnosis.status == "no_timeout":
        return words("verdict.no_timeout")
    parts = []
    lead = diagnosis.causes[0] if diagnosis.causes else None
    if diagnosis.status == "diagnosed" and lead is not None:
        parts.append(
            words(
                "verdict.diagnosed",
                title=plain(lead.title),
                id=lead.id,
                percent=percent(lead.probability),
                band=words.term("band", lead.band),
            )
        )
    else:
        parts.append(words("verdict.unknown"))
        if lead is not None:
            share = percent(lead.probability)
            parts.append(words("verdict.leading", title=plain(lead.title), percent=share))
    culprits = diagnosis.incident.culprit_ranks
    if culprits:
        ranks = rank_span(culprit.rank for culprit in culprits)
        parts.append(words("verdict.rank", ranks=ranks))
    return " · ".join(parts)


def _where(
    words: Words, *, rank: int | None = None, file: str = "", line: int = 0, kind: str = ""
) -> str:
    shown = words("word.rank", rank=rank) if rank is not None else ""
    return words.listing([shown, place(words, line=line, file=file), plain(kind)])


def place(words: Words, *, line: int, file: str = "") -> str:
    """Where something stands: ``rank_3.log line 23``, ``line 23``; empty where nobody knows."""
    if not line:
        return ""
    if not file:
        return words("word.line", line=line)
    return words("word.file_line", file=plain(file), line=line)


def _cause(cause: RankedCause, words: Words) -> CauseView:
    return CauseView(
        id=cause.id,
        title=plain(cause.title),
        percent=percent(max(cause.probability, LEAST)),
        band=words.term("band", cause.band),
        faint=cause.probability < FAINT,
        evidence=tuple(_evidence(item, words) for item in cause.evidence),
        fixes=tuple(fix_view(fix, words) for fix in cause.fixes),
        checks=tuple(check_view(check) for check in cause.checks),
        restart=_restart(cause, words),
        cases=cause.cases,
    )


def _evidence(item: Evidence, words: Words) -> EvidenceView:
    url = safe_url(item.source)
    where = place(words, line=item.line, file=item.file) or words.term("source", item.kind)
    if item.kind == "case" and not url and item.source not in item.reason:
        where = f"{where} {plain(item.source)}"
    return EvidenceView(
        where=where,
        quote=plain(item.quote),
        reason=plain(item.reason),
        against=item.weight < 0,
        url=url,
    )


def _restart(cause: RankedCause, words: Words) -> str:
    verdict = words.term("restart", cause.restart)
    reason = plain(cause.restart_reason)
    return words("word.reason", what=verdict, reason=reason) if reason else verdict


def fix_view(fix: AnswerFix, words: Words) -> FixView:
    """A fix of the answer for a reader."""
    notes = (("row.applies_to", fix.applies_to), ("row.caution", fix.caution))
    return FixView(
        title=plain(fix.title),
        status=words.term("claim", fix.status),
        steps=tuple(plain(step) for step in fix.steps),
        commands=tuple(plain_block(command) for command in fix.commands),
        notes=tuple(Row(label=words(name), value=plain(text)) for name, text in notes if text),
        sources=tuple(filter(None, (safe_url(url) for url in fix.sources))),
    )


def check_view(check: AnswerCheck) -> CommandView:
    """A check of the answer for a reader."""
    return CommandView(
        command=plain_block(check.command),
        why=plain(check.tells),
        outcomes=tuple(plain(outcome) for outcome in check.outcomes),
    )


def warning_view(warning: SettingWarning, words: Words) -> WarningView:
    """A warning about a setting for a reader."""
    notes = []
    if warning.replacement:
        notes.append(words("word.use_instead", setting=plain(warning.replacement)))
    if warning.torch_versions:
        notes.append(words("word.versions", versions=plain(warning.torch_versions)))
    return WarningView(
        setting=plain(warning.setting),
        verdict=words.term("warning", warning.verdict),
        explanation=plain(warning.explanation),
        notes=tuple(notes),
        where=place(words, line=warning.line, file=warning.file),
        url=safe_url(warning.source),
    )


def _case(case: SimilarCase, words: Words) -> CaseView:
    notes = []
    why = likenesses(case.why)
    if why:
        notes.append(words("word.why", what=words.listing(why)))
    if case.differs:
        what = words.listing([plain(difference) for difference in case.differs])
        notes.append(words("word.differs", what=what))
    return CaseView(
        id=case.id,
        title=plain(case.title),
        project=plain(case.project),
        score=f"{case.score:.2f}",
        cause=case.cause,
        status=words.term("claim", case.status),
        url=safe_url(case.url),
        notes=tuple(notes),
    )


def likenesses(why: Sequence[str]) -> list[str]:
    """Sentences first, then what the search names as ``kind:value``.

    Single words two texts share (``term:timing``) are told only where there is nothing better,
    and so is the rarest name of a matched line (``signature:cache``).
    """
    named = [(kind, plain(value)) for kind, _, value in (item.partition(":") for item in why)]
    sentences = [plain(item) for item in why if item.partition(":")[0] not in SEARCH_KINDS]
    told = " ".join(sentences).casefold()
    better = [
        value
        for kind, value in named
        if kind in NAMES and value.casefold() not in told and not (sentences and kind == BARE)
    ]
    words = [value for kind, value in named if kind in WORDS and len(value) > 1]
    return sentences + list(dict.fromkeys(better or ([] if sentences else words)))[:WHY_TERMS]


def rank_table(ranks: Iterable[RankState], words: Words) -> TableView | None:
    """What is known of each rank, or None if nothing is; columns without a value are left out."""
    names = ("rank", "state", "enqueued", "completed", "seq", "op", "step", "exit", "host", "line")
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
            f"{state.file}:{state.line}" if state.file and state.line else state.line or None,
        )
        for state in ranks
    ]
    if not body:
        return None
    kept = [at for at in range(len(names)) if any(row[at] not in (None, "") for row in body)]
    header = tuple(words(f"column.{names[at]}") for at in kept)
    rows = [tuple("" if row[at] is None else plain(str(row[at])) for at in kept) for row in body]
    return TableView(rows=(header, *rows))


def _footer(diagnosis: Diagnosis, words: Words) -> str:
    took = words("word.took", lines=diagnosis.incident.lines, ms=round(diagnosis.took_ms))
    if not diagnosis.redactions:
        return took
    return words.listing([took, words("word.redacted", count=diagnosis.redactions)])
