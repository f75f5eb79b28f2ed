"""Values of the knowledge files: causes, patterns, fixes, checks, settings."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field

from kb.types.vocabulary import (
    AdviceVerdict,
    Backend,
    ClaimStatus,
    EventRole,
    Language,
    Level,
    MarkRole,
    NameGroup,
    NoteStatus,
    Origin,
    PatternKind,
    PatternScope,
    Restart,
    Stage,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bilingual:
    """One text in Chinese and English, each a faithful twin of the other."""

    zh: str
    en: str

    def get(self, language: Language) -> str:
        """The text in `language`."""
        return self.zh if language == "zh" else self.en


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A page and what it confirms."""

    url: str
    confirms: str = ""


# --- knowledge: data/causes.yaml ---------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliesTo:
    """Where a fix is right; an empty tuple means everywhere.

    `versions` are PEP 440 specifiers with the package name in front, such as ``torch>=2.2``.
    """

    frameworks: tuple[str, ...] = ()
    backends: tuple[Backend, ...] = ()
    stages: tuple[Stage, ...] = ()
    versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """A remedy a person can carry out.

    `commands` are shell lines or code, ready to copy. `cost` is the work, `risk` what can break.
    `signs` name what it is made for, as data/input_evidence.yaml does, and cue:<id> for a person's
    words: where none was seen, other fixes come first.
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
    origin: Origin = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runbook:
    """A page of the team that says what to do about a cause."""

    title: Bilingual
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOutcome:
    """What seeing `observation` in a check says: which causes it supports and which it refutes.

    `shown_by` are lists of names as `InputEvidence.shown_by` has them: where the input shows one
    of them whole, somebody has seen this outcome or its opposite, and the check needs no asking.
    `trouble` tells whether the outcome is that the trouble, or a sign of it, is there (“hangs as
    well”) or not (“passes”, “all equal”); None where it is neither.
    """

    observation: Bilingual
    trouble: bool | None = None
    supports: tuple[str, ...] = ()
    refutes: tuple[str, ...] = ()
    shown_by: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """An experiment that separates causes: the command, what it tells, and its outcomes.

    `gives` is an id of data/input_evidence.yaml: what is given already needs no asking. `when`
    names what has to be seen for the check to make sense here; empty: always.
    """

    id: str
    command: str
    tells: Bilingual
    outcomes: tuple[CheckOutcome, ...] = ()
    applies_to: AppliesTo = AppliesTo()
    cost: Level = "low"
    sources: tuple[str, ...] = ()
    gives: str = ""
    when: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Collect:
    """Evidence worth collecting before the next run, for the torch versions it is right for.

    `gives` is an id of data/input_evidence.yaml: of several ways to the same evidence an answer
    shows the first that fits, and none where the input holds it. `when` names what has to be seen
    for it, as `InputEvidence.shown_by` does; empty: always. In `why`, {silent} stands for the ranks
    that print nothing, {ranks} for those that do, {world} for how many there are.
    """

    command: str
    why: Bilingual
    versions: tuple[str, ...] = ()
    backends: tuple[Backend, ...] = ()
    gives: str = ""
    when: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InputEvidence:
    """A kind of evidence and how an input shows it: one entry of data/input_evidence.yaml.

    `shown_by` are lists of names (see the file), one of which has to be seen whole.
    """

    id: str
    shown_by: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """What starts or serves a job's processes: one entry of data/launchers.yaml.

    Attributes:
        signs: expressions in the lines of the input by which it is seen, RE2, any case.
        shown_by: the same by names, as `InputEvidence.shown_by` has them.
        commands: how its users get a kind of evidence (an id of data/input_evidence.yaml) or do a
            check (its id); empty where there is no such thing for them.
    """

    id: str
    signs: tuple[str, ...] = ()
    shown_by: tuple[tuple[str, ...], ...] = ()
    commands: dict[str, str] = field(default_factory=dict)
    sources: tuple[str, ...] = ()


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
    runbooks: tuple[Runbook, ...] = ()


# --- knowledge: data/events.yaml and data/patterns.yaml ------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class EventType:
    """A kind of event: one entry of data/events.yaml, `id` is what patterns name.

    Attributes:
        roles: what the program may ask of such an event.
        stage: the part of a run it shows.
        fact: the fact it is, as it stands; where `nearby`, only close to the failure.
        headline: what happened in a few words; `{who}` stands for the rank.
        withdrawn_by: kinds of later events after which it is no sign; where `withdrawn_if` is
            given, only if its pattern captured that field.
    """

    id: str
    means: Bilingual
    headline: Bilingual | None = None
    roles: tuple[EventRole, ...] = ()
    stage: Stage | None = None
    fact: str = ""
    nearby: bool = False
    withdrawn_by: tuple[str, ...] = ()
    withdrawn_if: str = ""


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
        event: the `EventType` it makes, shared by patterns that mean the same.
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
    origin: Origin = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolarityMark:
    """Words that decide how a sentence speaks of a thing: one entry of data/polarity.yaml.

    `regex` is RE2, matched in one sentence and without regard to case.
    """

    id: str
    role: MarkRole
    regex: str
    examples: tuple[str, ...]
    reason: str = ""
    negatives: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """Something a person speaks of: one entry of data/topics.yaml.

    Attributes:
        names, settings, troubles, sounds: expressions by their `Standing`, in both languages.
        generic: names so general that they count only where a sentence names nothing else.
        needed: to have none of it is the trouble.
        trouble: nats per cause where it is wrong.
        in_order: nats per cause where it is well or its trouble is denied; none is positive.
        cures: the causes that a change of it cures, with how much it then speaks for each.
    """

    id: str
    title: Bilingual
    names: tuple[str, ...]
    generic: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()
    sounds: tuple[str, ...] = ()
    needed: bool = False
    trouble: dict[str, float] = field(default_factory=dict)
    in_order: dict[str, float] = field(default_factory=dict)
    cures: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """A framework that a log may name: one entry of data/frameworks.yaml.

    `projects` are names of its source folders where they are not the id.
    """

    id: str
    projects: tuple[str, ...] = ()
    server: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkName:
    """How texts name a framework: one entry of data/framework_names.yaml.

    Attributes:
        words: expressions that stand for it beside its id.
        logged_as: its id in data/frameworks.yaml where that is another one.
        built_on: what a job of it uses as well.
        group: what it is one of; None for a framework that people work with.
        tag: whether imported entries are tagged with it.
    """

    id: str
    words: tuple[str, ...] = ()
    logged_as: str = ""
    built_on: tuple[str, ...] = ()
    group: NameGroup | None = None
    tag: bool = True


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
        causes: nats per cause id where the value is known to do harm; empty: it says nothing.
    """

    verdict: AdviceVerdict
    explanation: Bilingual
    value: str = ""
    versions: tuple[str, ...] = ()
    replacement: str = ""
    source: str = ""
    causes: dict[str, float] = field(default_factory=dict, hash=False)


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
    origin: Origin = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSetting:
    """How one property of a job is written: one entry of data/job_settings.yaml.

    Attributes:
        names: environment variables (upper case), options and keys (lower case, ``_`` as ``-``).
        forms: expressions with a group ``value``, for what is no name with a value.
        switches: flags without a value, and the value they stand for.
    """

    id: str
    names: tuple[str, ...] = ()
    forms: tuple[str, ...] = ()
    switches: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """What it means that settings contradict something: an entry of data/contradictions.yaml.

    `means` has ``{detail}`` for the settings; `replacement` has ``{name}`` for the first of them.
    `causes` are nats per cause id.
    """

    id: str
    verdict: AdviceVerdict
    means: Bilingual
    sources: tuple[str, ...]
    replacement: str = ""
    causes: dict[str, float] = field(default_factory=dict)
    reason: str = ""


# --- knowledge: data/notes/*.md ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteQuestions:
    """The ways in which people ask what a note answers, in each language."""

    zh: tuple[str, ...]
    en: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRun:
    """A command of a note that was run, and the versions it was run with (``torch 2.13.0``)."""

    command: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A short answer to what people ask around a hang: one file of data/notes.

    Attributes:
        frameworks, settings, causes: what it is about, by the names that advice, cases and causes
            have for it.
        versions: the versions for which the text holds, as specifiers (``torch>=2.2``).
        run: empty: nothing in it was run.
        body: Markdown of a few sentences and fenced blocks, which are the same in both languages.
    """

    id: str
    title: Bilingual
    questions: NoteQuestions
    sources: tuple[Source, ...]
    status: NoteStatus
    body: Bilingual
    frameworks: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    run: tuple[NoteRun, ...] = ()


# --- knowledge: the team's site folder ---------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteCause:
    """What a team adds to a cause: an entry of the site folder's causes.yaml, `id` is the cause."""

    id: str
    fixes: tuple[Fix, ...] = ()
    runbooks: tuple[Runbook, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BadHost:
    """A host the team knows to be bad: an entry of the site folder's hosts.yaml.

    `name` is as logs print it, whatever the case; without a dot it also stands for the host's
    name with a domain behind.
    """

    name: str
    reason: Bilingual
    since: dt.date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamNotice:
    """A sentence above the answers: an entry of the site folder's notices.yaml.

    Attributes:
        since, until: the first and the last day it is shown.
        causes: shown above answers that name one of these causes; empty: above all.
        url: a page that says more.
    """

    id: str
    text: Bilingual
    since: dt.date | None = None
    until: dt.date | None = None
    causes: tuple[str, ...] = ()
    url: str = ""


# --- knowledge: data/cases/*.md ----------------------------------------------------------------
