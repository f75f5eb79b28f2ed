"""Names that knowledge, entries and answers share."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

Language = Literal["zh", "en"]
ClaimStatus = Literal["confirmed", "reported", "unverified", "contradicted"]
NoteStatus = Literal["confirmed", "reported", "unverified"]
EntryKind = Literal["case", "writeup", "thread", "incident"]
Stage = Literal["init", "data", "train", "eval", "save", "load", "inference", "unknown"]
Backend = Literal["nccl", "gloo", "hccl", "rccl", "other"]
Restart = Literal["helps", "will_not_help", "unknown"]
NameGroup = Literal["base", "engine", "launcher", "device", "platform", "scheduler"]
PatternScope = Literal["log", "text", "any"]
PatternKind = Literal["timeout", "root", "cascade", "teardown", "context", "fact", "noise"]
DiagnosisStatus = Literal["diagnosed", "unknown", "no_timeout"]
EvidenceKind = Literal["log", "rank", "case", "prior", "text", "reader", "language_model"]
ReaderName = Literal["evidence", "reader", "cases", "language_model"]
StepKind = Literal["fix", "check", "collect"]
Origin = Literal["", "site"]  # of knowledge: shipped, or of the team's site folder
NoticeKind = Literal["notice", "bad_host", "not_searched"]
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


class LineKind(StrEnum):
    """What a line of text is."""

    PROSE = "prose"  # a person's words
    OUTPUT = "output"  # printed by a program
    STACK = "stack"  # of a traceback, a stack of native code, a thread dump
    SCRIPT = "script"  # of a shell: scripts, command lines, Dockerfiles
    ENVIRONMENT = "environment"  # variables with values, versions, hardware: one a line
    CONFIG = "config"  # yaml, json, toml, ini, printed arguments
    CODE = "code"  # of a programming language
    TABLE = "table"  # pip list, nvidia-smi, collect_env, df, ip a
    MARKUP = "markup"  # quoted text, code fences, headings and boxes of an issue template


class EventRole(StrEnum):
    """What the program asks of events: data/events.yaml says which kinds of events play a role."""

    WORK_REPORT = "work_report"  # a rank's report of one timed-out collective, with op and number
    WATCHDOG_REPORT = "watchdog_report"  # names rank, process group and number of a collective
    RANK_WAITED = "rank_waited"  # its rank says that it waited itself
    MISMATCH = "mismatch"  # ranks are proven to run different collectives
    FINGERPRINT = "fingerprint"  # prints a collective's operation and number
    COMMUNICATION_FAILURE = "communication_failure"  # one, whatever printed it
    MACHINE_FAILURE = "machine_failure"  # of GPU, link, process: answered without a timeout, too
    HOST_FAILURE = "host_failure"  # a host, its link or GPU is gone: connections to it break
    SHARED_ERROR = "shared_error"  # every rank meets it at once: says nothing about the first one
    DESYNC_REPORT = "desync_report"  # lists lagging ranks
    ROLL_CALL = "roll_call"  # lists ranks that did not reach a barrier
    BARRIER_WAITER = "barrier_waiter"  # names the rank it waits for
    STORE_WAIT = "store_wait"  # a rank that has joined waits in the store, perhaps for `peer`
    PEER_CLOSED = "peer_closed"  # names the rank whose connection closed
    PEER_ADDRESS = "peer_address"  # names a peer's address
    FAILED_RANK_ROW = "failed_rank_row"  # a rank in the launcher's table of failures
    RANK_DETAIL_ROW = "rank_detail_row"  # a line below it that belongs to the same rank
    EXIT_ROW = "exit_row"  # an exit code in that table
    FIRST_FAILURE_ROW = "first_failure_row"  # the launcher's heading of what failed first
    KILLED = "killed"  # a process was ended by a signal
    REAPED = "reaped"  # recorded when a process is reaped: stands late and still came first
    VAGUE = "vague"  # a specific line of the same library explains it better
    EXCEPTION = "exception"  # any exception, whatever its message
    EXPLANATION = "explanation"  # words by which a program explains its error
    STEP = "step"  # the number of a step, mostly with its rank
    EPOCH_END = "epoch_end"
    CLOSING_SIGNAL = "closing_signal"  # the launcher ends a process it names
    RANK_IN_CODE = "rank_in_code"  # quoted code treats one rank, `peer`, unlike the others
    PROGRESS = "progress"  # after it a timeout belongs to another wave
    FREQUENT = "frequent"  # on every line of a healthy log: searched for only where it matters
    AWAITED_WORK = "awaited_work"  # work of one rank that others may wait for; it shows how long
    TRAINING_BAR = "training_bar"  # a bar of steps, if it is no bar of loading
    INIT_COMPLETE = "init_complete"
    AFTER_INIT = "after_init"  # work that follows initialisation
    INIT_FAILURE = "init_failure"  # belongs to setting up communication where no stage is printed
    TRANSPORT = "transport"
    IB_DEVICES = "ib_devices"
    INTERFACE = "interface"
    FRAMEWORK = "framework"
    VERSION = "version"  # its fields are name → version
    PACKAGE = "package"
    SETTING = "setting"
    TRACEBACK = "traceback"  # the head of an exception's stack
    THREAD_STACK = "thread_stack"  # the head of a thread's stack
    LAUNCHER = "launcher"  # printed by who started the ranks: a file's rank is not its own
    PARALLEL_SIZE = "parallel_size"
    RANK_PLACE = "rank_place"  # tells on which host or device ranks of the job run
    WRONG_MAGIC = "wrong_magic"  # bytes that are not NCCL's came to its port


class Polarity(StrEnum):
    """How a sentence speaks of what it names."""

    TROUBLE = "trouble"  # it is wrong, or it happens
    IN_ORDER = "in_order"  # it is well
    DENIED = "denied"  # a trouble that does not exist or did not happen
    TRIED_IN_VAIN = "tried_in_vain"  # it was changed, to no effect
    HELPED = "helped"  # it was changed, and the problem went away
    ASKED = "asked"  # a question or an announced plan
    GUESSED = "guessed"  # a guess
    BEFORE = "before"  # on another occasion, not in this incident
    LOOKED_AT = "looked_at"  # somebody looked, and does not say what they saw


class Standing(StrEnum):
    """What kind of words name a thing: they decide what is meant where nothing more is said."""

    NAME = "name"  # the thing, neither well nor wrong: the network
    GENERIC = "generic"  # a name too general to count beside another: the GPUs
    SETTING = "setting"  # a name that is itself a change: NCCL_P2P_DISABLE=1
    TROUBLE = "trouble"  # what is wrong with it: packet loss
    SOUND = "sound"  # that it is well: drop_last=True
    CIRCUMSTANCE = "circumstance"  # what is so or not so: the data is sharded


class MarkRole(StrEnum):
    """What words of a sentence do to the polarity of what it names."""

    NEGATION = "negation"  # turns what follows
    ABSENCE = "absence"  # says of a trouble that stands before that there is none
    RULED_OUT = "ruled_out"  # says of what stands before that it is not it
    GOOD = "good"
    BAD = "bad"
    FAILS = "fails"  # the job, or the thing named before it, hangs or dies
    CHANGE = "change"  # something was changed
    HELPED = "helped"  # ... and the problem went away
    RUNS = "runs"  # the same, if something was changed at all
    IN_VAIN = "in_vain"  # ... and nothing came of it
    LOOK = "look"  # somebody looked at it
    QUESTION = "question"
    WHY = "why"  # asks for the reason of what it takes for granted
    PLAN = "plan"
    GUESS = "guess"
    PAST = "past"
    PRESENT = "present"  # ends the past
    CONTRAST = "contrast"
    JOINT = "joint"  # joins the items of a list
    REASON = "reason"  # opens a clause of its own: because, when
    IDIOM = "idiom"  # looks like another mark and is none


# Groups of cues that a report needs.
CUE_GROUPS = ("hang", "distributed", "failure")
NETWORK_EVENT = "network"  # says which network NCCL uses, where channels say how two ranks meet
SETTING_EVENT = "setting"  # the one kind of event whose fields are a setting's name and value
UNKNOWN = "unknown"  # the cause id that says the evidence does not decide
DIAGNOSIS_SCHEMA = "timeout-kb/diagnosis/1"
