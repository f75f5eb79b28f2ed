"""Values of the answer: evidence, ranked causes, the Diagnosis."""

from __future__ import annotations

from dataclasses import dataclass

from kb.types.incident import Fact, FirstError, RankState, Unread, Wave
from kb.types.knowledge import Bilingual
from kb.types.vocabulary import (
    ClaimStatus,
    DiagnosisStatus,
    EntryKind,
    EvidenceKind,
    Language,
    NoticeKind,
    Origin,
    ReaderName,
    Restart,
    Stage,
    StepKind,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Why a cause is believed or doubted.

    `quote` is a literal piece of the redacted input or of a named case; `line` counts from 1 in
    `file`, which is empty for a single source; `weight` is in nats, negative when it speaks
    against; `source` is a URL, a pattern id, a fact or a case id.
    """

    kind: EvidenceKind
    quote: str
    line: int
    weight: float
    source: str
    reason: str = ""
    file: str = ""
    origin: Origin = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFix:
    """A fix in the language of the answer."""

    id: str
    title: str
    steps: tuple[str, ...]
    commands: tuple[str, ...]
    status: ClaimStatus
    applies_to: str
    caution: str
    sources: tuple[str, ...]
    origin: Origin = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRunbook:
    """A page of the team about a cause."""

    title: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCheck:
    """A check in the language of the answer; `outcomes` say what each observation means."""

    command: str
    tells: str
    outcomes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedCause:
    """A cause with its calibrated probability; all causes and `unknown` sum to at most 1."""

    id: str
    title: str
    probability: float
    band: str
    evidence: tuple[Evidence, ...]
    fixes: tuple[AnswerFix, ...]
    checks: tuple[AnswerCheck, ...]
    restart: Restart
    restart_reason: str
    cases: tuple[str, ...]
    runbooks: tuple[AnswerRunbook, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarCase:
    """A case or an incident of the team like this one; `why` the likenesses, `differs` the rest.

    `score` in [0, 1] is how alike it is: of those at .4 two in three are, from .6 on six in seven.
    """

    id: str
    project: str
    title: str
    score: float
    cause: str
    url: str
    status: ClaimStatus
    why: tuple[str, ...]
    differs: tuple[str, ...] = ()
    kind: EntryKind = "case"
    origin: Origin = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingWarning:
    """What is wrong with a setting seen in the input."""

    setting: str
    verdict: str
    explanation: str
    source: str
    torch_versions: str = ""
    replacement: str = ""
    line: int = 0
    file: str = ""
    origin: Origin = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerNotice:
    """What the team wants known above the answer: a notice, or a bad host that the log names.

    `id` is the notice's, or the host as the log has it; `ranks` are those that ran on it.
    """

    kind: NoticeKind
    id: str
    text: str
    url: str = ""
    ranks: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    """What to collect next."""

    command: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCulprit:
    """A culprit rank with the reason in the language of the answer; `kind` as in `Culprit`."""

    rank: int
    reason: str
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerMoment:
    """A timeline item in the language of the answer."""

    time: str
    rank: int | None
    what: str
    line: int
    kind: str = ""
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerIncident:
    """The incident in the language of the answer: the `incident` object of the contract."""

    backend: str
    op: str
    seq: int | None
    numel_in: int | None
    numel_out: int | None
    timeout_ms: int | None
    ran_ms: int | None
    process_group: str
    stage: Stage
    world_size: int | None
    frameworks: tuple[str, ...]
    versions: dict[str, str]
    settings: dict[str, str]
    transport: tuple[str, ...]
    ranks_reporting: tuple[int, ...]
    ranks_silent: tuple[int, ...]
    culprit_ranks: tuple[AnswerCulprit, ...]
    first_error: FirstError | None
    waves: tuple[Wave, ...]
    timeline: tuple[AnswerMoment, ...]
    ranks: tuple[RankState, ...]
    fault_type: str
    facts: tuple[Fact, ...]
    lines: int
    bytes: int
    unread: tuple[Unread, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LikelyCause:
    """A cause and its share of one reader's opinion."""

    id: str
    title: str
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondReading:
    """What a language model makes of the report; `why` says why it makes nothing of it.

    `trust` is how much its opinion counts, from 0 to 1, `top` what it alone would say, `ask` the
    question that would decide, `tokens` what it cost.
    """

    model: str
    why: str
    trust: float
    top: tuple[LikelyCause, ...]
    ask: str
    tokens: int
    took_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderOpinion:
    """What one part of the evidence alone would say: its likeliest causes.

    `name` is evidence (what was observed in log and words), reader (the learned one), cases
    (similar ones) or language_model.
    """

    name: ReaderName
    top: tuple[LikelyCause, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStep:
    """The one thing to do first.

    `kind` says what it is: a fix of the likeliest cause, a check that tells causes apart, or
    something to collect. `command` can be copied; empty where there is none. `fix` and `cause` are
    ids, empty where it is no fix.
    """

    kind: StepKind
    title: str
    command: str = ""
    caution: str = ""
    fix: str = ""
    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSummary:
    """What an incident made of a log is called, and the cause its log suggests.

    `cause` is empty where the log suggests none.
    """

    title: Bilingual
    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetBefore:
    """An incident of the team, or a case, that is the same incident.

    `when` is the day it was resolved or the case's date (ISO 8601, empty where unknown), `cause`
    its cause's id and `cause_title` what that is called, `fix` what helped, in a line, `command` of
    that fix, empty where there is none, `fix_id` and `fix_status` are its own. Its cause may be
    another than the likeliest one.
    """

    entry: str
    kind: EntryKind
    when: str
    title: str
    cause: str
    fix: str
    command: str = ""
    url: str = ""
    why: tuple[str, ...] = ()
    differs: tuple[str, ...] = ()
    origin: Origin = ""
    cause_title: str = ""
    fix_id: str = ""
    fix_status: ClaimStatus = "unverified"


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The one answer every face shows (DIAGNOSIS_SCHEMA). `took_ms` is wall time inside the core.

    `best_check` is the check that best separates the two leading causes, or None. `warnings` are
    settings that contradict something or do harm, `setting_notes` what is true of others, and
    `settings_in_order` counts those of which nothing is to be said. `second_reader` is None where
    no language model was asked; where one answered, the probabilities hold its opinion. `readers`
    has those that had something to go by.
    """

    schema: str
    status: DiagnosisStatus
    language: Language
    summary: str
    incident: AnswerIncident
    causes: tuple[RankedCause, ...]
    unknown_probability: float
    cases: tuple[SimilarCase, ...]
    warnings: tuple[SettingWarning, ...]
    next: tuple[NextStep, ...]
    best_check: AnswerCheck | None
    took_ms: float
    redactions: int = 0
    setting_notes: tuple[SettingWarning, ...] = ()
    settings_in_order: int = 0
    second_reader: SecondReading | None = None
    readers: tuple[ReaderOpinion, ...] = ()
    headline: str = ""
    first_fix: FirstStep | None = None
    met_before: MetBefore | None = None
    notices: tuple[AnswerNotice, ...] = ()
