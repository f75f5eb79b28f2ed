"""The values every part speaks in: knowledge, entries, incidents, answers.

All are frozen dataclasses without behaviour beyond small derived properties. They import nothing
of the project, so every package may import them. Tuples stand for lists: a value never changes.
JSON and YAML go through msgspec (`msgspec.convert`, `msgspec.to_builtins`), which checks them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Language = Literal["zh", "en"]
ClaimStatus = Literal["confirmed", "reported", "unverified", "contradicted"]
EntryKind = Literal["case", "writeup", "thread", "incident"]
Stage = Literal["init", "data", "train", "eval", "save", "load", "inference", "unknown"]
Restart = Literal["helps", "will_not_help", "unknown"]
PatternScope = Literal["log", "text", "any"]
PatternKind = Literal["timeout", "root", "cascade", "teardown", "context", "fact", "noise"]
DiagnosisStatus = Literal["diagnosed", "unknown", "no_timeout"]
EvidenceKind = Literal["log", "rank", "case", "prior", "text"]
Level = Literal["low", "medium", "high"]
AdviceVerdict = Literal[
    "no_effect",
    "deprecated_alias",
    "debug_only",
    "contradicts",
    "misspelt",
    "wrong_unit",
    "wrong_value",
    "lowers_default",
    "hides_cause",
    "never_fixes",
]

UNKNOWN = "unknown"  # the cause id that says the evidence does not decide
DIAGNOSIS_SCHEMA = "timeout-kb/diagnosis/1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bilingual:
    """One text in Chinese and English, each a faithful twin of the other."""

    zh: str
    en: str

    def get(self, language: Language) -> str:
        """The text in `language`."""
        return self.zh if language == "zh" else self.en


# --- knowledge: data/causes.yaml ---------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliesTo:
    """Where a fix is right; an empty tuple means everywhere.

    `versions` are PEP 440 specifiers with the package name in front, such as ``torch>=2.2``.
    """

    frameworks: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    stages: tuple[Stage, ...] = ()
    versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """A remedy a person can carry out.

    `commands` are shell lines or code, ready to copy. `cost` is the work, `risk` what can break.
    `signs` name what it is made for, as data/given.yaml does, and cue:<id> for a person's words:
    where none was seen, other fixes come first.
    """

    id: str
    title: Bilingual
    steps: tuple[Bilingual, ...]
    commands: tuple[str, ...] = ()
    applies_to: AppliesTo = AppliesTo()
    cost: Level = "medium"
    risk: Level = "low"
    caution: Bilingual | None = None
    status: ClaimStatus = "reported"
    sources: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What seeing `observation` in a check says: which causes it supports and which it refutes."""

    observation: Bilingual
    supports: tuple[str, ...] = ()
    refutes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """An experiment that separates causes: the command, what it tells, and its outcomes.

    `gives` is an id of data/given.yaml: what is given already needs no asking.
    """

    id: str
    command: str
    tells: Bilingual
    outcomes: tuple[Outcome, ...] = ()
    applies_to: AppliesTo = AppliesTo()
    cost: Level = "low"
    sources: tuple[str, ...] = ()
    gives: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collect:
    """Evidence worth collecting before the next run, for the torch versions it is right for.

    `gives` is an id of data/given.yaml: of several ways to the same evidence an answer shows the
    first that fits, and none where the input holds it. `when` names what has to be seen for it, as
    `Given.shown_by` does; empty: always.
    """

    command: str
    why: Bilingual
    versions: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    gives: str = ""
    when: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A kind of evidence and how an input shows that it holds it: one entry of data/given.yaml.

    `shown_by` are lists of names (see the file), one of which has to be seen whole.
    """

    id: str
    shown_by: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A root cause: one entry of data/causes.yaml."""

    id: str
    title: Bilingual
    definition: Bilingual
    shows: tuple[Bilingual, ...]
    confirms: tuple[Bilingual, ...]
    refutes: tuple[Bilingual, ...]
    restart: Restart
    restart_reason: Bilingual
    fixes: tuple[Fix, ...] = ()
    checks: tuple[Check, ...] = ()
    collect: tuple[Collect, ...] = ()
    sources: tuple[str, ...] = ()


# --- knowledge: data/patterns.yaml -------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """Something a log or a description says, and what it means: one entry of data/patterns.yaml.

    Attributes:
        regex: linear-time expression both hyperscan and `re` accept; it ends on fixed text.
        capture: expression for `re` with named groups, applied to the hit line only; empty if
            nothing is captured. Group names are fields of the event (rank, seq, op, ...).
        scope: `log` for program output, `text` for a person's description, `any` for both.
        kind: `timeout` is a timeout itself; `root` can be the first error; `cascade` follows from
            another rank's failure; `teardown` comes with the shutdown; `context` and `fact` carry
            settings, versions and progress; `noise` is advice or chatter that is never an event.
        event: kind of the event it makes, shared by patterns that mean the same.
        causes: weight per cause id in nats (log odds), negative speaks against.
        sound: of a cue that names a thing, the weights where a person says that it is in order.
        needed: of a cue that names a thing which a job needs: to have none of it is the trouble.
    """

    id: str
    regex: str
    kind: PatternKind
    event: str
    means: Bilingual
    examples: tuple[str, ...]
    negatives: tuple[str, ...] = ()
    capture: str = ""
    scope: PatternScope = "log"
    causes: dict[str, float] = field(default_factory=dict)
    reason: str = ""
    sound: dict[str, float] = field(default_factory=dict)
    needed: bool = False
    ignore_case: bool = False
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FactMeaning:
    """What a derived fact says about causes: one entry of data/facts.yaml, `id` is the fact's name.

    `causes` are nats (log odds) per cause id, negative speaks against.
    """

    id: str
    means: Bilingual
    causes: dict[str, float] = field(default_factory=dict)
    reason: str = ""


# --- knowledge: data/advice.yaml ---------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionedValue:
    """A default value and the versions it holds for (``torch>=2.11``)."""

    value: str
    versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceRule:
    """One thing that is wrong with a setting, and when.

    Attributes:
        value: what the value must be: empty for any; ``on`` or ``off`` for a switch; ``=a|b`` for
            one of these, ignoring case; ``<n`` and ``>n`` for numbers; ``~regex`` for a match.
        versions: specifiers that must all hold (``torch>=2.2``); empty means every version.
            Only torch's version is known to the check, the others are told to the reader.
        replacement: what to write instead; ``{value}`` stands for the value found.
    """

    verdict: AdviceVerdict
    explanation: Bilingual
    value: str = ""
    versions: tuple[str, ...] = ()
    replacement: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What is true of one setting: one entry of data/advice.yaml, `id` is the setting's name.

    Environment variables are upper case, options and configuration keys lower case with ``_``;
    a dotted id (``comm.train_timeout_seconds``) is also found by its last part.

    Attributes:
        read_by: who reads the setting; empty when nothing does.
        rules: the warnings it can earn; a rule of verdict ``contradicts`` also needs one of
            `contradicts` in the same text.
        since, until: version specifiers of its first version (``torch>=2.2``) and of the first
            one without it (``torch>=2.6``).
        unit: unit of the value (`s`, `min`, `ms`, `exponent`, `bool`, `name`, ...).
        contradicts: settings (``NAME`` or ``NAME=value``) that undo this one.
        sets_group_timeout: whether it sets the process group's timeout, which the log shows.
        related: other names the same reader knows; spelt right, with nothing to say about them.
    """

    id: str
    read_by: str
    effect: Bilingual
    sources: tuple[str, ...]
    rules: tuple[AdviceRule, ...] = ()
    replaced_by: str = ""
    since: str = ""
    until: str = ""
    unit: str = ""
    defaults: tuple[VersionedValue, ...] = ()
    risk: Bilingual | None = None
    contradicts: tuple[str, ...] = ()
    sets_group_timeout: bool = False
    related: tuple[str, ...] = ()
    status: ClaimStatus = "confirmed"


# --- knowledge: data/cases/*.md ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A page and what it confirms."""

    url: str
    confirms: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One statement of an entry with its standing; `about` is cause, fix, symptom or other."""

    about: str
    text: Bilingual
    status: ClaimStatus
    source: str = ""


# --- entries -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseClaim:
    """A cause an entry names, and how sure that is."""

    id: str
    status: ClaimStatus
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tags:
    """What an entry is about, for filters and facets. Names are lower case, ops as printed."""

    frameworks: tuple[str, ...] = ()
    backend: str = ""
    ops: tuple[str, ...] = ()
    stage: Stage = "unknown"
    hardware: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A titled part of an entry in one language.

    `role` is symptoms, found, causes, fixes, verify, not_helped, practices, background or other.
    """

    role: str
    title: str
    text: str
    language: Language


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """The unit of retrieval: a piece of an entry. `id` is ``<entry id>#<number>``."""

    id: str
    entry_id: str
    role: str
    language: Language
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One item of the knowledge base, whatever its origin.

    `id` is the case's slug, or ``<kind>-<first 16 hex digits of the content's SHA-256>``.
    `digest` is the SHA-256 of the source as read; `source_key` names where it came from (a path
    or URL): a changed file keeps its key and replaces its entry.
    """

    id: str
    kind: EntryKind
    language: Literal["zh", "en", "both"]
    title: Bilingual
    project: str
    url: str
    date: str
    status: ClaimStatus
    causes: tuple[CauseClaim, ...]
    fixes: tuple[Fix, ...]
    tags: Tags
    signature: tuple[str, ...]
    sections: tuple[Section, ...]
    chunks: tuple[Chunk, ...]
    source_key: str
    digest: str
    claims: tuple[Claim, ...] = ()
    sources: tuple[Source, ...] = ()
    author: str = ""
    resolved: bool = True


# --- search ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Conditions on entries, applied before ranking; an empty tuple or string lets all pass."""

    causes: tuple[str, ...] = ()
    frameworks: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    hardware: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    exclude_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """An entry a search found. `score` is in [0, 1], higher is better; `why` says what matched."""

    entry_id: str
    kind: EntryKind
    title: Bilingual
    project: str
    url: str
    status: ClaimStatus
    cause: str
    score: float
    chunk_id: str
    snippet: str
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """Hits best first (ties by entry id), whether any passes the threshold, and facet counts.

    `settings` are the settings the question names or describes, best first.
    """

    query: str
    hits: tuple[Hit, ...]
    similar_enough: bool
    facets: dict[str, dict[str, int]]
    took_ms: float
    settings: tuple[Advice, ...] = ()


# --- logs --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing the log says.

    `line` counts from 1 in `file`; `text` is the line after redaction, cut to a bounded length.
    `time_s` is seconds since the epoch, or since midnight where the log prints no date, or None.
    `count` is how often the same event stood there (a flood is counted, not kept).
    """

    pattern_id: str
    kind: PatternKind
    event: str
    line: int
    text: str
    file: str = ""
    rank: int | None = None
    host: str = ""
    process_group: str = ""
    time_s: float | None = None
    fields: dict[str, str] = field(default_factory=dict)
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstError:
    """The first error that is not a consequence of another."""

    rank: int | None
    line: int
    kind: str
    text: str
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """A rank the evidence points to, and the reason in words."""

    rank: int
    reason: Bilingual
    line: int = 0
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankState:
    """What is known of one rank. Sequence numbers are those of `process_group`; None if unseen."""

    rank: int
    state: str = ""
    host: str = ""
    process_group: str = ""
    last_enqueued: int | None = None
    last_completed: int | None = None
    last_seq: int | None = None
    last_op: str = ""
    numel_in: int | None = None
    numel_out: int | None = None
    last_step: int | None = None
    exit_code: int | None = None
    signal: str = ""
    line: int = 0
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wave:
    """One burst of timeouts: a new one starts after progress, another setting or a gap.

    Of several files the lines are those of `file`, the first one it stands in.
    """

    first_line: int
    last_line: int
    op: str = ""
    seq: int | None = None
    timeout_ms: int | None = None
    ranks: tuple[int, ...] = ()
    started_s: float | None = None
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineItem:
    """A moment a person should see: clock text as printed, rank, what happened, its line."""

    time: str
    rank: int | None
    what: Bilingual
    line: int
    kind: str = ""
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A derived statement about the incident, with the line it stands on.

    `name` is a stable identifier of data/facts (``rank_behind``, ``mismatch_proven``, ...); the
    evidence model weighs facts by name.
    """

    name: str
    line: int = 0
    quote: str = ""
    detail: str = ""
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A file that was handed in and could not be read.

    Attributes:
        file: its name.
        reason: why; the words of the error in an `Incident`, of the language in an answer.
        code: the error's `reason` (`kb.errors.KBError`), empty where it has none.
        values: the error's values, beside the name.
    """

    file: str
    reason: str
    code: str = ""
    values: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Everything read out of the logs and dumps; the part of the Diagnosis about what happened."""

    backend: str = ""
    op: str = ""
    seq: int | None = None
    numel_in: int | None = None
    numel_out: int | None = None
    timeout_ms: int | None = None
    ran_ms: int | None = None
    process_group: str = ""
    stage: Stage = "unknown"
    world_size: int | None = None
    frameworks: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    transport: tuple[str, ...] = ()
    ranks_reporting: tuple[int, ...] = ()
    ranks_silent: tuple[int, ...] = ()
    culprit_ranks: tuple[Culprit, ...] = ()
    first_error: FirstError | None = None
    waves: tuple[Wave, ...] = ()
    timeline: tuple[TimelineItem, ...] = ()
    ranks: tuple[RankState, ...] = ()
    fault_type: str = ""
    facts: tuple[Fact, ...] = ()
    has_timeout: bool = False
    lines: int = 0
    bytes: int = 0
    unread: tuple[Unread, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReading:
    """What reading the logs gave: the incident, the events behind it, and what to search with.

    `description` is the text that is surely a person's words, `words` all lines that are not
    plainly machine output (see `kb.logs.words`), `excerpt` the lines that matter; all redacted
    and of bounded length. `word_lines` are the numbers of the lines of `words` in the input, in
    the file `word_file`; empty where they are not known any more.
    """

    incident: Incident
    events: tuple[Event, ...]
    description: str
    excerpt: str
    words: str = ""
    redactions: int = 0
    word_lines: tuple[int, ...] = ()
    word_file: str = ""


# --- the answer --------------------------------------------------------------------------------


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarCase:
    """A case like this one; `score` in [0, 1]; `why` the likenesses, `differs` the differences."""

    id: str
    project: str
    title: str
    score: float
    cause: str
    url: str
    status: ClaimStatus
    why: tuple[str, ...]
    differs: tuple[str, ...] = ()


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


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    """What to collect next."""

    command: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerCulprit:
    """A culprit rank with the reason in the language of the answer."""

    rank: int
    reason: str


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
class Diagnosis:
    """The one answer every face shows (DIAGNOSIS_SCHEMA). `took_ms` is wall time inside the core.

    `best_check` is the check that best separates the two leading causes, or None.
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
