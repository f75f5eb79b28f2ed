"""What a person reads of a diagnosis."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.cells import cell_len

from app.labels import Words
from app.markdown import render_markdown
from app.present import UNDECIDED, duration, facts, percent, present, rank_span
from app.quoting import plain
from app.terminal import render_ranks, render_text
from kb.errors import DataError
from kb.logs.flight import FaultType
from kb.types import (
    Bilingual,
    ClaimStatus,
    Diagnosis,
    EntryKind,
    EvidenceKind,
    Language,
    RankState,
    Restart,
    Stage,
)

if TYPE_CHECKING:
    from kb.service import Service

Labels = dict[str, Bilingual]
NASTY = st.text(
    alphabet=st.one_of(
        st.sampled_from("`*_[]<>()#!|~$&\\-+=:.\n\r\t\x1b\x9b\x07 \u202e\u2028 1aw/{}"),
        st.characters(),
    ),
    max_size=40,
)
UNHURRIED = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=60,
    deadline=None,  # a busy machine is no failure
)


def text_of(diagnosis: Diagnosis, labels: Labels, *, width: int = 100, full: bool = False) -> str:
    """The terminal text without colours."""
    view = present(diagnosis, labels)
    words = Words(labels, view.language)
    return click.unstyle(render_text(view, words, width=width, full=full))


def markdown_of(diagnosis: Diagnosis, labels: Labels) -> str:
    """The Markdown."""
    view = present(diagnosis, labels)
    return render_markdown(view, Words(labels, view.language))


def test_every_label_used_is_there(labels: Labels, root: Path) -> None:
    """Names of labels in the code stand in data/labels, and none there is unused."""
    groups = {name.split(".")[0] for name in labels}
    used = set()
    speaking = (root / "app", root / "ingest", root / "kb" / "chat")
    for path in sorted(item for folder in speaking for item in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                name = node.value
                if re.fullmatch(r"[a-z]+\.[a-z_]+", name) and name.split(".")[0] in groups:
                    used.add(name)
    assert used - set(labels) == set()
    spoken_by_value = {"stage", "restart", "claim", "warning", "kind", "source", "band"}
    spoken_by_value |= {"column", "error", "todo", "title", "note", "fault"}
    unused = {name for name in set(labels) - used if name.split(".")[0] not in spoken_by_value}
    assert unused - {"word.minutes", "word.seconds", "word.hours"} == set()


@pytest.mark.parametrize(
    ("group", "vocabulary"),
    [
        ("stage", Stage),
        ("restart", Restart),
        ("claim", ClaimStatus),
        ("kind", EntryKind),
        ("source", EvidenceKind),
        ("fault", FaultType),
    ],
)
def test_closed_vocabularies_are_spoken(labels: Labels, group: str, vocabulary: object) -> None:
    """Each value of a closed vocabulary has its words."""
    spoken = set(get_args(vocabulary)) - ({UNDECIDED} if group == "fault" else set())
    assert {f"{group}.{value}" for value in spoken} <= set(labels)


def test_label_twins_take_the_same_values(labels: Labels) -> None:
    """Both languages of a label have the same braces."""
    braces = re.compile(r"{(\w+)}")
    different = [
        name
        for name, label in labels.items()
        if set(braces.findall(label.zh)) != set(braces.findall(label.en))
    ]
    assert different == []


@pytest.mark.parametrize(
    ("lines", "language", "shown"),
    [
        (1, "en", "1 line in 7 ms"),
        (2, "en", "2 lines in 7 ms"),
        (0, "en", "0 lines in 7 ms"),
        (1, "zh", "1 行，用时 7 毫秒"),
    ],
)
def test_one_is_not_several(labels: Labels, lines: int, language: Language, shown: str) -> None:
    """A label chooses the form of a word by its number."""
    assert Words(labels, language)("word.took", lines=lines, ms=7) == shown


@pytest.mark.parametrize(
    ("fault", "shown"),
    [
        (
            "gpu_stall",
            {"zh": "有 GPU 停住，发出的操作没有做完", "en": "a GPU stopped finishing work"},
        ),
        ("unknown", None),
        ("", None),
    ],
)
def test_a_fault_is_said_in_words(
    diagnosis: Diagnosis, labels: Labels, fault: str, shown: dict[str, str] | None
) -> None:
    """What the ranks' records show is no code, and no row where they do not decide."""
    incident = replace(diagnosis.incident, fault_type=fault)
    for language in get_args(Language):
        words = Words(labels, language)
        found = {row.label: row.value for row in facts(incident, words)}
        assert found.get(words("row.fault")) == (shown[language] if shown else None)


def test_a_cause_that_is_named_is_possible(diagnosis: Diagnosis, labels: Labels) -> None:
    """What the engine rounds to nothing is little, not impossible."""
    rounded = replace(diagnosis.causes[1], probability=0.0)
    view = present(replace(diagnosis, causes=(diagnosis.causes[0], rounded)), labels)
    assert [cause.percent for cause in view.causes] == ["70%", "<1%"]


def test_a_missing_label_is_named(labels: Labels) -> None:
    """The error says which label to add."""
    with pytest.raises(DataError, match=r"word\.nowhere"):
        Words(labels, "en")("word.nowhere")


def test_answer_first(diagnosis: Diagnosis, labels: Labels) -> None:
    """The first line is the verdict with cause, share and rank; culprit and error follow."""
    lines = text_of(diagnosis, labels).splitlines()
    assert lines[0] == ("One rank crashed first (rank-crash): 70%, likely · look at rank 3 first")
    assert lines[1] == "Rank 3 ran out of memory."
    assert lines[3] == "Culprit      rank 3: last enqueued 14216, others wait"
    assert lines[4] == "First error  rank 3, line 2, cuda-oom"
    assert lines[5].endswith(
        "│ torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"
    )
    assert lines[6] == "What hung    ALLREDUCE, seq 14217, numel 1, process group default_pg"
    assert lines[7] == "Timeout      10 min (600000 ms), ran 10 min"
    assert lines[8] == "Ranks        reporting 0-2, 4-7 · not reporting 3 · 8 in all"


def test_what_the_culprit_itself_hangs_in_is_told(diagnosis: Diagnosis, labels: Labels) -> None:
    """A rank that waits elsewhere than the others is shown with its own operation and number."""
    incident = diagnosis.incident
    own = RankState(rank=3, state="behind", last_op="BROADCAST", last_seq=14216, numel_in=8)
    apart = replace(diagnosis, incident=replace(incident, ranks=(own,)))
    assert (
        present(apart, labels)
        .culprits[0]
        .endswith("; it hangs in BROADCAST, seq 14216, numel 8 itself")
    )
    same = replace(own, last_op=incident.op, last_seq=incident.seq)
    together = replace(diagnosis, incident=replace(incident, ranks=(same,)))
    assert "itself" not in present(together, labels).culprits[0]


@pytest.mark.parametrize("render", [text_of, markdown_of])
def test_a_piece_of_a_quote_told_is_not_told_again(
    render: Callable[..., str], diagnosis: Diagnosis, labels: Labels
) -> None:
    """A person's words cut out of a line that stands above are given by their meaning alone."""
    cause = diagnosis.causes[0]
    line = "Watchdog caught collective operation timeout: it ran for 600 s."
    first, second = (
        replace(cause.evidence[0], quote=quote, reason=reason, source="log")
        for quote, reason in ((line, "a timeout"), (line.rstrip("."), "ten minutes"))
    )
    told = replace(diagnosis, causes=(replace(cause, evidence=(first, second)),))
    text = render(told, labels)
    assert text.count("it ran for 600 s") == 1
    assert text.index("a timeout") < text.index("ten minutes")


@pytest.mark.parametrize("render", [text_of, markdown_of])
def test_of_several_files_the_file_is_named(
    render: Callable[..., str], diagnosis: Diagnosis, labels: Labels
) -> None:
    """First error, evidence, moments, warnings, waves and ranks tell the file beside the line."""
    incident, name = diagnosis.incident, "rank-3.log"
    first, (wave, *_) = incident.first_error, incident.waves
    assert first is not None
    waves = (replace(wave, file=name), replace(wave, file="b.log", first_line=7, last_line=9))
    told = replace(
        diagnosis,
        incident=replace(
            incident,
            first_error=replace(first, file=name),
            waves=waves,
            timeline=tuple(replace(item, file=name) for item in incident.timeline),
            ranks=tuple(replace(state, file=name, line=5) for state in incident.ranks),
        ),
        causes=tuple(
            replace(
                cause,
                evidence=tuple(replace(item, file=name, line=4) for item in cause.evidence),
            )
            for cause in diagnosis.causes
        ),
        warnings=tuple(replace(item, file=name, line=6) for item in diagnosis.warnings),
    )
    full = {"full": True} if render is text_of else {}
    text = " ".join(render(told, labels, **full).replace("\\", "").split())
    assert f"rank 3, {name} line {first.line}" in text
    assert f"{name} line 4" in text
    assert f"{name} line 6" in text
    assert f"{name}:5" in text
    assert f"{name} lines {wave.first_line}–{wave.last_line}, b.log lines 7–9" in text
    assert f"{name} line {incident.timeline[0].line}" in text


def test_one_screen(diagnosis: Diagnosis, labels: Labels) -> None:
    """A usual answer fits a screen of 50 lines; all of it stands with `full`."""
    assert len(text_of(diagnosis, labels).splitlines()) <= 50
    full = text_of(diagnosis, labels, full=True)
    assert "Timeline" in full
    assert "dmesg -T | grep -i oom" in full


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("width", [80, 120])
def test_prose_fits_the_width(
    diagnosis: Diagnosis, labels: Labels, language: Language, width: int
) -> None:
    """No line is wider than the window, commands and addresses aside: those must stay whole."""
    view = present(replace(diagnosis, language=language, summary="很长的话。 word " * 40), labels)
    text = click.unstyle(render_text(view, Words(labels, language), width=width, full=True))
    whole = ("https://", "python train.py", "--batch", "dmesg", "py-spy")
    wide = [
        line
        for line in text.splitlines()
        if cell_len(line) > width and not line.strip().startswith(whole)
    ]
    assert wide == []


def test_commands_are_copied_whole(diagnosis: Diagnosis, labels: Labels) -> None:
    """A command wider than the window is not broken."""
    command = "srun --nodes 2 " + "--very-long-option " * 12 + "end"
    step = replace(diagnosis.next[0], command=command)
    text = text_of(replace(diagnosis, next=(step,)), labels, width=80)
    assert command in text


def test_a_quote_is_shown_once(diagnosis: Diagnosis, labels: Labels) -> None:
    """A line that is the first error and evidence of two causes is not repeated; reasons are."""
    quote = "torch.OutOfMemoryError: CUDA out of memory."
    text = text_of(diagnosis, labels)
    assert text.count(quote) == 1
    assert text.count("+ line 2 · first") == 2
    twice = replace(
        diagnosis.causes[0], evidence=(*diagnosis.causes[0].evidence, *diagnosis.causes[0].evidence)
    )
    markdown = markdown_of(replace(diagnosis, causes=(twice,)), labels)
    assert markdown.count(f"`{quote}") == 1


def test_hardly_possible_causes_take_one_line(diagnosis: Diagnosis, labels: Labels) -> None:
    """Causes below 5 % are named without evidence and fixes, unless all is asked for."""
    faint = replace(diagnosis.causes[1], probability=0.01)
    answer = replace(diagnosis, causes=(diagnosis.causes[0], faint))
    lines = text_of(answer, labels).splitlines()
    at = lines.index("2.  1%  Ranks issued other collectives  [collective-mismatch, unlikely]")
    assert lines[at + 1] == "    something else, or unknown: 20%"
    assert text_of(answer, labels, full=True).count("Use less memory") == 2


@pytest.mark.parametrize(
    ("why", "shown"),
    [
        (("op:ALLREDUCE", "term:timing", "same op"), "same op, ALLREDUCE"),
        (("op:ALLREDUCE", "same collective ALLREDUCE"), "same collective ALLREDUCE"),
        (("term:timing", "term:seq", "language:cross"), "timing, seq"),
        (("language:same",), None),
        (("signature:cache", "same op"), "same op"),
        (("signature:cache", "term:timing"), "cache"),
    ],
)
def test_likenesses_are_said_by_worth(
    diagnosis: Diagnosis, labels: Labels, why: tuple[str, ...], shown: str | None
) -> None:
    """Sentences first, then ops; bare words only where there is nothing else."""
    case = replace(diagnosis.cases[0], why=why, differs=())
    (seen,) = present(replace(diagnosis, cases=(case,)), labels).cases
    assert seen.notes == ((f"alike: {shown}",) if shown else ())


def test_unknown_and_no_timeout_are_answers(
    service: Service, labels: Labels, undecided_log: str
) -> None:
    """They are said in the first line, the leading cause beside "unknown"."""
    unknown = text_of(service.diagnose_text(undecided_log, language="en"), labels)
    assert unknown.splitlines()[0] == (
        "Unknown: the evidence does not decide · leading: One rank crashed first, 30% · "
        "look at rank 3 first"
    )
    nothing = text_of(service.diagnose_text("all is well", language="en"), labels)
    assert nothing.splitlines()[0] == "No timeout in this text"
    assert "Causes" not in nothing


def test_chinese_answer_has_chinese_labels(service: Service, labels: Labels, log: str) -> None:
    """No English heading stands in a Chinese answer."""
    text = text_of(service.diagnose_text(log, language="zh"), labels)
    assert text.startswith("有一个 rank 先崩溃（rank-crash）：70%，很可能 · 先看 rank 3")
    english = [label.en for name, label in labels.items() if name.startswith("heading.")]
    assert [word for word in english if word in text] == []


def test_rank_table_leaves_out_empty_columns(diagnosis: Diagnosis, labels: Labels) -> None:
    """Only columns with a value are shown, aligned."""
    view = present(diagnosis, labels)
    lines = click.unstyle(render_ranks(view, Words(labels, "en"))).splitlines()
    assert lines[2:] == [
        "rank  state    enqueued  completed",
        "1     waiting  14217     14216",
        "3     crashed  14216     14216",
    ]


@pytest.mark.parametrize(
    ("probability", "shown"),
    [(0, "0%"), (0.004, "<1%"), (0.256, "26%"), (0.997, ">99%"), (1, "100%")],
)
def test_shares_are_never_rounded_to_certainty(probability: float, shown: str) -> None:
    """What is nearly 0 or 1 does not read as 0 % or 100 %."""
    assert percent(probability) == shown


@pytest.mark.parametrize(
    ("milliseconds", "shown"),
    [(250, "250 ms"), (600_000, "10 min"), (5_400_000, "1 h 30 min"), (61_000, "1 min 1 s")],
)
def test_durations_read_as_people_say_them(labels: Labels, milliseconds: int, shown: str) -> None:
    """Milliseconds become hours, minutes and seconds, parts of zero left out."""
    assert duration(milliseconds, Words(labels, "en")) == shown


@given(st.lists(st.integers(min_value=0, max_value=40)))
def test_rank_spans_say_the_same_ranks(ranks: list[int]) -> None:
    """Reading the spans back gives the ranks, each once."""
    read: list[int] = []
    for part in filter(None, rank_span(ranks).split(", ")):
        low, _, high = part.partition("-")
        read += range(int(low), int(high or low) + 1)
    assert read == sorted(set(ranks))


@UNHURRIED
@given(text=NASTY)
def test_hostile_text_cannot_act_in_a_terminal(
    hostile: Callable[[str], Diagnosis], labels: Labels, text: str
) -> None:
    """Once our own colours are gone, nothing but printable characters and breaks is left."""
    shown = text_of(hostile(text), labels, full=True)
    assert all(line.isprintable() for line in shown.split("\n"))


@UNHURRIED
@given(text=NASTY)
def test_hostile_text_cannot_act_in_markdown(
    hostile: Callable[[str], Diagnosis], labels: Labels, text: str
) -> None:
    """The document keeps our headings and links: no HTML, no image, no foreign link."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    tokens = parser.parse(markdown_of(hostile(text), labels))
    inner = [child for token in tokens for child in token.children or []]
    kinds = {token.type for token in (*tokens, *inner)}
    assert not kinds & {"html_block", "html_inline", "image", "hr", "blockquote_open", "s_open"}
    links = {str(token.attrs["href"]) for token in inner if token.type == "link_open"}
    allowed = {"https://example.org/fix"} | ({text} if text.startswith("http") else set())
    assert links <= allowed
    headings = [token.tag for token in tokens if token.type == "heading_open"]
    assert headings == ["h2", "h3", "h4", "h3", "h3", "h3", "h3", "h3", "h3"]


def test_quotes_stay_literal_in_markdown(
    hostile: Callable[[str], Diagnosis], labels: Labels
) -> None:
    """A line full of Markdown reads in the answer exactly as it stood in the log."""
    line = "```<b>[x](http://evil)</b>``` **NCCL** `WARN`"
    tokens = MarkdownIt("commonmark").parse(markdown_of(hostile(line), labels))
    inner = [child for token in tokens for child in token.children or []]
    assert plain(line) in {token.content for token in inner if token.type == "code_inline"}
    assert f"{line}\n" in {token.content for token in tokens if token.type == "fence"}
