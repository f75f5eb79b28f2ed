"""Values of what was read: events, ranks, facts, the incident, the reading."""

from __future__ import annotations

from dataclasses import dataclass, field

from kb.types.knowledge import Bilingual
from kb.types.vocabulary import LineKind, PatternKind, Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing the log says.

    `line` counts from 1 in `file`; `text` is the line after redaction, cut to a bounded length.
    `time_s` is seconds since the epoch, or since midnight where the log prints no date, or None.
    `count` is how often the same event stood there (of a flood most lines are only counted).
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
    """The first error that is not a consequence of another; `host` is empty where none is told."""

    rank: int | None
    line: int
    kind: str
    text: str
    file: str = ""
    host: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """A rank the evidence points to, and the reason in words.

    `kind` names the reason: a label `culprit.<kind>`, or a rule of data/dump_reasons.yaml.
    """

    rank: int
    reason: Bilingual
    line: int = 0
    file: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankState:
    """What is known of one rank. Sequence numbers are those of `process_group`; None if unseen.

    `gpu` is its number on the host, its PCI bus id, or both: ``3 (1b:00)``.
    """

    rank: int
    state: str = ""
    host: str = ""
    gpu: str = ""
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
    """Everything read out of the logs and dumps; the part of the Diagnosis about what happened.

    `evidence_kinds` are the kinds of files beside the logs that were read, whatever they say.
    """

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
    evidence_kinds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TextLine:
    """A line of a text: its number from 1 by line feeds, its text without quote marks, its kind.

    `kind` is that of the text behind the quote marks; `quoted` says that there are some. `file` is
    empty where there is only one.
    """

    number: int
    text: str
    kind: LineKind
    quoted: bool = False
    file: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReading:
    """What reading the logs gave: the incident, the events behind it, and what to search with.

    `words` are the lines a person wrote (see `kb.text.line_kind`), `excerpt` the lines that matter,
    `lines` those of scripts, environments, configurations, code and tables; all redacted and of
    bounded length. `word_places` are file and number of the lines of `words` in the input; empty
    where they are not known any more. `remark_chars` is how many characters at the beginning of
    `words` were said later, in a conversation, and mislead as a description; `added_chars` how many
    were said later in all. `took_ms` is the wall time of reading.
    """

    incident: Incident
    events: tuple[Event, ...]
    excerpt: str
    words: str = ""
    redactions: int = 0
    word_places: tuple[tuple[str, int], ...] = ()
    remark_chars: int = 0
    added_chars: int = 0
    lines: tuple[TextLine, ...] = ()
    took_ms: float = field(default=0.0, compare=False)
