"""The head of an answer: one screen of a terminal, ten lines of text, Markdown to be pasted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
from rich.cells import cell_len

from app.render import head
from app.render.markdown import MAX_LINES, render_markdown
from app.render.one_screen import MAX_ROWS, render_screen, rows_of
from app.render.short import render_short
from app.render.terminal import render_text
from app.slack.blocks.diagnosis import diagnosis_message
from app.slack.requests import DiagnosisRef
from kb.knowledge.labels import Words
from kb.types.answer import Diagnosis, FirstStep, MetBefore, NextStep
from kb.types.knowledge import Bilingual
from kb.types.vocabulary import DiagnosisStatus, EntryKind, Language, Origin

if TYPE_CHECKING:
    from kb.service import Service

Labels = dict[str, Bilingual]
LANGUAGES: tuple[Language, ...] = ("en", "zh")
SHORT_LINES = 10
WIDE = "很长的话" * 60
LONG_COMMAND = "\n".join(f"export NAME_{number}=1" for number in range(40))
REF = DiagnosisRef(saved_id="d", language="en", conversation="")
MET = MetBefore(
    entry="inc-7",
    kind="incident",
    when="2026-05-04",
    title="same job",
    cause="rank-crash",
    cause_title="One rank crashed first",
    fix="smaller batch",
    url="https://example.org/inc-7",
)


def screen(answer: Diagnosis, labels: Labels, *, width: int = 100) -> list[str]:
    """The rows of the screen without colours."""
    text = render_screen(answer, Words(labels, answer.language), width=width)
    return click.unstyle(text).splitlines()


@pytest.fixture(scope="module")
def examples(root: Path) -> list[str]:
    """Logs people can try, and logs of other failures."""
    folders = (root / "data" / "examples", root / "tests" / "samples")
    return [path.read_text("utf-8") for folder in folders for path in sorted(folder.glob("*.*"))]


def test_every_example_fits_one_screen_and_one_issue(real: Service, examples: list[str]) -> None:
    """25 rows at usual widths, 120 lines of Markdown, ten short lines; the headline comes first."""
    labels = real.knowledge.labels
    for log in examples:
        for language in LANGUAGES:
            words, answer = Words(labels, language), real.diagnose_text(log, language=language)
            for width in (80, 100, 120):
                text = render_screen(answer, words, width=width)
                assert rows_of(text, width) <= MAX_ROWS == 25, log[:80]
            markdown, short = render_markdown(answer, words), render_short(answer, words)
            assert markdown.startswith("## ")
            assert len(markdown.splitlines()) <= MAX_LINES == 120, log[:80]
            assert len(short.splitlines()) <= SHORT_LINES, log[:80]
            assert short.splitlines()[0] == answer.headline


def test_forty_threads_fit_as_well(real: Service, shared_dir: Path) -> None:
    """Reports of people, with words and a log."""
    lines = (shared_dir / "threads" / "threads.jsonl").read_text("utf-8").splitlines()[:40]
    for line in lines:
        thread = json.loads(line)
        text = f"{thread['query_text']}\n\n{thread['query_log']}"
        for language in LANGUAGES:
            words = Words(real.knowledge.labels, language)
            answer = real.diagnose_text(text, language=language)
            assert rows_of(render_screen(answer, words, width=100), 100) <= MAX_ROWS, thread["id"]
            assert len(render_markdown(answer, words).splitlines()) <= MAX_LINES, thread["id"]


def test_the_screen_says_what_to_do_and_how_sure(diagnosis: Diagnosis, labels: Labels) -> None:
    """Headline, first fix with its command, certainty with the strongest reason, the line."""
    met = "Your team met this on 2026-05-04:"
    assert screen(replace(diagnosis, met_before=MET), labels) == [
        "Rank 3 ran out of GPU memory",
        "",
        "Do first       Use less memory  [confirmed]",
        "                 python train.py \\",
        "                   --batch 4",
        "               caution: slower",
        "Cause          One rank crashed first (rank-crash), 70%, likely. Why: first (line 2)",
        f"Met before     {met} it was “One rank crashed first” (rank-crash); inc-7",
        "               “same job”; what helped: smaller batch",
        "               https://example.org/inc-7",
        "Log            rank 3, line 2",
        "               │ torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "Other causes    10%  Ranks issued other collectives",
        "               something else, or unknown: 20%",
        "Settings       NCCL_TIMEOUT: no effect · read by nobody",
        "Restart        will not help: it comes back",
        "Check first    which",
        "                 dmesg -T",
        "Similar        0.83  A case like this  https://example.org/first-case",
        "Next             py-spy dump --pid 1  # where rank 3 stands",
        "",
        "3 lines in 12 ms · --full shows all",
    ]


@pytest.mark.parametrize(
    ("kind", "when", "origin", "said"),
    [
        ("incident", "2026-05-04", "", "Your team met this on 2026-05-04"),
        ("incident", "", "", "Your team met this before"),
        ("case", "2026-05-04", "", "A public case is probably the same"),
        ("case", "2026-05-04", "site", "A case of your team's is probably the same"),
        ("thread", "", "", "A page in your knowledge base is the same"),
    ],
)
def test_every_face_says_whose_incident_it_was(
    diagnosis: Diagnosis, labels: Labels, kind: EntryKind, when: str, origin: Origin, said: str
) -> None:
    """Before the incident and what helped then; the first step is another one here."""
    words = Words(labels, "en")
    met = replace(MET, kind=kind, when=when, origin=origin)
    for text in faces(replace(diagnosis, met_before=met), words):
        assert said in text
        assert text.count("smaller batch") == 1
        assert text.index(said) < text.index("same job") < text.index("smaller batch")
        assert "Do first" in text


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("when", ["2026-05-04", ""])
def test_what_helped_the_team_is_said_once(
    diagnosis: Diagnosis, labels: Labels, language: Language, when: str
) -> None:
    """As the first step, under a label that says so; a case's fix is simply the first to do."""
    words, step = Words(labels, language), diagnosis.first_fix
    assert step is not None
    own = replace(MET, when=when, fix=step.title)
    label = words("head.helped_on", when=when) if when else words("head.helped_team")
    answer = replace(diagnosis, met_before=own)
    (helped,) = words("head.helped", fix="").split("{fix}")
    for text in faces(answer, words):
        assert text.index(label) < text.index(step.title)
        assert words("head.fix") not in text
        assert helped.strip() not in text
    for text in faces(replace(answer, met_before=replace(own, kind="case")), words):
        assert words("head.fix") in text
        assert label not in text
        assert helped.strip() not in text


def test_a_case_of_another_cause_is_no_reason_to_restart(
    diagnosis: Diagnosis, labels: Labels
) -> None:
    """What helped in it is called so; whether a restart helps is not known of its cause."""
    words, step = Words(labels, "en"), diagnosis.first_fix
    assert step is not None
    met = replace(MET, kind="case", cause="checkpoint-io", fix=step.title)
    step = replace(step, cause="checkpoint-io")
    for text in faces(replace(diagnosis, met_before=met, first_fix=step), words):
        assert text.index("What helped in the case most like it") < text.index(step.title)
    restart = words("heading.restart")
    screen = render_screen(replace(diagnosis, met_before=met, first_fix=step), words, width=200)
    assert (restart in render_screen(diagnosis, words, width=200), restart in screen) == (
        True,
        False,
    )


def faces(answer: Diagnosis, words: Words) -> list[str]:
    """The answer as the terminal, a chat tool, an issue and Slack show it."""
    texts = (
        render_screen(answer, words, width=200),
        render_text(answer, words, width=200),
        render_short(answer, words),
        render_markdown(answer, words),
        json.dumps(diagnosis_message(answer, words, REF).blocks, ensure_ascii=False),
    )
    return [click.unstyle(text) for text in texts]


def test_the_short_form_is_read_in_a_chat_tool(diagnosis: Diagnosis, labels: Labels) -> None:
    """The same head in plain text; of the causes behind those that are worth a word."""
    met = (
        "it was “One rank crashed first” (rank-crash); inc-7 “same job”; what helped: smaller batch"
    )
    text = render_short(replace(diagnosis, met_before=MET), Words(labels, "en"))
    assert text.splitlines() == [
        "Rank 3 ran out of GPU memory",
        "Do first: Use less memory  [confirmed]",
        "    python train.py \\",
        "      --batch 4",
        "caution: slower",
        "Cause: One rank crashed first (rank-crash), 70%, likely. Why: first (line 2)",
        f"Your team met this on 2026-05-04: {met} https://example.org/inc-7",
        "rank 3, line 2: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "Other causes: Ranks issued other collectives 10%",
        "Similar: A case like this https://example.org/first-case",
    ]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("width", [80, 100, 120])
def test_much_of_everything_still_fits(
    diagnosis: Diagnosis, labels: Labels, language: Language, width: int
) -> None:
    """Prose is wrapped at the width and cut; what matters least is left out first."""
    assert diagnosis.first_fix is not None
    step = NextStep(command="py-spy dump --pid 1", why=WIDE)
    answer = replace(
        diagnosis,
        language=language,
        headline=WIDE[:80],
        first_fix=replace(diagnosis.first_fix, command=LONG_COMMAND, caution=WIDE),
        causes=(diagnosis.causes[0], *[replace(diagnosis.causes[1], title=WIDE)] * 5),
        warnings=tuple(replace(diagnosis.warnings[0], explanation=WIDE) for _ in range(9)),
        cases=tuple(replace(diagnosis.cases[0], title=WIDE) for _ in range(9)),
        next=(step,) * 9,
        met_before=replace(MET, title=WIDE),
    )
    rows = screen(answer, labels, width=width)
    assert len(rows) <= MAX_ROWS
    assert [row for row in rows if cell_len(row) > width] == []
    assert "export NAME_5=1" in "\n".join(rows)
    assert "34" in "\n".join(rows)  # lines of the command that are not shown
    words = Words(labels, language)
    assert len(render_markdown(answer, words).splitlines()) <= MAX_LINES
    assert len(render_short(answer, words).splitlines()) <= SHORT_LINES


@pytest.mark.parametrize("render", [render_short, render_markdown])
def test_a_check_that_comes_first_is_not_asked_twice(
    diagnosis: Diagnosis, labels: Labels, render: Callable[[Diagnosis, Words], str]
) -> None:
    """Nor is what stands in the head collected again."""
    assert diagnosis.best_check is not None
    step = FirstStep(kind="check", title="which", command="dmesg -T")
    again = NextStep(command="dmesg -T", why="once more")
    answer = replace(diagnosis, status="unknown", first_fix=step, next=(again, *diagnosis.next))
    text = render(answer, Words(labels, "en"))
    assert text.count("dmesg -T\n") == 1
    assert "\n".join(screen(answer, labels)).count("dmesg -T") == 1
    assert "Check first" in text
    assert "undecided, nearest “One rank crashed first”" in text


def test_an_incident_met_before_is_no_similar_case_too(
    diagnosis: Diagnosis, labels: Labels
) -> None:
    """It stands in the head."""
    met = replace(MET, entry=diagnosis.cases[0].id, kind="case")
    assert head.cases_not_met(diagnosis) == list(diagnosis.cases)
    assert head.cases_not_met(replace(diagnosis, met_before=met)) == []


def test_what_was_seen_is_the_reason_before_what_was_learned(diagnosis: Diagnosis) -> None:
    """The reader's opinion is the reason only where nothing else speaks for the cause."""
    seen = diagnosis.causes[0].evidence[0]
    learned = replace(seen, kind="reader", weight=9.0, reason="learned")
    doubt = replace(seen, weight=-9.0, reason="doubt")
    cause = replace(diagnosis.causes[0], evidence=(doubt, learned, seen))
    assert head.strongest(cause) == seen
    assert head.strongest(replace(cause, evidence=(doubt, learned))) == learned
    assert head.strongest(replace(cause, evidence=(doubt,))) is None


@pytest.mark.parametrize(
    ("op", "english", "chinese"),
    [
        ("ALLREDUCE", "rank 2 (waiting), line 1", "rank 2（在等）、第 1 行"),
        ("BROADCAST", "rank 2, line 1", "rank 2、第 1 行"),
    ],
    ids=["one-that-waits", "the-odd-one"],
)
def test_the_line_says_whose_it_is(real: Service, op: str, english: str, chinese: str) -> None:
    """A rank that only waited is told apart from the one that ran something else."""
    line = (
        "[rank{rank}]:[E ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog caught collective "
        "operation timeout: WorkNCCL(SeqNum=9, OpType={op}, NumelIn=8, NumelOut=8, "
        "Timeout(ms)=600000) ran for 600029 milliseconds before timing out."
    )
    works = [(2, op), *((rank, "ALLREDUCE") for rank in (0, 1, 3))]
    text = "\n".join(line.format(rank=rank, op=name) for rank, name in works)
    for language, where in zip(LANGUAGES, (english, chinese), strict=True):
        answer = real.diagnose_text(text, language=language)
        words = Words(real.knowledge.labels, language)
        assert head.culprit_line(answer, words) == (where, text.splitlines()[0])


@pytest.mark.parametrize(
    ("status", "broken", "colour"),
    [
        ("diagnosed", True, "\x1b[31m"),
        ("unknown", False, "\x1b[33m"),
        ("no_timeout", False, "\x1b[1m"),
    ],
)
def test_the_headline_has_the_colour_of_severity(
    diagnosis: Diagnosis, labels: Labels, status: DiagnosisStatus, broken: bool, colour: str
) -> None:
    """Red where an error ended the job, yellow where it waited; nothing is green."""
    error = diagnosis.incident.first_error if broken else None
    incident = replace(diagnosis.incident, first_error=error)
    answer = replace(diagnosis, status=status, incident=incident)
    for text in (
        render_screen(answer, Words(labels, "en"), width=100),
        render_text(answer, Words(labels, "en"), width=100),
    ):
        assert text.startswith(colour)
        assert "\x1b[32m" not in text
