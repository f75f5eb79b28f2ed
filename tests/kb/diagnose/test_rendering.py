"""The answer: what of a verdict is shown, in which order, how much of it, in which words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from kb.diagnose.evidence_model import Contribution, Ranking, ScoredCause
from kb.diagnose.evidence_provided import seen_names
from kb.diagnose.rendering import answer_check, answer_fix, answer_incident, render
from kb.diagnose.signals import Signal
from kb.diagnose.verdict import Verdict
from kb.knowledge.labels import Words
from kb.knowledge.load import Knowledge, read_labels
from kb.settings import shipped_data
from kb.types.answer import Diagnosis, Evidence, RankedCause, SimilarCase
from kb.types.entries import Entry, Tags
from kb.types.incident import (
    Culprit,
    Event,
    Incident,
    LogReading,
    RankState,
    TimelineItem,
    Unread,
)
from kb.types.knowledge import (
    Advice,
    AdviceRule,
    AppliesTo,
    Cause,
    Check,
    CheckOutcome,
    Collect,
    Fix,
    InputEvidence,
    Launcher,
)
from kb.types.vocabulary import DiagnosisStatus, Language, Polarity
from tests.kb.diagnose.toys import both, by_id, case, hit, signal

LABELS = read_labels(shipped_data() / "labels")
EN = Words(LABELS, "en")


def fix(name: str, **fields: object) -> Fix:
    """A fix with this id."""
    return Fix(id=name, title=both(name), steps=(both(f"step of {name}"),), **fields)  # type: ignore[arg-type]


def check(name: str, *outcomes: CheckOutcome, **fields: object) -> Check:
    """A check with this id."""
    return Check(id=name, command=name, tells=both(name), outcomes=outcomes, **fields)  # type: ignore[arg-type]


def cause(name: str, **fields: object) -> Cause:
    """A cause with this id."""
    return Cause(
        id=name,
        title=both(f"Title {name}"),
        definition=both(name),
        shows=(),
        confirms=(),
        refutes=(),
        restart="helps",
        restart_reason=both(f"restart {name}"),
        **fields,  # type: ignore[arg-type]
    )


TELLS = (
    CheckOutcome(observation=both("high"), supports=("alpha",), refutes=("beta", "gamma")),
    CheckOutcome(observation=both("low"), refutes=("alpha",)),
)
ALPHA = cause(
    "alpha",
    fixes=tuple(fix(f"alpha/{letter}") for letter in "abcde"),
    checks=(
        check("c4", applies_to=AppliesTo(backends=("hccl",))),
        check("c3"),
        check("c2", *TELLS),
        check("c1", gives="dmesg"),
        check("c0", applies_to=AppliesTo(versions=("torch>=9",))),
    ),
    collect=(
        Collect(command="first", why=both("why first"), gives="stacks"),
        Collect(command="second way", why=both("why second"), gives="stacks"),
        Collect(command="dmesg", why=both("why dmesg"), gives="dmesg"),
        Collect(command="npu", why=both("why npu"), backends=("hccl",)),
        Collect(command="new torch", why=both("new"), versions=("torch>=9",)),
        Collect(command="after oom", why=both("after oom"), when=(("event:oom",),)),
        Collect(command="after word", why=both("after word"), when=(("cue:word",),)),
    ),
)
UNKNOWN = cause("unknown", collect=tuple(Collect(command=f"u{n}", why=both("u")) for n in range(6)))
KNOWLEDGE = Knowledge(
    digest="",
    causes=(ALPHA, cause("beta"), cause("gamma"), cause("delta"), cause("eps"), UNKNOWN),
    events=(),
    frameworks=(),
    patterns=(),
    cues=(),
    facts=(),
    advice=(),
    cases=(),
    labels=LABELS,
    input_evidence=(InputEvidence(id="dmesg", shown_by=(("event:kernel",),)),),
    missing_evidence=(
        Collect(command="end", why=both("why end"), gives="end", when=(("log:cut",),)),
        Collect(
            command="others",
            why=both("{ranks} of {world}, not {silent}"),
            gives="others",
            when=(("log:silent",),),
        ),
        Collect(command="third", why=both("why third"), gives="third", when=(("log:any",),)),
    ),
    launchers=(
        Launcher(id="one", commands={"stacks": "one stacks", "c2": "one c2"}),
        Launcher(id="two", commands={"stacks": "two stacks", "dmesg": "two dmesg"}),
        Launcher(id="none", commands={"stacks": "", "c2": ""}),
    ),
)
SHARES = {"alpha": 0.5, "beta": 0.2, "gamma": 0.1, "delta": 0.04, "eps": 0.01}


def event(name: str) -> Event:
    """An event of that kind."""
    return Event(pattern_id=name, kind="root", event=name, line=1, text=name)


def ranking(**contributions: list[Contribution]) -> Ranking:
    """The causes of SHARES with what contributes to them."""
    return ranking_of(SHARES, **contributions)


def ranking_of(shares: Mapping[str, float], **contributions: list[Contribution]) -> Ranking:
    """Causes with these shares."""
    return Ranking(
        causes=tuple(
            ScoredCause(
                cause=name,
                probability=share,
                logit=0.0,
                contributions=tuple(contributions.get(name, [])),
            )
            for name, share in shares.items()
        ),
        unknown=0.149951,
    )


UNSURE = ranking_of({**SHARES, "alpha": 0.49})


def answer(
    *,
    incident: Incident = Incident(backend="nccl", versions={"torch": "2.4"}),  # noqa: B008
    events: tuple[str, ...] = (),
    status: DiagnosisStatus = "diagnosed",
    signals: tuple[Signal, ...] = (),
    ranked: Ranking | None = None,
    hits: list[tuple[Entry, float]] | None = None,
    votes: dict[str, float] | None = None,
    language: Language = "en",
    top: int = 3,
    words: str = "",
    seen: tuple[str, ...] = (),
    knowledge: Knowledge | None = None,
) -> Diagnosis:
    """The answer to a verdict with these parts."""
    pairs = hits or []
    reading = LogReading(
        incident=incident,
        events=tuple(event(name) for name in events),
        excerpt="",
        words=words,
        redactions=2,
    )
    verdict = Verdict(
        reading=reading,
        status=status,
        seen=seen_names(reading) | {item.name for item in signals} | set(seen),
        ranking=ranked or ranking(),
        signals=signals,
        hits=tuple(hit(entry, score, why=["word: x"]) for entry, score in pairs),
        entries=by_id([entry for entry, _ in pairs]),
        votes=votes or {},
    )
    return render(verdict, knowledge or KNOWLEDGE, language=language, top=top)


def lead(diagnosis: Diagnosis) -> RankedCause:
    """The first cause."""
    return diagnosis.causes[0]


def test_causes_are_shown_as_ranked() -> None:
    """As many as asked for, with rounded shares, bands and titles in the language."""
    shown = answer(language="zh", top=2)
    assert [(item.id, item.title, item.probability, item.band) for item in shown.causes] == [
        ("alpha", "Title alpha。", 0.5, "likely"),
        ("beta", "Title beta。", 0.2, "possible"),
    ]
    assert (shown.schema, shown.status, shown.language) == (
        "timeout-kb/diagnosis/1",
        "diagnosed",
        "zh",
    )
    assert (shown.unknown_probability, shown.took_ms, shown.redactions) == (0.15, 0.0, 2)
    assert (lead(shown).restart, lead(shown).restart_reason) == ("helps", "restart alpha。")
    assert "Title alpha。" in shown.summary
    assert (shown.incident.backend, shown.warnings) == ("nccl", ())


@pytest.mark.parametrize(("torch", "verdicts"), [("2.8", ["debug_only"]), ("2.4", [])])
def test_settings_are_judged_for_the_torch_a_person_named(torch: str, verdicts: list[str]) -> None:
    """Its version comes before the log's; explanations are in the language of the answer."""
    rule = AdviceRule(verdict="debug_only", explanation=both("slow"), versions=("torch>=2.8",))
    advice = Advice(id="A_B", read_by="x", effect=both("e"), sources=("s",), rules=(rule,))
    verdict = Verdict(
        reading=LogReading(
            incident=Incident(settings={"A_B": "1"}, versions={"torch": "2.6"}),
            events=(),
            excerpt="",
        ),
        status="diagnosed",
        ranking=ranking(),
        signals=(),
        hits=(),
        entries={},
        votes={},
        torch=torch,
    )
    shown = render(verdict, replace(KNOWLEDGE, advice=(advice,)), language="zh", top=3)
    assert [item.verdict for item in shown.setting_notes] == verdicts
    assert {item.explanation for item in shown.setting_notes} <= {"slow。"}


def test_without_a_timeout_nothing_is_asserted() -> None:
    """No causes, checks and nothing to collect, only cases alike; the unknown's share stays."""
    shown = answer(status="no_timeout", hits=[(case("a", "alpha"), 0.9)])
    assert (shown.causes, shown.next, shown.best_check) == ((), (), None)
    assert [similar.id for similar in shown.cases] == ["a"]
    assert shown.summary == EN("summary.no_timeout")
    assert shown.unknown_probability == 0.15


def part(name: str, weight: float, **changes: object) -> Contribution:
    """What a signal of that name contributes."""
    return Contribution(signal=replace(signal(name), **changes), weight=weight)  # type: ignore[arg-type]


def test_evidence_is_shown_strongest_first() -> None:
    """Six pieces of at least a tenth of a nat, for or against; equals by name."""
    parts = [
        part("f", 0.11111),
        part("weak", 0.0999),
        part("e", 0.1),
        part("d", -0.5),
        part("c", 0.5),
        part("b", 2.0),
        part("a", -3.0),
        part("last", -0.1),
    ]
    shown = lead(answer(ranked=ranking(alpha=parts))).evidence
    assert [(item.source, item.weight) for item in shown] == [
        ("source of a", -3.0),
        ("source of b", 2.0),
        ("source of c", 0.5),
        ("source of d", -0.5),
        ("source of f", 0.111),
        ("source of e", 0.1),
    ]


def test_a_piece_of_evidence_is_its_signal_in_words() -> None:
    """Kind, quote, place, source and meaning; denied ones say so, details are filled in."""
    detailed = both("behind (step {detail})")
    parts = [
        part("a", 3.0, line=7, file="x.log", kind="rank", means=detailed, detail="9"),
        part("b", 2.0, polarity=Polarity.DENIED),
        part("c", 1.0, means=detailed),
    ]
    first, second, third = lead(answer(ranked=ranking(alpha=parts))).evidence
    assert first == Evidence(
        kind="rank",
        quote="quote of a",
        line=7,
        weight=3.0,
        source="source of a",
        reason="behind (step 9).",
        file="x.log",
    )
    assert second.reason == "denied: meaning of b."
    assert third.reason == "behind (step )."


def test_what_the_reader_says_is_quoted() -> None:
    """A sentence with its quote, the others together without one."""
    parts = [
        part("a", 3.0, kind="reader", means=None, quote="the disk is slow"),
        part("b", -2.0, kind="reader", means=None, quote=""),
    ]
    first, rest = lead(answer(ranked=ranking(alpha=parts))).evidence
    assert (first.kind, first.quote) == ("reader", "the disk is slow")
    assert first.reason == "learned from reports like this one"
    assert (rest.quote, rest.weight) == ("", -2.0)
    assert rest.reason == f"the rest of the description: {first.reason}"


@pytest.mark.parametrize(
    ("means", "detail", "reason"),
    [
        ("behind ({detail})", "rank 3", "behind (rank 3)."),
        ("behind ({detail})", "", "behind."),
        ("落后（{detail}）", "", "落后."),
        ("at {detail} now", "", "at  now."),
    ],
)
def test_a_detail_is_filled_in(means: str, detail: str, reason: str) -> None:
    """Where a fact has none, its brackets go."""
    part_of = part("a", 3.0, means=both(means), detail=detail)
    assert lead(answer(ranked=ranking(alpha=[part_of]))).evidence[0].reason == reason


def test_a_case_is_evidence_by_its_title() -> None:
    """The nearest case of the cause comes last, with the cause's votes; one of its project, too."""
    near, far = case("near", "alpha", project="o/toy"), case("far", "alpha")
    own = part(
        "case:same-error", 0.7, kind="case", source="near", means=None, weights={"alpha": 1.0}
    )
    learned = replace(own, weight=-0.4)  # of a cause the case does not have: nothing is said of it
    shown = answer(
        ranked=ranking(alpha=[own], beta=[learned]),
        hits=[(near, 0.6), (far, 0.4), (case("other", "beta"), 0.6)],
        votes={"alpha": 0.33333},
        language="zh",
    )
    first, last = lead(shown).evidence
    assert (first.kind, first.quote, first.reason) == (
        "case",
        "title of near。",
        "同一项目遇到过同样的错误（案例 near）",
    )
    assert last == Evidence(
        kind="case",
        quote="title of near。",
        line=0,
        weight=0.333,
        source="near",
        reason="相似案例 near 的根因相同",
    )
    assert [item.cases for item in shown.causes] == [("near", "far"), ("other",), ()]
    assert [item.source for item in shown.causes[1].evidence] == ["other"]


@pytest.mark.parametrize(
    ("language", "reasons"),
    [
        ("zh", ["本团队的故障 own 遇到过同样的错误", "本团队相似的故障 own 就是这个根因"]),
        (
            "en",
            [
                "your team's incident own met the same error",
                "your team's similar incident own had this cause",
            ],
        ),
    ],
)
def test_a_teams_own_incident_is_called_so(language: Language, reasons: list[str]) -> None:
    """As evidence by its label, as a similar case by its kind."""
    own = replace(case("own", "alpha"), kind="incident")
    same = part("case:same-error", 0.7, kind="case", source="own", means=None, weights={"alpha": 1})
    shown = answer(ranked=ranking(alpha=[same]), hits=[(own, 0.9)], language=language)
    assert [item.reason for item in lead(shown).evidence] == reasons
    assert [(item.id, item.kind) for item in shown.cases] == [("own", "incident")]


def test_what_is_hardly_alike_is_no_case() -> None:
    """From 0.4 on a case is alike; five are shown, three of a cause named with it."""
    entries = [case(f"c{number}", "alpha") for number in range(6)]
    hits = [(entry, 0.9 - number / 20) for number, entry in enumerate(entries)]
    shown = answer(hits=hits)
    assert [item.id for item in shown.cases] == ["c0", "c1", "c2", "c3", "c4"]
    assert lead(shown).cases == ("c0", "c1", "c2")
    # 0.3636 ** 0.7 * 0.5 ** 0.3 is 0.40006, with 0.3635 it is 0.39999
    last = answer(hits=[(entries[0], 0.3636), (case("x", "alpha"), 0.3635)])
    assert [(item.id, item.score) for item in last.cases] == [("c0", 0.4)]


def test_a_case_of_a_likelier_cause_is_more_alike() -> None:
    """The words being equal, the probability of its cause decides; a case without one is none."""
    twins = [case("a", "gamma"), case("b", "beta"), case("c", "alpha"), case("d")]
    shown = answer(hits=[(entry, 0.8) for entry in twins])
    scores = [("c", 0.695), ("b", 0.528), ("a", 0.429)]
    assert [(item.id, item.score) for item in shown.cases] == scores


def test_the_fix_of_a_case_that_matches_comes_first() -> None:
    """Its best confirmed fix, from 0.5 on, of a framework of the job and of no other stage."""
    fixes = (fix("case/1", cost="high"), fix("case/2", status="confirmed"))
    job = Incident(backend="nccl", frameworks=("deepspeed",), stage="save")

    def listed(score: float, **tags: object) -> list[str]:
        entry = replace(case("near", "alpha", tags=Tags(**tags)), fixes=fixes)  # type: ignore[arg-type]
        shown = answer(incident=job, hits=[(entry, score)])
        return [item.id for item in lead(shown).fixes]

    own = [item.id for item in lead(answer(incident=job)).fixes]
    assert own == ["alpha/a", "alpha/b", "alpha/c", "alpha/d", "alpha/e"]
    assert listed(0.5, frameworks=("deepspeed",)) == ["case/2", *own]
    assert listed(0.5, frameworks=("deepspeed",), stage="save") == ["case/2", *own]
    assert listed(0.5, frameworks=("deepspeed",), stage="eval") == own
    assert listed(0.5, frameworks=("vllm",), stage="save") == own
    assert listed(0.4999, frameworks=("deepspeed",)) == own


def test_checks_that_can_be_done_here() -> None:
    """Those of another version are left out, as is what the input holds; foreign ones are last."""
    shown = answer(incident=Incident(versions={"torch": "2.4"}))
    assert [item.command for item in lead(shown).checks] == ["c1", "c2", "c3"]
    shown = answer(incident=Incident(versions={"torch": "2.4"}), events=("kernel",))
    assert [item.command for item in lead(shown).checks] == ["c2", "c3", "c4"]
    assert [item.command for item in lead(answer()).checks] == ["c1", "c2", "c3"]


def test_the_best_check_tells_the_leading_causes_apart() -> None:
    """Of the two leading causes' checks; what each outcome says is put into words."""
    best = answer().best_check
    assert best is not None
    assert (best.command, best.tells) == ("c2", "c2.")
    assert best.outcomes == (
        "high. → supports: Title alpha.; speaks against: Title beta., Title gamma.",
        "low. → speaks against: Title alpha.",
    )
    assert answer_check(ALPHA.checks[2], KNOWLEDGE, EN) == best


def test_a_check_made_for_elsewhere_is_not_the_best() -> None:
    """On another backend nobody is asked to do it."""
    foreign = check("c9", *TELLS, applies_to=AppliesTo(frameworks=("vllm",)))
    knowledge = replace(
        KNOWLEDGE, causes=(replace(ALPHA, checks=(foreign,)), *KNOWLEDGE.causes[1:])
    )
    verdict = Verdict(
        reading=LogReading(incident=Incident(), events=(), excerpt=""),
        status="diagnosed",
        ranking=ranking(),
        signals=(),
        hits=(),
        entries={},
        votes={},
    )
    assert render(verdict, knowledge, language="en", top=3).best_check is None


@pytest.mark.parametrize(
    ("fields", "commands"),
    [
        pytest.param({}, ["first", "dmesg"], id="of-a-likely-cause-alone"),
        pytest.param({"ranked": UNSURE}, ["first", "dmesg", "u0"], id="then-what-always-helps"),
        pytest.param({"status": "unknown"}, ["u0", "u1", "u2"], id="undecided"),
        pytest.param({"events": ("kernel",)}, ["first"], id="what-is-there-already"),
        pytest.param({"events": ("oom",)}, ["first", "dmesg", "after oom"], id="when-seen"),
        pytest.param(
            {"signals": (signal("cue:word"),)}, ["first", "dmesg", "after word"], id="when-said"
        ),
        pytest.param(
            {"incident": Incident(backend="hccl", versions={"torch": "9.1"})},
            ["first", "dmesg", "npu"],
            id="backend-and-version",
        ),
        pytest.param(
            {"incident": Incident(), "signals": (signal("cue:cue-ascend"),)},
            ["first", "dmesg", "npu"],
            id="backend-by-a-word",
        ),
        pytest.param(
            {"incident": Incident()}, ["first", "dmesg", "new torch"], id="nccl-where-nobody-says"
        ),
        pytest.param({"seen": ("log:cut",)}, ["end", "first", "dmesg"], id="missing-here-first"),
        pytest.param(
            {"seen": ("log:cut", "log:silent", "log:any")},
            ["end", "others", "first"],
            id="two-of-what-is-missing",
        ),
        pytest.param({"seen": ("launcher:one",)}, ["one stacks", "dmesg"], id="of-the-launcher"),
        pytest.param(
            {"seen": ("launcher:one", "launcher:two")},
            ["one stacks", "two dmesg"],
            id="the-first-launcher-decides",
        ),
        pytest.param({"seen": ("launcher:none",)}, ["dmesg"], id="nothing-of-the-kind-for-it"),
    ],
)
def test_what_to_collect(fields: dict[str, object], commands: list[str]) -> None:
    """Three steps at most, of several ways to the same evidence the first."""
    shown = answer(**fields)  # type: ignore[arg-type]
    assert [step.command for step in shown.next] == commands
    assert {step.why for step in shown.next[:1]} <= {"why first.", "u.", "why end.", "why dmesg."}


def test_what_is_missing_names_the_ranks() -> None:
    """Who prints nothing, who prints and how many there are stand in the reason."""
    incident = Incident(
        backend="nccl", world_size=8, ranks_reporting=(0, 1, 2, 4), ranks_silent=(3, 5, 6, 7)
    )
    first = answer(incident=incident, seen=("log:silent",)).next[0]
    assert (first.command, first.why) == ("others", "0-2, 4 of 8, not 3, 5-7.")


@pytest.mark.parametrize(
    ("words", "script"),
    [
        ("torchrun --nproc-per-node 8 tools/pretrain_gpt.py --seq 4096", "tools/pretrain_gpt.py"),
        ("python3.11 -u main.py", "main.py"),
        ("python a.py\npython b.py", "train.py"),
        ("python $(rm -rf x).py", "train.py"),
        ("看 a.py", "train.py"),
    ],
    ids=["torchrun", "python", "two-programs", "no-path", "no-launch"],
)
def test_commands_name_the_program_that_was_launched(words: str, script: str) -> None:
    """Where the input launches one program, commands look for that one."""
    looks = Collect(command="pgrep -f train.py", why=both("look"))
    knowledge = replace(KNOWLEDGE, causes=(replace(ALPHA, collect=(looks,)), *KNOWLEDGE.causes[1:]))
    shown = answer(words=words, knowledge=knowledge)
    assert [step.command for step in shown.next] == [f"pgrep -f {script}"]


def test_checks_are_done_with_the_job_s_launcher() -> None:
    """Its own command where it has one; a check it has nothing for is none of the checks."""
    best = answer(seen=("launcher:one",)).best_check
    assert best is not None
    assert best.command == "one c2"
    assert answer(seen=("launcher:none",)).best_check is None
    shown = lead(answer(seen=("launcher:none",)))
    assert "c2" not in [item.command for item in shown.checks]


@pytest.mark.parametrize(
    ("share", "restart", "reason"),
    [(0.5, "helps", "restart alpha."), (0.499, "unknown", "")],
    ids=["likely", "possible"],
)
def test_a_restart_is_judged_by_a_likely_cause_alone(
    share: float, restart: str, reason: str
) -> None:
    """Below that nobody knows whether it helps, whatever is true of the cause."""
    first = lead(answer(ranked=ranking_of({**SHARES, "alpha": share})))
    assert (first.restart, first.restart_reason) == (restart, reason)


HUNG = Incident(
    backend="nccl",
    op="ALLREDUCE",
    stage="save",
    frameworks=("fsdp", "ddp"),
    versions={"torch": "2.4", "cuda": "12.1"},
    ranks=(RankState(rank=1, last_op="BROADCAST"),),
)


@pytest.mark.parametrize(
    ("cause", "tags", "why", "differs"),
    [
        ("alpha", Tags(), ("same cause as the leading one", "word: x"), ()),
        ("beta", Tags(), ("word: x",), ("another cause: Title beta.",)),
        (
            "beta",
            Tags(ops=("BROADCAST", "SEND", "ALLREDUCE"), stage="save"),
            ("word: x", "same collective BROADCAST, ALLREDUCE", "same stage: saving a checkpoint"),
            ("another cause: Title beta.",),
        ),
        (
            "beta",
            Tags(stage="load"),
            ("word: x",),
            ("another cause: Title beta.", "another stage: loading"),
        ),
        (
            "beta",
            Tags(backend="gloo"),
            ("word: x",),
            ("another cause: Title beta.", "another backend: gloo"),
        ),
        (
            "beta",
            Tags(backend="nccl"),
            ("word: x", "same backend nccl"),
            ("another cause: Title beta.",),
        ),
        (
            "alpha",
            Tags(backend="nccl", frameworks=("vllm", "fsdp", "ddp")),
            ("same cause as the leading one", "word: x", "same framework: ddp, fsdp"),
            (),
        ),
        (
            "alpha",
            Tags(versions={"torch": "2.1", "cuda": "12.1", "nccl": "2.18"}),
            ("same cause as the leading one", "word: x"),
            ("another version: torch 2.1",),
        ),
    ],
    ids=[
        "cause",
        "other-cause",
        "operations",
        "stage",
        "backend",
        "alone",
        "framework",
        "version",
    ],
)
def test_what_a_case_has_in_common(
    cause: str, tags: Tags, why: tuple[str, ...], differs: tuple[str, ...]
) -> None:
    """Cause, operation, stage, frameworks, and the backend where nothing else is alike."""
    entry = case("c", cause, tags=tags, project="o/p", status="reported")
    (shown,) = answer(incident=HUNG, hits=[(entry, 0.71239)]).cases
    assert shown == SimilarCase(
        id="c",
        project="o/p",
        title="title of c.",
        score={"alpha": 0.641, "beta": 0.487}[cause],
        cause=cause,
        url="https://example.org/c",
        status="reported",
        why=why,
        differs=differs,
    )


def test_an_incident_in_one_language() -> None:
    """Reasons, moments and why files are unread are in words; the rest is as it was read."""
    incident = Incident(
        op="ALLREDUCE",
        seq=7,
        culprit_ranks=(Culprit(rank=3, reason=both("late"), line=9),),
        timeline=(
            TimelineItem(time="10:00", rank=1, what=both("hung"), line=4, kind="k", file="f"),
        ),
        unread=(Unread(file="a", reason="is binary", code="binary"),),
    )
    shown = answer_incident(incident, Words(LABELS, "zh"))
    assert (shown.op, shown.seq, shown.lines) == ("ALLREDUCE", 7, 0)
    assert [(item.rank, item.reason) for item in shown.culprit_ranks] == [(3, "late。")]
    (moment,) = shown.timeline
    assert (moment.time, moment.rank, moment.what, moment.line, moment.kind, moment.file) == (
        "10:00",
        1,
        "hung。",
        4,
        "k",
        "f",
    )
    assert [item.reason for item in shown.unread] == ["是二进制文件，不是文本日志"]


def test_a_fix_in_one_language() -> None:
    """All its words, with where it applies."""
    made = fix(
        "a/b",
        commands=("run",),
        caution=both("careful"),
        applies_to=AppliesTo(frameworks=("fsdp",)),
        sources=("https://x.example",),
    )
    shown = answer_fix(made, EN)
    assert (shown.id, shown.title, shown.steps, shown.commands) == (
        "a/b",
        "a/b.",
        ("step of a/b.",),
        ("run",),
    )
    assert (shown.status, shown.applies_to, shown.caution, shown.sources) == (
        "reported",
        "fsdp",
        "careful.",
        ("https://x.example",),
    )
    assert answer_fix(fix("a"), EN).caution == ""
